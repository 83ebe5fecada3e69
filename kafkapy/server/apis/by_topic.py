"""Results by partition, in the form that most responses have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from kafkapy.common.types import TopicPartition

T = TypeVar("T")


def by_topic(values: Mapping[TopicPartition, T]) -> dict[str, dict[int, T]]:
    """Topics, and in each its partitions, in order."""
    topics: dict[str, dict[int, T]] = {}
    for topic_partition in sorted(values):
        partitions = topics.setdefault(topic_partition.topic, {})
        partitions[topic_partition.partition] = values[topic_partition]
    return topics
