"""Elections and reassignments, as a cluster of one broker answers them."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from kafkapy.common.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
)
from kafkapy.common.protocol.messages.elect_leaders import ElectLeadersRequest
from kafkapy.common.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
)
from tests.helpers import api
from tests.helpers.broker import BROKER_ID, Broker, Client
from tests.helpers.records import records
from tests.helpers.waiting import wait_until

PREFERRED, UNCLEAN = 0, 1
DEAD_BROKER = BROKER_ID + 1


def elect(
    client: Client, *topics: str, election_type: int = PREFERRED, version: int = 2
) -> dict[tuple[str, int], Errors]:
    """Partitions 0 and 1 of the topics; without topics, everything."""
    request = ElectLeadersRequest
    response = client.request(
        request(
            election_type=election_type if version else PREFERRED,
            topic_partitions=[
                request.TopicPartitions(topic=topic, partitions=[0, 1]) for topic in topics
            ]
            or None,
        ),
        version,
    )
    assert response.error_code == Errors.NONE.code
    return {
        (result.topic, partition.partition_id): Errors.for_code(partition.error_code)
        for result in response.replica_election_results
        for partition in result.partition_result
    }


def reassign(client: Client, topic: str, replicas: list[int] | None, partition: int = 0):
    request = AlterPartitionReassignmentsRequest
    response = client.request(
        request(
            topics=[
                request.ReassignableTopic(
                    name=topic,
                    partitions=[
                        request.ReassignablePartition(partition_index=partition, replicas=replicas)
                    ],
                )
            ]
        )
    )
    assert response.error_code == Errors.NONE.code
    (answer,) = response.responses
    (result,) = answer.partitions
    assert (answer.name, result.partition_index) == (topic, partition)
    return Errors.for_code(result.error_code), result.error_message


class TestElectLeaders:
    @pytest.mark.parametrize("version", range(3))
    def test_partition_with_its_preferred_leader_needs_no_election(
        self, client: Client, topic: str, version: int
    ) -> None:
        assert elect(client, topic, "missing", version=version) == {
            (topic, 0): Errors.ELECTION_NOT_NEEDED,
            (topic, 1): Errors.UNKNOWN_TOPIC_OR_PARTITION,
            ("missing", 0): Errors.UNKNOWN_TOPIC_OR_PARTITION,
            ("missing", 1): Errors.UNKNOWN_TOPIC_OR_PARTITION,
        }

    def test_partition_with_a_living_leader_needs_no_unclean_election(
        self, client: Client, topic: str
    ) -> None:
        found = elect(client, topic, election_type=UNCLEAN)

        assert found[topic, 0] is Errors.ELECTION_NOT_NEEDED

    @pytest.mark.parametrize("version", range(3))
    def test_of_all_partitions_only_those_are_told_of_that_need_anything(
        self, client: Client, topic: str, version: int
    ) -> None:
        assert elect(client, version=version) == {}

    @pytest.mark.parametrize("version", [1, 2])
    def test_unknown_election_type_is_refused(
        self, client: Client, topic: str, version: int
    ) -> None:
        request = ElectLeadersRequest
        response = client.request(
            request(
                election_type=7,
                topic_partitions=[request.TopicPartitions(topic=topic, partitions=[0])],
            ),
            version,
        )

        assert response.error_code == Errors.INVALID_REQUEST.code
        (result,) = response.replica_election_results[0].partition_result
        assert result.error_code == Errors.INVALID_REQUEST.code


class TestReassignments:
    def test_partition_stays_where_it_is(self, client: Client, topic: str) -> None:
        assert reassign(client, topic, [BROKER_ID]) == (Errors.NONE, None)

        (partition,) = api.topic_metadata(client, topic).partitions
        assert (partition.leader_id, partition.replica_nodes) == (BROKER_ID, [BROKER_ID])
        wait_until(lambda: api.produce(client, topic, records("a")).error_code == 0)

    @pytest.mark.parametrize(
        "replicas",
        [[], [BROKER_ID, BROKER_ID], [BROKER_ID, -1], [DEAD_BROKER], [BROKER_ID, DEAD_BROKER]],
    )
    def test_impossible_replicas_are_refused(
        self, client: Client, topic: str, replicas: list[int]
    ) -> None:
        error, message = reassign(client, topic, replicas)

        assert error is Errors.INVALID_REPLICA_ASSIGNMENT
        assert message
        assert api.topic_metadata(client, topic).partitions[0].replica_nodes == [BROKER_ID]

    @pytest.mark.parametrize("partition", [0, 9])
    def test_there_is_nothing_to_call_off(self, client: Client, topic: str, partition: int) -> None:
        error, _ = reassign(client, topic, None, partition)

        assert error is Errors.NO_REASSIGNMENT_IN_PROGRESS

    def test_unknown_partition(self, client: Client, topic: str) -> None:
        error, message = reassign(client, topic, [BROKER_ID], partition=9)

        assert (error, bool(message)) == (Errors.UNKNOWN_TOPIC_OR_PARTITION, True)

    def test_none_is_under_way(self, client: Client, topic: str) -> None:
        request = ListPartitionReassignmentsRequest
        named = request.ListPartitionReassignmentsTopics(name=topic, partition_indexes=[0, 9])

        for topics in (None, [], [named]):
            response = client.request(request(topics=topics))

            assert (response.error_code, response.topics) == (Errors.NONE.code, [])


class TestAllocateProducerIds:
    def test_each_block_follows_the_last(self, broker: Broker, client: Client) -> None:
        request = AllocateProducerIdsRequest(broker_id=BROKER_ID, broker_epoch=broker.epoch)

        first, second = client.request(request), client.request(request)

        assert first.error_code == second.error_code == Errors.NONE.code
        assert first.producer_id_len == 1000
        assert second.producer_id_start == first.producer_id_start + first.producer_id_len

    @pytest.mark.parametrize(
        ("broker_id", "epoch_change", "error"),
        [
            (BROKER_ID, -1, Errors.STALE_BROKER_EPOCH),
            (DEAD_BROKER, 0, Errors.BROKER_ID_NOT_REGISTERED),
        ],
    )
    def test_who_asks_must_be_registered(
        self, broker: Broker, client: Client, broker_id: int, epoch_change: int, error: Errors
    ) -> None:
        response = client.request(
            AllocateProducerIdsRequest(
                broker_id=broker_id, broker_epoch=broker.epoch + epoch_change
            )
        )

        assert response.error_code == error.code
