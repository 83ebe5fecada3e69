"""The answer to a request that failed as a whole.

Where a response has an error code of its own, it takes the error; elsewhere every topic, partition
or resource that was asked about gets it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.message_registry import response_class
from kafkapy.common.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from kafkapy.common.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
)
from kafkapy.common.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kafkapy.common.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kafkapy.common.protocol.messages.delete_records import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
)
from kafkapy.common.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kafkapy.common.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
)
from kafkapy.common.protocol.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kafkapy.common.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from kafkapy.common.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.common.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kafkapy.common.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kafkapy.common.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kafkapy.common.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kafkapy.common.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
)
from kafkapy.common.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kafkapy.common.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kafkapy.common.protocol.messages.produce import ProduceRequest, ProduceResponse
from kafkapy.common.protocol.schema import Message
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.network.request_channel import Request
from kafkapy.server.apis.transaction_error_responses import TRANSACTION_BUILDERS

Builder = Callable[[Any, Errors, str], Message]


def error_response(request: Request, error: Errors, message: str) -> Message | None:
    """None where no answer can carry the error: the connection is then closed."""
    if request.body is None:
        return None
    builder = _BUILDERS.get(request.header.api_key)
    if builder is not None:
        return builder(request.body, error, message)
    response: Any = response_class(request.header.api_key)()
    if not hasattr(response, "error_code"):
        return None
    response.error_code = error.code
    return cast(Message, response)


def _produce(body: ProduceRequest, error: Errors, message: str) -> Message:
    return ProduceResponse(
        responses=[
            ProduceResponse.TopicProduceResponse(
                name=topic.name,
                partition_responses=[
                    ProduceResponse.PartitionProduceResponse(
                        index=partition.index,
                        error_code=error.code,
                        base_offset=-1,
                        error_message=message,
                    )
                    for partition in topic.partition_data
                ],
            )
            for topic in body.topic_data
        ]
    )


def _fetch(body: FetchRequest, error: Errors, message: str) -> Message:
    # Versions below 7 have no error code of their own, so the partitions carry it as well.
    return FetchResponse(
        error_code=error.code,
        session_id=body.session_id,
        responses=[
            FetchResponse.FetchableTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=[
                    FetchResponse.PartitionData(
                        partition_index=partition.partition,
                        error_code=error.code,
                        high_watermark=-1,
                        records=MemoryRecords.EMPTY,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in body.topics
        ],
    )


def _list_offsets(body: ListOffsetsRequest, error: Errors, message: str) -> Message:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsResponse.ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsResponse.ListOffsetsPartitionResponse(
                        partition_index=partition.partition_index, error_code=error.code
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )


def _metadata(body: MetadataRequest, error: Errors, message: str) -> Message:
    return MetadataResponse(
        topics=[
            MetadataResponse.MetadataResponseTopic(
                error_code=error.code, name=topic.name or "", topic_id=topic.topic_id
            )
            for topic in body.topics or ()
        ]
    )


def _offset_for_leader_epoch(
    body: OffsetForLeaderEpochRequest, error: Errors, message: str
) -> Message:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    OffsetForLeaderEpochResponse.EpochEndOffset(
                        partition=partition.partition, error_code=error.code
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )


def _find_coordinator(body: FindCoordinatorRequest, error: Errors, message: str) -> Message:
    if body.coordinator_keys:
        return FindCoordinatorResponse(
            coordinators=[
                FindCoordinatorResponse.Coordinator(
                    key=key, node_id=-1, port=-1, error_code=error.code, error_message=message
                )
                for key in body.coordinator_keys
            ]
        )
    return FindCoordinatorResponse(
        error_code=error.code, error_message=message, node_id=-1, port=-1
    )


def _create_topics(body: CreateTopicsRequest, error: Errors, message: str) -> Message:
    return CreateTopicsResponse(
        topics=[
            CreateTopicsResponse.CreatableTopicResult(
                name=topic.name, error_code=error.code, error_message=message
            )
            for topic in body.topics
        ]
    )


def _delete_topics(body: DeleteTopicsRequest, error: Errors, message: str) -> Message:
    named = [DeleteTopicsRequest.DeleteTopicState(name=name) for name in body.topic_names]
    return DeleteTopicsResponse(
        responses=[
            DeleteTopicsResponse.DeletableTopicResult(
                name=topic.name,
                topic_id=topic.topic_id,
                error_code=error.code,
                error_message=message,
            )
            for topic in [*body.topics, *named]
        ]
    )


def _create_partitions(body: CreatePartitionsRequest, error: Errors, message: str) -> Message:
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsResponse.CreatePartitionsTopicResult(
                name=topic.name, error_code=error.code, error_message=message
            )
            for topic in body.topics
        ]
    )


def _delete_records(body: DeleteRecordsRequest, error: Errors, message: str) -> Message:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsResponse.DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    DeleteRecordsResponse.DeleteRecordsPartitionResult(
                        partition_index=partition.partition_index,
                        low_watermark=-1,
                        error_code=error.code,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )


def _describe_configs(body: DescribeConfigsRequest, error: Errors, message: str) -> Message:
    return DescribeConfigsResponse(
        results=[
            DescribeConfigsResponse.DescribeConfigsResult(
                error_code=error.code,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in body.resources
        ]
    )


def _alter_configs(body: AlterConfigsRequest, error: Errors, message: str) -> Message:
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResponse.AlterConfigsResourceResponse(
                error_code=error.code,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in body.resources
        ]
    )


def _incremental_alter_configs(
    body: IncrementalAlterConfigsRequest, error: Errors, message: str
) -> Message:
    return IncrementalAlterConfigsResponse(
        responses=[
            IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
                error_code=error.code,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in body.resources
        ]
    )


def _describe_topic_partitions(
    body: DescribeTopicPartitionsRequest, error: Errors, message: str
) -> Message:
    return DescribeTopicPartitionsResponse(
        topics=[
            DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic(
                error_code=error.code, name=topic.name
            )
            for topic in body.topics
        ]
    )


def _offset_commit(body: OffsetCommitRequest, error: Errors, message: str) -> Message:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponse.OffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetCommitResponse.OffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=error.code
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )


def _offset_fetch(body: OffsetFetchRequest, error: Errors, message: str) -> Message:
    # Each version has one of the three places: groups, the response itself, the partitions.
    return OffsetFetchResponse(
        error_code=error.code,
        groups=[
            OffsetFetchResponse.OffsetFetchResponseGroup(
                group_id=group.group_id, error_code=error.code
            )
            for group in body.groups
        ],
        topics=[
            OffsetFetchResponse.OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponse.OffsetFetchResponsePartition(
                        partition_index=partition, committed_offset=-1, error_code=error.code
                    )
                    for partition in topic.partition_indexes
                ],
            )
            for topic in body.topics or ()
        ],
    )


def _describe_groups(body: DescribeGroupsRequest, error: Errors, message: str) -> Message:
    return DescribeGroupsResponse(
        groups=[
            DescribeGroupsResponse.DescribedGroup(group_id=group_id, error_code=error.code)
            for group_id in body.groups
        ]
    )


def _delete_groups(body: DeleteGroupsRequest, error: Errors, message: str) -> Message:
    return DeleteGroupsResponse(
        results=[
            DeleteGroupsResponse.DeletableGroupResult(group_id=group_id, error_code=error.code)
            for group_id in body.groups_names
        ]
    )


_BUILDERS: dict[ApiKeys, Builder] = {
    ApiKeys.OFFSET_COMMIT: _offset_commit,
    ApiKeys.OFFSET_FETCH: _offset_fetch,
    ApiKeys.DESCRIBE_GROUPS: _describe_groups,
    ApiKeys.DELETE_GROUPS: _delete_groups,
    ApiKeys.PRODUCE: _produce,
    ApiKeys.FETCH: _fetch,
    ApiKeys.LIST_OFFSETS: _list_offsets,
    ApiKeys.METADATA: _metadata,
    ApiKeys.OFFSET_FOR_LEADER_EPOCH: _offset_for_leader_epoch,
    ApiKeys.FIND_COORDINATOR: _find_coordinator,
    ApiKeys.CREATE_TOPICS: _create_topics,
    ApiKeys.DELETE_TOPICS: _delete_topics,
    ApiKeys.CREATE_PARTITIONS: _create_partitions,
    ApiKeys.DELETE_RECORDS: _delete_records,
    ApiKeys.DESCRIBE_CONFIGS: _describe_configs,
    ApiKeys.ALTER_CONFIGS: _alter_configs,
    ApiKeys.INCREMENTAL_ALTER_CONFIGS: _incremental_alter_configs,
    ApiKeys.DESCRIBE_TOPIC_PARTITIONS: _describe_topic_partitions,
    **TRANSACTION_BUILDERS,
}
