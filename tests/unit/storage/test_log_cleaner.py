"""The compaction threads, and what the log manager does to keep them away."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafkapy.common.config_def import parse
from kafkapy.common.errors import InvalidConfigurationError
from kafkapy.common.types import TopicPartition
from kafkapy.storage.cleaner_config import CleanerConfig
from kafkapy.storage.cleaner_thread import CleanerThread
from kafkapy.storage.log_manager import LogManager
from kafkapy.storage.unified_log import UnifiedLog
from kafkapy.utils.throttler import Throttler
from tests.helpers.crashing_fs import CrashingFileSystem
from tests.helpers.mock_time import MockTime
from tests.helpers.waiting import wait_until
from tests.unit.storage.cleaning import pairs_of, put, put_each
from tests.unit.storage.harness import StorageHarness

TOPIC = TopicPartition("topic", 0)
COMPACT = {"cleanup.policy": "compact"}
QUICK = CleanerConfig(backoff_ms=1, dedupe_buffer_size=4 << 20)


class Managed:
    """A log manager with compaction, and a thread of it that works when it is told to."""

    def __init__(self, storage: StorageHarness) -> None:
        self.storage = storage
        self.log_manager = storage.log_manager(cleaner_config=CleanerConfig(num_threads=0))
        self.log_manager.startup({"topic": COMPACT, "other": COMPACT})
        assert self.log_manager.cleaner is not None
        # Never started: `clean` does its work.
        self.thread = CleanerThread(
            0,
            QUICK,
            self.log_manager.cleaner.manager,
            Throttler(1e300, storage.time),
            storage.environment,
            on_failure=lambda error: None,
        )

    def log(self, topic_partition: TopicPartition = TOPIC) -> UnifiedLog:
        return self.log_manager.get_or_create_log(topic_partition)

    def fill(self, topic_partition: TopicPartition = TOPIC) -> UnifiedLog:
        """Two segments of the same ten keys, and an empty active one."""
        log = self.log(topic_partition)
        for value in ("old", "new"):
            put_each(log, self.storage.time, [(str(i), value) for i in range(10)])
            log.roll()
        log.update_high_watermark(log.log_end_offset)
        return log

    def clean(self) -> bool:
        return self.thread.clean_filthiest_log()

    @property
    def checkpoint(self) -> list[str]:
        path = Path(self.storage.log_dir, "cleaner-offset-checkpoint")
        return path.read_text().splitlines()[2:]

    def gauge(self, name: str) -> object:
        (value,) = (s.value for s in self.storage.metrics.samples() if s.spec.name == name)
        return value


@pytest.fixture
def managed(storage: StorageHarness) -> Iterator[Managed]:
    managed = Managed(storage)
    yield managed
    managed.log_manager.shutdown()


def test_a_round_compacts_one_log_and_remembers_how_far(managed: Managed) -> None:
    log = managed.fill()

    assert managed.clean()
    assert not managed.clean()

    assert pairs_of(log) == [(str(i), "new") for i in range(10)]
    assert managed.checkpoint == ["topic 0 20"]
    assert managed.thread.last_stats.messages_written == 10
    assert managed.thread.last_stats.messages_read == 20


@pytest.mark.parametrize(("policy", "is_deleted"), [("compact", False), ("compact,delete", True)])
def test_retention_of_compacted_logs_is_the_cleaners(
    managed: Managed, time: MockTime, policy: str, is_deleted: bool
) -> None:
    log = managed.fill()
    managed.log_manager.update_topic_config(
        "topic", {"cleanup.policy": policy, "retention.ms": "1000"}
    )
    managed.clean()
    time.sleep(2000)

    managed.log_manager.cleanup_logs()
    assert len(pairs_of(log)) == 10
    managed.clean()

    assert pairs_of(log) == ([] if is_deleted else [(str(i), "new") for i in range(10)])
    assert log.log_start_offset == (20 if is_deleted else 0)


def test_segments_before_the_log_start_go_from_compacted_logs_too(managed: Managed) -> None:
    log = managed.fill()
    managed.clean()
    put(log, managed.storage.time, ("last", "1"))
    log.update_high_watermark(log.log_end_offset)
    log.maybe_increment_log_start_offset(20, "DeleteRecords")

    managed.clean()

    assert [segment.base_offset for segment in log.segments] == [20]


def test_without_a_cleaner_compacted_logs_are_left_as_they_are(
    storage: StorageHarness, time: MockTime
) -> None:
    log_manager = storage.log_manager()
    log_manager.startup({"topic": {"cleanup.policy": "compact,delete", "retention.ms": "1"}})
    log = log_manager.get_or_create_log(TOPIC)
    put(log, time, ("a", "1"))
    log.roll()
    log.update_high_watermark(1)
    time.sleep(1000)

    log_manager.cleanup_logs()

    assert log.number_of_segments == 2
    log_manager.shutdown()


def test_a_damaged_log_is_marked_and_the_others_go_on(managed: Managed) -> None:
    log = managed.fill()
    other = managed.fill(TopicPartition("other", 0))
    put(log, managed.storage.time, ("more", "dirt"))
    damage(log)

    results = [managed.clean() for _ in range(3)]

    assert sorted(results) == [False, False, True]
    assert len(pairs_of(other)) == 10
    assert managed.gauge("uncleanable-partitions-count") == 1
    assert managed.gauge("uncleanable-bytes") == sum(s.size for s in log.segments[:-1])


def damage(log: UnifiedLog) -> None:
    path = Path(log.segments[0].log.path)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def test_an_error_of_the_disk_takes_the_directory_offline_and_the_thread_lives(
    tmp_path: Path, time: MockTime
) -> None:
    file_system = CrashingFileSystem()
    managed = Managed(StorageHarness(tmp_path, file_system, time))
    managed.fill()
    file_system.fail("fsync", path_contains=".cleaned")

    managed.clean()

    assert managed.storage.failures.has_offline_log_dir(str(tmp_path))
    managed.log_manager.handle_log_dir_failure(str(tmp_path))
    assert not managed.clean()
    managed.log_manager.shutdown()


# --- what keeps compaction away


def test_truncation_makes_what_follows_dirty_again(managed: Managed, time: MockTime) -> None:
    log = managed.fill()
    managed.clean()
    put(log, time, ("a", "1"))

    managed.log_manager.truncate_to({TOPIC: 15})

    assert managed.checkpoint == ["topic 0 0"]
    assert log.log_end_offset == 15
    assert managed.clean() is False  # everything is in the active segment now


def test_truncation_of_the_active_segment_does_not_bother_compaction(
    managed: Managed, time: MockTime
) -> None:
    log = managed.fill()
    managed.clean()
    put_each(log, time, [("a", "1"), ("b", "1")])

    managed.log_manager.truncate_to({TOPIC: 21})

    assert managed.checkpoint == ["topic 0 20"]
    assert log.log_end_offset == 21


def test_full_truncation_starts_compaction_anew(managed: Managed) -> None:
    log = managed.fill()
    managed.clean()

    managed.log_manager.truncate_fully_and_start_at(TOPIC, 7)

    assert managed.checkpoint == ["topic 0 7"]
    assert (log.log_start_offset, log.log_end_offset) == (7, 7)


def test_a_deleted_log_leaves_no_checkpoint(managed: Managed) -> None:
    managed.fill()
    managed.clean()

    managed.log_manager.async_delete(TOPIC)

    assert managed.checkpoint == []
    assert not managed.clean()


def test_a_topic_of_the_same_name_is_compacted_from_its_start(managed: Managed) -> None:
    managed.fill()
    managed.clean()
    managed.log_manager.async_delete(TOPIC)

    log = managed.fill()
    managed.clean()

    assert pairs_of(log) == [(str(i), "new") for i in range(10)]


def test_a_policy_that_changes_ends_compaction(managed: Managed) -> None:
    managed.fill()

    managed.log_manager.update_topic_config("topic", {"cleanup.policy": "delete"})

    assert not managed.clean()


# --- the threads themselves


@pytest.fixture
def running(storage: StorageHarness) -> Iterator[Callable[[CleanerConfig], LogManager]]:
    managers = []

    def start(config: CleanerConfig) -> LogManager:
        log_manager = storage.log_manager(cleaner_config=config)
        managers.append(log_manager)
        log_manager.startup({"topic": COMPACT})
        return log_manager

    yield start
    for log_manager in managers:
        log_manager.shutdown()


def test_a_running_manager_compacts(
    storage: StorageHarness, running: Callable[[CleanerConfig], LogManager]
) -> None:
    log_manager = running(QUICK)
    log = log_manager.get_or_create_log(TOPIC)
    put_each(log, storage.time, [("a", str(i)) for i in range(10)])
    log.roll()
    log.update_high_watermark(10)

    wait_until(lambda: pairs_of(log) == [("a", "9")])


def test_logs_are_compacted_while_others_are_deleted_and_made_anew(
    storage: StorageHarness, running: Callable[[CleanerConfig], LogManager]
) -> None:
    log_manager = running(CleanerConfig(num_threads=2, backoff_ms=1, dedupe_buffer_size=4 << 20))
    for _ in range(15):
        log = log_manager.get_or_create_log(TOPIC)
        put_each(log, storage.time, [("a", str(i)) for i in range(20)])
        log.roll()
        log.update_high_watermark(20)
        put(log, storage.time, ("b", "1"))
        log_manager.truncate_to({TOPIC: 10})
        log_manager.async_delete(TOPIC)

    log = log_manager.get_or_create_log(TOPIC)
    put_each(log, storage.time, [("a", str(i)) for i in range(20)])
    log.roll()
    log.update_high_watermark(20)
    wait_until(lambda: pairs_of(log) == [("a", "19")])
    failed = [s for s in storage.metrics.samples() if s.spec.name == "DeadThreadCount"]
    assert [sample.value for sample in failed] == [0]


def test_new_settings_replace_the_threads(
    storage: StorageHarness, running: Callable[[CleanerConfig], LogManager]
) -> None:
    log_manager = running(CleanerConfig(backoff_ms=3_600_000, dedupe_buffer_size=4 << 20))
    log = log_manager.get_or_create_log(TOPIC)
    put_each(log, storage.time, [("a", "1"), ("a", "2")])
    log.roll()
    log.update_high_watermark(2)

    log_manager.reconfigure_cleaner(QUICK)

    wait_until(lambda: pairs_of(log) == [("a", "2")])


def test_settings_that_come_before_the_start_hold_from_the_start(storage: StorageHarness) -> None:
    log_manager = storage.log_manager(cleaner_config=CleanerConfig(backoff_ms=3_600_000))

    log_manager.reconfigure_cleaner(QUICK)

    assert not [t for t in threading.enumerate() if "log-cleaner" in t.name]
    log_manager.startup({"topic": COMPACT})
    log = log_manager.get_or_create_log(TOPIC)
    put_each(log, storage.time, [("a", "1"), ("a", "2")])
    log.roll()
    log.update_high_watermark(2)
    wait_until(lambda: pairs_of(log) == [("a", "2")])
    log_manager.shutdown()


def test_a_cleaner_that_is_turned_off_has_no_threads_and_no_metrics(
    storage: StorageHarness, running: Callable[[CleanerConfig], LogManager]
) -> None:
    log_manager = running(CleanerConfig(enable_cleaner=False))

    log_manager.reconfigure_cleaner(QUICK)

    assert not [s for s in storage.metrics.samples() if "LogCleaner" in s.spec.mbean]


def test_metrics_go_with_the_manager(
    storage: StorageHarness, running: Callable[[CleanerConfig], LogManager]
) -> None:
    log_manager = running(QUICK)
    names = {s.spec.name for s in storage.metrics.samples() if "LogCleaner" in s.spec.mbean}
    assert names == {
        "max-buffer-utilization-percent",
        "cleaner-recopy-percent",
        "max-clean-time-secs",
        "max-compaction-delay-secs",
        "DeadThreadCount",
        "uncleanable-partitions-count",
        "uncleanable-bytes",
        "max-dirty-percent",
        "time-since-last-run-ms",
    }

    log_manager.shutdown()

    assert not [s for s in storage.metrics.samples() if "LogCleaner" in s.spec.mbean]


# --- settings


@pytest.mark.parametrize(("threads", "is_possible"), [(0, False), (1, True), (4, True), (5, False)])
def test_threads_can_at_most_double_or_halve(threads: int, is_possible: bool) -> None:
    before, after = CleanerConfig(num_threads=2), CleanerConfig(num_threads=threads)

    if is_possible:
        before.validate_change_to(after)
    else:
        with pytest.raises(InvalidConfigurationError, match=r"log\.cleaner\.threads"):
            before.validate_change_to(after)


@pytest.mark.parametrize("threads", [0, 3])
def test_other_settings_may_change_whatever_the_threads(threads: int) -> None:
    before = CleanerConfig(num_threads=threads)

    before.validate_change_to(CleanerConfig(num_threads=threads, backoff_ms=1))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("log.cleaner.io.max.bytes.per.second", "0"),
        ("log.cleaner.io.buffer.load.factor", "0"),
        ("log.cleaner.io.buffer.load.factor", "1.1"),
        ("log.cleaner.threads", "-1"),
        ("log.cleaner.backoff.ms", "-1"),
    ],
)
def test_settings_under_which_nothing_would_get_done_are_refused(name: str, value: str) -> None:
    with pytest.raises(InvalidConfigurationError, match=name):
        parse(CleanerConfig, {name: value})


def test_too_little_memory_for_keys_is_refused() -> None:
    CleanerConfig(num_threads=2, dedupe_buffer_size=(2 << 20) + 2).validate()
    with pytest.raises(InvalidConfigurationError, match=r"log\.cleaner\.dedupe\.buffer\.size"):
        CleanerConfig(num_threads=2, dedupe_buffer_size=2 << 20).validate()
