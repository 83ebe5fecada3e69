"""Where each leader epoch begins in a log."""

import logging
import threading
from bisect import bisect_left, bisect_right

from kafkapy.common.types import TopicPartition
from kafkapy.storage.leader_epoch_checkpoint_file import EpochEntry, LeaderEpochCheckpointFile
from kafkapy.storage.storage_environment import StorageEnvironment
from kafkapy.utils.scheduler import Scheduler

logger = logging.getLogger(__name__)

UNDEFINED_EPOCH = -1
UNDEFINED_EPOCH_OFFSET = -1


def _epoch(entry: EpochEntry) -> int:
    return entry.epoch


def _start_offset(entry: EpochEntry) -> int:
    return entry.start_offset


class LeaderEpochFileCache:
    """Epochs with their start offsets, both ascending, mirrored in a file. Thread-safe.

    A new epoch is on disk before `assign` returns, for truncation after an election depends on
    it. Truncations are written in the background: an entry too many does no harm.

    Ports: org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        checkpoint: LeaderEpochCheckpointFile,
        scheduler: Scheduler,
    ) -> None:
        self._topic_partition = topic_partition  # constant after construction
        self._checkpoint = checkpoint
        self._scheduler = scheduler
        self._lock = threading.Lock()
        # Replaced, never changed, so that reading needs no lock. Written under self._lock.
        self._epochs: tuple[EpochEntry, ...] = ()
        self._is_retired = False  # guarded by self._lock
        with self._lock:
            for entry in checkpoint.read():
                self._assign_locked(entry)

    @property
    def latest_entry(self) -> EpochEntry | None:
        epochs = self._epochs
        return epochs[-1] if epochs else None

    @property
    def earliest_entry(self) -> EpochEntry | None:
        epochs = self._epochs
        return epochs[0] if epochs else None

    @property
    def latest_epoch(self) -> int | None:
        epochs = self._epochs
        return epochs[-1].epoch if epochs else None

    @property
    def previous_epoch(self) -> int | None:
        """The epoch before the latest one."""
        epochs = self._epochs
        return epochs[-2].epoch if len(epochs) > 1 else None

    @property
    def is_empty(self) -> bool:
        return not self._epochs

    @property
    def epoch_entries(self) -> tuple[EpochEntry, ...]:
        return self._epochs

    def assign(self, epoch: int, start_offset: int) -> None:
        """An epoch begins; older entries that contradict it are dropped."""
        epochs = self._epochs
        if epochs and epochs[-1].epoch == epoch and start_offset >= epochs[-1].start_offset:
            return
        with self._lock:
            if self._assign_locked(EpochEntry(epoch, start_offset)) and not self._is_retired:
                self._checkpoint.write(self._epochs)

    def epoch_for_offset(self, offset: int) -> int | None:
        epochs = self._epochs
        index = bisect_right(epochs, offset, key=_start_offset) - 1
        return epochs[index].epoch if index >= 0 else None

    def end_offset_for(self, requested_epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The last epoch at or below the requested one, and the offset at which it ended.

        Both are undefined when the requested epoch is above all known ones.
        """
        epochs = self._epochs
        if requested_epoch == UNDEFINED_EPOCH or not epochs:
            return UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET
        if epochs[-1].epoch == requested_epoch:
            return requested_epoch, log_end_offset
        higher = bisect_right(epochs, requested_epoch, key=_epoch)
        if higher == len(epochs):
            return UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET
        if higher == 0:
            # Older than anything known: whatever that leader wrote ends where we begin.
            return requested_epoch, epochs[0].start_offset
        return epochs[higher - 1].epoch, epochs[higher].start_offset

    def truncate_from_end_async_flush(self, end_offset: int) -> None:
        """Forgets epochs that begin at or after an offset."""
        with self._lock:
            epochs = self._epochs
            if end_offset < 0 or not epochs or epochs[-1].start_offset < end_offset:
                return
            self._epochs = epochs[: bisect_left(epochs, end_offset, key=_start_offset)]
        self._flush_later()

    def truncate_from_start_async_flush(self, start_offset: int) -> None:
        """Forgets epochs that ended before an offset; the one it falls into now begins there."""
        with self._lock:
            epochs = self._epochs
            count = bisect_right(epochs, start_offset, key=_start_offset)
            if start_offset < 0 or count == 0 or epochs[0].start_offset == start_offset:
                return
            first = EpochEntry(epochs[count - 1].epoch, start_offset)
            self._epochs = (first, *epochs[count:])
        self._flush_later()

    def clear(self) -> None:
        """In memory only."""
        with self._lock:
            self._epochs = ()

    def clear_and_flush(self) -> None:
        with self._lock:
            if self._epochs:
                self._epochs = ()
                if not self._is_retired:
                    self._checkpoint.write(())

    def retire(self) -> None:
        """Writes no more: the log's directory is renamed, and another may get its name."""
        with self._lock:
            self._is_retired = True

    def _assign_locked(self, new: EpochEntry) -> bool:
        if new.epoch < 0 or new.start_offset < 0:
            raise ValueError(f"{self._topic_partition}: invalid leader epoch {new}")
        epochs = self._epochs
        if epochs:
            latest = epochs[-1]
            if new.epoch == latest.epoch and new.start_offset >= latest.start_offset:
                return False
        kept = len(epochs)
        while kept and (
            epochs[kept - 1].epoch >= new.epoch or epochs[kept - 1].start_offset >= new.start_offset
        ):
            kept -= 1
        if kept < len(epochs):
            # Epochs of leaders that wrote nothing here are replaced all the time.
            level = logging.WARNING if epochs[kept].epoch > new.epoch else logging.DEBUG
            logger.log(level, "%s: %s replaces %s", self._topic_partition, new, list(epochs[kept:]))
        self._epochs = (*epochs[:kept], new)
        return True

    def _flush_later(self) -> None:
        self._scheduler.schedule_once(
            f"leader-epoch-cache-flush-{self._topic_partition}", self._flush_if_dir_exists
        )

    def _flush_if_dir_exists(self) -> None:
        with self._lock:
            if not self._is_retired:
                self._checkpoint.write_if_dir_exists(list(self._epochs))


def open_leader_epoch_cache(
    directory: str, topic_partition: TopicPartition, environment: StorageEnvironment
) -> LeaderEpochFileCache:
    """The epochs of the log in a directory."""
    return LeaderEpochFileCache(
        topic_partition,
        LeaderEpochCheckpointFile(
            directory,
            file_system=environment.file_system,
            log_dir_failure_channel=environment.log_dir_failure_channel,
        ),
        environment.scheduler,
    )
