"""The leader epochs of one partition, on disk."""

import os
from typing import NamedTuple

from kafkapy.storage.checkpoint_file import CheckpointFile, CheckpointFileWithFailureHandler
from kafkapy.storage.file_system import FileSystem
from kafkapy.storage.log_dir_failure_channel import LogDirFailureChannel
from kafkapy.storage.log_file_utils import LEADER_EPOCH_CHECKPOINT_FILE

_VERSION = 0


class EpochEntry(NamedTuple):
    """A leader epoch and its first offset.

    Ports: org.apache.kafka.storage.internals.log.EpochEntry
    """

    epoch: int
    start_offset: int


def _to_line(entry: EpochEntry) -> str:
    return f"{entry.epoch} {entry.start_offset}"


def _from_line(line: str) -> EpochEntry:
    epoch, start_offset = line.split()
    return EpochEntry(int(epoch), int(start_offset))


class LeaderEpochCheckpointFile(CheckpointFileWithFailureHandler[EpochEntry]):
    """Not thread-safe: LeaderEpochFileCache guards it.

    Ports: org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile
    """

    def __init__(
        self,
        directory: str,
        *,
        file_system: FileSystem,
        log_dir_failure_channel: LogDirFailureChannel,
    ) -> None:
        super().__init__(
            CheckpointFile(
                os.path.join(directory, LEADER_EPOCH_CHECKPOINT_FILE),
                version=_VERSION,
                to_line=_to_line,
                from_line=_from_line,
                file_system=file_system,
            ),
            log_dir=os.path.dirname(directory),
            log_dir_failure_channel=log_dir_failure_channel,
        )
