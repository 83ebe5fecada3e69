"""One of the directories of log.dirs."""

import logging
import os
from collections.abc import Iterable

from kafkapy.common.types import TopicPartition
from kafkapy.storage.clean_shutdown_file import UNKNOWN_BROKER_EPOCH, CleanShutdownFile
from kafkapy.storage.log_dir_lock import LogDirLock
from kafkapy.storage.log_file_utils import (
    LOG_START_OFFSET_CHECKPOINT_FILE,
    RECOVERY_POINT_CHECKPOINT_FILE,
)
from kafkapy.storage.offset_checkpoint_file import OffsetCheckpointFile
from kafkapy.storage.storage_environment import StorageEnvironment
from kafkapy.storage.unified_log import UnifiedLog

logger = logging.getLogger(__name__)


class LogDirectory:
    """A log directory, locked for this process, with its checkpoints and its shutdown marker.

    Thread-safe, except that opening and closing are for LogManager alone.
    """

    def __init__(self, path: str, environment: StorageEnvironment) -> None:
        """Makes the directory if need be; raises OSError or LogDirLockedError."""
        self.path = path  # constant after construction
        self._environment = environment
        self._file_system = environment.file_system
        self._file_system.makedirs(path)
        self._lock = LogDirLock(path)
        self._clean_shutdown_file = CleanShutdownFile(path, self._file_system)
        self._recovery_points = self._checkpoint(RECOVERY_POINT_CHECKPOINT_FILE)
        self._log_start_offsets = self._checkpoint(LOG_START_OFFSET_CHECKPOINT_FILE)
        # Set once all logs are loaded: only then does a shutdown leave the directory clean.
        self.is_loaded = False

    def take_clean_shutdown(self) -> bool:
        """Whether the last shutdown was clean. From now on, and durably, there was none."""
        was_clean = self._clean_shutdown_file.exists()
        self._clean_shutdown_file.delete()
        return was_clean

    def mark_clean_shutdown(self, broker_epoch: int = UNKNOWN_BROKER_EPOCH) -> None:
        self._clean_shutdown_file.write(broker_epoch)

    def partition_dirs(self) -> list[str]:
        """The paths of everything that may be a partition."""
        paths = (os.path.join(self.path, name) for name in self._file_system.listdir(self.path))
        return sorted(path for path in paths if self._file_system.is_dir(path))

    def create_partition_dir(self, name: str) -> str:
        path = os.path.join(self.path, name)
        self._file_system.makedirs(path)
        self._file_system.fsync_dir(self.path)
        return path

    def read_recovery_points(self) -> dict[TopicPartition, int]:
        return self._recovery_points.read()

    def read_log_start_offsets(self) -> dict[TopicPartition, int]:
        return self._log_start_offsets.read()

    def write_recovery_points(self, logs: Iterable[UnifiedLog]) -> None:
        self._recovery_points.write({log.topic_partition: log.recovery_point for log in logs})

    def write_log_start_offsets(self, logs: Iterable[UnifiedLog]) -> None:
        """Only where the offset is not told by the first segment's name."""
        self._log_start_offsets.write(
            {
                log.topic_partition: log.log_start_offset
                for log in logs
                if log.log_start_offset > log.segments[0].base_offset
            }
        )

    def close(self) -> None:
        """Gives up the lock."""
        self._lock.close()

    def _checkpoint(self, name: str) -> OffsetCheckpointFile:
        return OffsetCheckpointFile(
            os.path.join(self.path, name),
            file_system=self._file_system,
            log_dir_failure_channel=self._environment.log_dir_failure_channel,
        )
