"""Keeps two processes off one log directory."""

import fcntl
import os

from kafkapy.storage.log_file_utils import LOCK_FILE
from kafkapy.storage.storage_errors import LogDirLockedError


class LogDirLock:
    """An advisory lock on `.lock` in a log directory, held until `close`. Not thread-safe.

    The operating system frees it when the process dies.

    Ports: org.apache.kafka.server.util.FileLock
    """

    def __init__(self, log_dir: str) -> None:
        """Raises LogDirLockedError if somebody has it, OSError if there can be no lock file."""
        self.log_dir = log_dir
        self._fd: int | None = os.open(
            os.path.join(log_dir, LOCK_FILE), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644
        )
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise LogDirLockedError(
                f"The log directory {log_dir} (log.dirs) is in use by another broker"
            ) from None
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
