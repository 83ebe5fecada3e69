"""What the APIs of an admin client have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar, Generic, TypeVar

from kafkapy.clients.admin.lookup_strategy import NodeStrategy
from kafkapy.clients.client_request import VersionedRequest
from kafkapy.common.errors import (
    ApiError,
    Errors,
    InvalidMetadataError,
    KafkaError,
    RetriableError,
    UnsupportedVersionError,
)
from kafkapy.common.protocol.schema import Message
from kafkapy.metadata.broker import Node

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R", bound=Message)


def _errors_below(cls: type[ApiError]) -> frozenset[Errors]:
    return frozenset(e for e in Errors if e.exception_class and issubclass(e.exception_class, cls))


INVALID_METADATA_ERRORS = _errors_below(InvalidMetadataError)
RETRIABLE_ERRORS = _errors_below(RetriableError)


class ApiResult(Generic[K, V]):
    """What one response tells of its keys. For one thread.

    Ports: org.apache.kafka.clients.admin.internals.AdminApiHandler.ApiResult
    """

    __slots__ = ("_retriable", "_unmapping", "completed", "failed", "retried", "unmapped")

    def __init__(self, retriable: frozenset[Errors], unmapping: frozenset[Errors]) -> None:
        self._retriable = retriable
        self._unmapping = unmapping
        self.completed: dict[K, V] = {}
        self.failed: dict[K, KafkaError] = {}
        self.retried: dict[K, KafkaError] = {}  # to be tried again at the same broker
        self.unmapped: dict[K, KafkaError] = {}  # another broker is in charge

    def complete(self, key: K, value: V) -> None:
        self.completed[key] = value

    def fail(self, key: K, error: Errors, message: str | None = None) -> None:
        """File an error under what it means for the key."""
        if message is None:
            message = error.message if key is None else f"{key}: {error.message}"
        exception = error.exception(message)
        if error in self._unmapping:
            self.unmapped[key] = exception
        elif error in self._retriable:
            self.retried[key] = exception
        else:
            self.failed[key] = exception

    def file(self, key: K, error_code: int, value: V, message: str | None = None) -> None:
        """The value, unless the code is that of an error."""
        error = Errors.for_code(error_code)
        if error is Errors.NONE:
            self.completed[key] = value
        else:
            self.fail(key, error, message)

    def fail_all(self, keys: Iterable[K], error: Errors, message: str | None = None) -> None:
        for key in keys:
            self.fail(key, error, message)


class AdminApiHandler(ABC, Generic[K, V, R]):
    """One call of an API: its requests, and what their responses mean for each key.

    For the thread that polls. `retriable` are the errors after which a key is tried again at the
    same broker, `unmapping` those that say that another one is in charge.

    Ports: org.apache.kafka.clients.admin.internals.AdminApiHandler
    """

    call_name: ClassVar[str]
    retriable: frozenset[Errors] = frozenset()
    unmapping: frozenset[Errors] = frozenset()

    def __init__(self, strategy: NodeStrategy[K], *, is_batched: bool = True) -> None:
        self.strategy = strategy
        self.is_batched = is_batched  # whether one request may be about several keys

    @abstractmethod
    def build_request(self, keys: Sequence[K], timeout_ms: int) -> VersionedRequest: ...

    @abstractmethod
    def handle_response(self, keys: Sequence[K], response: R, node: Node) -> ApiResult[K, V]: ...

    def handle_unsupported_version(
        self, keys: Sequence[K], error: UnsupportedVersionError
    ) -> dict[K, KafkaError]:
        """The keys that fail by it. The others are asked about again, in some other way."""
        return dict.fromkeys(keys, error)

    def new_result(self) -> ApiResult[K, V]:
        return ApiResult(self.retriable, self.unmapping)


class SingleHandler(AdminApiHandler[None, V, R]):
    """A call about one thing, which needs no key."""

    @abstractmethod
    def build(self, timeout_ms: int) -> VersionedRequest: ...

    @abstractmethod
    def read(self, response: R) -> V:
        """ApiError for a response that is one."""

    def build_request(self, keys: Sequence[None], timeout_ms: int) -> VersionedRequest:
        return self.build(timeout_ms)

    def handle_response(self, keys: Sequence[None], response: R, node: Node) -> ApiResult[None, V]:
        result = self.new_result()
        try:
            result.complete(None, self.read(response))
        except ApiError as error:
            result.fail(None, Errors.for_exception(error), str(error))
        return result


def raise_for(error_code: int, message: str | None = None) -> None:
    error = Errors.for_code(error_code)
    if error is not Errors.NONE:
        raise error.exception(message)
