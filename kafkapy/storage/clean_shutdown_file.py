"""The marker that a log directory was closed in order."""

import json
import os

from kafkapy.storage.file_system import FileSystem, atomic_write
from kafkapy.storage.log_file_utils import CLEAN_SHUTDOWN_FILE

_VERSION = 0
UNKNOWN_BROKER_EPOCH = -1


class CleanShutdownFile:
    """`.kafka_cleanshutdown` of one log directory. Not thread-safe.

    Ports: org.apache.kafka.storage.internals.checkpoint.CleanShutdownFileHandler
    """

    def __init__(self, log_dir: str, file_system: FileSystem) -> None:
        self.path = os.path.join(log_dir, CLEAN_SHUTDOWN_FILE)
        self._log_dir = log_dir
        self._file_system = file_system

    def write(self, broker_epoch: int = UNKNOWN_BROKER_EPOCH) -> None:
        content = {"version": _VERSION, "brokerEpoch": broker_epoch}
        atomic_write(
            self._file_system, self.path, json.dumps(content, separators=(",", ":")).encode()
        )

    def exists(self) -> bool:
        return self._file_system.exists(self.path)

    def delete(self) -> None:
        """Durable: a crash from here on must be seen as one."""
        if self._file_system.unlink_if_exists(self.path):
            self._file_system.fsync_dir(self._log_dir)

    def read_broker_epoch(self) -> int:
        """UNKNOWN_BROKER_EPOCH if there is no file, or an empty one as older brokers wrote it."""
        try:
            content = json.loads(self._file_system.read_bytes(self.path))
            return int(content["brokerEpoch"])
        except (OSError, ValueError, KeyError, TypeError):
            return UNKNOWN_BROKER_EPOCH
