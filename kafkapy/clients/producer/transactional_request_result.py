"""The outcome of one step of a transaction."""

from __future__ import annotations

import threading

from kafkapy.common.errors import KafkaError, RequestTimeoutError


class TransactionalRequestResult:
    """Set by the sender, waited for by whoever asked for the step. Thread-safe.

    Ports: org.apache.kafka.clients.producer.internals.TransactionalRequestResult
    """

    def __init__(self, operation: str) -> None:
        self._operation = operation  # constant after construction
        self._completed = threading.Event()
        self.error: KafkaError | None = None  # constant once completed
        self.is_acked = False  # somebody has heard of the outcome

    def done(self) -> None:
        self._completed.set()

    def fail(self, error: KafkaError) -> None:
        self.error = error
        self._completed.set()

    @property
    def is_completed(self) -> bool:
        return self._completed.is_set()

    @property
    def is_successful(self) -> bool:
        return self.is_completed and self.error is None

    def wait(self, timeout_ms: int) -> None:
        """Raises the step's error, or RequestTimeoutError: then the step may be asked for again."""
        if not self._completed.wait(timeout_ms / 1000):
            raise RequestTimeoutError(f"{self._operation} took longer than {timeout_ms} ms")
        self.is_acked = True
        if self.error is not None:
            raise self.error
