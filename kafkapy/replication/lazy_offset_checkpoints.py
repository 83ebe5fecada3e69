"""Checkpointed high watermarks, read when first asked for."""

from collections.abc import Mapping

from kafkapy.common.types import TopicPartition
from kafkapy.storage.offset_checkpoint_file import OffsetCheckpointFile


class LazyOffsetCheckpoints:
    """The checkpoint files of all log directories, each read once. For use by one thread.

    Ports: org.apache.kafka.storage.internals.checkpoint.LazyOffsetCheckpoints
    """

    def __init__(self, checkpoints_by_log_dir: Mapping[str, OffsetCheckpointFile]) -> None:
        self._files = checkpoints_by_log_dir
        self._offsets: dict[str, dict[TopicPartition, int]] = {}

    def fetch(self, log_dir: str, topic_partition: TopicPartition) -> int | None:
        offsets = self._offsets.get(log_dir)
        if offsets is None:
            file = self._files.get(log_dir)
            offsets = self._offsets[log_dir] = file.read() if file is not None else {}
        return offsets.get(topic_partition)
