"""The outcome of a send, once it is known."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from kafkapy.clients.producer.record_metadata import UNKNOWN_OFFSET, RecordMetadata
from kafkapy.common.errors import KafkaError, RequestTimeoutError
from kafkapy.common.record.record import NO_TIMESTAMP
from kafkapy.common.types import TopicPartition

logger = logging.getLogger(__name__)

# Called with the metadata and None, or with None and the error.
DeliveryCallback = Callable[[RecordMetadata | None, KafkaError | None], None]
_Action = Callable[[], None]


class ProduceRequestResult:
    """What became of one batch; all its records' futures share it. Thread-safe.

    Ports: org.apache.kafka.clients.producer.internals.ProduceRequestResult
    """

    __slots__ = (
        "_actions",
        "_has_called_back",
        "_lock",
        "_waiters",
        "base_offset",
        "error_by_index",
        "is_done",
        "log_append_time",
        "topic_partition",
    )

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.topic_partition = topic_partition  # constant after construction
        self._lock = threading.Lock()
        # guarded by self._lock
        self._actions: list[_Action] = []
        self._waiters: threading.Event | None = None
        self._has_called_back = False
        # constant once `is_done`
        self.is_done = False
        self.base_offset = UNKNOWN_OFFSET
        self.log_append_time = NO_TIMESTAMP
        self.error_by_index: Callable[[int], KafkaError] | None = None

    def complete(
        self,
        base_offset: int,
        log_append_time: int,
        error_by_index: Callable[[int], KafkaError] | None,
    ) -> None:
        """Set the outcome, then wake who waits and call who wants to be called, in order."""
        self.base_offset = base_offset
        self.log_append_time = log_append_time
        self.error_by_index = error_by_index
        with self._lock:
            self.is_done = True
            actions, self._actions = self._actions, []
        try:
            for action in actions:
                self._call(action)
        finally:
            with self._lock:
                self._has_called_back = True
                waiters = self._waiters
            if waiters is not None:
                waiters.set()

    def when_done(self, action: _Action) -> None:
        """Call it when the outcome is known, on the sender's thread; at once if it is already."""
        with self._lock:
            if not self.is_done:
                self._actions.append(action)
                return
        self._call(action)

    def wait(self, timeout_s: float | None, *, for_callbacks: bool = False) -> bool:
        """Until the outcome is known, and if that is wanted until everybody has been called."""
        with self._lock:
            if self._has_called_back or (self.is_done and not for_callbacks):
                return True
            if self._waiters is None:
                self._waiters = threading.Event()
            waiters = self._waiters
        return waiters.wait(timeout_s)

    def _call(self, action: _Action) -> None:
        try:
            action()
        except Exception:
            logger.exception("A delivery callback for %s failed", self.topic_partition)


class FutureRecordMetadata:
    """The outcome of one record. Thread-safe.

    Where a batch was split after it was sent, the future goes on with the part that has its record.

    Ports: org.apache.kafka.clients.producer.internals.FutureRecordMetadata
    """

    __slots__ = (
        "_index",
        "_next",
        "_result",
        "_serialized_key_size",
        "_serialized_value_size",
        "_timestamp",
    )

    def __init__(
        self,
        result: ProduceRequestResult,
        index: int,
        timestamp: int,
        serialized_key_size: int,
        serialized_value_size: int,
    ) -> None:
        # Positional, for speed: one is made for every record.
        self._result = result
        self._index = index
        self._timestamp = timestamp
        self._serialized_key_size = serialized_key_size
        self._serialized_value_size = serialized_value_size
        self._next: FutureRecordMetadata | None = None

    @property
    def topic_partition(self) -> TopicPartition:
        return self._result.topic_partition

    @property
    def is_done(self) -> bool:
        future = self._last()
        return future._result.is_done

    def succeeded(self) -> bool:
        future = self._last()
        return future._result.is_done and future._result.error_by_index is None

    def failed(self) -> bool:
        future = self._last()
        return future._result.is_done and future._result.error_by_index is not None

    @property
    def value(self) -> RecordMetadata | None:
        """None until it is known, and when the send failed."""
        return self._last()._metadata() if self.succeeded() else None

    @property
    def exception(self) -> KafkaError | None:
        """None until it is known, and when the send succeeded."""
        return self._last()._error() if self.is_done else None

    def get(self, timeout: float | None = None) -> RecordMetadata:
        """Wait, in seconds; raises the error of the send, or RequestTimeoutError."""
        future: FutureRecordMetadata | None = self
        deadline = None if timeout is None else time.monotonic() + timeout
        while future is not None:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not future._result.wait(left):
                raise RequestTimeoutError(
                    f"No outcome of the send to {future._result.topic_partition} in {timeout} s"
                )
            last, future = future, future._next
        error = last._error()
        if error is not None:
            raise error
        return last._metadata()

    def add_callback(
        self, callback: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> FutureRecordMetadata:
        """Call `callback(*args, metadata, **kwargs)` when the send has succeeded."""

        def on_completion(metadata: RecordMetadata | None, error: KafkaError | None) -> None:
            if error is None:
                callback(*args, metadata, **kwargs)

        self.when_done(on_completion)
        return self

    def add_errback(
        self, errback: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> FutureRecordMetadata:
        """Call `errback(*args, error, **kwargs)` when the send has failed."""

        def on_completion(metadata: RecordMetadata | None, error: KafkaError | None) -> None:
            if error is not None:
                errback(*args, error, **kwargs)

        self.when_done(on_completion)
        return self

    def add_both(
        self, callback: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> FutureRecordMetadata:
        """Call it with the metadata or the error."""
        self.when_done(lambda metadata, error: callback(*args, error or metadata, **kwargs))
        return self

    def when_done(self, callback: DeliveryCallback) -> None:
        """Call it once, with metadata or error, on the sender's thread or at once."""

        def action() -> None:
            following = self._next
            if following is not None:
                following.when_done(callback)
                return
            error = self._error()
            callback(None if error is not None else self._metadata(), error)

        self._result.when_done(action)

    def chain(self, future: FutureRecordMetadata) -> None:
        """The record is in another batch now. Before the result of this one is completed."""
        self._last()._next = future

    def _last(self) -> FutureRecordMetadata:
        future = self
        while future._next is not None:
            future = future._next
        return future

    def _error(self) -> KafkaError | None:
        error_by_index = self._result.error_by_index
        return None if error_by_index is None else error_by_index(self._index)

    def _metadata(self) -> RecordMetadata:
        result = self._result
        topic, partition = result.topic_partition
        offset = result.base_offset
        if offset != UNKNOWN_OFFSET:
            offset += self._index
        timestamp = result.log_append_time
        if timestamp == NO_TIMESTAMP:
            timestamp = self._timestamp
        return RecordMetadata(
            topic,
            partition,
            offset,
            timestamp,
            self._serialized_key_size,
            self._serialized_value_size,
        )


def failed_future(topic_partition: TopicPartition, error: KafkaError) -> FutureRecordMetadata:
    """Of a record that never got into a batch."""
    result = ProduceRequestResult(topic_partition)
    result.complete(UNKNOWN_OFFSET, NO_TIMESTAMP, lambda index: error)
    return FutureRecordMetadata(result, 0, NO_TIMESTAMP, -1, -1)
