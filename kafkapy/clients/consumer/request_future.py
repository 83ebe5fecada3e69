"""What will become of a request of the consumer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from kafkapy.common.errors import KafkaError, RetriableError

T = TypeVar("T")
U = TypeVar("U")


class RequestFuture(Generic[T]):
    """A value or an error that comes when the network is polled. Thread-safe.

    Nobody waits on it: whoever wants it done polls the ConsumerNetworkClient. Listeners run in the
    thread that completes it, or at once when it is complete already.

    Ports: org.apache.kafka.clients.consumer.internals.RequestFuture
    """

    __slots__ = ("_error", "_listeners", "_lock", "_value", "is_done")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # guarded by self._lock
        self.is_done = False
        self._value: T | None = None
        self._error: KafkaError | None = None
        self._listeners: list[tuple[Callable[[T], None], Callable[[KafkaError], None]]] = []

    @staticmethod
    def failure(error: KafkaError) -> RequestFuture[T]:
        future: RequestFuture[T] = RequestFuture()
        future.fail(error)
        return future

    @staticmethod
    def success(value: U) -> RequestFuture[U]:
        future: RequestFuture[U] = RequestFuture()
        future.complete(value)
        return future

    @property
    def succeeded(self) -> bool:
        return self.is_done and self._error is None

    @property
    def failed(self) -> bool:
        return self._error is not None

    @property
    def is_retriable(self) -> bool:
        return isinstance(self._error, RetriableError)

    @property
    def value(self) -> T:
        """Only of one that has succeeded."""
        if not self.succeeded:
            raise ValueError("the request has not succeeded")
        return self._value  # type: ignore[return-value]

    @property
    def error(self) -> KafkaError:
        """Only of one that has failed."""
        if self._error is None:
            raise ValueError("the request has not failed")
        return self._error

    def complete(self, value: T) -> None:
        with self._lock:
            if self.is_done:
                raise ValueError("the request is complete already")
            self._value = value
            self.is_done = True
            listeners, self._listeners = self._listeners, []
        for on_success, _ in listeners:
            on_success(value)

    def fail(self, error: KafkaError) -> None:
        with self._lock:
            if self.is_done:
                raise ValueError("the request is complete already")
            self._error = error
            self.is_done = True
            listeners, self._listeners = self._listeners, []
        for _, on_failure in listeners:
            on_failure(error)

    def add_listener(
        self, on_success: Callable[[T], None], on_failure: Callable[[KafkaError], None]
    ) -> None:
        with self._lock:
            if not self.is_done:
                self._listeners.append((on_success, on_failure))
                return
        if self._error is not None:
            on_failure(self._error)
        else:
            on_success(self._value)  # type: ignore[arg-type]

    def compose(
        self,
        on_success: Callable[[T, RequestFuture[U]], None],
        on_failure: Callable[[KafkaError, RequestFuture[U]], None] | None = None,
    ) -> RequestFuture[U]:
        """A future that `on_success` completes from this one's value; errors pass through."""
        adapted: RequestFuture[U] = RequestFuture()

        def failed(error: KafkaError) -> None:
            if on_failure is None:
                adapted.fail(error)
            else:
                on_failure(error, adapted)

        self.add_listener(lambda value: on_success(value, adapted), failed)
        return adapted

    def chain(self, future: RequestFuture[T]) -> None:
        """Complete the other as this one is."""
        self.add_listener(future.complete, future.fail)
