"""Looks offsets up: by time, at the ends of logs, and in the history of leaders."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from kafkapy.clients.client_request import ClientResponse, VersionedRequest
from kafkapy.clients.consumer.consumer_errors import LogTruncationError
from kafkapy.clients.consumer.consumer_metadata import ConsumerMetadata
from kafkapy.clients.consumer.consumer_network_client import ConsumerNetworkClient
from kafkapy.clients.consumer.offset_and_metadata import OffsetAndTimestamp
from kafkapy.clients.consumer.offset_for_leader_epoch_client import (
    EpochEndOffsets,
    leader_epoch_request,
    read_leader_epoch_response,
    supports_leader_epochs,
)
from kafkapy.clients.consumer.offset_reset_strategy import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    OffsetResetStrategy,
)
from kafkapy.clients.consumer.request_future import RequestFuture
from kafkapy.clients.consumer.subscription_state import SubscriptionState
from kafkapy.clients.consumer.topic_partition_state import FetchPosition
from kafkapy.clients.deadline import Deadline
from kafkapy.common.errors import (
    Errors,
    KafkaError,
    RetriableError,
    TopicAuthorizationError,
)
from kafkapy.common.protocol.messages.list_offsets import (
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from kafkapy.common.types import TopicPartition
from kafkapy.metadata.broker import Node
from kafkapy.utils.time import Time

logger = logging.getLogger(__name__)

_CONSUMER_REPLICA_ID = -1
_NO_EPOCH = -1
_UNKNOWN_OFFSET = -1
_READ_COMMITTED = 1


@dataclass(slots=True)
class ListOffsetsResult:
    """What was found, and what is to be asked for again.

    Ports: org.apache.kafka.clients.consumer.internals.OffsetFetcherUtils.ListOffsetResult
    """

    found: dict[TopicPartition, OffsetAndTimestamp] = field(default_factory=dict)
    to_retry: set[TopicPartition] = field(default_factory=set)


class OffsetFetcher:
    """Requests for offsets and what follows from their answers for the positions.

    Called by the thread that polls; answers may also come in by the heartbeat thread.

    Ports: org.apache.kafka.clients.consumer.internals.OffsetFetcher
    """

    def __init__(
        self,
        *,
        client: ConsumerNetworkClient,
        metadata: ConsumerMetadata,
        subscriptions: SubscriptionState,
        time: Time,
        retry_backoff_ms: int,
        request_timeout_ms: int,
        read_committed: bool,
    ) -> None:
        # constant after construction
        self._client = client
        self._metadata = metadata
        self._subscriptions = subscriptions
        self._time = time
        self._retry_backoff_ms = retry_backoff_ms
        self._request_timeout_ms = request_timeout_ms
        self._isolation_level = _READ_COMMITTED if read_committed else 0
        # Single assignments, seen by the polling thread at its next turn.
        self._cached_reset_error: KafkaError | None = None
        self._cached_validation_error: KafkaError | None = None
        self._validated_metadata_version = -1

    # Positions

    def reset_positions_if_needed(self) -> None:
        """Ask for the offsets of partitions that wait for one; raises what an earlier try met."""
        error, self._cached_reset_error = self._cached_reset_error, None
        if error is not None:
            raise error
        now_ms = self._time.hi_res_clock_ms()
        strategies = self._subscriptions.partitions_needing_reset(now_ms)
        timestamps = {
            partition: strategy.timestamp
            for partition, strategy in strategies.items()
            if strategy.timestamp is not None
        }
        if not timestamps:
            return
        requests, _ = self._group_by_leader(timestamps)
        for node, wanted in requests.items():
            self._subscriptions.set_next_allowed_retry(wanted, now_ms + self._request_timeout_ms)
            self._reset_positions(node, wanted, strategies)

    def _reset_positions(
        self,
        node: Node,
        timestamps: Mapping[TopicPartition, int],
        strategies: Mapping[TopicPartition, OffsetResetStrategy],
    ) -> None:
        def succeeded(result: ListOffsetsResult) -> None:
            self._retry_later(result.to_retry)
            for partition, found in result.found.items():
                self._metadata.update_last_seen_epoch_if_newer(partition, found.leader_epoch)
                self._subscriptions.maybe_seek_unvalidated(
                    partition,
                    FetchPosition(found.offset, None, self._metadata.current_leader(partition)),
                    strategies[partition],
                )

        def failed(error: KafkaError) -> None:
            self._retry_later(timestamps)
            if not isinstance(error, RetriableError):
                self._cached_reset_error = error

        self._send_list_offsets(node, timestamps).add_listener(succeeded, failed)

    def validate_positions_if_needed(self) -> None:
        """Ask about positions whose leader has changed; raises a truncation found before."""
        error, self._cached_validation_error = self._cached_validation_error, None
        if error is not None:
            raise error
        self.validate_positions_on_metadata_change()
        now_ms = self._time.hi_res_clock_ms()
        by_leader: dict[Node, dict[TopicPartition, FetchPosition]] = {}
        for partition in self._subscriptions.partitions_needing_validation(now_ms):
            position = self._subscriptions.position_if_assigned(partition)
            if position is None:
                continue
            if position.current_leader.leader is None:
                self._metadata.request_update(reset_equivalent_response_backoff=False)
                continue
            by_leader.setdefault(position.current_leader.leader, {})[partition] = position
        for node, positions in by_leader.items():
            self._validate_positions(node, positions, now_ms)

    def validate_positions_on_metadata_change(self) -> None:
        """Leaders may have changed with the metadata."""
        version = self._metadata.update_version
        if version != self._validated_metadata_version:
            self._validated_metadata_version = version
            for partition in self._subscriptions.assigned_partitions:
                self.on_new_leader(partition)

    def on_new_leader(self, partition: TopicPartition) -> None:
        leader = self._metadata.current_leader(partition)
        supported = True
        if leader.leader is not None:
            supported = self._supports_leader_epochs(leader.leader) is not False
        self._subscriptions.maybe_validate_position(partition, leader, can_validate=supported)

    def _supports_leader_epochs(self, node: Node) -> bool | None:
        """None before the node has said what it supports."""
        versions = self._client.node_api_versions(node)
        return None if versions is None else supports_leader_epochs(versions)

    def _validate_positions(
        self, node: Node, positions: Mapping[TopicPartition, FetchPosition], now_ms: int
    ) -> None:
        supported = self._supports_leader_epochs(node)
        if supported is None:
            self._client.try_connect(node)
            return
        if not supported:
            for partition in positions:
                self._subscriptions.complete_validation(partition)
            return
        self._subscriptions.set_next_allowed_retry(positions, now_ms + self._request_timeout_ms)

        def succeeded(result: EpochEndOffsets) -> None:
            self._retry_later(result.to_retry)
            truncations = []
            for partition, (leader_epoch, end_offset) in result.end_offsets.items():
                truncation = self._subscriptions.maybe_complete_validation(
                    partition,
                    positions[partition],
                    leader_epoch=leader_epoch,
                    end_offset=end_offset,
                )
                if truncation is not None:
                    truncations.append(truncation)
            if truncations:
                self._cached_validation_error = LogTruncationError(
                    {t.topic_partition: t.fetch_position.offset for t in truncations},
                    {
                        t.topic_partition: t.divergent_offset
                        for t in truncations
                        if t.divergent_offset is not None
                    },
                )

        def failed(error: KafkaError) -> None:
            self._retry_later(positions)
            if not isinstance(error, RetriableError):
                self._cached_validation_error = error

        self._client.send(node, leader_epoch_request(positions)).compose(
            lambda response, future: read_leader_epoch_response(response, positions, future)
        ).add_listener(succeeded, failed)

    def _retry_later(self, partitions: Iterable[TopicPartition]) -> None:
        partitions = tuple(partitions)
        if partitions:
            next_ms = self._time.hi_res_clock_ms() + self._retry_backoff_ms
            self._subscriptions.set_next_allowed_retry(partitions, next_ms)
            self._metadata.request_update(reset_equivalent_response_backoff=False)

    # Questions of the application

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], deadline: Deadline
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first offset at or after each time; None where there is no such record."""
        found = self._fetch_offsets(timestamps, deadline)
        return {partition: found.get(partition) for partition in timestamps}

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], deadline: Deadline
    ) -> dict[TopicPartition, int]:
        return self._ends(partitions, EARLIEST_TIMESTAMP, deadline)

    def end_offsets(
        self, partitions: Iterable[TopicPartition], deadline: Deadline
    ) -> dict[TopicPartition, int]:
        """Where the next record goes; the last stable offset with read_committed."""
        return self._ends(partitions, LATEST_TIMESTAMP, deadline)

    def _ends(
        self, partitions: Iterable[TopicPartition], timestamp: int, deadline: Deadline
    ) -> dict[TopicPartition, int]:
        found = self._fetch_offsets(dict.fromkeys(partitions, timestamp), deadline)
        return {partition: offset.offset for partition, offset in found.items()}

    def _fetch_offsets(
        self, timestamps: Mapping[TopicPartition, int], deadline: Deadline
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """RequestTimeoutError when not all of them have been answered in time."""
        found: dict[TopicPartition, OffsetAndTimestamp] = {}
        remaining = dict(timestamps)
        self._metadata.add_transient_topics({partition.topic for partition in timestamps})
        try:
            while remaining:
                result = self._fetch_offsets_once(remaining, deadline)
                found.update(result.found)
                remaining = {p: t for p, t in remaining.items() if p in result.to_retry}
                if remaining and deadline.is_expired:
                    names = ", ".join(str(partition) for partition in sorted(remaining))
                    raise self._client.timeout_error(
                        f"the offsets of {names} could be found", deadline
                    )
                if remaining:
                    self._client.await_metadata_update(deadline)
            return found
        finally:
            self._metadata.clear_transient_topics()

    def _fetch_offsets_once(
        self, timestamps: Mapping[TopicPartition, int], deadline: Deadline
    ) -> ListOffsetsResult:
        requests, without_leader = self._group_by_leader(timestamps)
        total = ListOffsetsResult(to_retry=without_leader)
        futures = [
            (wanted, self._send_list_offsets(node, wanted)) for node, wanted in requests.items()
        ]
        for wanted, future in futures:
            if not self._client.poll_future(future, deadline):
                total.to_retry.update(wanted)
            elif future.succeeded:
                total.found.update(future.value.found)
                total.to_retry.update(future.value.to_retry)
            elif future.is_retriable:
                total.to_retry.update(wanted)
            else:
                raise future.error
        return total

    # Requests

    def _group_by_leader(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> tuple[dict[Node, dict[TopicPartition, int]], set[TopicPartition]]:
        """The partitions of each leader, and those that cannot be asked about now."""
        by_leader: dict[Node, dict[TopicPartition, int]] = {}
        to_retry: set[TopicPartition] = set()
        for partition, timestamp in timestamps.items():
            leader = self._metadata.current_leader(partition).leader
            if leader is None:
                self._metadata.request_update(reset_equivalent_response_backoff=False)
                to_retry.add(partition)
            elif self._client.is_unavailable(leader):
                self._client.maybe_raise_auth_failure(leader)
                to_retry.add(partition)
            else:
                by_leader.setdefault(leader, {})[partition] = timestamp
        return by_leader, to_retry

    def _send_list_offsets(
        self, node: Node, timestamps: Mapping[TopicPartition, int]
    ) -> RequestFuture[ListOffsetsResult]:
        topics: dict[str, ListOffsetsRequest.ListOffsetsTopic] = {}
        for partition, timestamp in timestamps.items():
            topic = topics.setdefault(
                partition.topic, ListOffsetsRequest.ListOffsetsTopic(name=partition.topic)
            )
            epoch = self._metadata.current_leader(partition).epoch
            topic.partitions.append(
                ListOffsetsRequest.ListOffsetsPartition(
                    partition_index=partition.partition,
                    timestamp=timestamp,
                    current_leader_epoch=_NO_EPOCH if epoch is None else epoch,
                )
            )
        request = VersionedRequest(
            ListOffsetsRequest(
                replica_id=_CONSUMER_REPLICA_ID,
                isolation_level=self._isolation_level,
                topics=list(topics.values()),
            ),
            min_version=2 if self._isolation_level else 1,
        )
        handle: Callable[[ClientResponse, RequestFuture[ListOffsetsResult]], None]
        handle = self._handle_list_offsets
        return self._client.send(node, request).compose(handle)

    def _handle_list_offsets(
        self, response: ClientResponse, future: RequestFuture[ListOffsetsResult]
    ) -> None:
        message = response.message
        assert isinstance(message, ListOffsetsResponse)
        result = ListOffsetsResult()
        unauthorized: set[str] = set()
        for topic in message.topics:
            for answer in topic.partitions:
                partition = TopicPartition(topic.name, answer.partition_index)
                error = Errors.for_code(answer.error_code)
                if error is Errors.NONE:
                    if answer.offset != _UNKNOWN_OFFSET:
                        epoch = answer.leader_epoch if answer.leader_epoch >= 0 else None
                        result.found[partition] = OffsetAndTimestamp(
                            answer.offset, answer.timestamp, epoch
                        )
                elif error is Errors.TOPIC_AUTHORIZATION_FAILED:
                    unauthorized.add(topic.name)
                elif error is Errors.UNSUPPORTED_FOR_MESSAGE_FORMAT:
                    logger.debug("The records of %s have no timestamps to search", partition)
                else:
                    logger.debug("Looking up offsets of %s failed: %s", partition, error.name)
                    result.to_retry.add(partition)
        if unauthorized:
            future.fail(TopicAuthorizationError(f"Not authorized for {sorted(unauthorized)}"))
        else:
            future.complete(result)
