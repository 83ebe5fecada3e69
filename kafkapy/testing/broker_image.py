"""What a broker was at one moment, to begin from again.

An image is a log directory as a clean shutdown would have left it, and the metadata tree. Closed
segments are shared with the living broker by hard links, since nobody changes them in place; what
still grows is copied as far as it is valid.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from kafkapy.common.types import TopicPartition
from kafkapy.storage.clean_shutdown_file import CleanShutdownFile
from kafkapy.storage.log_dir_failure_channel import LogDirFailureChannel
from kafkapy.storage.log_file_utils import (
    CLEAN_SHUTDOWN_FILE,
    CLEANED_FILE_SUFFIX,
    DELETED_FILE_SUFFIX,
    INDEX_FILE_SUFFIX,
    LOCK_FILE,
    LOG_FILE_SUFFIX,
    LOG_START_OFFSET_CHECKPOINT_FILE,
    PRODUCER_SNAPSHOT_FILE_SUFFIX,
    RECOVERY_POINT_CHECKPOINT_FILE,
    REPLICATION_OFFSET_CHECKPOINT_FILE,
    SWAP_FILE_SUFFIX,
    TIME_INDEX_FILE_SUFFIX,
    filename_prefix_from_offset,
)
from kafkapy.storage.offset_checkpoint_file import OffsetCheckpointFile
from kafkapy.storage.unified_log import UnifiedLog
from kafkapy.testing.faulty_file_system import FaultyFileSystem

_TEMPORARY = (DELETED_FILE_SUFFIX, CLEANED_FILE_SUFFIX, SWAP_FILE_SUFFIX, ".tmp")
_WRITTEN_ANEW = frozenset(
    {
        LOCK_FILE,
        CLEAN_SHUTDOWN_FILE,
        RECOVERY_POINT_CHECKPOINT_FILE,
        LOG_START_OFFSET_CHECKPOINT_FILE,
        REPLICATION_OFFSET_CHECKPOINT_FILE,
    }
)
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class BrokerImage:
    """A directory nobody writes to, with the metadata and the clock that belong to it."""

    directory: Path
    tree: bytes
    clock_offset_ms: int
    # Relative paths of files that every copy may share.
    shared: frozenset[str]

    def restore(self, target: Path) -> None:
        """A log directory for another broker to begin with."""
        for source, names in _tree(self.directory):
            directory = target / source.relative_to(self.directory)
            directory.mkdir(parents=True, exist_ok=True)
            for name in names:
                relative = os.path.relpath(source / name, self.directory)
                if relative in self.shared:
                    os.link(source / name, directory / name)
                else:
                    shutil.copyfile(source / name, directory / name)

    def delete(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)


def capture(
    logs: tuple[UnifiedLog, ...],
    *,
    log_dir: Path,
    target: Path,
    tree: bytes,
    clock_offset_ms: int,
) -> BrokerImage:
    """Nothing may write meanwhile, or the image is of no use. Raises OSError."""
    shared: set[str] = set()
    target.mkdir(parents=True)
    with os.scandir(log_dir) as entries:
        names = [entry.name for entry in entries if entry.is_file()]
    for name in names:
        if name not in _WRITTEN_ANEW and not _is_temporary(name):
            shutil.copyfile(log_dir / name, target / name)
    for log in logs:
        partition_dir = target / os.path.basename(log.dir)
        partition_dir.mkdir()
        shared.update(f"{partition_dir.name}/{name}" for name in _capture_log(log, partition_dir))
    file_system = FaultyFileSystem(sync=False)
    for name, offsets in (
        (RECOVERY_POINT_CHECKPOINT_FILE, {log.topic_partition: log.log_end_offset for log in logs}),
        (LOG_START_OFFSET_CHECKPOINT_FILE, _log_start_offsets(logs)),
        (
            REPLICATION_OFFSET_CHECKPOINT_FILE,
            {log.topic_partition: log.high_watermark for log in logs},
        ),
    ):
        OffsetCheckpointFile(
            str(target / name),
            file_system=file_system,
            log_dir_failure_channel=LogDirFailureChannel(),
        ).write(offsets)
    CleanShutdownFile(str(target), file_system).write()
    return BrokerImage(target, tree, clock_offset_ms, frozenset(shared))


def copy_as_crashed(log_dir: Path, target: Path) -> None:
    """What a broker that dies at this moment leaves; indexes are built anew by its successor."""
    for source, names in _tree(log_dir):
        directory = target / source.relative_to(log_dir)
        directory.mkdir(parents=True, exist_ok=True)
        for name in names:
            if name not in (LOCK_FILE, CLEAN_SHUTDOWN_FILE) and not name.endswith(
                (INDEX_FILE_SUFFIX, TIME_INDEX_FILE_SUFFIX)
            ):
                shutil.copyfile(source / name, directory / name)


def _log_start_offsets(logs: tuple[UnifiedLog, ...]) -> dict[TopicPartition, int]:
    return {
        log.topic_partition: log.log_start_offset
        for log in logs
        if log.log_start_offset > log.segments[0].base_offset
    }


def _capture_log(log: UnifiedLog, target: Path) -> list[str]:
    """The names of the files that are shared."""
    # So that a successor need not read the log to know its producers.
    log.take_producer_snapshot()
    active = log.segments[-1]
    prefix = filename_prefix_from_offset(active.base_offset)
    growing = {
        f"{prefix}{LOG_FILE_SUFFIX}": active.size,
        f"{prefix}{INDEX_FILE_SUFFIX}": active.offset_index.size_in_bytes,
        f"{prefix}{TIME_INDEX_FILE_SUFFIX}": active.time_index.size_in_bytes,
    }
    shared = []
    with os.scandir(log.dir) as entries:
        names = [entry.name for entry in entries if not _is_temporary(entry.name)]
    for name in names:
        path = os.path.join(log.dir, name)
        if name in growing:
            _copy_head(path, target / name, growing[name])
        elif name.startswith(prefix) or name.endswith(PRODUCER_SNAPSHOT_FILE_SUFFIX):
            shutil.copyfile(path, target / name)
        else:
            os.link(path, target / name)
            shared.append(name)
    return shared


def _copy_head(source: str, target: Path, size: int) -> None:
    with open(source, "rb") as reader, open(target, "wb") as writer:
        while size > 0 and (chunk := reader.read(min(size, _CHUNK_BYTES))):
            writer.write(chunk)
            size -= len(chunk)


def _is_temporary(name: str) -> bool:
    return name.endswith(_TEMPORARY)


def _tree(directory: Path) -> list[tuple[Path, list[str]]]:
    return [(Path(path), names) for path, _, names in os.walk(directory)]
