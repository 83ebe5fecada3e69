"""The offsets that a streaming source reports to Spark, by partition.

Two forms are known; any other source (files, a rate) has no partitions of a topic:

    {"topics": {"orders": {"id": "…", "offsets": {"0": 42}}}}     format("kafkapy")
    {"orders": {"0": 42}}                                          Spark's own Kafka connector
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkapy.common.types import TopicPartition


def offsets_by_partition(reported: Any) -> dict[TopicPartition, int]:
    """`reported` is JSON as Spark gives it: None before the first batch. Empty if not a topic's."""
    if not isinstance(reported, Mapping):
        return {}
    topics = reported.get("topics")
    if isinstance(topics, Mapping) and all(_has_offsets(said) for said in topics.values()):
        return _flattened({topic: said["offsets"] for topic, said in topics.items()})
    return _flattened(reported)


def _has_offsets(said: Any) -> bool:
    return isinstance(said, Mapping) and "offsets" in said


def _flattened(by_topic: Mapping[str, Any]) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic, int(partition)): offset
        for topic, offsets in by_topic.items()
        if isinstance(offsets, Mapping)
        for partition, offset in offsets.items()
        if partition.isdigit() and isinstance(offset, int)
    }
