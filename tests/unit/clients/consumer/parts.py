"""A consumer's parts over a MockClient and a MockTime."""

from dataclasses import dataclass, field
from uuid import UUID

from kafkapy.clients.consumer.consumer_metadata import ConsumerMetadata
from kafkapy.clients.consumer.consumer_metrics import ConsumerMetrics
from kafkapy.clients.consumer.consumer_network_client import ConsumerNetworkClient
from kafkapy.clients.consumer.offset_reset_strategy import OffsetResetStrategy
from kafkapy.clients.consumer.subscription_state import SubscriptionState
from kafkapy.clients.consumer.topic_partition_state import FetchPosition
from kafkapy.clients.deadline import Deadline
from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.metadata import MetadataResponse
from kafkapy.common.types import ZERO_UUID, TopicPartition
from kafkapy.metadata.broker import Node
from tests.helpers.mock_time import MockTime
from tests.unit.clients.mock_client import MockClient

TOPIC = "topic"
TOPIC_ID = UUID(int=7)
TP0, TP1 = TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)
NODE = Node(0, "localhost", 1969)
OTHER_NODE = Node(1, "localhost", 1970)
RETRY_BACKOFF_MS = 100
REQUEST_TIMEOUT_MS = 30_000


def metadata_response(
    topics: dict[str, int] | None = None,
    *,
    leader: int = 0,
    leader_epoch: int = 0,
    topic_id: UUID = TOPIC_ID,
    errors: dict[str, Errors] | None = None,
) -> MetadataResponse:
    """Topics with so many partitions each, all led by one node of two."""
    topics = {TOPIC: 2} if topics is None else topics
    partition = MetadataResponse.MetadataResponsePartition
    answers = [
        MetadataResponse.MetadataResponseTopic(
            name=name,
            topic_id=topic_id,
            partitions=[
                partition(
                    partition_index=index,
                    leader_id=leader,
                    leader_epoch=leader_epoch,
                    replica_nodes=[0, 1],
                    isr_nodes=[0, 1],
                )
                for index in range(count)
            ],
        )
        for name, count in topics.items()
    ]
    for name, error in (errors or {}).items():
        answers.append(
            MetadataResponse.MetadataResponseTopic(
                name=name, error_code=error.code, topic_id=ZERO_UUID
            )
        )
    broker = MetadataResponse.MetadataResponseBroker
    return MetadataResponse(
        brokers=[
            broker(node_id=node.id, host=node.host, port=node.port) for node in (NODE, OTHER_NODE)
        ],
        cluster_id="cluster",
        topics=answers,
    )


@dataclass
class Parts:
    """What is below the fetcher and the coordinator."""

    time: MockTime = field(default_factory=MockTime)
    strategy: OffsetResetStrategy = OffsetResetStrategy.EARLIEST

    def __post_init__(self) -> None:
        self.subscriptions = SubscriptionState(self.strategy)
        self.metadata = ConsumerMetadata(
            self.subscriptions,
            refresh_backoff_ms=0,
            refresh_backoff_max_ms=0,
            metadata_expire_ms=300_000,
            include_internal_topics=False,
            allow_auto_topic_creation=True,
        )
        self.mock = MockClient(self.time, self.metadata, tick_ms=10)
        self.client = ConsumerNetworkClient(
            self.mock,
            self.metadata,
            self.time,
            retry_backoff_ms=RETRY_BACKOFF_MS,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            max_poll_timeout_ms=3_000,
        )
        self.metrics = ConsumerMetrics(self.time)

    def deadline(self, timeout_ms: int = 5_000) -> Deadline:
        return Deadline(self.time, timeout_ms)

    def update_metadata(self, *args: object, **more: object) -> None:
        self.mock.update_metadata(metadata_response(*args, **more))  # type: ignore[arg-type]

    def assign(self, *partitions: TopicPartition, offset: int | None = 0) -> None:
        """By hand, with positions at the offset unless that is None."""
        self.subscriptions.assign_from_user(partitions)
        self.update_metadata()
        for partition in partitions if offset is not None else ():
            self.seek(partition, offset or 0)

    def seek(self, partition: TopicPartition, offset: int, epoch: int | None = None) -> None:
        leader = self.metadata.current_leader(partition)
        self.subscriptions.seek_validated(partition, FetchPosition(offset, epoch, leader))

    def poll(self) -> None:
        self.client.poll(self.deadline(0))
