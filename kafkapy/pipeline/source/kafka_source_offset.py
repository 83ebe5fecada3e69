"""How far a streaming query has come, as Spark keeps it in the checkpoint.

    {"topics": {"orders": {"id": "4Zb…", "offsets": {"0": 17, "1": 4}}}}

The id tells a topic from one of the same name that was made after it was deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from kafkapy.common.types import ZERO_UUID, TopicPartition, uuid_from_base64, uuid_to_base64
from kafkapy.pipeline.pipeline_errors import PipelineError


@dataclass(frozen=True, slots=True)
class KafkaSourceOffset:
    """The next offset of each partition, and the ids of the topics where they are known.

    Ports: org.apache.spark.sql.kafka010.KafkaSourceOffset
    """

    offsets: Mapping[TopicPartition, int]
    topic_ids: Mapping[str, UUID]

    @property
    def topics(self) -> frozenset[str]:
        return frozenset(partition.topic for partition in self.offsets)

    def topic_id(self, topic: str) -> UUID:
        """ZERO_UUID where it is not known."""
        return self.topic_ids.get(topic, ZERO_UUID)

    def is_other_topic(self, topic: str, other: KafkaSourceOffset) -> bool:
        """Whether the name stands for another topic there; not so where an id is not known."""
        here, there = self.topic_id(topic), other.topic_id(topic)
        return ZERO_UUID not in (here, there) and here != there

    def at_most(self, other: KafkaSourceOffset) -> KafkaSourceOffset:
        """The lesser offset of each partition that both have."""
        offsets = {
            partition: min(offset, other.offsets[partition])
            for partition, offset in self.offsets.items()
            if partition in other.offsets
        }
        return KafkaSourceOffset(offsets, self.topic_ids)

    def to_json(self) -> dict[str, Any]:
        """Always the same for the same offsets: Spark compares the texts."""
        topics: dict[str, Any] = {}
        for partition in sorted(self.offsets):
            entry = topics.setdefault(
                partition.topic,
                {"id": uuid_to_base64(self.topic_id(partition.topic)), "offsets": {}},
            )
            entry["offsets"][str(partition.partition)] = self.offsets[partition]
        return {"topics": topics}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> KafkaSourceOffset:
        """Also of the official connector's form, {"orders": {"0": 17}}, which has no ids."""
        try:
            return _parse(value)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise PipelineError(
                f"the checkpoint's offsets are not of this source: {value!r}"
            ) from error


def _parse(value: Mapping[str, Any]) -> KafkaSourceOffset:
    offsets: dict[TopicPartition, int] = {}
    ids: dict[str, UUID] = {}
    topics = value.get("topics")
    if len(value) == 1 and isinstance(topics, dict) and all("offsets" in t for t in _each(topics)):
        for topic, entry in topics.items():
            ids[topic] = uuid_from_base64(entry["id"])
            offsets.update(_offsets(topic, entry["offsets"]))
    else:
        for topic, entry in value.items():
            offsets.update(_offsets(topic, entry))
    return KafkaSourceOffset(offsets, ids)


def _each(topics: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [entry if isinstance(entry, dict) else {} for entry in topics.values()]


def _offsets(topic: str, entry: Mapping[str, Any]) -> dict[TopicPartition, int]:
    return {TopicPartition(topic, int(number)): int(offset) for number, offset in entry.items()}
