"""Subscriptions and assignments as bytes: a version as int16, then the message.

A newer version than ours is read as our newest: versions only ever add to the end.

Ports: org.apache.kafka.clients.consumer.internals.ConsumerProtocol
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable

from kafkapy.clients.consumer.assignors.consumer_partition_assignor import (
    Assignment,
    Subscription,
)
from kafkapy.common.protocol.codec import ProtocolError
from kafkapy.common.protocol.messages.consumer_protocol_assignment import (
    ConsumerProtocolAssignment,
)
from kafkapy.common.protocol.messages.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
)
from kafkapy.common.protocol.schema import Message
from kafkapy.common.types import TopicPartition

PROTOCOL_TYPE = "consumer"
_VERSION = struct.Struct(">h")


def serialize_subscription(
    subscription: Subscription, version: int = ConsumerProtocolSubscription.VERSIONS.highest
) -> bytes:
    by_topic = _by_topic(subscription.owned_partitions)
    message = ConsumerProtocolSubscription(
        topics=sorted(subscription.topics),
        user_data=subscription.user_data,
        owned_partitions=[
            ConsumerProtocolSubscription.TopicPartition(topic=topic, partitions=partitions)
            for topic, partitions in sorted(by_topic.items())
        ],
        generation_id=subscription.generation_id,
        rack_id=subscription.rack_id,
    )
    return _VERSION.pack(version) + message.encode(version)


def deserialize_subscription(data: bytes, *, group_instance_id: str | None = None) -> Subscription:
    """ProtocolError when the bytes are no subscription."""
    message = ConsumerProtocolSubscription.decode(
        data[_VERSION.size :], _version(data, ConsumerProtocolSubscription)
    )
    return Subscription(
        topics=tuple(message.topics),
        user_data=_own_bytes(message.user_data),
        owned_partitions=tuple(
            TopicPartition(topic.topic, partition)
            for topic in message.owned_partitions
            for partition in topic.partitions
        ),
        generation_id=message.generation_id,
        rack_id=message.rack_id,
        group_instance_id=group_instance_id,
    )


def serialize_assignment(
    assignment: Assignment, version: int = ConsumerProtocolAssignment.VERSIONS.highest
) -> bytes:
    by_topic = _by_topic(assignment.partitions)
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignment.TopicPartition(topic=topic, partitions=partitions)
            for topic, partitions in by_topic.items()
        ],
        user_data=assignment.user_data,
    )
    return _VERSION.pack(version) + message.encode(version)


def deserialize_assignment(data: bytes) -> Assignment:
    """ProtocolError when the bytes are no assignment."""
    message = ConsumerProtocolAssignment.decode(
        data[_VERSION.size :], _version(data, ConsumerProtocolAssignment)
    )
    return Assignment(
        [
            TopicPartition(topic.topic, partition)
            for topic in message.assigned_partitions
            for partition in topic.partitions
        ],
        _own_bytes(message.user_data),
    )


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    by_topic: defaultdict[str, list[int]] = defaultdict(list)
    for topic, partition in partitions:
        by_topic[topic].append(partition)
    return by_topic


def _version(data: bytes, message: type[Message]) -> int:
    if len(data) < _VERSION.size:
        raise ProtocolError(f"{message.__name__} is shorter than its version number")
    version: int = _VERSION.unpack_from(data)[0]
    if version < 0:
        raise ProtocolError(f"{message.__name__} has version {version}")
    return min(version, message.VERSIONS.highest)


def _own_bytes(data: bytes | None) -> bytes | None:
    """What a decoder gives may be a view of the whole response."""
    return None if data is None else bytes(data)
