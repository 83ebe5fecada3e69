"""Offsets that consumer groups store."""

from __future__ import annotations

from collections.abc import Mapping

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
)
from kafkapy.common.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
)
from kafkapy.common.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kafkapy.common.types import TopicPartition
from kafkapy.coordinator.group.group_coordinator import GroupCoordinator
from kafkapy.coordinator.group.offset_and_metadata import NO_METADATA, OffsetAndMetadata
from kafkapy.metadata.metadata_cache import MetadataCache
from kafkapy.network.request_channel import Request, RequestChannel
from kafkapy.utils.time import Time

_FETCH_WITH_TOP_LEVEL_ERROR = 2
_FETCH_WITH_SEVERAL_GROUPS = 8
_INVALID_OFFSET = -1
_NO_EPOCH = -1
_UNSET = -1

_Fetched = Mapping[TopicPartition, tuple[Errors, OffsetAndMetadata | None]]


class GroupOffsetsHandler:
    """Version 0 of OffsetCommit and OffsetFetch, which meant ZooKeeper, is served as version 1.

    Ports: kafka.server.KafkaApis.handleOffsetCommitRequest
    """

    def __init__(
        self,
        request_channel: RequestChannel,
        group_coordinator: GroupCoordinator,
        metadata_cache: MetadataCache,
        time: Time,
    ) -> None:
        self._request_channel = request_channel
        self._coordinator = group_coordinator
        self._metadata_cache = metadata_cache
        self._time = time

    def handle_offset_commit(self, request: Request) -> None:
        body = request.body_as(OffsetCommitRequest)
        now_ms = self._time.milliseconds()
        expire_ms = now_ms + body.retention_time_ms if body.retention_time_ms != _UNSET else None
        offsets = {
            partition: OffsetAndMetadata(
                wanted.committed_offset,
                None
                if wanted.committed_leader_epoch == _NO_EPOCH
                else wanted.committed_leader_epoch,
                wanted.committed_metadata or NO_METADATA,
                now_ms if wanted.commit_timestamp == _UNSET else wanted.commit_timestamp,
                expire_ms,
            )
            for topic in body.topics
            for wanted in topic.partitions
            if self._metadata_cache.contains(
                partition := TopicPartition(topic.name, wanted.partition_index)
            )
        }

        def respond(errors: Mapping[TopicPartition, Errors]) -> None:
            self._request_channel.send_response(request, _commit_response(body, errors))

        if not offsets:
            respond({})
            return
        self._coordinator.handle_commit_offsets(
            body.group_id,
            member_id=body.member_id,
            group_instance_id=body.group_instance_id,
            generation_id=body.generation_id_or_member_epoch,
            offsets=offsets,
            callback=respond,
        )

    def handle_offset_fetch(self, request: Request) -> None:
        body = request.body_as(OffsetFetchRequest)
        if request.header.api_version >= _FETCH_WITH_SEVERAL_GROUPS:
            response = OffsetFetchResponse(
                groups=[self._fetch_group(group, body.require_stable) for group in body.groups]
            )
        else:
            response = self._fetch_single_group(body, request.header.api_version)
        self._request_channel.send_response(request, response)

    def _fetch_group(
        self, group: OffsetFetchRequest.OffsetFetchRequestGroup, require_stable: bool
    ) -> OffsetFetchResponse.OffsetFetchResponseGroup:
        error, fetched = self._coordinator.handle_fetch_offsets(
            group.group_id, _partitions(group.topics), require_stable=require_stable
        )
        return OffsetFetchResponse.OffsetFetchResponseGroup(
            group_id=group.group_id,
            error_code=error.code,
            topics=[
                OffsetFetchResponse.OffsetFetchResponseTopics(
                    name=topic,
                    partitions=[
                        OffsetFetchResponse.OffsetFetchResponsePartitions(
                            partition_index=partition,
                            committed_offset=_INVALID_OFFSET if offset is None else offset.offset,
                            committed_leader_epoch=_epoch(offset),
                            metadata=NO_METADATA if offset is None else offset.metadata,
                            error_code=partition_error.code,
                        )
                        for partition, partition_error, offset in partitions
                    ],
                )
                for topic, partitions in _by_topic(fetched).items()
            ],
        )

    def _fetch_single_group(self, body: OffsetFetchRequest, version: int) -> OffsetFetchResponse:
        wanted = _partitions(body.topics)
        error, fetched = self._coordinator.handle_fetch_offsets(
            body.group_id, wanted, require_stable=body.require_stable
        )
        if error is not Errors.NONE and version < _FETCH_WITH_TOP_LEVEL_ERROR:
            fetched = dict.fromkeys(wanted or (), (error, None))
        return OffsetFetchResponse(
            error_code=error.code,
            topics=[
                OffsetFetchResponse.OffsetFetchResponseTopic(
                    name=topic,
                    partitions=[
                        OffsetFetchResponse.OffsetFetchResponsePartition(
                            partition_index=partition,
                            committed_offset=_INVALID_OFFSET if offset is None else offset.offset,
                            committed_leader_epoch=_epoch(offset),
                            metadata=NO_METADATA if offset is None else offset.metadata,
                            error_code=partition_error.code,
                        )
                        for partition, partition_error, offset in partitions
                    ],
                )
                for topic, partitions in _by_topic(fetched).items()
            ],
        )

    def handle_offset_delete(self, request: Request) -> None:
        body = request.body_as(OffsetDeleteRequest)
        wanted = [
            TopicPartition(topic.name, partition.partition_index)
            for topic in body.topics
            for partition in topic.partitions
        ]
        error, errors = self._coordinator.handle_delete_offsets(
            body.group_id, [tp for tp in wanted if self._metadata_cache.contains(tp)]
        )
        if error is not Errors.NONE:
            self._request_channel.send_response(
                request, OffsetDeleteResponse(error_code=error.code)
            )
            return
        self._request_channel.send_response(
            request,
            OffsetDeleteResponse(
                topics=[
                    OffsetDeleteResponse.OffsetDeleteResponseTopic(
                        name=topic.name,
                        partitions=[
                            OffsetDeleteResponse.OffsetDeleteResponsePartition(
                                partition_index=partition.partition_index,
                                error_code=errors.get(
                                    TopicPartition(topic.name, partition.partition_index),
                                    Errors.UNKNOWN_TOPIC_OR_PARTITION,
                                ).code,
                            )
                            for partition in topic.partitions
                        ],
                    )
                    for topic in body.topics
                ]
            ),
        )


def _commit_response(
    body: OffsetCommitRequest, errors: Mapping[TopicPartition, Errors]
) -> OffsetCommitResponse:
    """What the coordinator was not asked about does not exist."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponse.OffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetCommitResponse.OffsetCommitResponsePartition(
                        partition_index=partition.partition_index,
                        error_code=errors.get(
                            TopicPartition(topic.name, partition.partition_index),
                            Errors.UNKNOWN_TOPIC_OR_PARTITION,
                        ).code,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )


def _partitions(
    topics: list[OffsetFetchRequest.OffsetFetchRequestTopic]
    | list[OffsetFetchRequest.OffsetFetchRequestTopics]
    | None,
) -> list[TopicPartition] | None:
    if topics is None:
        return None
    return [
        TopicPartition(topic.name, partition)
        for topic in topics
        for partition in topic.partition_indexes
    ]


def _by_topic(
    fetched: _Fetched,
) -> dict[str, list[tuple[int, Errors, OffsetAndMetadata | None]]]:
    topics: dict[str, list[tuple[int, Errors, OffsetAndMetadata | None]]] = {}
    for (topic, partition), (error, offset) in fetched.items():
        topics.setdefault(topic, []).append((partition, error, offset))
    return topics


def _epoch(offset: OffsetAndMetadata | None) -> int:
    return _NO_EPOCH if offset is None or offset.leader_epoch is None else offset.leader_epoch
