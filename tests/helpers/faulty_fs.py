"""A disk that forgets what was not forced to it, and fails on cue."""

from __future__ import annotations

import errno
import mmap
import os
import random
import threading
from dataclasses import dataclass

from kafkapy.storage.file_system import OsFileChannel, OsFileSystem
from kafkapy.utils.varint import BytesLike


@dataclass(slots=True)
class Fault:
    """The `nth` operation of a kind on a matching path fails, and with `sticky` all later ones."""

    operation: str  # write, fsync, truncate, open, rename, unlink, fsync_dir, mkdir
    nth: int
    error: int
    path_contains: str
    sticky: bool
    write_before_failing: int
    seen: int = 0

    def strikes(self, operation: str, path: str) -> bool:
        if operation != self.operation or self.path_contains not in path:
            return False
        self.seen += 1
        return self.seen == self.nth or (self.sticky and self.seen > self.nth)


class FaultyFileSystem(OsFileSystem):
    """Real files under a real directory, plus a memory of what was synced. Thread-safe.

    `crash` puts every file back to its last synced content and kills all channels opened before.
    A file that neither was synced itself nor had its directory synced is gone. Renames and
    deletions survive at once: nothing here relies on undoing them.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        # guarded by self._lock
        self._durable: dict[str, bytes] = {}
        self._entry_durable: set[str] = set()
        self._faults: list[Fault] = []
        self.generation = 0
        self.max_bytes_per_write: int | None = None
        self.operations: list[tuple[str, str]] = []

    def fail(
        self,
        operation: str,
        *,
        nth: int = 1,
        error: int = errno.EIO,
        path_contains: str = "",
        sticky: bool = False,
        write_before_failing: int = 0,
    ) -> Fault:
        """From now on; `write_before_failing` bytes of a failing write reach the file."""
        fault = Fault(operation, nth, error, path_contains, sticky, write_before_failing)
        with self._lock:
            self._faults.append(fault)
        return fault

    def heal(self) -> None:
        with self._lock:
            self._faults.clear()
            self.max_bytes_per_write = None

    def crash(self, rng: random.Random | None = None) -> None:
        """Power loss. With `rng` some of the unsynced data has reached the disk all the same."""
        with self._lock:
            self.generation += 1
            self._faults.clear()
            for path, content in list(self._durable.items()):
                if not os.path.exists(path):
                    continue
                if path not in self._entry_durable and not (rng and rng.random() < 0.5):
                    os.unlink(path)
                    del self._durable[path]
                    continue
                if rng is not None:
                    content = self._torn(path, content, rng)
                with open(path, "wb") as file:
                    file.write(content)
                self._durable[path] = content
                self._entry_durable.add(path)

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> OsFileChannel:
        self.check("open", path)
        with self._lock:
            if not read_only and path not in self._durable:
                if os.path.exists(path):
                    self._durable[path] = super().read_bytes(path)
                    self._entry_durable.add(path)
                elif create:
                    self._durable[path] = b""
        inner = super().open(path, create=create, read_only=read_only)
        return FaultyFileChannel(os.dup(inner.fileno()), path, self)

    def rename(self, source: str, target: str) -> None:
        self.check("rename", source)
        super().rename(source, target)
        self.moved(source, target)

    def moved(self, source: str, target: str) -> None:
        with self._lock:
            for path in list(self._durable):
                if path == source or path.startswith(source + "/"):
                    renamed = target + path[len(source) :]
                    self._durable[renamed] = self._durable.pop(path)
                    if path in self._entry_durable:
                        self._entry_durable.discard(path)
                        self._entry_durable.add(renamed)

    def unlink(self, path: str) -> None:
        self.check("unlink", path)
        super().unlink(path)
        self._forget(path)

    def unlink_if_exists(self, path: str) -> bool:
        self.check("unlink", path)
        self._forget(path)
        return super().unlink_if_exists(path)

    def makedirs(self, path: str) -> None:
        self.check("mkdir", path)
        super().makedirs(path)

    def remove_tree(self, path: str) -> None:
        self.check("unlink", path)
        super().remove_tree(path)
        with self._lock:
            for known in list(self._durable):
                if known.startswith(path + "/"):
                    self._forget(known)

    def flush_mapping(self, mapping: mmap.mmap, path: str) -> None:
        self.check("fsync", path)
        super().flush_mapping(mapping, path)
        if os.path.exists(path):
            self.synced(path)

    def fsync_dir(self, path: str) -> None:
        self.check("fsync_dir", path)
        super().fsync_dir(path)
        with self._lock:
            self._entry_durable.update(
                known for known in self._durable if os.path.dirname(known) == path
            )

    def synced(self, path: str) -> None:
        with self._lock:
            self._durable[path] = super().read_bytes(path)
            # As ext4 and XFS do: syncing a new file syncs its entry.
            self._entry_durable.add(path)

    def check(self, operation: str, path: str) -> Fault | None:
        """Counts the operation and raises if it is to fail; returns a fault that writes first."""
        with self._lock:
            self.operations.append((operation, path))
            for fault in self._faults:
                if fault.strikes(operation, path):
                    if fault.write_before_failing:
                        return fault
                    raise OSError(fault.error, os.strerror(fault.error), path)
        return None

    def _torn(self, path: str, durable: bytes, rng: random.Random) -> bytes:
        current = super().read_bytes(path)
        if len(current) <= len(durable) or not current.startswith(durable):
            return durable
        return current[: rng.randint(len(durable), len(current))]

    def _forget(self, path: str) -> None:
        with self._lock:
            self._durable.pop(path, None)
            self._entry_durable.discard(path)


class FaultyFileChannel(OsFileChannel):
    """A channel that asks its file system whether to fail, and dies in a crash."""

    __slots__ = ("_file_system", "_generation")

    def __init__(self, fd: int, path: str, file_system: FaultyFileSystem) -> None:
        super().__init__(fd, path)
        self._file_system = file_system
        self._generation = file_system.generation

    def read_at(self, size: int, position: int) -> bytes:
        self._ensure_alive()
        self._file_system.check("read", self.path)
        return super().read_at(size, position)

    def write_at(self, data: BytesLike, position: int) -> int:
        self._ensure_alive()
        fault = self._file_system.check("write", self.path)
        if fault is not None:
            super().write_at(memoryview(data)[: fault.write_before_failing], position)
            raise OSError(fault.error, os.strerror(fault.error), self.path)
        limit = self._file_system.max_bytes_per_write
        return super().write_at(data if limit is None else memoryview(data)[:limit], position)

    def truncate(self, size: int) -> None:
        self._ensure_alive()
        self._file_system.check("truncate", self.path)
        super().truncate(size)

    def flush(self) -> None:
        self._ensure_alive()
        self._file_system.check("fsync", self.path)
        super().flush()
        self._file_system.synced(self.path)

    def rename_to(self, path: str) -> None:
        self._ensure_alive()
        self._file_system.rename(self.path, path)
        self.moved_to(path)

    def _ensure_alive(self) -> None:
        if self._generation != self._file_system.generation:
            raise OSError(errno.EIO, "opened before the crash", self.path)
