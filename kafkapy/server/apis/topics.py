"""CreateTopics, DeleteTopics and CreatePartitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from uuid import UUID

from kafkapy.common.errors import Errors, InvalidRequestError
from kafkapy.common.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
)
from kafkapy.common.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kafkapy.common.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kafkapy.common.types import CLUSTER_METADATA_TOPIC, ZERO_UUID
from kafkapy.metadata.metadata_cache import MetadataCache
from kafkapy.network.request_channel import Request, RequestChannel
from kafkapy.server.admin_manager import AdminManager, TopicResult, TopicResults


class TopicsHandler:
    """Only the active controller's broker changes topics; each topic succeeds or fails alone.

    Ports: kafka.server.KafkaApis.handleCreateTopicsRequest
    """

    def __init__(
        self,
        request_channel: RequestChannel,
        admin_manager: AdminManager,
        metadata_cache: MetadataCache,
        *,
        is_controller_active: Callable[[], bool],
        deletion_enabled: bool,
    ) -> None:
        self._request_channel = request_channel
        self._admin_manager = admin_manager
        self._metadata_cache = metadata_cache
        self._is_controller_active = is_controller_active
        self._deletion_enabled = deletion_enabled

    def handle_create_topics(self, request: Request) -> None:
        body = request.body_as(CreateTopicsRequest)
        names = [topic.name for topic in body.topics]
        refused = self._refusals(names)
        if CLUSTER_METADATA_TOPIC in names:
            refused.setdefault(
                CLUSTER_METADATA_TOPIC,
                TopicResult(Errors.INVALID_REQUEST, f"{CLUSTER_METADATA_TOPIC} is reserved"),
            )

        def respond(results: TopicResults) -> None:
            self._request_channel.send_response(
                request,
                CreateTopicsResponse(
                    topics=[
                        _created(name, result) for name, result in {**refused, **results}.items()
                    ]
                ),
            )

        self._admin_manager.create_topics(
            [topic for topic in body.topics if topic.name not in refused],
            timeout_ms=body.timeout_ms,
            validate_only=body.validate_only,
            callback=respond,
        )

    def handle_create_partitions(self, request: Request) -> None:
        body = request.body_as(CreatePartitionsRequest)
        refused = self._refusals([topic.name for topic in body.topics])

        def respond(results: TopicResults) -> None:
            self._request_channel.send_response(
                request,
                CreatePartitionsResponse(
                    results=[
                        CreatePartitionsResponse.CreatePartitionsTopicResult(
                            name=name, error_code=result.error.code, error_message=result.message
                        )
                        for name, result in {**refused, **results}.items()
                    ]
                ),
            )

        self._admin_manager.create_partitions(
            [topic for topic in body.topics if topic.name not in refused],
            timeout_ms=body.timeout_ms,
            validate_only=body.validate_only,
            callback=respond,
        )

    def handle_delete_topics(self, request: Request) -> None:
        body = request.body_as(DeleteTopicsRequest)
        for topic in body.topics:
            if topic.name is not None and topic.topic_id != ZERO_UUID:
                raise InvalidRequestError(f"Topic {topic.name} is given by name and by id")
        ids_to_names = self._metadata_cache.topic_ids_to_names()
        # A topic may stand here twice: it is deleted once, and each time it is asked for answered.
        asked: list[tuple[str | None, UUID]] = [(name, ZERO_UUID) for name in body.topic_names]
        asked += [
            (
                topic.name if topic.name is not None else ids_to_names.get(topic.topic_id),
                topic.topic_id,
            )
            for topic in body.topics
        ]
        names = {name for name, _ in asked if name is not None}
        refused = self._deletion_refusals(names, request.header.api_version)

        def respond(results: TopicResults) -> None:
            answers = {**refused, **results}
            unknown_id = TopicResult(Errors.UNKNOWN_TOPIC_ID)
            self._request_channel.send_response(
                request,
                DeleteTopicsResponse(
                    responses=[
                        _deleted(name, topic_id, unknown_id if name is None else answers[name])
                        for name, topic_id in asked
                    ]
                ),
            )

        self._admin_manager.delete_topics(
            names - refused.keys(), timeout_ms=body.timeout_ms, callback=respond
        )

    def _deletion_refusals(self, names: set[str], version: int) -> TopicResults:
        if not self._is_controller_active():
            refusal = TopicResult(Errors.NOT_CONTROLLER)
        elif not self._deletion_enabled:
            error = Errors.TOPIC_DELETION_DISABLED if version >= 3 else Errors.INVALID_REQUEST
            refusal = TopicResult(error, "delete.topic.enable is false")
        else:
            return {}
        return dict.fromkeys(names, refusal)

    def _refusals(self, names: list[str]) -> TopicResults:
        if not self._is_controller_active():
            return {name: TopicResult(Errors.NOT_CONTROLLER) for name in names}
        return {
            name: TopicResult(Errors.INVALID_REQUEST, f"{name} stands twice in this request")
            for name, count in Counter(names).items()
            if count > 1
        }


def _created(name: str, result: TopicResult) -> CreateTopicsResponse.CreatableTopicResult:
    answer = CreateTopicsResponse.CreatableTopicResult(
        name=name,
        topic_id=result.topic_id,
        error_code=result.error.code,
        error_message=result.message,
    )
    if result.error is Errors.NONE:
        answer.num_partitions = result.num_partitions
        answer.replication_factor = result.replication_factor
        answer.configs = [
            CreateTopicsResponse.CreatableTopicConfigs(
                name=entry.name,
                value=entry.value,
                read_only=entry.read_only,
                config_source=entry.source,
                is_sensitive=entry.is_sensitive,
            )
            for entry in result.configs
        ]
    return answer


def _deleted(
    name: str | None, topic_id: UUID, result: TopicResult
) -> DeleteTopicsResponse.DeletableTopicResult:
    return DeleteTopicsResponse.DeletableTopicResult(
        name=name,
        topic_id=topic_id,
        error_code=result.error.code,
        error_message=result.message or (result.error.message if result.error.code else None),
    )
