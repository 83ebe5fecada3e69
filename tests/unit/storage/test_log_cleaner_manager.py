"""Which log is compacted next, how far, and who keeps compaction away from it."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.common.errors import KafkaError
from kafkapy.common.types import TopicPartition
from kafkapy.storage.cleaner_stats import PreCleanStats
from kafkapy.storage.log_cleaner_manager import (
    LogCleanerManager,
    cleanable_offsets,
    max_compaction_delay,
)
from kafkapy.storage.log_to_clean import LogToClean
from kafkapy.storage.storage_errors import LogCleaningAbortedError
from kafkapy.storage.unified_log import UnifiedLog
from tests.helpers.mock_time import MockTime
from tests.unit.storage.cleaning import TransactionalProducer, put, put_each
from tests.unit.storage.harness import StorageHarness

TOPIC = TopicPartition("topic", 0)


class Managed:
    """A manager and the logs it knows."""

    def __init__(self, storage: StorageHarness) -> None:
        self.storage = storage
        self.time = storage.time
        self.logs: dict[TopicPartition, UnifiedLog] = {}
        self.manager = LogCleanerManager(
            (storage.log_dir,), lambda: dict(self.logs), storage.environment
        )

    def add(
        self, name: str = "topic-0", *, segments: int = 0, active: int = 0, **settings: object
    ) -> UnifiedLog:
        """With so many segments of ten records, and so many records in the active one."""
        config = self.storage.config(**{"cleanup_policy": ("compact",), **settings})
        log = self.storage.open_log(config, name=name)
        for _ in range(segments):
            put_each(log, self.time, [(str(i), "x" * 50) for i in range(10)])
            log.roll()
        put_each(log, self.time, [(str(i), "x" * 50) for i in range(active)])
        log.update_high_watermark(log.log_end_offset)
        self.logs[log.topic_partition] = log
        return log

    def grab(self, stats: PreCleanStats | None = None) -> LogToClean | None:
        return self.manager.grab_filthiest_compacted_log(stats or PreCleanStats())

    def compacted_up_to(self, log: UnifiedLog, offset: int) -> None:
        self.manager.update_checkpoints(log.parent_dir, update=(log.topic_partition, offset))

    @property
    def checkpoint(self) -> list[str]:
        path = Path(self.storage.log_dir, "cleaner-offset-checkpoint")
        return path.read_text().splitlines() if path.exists() else []

    def gauge(self, name: str) -> float:
        (value,) = (
            sample.value for sample in self.storage.metrics.samples() if sample.spec.name == name
        )
        assert isinstance(value, (int, float))
        return value


@pytest.fixture
def managed(storage: StorageHarness) -> Managed:
    return Managed(storage)


# --- which log


def test_the_log_with_the_largest_dirty_share_comes_first(managed: Managed) -> None:
    dirty = managed.add("dirty-0", segments=4)
    half = managed.add("half-0", segments=4)
    managed.compacted_up_to(dirty, 10)
    managed.compacted_up_to(half, 20)

    stats = PreCleanStats()
    found = managed.grab(stats)

    assert found is not None
    assert found.log is dirty
    assert (found.first_dirty_offset, found.first_uncleanable_offset) == (10, 40)
    assert found.cleanable_ratio == pytest.approx(0.75)
    assert stats.cleanable_partitions == 1  # half is not more than min.cleanable.dirty.ratio
    assert managed.gauge("max-dirty-percent") == 75


def test_each_thread_gets_another_log(managed: Managed) -> None:
    logs = {managed.add(f"{name}-0", segments=1).topic_partition for name in "abc"}

    found = {grabbed.topic_partition for _ in range(3) if (grabbed := managed.grab())}

    assert found == logs
    assert managed.grab() is None


@pytest.mark.parametrize(("ratio", "is_cleaned"), [(0.49, True), (0.5, False), (0.51, False)])
def test_a_log_is_left_alone_until_it_is_dirty_enough(
    managed: Managed, ratio: float, is_cleaned: bool
) -> None:
    log = managed.add(segments=2, min_cleanable_dirty_ratio=ratio)
    managed.compacted_up_to(log, 10)

    assert (managed.grab() is not None) is is_cleaned


@pytest.mark.parametrize("policy", [("delete",), ("delete", "compact"), ("compact",)])
def test_only_compacted_logs_are_compacted(managed: Managed, policy: tuple[str, ...]) -> None:
    managed.add(segments=2, cleanup_policy=policy)

    assert (managed.grab() is not None) is ("compact" in policy)


def test_logs_without_closed_segments_are_left_alone(managed: Managed) -> None:
    managed.add("empty-0")
    managed.add("active-0", active=20)

    assert managed.grab() is None


def test_bytes_are_those_of_whole_segments(managed: Managed) -> None:
    log = managed.add(segments=3, active=5)
    sizes = [segment.size for segment in log.segments]

    found = LogToClean.measure(log, 10, 25)

    assert (found.clean_bytes, found.cleanable_bytes) == (sizes[0], sizes[1])
    assert found.first_uncleanable_offset == 20
    assert found.total_bytes == sizes[0] + sizes[1]


# --- how far


def test_nothing_is_clean_before_the_first_round(managed: Managed) -> None:
    log = managed.add(segments=2, active=3)

    offsets = cleanable_offsets(log, None, managed.time.milliseconds())

    assert offsets == (0, 20, False)


def test_the_log_start_is_where_a_log_begins_to_be_dirty(managed: Managed) -> None:
    log = managed.add(segments=2, active=3)
    log.maybe_increment_log_start_offset(5, "a test")

    assert cleanable_offsets(log, None, 0) == (5, 20, False)


@pytest.mark.parametrize("checkpoint", [3, 1000])
@pytest.mark.parametrize("policy", [("compact",), ("compact", "delete")])
def test_a_checkpoint_outside_the_log_is_corrected(
    managed: Managed, checkpoint: int, policy: tuple[str, ...]
) -> None:
    log = managed.add(segments=2, active=3, cleanup_policy=policy)
    log.maybe_increment_log_start_offset(5, "a test")
    managed.compacted_up_to(log, checkpoint)

    found = managed.grab()

    assert found is not None and found.first_dirty_offset == 5
    assert managed.checkpoint == ["0", "1", "topic 0 5"]


def test_compaction_ends_at_the_high_watermark(managed: Managed) -> None:
    log = managed.add(segments=3)
    log.update_high_watermark(15)

    offsets = cleanable_offsets(log, None, 0)

    assert offsets.first_uncleanable_dirty_offset == 15
    assert LogToClean.measure(log, 0, 15).first_uncleanable_offset == 10


def test_compaction_ends_at_an_open_transaction(managed: Managed) -> None:
    log = managed.add(segments=1)
    producer = TransactionalProducer(log, managed.time, 5)
    producer.put(("a", "1"))
    log.roll()
    put(log, managed.time, ("b", "1"))
    log.roll()
    log.update_high_watermark(log.log_end_offset)
    assert cleanable_offsets(log, None, 0).first_uncleanable_dirty_offset == 10

    producer.commit()
    log.roll()

    assert cleanable_offsets(log, None, 0).first_uncleanable_dirty_offset == 13


def test_young_segments_wait_for_min_compaction_lag(managed: Managed) -> None:
    log = managed.add(segments=1, min_compaction_lag_ms=1000)
    managed.time.sleep(600)
    put_each(log, managed.time, [("a", "1")])
    log.roll()
    log.update_high_watermark(log.log_end_offset)

    def uncleanable_from() -> int:
        offsets = cleanable_offsets(log, None, managed.time.milliseconds())
        return offsets.first_uncleanable_dirty_offset

    assert uncleanable_from() == 0
    managed.time.sleep(400)
    assert uncleanable_from() == 10
    managed.time.sleep(600)
    assert uncleanable_from() == 11


def test_a_log_beyond_max_compaction_lag_is_compacted_however_clean(managed: Managed) -> None:
    log = managed.add(segments=2, max_compaction_lag_ms=1000, min_cleanable_dirty_ratio=1.0)
    managed.compacted_up_to(log, 10)
    managed.time.sleep(1000)
    assert managed.grab() is None

    managed.time.sleep(500)
    stats = PreCleanStats()
    found = managed.grab(stats)

    assert found is not None and found.needs_compaction_now
    assert (stats.max_compaction_delay_ms, stats.delayed_partitions) == (500, 1)


def test_a_log_without_dirty_segments_is_never_late(managed: Managed) -> None:
    log = managed.add(segments=1, active=1, max_compaction_lag_ms=1000)
    managed.time.sleep(10_000)

    assert max_compaction_delay(log, 0, managed.time.milliseconds()) == 9000
    assert max_compaction_delay(log, 10, managed.time.milliseconds()) == 0
    managed.compacted_up_to(log, 10)
    assert managed.grab() is None


# --- whose a log is


def test_a_paused_partition_is_not_compacted(managed: Managed) -> None:
    managed.add(segments=1)
    managed.manager.abort_and_pause_cleaning(TOPIC)
    managed.manager.abort_and_pause_cleaning(TOPIC)

    managed.manager.resume_cleaning([TOPIC])
    assert managed.grab() is None
    managed.manager.resume_cleaning([TOPIC])

    assert managed.grab() is not None


def test_abort_waits_until_the_thread_has_let_go(managed: Managed) -> None:
    log = managed.add(segments=1)
    assert managed.grab() is not None
    manager = managed.manager
    manager.check_cleaning_aborted(TOPIC)
    waiting = threading.Thread(target=manager.abort_and_pause_cleaning, args=(TOPIC,))
    waiting.start()
    for _ in until_aborted(manager):
        pass

    assert waiting.is_alive()
    manager.done_cleaning(TOPIC, log.parent_dir, 10)
    waiting.join(10)

    assert not waiting.is_alive()
    assert managed.checkpoint == []  # what was aborted is not done
    assert managed.grab() is None
    manager.resume_cleaning([TOPIC])
    assert managed.grab() is not None


def until_aborted(manager: LogCleanerManager) -> Iterator[None]:
    while True:
        try:
            manager.check_cleaning_aborted(TOPIC)
        except LogCleaningAbortedError:
            return
        yield


def test_all_who_abort_the_same_work_have_it_paused(managed: Managed) -> None:
    log = managed.add(segments=1)
    managed.grab()
    manager = managed.manager
    waiting = [
        threading.Thread(target=manager.abort_and_pause_cleaning, args=(TOPIC,)) for _ in range(3)
    ]
    for thread in waiting:
        thread.start()
    for _ in until_aborted(manager):
        pass

    manager.done_cleaning(TOPIC, log.parent_dir, 10)
    for thread in waiting:
        thread.join(10)

    for _ in waiting:
        assert managed.grab() is None
        manager.resume_cleaning([TOPIC])
    assert managed.grab() is not None


def test_abort_of_a_free_partition_leaves_it_free(managed: Managed) -> None:
    managed.add(segments=1)

    managed.manager.abort_cleaning(TOPIC)

    assert managed.grab() is not None


def test_steps_that_cannot_follow_are_refused(managed: Managed) -> None:
    log = managed.add(segments=1)
    manager = managed.manager

    with pytest.raises(KafkaError, match="not paused"):
        manager.resume_cleaning([TOPIC])
    with pytest.raises(KafkaError, match="not being compacted"):
        manager.done_cleaning(TOPIC, log.parent_dir, 1)
    with pytest.raises(KafkaError, match="not being compacted"):
        manager.done_deleting([TOPIC])
    managed.grab()
    with pytest.raises(KafkaError, match="cannot be resumed"):
        manager.resume_cleaning([TOPIC])
    assert managed.grab() is None


def test_retention_and_compaction_share_out_the_logs(managed: Managed) -> None:
    deleted = managed.add("d-0", segments=1, cleanup_policy=("delete",))
    both = managed.add("both-0", segments=1, cleanup_policy=("compact", "delete"))
    compacted = managed.add("c-0", segments=1)
    manager = managed.manager

    paused = manager.pause_cleaning_for_non_compacted_partitions()
    deletable = manager.deletable_logs()

    assert paused == (deleted,)
    assert set(deletable) == {both, compacted}
    # They are taken: by retention, and by the thread that deletes.
    assert manager.pause_cleaning_for_non_compacted_partitions() == ()
    assert manager.deletable_logs() == ()
    assert managed.grab() is None
    # Not even when the policy changes meanwhile.
    deleted.update_config(compacted.config)
    assert managed.grab() is None

    manager.resume_cleaning([deleted.topic_partition])
    manager.done_deleting(log.topic_partition for log in deletable)

    assert {found.log for _ in range(3) if (found := managed.grab())} == {deleted, both, compacted}


def test_logs_at_work_are_not_deletable(managed: Managed) -> None:
    managed.add(segments=1)
    managed.grab()

    assert managed.manager.deletable_logs() == ()


# --- checkpoints


def test_done_cleaning_says_how_far(managed: Managed) -> None:
    log = managed.add(segments=1)
    managed.grab()

    managed.manager.done_cleaning(TOPIC, log.parent_dir, 10)

    assert managed.checkpoint == ["0", "1", "topic 0 10"]
    assert managed.grab() is None


def test_checkpoints_outlive_the_manager(managed: Managed) -> None:
    log = managed.add(segments=4)
    managed.compacted_up_to(log, 30)

    again = Managed(managed.storage)
    again.logs = managed.logs

    assert again.grab() is None


def test_partitions_that_are_gone_are_forgotten(managed: Managed) -> None:
    kept, removed, gone = (managed.add(f"{name}-0", segments=1) for name in ("a", "b", "c"))
    for log in (kept, removed, gone):
        managed.compacted_up_to(log, 5)
    del managed.logs[gone.topic_partition]

    managed.manager.update_checkpoints(kept.parent_dir, remove=removed.topic_partition)

    assert managed.checkpoint == ["0", "1", "a 0 5"]


@pytest.mark.parametrize(("offset", "expected"), [(20, 10), (10, 10), (4, 4), (0, 0)])
def test_truncation_moves_the_checkpoint_back_only(
    managed: Managed, offset: int, expected: int
) -> None:
    log = managed.add(segments=2)
    managed.compacted_up_to(log, 10)

    managed.manager.maybe_truncate_checkpoint(log, offset)

    assert managed.checkpoint == ["0", "1", f"topic 0 {expected}"]


def test_truncation_of_a_log_that_is_not_compacted_touches_nothing(managed: Managed) -> None:
    log = managed.add(segments=2, cleanup_policy=("delete",))
    managed.compacted_up_to(log, 10)

    managed.manager.maybe_truncate_checkpoint(log, 3)

    assert managed.checkpoint == ["0", "1", "topic 0 10"]


def test_a_failed_directory_is_not_written_to(managed: Managed) -> None:
    log = managed.add(segments=2)
    managed.compacted_up_to(log, 10)
    managed.manager.handle_log_dir_failure(log.parent_dir)

    managed.compacted_up_to(log, 20)
    managed.manager.maybe_truncate_checkpoint(log, 3)

    assert managed.checkpoint == ["0", "1", "topic 0 10"]


# --- partitions that cannot be compacted


def test_an_uncleanable_partition_is_left_alone_and_counted(managed: Managed) -> None:
    log = managed.add(segments=2)
    other = managed.add("other-0", segments=1)
    managed.manager.mark_partition_uncleanable(log)

    found = managed.grab()

    assert found is not None and found.log is other
    assert managed.manager.deletable_logs() == ()
    assert managed.gauge("uncleanable-partitions-count") == 1
    assert managed.gauge("uncleanable-bytes") == sum(s.size for s in log.segments)


def test_an_uncleanable_partition_is_forgotten_when_it_is_deleted(managed: Managed) -> None:
    log = managed.add(segments=2)
    managed.manager.mark_partition_uncleanable(log)
    managed.manager.maintain_uncleanable_partitions()
    assert managed.manager.uncleanable_partitions(log.parent_dir) == {TOPIC}

    managed.logs.clear()
    managed.manager.maintain_uncleanable_partitions()

    assert managed.manager.uncleanable_partitions(log.parent_dir) == frozenset()
    assert managed.gauge("uncleanable-bytes") == 0


def test_a_new_log_is_not_marked_for_an_old_one_of_that_name(managed: Managed) -> None:
    log = managed.add(segments=2)
    del managed.logs[TOPIC]

    managed.manager.mark_partition_uncleanable(log)

    assert managed.manager.uncleanable_partitions(log.parent_dir) == frozenset()


def test_a_log_that_cannot_be_measured_does_not_keep_others_from_it(managed: Managed) -> None:
    broken = managed.add("broken-0", segments=1)
    managed.add("other-0", segments=1)
    broken.delete()  # its segments are gone, but it is still listed

    found = managed.grab()

    assert found is not None and found.topic_partition.topic == "other"
    assert managed.gauge("uncleanable-partitions-count") == 1


def test_time_since_the_last_look_is_told(managed: Managed, time: MockTime) -> None:
    managed.grab()
    time.sleep(700)

    assert managed.gauge("time-since-last-run-ms") == 700
