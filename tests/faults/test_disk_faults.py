"""Disks that fail: errors are told, nothing half-written is served, other directories go on."""

from __future__ import annotations

import errno
import random
from pathlib import Path

import pytest

from kafkapy.common.errors import KafkaStorageError
from kafkapy.common.types import TopicPartition
from kafkapy.storage.fetch_isolation import FetchIsolation
from kafkapy.storage.log_manager import LogManager
from kafkapy.storage.unified_log import UnifiedLog
from tests.helpers.crashing_fs import CrashingFileSystem
from tests.helpers.mock_time import MockTime
from tests.unit.storage.harness import StorageHarness, append, read_all, values_of

FIRST = TopicPartition("topic", 0)
SECOND = TopicPartition("topic", 1)


@pytest.fixture
def file_system() -> CrashingFileSystem:
    return CrashingFileSystem()


@pytest.fixture
def faulty(tmp_path: Path, time: MockTime, file_system: CrashingFileSystem) -> StorageHarness:
    return StorageHarness(tmp_path, file_system, time)


def after_power_loss(
    storage: StorageHarness, file_system: CrashingFileSystem, rng: random.Random | None = None
) -> StorageHarness:
    file_system.crash(rng)
    return StorageHarness(Path(storage.log_dir), file_system, storage.time)


def start_two_dirs(storage: StorageHarness) -> tuple[LogManager, UnifiedLog, UnifiedLog]:
    manager = storage.log_manager(f"{storage.log_dir}/a", f"{storage.log_dir}/b")
    manager.startup()
    first = manager.get_or_create_log(FIRST, is_new=True)
    return manager, first, manager.get_or_create_log(SECOND, is_new=True)


# --- failing operations


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("written", [0, 1, 40])
@pytest.mark.parametrize("nth", [1, 2, 5])
def test_failed_write_is_a_storage_error_and_is_never_served(
    faulty: StorageHarness, file_system: CrashingFileSystem, nth: int, written: int, error: int
) -> None:
    log = faulty.open_log()
    file_system.fail(
        "write", nth=nth, error=error, path_contains=".log", write_before_failing=written
    )
    acked = []
    with pytest.raises(KafkaStorageError):
        for i in range(nth):
            append(log, f"value {i}")
            acked.append(f"value {i}")

    assert len(acked) == nth - 1
    assert log.log_end_offset == nth - 1
    assert faulty.failures.take_next_offline_log_dir(0) == faulty.log_dir
    with pytest.raises(KafkaStorageError):
        append(log, "after")
    with pytest.raises(KafkaStorageError):
        log.read(0, 1000, FetchIsolation.LOG_END, min_one_message=True)

    file_system.heal()
    restarted = StorageHarness(Path(faulty.log_dir), file_system, faulty.time)
    log = restarted.open_log(clean=False)
    assert values_of(log) == acked


@pytest.mark.parametrize("nth", range(1, 21))
def test_failed_fsync_is_final(
    faulty: StorageHarness, file_system: CrashingFileSystem, nth: int
) -> None:
    log = faulty.open_log(faulty.config(flush_messages=1, segment_bytes=300))
    file_system.fail("fsync", nth=nth)
    acked = 0
    with pytest.raises(KafkaStorageError):
        while acked < 100:
            append(log, f"value {acked}")
            acked += 1

    assert faulty.failures.has_offline_log_dir(faulty.log_dir)
    with pytest.raises(KafkaStorageError):
        append(log, "after")
    # What was acknowledged was on disk before the answer went out.
    log = after_power_loss(faulty, file_system).open_log(
        faulty.config(flush_messages=1, segment_bytes=300), clean=False
    )
    assert values_of(log)[:acked] == [f"value {i}" for i in range(acked)]


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_full_disk_while_an_index_grows_is_a_storage_error(
    faulty: StorageHarness, file_system: CrashingFileSystem, suffix: str
) -> None:
    log = faulty.open_log(faulty.config(index_interval_bytes=0))
    file_system.fail("write", error=errno.ENOSPC, path_contains=suffix)

    with pytest.raises(KafkaStorageError):
        for i in range(5):
            append(log, str(i), timestamp=faulty.time.milliseconds() + i)

    end = log.log_end_offset
    log = after_power_loss(faulty, file_system, random.Random(1)).open_log(clean=False)
    assert values_of(log) == [str(i) for i in range(log.log_end_offset)]
    assert log.log_end_offset <= end + 1


@pytest.mark.parametrize("operation", ["open", "truncate", "fsync_dir", "rename"])
def test_failure_while_rolling_takes_the_directory_offline(
    faulty: StorageHarness, file_system: CrashingFileSystem, operation: str
) -> None:
    log = faulty.open_log()
    append(log, "a")
    fault = file_system.fail(operation, sticky=True)

    try:
        log.roll()
        log.flush()
    except KafkaStorageError:
        assert faulty.failures.has_offline_log_dir(faulty.log_dir)
    else:
        assert fault.seen == 0


@pytest.mark.parametrize("limit", [1, 7, 64])
def test_short_writes_are_completed(
    faulty: StorageHarness, file_system: CrashingFileSystem, limit: int
) -> None:
    file_system.max_bytes_per_write = limit
    log = faulty.open_log(faulty.config(index_interval_bytes=0))
    for i in range(5):
        append(log, f"value {i}")
    log.close()

    assert values_of(faulty.open_log(recovery_point=5)) == [f"value {i}" for i in range(5)]


def test_failed_directory_leaves_the_other_one_working(
    faulty: StorageHarness, file_system: CrashingFileSystem
) -> None:
    manager, first, second = start_two_dirs(faulty)
    file_system.fail("write", error=errno.ENOSPC, path_contains=first.dir, sticky=True)

    with pytest.raises(KafkaStorageError):
        append(first, "lost")
    append(second, "kept")

    assert faulty.failures.take_next_offline_log_dir(0) == first.parent_dir
    manager.handle_log_dir_failure(first.parent_dir)
    assert manager.live_log_dirs == (second.parent_dir,)
    assert values_of(second) == ["kept"]
    # Background tasks and the shutdown do not touch the failed one.
    manager.checkpoint_log_recovery_offsets()
    manager.cleanup_logs()
    manager.shutdown()
    assert not Path(first.parent_dir, ".kafka_cleanshutdown").exists()
    assert Path(second.parent_dir, ".kafka_cleanshutdown").exists()


def test_directory_that_fails_while_loading_leaves_the_other_one_working(
    faulty: StorageHarness, file_system: CrashingFileSystem
) -> None:
    manager, first, second = start_two_dirs(faulty)
    append(first, "a")
    append(second, "b")
    manager.shutdown()
    file_system.fail("open", path_contains=first.dir, sticky=True)

    restarted = StorageHarness(Path(faulty.log_dir), file_system, faulty.time)
    manager = restarted.log_manager(first.parent_dir, second.parent_dir)
    manager.startup()

    assert restarted.failures.take_next_offline_log_dir(0) == first.parent_dir
    manager.handle_log_dir_failure(first.parent_dir)
    (log,) = manager.all_logs()
    assert values_of(log) == ["b"]
    manager.shutdown()


def test_directory_that_fails_while_a_log_is_made_is_passed_over(
    faulty: StorageHarness, file_system: CrashingFileSystem
) -> None:
    a, b = f"{faulty.log_dir}/a", f"{faulty.log_dir}/b"
    manager = faulty.log_manager(a, b)
    manager.startup()
    file_system.fail("mkdir", path_contains=a, sticky=True)

    log = manager.get_or_create_log(FIRST, is_new=True)

    assert log.parent_dir == b
    assert faulty.failures.has_offline_log_dir(a)
    manager.handle_log_dir_failure(a)
    manager.shutdown()


def test_shutdown_that_cannot_flush_leaves_no_marker(
    faulty: StorageHarness, file_system: CrashingFileSystem
) -> None:
    manager, first, second = start_two_dirs(faulty)
    append(first, "a")
    append(second, "b")
    file_system.fail("fsync", path_contains=first.dir, sticky=True)

    manager.shutdown()

    assert not Path(first.parent_dir, ".kafka_cleanshutdown").exists()
    assert Path(second.parent_dir, ".kafka_cleanshutdown").exists()


# --- power loss


def test_power_loss_keeps_what_was_flushed(
    faulty: StorageHarness, file_system: CrashingFileSystem
) -> None:
    log = faulty.open_log()
    for i in range(3):
        append(log, f"value {i}")
    log.flush()
    append(log, "not flushed")

    log = after_power_loss(faulty, file_system).open_log(clean=False)

    assert values_of(log) == ["value 0", "value 1", "value 2"]


@pytest.mark.parametrize("seed", range(15))
def test_power_loss_with_flush_messages_one_loses_nothing(
    faulty: StorageHarness, file_system: CrashingFileSystem, seed: int
) -> None:
    rng = random.Random(seed)
    config = faulty.config(flush_messages=1, segment_bytes=400, index_interval_bytes=100)
    storage, written = faulty, 0
    for _ in range(4):
        log = storage.open_log(config, clean=False)
        assert values_of(log) == [f"value {i}" for i in range(written)]
        for _ in range(rng.randrange(1, 12)):
            append(log, f"value {written}")
            written += 1
        storage = after_power_loss(storage, file_system, rng)


@pytest.mark.parametrize("seed", range(15))
def test_power_loss_leaves_no_gap_and_no_corrupt_batch(
    faulty: StorageHarness, file_system: CrashingFileSystem, seed: int
) -> None:
    rng = random.Random(seed)
    config = faulty.config(segment_bytes=400, index_interval_bytes=100)
    log = faulty.open_log(config)
    for i in range(rng.randrange(1, 40)):
        append(log, f"value {i}")
        if rng.random() < 0.1:
            log.flush()
    flushed = log.recovery_point

    log = after_power_loss(faulty, file_system, rng).open_log(
        config, clean=False, recovery_point=rng.choice([0, flushed])
    )

    found = read_all(log)
    assert [r.offset for r in found] == list(range(log.log_end_offset))
    assert [r.value for r in found] == [f"value {i}".encode() for i in range(len(found))]
    assert log.log_end_offset >= flushed
    assert append(log, "next") == len(found)


def test_marker_is_gone_before_the_first_append(
    faulty: StorageHarness, file_system: CrashingFileSystem
) -> None:
    manager = faulty.log_manager()
    manager.startup()
    append(manager.get_or_create_log(FIRST, is_new=True), "a")
    manager.shutdown()

    restarted = StorageHarness(Path(faulty.log_dir), file_system, faulty.time)
    manager = restarted.log_manager()
    manager.startup()
    log = manager.get_log(FIRST)
    assert log is not None
    append(log, "lost with the power")
    file_system.crash()

    assert not Path(faulty.log_dir, ".kafka_cleanshutdown").exists()
    for directory in manager._live_dirs.values():
        directory.close()
    last = StorageHarness(Path(faulty.log_dir), file_system, faulty.time)
    manager = last.log_manager()
    manager.startup()
    log = manager.get_log(FIRST)
    assert log is not None
    assert values_of(log) == ["a"]
    manager.shutdown()


def test_clean_shutdown_survives_a_power_loss(
    faulty: StorageHarness, file_system: CrashingFileSystem
) -> None:
    manager = faulty.log_manager()
    manager.startup()
    log = manager.get_or_create_log(FIRST, is_new=True)
    for i in range(5):
        append(log, f"value {i}", producer_id=4, producer_epoch=0, sequence=i)
    manager.shutdown()

    storage = after_power_loss(faulty, file_system)
    manager = storage.log_manager()
    manager.startup()

    found = manager.get_log(FIRST)
    assert found is not None
    assert values_of(found) == [f"value {i}" for i in range(5)]
    assert append(found, "value 4", producer_id=4, producer_epoch=0, sequence=4) == 4
    manager.shutdown()
