"""The requests that clients have sent, as far back as there is room."""

from __future__ import annotations

import threading
from collections import deque

from kafkapy.testing.recorded_request import RecordedRequest, api_key_named

_MAX_REQUESTS = 10_000
_MAX_BYTES = 16 * 1024 * 1024  # of bodies, which the requests keep alive


class RequestLog:
    """A ring of requests, bounded in number and in bytes. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # guarded by self._lock
        self._requests: deque[RecordedRequest] = deque()
        self._bytes = 0

    def add(self, request: RecordedRequest) -> None:
        with self._lock:
            self._requests.append(request)
            self._bytes += request.size_in_bytes
            while len(self._requests) > _MAX_REQUESTS or self._bytes > _MAX_BYTES:
                self._bytes -= self._requests.popleft().size_in_bytes

    def clear(self) -> None:
        with self._lock:
            self._requests.clear()
            self._bytes = 0

    def requests(
        self, api: str | None = None, *, topic: str | None = None, client_id: str | None = None
    ) -> list[RecordedRequest]:
        """The oldest first; only those that match what is given. ValueError for an unknown API."""
        if api is not None:
            api_key_named(api)
        with self._lock:
            requests = list(self._requests)
        return [
            request
            for request in requests
            if api in (None, request.api)
            and (topic is None or topic in request.topics)
            and client_id in (None, request.client_id)
        ]
