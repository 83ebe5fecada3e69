"""Which process runs the broker of a log directory."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from types import TracebackType

from kafkapy.common.errors import KafkaError

log = logging.getLogger(__name__)

PID_FILE = "kafkapy-server.pid"


class PidFile:
    """A file in the first log directory that holds the broker's pid while it runs.

    It may outlive a killed broker: the lock on the directory tells whether one is running.
    """

    def __init__(self, log_dir: Path) -> None:
        self._path = log_dir / PID_FILE

    def __enter__(self) -> PidFile:
        try:
            self._path.write_text(f"{os.getpid()}\n")
        except OSError as e:
            raise KafkaError(f"log.dirs: {self._path} cannot be written: {e.strerror}") from e
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._path.unlink(missing_ok=True)
        except OSError as e:
            log.warning("%s could not be removed: %s", self._path, e)

    def read(self) -> int | None:
        try:
            return int(self._path.read_text())
        except (OSError, ValueError):
            return None
