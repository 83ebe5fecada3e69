"""Loading: clean and unclean, temporary files, broken indexes."""

import logging
import os
import re
import struct
from pathlib import Path

import pytest

from kafkapy.common.compression import Compression, CompressionType
from kafkapy.common.errors import KafkaStorageError
from kafkapy.storage.append_origin import AppendOrigin
from kafkapy.storage.unified_log import UnifiedLog
from kafkapy.testing.faulty_file_system import FaultyFileSystem
from tests.helpers.crashing_fs import CrashingFileSystem
from tests.unit.storage.harness import (
    TIMESTAMP,
    StorageHarness,
    append,
    marker,
    read_all,
    records,
    values_of,
)

INDEX_SUFFIXES = (".index", ".timeindex")


def fill(log: UnifiedLog, count: int = 12, *, per_segment: int = 4) -> None:
    for i in range(count):
        if i and i % per_segment == 0:
            log.roll()
        append(log, str(i), timestamp=TIMESTAMP + i)


def contents(directory: str, suffixes: tuple[str, ...]) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes()
        for path in sorted(Path(directory).iterdir())
        if path.name.endswith(suffixes)
    }


def test_new_directory_becomes_an_empty_log(storage: StorageHarness) -> None:
    log = storage.open_log()

    assert (log.log_start_offset, log.log_end_offset, log.number_of_segments) == (0, 0, 1)
    assert sorted(os.listdir(log.dir)) == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
    ]


def test_clean_log_comes_back_as_it_was(storage: StorageHarness) -> None:
    log = storage.open_log()
    fill(log)
    log.flush()
    log.close()

    log = storage.open_log(recovery_point=12)

    assert [s.base_offset for s in log.segments] == [0, 4, 8]
    assert (log.log_end_offset, log.recovery_point) == (12, 12)
    assert values_of(log) == [str(i) for i in range(12)]
    assert append(log, "next") == 12


def test_clean_start_does_not_read_the_records(storage: StorageHarness) -> None:
    log = storage.open_log()
    fill(log)
    log.close()
    path = f"{log.dir}/{0:020d}.log"
    data = bytearray(Path(path).read_bytes())
    data[65] ^= 0xFF
    Path(path).write_bytes(data)

    assert storage.open_log(recovery_point=12).log_end_offset == 12


@pytest.mark.parametrize("timestamps", [(0, 0, 0), (0, 0, 5), (-1, -1, 0)])
def test_indexes_of_records_from_the_beginning_of_time_are_not_built_anew(
    storage: StorageHarness, timestamps: tuple[int, ...], caplog: pytest.LogCaptureFixture
) -> None:
    """A timestamp of 0 is one: not every entry with it was lost on its way to disk."""
    config = storage.config(index_interval_bytes=0)
    log = storage.open_log(config)
    for timestamp in timestamps:
        append(log, "x", timestamp=timestamp)
    log.roll()
    append(log, "x", timestamp=0)
    log.close()

    storage.open_log(config, recovery_point=log.log_end_offset).close()

    assert "anew" not in caplog.text


def test_crash_recovers_from_the_recovery_point_only(storage: StorageHarness) -> None:
    log = storage.open_log()
    fill(log)
    path = f"{log.dir}/{0:020d}.log"
    data = bytearray(Path(path).read_bytes())
    data[65] ^= 0xFF
    Path(path).write_bytes(data)

    assert storage.open_log(clean=False, recovery_point=8).log_end_offset == 12
    assert storage.open_log(clean=False, recovery_point=0).log_end_offset == 0


@pytest.mark.parametrize(("recovery_point", "read"), [(0, [0, 4, 8]), (6, [4, 8]), (8, [8])])
def test_crash_reads_what_was_not_flushed_once(
    storage: StorageHarness,
    caplog: pytest.LogCaptureFixture,
    recovery_point: int,
    read: list[int],
) -> None:
    log = storage.open_log()
    fill(log)
    for base_offset in read:
        Path(f"{log.dir}/{base_offset:020d}.index").unlink()
    caplog.set_level(logging.INFO)

    storage.open_log(clean=False, recovery_point=recovery_point)

    # One line for each reading, whether for the records or for the indexes.
    lines = [r.getMessage() for r in caplog.records if "segment" in r.getMessage()]
    assert [re.findall(r"recovering segment (\d+)", line) for line in lines] == [
        [str(base_offset)] for base_offset in read
    ]


def test_recovery_point_moves_only_with_a_flush(storage: StorageHarness) -> None:
    log = storage.open_log()
    fill(log)

    assert storage.open_log(clean=False, recovery_point=5).recovery_point == 5


def test_segments_after_a_corrupt_one_are_deleted(storage: StorageHarness) -> None:
    log = storage.open_log()
    fill(log)
    path = f"{log.dir}/{4:020d}.log"
    data = Path(path).read_bytes()
    Path(path).write_bytes(data[:-1])

    log = storage.open_log(clean=False)

    assert values_of(log) == [str(i) for i in range(7)]
    assert [s.base_offset for s in log.segments] == [0, 4]
    assert append(log, "next") == 7
    storage.time.sleep(60_000)
    assert not [name for name in os.listdir(log.dir) if name.startswith(f"{8:020d}.log")]


@pytest.mark.parametrize("renames", range(6))
def test_crash_while_segments_are_cut_leaves_no_hole(tmp_path: Path, renames: int) -> None:
    log = StorageHarness(tmp_path).open_log()
    fill(log, 16)
    path = Path(f"{log.dir}/{4:020d}.log")
    path.write_bytes(path.read_bytes()[:-1])
    log.close_handlers()
    dying = FaultyFileSystem(sync=False)
    dying.fail("rename", nth=renames + 1, sticky=True)
    with pytest.raises(OSError):
        StorageHarness(tmp_path, dying).open_log(clean=False)

    log = StorageHarness(tmp_path).open_log(clean=False)

    assert values_of(log) == [str(i) for i in range(7)]
    assert append(log, "next") == 7


@pytest.mark.parametrize("renames", range(3))
def test_crash_while_a_log_is_truncated_leaves_no_hole(tmp_path: Path, renames: int) -> None:
    dying = FaultyFileSystem(sync=False)
    log = StorageHarness(tmp_path, dying).open_log()
    fill(log, 16)
    dying.fail("rename", path_contains=".log", nth=renames + 1, sticky=True)
    with pytest.raises(KafkaStorageError):
        log.truncate_to(2)

    log = StorageHarness(tmp_path).open_log(clean=False)

    left = 16 - 4 * renames
    assert values_of(log) == [str(i) for i in range(left)]
    assert append(log, "next") == left


@pytest.mark.parametrize("recovery_point", [0, 8])
def test_flushed_records_of_preallocated_files_outlive_a_power_loss(
    tmp_path: Path, recovery_point: int
) -> None:
    disk = CrashingFileSystem()
    storage = StorageHarness(tmp_path, disk)
    config = storage.config(preallocate=True, segment_bytes=1000, flush_messages=1)
    log = storage.open_log(config)
    fill(log, 8)

    disk.crash()
    log = storage.open_log(config, clean=False, recovery_point=recovery_point)

    assert values_of(log) == [str(i) for i in range(8)]
    assert [os.path.getsize(s.log.path) for s in log.segments] == [s.size for s in log.segments]


def test_preallocated_file_stays_trimmed_after_a_clean_shutdown(tmp_path: Path) -> None:
    disk = CrashingFileSystem()
    storage = StorageHarness(tmp_path, disk)
    config = storage.config(preallocate=True, segment_bytes=1000)
    log = storage.open_log(config)
    fill(log, 2)
    log.close()

    disk.crash()
    log = storage.open_log(config, recovery_point=2)

    assert values_of(log) == ["0", "1"]


@pytest.mark.parametrize("codec", list(CompressionType))
@pytest.mark.parametrize("damage", ["deleted", "zeroed", "too long", "cut", "foreign", "garbage"])
@pytest.mark.parametrize("clean", [True, False])
def test_broken_indexes_are_built_anew(
    storage: StorageHarness, codec: CompressionType, damage: str, clean: bool
) -> None:
    config = storage.config(index_interval_bytes=150)
    log = storage.open_log(config)
    for i in range(40):
        append(log, f"{i}" * 10, timestamp=TIMESTAMP + i, compression=Compression(codec))
        if i == 19:
            log.roll()
    log.close()
    good = contents(log.dir, INDEX_SUFFIXES)
    for name, content in good.items():
        path = Path(log.dir) / name
        match damage:
            case "deleted":
                path.unlink()
            case "zeroed":
                path.write_bytes(bytes(len(content)))
            case "too long":
                path.write_bytes(content + bytes(240))
            case "cut":
                path.write_bytes(content[:-3])
            case "foreign":
                path.write_bytes(bytes.fromhex("7fffffff") * (len(content) // 4))
            case "garbage":
                path.write_bytes(os.urandom(len(content) - 1))

    log = storage.open_log(config, clean=clean, recovery_point=40 if clean else 0)

    assert values_of(log) == [f"{i}" * 10 for i in range(40)]
    found = log.fetch_offset_by_timestamp(TIMESTAMP + 30)
    assert found is not None and found.offset == 30
    log.close()
    assert contents(log.dir, INDEX_SUFFIXES) == good


def test_swapped_indexes_of_two_segments_are_noticed(storage: StorageHarness) -> None:
    config = storage.config(index_interval_bytes=0)
    log = storage.open_log(config)
    for i in range(30):
        append(log, "x" * (i * 7 % 50), timestamp=TIMESTAMP + i)
        if i in (9, 19):
            log.roll()
    log.close()
    good = contents(log.dir, (".index",))
    first, second = (Path(log.dir) / f"{base:020d}.index" for base in (0, 10))
    a, b = first.read_bytes(), second.read_bytes()
    first.write_bytes(b)
    second.write_bytes(a)

    storage.open_log(config, recovery_point=30).close()

    assert contents(log.dir, (".index",)) == good


@pytest.mark.parametrize("bit", range(31))
def test_flipped_bit_in_the_last_offset_of_an_index_is_noticed(
    storage: StorageHarness, bit: int
) -> None:
    config = storage.config(index_interval_bytes=0)
    log = storage.open_log(config)
    fill(log, 10, per_segment=10)
    log.close()
    path = Path(log.active_segment.offset_index.path)
    content = path.read_bytes()
    relative, position = struct.unpack(">ii", content[-8:])
    path.write_bytes(content[:-8] + struct.pack(">ii", relative ^ 1 << bit, position))

    log = storage.open_log(config, recovery_point=10)

    assert log.log_end_offset == 10
    assert values_of(log) == [str(i) for i in range(10)]
    assert path.read_bytes()[: len(content)] == content


def test_index_without_a_segment_is_deleted(storage: StorageHarness) -> None:
    log = storage.open_log()
    log.close()
    orphan = Path(log.dir) / f"{77:020d}.index"
    orphan.write_bytes(b"")

    storage.open_log()

    assert not orphan.exists()


def test_deleted_and_cleaned_files_are_removed(storage: StorageHarness) -> None:
    log = storage.open_log()
    fill(log, 4)
    log.close()
    for name in (f"{0:020d}.log.deleted", f"{9:020d}.log.cleaned", f"{9:020d}.log.swap"):
        (Path(log.dir) / name).write_bytes(b"x")

    log = storage.open_log()

    assert log.log_end_offset == 4
    assert not [n for n in os.listdir(log.dir) if n.endswith((".deleted", ".cleaned", ".swap"))]


def test_swap_segment_replaces_what_it_covers(storage: StorageHarness) -> None:
    log = storage.open_log()
    fill(log, 8)
    log.close()
    compacted = b"".join(
        bytes(records(f"compacted-{offset}", offset=offset, leader_epoch=0).buffer)
        for offset in (1, 3)
    )
    (Path(log.dir) / f"{0:020d}.log.swap").write_bytes(compacted)

    log = storage.open_log(storage.config(cleanup_policy=("compact",)), recovery_point=8)

    assert values_of(log) == ["compacted-1", "compacted-3", "4", "5", "6", "7"]
    assert f"{0:020d}.log.swap" not in os.listdir(log.dir)


def test_log_start_beyond_the_end_starts_anew(storage: StorageHarness) -> None:
    log = storage.open_log()
    fill(log, 4)
    log.close()

    log = storage.open_log(log_start_offset=10)

    assert (log.log_start_offset, log.log_end_offset) == (10, 10)
    assert append(log, "x") == 10


def test_log_start_from_the_checkpoint_counts(storage: StorageHarness) -> None:
    log = storage.open_log()
    fill(log, 8)
    log.close()

    log = storage.open_log(log_start_offset=5)

    assert values_of(log) == ["5", "6", "7"]


def test_lost_epochs_come_back_from_the_records(storage: StorageHarness) -> None:
    log = storage.open_log()
    for epoch in (1, 1, 4):
        append(log, "x", epoch=epoch)
    os.unlink(f"{log.dir}/leader-epoch-checkpoint")

    log = storage.open_log(clean=False)

    assert log.leader_epoch_cache.epoch_entries == ((1, 0), (4, 2))


def test_epochs_beyond_the_recovered_end_go(storage: StorageHarness) -> None:
    log = storage.open_log()
    append(log, "x", epoch=1)
    size = log.size
    append(log, "y", epoch=2)
    os.truncate(f"{log.dir}/{0:020d}.log", size + 10)

    log = storage.open_log(clean=False)

    assert log.leader_epoch_cache.epoch_entries == ((1, 0),)


def test_corrupt_snapshot_is_replaced_by_reading_the_log(storage: StorageHarness) -> None:
    log = storage.open_log()
    append(log, "a", producer_id=5, producer_epoch=0, sequence=0)
    log.roll()
    append(log, "b", producer_id=5, producer_epoch=0, sequence=1)
    log.close()
    for path in Path(log.dir).glob("*.snapshot"):
        path.write_bytes(b"\0\x01garbage")

    log = storage.open_log(recovery_point=2)

    assert append(log, "b", producer_id=5, producer_epoch=0, sequence=1) == 1
    assert append(log, "c", producer_id=5, producer_epoch=0, sequence=2) == 2


def test_stray_snapshots_are_removed(storage: StorageHarness) -> None:
    log = storage.open_log()
    fill(log, 8)
    log.close()
    stray = Path(log.dir) / f"{3:020d}.snapshot"
    stray.write_bytes(b"")

    storage.open_log(recovery_point=8)

    assert sorted(p.name for p in Path(log.dir).glob("*.snapshot")) == [
        f"{4:020d}.snapshot",
        f"{8:020d}.snapshot",
    ]


@pytest.mark.parametrize("log_start_offset", [0, 11])
def test_open_transaction_is_known_after_indexes_were_built_anew(
    storage: StorageHarness, log_start_offset: int
) -> None:
    log = storage.open_log()
    append(log, "compacted away up to 9")
    log.roll(10)
    log.append_as_follower(records("a", offset=10))
    uncommitted = records(
        "b", offset=11, producer_id=2, producer_epoch=0, sequence=0, transactional=True
    )
    log.append_as_follower(uncommitted)
    log.close()
    os.unlink(log.segments[0].time_index.path)

    log = storage.open_log(recovery_point=12, log_start_offset=log_start_offset)
    log.update_high_watermark(12)

    assert log.last_stable_offset == 11
    assert 2 in {producer.producer_id for producer in log.active_producers()}


@pytest.mark.parametrize("clean", [True, False])
def test_rebuilding_an_index_keeps_records_behind_a_gap(
    storage: StorageHarness, clean: bool
) -> None:
    # The topic was compacted once.
    log = storage.open_log(storage.config(cleanup_policy=("delete",)))
    log.append_as_follower(records("a", offset=0))
    log.append_as_follower(records("b", offset=5))
    log.roll()
    log.append_as_follower(records("c", offset=6))
    log.close()
    os.unlink(log.segments[0].offset_index.path)

    log = storage.open_log(log.config, clean=clean, recovery_point=7)

    assert [record.offset for record in read_all(log)] == [0, 5, 6]


@pytest.mark.parametrize("clean", [True, False])
def test_log_outgrows_an_index_that_was_made_smaller(storage: StorageHarness, clean: bool) -> None:
    log = storage.open_log(storage.config(index_interval_bytes=0))
    fill(log, 50, per_segment=50)
    log.flush()
    log.close()

    config = storage.config(index_interval_bytes=0, segment_index_bytes=120)
    log = storage.open_log(config, clean=clean, recovery_point=50)

    assert values_of(log) == [str(i) for i in range(50)]
    found = log.fetch_offset_by_timestamp(TIMESTAMP + 30)
    assert found is not None and found.offset == 30
    assert append(log, "next") == 50
    assert [s.base_offset for s in log.segments] == [0, 50]
    log.segments[0].sanity_check()


def test_entry_of_a_lost_abort_marker_does_not_come_back(tmp_path: Path) -> None:
    disk = CrashingFileSystem()
    storage = StorageHarness(tmp_path, disk)
    config = storage.config(index_interval_bytes=0)
    log = storage.open_log(config)
    for i in range(2):
        log.append_as_follower(
            records("a", offset=i, producer_id=1, producer_epoch=0, sequence=i, transactional=True)
        )
    log.flush()
    log.append_as_leader(marker(1, 0, commit=False), 0, origin=AppendOrigin.COORDINATOR)
    # The kernel writes files when it likes: the index has reached the disk, the marker has not.
    log.active_segment.transaction_index.flush()
    disk.crash()
    log = storage.open_log(config, clean=False)
    assert log.log_end_offset == 2

    log.append_as_leader(marker(1, 0, commit=True), 0, origin=AppendOrigin.COORDINATOR)
    log.roll()
    disk.crash()
    log = storage.open_log(config, clean=False, recovery_point=log.recovery_point)

    assert log.log_end_offset == 3
    assert log.collect_aborted_transactions(0, 3) == []
