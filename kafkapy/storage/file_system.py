"""The disk seam: every file that must survive a crash is written through it.

Paths are plain strings. Whoever opens a channel closes it.
"""

import contextlib
import fcntl
import mmap
import os
import shutil
import sys
from typing import NamedTuple, Protocol

from kafkapy.common.record.file_records import FileChannel
from kafkapy.utils.varint import BytesLike


class StorageChannel(FileChannel, Protocol):
    """An open file whose directory can be renamed under it."""

    def moved_to(self, path: str) -> None:
        """Remembers where the file is now; moves nothing."""
        ...

    def modified_ms(self) -> int:
        """When the file last changed, in milliseconds since the epoch."""
        ...

    def set_modified_ms(self, modified_ms: int) -> None: ...


class DiskUsage(NamedTuple):
    total_bytes: int
    usable_bytes: int


class FileSystem(Protocol):
    """What storage needs of the operating system; tests replace it to lose data on cue.

    Every method raises OSError.
    """

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> StorageChannel:
        """A channel on an existing file, or with `create` on one that is made if missing."""
        ...

    def read_bytes(self, path: str) -> bytes: ...

    def exists(self, path: str) -> bool: ...

    def is_dir(self, path: str) -> bool: ...

    def size(self, path: str) -> int: ...

    def listdir(self, path: str) -> list[str]: ...

    def makedirs(self, path: str) -> None:
        """No error if it is there already."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Atomic; replaces `target`. Durable only after `fsync_dir` of the directory."""
        ...

    def unlink(self, path: str) -> None: ...

    def unlink_if_exists(self, path: str) -> bool:
        """Whether there was something to remove."""
        ...

    def remove_tree(self, path: str) -> None:
        """No error if it is gone already."""
        ...

    def flush_mapping(self, mapping: mmap.mmap, path: str) -> None:
        """Forces what was written through a mapping to disk; the file may have been renamed."""
        ...

    def fsync_dir(self, path: str) -> None:
        """Makes renames, creations and deletions inside a directory durable."""
        ...

    def disk_usage(self, path: str) -> DiskUsage: ...


class OsFileChannel:
    """An open file. Reading and writing at positions is thread-safe; closing is not.

    A channel that is dropped without `close` closes itself once nobody refers to it: slices of a
    deleted segment may still be on their way to a socket, and their descriptor must not be reused
    under them.
    """

    __slots__ = ("_fd", "_path")

    def __init__(self, fd: int, path: str) -> None:
        self._fd = fd
        self._path = path

    @property
    def path(self) -> str:
        return self._path

    def fileno(self) -> int:
        return self._fd

    def read_at(self, size: int, position: int) -> bytes:
        return os.pread(self._fd, size, position)

    def write_at(self, data: BytesLike, position: int) -> int:
        return os.pwrite(self._fd, data, position)

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def flush(self) -> None:
        _fsync(self._fd)

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def modified_ms(self) -> int:
        return os.fstat(self._fd).st_mtime_ns // 1_000_000

    def set_modified_ms(self, modified_ms: int) -> None:
        # By path where the platform cannot do it by descriptor.
        target = self._fd if os.utime in os.supports_fd else self._path
        os.utime(target, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))

    def rename_to(self, path: str) -> None:
        os.replace(self._path, path)
        self._path = path

    def moved_to(self, path: str) -> None:
        self._path = path

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        self.close()


class OsFileSystem:
    """The operating system's files. Thread-safe."""

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> OsFileChannel:
        flags = os.O_RDONLY if read_only else os.O_RDWR
        if create:
            flags |= os.O_CREAT
        return self._channel(os.open(path, flags | os.O_CLOEXEC, 0o644), path)

    def read_bytes(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_dir(self, path: str) -> bool:
        return os.path.isdir(path)

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def listdir(self, path: str) -> list[str]:
        return os.listdir(path)

    def makedirs(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def unlink_if_exists(self, path: str) -> bool:
        try:
            os.unlink(path)
        except FileNotFoundError:
            return False
        return True

    def remove_tree(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(path)

    def flush_mapping(self, mapping: mmap.mmap, path: str) -> None:
        mapping.flush()

    def fsync_dir(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def disk_usage(self, path: str) -> DiskUsage:
        usage = os.statvfs(path)
        return DiskUsage(usage.f_blocks * usage.f_frsize, usage.f_bavail * usage.f_frsize)

    def _channel(self, fd: int, path: str) -> OsFileChannel:
        return OsFileChannel(fd, path)


def _fsync(fd: int) -> None:
    if sys.platform == "darwin":
        # There fsync only hands the data to the drive, whose cache may lose it.
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    else:
        os.fsync(fd)


def write_fully(channel: StorageChannel, data: BytesLike, position: int) -> None:
    """All of `data`, however many writes the operating system makes of it."""
    written = channel.write_at(data, position)
    while written < len(data):
        written += channel.write_at(memoryview(data)[written:], position + written)


def atomic_write(file_system: FileSystem, path: str, data: bytes) -> None:
    """Replaces a whole file; a crash leaves either the old content or the new one."""
    temporary = f"{path}.tmp"
    channel = file_system.open(temporary, create=True)
    try:
        channel.truncate(0)
        write_fully(channel, data, 0)
        channel.flush()
    finally:
        channel.close()
    file_system.rename(temporary, path)
    file_system.fsync_dir(os.path.dirname(path))
