"""Events as lines of JSON, for programs that watch a command."""

from __future__ import annotations

import sys
import threading

from kafkapy.tools.message_json import json_line
from kafkapy.utils.time import Time


class JsonEvents:
    """Writes events to standard output. Thread-safe: a line is never torn."""

    def __init__(self, time: Time) -> None:
        self._time = time
        self._lock = threading.Lock()

    def emit(self, name: str, **fields: object) -> None:
        with self._lock:
            event = {"timestamp": self._time.milliseconds(), "name": name, **fields}
            sys.stdout.write(json_line(event) + "\n")
            sys.stdout.flush()
