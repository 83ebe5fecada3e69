"""One offset per partition of a log directory."""

import os
import threading
from collections.abc import Mapping

from kafkapy.common.types import TopicPartition
from kafkapy.storage.checkpoint_file import CheckpointFile, CheckpointFileWithFailureHandler
from kafkapy.storage.file_system import FileSystem
from kafkapy.storage.log_dir_failure_channel import LogDirFailureChannel

_VERSION = 0


def _to_line(entry: tuple[TopicPartition, int]) -> str:
    (topic, partition), offset = entry
    return f"{topic} {partition} {offset}"


def _from_line(line: str) -> tuple[TopicPartition, int]:
    topic, partition, offset = line.split()
    return TopicPartition(topic, int(partition)), int(offset)


class OffsetCheckpointFile:
    """Recovery points, high watermarks or log start offsets of one directory. Thread-safe.

    Ports: org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile
    """

    def __init__(
        self, path: str, *, file_system: FileSystem, log_dir_failure_channel: LogDirFailureChannel
    ) -> None:
        self._lock = threading.Lock()
        self._checkpoint = CheckpointFileWithFailureHandler(
            CheckpointFile(
                path,
                version=_VERSION,
                to_line=_to_line,
                from_line=_from_line,
                file_system=file_system,
            ),
            log_dir=os.path.dirname(path),
            log_dir_failure_channel=log_dir_failure_channel,
        )

    @property
    def path(self) -> str:
        return self._checkpoint.path

    def write(self, offsets: Mapping[TopicPartition, int]) -> None:
        with self._lock:
            self._checkpoint.write(offsets.items())

    def read(self) -> dict[TopicPartition, int]:
        with self._lock:
            return dict(self._checkpoint.read())
