"""A ConsumerCoordinator over a MockClient, and the answers its group gives."""

from collections.abc import Collection, Sequence

from kafkapy.clients.consumer.assignors import consumer_protocol
from kafkapy.clients.consumer.assignors.consumer_partition_assignor import (
    Assignment,
    ConsumerPartitionAssignor,
    Subscription,
)
from kafkapy.clients.consumer.assignors.range_assignor import RangeAssignor
from kafkapy.clients.consumer.consumer_coordinator import ConsumerCoordinator
from kafkapy.clients.consumer.consumer_interceptor import ConsumerInterceptors
from kafkapy.clients.consumer.consumer_rebalance_listener import ConsumerRebalanceListener
from kafkapy.clients.consumer.group_rebalance_config import GroupRebalanceConfig
from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.find_coordinator import FindCoordinatorResponse
from kafkapy.common.protocol.messages.heartbeat import HeartbeatResponse
from kafkapy.common.protocol.messages.join_group import JoinGroupResponse
from kafkapy.common.protocol.messages.offset_commit import OffsetCommitResponse
from kafkapy.common.protocol.messages.offset_fetch import OffsetFetchResponse
from kafkapy.common.protocol.messages.sync_group import SyncGroupResponse
from kafkapy.common.types import TopicPartition
from kafkapy.metadata.broker import Node
from tests.unit.clients.consumer.parts import NODE, TOPIC, TP0, Parts

GROUP_ID = "group"
MEMBER_ID = "member"
COORDINATOR = Node(2**31 - 1 - NODE.id, NODE.host, NODE.port)


class Listener(ConsumerRebalanceListener):
    """What happened, in order."""

    def __init__(self) -> None:
        self.events: list[tuple[str, set[TopicPartition]]] = []
        self.failure: Exception | None = None

    def _add(self, kind: str, partitions: Collection[TopicPartition]) -> None:
        self.events.append((kind, set(partitions)))
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        self._add("revoked", revoked)

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        self._add("assigned", assigned)

    def on_partitions_lost(self, lost: Collection[TopicPartition]) -> None:
        self._add("lost", lost)


class Group:
    """One member, and the broker's answers as one-liners. The heartbeat thread is not started."""

    def __init__(
        self,
        assignor: ConsumerPartitionAssignor | None = None,
        *,
        auto_commit_interval_ms: int | None = None,
        group_instance_id: str | None = None,
    ) -> None:
        self.parts = Parts()
        self.mock = self.parts.mock
        self.listener = Listener()
        self.coordinator = ConsumerCoordinator(
            config=GroupRebalanceConfig(
                GROUP_ID,
                group_instance_id,
                session_timeout_ms=10_000,
                rebalance_timeout_ms=60_000,
                heartbeat_interval_ms=3_000,
            ),
            client=self.parts.client,
            metrics=self.parts.metrics,
            time=self.parts.time,
            assignors=[assignor or RangeAssignor()],
            metadata=self.parts.metadata,
            subscriptions=self.parts.subscriptions,
            interceptors=ConsumerInterceptors([]),
            auto_commit_interval_ms=auto_commit_interval_ms,
        )
        self.parts.update_metadata({})

    @property
    def name(self) -> str:
        return next(iter(self.coordinator._assignors))

    def subscribe(self, *topics: str) -> None:
        self.parts.subscriptions.subscribe(topics or (TOPIC,), self.listener)
        self.parts.update_metadata()

    def find_coordinator(self) -> None:
        self.mock.prepare_response(found())
        assert self.coordinator.ensure_coordinator_ready(self.parts.deadline())

    def join(self, timeout_ms: int = 2_000) -> bool:
        return self.coordinator.join_group_if_needed(self.parts.deadline(timeout_ms))

    def become_member(self, *partitions: TopicPartition, generation: int = 1) -> None:
        """A follower with these partitions."""
        if self.coordinator.finder.is_unknown():
            self.find_coordinator()
        self.mock.prepare_response(self.joined(generation))
        self.mock.prepare_response(synced(*partitions))
        assert self.join()

    def joined(self, generation: int = 1, *, error: Errors = Errors.NONE) -> JoinGroupResponse:
        return JoinGroupResponse(
            error_code=error.code,
            generation_id=generation,
            protocol_type="consumer",
            protocol_name=self.name,
            leader="somebody else",
            member_id=MEMBER_ID,
        )

    def joined_as_leader(
        self, subscriptions: dict[str, Sequence[str]], *, skip_assignment: bool = False
    ) -> JoinGroupResponse:
        member = JoinGroupResponse.JoinGroupResponseMember
        return JoinGroupResponse(
            generation_id=1,
            protocol_type="consumer",
            protocol_name=self.name,
            leader=MEMBER_ID,
            member_id=MEMBER_ID,
            skip_assignment=skip_assignment,
            members=[
                member(
                    member_id=name,
                    metadata=consumer_protocol.serialize_subscription(Subscription(tuple(topics))),
                )
                for name, topics in subscriptions.items()
            ],
        )


def found(error: Errors = Errors.NONE) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        coordinators=[
            FindCoordinatorResponse.Coordinator(
                key=GROUP_ID,
                node_id=NODE.id,
                host=NODE.host,
                port=NODE.port,
                error_code=error.code,
            )
        ]
    )


def synced(*partitions: TopicPartition, error: Errors = Errors.NONE) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=error.code,
        assignment=consumer_protocol.serialize_assignment(Assignment(list(partitions))),
    )


def heartbeat(error: Errors = Errors.NONE) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=error.code)


def committed(error: Errors = Errors.NONE, partition: TopicPartition = TP0) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponse.OffsetCommitResponseTopic(
                name=partition.topic,
                partitions=[
                    OffsetCommitResponse.OffsetCommitResponsePartition(
                        partition_index=partition.partition, error_code=error.code
                    )
                ],
            )
        ]
    )


def offset_fetched(
    offset: int,
    *,
    metadata: str = "",
    error: Errors = Errors.NONE,
    partition_error: Errors = Errors.NONE,
) -> OffsetFetchResponse:
    answer = OffsetFetchResponse.OffsetFetchResponsePartitions(
        partition_index=TP0.partition,
        committed_offset=offset,
        committed_leader_epoch=-1,
        metadata=metadata,
        error_code=partition_error.code,
    )
    topic = OffsetFetchResponse.OffsetFetchResponseTopics(name=TP0.topic, partitions=[answer])
    group = OffsetFetchResponse.OffsetFetchResponseGroup(
        group_id=GROUP_ID, topics=[topic], error_code=error.code
    )
    return OffsetFetchResponse(groups=[group])
