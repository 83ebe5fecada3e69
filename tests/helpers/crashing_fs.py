"""A disk that forgets what was not forced to it, and fails on cue."""

from __future__ import annotations

import errno
import mmap
import os
import random

from kafkapy.storage.file_system import OsFileChannel
from kafkapy.testing.faulty_file_system import FaultyFileChannel, FaultyFileSystem
from kafkapy.utils.varint import BytesLike


class CrashingFileSystem(FaultyFileSystem):
    """Real files under a real directory, plus a memory of what was synced. Thread-safe.

    `crash` puts every file back to its last synced content and kills all channels opened before.
    A file that neither was synced itself nor had its directory synced is gone. Renames and
    deletions survive at once: nothing here relies on undoing them.
    """

    def __init__(self) -> None:
        super().__init__()
        # guarded by self._lock
        self._durable: dict[str, bytes] = {}
        self._entry_durable: set[str] = set()
        self.generation = 0

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
        # Known before it is there: a crash in between must not leave it.
        with self._lock:
            if not read_only and path not in self._durable:
                if os.path.exists(path):
                    self._durable[path] = self.read_bytes(path)
                    self._entry_durable.add(path)
                elif create:
                    self._durable[path] = b""
        return super().open(path, create=create, read_only=read_only)

    def rename(self, source: str, target: str) -> None:
        super().rename(source, target)
        with self._lock:
            for path in list(self._durable):
                if path == source or path.startswith(source + "/"):
                    renamed = target + path[len(source) :]
                    self._durable[renamed] = self._durable.pop(path)
                    if path in self._entry_durable:
                        self._entry_durable.discard(path)
                        self._entry_durable.add(renamed)

    def unlink(self, path: str) -> None:
        super().unlink(path)
        self._forget(path)

    def unlink_if_exists(self, path: str) -> bool:
        existed = super().unlink_if_exists(path)
        self._forget(path)
        return existed

    def remove_tree(self, path: str) -> None:
        super().remove_tree(path)
        with self._lock:
            for known in list(self._durable):
                if known.startswith(path + "/"):
                    self._forget(known)

    def flush_mapping(self, mapping: mmap.mmap, path: str) -> None:
        super().flush_mapping(mapping, path)
        if os.path.exists(path):
            self.synced(path)

    def fsync_dir(self, path: str) -> None:
        super().fsync_dir(path)
        with self._lock:
            self._entry_durable.update(
                known for known in self._durable if os.path.dirname(known) == path
            )

    def synced(self, path: str) -> None:
        with self._lock:
            self._durable[path] = self.read_bytes(path)
            # As ext4 and XFS do: syncing a new file syncs its entry.
            self._entry_durable.add(path)

    def _channel(self, fd: int, path: str) -> OsFileChannel:
        return CrashingFileChannel(fd, path, self)

    def _torn(self, path: str, durable: bytes, rng: random.Random) -> bytes:
        current = self.read_bytes(path)
        if len(current) <= len(durable) or not current.startswith(durable):
            return durable
        return current[: rng.randint(len(durable), len(current))]

    def _forget(self, path: str) -> None:
        with self._lock:
            self._durable.pop(path, None)
            self._entry_durable.discard(path)


class CrashingFileChannel(FaultyFileChannel):
    """A channel that dies in a crash."""

    __slots__ = ("_crashing", "_generation")

    def __init__(self, fd: int, path: str, file_system: CrashingFileSystem) -> None:
        super().__init__(fd, path, file_system)
        self._crashing = file_system
        self._generation = file_system.generation

    def read_at(self, size: int, position: int) -> bytes:
        self._ensure_alive()
        return super().read_at(size, position)

    def write_at(self, data: BytesLike, position: int) -> int:
        self._ensure_alive()
        return super().write_at(data, position)

    def truncate(self, size: int) -> None:
        self._ensure_alive()
        super().truncate(size)

    def flush(self) -> None:
        self._ensure_alive()
        super().flush()
        self._crashing.synced(self.path)

    def rename_to(self, path: str) -> None:
        self._ensure_alive()
        super().rename_to(path)

    def _ensure_alive(self) -> None:
        if self._generation != self._crashing.generation:
            raise OSError(errno.EIO, "opened before the crash", self.path)
