"""Replicas: where they are to be, and which of them leads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kafkapy.clients.admin.admin_api_handler import (
    AdminApiHandler,
    ApiResult,
    SingleHandler,
    raise_for,
)
from kafkapy.clients.admin.lookup_strategy import at_controller
from kafkapy.clients.admin.partition_reassignment import PartitionReassignment
from kafkapy.clients.admin.results import Results
from kafkapy.clients.client_request import VersionedRequest
from kafkapy.common.election_type import ElectionType
from kafkapy.common.errors import Errors, KafkaError
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
from kafkapy.common.types import TopicPartition, partitions_by_topic
from kafkapy.metadata.broker import Node

_FIRST_ELECTION_WITH_TYPE = 1
_NOT_CONTROLLER = frozenset({Errors.NOT_CONTROLLER})


class ElectLeadersHandler(SingleHandler[Results[TopicPartition, None], ElectLeadersResponse]):
    """Of the partitions, or of all that there are."""

    call_name = "elect_leaders"
    unmapping = _NOT_CONTROLLER

    def __init__(
        self, election_type: ElectionType, partitions: Iterable[TopicPartition] | None
    ) -> None:
        super().__init__(at_controller())
        self._election_type = election_type
        self._topics = None if partitions is None else partitions_by_topic(partitions)

    def build(self, timeout_ms: int) -> VersionedRequest:
        is_preferred = self._election_type is ElectionType.PREFERRED
        return VersionedRequest(
            ElectLeadersRequest(
                election_type=self._election_type.value,
                topic_partitions=None
                if self._topics is None
                else [
                    ElectLeadersRequest.TopicPartitions(topic=topic, partitions=partitions)
                    for topic, partitions in self._topics.items()
                ],
                timeout_ms=timeout_ms,
            ),
            min_version=None if is_preferred else _FIRST_ELECTION_WITH_TYPE,
        )

    def read(self, response: ElectLeadersResponse) -> Results[TopicPartition, None]:
        raise_for(response.error_code)
        successes: dict[TopicPartition, None] = {}
        errors: dict[TopicPartition, KafkaError] = {}
        for topic in response.replica_election_results:
            for elected in topic.partition_result:
                key = TopicPartition(topic.topic, elected.partition_id)
                error = Errors.for_code(elected.error_code)
                if error is Errors.NONE:
                    successes[key] = None
                else:
                    errors[key] = error.exception(
                        elected.error_message or f"{key}: {error.message}"
                    )
        return Results((*successes, *errors), successes, errors)


class AlterPartitionReassignmentsHandler(
    AdminApiHandler[TopicPartition, None, AlterPartitionReassignmentsResponse]
):
    """Starts moves; None in place of brokers calls one off."""

    call_name = "alter_partition_reassignments"
    unmapping = _NOT_CONTROLLER

    def __init__(self, reassignments: Mapping[TopicPartition, Sequence[int] | None]) -> None:
        super().__init__(at_controller())
        self._reassignments = reassignments

    def build_request(self, keys: Sequence[TopicPartition], timeout_ms: int) -> VersionedRequest:
        return VersionedRequest(
            AlterPartitionReassignmentsRequest(
                timeout_ms=timeout_ms,
                topics=[
                    AlterPartitionReassignmentsRequest.ReassignableTopic(
                        name=topic,
                        partitions=[self._partition(topic, index) for index in partitions],
                    )
                    for topic, partitions in partitions_by_topic(keys).items()
                ],
            )
        )

    def handle_response(
        self,
        keys: Sequence[TopicPartition],
        response: AlterPartitionReassignmentsResponse,
        node: Node,
    ) -> ApiResult[TopicPartition, None]:
        result = self.new_result()
        error = Errors.for_code(response.error_code)
        if error is not Errors.NONE:
            result.fail_all(keys, error, response.error_message)
            return result
        for topic in response.responses:
            for partition in topic.partitions:
                key = TopicPartition(topic.name, partition.partition_index)
                result.file(key, partition.error_code, None, partition.error_message)
        return result

    def _partition(
        self, topic: str, partition: int
    ) -> AlterPartitionReassignmentsRequest.ReassignablePartition:
        replicas = self._reassignments[TopicPartition(topic, partition)]
        return AlterPartitionReassignmentsRequest.ReassignablePartition(
            partition_index=partition, replicas=None if replicas is None else list(replicas)
        )


class ListPartitionReassignmentsHandler(
    SingleHandler[dict[TopicPartition, PartitionReassignment], ListPartitionReassignmentsResponse]
):
    """Of the partitions, or of all that there are."""

    call_name = "list_partition_reassignments"
    unmapping = _NOT_CONTROLLER

    def __init__(self, partitions: Iterable[TopicPartition] | None) -> None:
        super().__init__(at_controller())
        self._topics = None if partitions is None else partitions_by_topic(partitions)

    def build(self, timeout_ms: int) -> VersionedRequest:
        return VersionedRequest(
            ListPartitionReassignmentsRequest(
                timeout_ms=timeout_ms,
                topics=None
                if self._topics is None
                else [
                    ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics(
                        name=topic, partition_indexes=partitions
                    )
                    for topic, partitions in self._topics.items()
                ],
            )
        )

    def read(
        self, response: ListPartitionReassignmentsResponse
    ) -> dict[TopicPartition, PartitionReassignment]:
        raise_for(response.error_code, response.error_message)
        return {
            TopicPartition(topic.name, partition.partition_index): PartitionReassignment(
                tuple(partition.replicas),
                tuple(partition.adding_replicas),
                tuple(partition.removing_replicas),
            )
            for topic in response.topics
            for partition in topic.partitions
        }
