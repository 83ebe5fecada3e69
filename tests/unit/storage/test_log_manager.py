"""LogManager: directories, creation, deletion, tasks, start and stop."""

import os
from pathlib import Path

import pytest

from kafkapy.common.errors import KafkaError, KafkaStorageError, LogDirNotFoundError
from kafkapy.common.types import TopicPartition, random_topic_id
from kafkapy.storage.storage_errors import LogDirLockedError
from tests.helpers.mock_scheduler import MockScheduler
from tests.helpers.mock_time import MockTime
from tests.unit.storage.harness import TIMESTAMP, StorageHarness, append, values_of

TP = TopicPartition("topic", 0)
OTHER = TopicPartition("other", 3)


def restart(storage: StorageHarness, *log_dirs: str) -> StorageHarness:
    """The same disk, another process."""
    again = StorageHarness(Path(storage.log_dir), storage.file_system, storage.time)
    again.manager = again.log_manager(*log_dirs)  # type: ignore[attr-defined]
    return again


def test_log_is_made_once(storage: StorageHarness) -> None:
    manager = storage.log_manager()
    manager.startup()
    topic_id = random_topic_id()

    log = manager.get_or_create_log(TP, is_new=True, topic_id=topic_id)

    assert manager.get_or_create_log(TP) is log is manager.get_log(TP)
    assert manager.get_log(OTHER) is None
    assert log.topic_id == topic_id
    assert log.dir == f"{storage.log_dir}/topic-0"
    assert manager.all_logs() == (log,)
    manager.shutdown()


def test_new_logs_go_where_the_fewest_are(storage: StorageHarness) -> None:
    dirs = [f"{storage.log_dir}/{name}" for name in "abc"]
    manager = storage.log_manager(*dirs)
    manager.startup()

    logs = [manager.get_or_create_log(TopicPartition("t", i), is_new=True) for i in range(7)]

    counts = [sum(log.parent_dir == d for log in logs) for d in dirs]
    assert sorted(counts) == [2, 2, 3]
    manager.shutdown()


def test_logs_come_back_after_a_clean_shutdown(storage: StorageHarness) -> None:
    dirs = [f"{storage.log_dir}/{name}" for name in "ab"]
    manager = storage.log_manager(*dirs)
    manager.startup()
    for partition in (TP, OTHER):
        append(manager.get_or_create_log(partition, is_new=True), str(partition))
    manager.shutdown(broker_epoch=9)
    markers = [Path(d, ".kafka_cleanshutdown").read_text() for d in dirs]

    manager = restart(storage, *dirs).manager  # type: ignore[attr-defined]
    manager.startup()

    assert markers == ['{"version":0,"brokerEpoch":9}'] * 2
    assert not any(Path(d, ".kafka_cleanshutdown").exists() for d in dirs)
    assert {str(log.topic_partition): values_of(log) for log in manager.all_logs()} == {
        "topic-0": ["topic-0"],
        "other-3": ["other-3"],
    }
    manager.shutdown()


def test_shutdown_leaves_checkpoints_and_trimmed_files(storage: StorageHarness) -> None:
    manager = storage.log_manager()
    manager.startup()
    log = manager.get_or_create_log(TP, is_new=True)
    append(log, "a", "b", "c")
    log.update_high_watermark(3)
    log.maybe_increment_log_start_offset(2, "a test")

    manager.shutdown()
    manager.shutdown()

    root = Path(storage.log_dir)
    assert (root / "recovery-point-offset-checkpoint").read_text() == "0\n1\ntopic 0 3\n"
    assert (root / "log-start-offset-checkpoint").read_text() == "0\n1\ntopic 0 2\n"
    assert (root / "topic-0" / f"{0:020d}.index").stat().st_size == 0
    assert (root / "topic-0" / f"{0:020d}.timeindex").stat().st_size == 12
    assert (root / "topic-0" / f"{3:020d}.snapshot").exists()


def test_log_start_offset_survives_a_restart(storage: StorageHarness) -> None:
    manager = storage.log_manager()
    manager.startup()
    log = manager.get_or_create_log(TP, is_new=True)
    append(log, "a")
    append(log, "b")
    log.update_high_watermark(2)
    log.maybe_increment_log_start_offset(1, "a test")
    manager.shutdown()

    manager = restart(storage).manager  # type: ignore[attr-defined]
    manager.startup()

    assert manager.get_log(TP).log_start_offset == 1
    manager.shutdown()


def test_unclean_start_recovers(storage: StorageHarness) -> None:
    manager = storage.log_manager()
    manager.startup()
    log = manager.get_or_create_log(TP, is_new=True)
    append(log, "a")
    append(log, "b")
    os.truncate(f"{log.dir}/{0:020d}.log", log.size - 1)
    for directory in manager._live_dirs.values():
        directory.close()  # as the death of the process would

    manager = restart(storage).manager  # type: ignore[attr-defined]
    manager.startup()

    assert values_of(manager.get_log(TP)) == ["a"]
    manager.shutdown()


def test_manager_that_was_never_started_leaves_no_marker(storage: StorageHarness) -> None:
    manager = storage.log_manager()

    manager.shutdown()

    assert not Path(storage.log_dir, ".kafka_cleanshutdown").exists()


def test_directory_of_another_broker_is_refused(storage: StorageHarness) -> None:
    manager = storage.log_manager()

    with pytest.raises(LogDirLockedError, match=f"{storage.log_dir}.*log.dirs"):
        storage.log_manager()
    manager.shutdown()
    storage.log_manager().shutdown()


def test_same_directory_twice_is_refused(storage: StorageHarness) -> None:
    with pytest.raises(KafkaError, match="twice"):
        storage.log_manager(storage.log_dir, storage.log_dir + "/.")


def test_no_usable_directory_is_an_error_that_names_the_property(storage: StorageHarness) -> None:
    Path(storage.log_dir, "file").write_text("not a directory")

    with pytest.raises(KafkaError, match=r"log\.dirs"):
        storage.log_manager(f"{storage.log_dir}/file")


def test_one_bad_directory_does_not_stop_the_others(storage: StorageHarness) -> None:
    Path(storage.log_dir, "file").write_text("not a directory")
    bad, good = f"{storage.log_dir}/file", f"{storage.log_dir}/good"

    manager = storage.log_manager(bad, good)
    manager.startup()

    assert manager.live_log_dirs == (good,)
    assert (manager.is_log_dir_online(bad), manager.is_log_dir_online(good)) == (False, True)
    assert manager.get_or_create_log(TP, is_new=True).parent_dir == good
    with pytest.raises(KafkaStorageError):
        manager.get_or_create_log(OTHER, is_new=False)
    with pytest.raises(LogDirNotFoundError):
        manager.is_log_dir_online("/nowhere")
    manager.shutdown()


def test_directory_that_is_no_partition_is_refused(storage: StorageHarness) -> None:
    Path(storage.log_dir, "holiday photos").mkdir()
    manager = storage.log_manager()

    with pytest.raises(KafkaError, match="holiday photos"):
        manager.startup()
    manager.shutdown()


def test_partition_in_two_directories_is_refused(storage: StorageHarness) -> None:
    dirs = [f"{storage.log_dir}/{name}" for name in "ab"]
    for path in dirs:
        Path(path, "topic-0").mkdir(parents=True)
    manager = storage.log_manager(*dirs)

    with pytest.raises(KafkaError, match="two log directories"):
        manager.startup()
    manager.shutdown()


def test_failed_directory_takes_its_logs_along(storage: StorageHarness) -> None:
    dirs = [f"{storage.log_dir}/{name}" for name in "ab"]
    manager = storage.log_manager(*dirs)
    manager.startup()
    lost = manager.get_or_create_log(TP, is_new=True)
    kept = manager.get_or_create_log(OTHER, is_new=True)

    manager.handle_log_dir_failure(lost.parent_dir)

    assert manager.all_logs() == (kept,)
    assert manager.live_log_dirs == (kept.parent_dir,)
    gauges = {(s.spec.name, s.labels): s.value for s in storage.metrics.samples()}
    assert gauges["OfflineLogDirectoryCount", ()] == 1
    assert gauges["LogDirectoryOffline", (("logDirectory", lost.parent_dir),)] == 1
    manager.shutdown()


# --- deletion


def test_deleted_log_is_renamed_then_removed(storage: StorageHarness) -> None:
    manager = storage.log_manager()
    manager.startup()
    log = manager.get_or_create_log(TP, is_new=True)
    append(log, "a")
    held = log.active_segment.log.slice(0, 1000)

    manager.async_delete(TP)
    renamed = [name for name in os.listdir(storage.log_dir) if name.startswith("topic-0")]
    again = manager.get_or_create_log(TP, is_new=True)

    assert manager.get_log(TP) is again is not log
    assert again.log_end_offset == 0
    assert [name[-7:] for name in renamed] == ["-delete"]
    assert [r.value for r in held.records()] == [b"a"]
    storage.time.sleep(60_000)
    assert [n for n in os.listdir(storage.log_dir) if n.startswith("topic-0")] == ["topic-0"]
    manager.shutdown()


def test_deletion_goes_on_after_a_restart(storage: StorageHarness) -> None:
    manager = storage.log_manager()
    manager.startup()
    manager.get_or_create_log(TP, is_new=True)
    manager.async_delete(TP)
    manager.shutdown()

    manager = restart(storage).manager  # type: ignore[attr-defined]
    manager.startup()
    there_before = any(name.endswith("-delete") for name in os.listdir(storage.log_dir))
    storage.time.sleep(60_000)

    assert there_before
    assert not any(name.endswith("-delete") for name in os.listdir(storage.log_dir))
    assert manager.all_logs() == ()
    manager.shutdown()


def test_deleted_log_is_gone_from_the_checkpoints(storage: StorageHarness) -> None:
    manager = storage.log_manager()
    manager.startup()
    append(manager.get_or_create_log(TP, is_new=True), "a")
    manager.checkpoint_log_recovery_offsets()

    manager.async_delete(TP)

    checkpoint = Path(storage.log_dir, "recovery-point-offset-checkpoint")
    assert checkpoint.read_text() == "0\n0\n"
    manager.shutdown()


class BusyScheduler(MockScheduler):
    """No task runs before `is_busy` ends."""

    is_busy = False

    def tick(self) -> None:
        if not self.is_busy:
            super().tick()


def test_deleted_log_does_not_write_its_epochs_into_its_successor(tmp_path: Path) -> None:
    time = MockTime()
    time.scheduler = scheduler = BusyScheduler(time)
    storage = StorageHarness(tmp_path, time=time)
    manager = storage.log_manager()
    manager.startup()
    log = manager.get_or_create_log(TP, is_new=True)
    append(log, "a", "b", epoch=3)
    log.update_high_watermark(2)

    scheduler.is_busy = True
    log.maybe_increment_log_start_offset(1, "deletion of records")
    manager.async_delete(TP)
    again = manager.get_or_create_log(TP, is_new=True)
    append(again, "c", epoch=0)
    scheduler.is_busy = False
    time.sleep(0)

    assert Path(again.dir, "leader-epoch-checkpoint").read_text() == "0\n1\n0 0\n"
    manager.shutdown()


def test_stray_log_is_kept_under_another_name(storage: StorageHarness) -> None:
    manager = storage.log_manager()
    manager.startup()
    manager.get_or_create_log(TP, is_new=True)

    manager.async_delete(TP, is_stray=True)
    storage.time.sleep(600_000)
    manager.shutdown()

    assert any(name.endswith("-stray") for name in os.listdir(storage.log_dir))
    manager = restart(storage).manager  # type: ignore[attr-defined]
    manager.startup()
    assert manager.all_logs() == ()
    manager.shutdown()


def test_deleting_an_unknown_log_does_nothing(storage: StorageHarness) -> None:
    manager = storage.log_manager()
    manager.startup()

    manager.async_delete(TP)

    manager.shutdown()


# --- tasks


def test_retention_runs_by_itself(storage: StorageHarness) -> None:
    manager = storage.log_manager(default_config=storage.config(retention_ms=1000))
    manager.startup()
    log = manager.get_or_create_log(TP, is_new=True)
    append(log, "a")
    log.update_high_watermark(1)

    storage.time.sleep(400_000)

    assert (log.log_start_offset, log.log_end_offset) == (1, 1)
    manager.shutdown()


def test_retention_goes_on_after_a_log_with_damaged_records(storage: StorageHarness) -> None:
    config = storage.config(retention_ms=1000)
    partitions = [TopicPartition("topic", i) for i in range(2)]
    manager = storage.log_manager(default_config=config)
    manager.startup()
    for partition in partitions:
        log = manager.get_or_create_log(partition, is_new=True)
        append(log, "a")
        log.roll()
    manager.shutdown()
    with open(f"{storage.log_dir}/topic-0/{0:020d}.log", "r+b") as file:
        file.write(bytes(12))
    manager = storage.log_manager(default_config=config)
    manager.startup()
    for log in manager.all_logs():
        log.update_high_watermark(1)

    storage.time.sleep(400_000)

    starts = [log.log_start_offset for log in map(manager.get_log, partitions) if log is not None]
    assert starts == [0, 1]
    manager.shutdown()


def test_flush_ms_is_checked_at_the_scheduler_interval(storage: StorageHarness) -> None:
    manager = storage.log_manager(
        default_config=storage.config(flush_ms=5000), log_flush_scheduler_interval_ms=1000
    )
    manager.startup()
    log = manager.get_or_create_log(TP, is_new=True)
    append(log, "a")

    storage.time.sleep(4000)
    before = log.recovery_point
    storage.time.sleep(30_000)

    assert (before, log.recovery_point) == (0, 1)
    manager.shutdown()


def test_checkpoints_are_written_by_themselves(storage: StorageHarness) -> None:
    manager = storage.log_manager()
    manager.startup()
    log = manager.get_or_create_log(TP, is_new=True)
    append(log, "a")
    log.flush()

    storage.time.sleep(100_000)

    checkpoint = Path(storage.log_dir, "recovery-point-offset-checkpoint")
    assert checkpoint.read_text() == "0\n1\ntopic 0 1\n"
    manager.shutdown()


def test_truncation_is_checkpointed_at_once(storage: StorageHarness) -> None:
    manager = storage.log_manager()
    manager.startup()
    log = manager.get_or_create_log(TP, is_new=True)
    append(log, "a")
    append(log, "b")
    log.flush()

    manager.truncate_to({TP: 1, OTHER: 5})

    checkpoint = Path(storage.log_dir, "recovery-point-offset-checkpoint")
    assert checkpoint.read_text() == "0\n1\ntopic 0 1\n"
    manager.truncate_fully_and_start_at(TP, 7)
    assert log.log_end_offset == 7
    manager.shutdown()


# --- configuration


def test_topic_settings_lie_over_the_brokers(storage: StorageHarness) -> None:
    manager = storage.log_manager(default_config=storage.config(retention_ms=77, segment_ms=88))
    manager.startup({"topic": {"retention.ms": "5"}})
    log = manager.get_or_create_log(TP, is_new=True)
    other = manager.get_or_create_log(OTHER, is_new=True)
    first = (log.config.retention_ms, other.config.retention_ms)

    manager.update_topic_config("topic", {"segment.ms": "6", "no.such.setting": "1"})

    assert first == (5, 77)
    assert (log.config.retention_ms, log.config.segment_ms) == (77, 6)
    assert log.config.overridden_configs == {"segment.ms"}
    manager.reconfigure_default_log_config(storage.config(retention_ms=99))
    assert (log.config.retention_ms, log.config.segment_ms) == (99, 6)
    assert other.config.retention_ms == 99
    manager.shutdown()


def test_settings_of_a_new_topic_are_asked_for(storage: StorageHarness) -> None:
    manager = storage.log_manager()
    manager.startup(fetch_topic_config=lambda topic: {"retention.bytes": str(len(topic))})

    assert manager.get_or_create_log(TP, is_new=True).config.retention_bytes == 5
    manager.shutdown()


def test_many_logs_load_in_parallel(storage: StorageHarness) -> None:
    manager = storage.log_manager()
    manager.startup()
    for i in range(30):
        append(manager.get_or_create_log(TopicPartition("t", i), is_new=True), str(i))
    manager.shutdown()

    manager = storage.log_manager(num_recovery_threads_per_data_dir=4)
    manager.startup()

    assert {log.topic_partition.partition: values_of(log) for log in manager.all_logs()} == {
        i: [str(i)] for i in range(30)
    }
    manager.shutdown()


def test_log_gauges_come_and_go(storage: StorageHarness) -> None:
    manager = storage.log_manager()
    manager.startup()
    log = manager.get_or_create_log(TP, is_new=True)
    append(log, "a", timestamp=TIMESTAMP)

    def gauges() -> dict[str, object]:
        return {
            s.spec.name: s.value
            for s in storage.metrics.samples()
            if s.labels == (("topic", "topic"), ("partition", "0"))
        }

    assert gauges() == {
        "NumLogSegments": 1,
        "LogStartOffset": 0,
        "LogEndOffset": 1,
        "Size": log.size,
    }
    manager.async_delete(TP)
    assert gauges() == {}
    manager.shutdown()
