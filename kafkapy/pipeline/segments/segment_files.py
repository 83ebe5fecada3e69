"""The partitions and segments that lie under the paths given."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kafkapy.common.errors import KafkaError
from kafkapy.common.types import TopicPartition
from kafkapy.pipeline.pipeline_errors import OptionError
from kafkapy.storage.file_system import OsFileSystem
from kafkapy.storage.log_dir_failure_channel import LogDirFailureChannel
from kafkapy.storage.log_file_utils import (
    DELETE_DIR_SUFFIX,
    FUTURE_DIR_SUFFIX,
    LOG_FILE_SUFFIX,
    LOG_START_OFFSET_CHECKPOINT_FILE,
    REPLICATION_OFFSET_CHECKPOINT_FILE,
    STRAY_DIR_SUFFIX,
    is_log_file,
    offset_from_file_name,
    parse_topic_partition_name,
)
from kafkapy.storage.offset_checkpoint_file import OffsetCheckpointFile

_NOT_IN_USE = (DELETE_DIR_SUFFIX, FUTURE_DIR_SUFFIX, STRAY_DIR_SUFFIX)


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A `.log` file as it was when it was found."""

    path: str
    base_offset: int
    size: int
    inode: int  # tells a file from another that compaction has put in its place

    @staticmethod
    def of(path: str) -> SegmentFile | None:
        """None for a file that is not named like a segment, or that is gone by now."""
        base_offset = offset_from_file_name(path)
        if base_offset is None or not is_log_file(path):
            return None
        try:
            status = os.stat(path)
        except FileNotFoundError:
            return None
        return SegmentFile(path, base_offset, status.st_size, status.st_ino)

    @property
    def is_current(self) -> bool:
        """Whether the file is still there, grown or not."""
        now = SegmentFile.of(self.path)
        return now is not None and now.inode == self.inode


@dataclass(frozen=True, slots=True)
class PartitionLog:
    """The segments of one partition in the order of their offsets; there is at least one."""

    topic_partition: TopicPartition
    directory: str
    segments: tuple[SegmentFile, ...]
    log_start_offset: int
    high_watermark: int | None  # None if no checkpoint says it

    def end_of(self, number: int) -> int | None:
        """Where the next segment begins; None for the last one."""
        following = number + 1
        return self.segments[following].base_offset if following < len(self.segments) else None

    def floor(self, offset: int) -> int:
        """The number of the segment that an offset belongs to."""
        found = 0
        for number, segment in enumerate(self.segments):
            if segment.base_offset <= offset:
                found = number
        return found


def segments_of(directory: str) -> tuple[SegmentFile, ...]:
    """The segments of a partition's directory, files on their way in or out left aside.

    None if the directory is gone by now.
    """
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return ()
    found = (SegmentFile.of(os.path.join(directory, name)) for name in names)
    return tuple(
        sorted(
            (segment for segment in found if segment is not None),
            key=lambda segment: segment.base_offset,
        )
    )


def find_partition_logs(
    paths: Sequence[str],
    *,
    wanted: Callable[[TopicPartition], bool],
    lone_file: TopicPartition | None = None,
) -> list[PartitionLog]:
    """The partitions under log directories, partition directories or single segment files.

    `lone_file` is what a file belongs to whose directory does not say it. Raises OptionError for a
    path that is none of the three, and for a partition that is found twice.
    """
    found: dict[TopicPartition, PartitionLog] = {}
    for path in paths:
        for log in _logs_under(path, wanted, lone_file):
            other = found.setdefault(log.topic_partition, log)
            if other is not log:
                raise OptionError(
                    "path",
                    f"{log.topic_partition} is both in {other.directory} and in {log.directory}: "
                    f"every record of it would be read twice",
                )
    return [found[topic_partition] for topic_partition in sorted(found)]


def _logs_under(
    path: str, wanted: Callable[[TopicPartition], bool], lone_file: TopicPartition | None
) -> list[PartitionLog]:
    if os.path.isfile(path):
        lone = _lone_segment(path, lone_file)
        return [lone] if wanted(lone.topic_partition) else []
    if not os.path.isdir(path):
        raise OptionError("path", f"there is no directory or file {path}")
    directory = os.path.abspath(path)
    if _topic_partition(directory) is not None and segments_of(directory):
        return _logs_in(os.path.dirname(directory), [directory], wanted)
    directories = [os.path.join(directory, name) for name in sorted(os.listdir(directory))]
    return _logs_in(directory, [each for each in directories if os.path.isdir(each)], wanted)


def _lone_segment(path: str, lone_file: TopicPartition | None) -> PartitionLog:
    segment = SegmentFile.of(path)
    if segment is None:
        raise OptionError(
            "path", f"{path} is not a segment: those are named <offset>{LOG_FILE_SUFFIX}"
        )
    directory = os.path.dirname(os.path.abspath(path))
    for log in _logs_in(os.path.dirname(directory), [directory], lambda _: True):
        start = max(log.log_start_offset, segment.base_offset)
        return replace(log, segments=(segment,), log_start_offset=start)
    if lone_file is None:
        raise OptionError(
            "path",
            f"the directory of {path} is not named <topic>-<partition>; the options topic and "
            f"partitions can say what the file belongs to",
        )
    return PartitionLog(lone_file, directory, (segment,), segment.base_offset, None)


def _logs_in(
    log_dir: str, directories: Sequence[str], wanted: Callable[[TopicPartition], bool]
) -> list[PartitionLog]:
    high_watermarks = _checkpoint(log_dir, REPLICATION_OFFSET_CHECKPOINT_FILE)
    log_starts = _checkpoint(log_dir, LOG_START_OFFSET_CHECKPOINT_FILE)
    logs: list[PartitionLog] = []
    for directory in directories:
        topic_partition = _topic_partition(directory)
        if topic_partition is None or not wanted(topic_partition):
            continue
        segments = segments_of(directory)
        if segments:
            logs.append(
                PartitionLog(
                    topic_partition,
                    directory,
                    segments,
                    max(log_starts.get(topic_partition, 0), segments[0].base_offset),
                    high_watermarks.get(topic_partition),
                )
            )
    return logs


def _topic_partition(directory: str) -> TopicPartition | None:
    if directory.endswith(_NOT_IN_USE):
        return None
    try:
        return parse_topic_partition_name(directory)
    except KafkaError:
        return None


def _checkpoint(log_dir: str, name: str) -> dict[TopicPartition, int]:
    """Nothing if there is no such file: a copy of a partition may come without."""
    return OffsetCheckpointFile(
        os.path.join(log_dir, name),
        file_system=OsFileSystem(),
        log_dir_failure_channel=LogDirFailureChannel(),
    ).read()
