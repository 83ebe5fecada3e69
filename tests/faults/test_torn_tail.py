"""A crash in the middle of a write: the log goes back to the last whole batch, never further."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from kafkapy.common.compression import Compression, CompressionType
from kafkapy.storage.unified_log import UnifiedLog
from tests.unit.storage.harness import TIMESTAMP, StorageHarness, append, read_all

INDEX_SUFFIXES = (".index", ".timeindex", ".txnindex")


def write_log(storage: StorageHarness, codec: CompressionType, batches: int) -> UnifiedLog:
    log = storage.open_log(storage.config(index_interval_bytes=100))
    for i in range(batches):
        append(
            log,
            f"first of {i}",
            f"second of {i}",
            timestamp=TIMESTAMP + i,
            compression=Compression(codec),
            producer_id=9,
            producer_epoch=0,
            sequence=i * 2,
        )
    return log


def contents(log: UnifiedLog) -> dict[int, bytes | None]:
    return {record.offset: record.value for record in read_all(log)}


def recover(storage: StorageHarness) -> UnifiedLog:
    return storage.open_log(storage.config(index_interval_bytes=100), clean=False)


class Disk:
    """A partition directory that can be put back as it was."""

    def __init__(self, log: UnifiedLog) -> None:
        self._dir = Path(log.dir)
        self._files = {path.name: path.read_bytes() for path in self._dir.iterdir()}
        self.segment = self._dir / f"{0:020d}.log"
        self.data = self._files[self.segment.name]

    def restore(self) -> None:
        shutil.rmtree(self._dir)
        self._dir.mkdir()
        for name, content in self._files.items():
            (self._dir / name).write_bytes(content)

    def indexes(self) -> dict[str, bytes]:
        return {
            path.name: path.read_bytes()
            for path in self._dir.iterdir()
            if path.name.endswith(INDEX_SUFFIXES)
        }


@pytest.mark.parametrize("codec", list(CompressionType))
def test_last_batch_cut_at_every_byte_recovers_to_the_one_before(
    tmp_path: Path, codec: CompressionType
) -> None:
    storage = StorageHarness(tmp_path)
    log = write_log(storage, codec, 4)
    expected = {offset: value for offset, value in contents(log).items() if offset < 6}
    starts = [batch.position for batch in log.active_segment.log.batches()]
    disk = Disk(log)

    for size in range(starts[-1], len(disk.data)):
        disk.restore()
        os.truncate(disk.segment, size)

        log = recover(storage)

        assert log.log_end_offset == 6
        assert contents(log) == expected
        assert disk.segment.stat().st_size == starts[-1]
        # The producer sends the lost batch again, and the one before it.
        assert append(log, "x", "y", producer_id=9, producer_epoch=0, sequence=6) == 6
        assert append(log, "a", "b", producer_id=9, producer_epoch=0, sequence=4) == 4


@pytest.mark.parametrize("garbage", [b"\0" * 100, b"\xff" * 100, b"\0" * 5000])
def test_garbage_after_the_last_batch_is_cut_off(tmp_path: Path, garbage: bytes) -> None:
    storage = StorageHarness(tmp_path)
    log = write_log(storage, CompressionType.NONE, 4)
    expected = contents(log)
    with open(f"{log.dir}/{0:020d}.log", "ab") as file:
        file.write(garbage)

    log = recover(storage)

    assert contents(log) == expected
    assert append(log, "next", producer_id=9, producer_epoch=0, sequence=8) == 8


@pytest.mark.parametrize("mask", [0x01, 0xFF])
def test_flipped_byte_never_yields_a_wrong_record(tmp_path: Path, mask: int) -> None:
    storage = StorageHarness(tmp_path)
    log = write_log(storage, CompressionType.NONE, 4)
    expected = contents(log)
    starts = [batch.position for batch in log.active_segment.log.batches()]
    disk = Disk(log)

    for position in range(len(disk.data)):
        disk.restore()
        data = bytearray(disk.data)
        data[position] ^= mask
        disk.segment.write_bytes(data)

        log = recover(storage)

        found = contents(log)
        hit = max(i for i, start in enumerate(starts) if start <= position)
        in_leader_epoch = 12 <= position - starts[hit] < 16
        assert found.items() <= expected.items()
        # The leader epoch is outside the checksum, as in Kafka; everything else is noticed.
        assert in_leader_epoch or len(found) == hit * 2
        assert log.log_end_offset == len(found)


def test_indexes_after_recovery_equal_those_of_a_clean_shutdown(tmp_path: Path) -> None:
    clean, crashed = StorageHarness(tmp_path / "clean"), StorageHarness(tmp_path / "crashed")
    for storage in (clean, crashed):
        write_log(storage, CompressionType.NONE, 30)

    clean.open_log(clean.config(index_interval_bytes=100), clean=False).close()
    recovered = recover(crashed)
    recovered.close()
    write_log(reference := StorageHarness(tmp_path / "reference"), CompressionType.NONE, 30).close()

    def indexes(storage: StorageHarness) -> dict[str, bytes]:
        return {
            path.name: path.read_bytes()
            for path in Path(storage.partition_dir()).iterdir()
            if path.name.endswith(INDEX_SUFFIXES)
        }

    assert indexes(clean) == indexes(crashed) == indexes(reference)


def test_recovery_can_be_interrupted_by_another_crash(tmp_path: Path) -> None:
    storage = StorageHarness(tmp_path)
    log = write_log(storage, CompressionType.GZIP, 6)
    expected = contents(log)

    for _ in range(3):
        log = recover(storage)

    assert contents(log) == expected
