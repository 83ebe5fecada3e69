"""Where a broker under test keeps its data."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import weakref
from pathlib import Path

_PREFIX = "kafkapy-testing-"
_LOCK = "owner.lock"
_MEMORY_DISK = "/dev/shm"
_MEMORY_DISK_MIN_BYTES = 512 * 1024 * 1024


class DataDirectory:
    """A temporary directory that goes with its owner, at the latest when the interpreter ends.

    One whose process was killed before that goes when the next is made: its lock is free. A forked
    child leaves its parent's alone.
    """

    def __init__(self) -> None:
        """Raises OSError."""
        parent = _parent()
        _delete_orphans(parent)
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))  # constant
        self._delete = weakref.finalize(self, _delete, self.path, _locked(self.path), os.getpid())

    def delete(self) -> None:
        """Idempotent."""
        self._delete()


def _parent() -> Path:
    """In memory where there is plenty of it and TMPDIR does not say otherwise: a broker makes many
    small files."""
    if "TMPDIR" not in os.environ and os.access(_MEMORY_DISK, os.W_OK):
        free_bytes = shutil.disk_usage(_MEMORY_DISK).free
        if free_bytes >= _MEMORY_DISK_MIN_BYTES:
            return Path(_MEMORY_DISK)
    return Path(tempfile.gettempdir())


def _locked(directory: Path) -> int:
    """The descriptor that holds the lock."""
    new = directory / f"{_LOCK}.new"
    descriptor = os.open(new, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        # Nobody finds a lock that is not taken yet.
        new.rename(directory / _LOCK)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _delete(directory: Path, lock: int, owner_pid: int) -> None:
    # A forked child has a copy of all that its parent is to do at the end.
    if os.getpid() == owner_pid:
        shutil.rmtree(directory, ignore_errors=True)
        os.close(lock)


def _delete_orphans(parent: Path) -> None:
    for directory in parent.glob(f"{_PREFIX}*"):
        try:
            descriptor = os.open(directory / _LOCK, os.O_RDWR)
        except OSError:
            continue  # being made, being deleted, or somebody else's
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue  # in use
        else:
            shutil.rmtree(directory, ignore_errors=True)
        finally:
            os.close(descriptor)
