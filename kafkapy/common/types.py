"""Names for the things every package talks about."""

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID, uuid4

ZERO_UUID = UUID(int=0)
# Reserved for the KRaft metadata topic; never handed to a user topic.
METADATA_TOPIC_ID = UUID(int=1)

CONSUMER_OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"
# The log of a KRaft quorum: nobody may have a topic of that name.
CLUSTER_METADATA_TOPIC = "__cluster_metadata"
INTERNAL_TOPICS = frozenset({CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC})


class TopicPartition(NamedTuple):
    """One partition of a topic, by name. A tuple, so hashing it costs nothing.

    Ports: org.apache.kafka.common.TopicPartition
    """

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def partitions_by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """As requests want them; topics and partitions keep their order."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    return by_topic


@dataclass(frozen=True, slots=True)
class TopicIdPartition:
    """One partition of a topic, by id and by name.

    Ports: org.apache.kafka.common.TopicIdPartition
    """

    topic_id: UUID
    topic_partition: TopicPartition

    def __str__(self) -> str:
        return f"{uuid_to_base64(self.topic_id)}:{self.topic_partition}"


def random_topic_id() -> UUID:
    """A fresh topic id whose text form never starts with a dash (it is used in command lines)."""
    while True:
        topic_id = uuid4()
        if topic_id not in (ZERO_UUID, METADATA_TOPIC_ID):
            text = uuid_to_base64(topic_id)
            if not text.startswith("-"):
                return topic_id


def uuid_to_base64(value: UUID) -> str:
    """Kafka's 22-character text form: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode("ascii")


def uuid_from_base64(text: str) -> UUID:
    """Raises ValueError for anything that is not 16 bytes of URL-safe base64."""
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    return UUID(bytes=raw)
