"""Metadata responses in one line, for tests of clients."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.metadata import MetadataResponse
from kafkapy.common.types import ZERO_UUID
from kafkapy.metadata.broker import Node


def metadata_response(
    topics: Mapping[str, int] | None = None,
    *,
    brokers: int = 1,
    leader_epoch: int = 0,
    errors: Mapping[str, Errors] | None = None,
    topic_ids: Mapping[str, UUID] | None = None,
    leaders: Mapping[tuple[str, int], int] | None = None,
    controller_id: int = 0,
) -> MetadataResponse:
    """`topics` by number of partitions; partition p is led by broker p modulo their number."""
    answer = MetadataResponse(
        cluster_id="cluster",
        controller_id=controller_id,
        brokers=[
            MetadataResponse.MetadataResponseBroker(node_id=i, host="127.0.0.1", port=1000 + i)
            for i in range(brokers)
        ],
    )
    for name, count in (topics or {}).items():
        answer.topics.append(
            MetadataResponse.MetadataResponseTopic(
                name=name,
                topic_id=(topic_ids or {}).get(name, ZERO_UUID),
                partitions=[
                    MetadataResponse.MetadataResponsePartition(
                        partition_index=p,
                        leader_id=(leaders or {}).get((name, p), p % brokers),
                        leader_epoch=leader_epoch,
                        replica_nodes=list(range(brokers)),
                        isr_nodes=list(range(brokers)),
                    )
                    for p in range(count)
                ],
            )
        )
    for name, error in (errors or {}).items():
        answer.topics.append(
            MetadataResponse.MetadataResponseTopic(name=name, error_code=error.code)
        )
    return answer


def node(node_id: int) -> Node:
    """As `metadata_response` describes it."""
    return Node(node_id, "127.0.0.1", 1000 + node_id)
