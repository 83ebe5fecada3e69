"""Which broker leads a partition, and which brokers hold it: an administrator's wishes."""

from __future__ import annotations

from collections.abc import Mapping

from kafkapy.common.errors import Errors, InvalidRequestError
from kafkapy.common.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from kafkapy.common.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
)
from kafkapy.common.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kafkapy.common.types import TopicPartition
from kafkapy.controller.controller_events import ApiResult, ElectionType, ReassignmentTargets
from kafkapy.controller.kafka_controller import KafkaController
from kafkapy.metadata.metadata_cache import MetadataCache
from kafkapy.metadata.replica_assignment import ReplicaAssignment
from kafkapy.network.request_channel import Request, RequestChannel
from kafkapy.server.apis.by_topic import by_topic
from kafkapy.server.leader_elections import LeaderElections


class ReassignmentsHandler:
    """Ports: kafka.server.KafkaApis.handleAlterPartitionReassignmentsRequest"""

    def __init__(
        self,
        request_channel: RequestChannel,
        controller: KafkaController,
        elections: LeaderElections,
        metadata_cache: MetadataCache,
    ) -> None:
        self._request_channel = request_channel
        self._controller = controller
        self._elections = elections
        self._metadata_cache = metadata_cache

    def handle_elect_leaders(self, request: Request) -> None:
        body = request.body_as(ElectLeadersRequest)
        try:
            # Version 0 knows preferred leaders only, which is what its missing field defaults to.
            election_type = ElectionType(body.election_type)
        except ValueError:
            raise InvalidRequestError(f"There is no election type {body.election_type}") from None
        asks_for_all = body.topic_partitions is None
        partitions = (
            self._metadata_cache.all_partitions()
            if body.topic_partitions is None
            else {
                TopicPartition(topic.topic, index)
                for topic in body.topic_partitions
                for index in topic.partitions
            }
        )

        def respond(results: Mapping[TopicPartition, ApiResult]) -> None:
            self._request_channel.send_response(
                request,
                _elections(
                    {
                        topic_partition: result
                        for topic_partition, result in results.items()
                        # Of all partitions, only those are told of that need anything.
                        if not (asks_for_all and result.error is Errors.ELECTION_NOT_NEEDED)
                    }
                ),
            )

        self._elections.elect_leaders(
            partitions, election_type, timeout_ms=body.timeout_ms, callback=respond
        )

    def handle_alter_partition_reassignments(self, request: Request) -> None:
        body = request.body_as(AlterPartitionReassignmentsRequest)
        targets: ReassignmentTargets = {
            TopicPartition(topic.name, partition.partition_index): (
                None if partition.replicas is None else tuple(partition.replicas)
            )
            for topic in body.topics
            for partition in topic.partitions
        }

        def respond(results: dict[TopicPartition, ApiResult] | ApiResult) -> None:
            self._request_channel.send_response(request, _altered(results))

        self._controller.alter_partition_reassignments(targets, respond)

    def handle_list_partition_reassignments(self, request: Request) -> None:
        body = request.body_as(ListPartitionReassignmentsRequest)
        partitions = (
            None
            if body.topics is None
            else {
                TopicPartition(topic.name, index)
                for topic in body.topics
                for index in topic.partition_indexes
            }
        )

        def respond(found: dict[TopicPartition, ReplicaAssignment] | ApiResult) -> None:
            self._request_channel.send_response(request, _listed(found))

        self._controller.list_partition_reassignments(partitions, respond)


def _elections(results: Mapping[TopicPartition, ApiResult]) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        replica_election_results=[
            ElectLeadersResponse.ReplicaElectionResult(
                topic=topic,
                partition_result=[
                    ElectLeadersResponse.PartitionResult(
                        partition_id=index,
                        error_code=result.error.code,
                        error_message=result.message,
                    )
                    for index, result in partitions.items()
                ],
            )
            for topic, partitions in by_topic(results).items()
        ]
    )


def _altered(
    results: Mapping[TopicPartition, ApiResult] | ApiResult,
) -> AlterPartitionReassignmentsResponse:
    response = AlterPartitionReassignmentsResponse
    if isinstance(results, ApiResult):
        return response(error_code=results.error.code, error_message=results.message)
    return response(
        responses=[
            response.ReassignableTopicResponse(
                name=topic,
                partitions=[
                    response.ReassignablePartitionResponse(
                        partition_index=index,
                        error_code=result.error.code,
                        error_message=result.message,
                    )
                    for index, result in partitions.items()
                ],
            )
            for topic, partitions in by_topic(results).items()
        ]
    )


def _listed(
    found: Mapping[TopicPartition, ReplicaAssignment] | ApiResult,
) -> ListPartitionReassignmentsResponse:
    response = ListPartitionReassignmentsResponse
    if isinstance(found, ApiResult):
        return response(error_code=found.error.code, error_message=found.message)
    return response(
        topics=[
            response.OngoingTopicReassignment(
                name=topic,
                partitions=[
                    response.OngoingPartitionReassignment(
                        partition_index=index,
                        replicas=list(assignment.replicas),
                        adding_replicas=list(assignment.adding_replicas),
                        removing_replicas=list(assignment.removing_replicas),
                    )
                    for index, assignment in partitions.items()
                ],
            )
            for topic, partitions in by_topic(found).items()
        ]
    )
