"""Committed offsets of consumer groups."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

from kafkapy.clients.admin.admin_api_handler import ApiResult
from kafkapy.clients.admin.apis.groups import GroupCoordinatorHandler
from kafkapy.clients.client_request import VersionedRequest
from kafkapy.clients.consumer.offset_and_metadata import OffsetAndMetadata
from kafkapy.common.errors import Errors, KafkaError, UnsupportedVersionError
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
)
from kafkapy.common.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
)
from kafkapy.common.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kafkapy.common.types import TopicPartition, partitions_by_topic
from kafkapy.metadata.broker import Node

logger = logging.getLogger(__name__)

_FIRST_BATCHED_FETCH = 8
_FIRST_STABLE_FETCH = 7
_FIRST_FETCH_OF_ALL = 2
_FIRST_COMMIT_BY_NO_MEMBER = 1
_NO_OFFSET = -1

CommittedOffsets = dict[TopicPartition, OffsetAndMetadata | None]

_GROUP_ERRORS_OF_A_COMMIT = frozenset(
    {
        Errors.COORDINATOR_LOAD_IN_PROGRESS,
        Errors.COORDINATOR_NOT_AVAILABLE,
        Errors.NOT_COORDINATOR,
        Errors.REBALANCE_IN_PROGRESS,
        Errors.GROUP_ID_NOT_FOUND,
        Errors.INVALID_GROUP_ID,
        Errors.GROUP_AUTHORIZATION_FAILED,
    }
)


class ListConsumerGroupOffsetsHandler(
    GroupCoordinatorHandler[CommittedOffsets, OffsetFetchResponse]
):
    """Partitions that were asked for and have no offset have None.

    Ports: org.apache.kafka.clients.admin.internals.ListConsumerGroupOffsetsHandler
    """

    call_name = "list_consumer_group_offsets"

    def __init__(
        self,
        groups: Mapping[str, Iterable[TopicPartition] | None],
        *,
        require_stable: bool,
    ) -> None:
        """None stands for all partitions that have offsets."""
        super().__init__()
        self._topics = {
            group_id: None if partitions is None else partitions_by_topic(partitions)
            for group_id, partitions in groups.items()
        }
        self._require_stable = require_stable

    def build_request(self, keys: Sequence[str], timeout_ms: int) -> VersionedRequest:
        def build(version: int) -> OffsetFetchRequest:
            if version >= _FIRST_BATCHED_FETCH:
                return self._batched(keys)
            if len(keys) > 1:
                raise UnsupportedVersionError("The broker tells of one group's offsets at a time")
            return self._of_one_group(keys[0])

        min_version = _FIRST_STABLE_FETCH if self._require_stable else _FIRST_FETCH_OF_ALL
        return VersionedRequest(build, api_key=ApiKeys.OFFSET_FETCH, min_version=min_version)

    def handle_response(
        self, keys: Sequence[str], response: OffsetFetchResponse, node: Node
    ) -> ApiResult[str, CommittedOffsets]:
        result = self.new_result()
        if response.groups:
            for group in response.groups:
                result.file(group.group_id, group.error_code, _offsets(group))
        else:
            result.file(keys[0], response.error_code, _offsets(response))
        return result

    def handle_unsupported_version(
        self, keys: Sequence[str], error: UnsupportedVersionError
    ) -> dict[str, KafkaError]:
        if self.is_batched and len(keys) > 1:
            self.is_batched = False
            return {}
        return super().handle_unsupported_version(keys, error)

    def _batched(self, group_ids: Sequence[str]) -> OffsetFetchRequest:
        groups = []
        for group_id in group_ids:
            topics = self._topics[group_id]
            groups.append(
                OffsetFetchRequest.OffsetFetchRequestGroup(
                    group_id=group_id,
                    topics=None
                    if topics is None
                    else [
                        OffsetFetchRequest.OffsetFetchRequestTopics(
                            name=name, partition_indexes=partitions
                        )
                        for name, partitions in topics.items()
                    ],
                )
            )
        return OffsetFetchRequest(groups=groups, require_stable=self._require_stable)

    def _of_one_group(self, group_id: str) -> OffsetFetchRequest:
        topics = self._topics[group_id]
        return OffsetFetchRequest(
            group_id=group_id,
            topics=None
            if topics is None
            else [
                OffsetFetchRequest.OffsetFetchRequestTopic(name=name, partition_indexes=partitions)
                for name, partitions in topics.items()
            ],
            require_stable=self._require_stable,
        )


class AlterConsumerGroupOffsetsHandler(
    GroupCoordinatorHandler[dict[TopicPartition, Errors], OffsetCommitResponse]
):
    """The value tells for each partition what became of it.

    Ports: org.apache.kafka.clients.admin.internals.AlterConsumerGroupOffsetsHandler
    """

    call_name = "alter_consumer_group_offsets"
    retriable = frozenset({Errors.COORDINATOR_LOAD_IN_PROGRESS, Errors.REBALANCE_IN_PROGRESS})

    def __init__(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        super().__init__(is_batched=False)
        for partition, offset in offsets.items():
            if offset.offset < 0:
                raise ValueError(f"the offset of {partition} must not be negative: {offset.offset}")
        self._offsets = offsets

    def build_request(self, keys: Sequence[str], timeout_ms: int) -> VersionedRequest:
        return VersionedRequest(
            OffsetCommitRequest(
                group_id=keys[0],
                topics=[
                    OffsetCommitRequest.OffsetCommitRequestTopic(
                        name=topic,
                        partitions=[self._partition(topic, index) for index in partitions],
                    )
                    for topic, partitions in partitions_by_topic(self._offsets).items()
                ],
            ),
            min_version=_FIRST_COMMIT_BY_NO_MEMBER,
        )

    def handle_response(
        self, keys: Sequence[str], response: OffsetCommitResponse, node: Node
    ) -> ApiResult[str, dict[TopicPartition, Errors]]:
        result = self.new_result()
        errors = _partition_errors(response)
        of_the_group = [e for e in errors.values() if e in _GROUP_ERRORS_OF_A_COMMIT]
        if of_the_group:
            result.fail(keys[0], of_the_group[0])
        else:
            result.complete(keys[0], errors)
        return result

    def _partition(
        self, topic: str, partition: int
    ) -> OffsetCommitRequest.OffsetCommitRequestPartition:
        offset = self._offsets[TopicPartition(topic, partition)]
        return OffsetCommitRequest.OffsetCommitRequestPartition(
            partition_index=partition,
            committed_offset=offset.offset,
            committed_leader_epoch=-1 if offset.leader_epoch is None else offset.leader_epoch,
            committed_metadata=offset.metadata,
        )


class DeleteConsumerGroupOffsetsHandler(
    GroupCoordinatorHandler[dict[TopicPartition, Errors], OffsetDeleteResponse]
):
    """The value tells for each partition what became of it.

    Ports: org.apache.kafka.clients.admin.internals.DeleteConsumerGroupOffsetsHandler
    """

    call_name = "delete_consumer_group_offsets"

    def __init__(self, partitions: Iterable[TopicPartition]) -> None:
        super().__init__(is_batched=False)
        self._topics = partitions_by_topic(partitions)

    def build_request(self, keys: Sequence[str], timeout_ms: int) -> VersionedRequest:
        return VersionedRequest(
            OffsetDeleteRequest(
                group_id=keys[0],
                topics=[
                    OffsetDeleteRequest.OffsetDeleteRequestTopic(
                        name=topic,
                        partitions=[
                            OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=index)
                            for index in partitions
                        ],
                    )
                    for topic, partitions in self._topics.items()
                ],
            )
        )

    def handle_response(
        self, keys: Sequence[str], response: OffsetDeleteResponse, node: Node
    ) -> ApiResult[str, dict[TopicPartition, Errors]]:
        result = self.new_result()
        result.file(keys[0], response.error_code, _partition_errors(response))
        return result


def _partition_errors(
    response: OffsetCommitResponse | OffsetDeleteResponse,
) -> dict[TopicPartition, Errors]:
    return {
        TopicPartition(topic.name, partition.partition_index): Errors.for_code(partition.error_code)
        for topic in response.topics
        for partition in topic.partitions
    }


def _offsets(
    group: OffsetFetchResponse | OffsetFetchResponse.OffsetFetchResponseGroup,
) -> CommittedOffsets:
    offsets: CommittedOffsets = {}
    for topic in group.topics:
        for partition in topic.partitions:
            key = TopicPartition(topic.name, partition.partition_index)
            error = Errors.for_code(partition.error_code)
            if error is not Errors.NONE:
                logger.warning("No committed offset of %s is told: %s", key, error.name)
            elif partition.committed_offset == _NO_OFFSET:
                offsets[key] = None
            else:
                epoch = partition.committed_leader_epoch
                offsets[key] = OffsetAndMetadata(
                    partition.committed_offset,
                    partition.metadata or "",
                    epoch if epoch >= 0 else None,
                )
    return offsets
