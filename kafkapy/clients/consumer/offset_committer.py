"""Commits offsets to the group's coordinator, and reads them back."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from kafkapy.clients.client_request import ClientResponse, VersionedRequest
from kafkapy.clients.consumer.abstract_coordinator import AbstractCoordinator
from kafkapy.clients.consumer.consumer_errors import (
    CommitFailedError,
    RetriableCommitFailedError,
)
from kafkapy.clients.consumer.consumer_interceptor import ConsumerInterceptors
from kafkapy.clients.consumer.group_membership import NO_GENERATION, Generation
from kafkapy.clients.consumer.offset_and_metadata import OffsetAndMetadata
from kafkapy.clients.consumer.request_future import RequestFuture
from kafkapy.clients.consumer.subscription_state import SubscriptionState
from kafkapy.clients.deadline import Deadline
from kafkapy.common.errors import (
    CoordinatorNotAvailableError,
    Errors,
    FencedInstanceIdError,
    GroupAuthorizationError,
    KafkaError,
    RebalanceInProgressError,
    RetriableError,
    TopicAuthorizationError,
    UnstableOffsetCommitError,
)
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
)
from kafkapy.common.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kafkapy.common.protocol.schema import Message
from kafkapy.common.types import TopicPartition

logger = logging.getLogger(__name__)

Offsets = Mapping[TopicPartition, OffsetAndMetadata]
# the offsets, and the error or None
OffsetCommitCallback = Callable[[Offsets, Exception | None], None]

_NO_EPOCH = -1
_FIRST_FETCH_VERSION_WITH_GROUPS = 8
_FIRST_FETCH_VERSION_WITH_STABLE = 7


@dataclass(frozen=True, slots=True)
class _Completion:
    callback: OffsetCommitCallback | None
    offsets: Offsets
    error: KafkaError | None


@dataclass(frozen=True, slots=True)
class _PendingFetch:
    """A request for committed offsets that outlived the call that made it."""

    partitions: frozenset[TopicPartition]
    generation: Generation | None
    future: RequestFuture[dict[TopicPartition, OffsetAndMetadata | None]]


class OffsetCommitter:
    """Commits as a member of a group, or on its own for partitions assigned by hand.

    Called by the thread that polls; answers may come in by the heartbeat thread. Callbacks of
    asynchronous commits run in the polling thread, in the order of the commits.

    Ports: org.apache.kafka.clients.consumer.internals.ConsumerCoordinator
    """

    def __init__(
        self,
        coordinator: AbstractCoordinator,
        subscriptions: SubscriptionState,
        interceptors: ConsumerInterceptors,
    ) -> None:
        # constant after construction
        self._coordinator = coordinator
        self._client = coordinator.client
        self._subscriptions = subscriptions
        self._interceptors = interceptors
        self._time = coordinator.time
        # appended to by one thread and taken from by another, both atomic
        self._completed: deque[_Completion] = deque()
        self._lock = threading.Lock()
        self._waiting_for_coordinator = 0  # guarded by self._lock
        self._in_flight = 0  # guarded by self._lock
        self._fenced: FencedInstanceIdError | None = None
        self._pending_fetch: _PendingFetch | None = None

    # Committing

    def commit_sync(self, offsets: Offsets, deadline: Deadline) -> bool:
        """Try until it succeeds; False when the deadline came first.

        Callbacks of commits made before have been called when this returns.
        """
        self.invoke_completed_callbacks()
        if not offsets:
            return self.await_pending_commits(deadline)
        attempts = 0
        while True:
            if not self._coordinator.ensure_coordinator_ready(deadline):
                return False
            future = self._send_commit(offsets)
            self._client.poll_future(future, deadline)
            self.invoke_completed_callbacks()
            if future.succeeded:
                self._interceptors.on_commit(offsets)
                return True
            if future.failed and not future.is_retriable:
                raise future.error
            if deadline.is_expired:
                return False
            backoff_ms = self._coordinator.retry_backoff.backoff_ms(attempts)
            attempts += 1
            self._time.sleep(min(backoff_ms, deadline.remaining_ms))

    def commit_async(
        self, offsets: Offsets, callback: OffsetCommitCallback | None
    ) -> RequestFuture[None] | None:
        """Send it and go on; None when the coordinator has to be found first."""
        self.invoke_completed_callbacks()
        future: RequestFuture[None] | None = None
        if not offsets or not self._coordinator.finder.is_unknown():
            future = self._do_commit_async(offsets, callback)
        else:
            # Several commits may wait for one look-up; they are then sent in their order.
            with self._lock:
                self._waiting_for_coordinator += 1

            def found(_: None) -> None:
                with self._lock:
                    self._waiting_for_coordinator -= 1
                self._do_commit_async(offsets, callback)

            def not_found(error: KafkaError) -> None:
                with self._lock:
                    self._waiting_for_coordinator -= 1
                self._completed.append(_Completion(callback, offsets, _retriable(error)))

            self._coordinator.finder.lookup().add_listener(found, not_found)
        self._client.poll_no_wakeup()
        return future

    def await_pending_commits(self, deadline: Deadline) -> bool:
        """Wait for asynchronous commits, and call their callbacks."""
        while True:
            self.invoke_completed_callbacks()
            with self._lock:
                waiting, in_flight = self._waiting_for_coordinator, self._in_flight
            if waiting == 0 and in_flight == 0:
                return True
            if deadline.is_expired:
                return False
            if waiting:
                self._coordinator.ensure_coordinator_ready(deadline)
            self._client.poll(deadline)

    def invoke_completed_callbacks(self) -> None:
        """FencedInstanceIdError when a commit has found this member replaced."""
        if self._fenced is not None:
            raise self._fenced
        while self._completed:
            completion = self._completed.popleft()
            if completion.callback is not None:
                completion.callback(completion.offsets, completion.error)
            elif completion.error is not None:
                logger.error("Committing %s failed: %s", dict(completion.offsets), completion.error)

    def _do_commit_async(
        self, offsets: Offsets, callback: OffsetCommitCallback | None
    ) -> RequestFuture[None]:
        future = self._send_commit(offsets)
        with self._lock:
            self._in_flight += 1

        def succeeded(_: None) -> None:
            self._interceptors.on_commit(offsets)
            self._completed.append(_Completion(callback, offsets, None))
            with self._lock:
                self._in_flight -= 1

        def failed(error: KafkaError) -> None:
            if isinstance(error, FencedInstanceIdError):
                self._fenced = error
            self._completed.append(_Completion(callback, offsets, _retriable(error)))
            with self._lock:
                self._in_flight -= 1

        future.add_listener(succeeded, failed)
        return future

    def _send_commit(self, offsets: Offsets) -> RequestFuture[None]:
        if not offsets:
            return RequestFuture.success(None)
        coordinator = self._coordinator.finder.coordinator
        if coordinator is None:
            return RequestFuture.failure(CoordinatorNotAvailableError("The coordinator is unknown"))
        generation = NO_GENERATION
        instance_id: str | None = None
        if self._subscriptions.is_auto_assigned:
            stable = self._coordinator.generation_if_stable()
            if stable is None:
                return RequestFuture.failure(self._not_stable())
            generation = stable
            instance_id = self._coordinator.config.group_instance_id
        request = OffsetCommitRequest(
            group_id=self._coordinator.config.group_id,
            generation_id_or_member_epoch=generation.generation_id,
            member_id=generation.member_id,
            group_instance_id=instance_id,
            topics=_commit_topics(offsets),
        )
        return self._coordinator.send_to_coordinator(
            coordinator,
            VersionedRequest(request, min_version=2 if instance_id is None else 7),
        ).compose(lambda response, future: self._handle_commit(response, generation, future))

    def _not_stable(self) -> KafkaError:
        if self._coordinator.is_rebalance_in_progress:
            return RebalanceInProgressError(
                "Offsets cannot be committed while the group rebalances: poll, then commit again"
            )
        return CommitFailedError(
            "Offsets cannot be committed: this consumer is not a member of its group any more,"
            " perhaps because poll() was not called for max.poll.interval.ms"
        )

    def _handle_commit(
        self, response: ClientResponse, sent: Generation, future: RequestFuture[None]
    ) -> None:
        message = response.message
        assert isinstance(message, OffsetCommitResponse)
        unauthorized: set[str] = set()
        for topic in message.topics:
            for answer in topic.partitions:
                error = Errors.for_code(answer.error_code)
                if error is Errors.NONE:
                    continue
                if error is Errors.TOPIC_AUTHORIZATION_FAILED:
                    unauthorized.add(topic.name)
                    continue
                partition = TopicPartition(topic.name, answer.partition_index)
                logger.info("Committing the offset of %s failed: %s", partition, error.name)
                future.fail(self._commit_error(error, partition, sent))
                return
        if unauthorized:
            future.fail(TopicAuthorizationError(f"Not authorized for {sorted(unauthorized)}"))
            return
        self._coordinator.metrics.committed(response.request_latency_ms)
        future.complete(None)

    def _commit_error(
        self, error: Errors, partition: TopicPartition, sent: Generation
    ) -> KafkaError:
        coordinator = self._coordinator
        group_id = coordinator.config.group_id
        match error:
            case Errors.GROUP_AUTHORIZATION_FAILED:
                return GroupAuthorizationError(f"Not authorized for group {group_id}")
            case Errors.COORDINATOR_NOT_AVAILABLE | Errors.NOT_COORDINATOR:
                coordinator.mark_coordinator_unknown(error.name)
            case Errors.REQUEST_TIMED_OUT:
                coordinator.mark_coordinator_unknown(error.name)
            case Errors.REBALANCE_IN_PROGRESS:
                coordinator.request_rejoin("a commit found the group rebalancing")
                return RebalanceInProgressError(
                    f"Group {group_id} rebalances: poll, then commit again"
                )
            case Errors.FENCED_INSTANCE_ID | Errors.UNKNOWN_MEMBER_ID | Errors.ILLEGAL_GENERATION:
                is_unchanged = coordinator.is_generation_unchanged(sent)
                if not is_unchanged and coordinator.is_rebalance_in_progress:
                    return RebalanceInProgressError(
                        f"Group {group_id} rebalances: poll, then commit again"
                    )
                if error is Errors.FENCED_INSTANCE_ID and is_unchanged:
                    return error.exception(f"Group {group_id}: {error.message}")
                if is_unchanged and self._subscriptions.is_auto_assigned:
                    coordinator.reset_state_on_error(
                        error, keep_member_id=error is Errors.ILLEGAL_GENERATION
                    )
                return CommitFailedError(
                    f"Offsets cannot be committed: group {group_id} has gone on without this"
                    f" member ({error.name}), perhaps because poll() was not called for"
                    " max.poll.interval.ms"
                )
        return error.exception(f"Committing the offset of {partition}: {error.message}")

    # Reading

    def fetch_committed(
        self, partitions: Collection[TopicPartition], deadline: Deadline
    ) -> dict[TopicPartition, OffsetAndMetadata | None] | None:
        """What is committed, None for partitions without; None when the deadline came first."""
        if not partitions:
            return {}
        wanted = frozenset(partitions)
        generation = self._coordinator.generation_if_stable()
        pending = self._pending_fetch
        if pending is not None and (pending.partitions, pending.generation) != (wanted, generation):
            pending = None
        attempts = 0
        while True:
            if not self._coordinator.ensure_coordinator_ready(deadline):
                return None
            if pending is None:
                pending = _PendingFetch(wanted, generation, self._send_fetch(wanted))
                self._pending_fetch = pending
            if not self._client.poll_future(pending.future, deadline):
                return None
            future = pending.future
            self._pending_fetch = pending = None
            if future.succeeded:
                return future.value
            if not future.is_retriable:
                raise future.error
            backoff_ms = self._coordinator.retry_backoff.backoff_ms(attempts)
            attempts += 1
            self._time.sleep(min(backoff_ms, deadline.remaining_ms))
            if deadline.is_expired:
                return None

    def _send_fetch(
        self, partitions: frozenset[TopicPartition]
    ) -> RequestFuture[dict[TopicPartition, OffsetAndMetadata | None]]:
        coordinator = self._coordinator.finder.coordinator
        if coordinator is None:
            return RequestFuture.failure(CoordinatorNotAvailableError("The coordinator is unknown"))
        group_id = self._coordinator.config.group_id
        by_topic: dict[str, list[int]] = {}
        for topic, partition in sorted(partitions):
            by_topic.setdefault(topic, []).append(partition)

        def build(version: int) -> Message:
            return _fetch_request(group_id, by_topic, version)

        return self._coordinator.send_to_coordinator(
            coordinator, VersionedRequest(build, api_key=ApiKeys.OFFSET_FETCH, min_version=1)
        ).compose(self._handle_fetch)

    def _handle_fetch(
        self,
        response: ClientResponse,
        future: RequestFuture[dict[TopicPartition, OffsetAndMetadata | None]],
    ) -> None:
        message = response.message
        assert isinstance(message, OffsetFetchResponse)
        answer = message.groups[0] if message.groups else message
        error = Errors.for_code(answer.error_code)
        if error is not Errors.NONE:
            if error in (Errors.COORDINATOR_NOT_AVAILABLE, Errors.NOT_COORDINATOR):
                self._coordinator.mark_coordinator_unknown(error.name)
            future.fail(error.exception(f"Reading committed offsets: {error.message}"))
            return
        offsets: dict[TopicPartition, OffsetAndMetadata | None] = {}
        unauthorized: set[str] = set()
        unstable: set[TopicPartition] = set()
        for topic in answer.topics:
            for committed in topic.partitions:
                partition = TopicPartition(topic.name, committed.partition_index)
                error = Errors.for_code(committed.error_code)
                if error is Errors.TOPIC_AUTHORIZATION_FAILED:
                    unauthorized.add(topic.name)
                elif error is Errors.UNSTABLE_OFFSET_COMMIT:
                    unstable.add(partition)
                elif error is not Errors.NONE:
                    future.fail(KafkaError(f"Reading the offset of {partition}: {error.message}"))
                    return
                elif committed.committed_offset < 0:
                    offsets[partition] = None
                else:
                    epoch = committed.committed_leader_epoch
                    offsets[partition] = OffsetAndMetadata(
                        committed.committed_offset,
                        committed.metadata or "",
                        epoch if epoch >= 0 else None,
                    )
        if unauthorized:
            future.fail(TopicAuthorizationError(f"Not authorized for {sorted(unauthorized)}"))
        elif unstable:
            future.fail(
                UnstableOffsetCommitError(
                    f"Offsets of {sorted(map(str, unstable))} are part of an open transaction"
                )
            )
        else:
            future.complete(offsets)


def _retriable(error: KafkaError) -> KafkaError:
    """What a callback gets: it may commit again, which the consumer does not do by itself lest a
    later commit be overtaken."""
    if not isinstance(error, RetriableError):
        return error
    wrapped = RetriableCommitFailedError(f"Offset commit failed, and may be tried again: {error}")
    wrapped.__cause__ = error
    return wrapped


def _commit_topics(offsets: Offsets) -> list[OffsetCommitRequest.OffsetCommitRequestTopic]:
    topics: dict[str, OffsetCommitRequest.OffsetCommitRequestTopic] = {}
    for partition, offset in offsets.items():
        topic = topics.setdefault(
            partition.topic, OffsetCommitRequest.OffsetCommitRequestTopic(name=partition.topic)
        )
        topic.partitions.append(
            OffsetCommitRequest.OffsetCommitRequestPartition(
                partition_index=partition.partition,
                committed_offset=offset.offset,
                committed_leader_epoch=(
                    _NO_EPOCH if offset.leader_epoch is None else offset.leader_epoch
                ),
                committed_metadata=offset.metadata,
            )
        )
    return list(topics.values())


def _fetch_request(group_id: str, by_topic: Mapping[str, list[int]], version: int) -> Message:
    # Offsets of open transactions are not read over: they may become the last ones committed.
    require_stable = version >= _FIRST_FETCH_VERSION_WITH_STABLE
    if version < _FIRST_FETCH_VERSION_WITH_GROUPS:
        return OffsetFetchRequest(
            group_id=group_id,
            topics=[
                OffsetFetchRequest.OffsetFetchRequestTopic(name=topic, partition_indexes=partitions)
                for topic, partitions in by_topic.items()
            ],
            require_stable=require_stable,
        )
    group = OffsetFetchRequest.OffsetFetchRequestGroup(
        group_id=group_id,
        topics=[
            OffsetFetchRequest.OffsetFetchRequestTopics(name=topic, partition_indexes=partitions)
            for topic, partitions in by_topic.items()
        ],
    )
    return OffsetFetchRequest(groups=[group], require_stable=require_stable)
