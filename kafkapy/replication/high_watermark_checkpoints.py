"""High watermarks on disk: replication-offset-checkpoint of every log directory."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable

from kafkapy.common.errors import KafkaStorageError
from kafkapy.common.types import TopicPartition
from kafkapy.replication.lazy_offset_checkpoints import LazyOffsetCheckpoints
from kafkapy.replication.partition import Partition
from kafkapy.storage.file_system import FileSystem
from kafkapy.storage.log_dir_failure_channel import LogDirFailureChannel
from kafkapy.storage.log_file_utils import REPLICATION_OFFSET_CHECKPOINT_FILE
from kafkapy.storage.offset_checkpoint_file import OffsetCheckpointFile

logger = logging.getLogger(__name__)


class HighWatermarkCheckpoints:
    """One checkpoint file per log directory. Thread-safe.

    A directory that has failed has no online partition any more, so its file is left alone.

    Ports: kafka.server.ReplicaManager (checkpointHighWatermarks)
    """

    def __init__(
        self,
        log_dirs: Iterable[str],
        *,
        file_system: FileSystem,
        log_dir_failure_channel: LogDirFailureChannel,
    ) -> None:
        # constant after construction
        self._files = {
            log_dir: OffsetCheckpointFile(
                os.path.join(log_dir, REPLICATION_OFFSET_CHECKPOINT_FILE),
                file_system=file_system,
                log_dir_failure_channel=log_dir_failure_channel,
            )
            for log_dir in log_dirs
        }

    def lazily(self) -> LazyOffsetCheckpoints:
        return LazyOffsetCheckpoints(self._files)

    def write(self, partitions: Iterable[Partition]) -> None:
        """A directory that cannot be written is logged; its failure is handled elsewhere."""
        files = self._files
        offsets: dict[str, dict[TopicPartition, int]] = {log_dir: {} for log_dir in files}
        for partition in partitions:
            log = partition.log
            if log is not None and log.parent_dir in offsets:
                offsets[log.parent_dir][partition.topic_partition] = log.high_watermark
        for log_dir, high_watermarks in offsets.items():
            if not high_watermarks:
                continue
            try:
                files[log_dir].write(high_watermarks)
            except KafkaStorageError:
                logger.exception("High watermarks in %s could not be written", log_dir)
