from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from kafkapy.common.errors import Errors, InvalidTopicError
from kafkapy.common.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsResponse,
)
from kafkapy.common.protocol.messages.metadata import MetadataResponse
from kafkapy.common.protocol.messages.update_metadata import UpdateMetadataRequest
from kafkapy.common.topic import validate_topic_name
from kafkapy.common.types import INTERNAL_TOPICS, ZERO_UUID, TopicPartition
from kafkapy.metadata.broker import NO_NODE, Broker, BrokerMetadata, Node
from kafkapy.metadata.leader_and_isr import NO_LEADER
from kafkapy.metadata.metadata_snapshot import MetadataSnapshot, PartitionState

log = logging.getLogger(__name__)

_ResponseTopic = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
_ResponsePartition = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition


@dataclass(frozen=True, slots=True)
class CurrentLeader:
    """Where a client that asked the wrong broker should go; `node` is None when not reachable."""

    leader_id: int
    leader_epoch: int
    node: Node | None


class MetadataCache:
    """What this broker knows of the cluster, as the controller last told it. Thread-safe.

    Readers take no lock: they read one immutable snapshot. Writers replace it one at a time.

    Ports: kafka.server.metadata.ZkMetadataCache
    """

    def __init__(self, broker_id: int) -> None:
        self._broker_id = broker_id  # constant after construction
        self._update_lock = threading.Lock()
        self._snapshot = MetadataSnapshot()  # written under self._update_lock

    def update_metadata(
        self, correlation_id: int, request: UpdateMetadataRequest
    ) -> list[TopicPartition]:
        """Take over what the controller sent; the partitions of deleted topics are returned."""
        with self._update_lock:
            snapshot, deleted = self._snapshot.updated_with(request)
            self._snapshot = snapshot
        self._warn_of_differing_listeners(snapshot)
        log.debug(
            "Broker %d updated its metadata by request %d of controller %d epoch %d: %d deleted",
            self._broker_id,
            correlation_id,
            request.controller_id,
            request.controller_epoch,
            len(deleted),
        )
        return deleted

    # Topics

    def all_topics(self) -> set[str]:
        return set(self._snapshot.partition_states)

    def all_partitions(self) -> set[TopicPartition]:
        return {
            TopicPartition(topic, partition)
            for topic, partitions in self._snapshot.partition_states.items()
            for partition in partitions
        }

    def contains_topic(self, topic: str) -> bool:
        return topic in self._snapshot.partition_states

    def contains(self, partition: TopicPartition) -> bool:
        partitions = self._snapshot.partition_states.get(partition.topic)
        return partitions is not None and partition.partition in partitions

    def num_partitions(self, topic: str) -> int | None:
        partitions = self._snapshot.partition_states.get(topic)
        return len(partitions) if partitions is not None else None

    def get_topic_id(self, topic: str) -> UUID:
        """ZERO_UUID for a topic that is unknown or has none."""
        return self._snapshot.topic_ids.get(topic, ZERO_UUID)

    def get_topic_name(self, topic_id: UUID) -> str | None:
        return self._snapshot.topic_names.get(topic_id)

    def topic_names_to_ids(self) -> Mapping[str, UUID]:
        return self._snapshot.topic_ids

    def topic_ids_to_names(self) -> Mapping[UUID, str]:
        return self._snapshot.topic_names

    def topic_id_info(self) -> tuple[Mapping[str, UUID], Mapping[UUID, str]]:
        """Both mappings of one and the same snapshot."""
        snapshot = self._snapshot
        return snapshot.topic_ids, snapshot.topic_names

    def get_partition_info(self, topic: str, partition: int) -> PartitionState | None:
        """The state as received: not to be changed."""
        return self._snapshot.partition_state(topic, partition)

    # Brokers

    @property
    def controller_id(self) -> int | None:
        return self._snapshot.controller_id

    def has_alive_broker(self, broker_id: int) -> bool:
        return broker_id in self._snapshot.alive_brokers

    def get_alive_brokers(self) -> list[BrokerMetadata]:
        return [BrokerMetadata(b.id, b.rack) for b in self._snapshot.alive_brokers.values()]

    def get_alive_broker_node(self, broker_id: int, listener_name: str) -> Node | None:
        return _alive_node(self._snapshot, broker_id, listener_name)

    def get_alive_broker_nodes(self, listener_name: str) -> list[Node]:
        """Brokers without that listener are left out."""
        nodes = (b.get_node(listener_name) for b in self._snapshot.alive_brokers.values())
        return [node for node in nodes if node is not None]

    def get_partition_leader_endpoint(
        self, topic: str, partition: int, listener_name: str
    ) -> Node | None:
        """None for an unknown partition; NO_NODE when its leader cannot be reached."""
        snapshot = self._snapshot
        state = snapshot.partition_state(topic, partition)
        if state is None:
            return None
        return _alive_node(snapshot, state.leader, listener_name) or NO_NODE

    def get_partition_replica_endpoints(
        self, partition: TopicPartition, listener_name: str
    ) -> dict[int, Node]:
        """The replicas that can be reached."""
        snapshot = self._snapshot
        state = snapshot.partition_state(partition.topic, partition.partition)
        if state is None:
            return {}
        nodes = ((r, _alive_node(snapshot, r, listener_name)) for r in state.replicas)
        return {replica: node for replica, node in nodes if node is not None}

    def get_current_leader(
        self, partition: TopicPartition, listener_name: str
    ) -> CurrentLeader | None:
        """None for an unknown partition."""
        snapshot = self._snapshot
        state = snapshot.partition_state(partition.topic, partition.partition)
        if state is None:
            return None
        node = _alive_node(snapshot, state.leader, listener_name)
        return CurrentLeader(state.leader, state.leader_epoch, node)

    # Answers to clients

    def get_topic_metadata(
        self,
        topics: Iterable[str],
        listener_name: str,
        *,
        error_unavailable_endpoints: bool = False,
        error_unavailable_listeners: bool = False,
    ) -> list[MetadataResponse.MetadataResponseTopic]:
        """Those of the topics that exist.

        `error_unavailable_endpoints`, for Metadata v0, leaves out replicas on brokers that are down
        and says so; `error_unavailable_listeners` tells a missing listener from a missing leader.
        """
        snapshot = self._snapshot
        found = []
        for topic in topics:
            partitions = snapshot.partition_states.get(topic)
            if partitions is None:
                continue
            found.append(
                MetadataResponse.MetadataResponseTopic(
                    error_code=Errors.NONE.code,
                    name=topic,
                    topic_id=snapshot.topic_ids.get(topic, ZERO_UUID),
                    is_internal=topic in INTERNAL_TOPICS,
                    partitions=[
                        _partition_metadata(
                            snapshot,
                            state,
                            listener_name,
                            error_unavailable_endpoints=error_unavailable_endpoints,
                            error_unavailable_listeners=error_unavailable_listeners,
                        )
                        for state in partitions.values()
                    ],
                )
            )
        return found

    def describe_topic_partitions(
        self,
        topics: Iterable[str],
        listener_name: str,
        *,
        first_partition: int = 0,
        max_partitions: int,
        ignore_missing: bool = False,
    ) -> DescribeTopicPartitionsResponse:
        """A page of partitions in the order of `topics`, the first topic from `first_partition`.

        Its cursor names what comes next; `ignore_missing` leaves unknown topics out.

        Ports: kafka.server.metadata.KRaftMetadataCache (getTopicMetadataForDescribeTopicResponse)
        """
        snapshot = self._snapshot
        response = DescribeTopicPartitionsResponse()
        remaining = max_partitions
        start = first_partition
        for topic in topics:
            if remaining == 0:
                response.next_cursor = _cursor(topic, 0)
                break
            partitions = snapshot.partition_states.get(topic)
            if partitions is None:
                if not ignore_missing:
                    response.topics.append(_missing_topic(topic))
            else:
                wanted = [state for index, state in partitions.items() if index >= start]
                page = wanted[:remaining]
                response.topics.append(
                    _ResponseTopic(
                        error_code=Errors.NONE.code,
                        name=topic,
                        topic_id=snapshot.topic_ids.get(topic, ZERO_UUID),
                        is_internal=topic in INTERNAL_TOPICS,
                        partitions=[_described(snapshot, s, listener_name) for s in page],
                    )
                )
                if len(wanted) > len(page):
                    response.next_cursor = _cursor(topic, wanted[len(page)].partition_index)
                    break
                remaining -= len(page)
            start = 0
        return response

    def _warn_of_differing_listeners(self, snapshot: MetadataSnapshot) -> None:
        """A client on a listener that some broker lacks cannot reach that broker."""
        ours = snapshot.alive_brokers.get(self._broker_id)
        if ours is None:
            return
        for broker in snapshot.alive_brokers.values():
            if _listeners(broker) != _listeners(ours):
                log.error(
                    "Broker %d has listeners %s, broker %d has %s",
                    ours.id,
                    sorted(_listeners(ours)),
                    broker.id,
                    sorted(_listeners(broker)),
                )


def _listeners(broker: Broker) -> set[str]:
    return {endpoint.listener_name for endpoint in broker.endpoints}


def _alive_node(snapshot: MetadataSnapshot, broker_id: int, listener_name: str) -> Node | None:
    broker = snapshot.alive_brokers.get(broker_id)
    return broker.get_node(listener_name) if broker is not None else None


def _leader_error(
    snapshot: MetadataSnapshot,
    leader: int,
    listener_name: str,
    *,
    error_unavailable_listeners: bool,
) -> Errors:
    broker = snapshot.alive_brokers.get(leader)
    if broker is None:
        return Errors.LEADER_NOT_AVAILABLE
    if broker.endpoint(listener_name) is not None:
        return Errors.NONE
    # Old clients retry for ever on an error they do not know.
    return Errors.LISTENER_NOT_FOUND if error_unavailable_listeners else Errors.LEADER_NOT_AVAILABLE


def _partition_metadata(
    snapshot: MetadataSnapshot,
    state: PartitionState,
    listener_name: str,
    *,
    error_unavailable_endpoints: bool,
    error_unavailable_listeners: bool,
) -> MetadataResponse.MetadataResponsePartition:
    replicas, isr = state.replicas, state.isr
    error = _leader_error(
        snapshot,
        state.leader,
        listener_name,
        error_unavailable_listeners=error_unavailable_listeners,
    )
    leader = state.leader if error is Errors.NONE else NO_LEADER
    if error_unavailable_endpoints:
        replicas = _reachable(snapshot, state.replicas, listener_name)
        isr = _reachable(snapshot, state.isr, listener_name)
        if error is Errors.NONE and (replicas != state.replicas or isr != state.isr):
            error = Errors.REPLICA_NOT_AVAILABLE
    return MetadataResponse.MetadataResponsePartition(
        error_code=error.code,
        partition_index=state.partition_index,
        leader_id=leader,
        leader_epoch=state.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=state.offline_replicas,
    )


def _reachable(
    snapshot: MetadataSnapshot, broker_ids: Sequence[int], listener_name: str
) -> list[int]:
    return [b for b in broker_ids if _alive_node(snapshot, b, listener_name) is not None]


def _described(
    snapshot: MetadataSnapshot, state: PartitionState, listener_name: str
) -> _ResponsePartition:
    error = _leader_error(snapshot, state.leader, listener_name, error_unavailable_listeners=True)
    return _ResponsePartition(
        error_code=error.code,
        partition_index=state.partition_index,
        leader_id=state.leader if error is Errors.NONE else NO_LEADER,
        leader_epoch=state.leader_epoch,
        replica_nodes=state.replicas,
        isr_nodes=state.isr,
        eligible_leader_replicas=[],
        last_known_elr=[],
        offline_replicas=state.offline_replicas,
    )


def _missing_topic(topic: str) -> _ResponseTopic:
    error = Errors.UNKNOWN_TOPIC_OR_PARTITION
    try:
        validate_topic_name(topic)
    except InvalidTopicError:
        error = Errors.INVALID_TOPIC_EXCEPTION
    return _ResponseTopic(error_code=error.code, name=topic, is_internal=topic in INTERNAL_TOPICS)


def _cursor(topic: str, partition: int) -> DescribeTopicPartitionsResponse.Cursor:
    return DescribeTopicPartitionsResponse.Cursor(topic_name=topic, partition_index=partition)
