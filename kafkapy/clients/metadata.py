"""Metadata as clients keep it: what to ask for, when, and what was answered."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from kafkapy.clients.client_request import VersionedRequest
from kafkapy.clients.cluster import Cluster
from kafkapy.clients.metadata_snapshot import MetadataSnapshot, PartitionMetadata
from kafkapy.common.errors import (
    Errors,
    InvalidMetadataError,
    InvalidTopicError,
    KafkaError,
    TopicAuthorizationError,
)
from kafkapy.common.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kafkapy.common.types import ZERO_UUID, TopicPartition
from kafkapy.metadata.broker import Node
from kafkapy.utils.backoff import ExponentialBackoff

logger = logging.getLogger(__name__)

_EXPONENT_BASE = 2
# From this version on a broker sends leader epochs that can be trusted (KAFKA-9212).
_FIRST_RELIABLE_EPOCH_VERSION = 9
# Older versions always create what they are asked about.
_FIRST_VERSION_WITH_CREATION_FLAG = 4


@dataclass(frozen=True, slots=True)
class LeaderAndEpoch:
    """Who leads a partition and since which epoch; None where that is not known.

    Ports: org.apache.kafka.clients.Metadata.LeaderAndEpoch
    """

    leader: Node | None
    epoch: int | None


NO_LEADER_OR_EPOCH = LeaderAndEpoch(None, None)


@dataclass(frozen=True, slots=True)
class MetadataRequestAndVersion:
    """A request for metadata and which state of the wishes it stands for."""

    request: VersionedRequest
    request_version: int
    is_partial_update: bool


def metadata_request_for(
    topics: Iterable[str] | None, *, allow_auto_topic_creation: bool
) -> VersionedRequest:
    """A request for the topics; None: for all."""
    wanted = None
    if topics is not None:
        wanted = [MetadataRequest.MetadataRequestTopic(name=name) for name in sorted(topics)]
    return VersionedRequest(
        MetadataRequest(topics=wanted, allow_auto_topic_creation=allow_auto_topic_creation),
        min_version=1 if allow_auto_topic_creation else _FIRST_VERSION_WITH_CREATION_FLAG,
    )


class Metadata:
    """The metadata of a client, refreshed in time by whoever asks `time_to_next_update_ms`.

    Thread-safe. What it covers is for subclasses to say, by overriding `new_request`,
    `new_request_for_new_topics` and `retain_topic`; this class asks for all topics. Times are
    those of the monotonic clock.

    Ports: org.apache.kafka.clients.Metadata
    """

    def __init__(
        self,
        *,
        refresh_backoff_ms: int,
        refresh_backoff_max_ms: int,
        metadata_expire_ms: int,
    ) -> None:
        # constant after construction
        self._refresh_backoff = ExponentialBackoff(
            refresh_backoff_ms, _EXPONENT_BASE, refresh_backoff_max_ms
        )
        self._metadata_expire_ms = metadata_expire_ms
        # Re-entrant: subclasses answer questions asked under it.
        self._lock = threading.RLock()
        # guarded by self._lock
        self._update_version = 0
        self._request_version = 0
        self._last_refresh_ms: int | None = None
        self._last_successful_refresh_ms: int | None = None
        self._failures = 0
        self._equivalent_responses = 0
        self._need_full_update = False
        self._need_partial_update = False
        self._fatal_error: KafkaError | None = None
        # Why connections were lost since the last update, by node id.
        self._lost_connections: dict[int, str] = {}
        self._invalid_topics: frozenset[str] = frozenset()
        self._unauthorized_topics: frozenset[str] = frozenset()
        self._last_seen_leader_epochs: dict[TopicPartition, int] = {}
        self._bootstrap_addresses: tuple[tuple[str, int], ...] = ()
        self._snapshot = MetadataSnapshot(cluster_id=None, nodes={}, partitions=())
        self._closed = False

    # What to ask for: overridden by the metadata of each client

    def new_request(self) -> VersionedRequest:
        """For a full update."""
        return metadata_request_for(None, allow_auto_topic_creation=True)

    def new_request_for_new_topics(self) -> VersionedRequest | None:
        """For a partial update; None when this client always asks for everything."""
        return None

    def retain_topic(self, topic: str, is_internal: bool, now_ms: int) -> bool:
        """Whether a topic that an update does not mention is kept, or one that it does is."""
        return True

    # Reading

    def fetch(self) -> Cluster:
        # Without the lock, here and below: one reference to something immutable, asked for with
        # every record.
        return self._snapshot.cluster

    @property
    def snapshot(self) -> MetadataSnapshot:
        return self._snapshot

    @property
    def update_version(self) -> int:
        """Grows with every response that was taken in."""
        with self._lock:
            return self._update_version

    @property
    def last_successful_update_ms(self) -> int | None:
        with self._lock:
            return self._last_successful_refresh_ms

    @property
    def is_closed(self) -> bool:
        with self._lock:
            return self._closed

    def topic_ids(self) -> Mapping[str, UUID]:
        return self.fetch().topic_ids

    def current_leader(self, partition: TopicPartition) -> LeaderAndEpoch:
        with self._lock:
            metadata = self._partition_metadata_if_current_locked(partition)
            if metadata is None:
                return LeaderAndEpoch(None, self._last_seen_leader_epochs.get(partition))
            leader = None
            if metadata.leader_id is not None:
                leader = self._snapshot.nodes.get(metadata.leader_id)
            return LeaderAndEpoch(leader, metadata.leader_epoch)

    def partition_metadata_if_current(self, partition: TopicPartition) -> PartitionMetadata | None:
        """None also when a later leader epoch than the metadata's has been seen."""
        with self._lock:
            return self._partition_metadata_if_current_locked(partition)

    def last_seen_leader_epoch(self, partition: TopicPartition) -> int | None:
        with self._lock:
            return self._last_seen_leader_epochs.get(partition)

    # When to update

    def time_to_expire_ms(self, now_ms: int) -> int:
        with self._lock:
            return self._time_to_expire_locked(now_ms)

    def time_to_next_update_ms(self, now_ms: int) -> int:
        """0 when an update is due: wanted or expired, and the backoff is over."""
        with self._lock:
            time_to_expire_ms = 0
            if not (self._need_full_update or self._need_partial_update):
                time_to_expire_ms = self._time_to_expire_locked(now_ms)
                if time_to_expire_ms > self._refresh_backoff.max_ms:
                    return time_to_expire_ms  # no backoff is longer: asked before every request
            return max(time_to_expire_ms, self._time_to_allow_update_locked(now_ms))

    @property
    def update_requested(self) -> bool:
        with self._lock:
            return self._need_full_update or self._need_partial_update

    def request_update(self, *, reset_equivalent_response_backoff: bool = True) -> int:
        """Ask for a full update; the version that must be exceeded to have it.

        The backoff that keeps a client from asking again and again for what does not change may be
        kept: then an update that brings nothing new does not speed up the next.
        """
        with self._lock:
            self._need_full_update = True
            if reset_equivalent_response_backoff:
                self._equivalent_responses = 0
            return self._update_version

    def request_update_for_new_topics(self) -> int:
        """Ask for topics that are not known yet, at once."""
        with self._lock:
            # Not limited by the backoff, which is about what is known already.
            self._last_refresh_ms = None
            self._need_partial_update = True
            self._equivalent_responses = 0
            self._request_version += 1
            return self._update_version

    def update_last_seen_epoch_if_newer(
        self, partition: TopicPartition, leader_epoch: int | None
    ) -> bool:
        """Whether the epoch was news; then an update is asked for.

        Of a partition that has no epoch yet it is not: the metadata comes first.
        """
        if leader_epoch is None or leader_epoch < 0:
            return False
        with self._lock:
            seen = self._last_seen_leader_epochs.get(partition)
            if seen is None or leader_epoch <= seen:
                return False
            self._last_seen_leader_epochs[partition] = leader_epoch
            self._need_full_update = True
            return True

    def new_request_and_version(self, now_ms: int) -> MetadataRequestAndVersion:
        """A partial request when nothing but new topics is wanted and the client can do that."""
        with self._lock:
            request: VersionedRequest | None = None
            if not self._need_full_update and self._time_to_expire_locked(now_ms) > 0:
                request = self.new_request_for_new_topics()
            is_partial = request is not None
            return MetadataRequestAndVersion(
                request or self.new_request(), self._request_version, is_partial
            )

    # Updating

    def bootstrap(self, addresses: Iterable[tuple[str, int]]) -> None:
        with self._lock:
            self._need_full_update = True
            self._update_version += 1
            self._bootstrap_addresses = tuple(addresses)
            self._snapshot = MetadataSnapshot.bootstrap(self._bootstrap_addresses)

    def rebootstrap(self) -> None:
        """Forget the cluster and start again from the configured addresses."""
        with self._lock:
            logger.info("Starting again from %s", self._bootstrap_addresses)
            self.bootstrap(self._bootstrap_addresses)

    def update(
        self,
        response: MetadataResponse,
        *,
        request_version: int,
        is_partial_update: bool,
        now_ms: int,
        api_version: int = MetadataResponse.VERSIONS.highest,
    ) -> None:
        """Take in a response. `api_version` is the one it came in."""
        with self._lock:
            if self._closed:
                raise ValueError("the metadata is closed")
            self._need_partial_update = request_version < self._request_version
            self._last_refresh_ms = now_ms
            self._failures = 0
            self._lost_connections.clear()
            self._update_version += 1
            if not is_partial_update:
                self._need_full_update = False
                self._last_successful_refresh_ms = now_ms
            previous = self._snapshot
            self._equivalent_responses += 1
            update = self._read_response_locked(response, api_version, now_ms)
            self._invalid_topics = update.invalid_topics
            self._unauthorized_topics = update.unauthorized_topics
            if is_partial_update:
                # A topic of the response has been refreshed: if it is gone it must not come back.
                refreshed = {topic.name for topic in response.topics}
                update = previous.merge_with(
                    update,
                    lambda topic, is_internal: (
                        topic not in refreshed and self.retain_topic(topic, is_internal, now_ms)
                    ),
                )
            self._snapshot = update
            if previous.cluster_id != update.cluster_id:
                logger.info("Cluster id: %s", update.cluster_id)
            for partition in list(self._last_seen_leader_epochs):
                if not self.retain_topic(partition.topic, False, now_ms):
                    del self._last_seen_leader_epochs[partition]

    def update_with_current_request_version(
        self, response: MetadataResponse, *, is_partial_update: bool, now_ms: int
    ) -> None:
        """For tests, and for metadata that was not asked for."""
        with self._lock:
            self.update(
                response,
                request_version=self._request_version,
                is_partial_update=is_partial_update,
                now_ms=now_ms,
            )

    def update_partition_leadership(
        self, leaders: Mapping[TopicPartition, tuple[int, int]], nodes: Iterable[Node]
    ) -> set[TopicPartition]:
        """Take in (leader id, leader epoch) as a response of another API told (KIP-951).

        The partitions whose leader was news.
        """
        with self._lock:
            known = {node.id: node for node in nodes}
            updated: list[PartitionMetadata] = []
            for partition, (leader_id, leader_epoch) in leaders.items():
                current = self._snapshot.partitions.get(partition)
                if current is None:
                    continue
                if current.leader_epoch is not None and leader_epoch <= current.leader_epoch:
                    continue
                if leader_id not in known and leader_id not in self._snapshot.nodes:
                    continue
                updated.append(
                    PartitionMetadata(
                        Errors.NONE,
                        partition,
                        leader_id,
                        leader_epoch,
                        current.replica_ids,
                        current.in_sync_replica_ids,
                        current.offline_replica_ids,
                    )
                )
                self._last_seen_leader_epochs[partition] = leader_epoch
            if updated:
                self._snapshot = self._snapshot.with_leaders(updated, known.values())
            return {metadata.topic_partition for metadata in updated}

    def failed_update(self, now_ms: int) -> None:
        """An attempt failed; the next one waits its backoff."""
        with self._lock:
            self._last_refresh_ms = now_ms
            self._failures += 1
            self._equivalent_responses = 0

    def connection_lost(self, node_id: int, reason: str) -> None:
        with self._lock:
            self._lost_connections[node_id] = reason

    def describe_nodes(self) -> str:
        """Their addresses, with what keeps the client from them if that is known."""
        with self._lock:
            nodes, reasons = self.fetch().nodes, dict(self._lost_connections)
        return ", ".join(
            f"{node.host}:{node.port}"
            + (f" ({reason})" if (reason := reasons.get(node.id)) is not None else "")
            for node in nodes
        )

    def fatal_error(self, error: KafkaError) -> None:
        """Whoever waits for metadata is to get this error."""
        with self._lock:
            self._fatal_error = error

    def close(self) -> None:
        with self._lock:
            self._closed = True

    # Errors for the user

    def maybe_raise_any_error(self) -> None:
        """Raise what the updates so far failed with, once."""
        with self._lock:
            self.maybe_raise_fatal_error()
            unauthorized, invalid = self._unauthorized_topics, self._invalid_topics
            self._clear_recoverable_errors_locked()
            self._raise_topic_errors(unauthorized, invalid)

    def maybe_raise_error_for_topic(self, topic: str) -> None:
        with self._lock:
            self.maybe_raise_fatal_error()
            unauthorized = self._unauthorized_topics & {topic}
            invalid = self._invalid_topics & {topic}
            self._clear_recoverable_errors_locked()
            self._raise_topic_errors(unauthorized, invalid)

    def maybe_raise_fatal_error(self) -> None:
        with self._lock:
            error, self._fatal_error = self._fatal_error, None
        if error is not None:
            raise error

    def _clear_recoverable_errors_locked(self) -> None:
        self._invalid_topics = frozenset()
        self._unauthorized_topics = frozenset()

    @staticmethod
    def _raise_topic_errors(unauthorized: frozenset[str], invalid: frozenset[str]) -> None:
        if unauthorized:
            raise TopicAuthorizationError(f"Not authorized for topics {sorted(unauthorized)}")
        if invalid:
            raise InvalidTopicError(f"Invalid topics {sorted(invalid)}")

    def _time_to_expire_locked(self, now_ms: int) -> int:
        last_ms = self._last_successful_refresh_ms
        return 0 if last_ms is None else max(0, last_ms + self._metadata_expire_ms - now_ms)

    def _time_to_allow_update_locked(self, now_ms: int) -> int:
        if self._last_refresh_ms is None:
            return 0
        if self._time_to_expire_locked(now_ms) == 0:
            # Refreshing what has expired is no sign that nothing gets better.
            self._equivalent_responses = 0
        # Also after responses that changed nothing: somebody keeps asking for what is not there.
        attempts = max(self._failures, self._equivalent_responses, 1)
        backoff_ms = self._refresh_backoff.backoff_ms(attempts - 1)
        return max(0, self._last_refresh_ms + backoff_ms - now_ms)

    def _partition_metadata_if_current_locked(
        self, partition: TopicPartition
    ) -> PartitionMetadata | None:
        metadata = self._snapshot.partitions.get(partition)
        seen = self._last_seen_leader_epochs.get(partition)
        # Without epochs, from an old broker, the metadata is all there is to go by.
        if metadata is None or seen is None or metadata.leader_epoch == seen:
            return metadata
        return None

    def _read_response_locked(
        self, response: MetadataResponse, api_version: int, now_ms: int
    ) -> MetadataSnapshot:
        nodes = {b.node_id: Node(b.node_id, b.host, b.port, b.rack) for b in response.brokers}
        partitions: list[PartitionMetadata] = []
        internal, unauthorized, invalid = set(), set(), set()
        topic_ids: dict[str, UUID] = {}
        for topic in response.topics:
            name = topic.name
            if name is None or not self.retain_topic(name, topic.is_internal, now_ms):
                continue
            if topic.is_internal:
                internal.add(name)
            if topic.topic_id != ZERO_UUID:
                topic_ids[name] = topic.topic_id
            error = Errors.for_code(topic.error_code)
            if error is Errors.NONE:
                # A topic made anew starts its leader epochs over.
                is_same_topic = topic.topic_id in (ZERO_UUID, self._snapshot.topic_ids.get(name))
                for partition in topic.partitions:
                    latest = self._latest_locked(
                        name,
                        partition,
                        has_reliable_epoch=api_version >= _FIRST_RELIABLE_EPOCH_VERSION,
                        is_same_topic=is_same_topic,
                    )
                    if latest is not None:
                        partitions.append(latest)
                    if self._is_invalid_metadata(partition.error_code):
                        self._need_full_update = True
            else:
                if self._is_invalid_metadata(topic.error_code):
                    self._need_full_update = True
                if error is Errors.INVALID_TOPIC_EXCEPTION:
                    invalid.add(name)
                elif error is Errors.TOPIC_AUTHORIZATION_FAILED:
                    unauthorized.add(name)
        return MetadataSnapshot(
            cluster_id=response.cluster_id,
            nodes=nodes,
            partitions=partitions,
            unauthorized_topics=unauthorized,
            invalid_topics=invalid,
            internal_topics=internal,
            controller=nodes.get(response.controller_id),
            topic_ids=topic_ids,
        )

    @staticmethod
    def _is_invalid_metadata(error_code: int) -> bool:
        exception = Errors.for_code(error_code).exception_class
        return exception is not None and issubclass(exception, InvalidMetadataError)

    def _latest_locked(
        self,
        topic: str,
        response: MetadataResponse.MetadataResponsePartition,
        *,
        has_reliable_epoch: bool,
        is_same_topic: bool,
    ) -> PartitionMetadata | None:
        """The response's partition, or what is known when that is of a later leader epoch."""
        partition = TopicPartition(topic, response.partition_index)
        leader_epoch: int | None = None
        if has_reliable_epoch and response.leader_epoch >= 0:
            leader_epoch = response.leader_epoch
        new = PartitionMetadata(
            Errors.for_code(response.error_code),
            partition,
            response.leader_id if response.leader_id >= 0 else None,
            leader_epoch,
            tuple(response.replica_nodes),
            tuple(response.isr_nodes),
            tuple(response.offline_replicas),
        )
        if leader_epoch is None:
            self._last_seen_leader_epochs.pop(partition, None)
            self._equivalent_responses = 0
            return new
        seen = self._last_seen_leader_epochs.get(partition)
        if seen is not None and is_same_topic and leader_epoch < seen:
            return self._snapshot.partitions.get(partition)
        # An equal epoch may come with another leader: its broker is back, or has gone.
        if seen is None or not is_same_topic or leader_epoch > seen:
            self._equivalent_responses = 0
        self._last_seen_leader_epochs[partition] = leader_epoch
        return new
