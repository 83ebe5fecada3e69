"""Transaction index: aborted transactions of a segment."""

from pathlib import Path

import pytest

from kafkapy.storage.file_system import OsFileSystem
from kafkapy.storage.storage_errors import CorruptIndexError
from kafkapy.storage.transaction_index import AbortedTxn, TransactionIndex

ABORTED = [
    AbortedTxn(0, 0, 10, 11),
    AbortedTxn(1, 5, 15, 13),
    AbortedTxn(2, 18, 35, 25),
    AbortedTxn(3, 32, 50, 40),
]


def open_index(path: Path, start: int = 0) -> TransactionIndex:
    return TransactionIndex(start, str(path / "x.txnindex"), OsFileSystem())


def filled(path: Path) -> TransactionIndex:
    index = open_index(path)
    for aborted in ABORTED:
        index.append(aborted)
    return index


def test_file_appears_with_the_first_abort(tmp_path: Path) -> None:
    index = open_index(tmp_path)
    before = list(tmp_path.iterdir())

    index.append(AbortedTxn(7, 1, 2, 3))

    assert before == []
    assert (tmp_path / "x.txnindex").read_bytes().hex() == (
        "00000000000000000007000000000000000100000000000000020000000000000003"
    )


def test_entries_survive_reopening(tmp_path: Path) -> None:
    filled(tmp_path)

    index = open_index(tmp_path)
    index.append(AbortedTxn(4, 60, 70, 65))

    assert open_index(tmp_path).all_aborted_txns() == [*ABORTED, AbortedTxn(4, 60, 70, 65)]


def test_last_offsets_must_increase(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not above"):
        filled(tmp_path).append(AbortedTxn(9, 1, 50, 60))


@pytest.mark.parametrize(
    ("fetch", "upper", "found", "complete"),
    [
        (0, 100, [0, 1, 2, 3], False),
        (0, 32, [0, 1, 2], True),
        (0, 35, [0, 1, 2, 3], True),
        (10, 35, [0, 1, 2, 3], True),
        (11, 35, [1, 2, 3], True),
        (20, 41, [2, 3], False),
    ],
)
def test_collect_finds_overlapping_transactions(
    tmp_path: Path, fetch: int, upper: int, found: list[int], complete: bool
) -> None:
    result = filled(tmp_path).collect_aborted_txns(fetch, upper)

    assert result.aborted_transactions == [ABORTED[i] for i in found]
    assert result.is_complete == complete


@pytest.mark.parametrize(("offset", "left"), [(51, 4), (50, 3), (35, 2), (10, 0)])
def test_truncate_to_goes_by_the_marker(tmp_path: Path, offset: int, left: int) -> None:
    index = filled(tmp_path)

    index.truncate_to(offset)

    assert index.all_aborted_txns() == ABORTED[:left]
    assert open_index(tmp_path).all_aborted_txns() == ABORTED[:left]


def test_reset_empties_the_file(tmp_path: Path) -> None:
    index = filled(tmp_path)

    index.reset()

    assert index.all_aborted_txns() == []
    assert (tmp_path / "x.txnindex").stat().st_size == 0


@pytest.mark.parametrize("content", [b"123", b"\0\x01" + b"\0" * 32])
def test_garbage_fails_the_sanity_check(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.txnindex").write_bytes(content)

    with pytest.raises(CorruptIndexError):
        open_index(tmp_path).sanity_check()


def test_transaction_before_the_segment_fails_the_sanity_check(tmp_path: Path) -> None:
    filled(tmp_path)

    with pytest.raises(CorruptIndexError):
        open_index(tmp_path, start=11).sanity_check()
