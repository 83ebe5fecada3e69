"""A disk that fails on cue."""

from __future__ import annotations

import errno
import mmap
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass

from kafkapy.storage.file_system import OsFileChannel, OsFileSystem
from kafkapy.utils.varint import BytesLike


@dataclass(slots=True)
class DiskFault:
    """The `nth` operation of a kind on a matching path fails, and with `sticky` all later ones."""

    operation: str  # read, write, fsync, truncate, open, rename, unlink, fsync_dir, mkdir
    nth: int
    error: int
    matches: Callable[[str], bool]
    sticky: bool
    write_before_failing: int
    seen: int = 0

    def strikes(self, operation: str, path: str) -> bool:
        if operation != self.operation or not self.matches(path):
            return False
        self.seen += 1
        return self.seen == self.nth or (self.sticky and self.seen > self.nth)

    @property
    def has_struck(self) -> bool:
        return self.seen >= self.nth


class FaultyFileSystem(OsFileSystem):
    """Real files whose operations can be made to fail. Thread-safe.

    Without `sync` nothing is forced to disk: a process that dies loses nothing by that, only a
    machine would.
    """

    def __init__(self, *, sync: bool = True) -> None:
        self.sync = sync  # constant after construction
        self._lock = threading.RLock()
        # guarded by self._lock
        self._faults: list[DiskFault] = []
        self.max_bytes_per_write: int | None = None

    def fail(
        self,
        operation: str,
        *,
        nth: int = 1,
        error: int = errno.EIO,
        path_contains: str = "",
        matches: Callable[[str], bool] | None = None,
        sticky: bool = False,
        write_before_failing: int = 0,
    ) -> DiskFault:
        """From now on; `write_before_failing` bytes of a failing write reach the file."""
        fault = DiskFault(
            operation,
            nth,
            error,
            matches or (lambda path: path_contains in path),
            sticky,
            write_before_failing,
        )
        with self._lock:
            self._faults.append(fault)
        return fault

    def heal(self) -> None:
        with self._lock:
            self._faults.clear()
            self.max_bytes_per_write = None

    def check(self, operation: str, path: str) -> DiskFault | None:
        """Counts the operation and raises if it is to fail; returns a fault that writes first."""
        if not self._faults:
            return None
        with self._lock:
            for fault in self._faults:
                if fault.strikes(operation, path):
                    if fault.write_before_failing:
                        return fault
                    raise OSError(fault.error, os.strerror(fault.error), path)
        return None

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> OsFileChannel:
        self.check("open", path)
        return super().open(path, create=create, read_only=read_only)

    def rename(self, source: str, target: str) -> None:
        self.check("rename", source)
        super().rename(source, target)

    def unlink(self, path: str) -> None:
        self.check("unlink", path)
        super().unlink(path)

    def unlink_if_exists(self, path: str) -> bool:
        self.check("unlink", path)
        return super().unlink_if_exists(path)

    def makedirs(self, path: str) -> None:
        self.check("mkdir", path)
        super().makedirs(path)

    def remove_tree(self, path: str) -> None:
        self.check("unlink", path)
        super().remove_tree(path)

    def flush_mapping(self, mapping: mmap.mmap, path: str) -> None:
        self.check("fsync", path)
        if self.sync:
            super().flush_mapping(mapping, path)

    def fsync_dir(self, path: str) -> None:
        self.check("fsync_dir", path)
        if self.sync:
            super().fsync_dir(path)

    def _channel(self, fd: int, path: str) -> OsFileChannel:
        return FaultyFileChannel(fd, path, self)


class FaultyFileChannel(OsFileChannel):
    """A channel that asks its file system whether to fail."""

    __slots__ = ("_file_system",)

    def __init__(self, fd: int, path: str, file_system: FaultyFileSystem) -> None:
        super().__init__(fd, path)
        self._file_system = file_system

    def read_at(self, size: int, position: int) -> bytes:
        self._file_system.check("read", self.path)
        return super().read_at(size, position)

    def write_at(self, data: BytesLike, position: int) -> int:
        fault = self._file_system.check("write", self.path)
        if fault is not None:
            super().write_at(memoryview(data)[: fault.write_before_failing], position)
            raise OSError(fault.error, os.strerror(fault.error), self.path)
        limit = self._file_system.max_bytes_per_write
        return super().write_at(data if limit is None else memoryview(data)[:limit], position)

    def truncate(self, size: int) -> None:
        self._file_system.check("truncate", self.path)
        super().truncate(size)

    def flush(self) -> None:
        self._file_system.check("fsync", self.path)
        if self._file_system.sync:
            super().flush()

    def rename_to(self, path: str) -> None:
        self._file_system.rename(self.path, path)
        self.moved_to(path)
