import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.compat.outcome import Outcome, run_ours
from tests.helpers.records import TIMESTAMP, records

_NAME = "00000000000000000005"


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    path = tmp_path / f"{_NAME}.log"
    batches = (records("a", "b", offset=5, key="k"), records("c", offset=7))
    path.write_bytes(b"".join(bytes(batch.buffer) for batch in batches))
    return path


def _dump(*arguments: str) -> Outcome:
    return run_ours("kafka-dump-log", "--files", *arguments)


def test_batches_and_records_are_shown(segment: Path) -> None:
    lines = _dump(str(segment), "--print-data-log").lines

    assert lines[:2] == [f"Dumping {segment}", "Log starting offset: 5"]
    assert [line.split(" ")[:4] for line in lines if line.startswith("baseOffset")] == [
        ["baseOffset:", "5", "lastOffset:", "6"],
        ["baseOffset:", "7", "lastOffset:", "7"],
    ]
    assert lines[4] == (
        f"| offset: 6 CreateTime: {TIMESTAMP} keySize: 1 valueSize: 1 sequence: -1 headerKeys: []"
        " key: k payload: b"
    )


def test_it_ends_quietly_when_nobody_reads_on(segment: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        ended = subprocess.run(
            [sys.executable, "-u", "-m", "kafkapy.tools.kafka_dump_log", "--files", str(segment)],
            stdout=write,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    finally:
        os.close(write)

    assert (ended.returncode, ended.stderr) == (141, "")


def test_nothing_is_written_to_what_is_looked_at(segment: Path) -> None:
    before = segment.read_bytes()
    index = segment.with_suffix(".index")
    index.write_bytes((2).to_bytes(4) + (0).to_bytes(4))
    index.chmod(0o400)
    segment.chmod(0o400)

    shown = _dump(f"{segment},{index}")

    assert shown.code == 0
    assert segment.read_bytes() == before
    assert sorted(path.suffix for path in segment.parent.iterdir()) == [".index", ".log"]


def test_the_zeros_behind_the_last_entry_of_an_index_are_left_out(segment: Path) -> None:
    index = segment.with_suffix(".index")
    index.write_bytes((1).to_bytes(4) + (0).to_bytes(4) + bytes(80))

    assert _dump(str(index)).lines == [f"Dumping {index}", "offset: 6 position: 0"]


def test_an_index_entry_that_points_beyond_the_segment_is_named(segment: Path) -> None:
    index = segment.with_suffix(".index")
    index.write_bytes((1).to_bytes(4) + (9999).to_bytes(4))

    ended = _dump(str(index))

    assert ended.code == 1
    assert "position 9999, which the index has for offset 6" in ended.stderr


def test_offsets_that_do_not_follow_one_another_are_reported(tmp_path: Path) -> None:
    segment = tmp_path / f"{_NAME}.log"
    batches = (records("a", offset=5), records("c", offset=9))
    segment.write_bytes(b"".join(bytes(batch.buffer) for batch in batches))

    assert _dump(str(segment), "--deep-iteration").stderr.splitlines() == [
        f"Non-consecutive offsets in {segment}",
        "  5 is followed by 9",
    ]


def test_a_record_without_a_key_is_not_of_an_internal_topic(segment: Path) -> None:
    for decoder in ("--offsets-decoder", "--transaction-log-decoder"):
        segment.write_bytes(bytes(records("a", offset=5).buffer))

        ended = _dump(str(segment), decoder)

        assert ended.code == 1
        assert "offset 5 has no key" in ended.stderr
