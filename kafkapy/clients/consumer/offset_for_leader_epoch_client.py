"""Asks leaders where the epochs of positions end, to find out whether a log was truncated.

Ports: org.apache.kafka.clients.consumer.internals.OffsetsForLeaderEpochClient
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from kafkapy.clients.api_versions import NodeApiVersions
from kafkapy.clients.client_request import ClientResponse, VersionedRequest
from kafkapy.clients.consumer.request_future import RequestFuture
from kafkapy.clients.consumer.topic_partition_state import FetchPosition
from kafkapy.common.errors import Errors, TopicAuthorizationError
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kafkapy.common.types import TopicPartition

logger = logging.getLogger(__name__)

_CONSUMER_REPLICA_ID = -1
_NO_EPOCH = -1
# Before it the request needed a broker's rights.
_FIRST_VERSION_FOR_CONSUMERS = 3


@dataclass(slots=True)
class EpochEndOffsets:
    """(leader epoch, end offset) where a leader answered, and what is to be asked again."""

    end_offsets: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    to_retry: set[TopicPartition] = field(default_factory=set)


def supports_leader_epochs(versions: NodeApiVersions) -> bool:
    offered = versions.api_version(ApiKeys.OFFSET_FOR_LEADER_EPOCH)
    return offered is not None and offered.highest >= _FIRST_VERSION_FOR_CONSUMERS


def leader_epoch_request(positions: Mapping[TopicPartition, FetchPosition]) -> VersionedRequest:
    topics: dict[str, OffsetForLeaderEpochRequest.OffsetForLeaderTopic] = {}
    for partition, position in positions.items():
        topic = topics.setdefault(
            partition.topic,
            OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic=partition.topic),
        )
        leader_epoch = position.current_leader.epoch
        topic.partitions.append(
            OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
                partition=partition.partition,
                current_leader_epoch=_NO_EPOCH if leader_epoch is None else leader_epoch,
                leader_epoch=_NO_EPOCH if position.offset_epoch is None else position.offset_epoch,
            )
        )
    return VersionedRequest(
        OffsetForLeaderEpochRequest(replica_id=_CONSUMER_REPLICA_ID, topics=list(topics.values())),
        min_version=_FIRST_VERSION_FOR_CONSUMERS,
    )


def read_leader_epoch_response(
    response: ClientResponse,
    asked: Mapping[TopicPartition, FetchPosition],
    future: RequestFuture[EpochEndOffsets],
) -> None:
    """Complete the future; a partition that the answer leaves out is asked about again."""
    message = response.message
    assert isinstance(message, OffsetForLeaderEpochResponse)
    result = EpochEndOffsets(to_retry=set(asked))
    unauthorized: set[str] = set()
    for topic in message.topics:
        for answer in topic.partitions:
            partition = TopicPartition(topic.topic, answer.partition)
            if partition not in asked:
                continue
            error = Errors.for_code(answer.error_code)
            if error is Errors.NONE:
                result.end_offsets[partition] = (answer.leader_epoch, answer.end_offset)
                result.to_retry.discard(partition)
            elif error is Errors.TOPIC_AUTHORIZATION_FAILED:
                unauthorized.add(topic.topic)
            else:
                logger.debug("Asking for the epochs of %s failed: %s", partition, error.name)
    if unauthorized:
        future.fail(TopicAuthorizationError(f"Not authorized for {sorted(unauthorized)}"))
    else:
        future.complete(result)
