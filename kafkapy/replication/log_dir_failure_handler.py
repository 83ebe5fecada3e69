"""The thread that takes lost log directories out of service."""

from __future__ import annotations

from collections.abc import Callable

from kafkapy.storage.log_dir_failure_channel import LogDirFailureChannel
from kafkapy.utils.threads import ShutdownableThread


class LogDirFailureHandler(ShutdownableThread):
    """Waits for directories that storage reports as failed and hands them on, one by one.

    Ports: kafka.server.ReplicaManager.LogDirFailureHandler
    """

    def __init__(
        self,
        channel: LogDirFailureChannel,
        handle: Callable[[str], None],
        *,
        on_failure: Callable[[BaseException], None] | None = None,
    ) -> None:
        super().__init__("LogDirFailureHandler", on_failure=on_failure)
        self._channel = channel
        self._handle = handle

    def initiate_shutdown(self) -> bool:
        initiated = super().initiate_shutdown()
        self._channel.interrupt()
        return initiated

    def do_work(self) -> None:
        log_dir = self._channel.take_next_offline_log_dir()
        if log_dir is not None:
            self._handle(log_dir)
