"""Records too large to be held are walked piece by piece, with the same outcome."""

import random
import time
from collections.abc import Callable, Iterator

import pytest

from kafkapy.common.errors import InvalidRecordError
from kafkapy.common.record import default_record
from kafkapy.common.record.default_record import RecordWalk, read_record_fields, walk_records
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record import Header, SimpleRecord
from kafkapy.common.record.record_batch import RECORD_BATCH_OVERHEAD
from kafkapy.common.record.record_input import RecordInput, SectionInput

_COUNT = 3


def _body(rng: random.Random) -> bytes:
    batch = MemoryRecords.with_records(
        *(
            SimpleRecord(
                1000 + rng.randrange(500),
                rng.choice((None, b"", rng.randbytes(rng.randrange(200)))),
                rng.choice((None, b"", rng.randbytes(rng.randrange(300)))),
                tuple(
                    Header("h" * rng.randrange(100), rng.choice((None, b"v" * rng.randrange(100))))
                    for _ in range(rng.randrange(3))
                ),
            )
            for _ in range(_COUNT)
        )
    )
    return bytes(batch.buffer[RECORD_BATCH_OVERHEAD:])


def _walk(body: bytes, piece_bytes: int) -> RecordWalk | None:
    """None when the body is refused."""
    starts = range(0, len(body), piece_bytes)
    source = RecordInput(b"", (body[start : start + piece_bytes] for start in starts))
    try:
        return walk_records(source, _COUNT)
    except InvalidRecordError:
        return None


@pytest.mark.parametrize("piece_bytes", [1, 3, 50, 400])
def test_walk_of_large_records_ends_as_that_of_small_ones(
    monkeypatch: pytest.MonkeyPatch, piece_bytes: int
) -> None:
    rng = random.Random(piece_bytes)
    bodies = [_body(rng) for _ in range(40)]
    for body in bodies[:]:
        for _ in range(15):
            damaged = bytearray(body)
            damaged[rng.randrange(len(body))] = rng.choice(
                (0, 1, 2, 0x7F, 0x80, rng.randrange(256))
            )
            bodies.append(bytes(damaged))
        bodies.append(body[: rng.randrange(len(body))])
        bodies.append(body + b"\x00")
    expected = [_walk(body, len(body) or 1) for body in bodies]

    monkeypatch.setattr(default_record, "_LARGE_RECORD_BYTES", -1)
    found = [_walk(body, piece_bytes) for body in bodies]

    assert found == expected
    assert sum(walk is None for walk in expected) > 100


def test_large_record_is_never_held_whole() -> None:
    size = 8 * 1024 * 1024
    body = MemoryRecords.with_records(SimpleRecord(0, b"key", bytes(size)))
    held = 0

    def pieces() -> Iterator[bytes]:
        nonlocal held
        for start in range(61, body.size_in_bytes, 10_000):
            held = max(held, len(source.data))
            yield bytes(body.buffer[start : start + 10_000])

    source = RecordInput(b"", pieces())
    _, _, all_have_keys, _ = walk_records(source, 1)

    assert all_have_keys
    assert held <= 10_000


def _in_two_pieces(section: memoryview) -> RecordInput:
    middle = len(section) // 2
    return RecordInput(b"", (bytes(section[:middle]), bytes(section[middle:])))


@pytest.mark.parametrize("source_of", [SectionInput, _in_two_pieces])
def test_time_for_a_header_does_not_depend_on_what_follows(
    source_of: Callable[[memoryview], RecordInput],
) -> None:
    headers = (*(Header("", None) for _ in range(20_000)), Header("", bytes(4 * 1024 * 1024)))
    batch = MemoryRecords.with_records(SimpleRecord(0, b"key", b"value", headers))
    section = batch.buffer[RECORD_BATCH_OVERHEAD:]

    walk_ns = _time_ns(lambda: walk_records(source_of(section), 1))
    read_ns = _time_ns(lambda: list(read_record_fields(source_of(section), 1, 0, 0)))

    assert walk_ns < 10 * read_ns


def _time_ns(work: Callable[[], object]) -> int:
    start_ns = time.thread_time_ns()
    work()
    return time.thread_time_ns() - start_ns
