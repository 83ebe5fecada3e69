"""Threads that do one thing over and over until they are told to stop."""

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable

logger = logging.getLogger(__name__)


class ShutdownableThread(ABC):
    """A named daemon thread that repeats `do_work` until shut down. Thread-safe.

    An exception out of `do_work` ends the thread: it is logged and handed to `on_failure`, where
    the owner decides whether to restart it or stop the broker; without one it is for the process to
    decide, by threading.excepthook.

    Ports: org.apache.kafka.server.util.ShutdownableThread
    """

    def __init__(
        self, name: str, *, on_failure: Callable[[BaseException], None] | None = None
    ) -> None:
        self.name = name  # constant after construction
        self._on_failure = on_failure
        self._shutdown_initiated = threading.Event()
        self._shutdown_complete = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Nobody has asked it to stop yet."""
        return not self._shutdown_initiated.is_set()

    @property
    def is_shutdown_complete(self) -> bool:
        return self._shutdown_complete.is_set()

    @property
    def is_failed(self) -> bool:
        """It ended although nobody asked it to."""
        return self._shutdown_complete.is_set() and not self._shutdown_initiated.is_set()

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    @abstractmethod
    def do_work(self) -> None:
        """One round. It should come back soon after `initiate_shutdown`."""

    def initiate_shutdown(self) -> bool:
        """Ask the thread to stop after its round; False when it was asked before."""
        if self._shutdown_initiated.is_set():
            return False
        logger.debug("Shutting down thread %s", self.name)
        self._shutdown_initiated.set()
        return True

    def await_shutdown(self) -> None:
        """Wait until the thread has ended. A thread never started has."""
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def shutdown(self) -> None:
        self.initiate_shutdown()
        self.await_shutdown()

    def pause(self, timeout_ms: int) -> None:
        """Sleep that ends early when the thread is asked to stop."""
        self._shutdown_initiated.wait(timeout_ms / 1000)

    def _run(self) -> None:
        try:
            while not self._shutdown_initiated.is_set():
                self.do_work()
        except BaseException as error:
            self._shutdown_complete.set()
            if self._shutdown_initiated.is_set():
                logger.debug("Thread %s ended while shutting down", self.name, exc_info=True)
            elif self._on_failure is not None:
                logger.exception("Thread %s failed", self.name)
                self._on_failure(error)
            else:
                raise  # to threading.excepthook
        finally:
            self._shutdown_complete.set()
