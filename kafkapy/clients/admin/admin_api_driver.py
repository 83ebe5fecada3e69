"""Takes the keys of an admin call through look-ups, requests and retries."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, NamedTuple, TypeVar, cast

from kafkapy.clients.admin.admin_api_handler import AdminApiHandler
from kafkapy.clients.admin.call import ALREADY, Call
from kafkapy.clients.admin.call_runner import CallRunner
from kafkapy.clients.admin.lookup_strategy import LookupStrategy
from kafkapy.clients.admin.node_provider import (
    LEAST_LOADED_NODE,
    ConstantNodeIdProvider,
    NodeProvider,
)
from kafkapy.clients.admin.results import Results
from kafkapy.clients.client_request import VersionedRequest
from kafkapy.clients.deadline import Deadline
from kafkapy.common.errors import (
    KafkaError,
    RequestTimeoutError,
    RetriableError,
    ThrottlingQuotaExceededError,
    UnknownServerError,
    UnsupportedVersionError,
)
from kafkapy.common.protocol.schema import Message
from kafkapy.metadata.broker import Node
from kafkapy.utils.backoff import ExponentialBackoff

logger = logging.getLogger(__name__)

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R", bound=Message)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and after which waits a call is tried again."""

    max_retries: int
    backoff: ExponentialBackoff


class _Attempt(NamedTuple):
    """When a request may be sent, and after how many others."""

    tries: int = 0
    not_before_ms: int = 0
    after_metadata_version: int = ALREADY


class AdminApiDriver(Generic[K, V, R]):
    """One admin call about some keys, each of which is at any time the matter of one request.

    Made and run by one thread; its progress is made by whichever thread polls.

    Ports: org.apache.kafka.clients.admin.internals.AdminApiDriver
    """

    def __init__(
        self,
        handler: AdminApiHandler[K, V, R],
        keys: Iterable[K],
        runner: CallRunner,
        *,
        deadline: Deadline,
        retry_policy: RetryPolicy,
    ) -> None:
        # constant after construction
        self._handler = handler
        self._keys = tuple(dict.fromkeys(keys))
        self._runner = runner
        self._deadline = deadline
        self._retry_policy = retry_policy
        # for the thread that polls
        self._unsettled = set(self._keys)
        self._completed: dict[K, V] = {}
        self._errors: dict[K, KafkaError] = {}
        self._last_errors: dict[K, KafkaError] = {}  # those that were retried

    def run(self) -> Results[K, V]:
        """Each key's value or error, when all have one."""
        if self._keys:
            self._dispatch(self._keys, _Attempt())
            try:
                self._runner.run_until(lambda: not self._unsettled)
            finally:
                self._unsettled.clear()  # an interrupted call must not go on
        return Results(self._keys, self._completed, self._errors)

    # Sending

    def _dispatch(self, keys: Iterable[K], attempt: _Attempt) -> None:
        """Send the keys to their brokers, or ask first which those are."""
        strategy = self._handler.strategy
        if isinstance(strategy, LookupStrategy):
            self._look_up(strategy, list(keys), attempt)
            return
        by_provider: dict[NodeProvider, list[K]] = {}
        for key in keys:
            by_provider.setdefault(strategy.provider_for(key), []).append(key)
        for provider, its_keys in by_provider.items():
            self._fulfil(provider, its_keys, attempt)

    def _look_up(self, strategy: LookupStrategy[K], keys: Sequence[K], attempt: _Attempt) -> None:
        for batch in _batches(keys, is_batched=strategy.is_batched):
            self._submit(
                strategy.call_name,
                LEAST_LOADED_NODE,
                attempt,
                build_request=partial(_build_lookup, strategy, batch),
                on_response=partial(self._on_lookup, strategy, batch, attempt),
                on_failure=partial(self._on_lookup_failure, strategy, batch, attempt),
            )

    def _fulfil(self, provider: NodeProvider, keys: Sequence[K], attempt: _Attempt) -> None:
        handler = self._handler
        for batch in _batches(keys, is_batched=handler.is_batched):
            self._submit(
                handler.call_name,
                provider,
                attempt,
                build_request=partial(handler.build_request, batch),
                on_response=partial(self._on_response, provider, batch, attempt),
                on_failure=partial(self._on_failure, provider, batch, attempt),
            )

    def _submit(
        self,
        name: str,
        provider: NodeProvider,
        attempt: _Attempt,
        *,
        build_request: Callable[[int], VersionedRequest],
        on_response: Callable[[Node, Message], None],
        on_failure: Callable[[KafkaError], None],
    ) -> None:
        self._runner.submit(
            Call(
                name,
                provider,
                build_request,
                on_response,
                on_failure,
                is_wanted=lambda: bool(self._unsettled),
                deadline_ms=self._deadline.deadline_ms,
                not_before_ms=attempt.not_before_ms,
                after_metadata_version=attempt.after_metadata_version,
            )
        )

    # What came back

    def _on_lookup(
        self,
        strategy: LookupStrategy[K],
        keys: Sequence[K],
        attempt: _Attempt,
        node: Node,
        response: Message,
    ) -> None:
        result = strategy.handle_response(keys, response)
        self._fail(result.failed)
        by_broker: dict[int, list[K]] = {}
        for key, broker_id in result.mapped.items():
            by_broker.setdefault(broker_id, []).append(key)
        for broker_id, its_keys in by_broker.items():
            self._fulfil(ConstantNodeIdProvider(broker_id), its_keys, _Attempt(tries=attempt.tries))
        if again := self._may_retry(result.retried, attempt):
            self._look_up(strategy, list(result.retried), again)

    def _on_response(
        self,
        provider: NodeProvider,
        keys: Sequence[K],
        attempt: _Attempt,
        node: Node,
        response: Message,
    ) -> None:
        result = self._handler.handle_response(keys, cast(R, response), node)
        for key, value in result.completed.items():
            if key in self._unsettled:
                self._unsettled.discard(key)
                self._completed[key] = value
        self._fail(result.failed)
        if again := self._may_retry(result.retried, attempt):
            self._fulfil(provider, list(result.retried), again)
        if again := self._may_retry(result.unmapped, attempt):
            version = self._runner.request_metadata_update()
            self._dispatch(result.unmapped, again._replace(after_metadata_version=version))
        told = (result.completed, result.failed, result.retried, result.unmapped)
        self._fail(
            {
                key: UnknownServerError(
                    f"The response of node {node.id} to {self._handler.call_name} leaves out {key}"
                )
                for key in keys
                if not any(key in group for group in told)
            }
        )

    def _on_lookup_failure(
        self,
        strategy: LookupStrategy[K],
        keys: Sequence[K],
        attempt: _Attempt,
        error: KafkaError,
    ) -> None:
        if isinstance(error, UnsupportedVersionError):
            if strategy.handle_unsupported_version(error):
                self._look_up(strategy, keys, attempt)
            else:
                self._fail(dict.fromkeys(keys, error))
        else:
            self._retry_or_fail(keys, attempt, error)

    def _on_failure(
        self, provider: NodeProvider, keys: Sequence[K], attempt: _Attempt, error: KafkaError
    ) -> None:
        if isinstance(error, UnsupportedVersionError):
            failed = self._handler.handle_unsupported_version(keys, error)
            self._fail(failed)
            rest = [key for key in keys if key not in failed]
            if rest:
                self._fulfil(provider, rest, attempt)
        else:
            self._retry_or_fail(keys, attempt, error)

    def _retry_or_fail(self, keys: Sequence[K], attempt: _Attempt, error: KafkaError) -> None:
        errors = dict.fromkeys(keys, error)
        if not isinstance(error, RetriableError):
            self._fail(errors)
        elif again := self._may_retry(errors, attempt):
            # The broker may be gone for good: ask anew who is in charge.
            self._dispatch(keys, again)

    def _may_retry(self, errors: Mapping[K, KafkaError], attempt: _Attempt) -> _Attempt | None:
        """The next attempt for the keys; None when there are none, or when they fail for good."""
        if not errors:
            return None
        now_ms = self._deadline.now_ms
        if now_ms >= self._deadline.deadline_ms:
            self._fail({key: self._timed_out(key, error) for key, error in errors.items()})
            return None
        if attempt.tries >= self._retry_policy.max_retries:
            self._fail(errors)
            return None
        logger.debug("%s is tried again after %s", self._handler.call_name, errors)
        self._last_errors.update(errors)
        backoff_ms = self._retry_policy.backoff.backoff_ms(attempt.tries)
        return _Attempt(attempt.tries + 1, now_ms + backoff_ms)

    def _timed_out(self, key: K, error: KafkaError) -> KafkaError:
        before = self._last_errors.get(key)
        if isinstance(before, ThrottlingQuotaExceededError):
            return before  # which is why it took so long
        # That the time is over says less than what happened before.
        cause = before if before is not None and isinstance(error, RequestTimeoutError) else error
        timed_out = RequestTimeoutError(
            f"{self._handler.call_name} timed out after {self._deadline.timeout_ms} ms: {cause}"
        )
        timed_out.__cause__ = cause
        return timed_out

    def _fail(self, errors: Mapping[K, KafkaError]) -> None:
        for key, error in errors.items():
            if key in self._unsettled:
                self._unsettled.discard(key)
                self._errors[key] = error


def _batches(keys: Sequence[K], *, is_batched: bool) -> list[Sequence[K]]:
    return [keys] if is_batched else [[key] for key in keys]


def _build_lookup(
    strategy: LookupStrategy[K], keys: Sequence[K], timeout_ms: int
) -> VersionedRequest:
    return strategy.build_request(keys)
