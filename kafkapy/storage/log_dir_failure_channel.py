"""How the storage layer tells that a log directory is lost."""

import logging
import queue
import threading

log = logging.getLogger(__name__)


class LogDirFailureChannel:
    """The offline log directories, and a queue of those that nobody has handled yet. Thread-safe.

    Ports: org.apache.kafka.storage.internals.log.LogDirFailureChannel
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Replaced, never changed, so that asking needs no lock. Written under self._lock.
        self._offline_log_dirs: frozenset[str] = frozenset()
        self._queue: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def maybe_add_offline_log_dir(
        self, log_dir: str, message: str, error: BaseException | None = None
    ) -> None:
        """The first failure of a directory counts; later ones only repeat it."""
        with self._lock:
            if log_dir in self._offline_log_dirs:
                return
            self._offline_log_dirs |= {log_dir}
        log.error("The log directory %s goes offline: %s", log_dir, message, exc_info=error)
        self._queue.put(log_dir)

    def has_offline_log_dir(self, log_dir: str) -> bool:
        return log_dir in self._offline_log_dirs

    def take_next_offline_log_dir(self, timeout_s: float | None = None) -> str | None:
        """Blocks for the next failed directory; None after `timeout_s` or `interrupt`."""
        try:
            return self._queue.get(timeout=timeout_s)
        except queue.Empty:
            return None

    def interrupt(self) -> None:
        """Let one who waits, now or later, go without a directory."""
        self._queue.put(None)
