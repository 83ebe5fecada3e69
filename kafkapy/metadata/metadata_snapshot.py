from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from kafkapy.common.protocol.messages.update_metadata import UpdateMetadataRequest
from kafkapy.common.types import ZERO_UUID, TopicPartition
from kafkapy.metadata.broker import Broker
from kafkapy.metadata.end_point import EndPoint, SecurityProtocol
from kafkapy.metadata.leader_and_isr import LEADER_DURING_DELETE

PartitionState = UpdateMetadataRequest.UpdateMetadataPartitionState


@dataclass(frozen=True, slots=True)
class MetadataSnapshot:
    """The cluster as one UpdateMetadata left it. Nothing in it is ever changed.

    Partitions of a topic are in the order of their numbers.

    Ports: kafka.server.metadata.MetadataSnapshot
    """

    partition_states: Mapping[str, Mapping[int, PartitionState]] = field(default_factory=dict)
    topic_ids: Mapping[str, UUID] = field(default_factory=dict)
    topic_names: Mapping[UUID, str] = field(default_factory=dict)
    controller_id: int | None = None
    alive_brokers: Mapping[int, Broker] = field(default_factory=dict)

    def partition_state(self, topic: str, partition: int) -> PartitionState | None:
        partitions = self.partition_states.get(topic)
        return partitions.get(partition) if partitions is not None else None

    def updated_with(
        self, request: UpdateMetadataRequest
    ) -> tuple[MetadataSnapshot, list[TopicPartition]]:
        """The next snapshot and the partitions it no longer has.

        Topics the request does not name are shared with this snapshot, not copied.
        """
        states = dict(self.partition_states)
        topic_ids = dict(self.topic_ids)
        deleted: list[TopicPartition] = []
        for topic, topic_id, changes in _topic_states(request):
            partitions = dict(states.get(topic, {}))
            for change in changes:
                if change.leader != LEADER_DURING_DELETE:
                    partitions[change.partition_index] = change
                elif partitions.pop(change.partition_index, None) is not None:
                    deleted.append(TopicPartition(topic, change.partition_index))
            if partitions:
                states[topic] = dict(sorted(partitions.items()))
                if topic_id != ZERO_UUID:
                    topic_ids[topic] = topic_id
            else:
                states.pop(topic, None)
                topic_ids.pop(topic, None)
        snapshot = MetadataSnapshot(
            partition_states=states,
            topic_ids=topic_ids,
            topic_names={topic_id: topic for topic, topic_id in topic_ids.items()},
            controller_id=request.controller_id if request.controller_id >= 0 else None,
            alive_brokers={b.id: _broker(b) for b in request.live_brokers},
        )
        return snapshot, deleted


def _topic_states(
    request: UpdateMetadataRequest,
) -> Iterator[tuple[str, UUID, list[PartitionState]]]:
    """Partitions by topic in every version: before 5 each state names its own topic."""
    for topic in request.topic_states:
        yield topic.topic_name, topic.topic_id, topic.partition_states
    ungrouped: dict[str, list[PartitionState]] = {}
    for state in request.ungrouped_partition_states:
        ungrouped.setdefault(state.topic_name, []).append(state)
    for name, states in ungrouped.items():
        yield name, ZERO_UUID, states


def _broker(broker: UpdateMetadataRequest.UpdateMetadataBroker) -> Broker:
    """Version 0 has one plaintext address; up to 2 a listener is named after its protocol."""
    endpoints = [
        EndPoint(
            endpoint.listener or SecurityProtocol(endpoint.security_protocol).name,
            SecurityProtocol(endpoint.security_protocol),
            endpoint.host,
            endpoint.port,
        )
        for endpoint in broker.endpoints
    ]
    if not endpoints and broker.v0_host:
        plaintext = SecurityProtocol.PLAINTEXT
        endpoints = [EndPoint(plaintext.name, plaintext, broker.v0_host, broker.v0_port)]
    return Broker(broker.id, tuple(endpoints), broker.rack)
