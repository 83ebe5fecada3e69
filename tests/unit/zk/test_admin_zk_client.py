import random
from collections.abc import Mapping

import pytest

from kafkapy.common.errors import (
    InvalidConfigurationError,
    InvalidPartitionsError,
    InvalidReplicaAssignmentError,
    InvalidTopicError,
    KafkaError,
    TopicExistsError,
    UnknownTopicOrPartitionError,
)
from kafkapy.common.types import TopicPartition
from kafkapy.metadata.broker import BrokerMetadata
from kafkapy.metadata.replica_assignment import ReplicaAssignment
from kafkapy.zk.admin_zk_client import (
    AdminZkClient,
    RackAwareMode,
    TopicAlreadyMarkedForDeletionError,
)
from kafkapy.zk.kafka_zk_client import KafkaZkClient
from kafkapy.zk.zk_data import ConfigType
from tests.unit.zk.test_kafka_zk_client import broker_info


def refuse_bad(config: Mapping[str, str]) -> None:
    if "bad" in config:
        raise InvalidConfigurationError("bad")


@pytest.fixture
def admin(zk_client: KafkaZkClient) -> AdminZkClient:
    for broker_id in range(3):
        zk_client.register_broker(broker_info(broker_id))
    return AdminZkClient(zk_client, validate_topic_config=refuse_bad, rng=random.Random(1))


def partitions_of(zk_client: KafkaZkClient, topic: str) -> dict[int, ReplicaAssignment]:
    full = zk_client.get_full_replica_assignment_for_topics([topic])
    return {tp.partition: assignment for tp, assignment in full.items()}


class TestCreateTopic:
    def test_topic_has_id_settings_and_partitions(
        self, admin: AdminZkClient, zk_client: KafkaZkClient
    ) -> None:
        topic_id = admin.create_topic("t", 4, 3, config={"retention.ms": "5"})

        assert zk_client.get_topic_ids_for_topics(["t"]) == {"t": topic_id}
        assert admin.fetch_entity_config(ConfigType.TOPIC, "t") == {"retention.ms": "5"}
        assignment = zk_client.get_replica_assignment_for_topics(["t"])
        assert sorted(assignment) == [TopicPartition("t", p) for p in range(4)]
        assert all(sorted(replicas) == [0, 1, 2] for replicas in assignment.values())

    def test_existing_topic_is_refused(self, admin: AdminZkClient) -> None:
        admin.create_topic("t", 1, 1)

        with pytest.raises(TopicExistsError):
            admin.create_topic("t", 1, 1)
        with pytest.raises(TopicExistsError):
            admin.create_topic_with_assignment("t", {}, {0: [0]}, validate=False)

    def test_topic_whose_deletion_is_not_over_is_refused_as_such(
        self, admin: AdminZkClient
    ) -> None:
        admin.create_topic("t", 1, 1)
        admin.delete_topic("t")

        with pytest.raises(TopicExistsError, match="being deleted"):
            admin.create_topic("t", 1, 1)

    @pytest.mark.parametrize(
        ("first", "second"), [("a.b", "a_b"), ("a_b", "a.b"), ("a.b_c", "a_b.c")]
    )
    def test_names_that_metrics_cannot_tell_apart_are_refused(
        self, admin: AdminZkClient, first: str, second: str
    ) -> None:
        admin.create_topic(first, 1, 1)

        with pytest.raises(InvalidTopicError, match=first):
            admin.create_topic(second, 1, 1)

    @pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "x" * 250])
    def test_bad_names_are_refused(self, admin: AdminZkClient, name: str) -> None:
        with pytest.raises(InvalidTopicError):
            admin.create_topic(name, 1, 1)

    @pytest.mark.parametrize(
        "assignment",
        [{}, {0: [0, 0]}, {0: [0], 1: [0, 1]}, {1: [0]}, {0: [0], 2: [0]}, {-1: [0], 0: [0]}],
    )
    def test_bad_assignments_are_refused(
        self, admin: AdminZkClient, assignment: dict[int, list[int]]
    ) -> None:
        with pytest.raises(InvalidReplicaAssignmentError):
            admin.create_topic_with_assignment("t", {}, assignment)

    def test_bad_settings_leave_nothing_behind(
        self, admin: AdminZkClient, zk_client: KafkaZkClient
    ) -> None:
        with pytest.raises(InvalidConfigurationError):
            admin.create_topic_with_assignment("t", {"bad": "1"}, {0: [0]})

        assert not zk_client.topic_exists("t")
        assert admin.fetch_all_entity_configs(ConfigType.TOPIC) == {}


class TestRacks:
    def test_racks_are_used_as_the_mode_says(self, zk_client: KafkaZkClient) -> None:
        zk_client.register_broker(broker_info(0, rack="a"))
        admin = AdminZkClient(zk_client)

        assert admin.get_broker_metadatas(RackAwareMode.DISABLED) == [BrokerMetadata(0)]
        assert admin.get_broker_metadatas(RackAwareMode.SAFE) == [BrokerMetadata(0, "a")]
        zk_client.register_broker(broker_info(1))
        assert admin.get_broker_metadatas(RackAwareMode.SAFE) == [
            BrokerMetadata(0),
            BrokerMetadata(1),
        ]
        with pytest.raises(KafkaError, match="rack"):
            admin.get_broker_metadatas(RackAwareMode.ENFORCED)
        assert admin.get_broker_metadatas(broker_ids=[1]) == [BrokerMetadata(1)]


class TestDeleteTopic:
    def test_topic_is_marked(self, admin: AdminZkClient, zk_client: KafkaZkClient) -> None:
        admin.create_topic("t", 1, 1)

        admin.delete_topic("t")

        assert zk_client.get_topic_deletions() == ["t"]
        with pytest.raises(TopicAlreadyMarkedForDeletionError):
            admin.delete_topic("t")

    def test_missing_topic_is_refused(self, admin: AdminZkClient) -> None:
        with pytest.raises(UnknownTopicOrPartitionError):
            admin.delete_topic("t")


class TestAddPartitions:
    def test_existing_partitions_and_id_stay(
        self, admin: AdminZkClient, zk_client: KafkaZkClient
    ) -> None:
        topic_id = admin.create_topic("t", 2, 2)
        before = partitions_of(zk_client, "t")

        after = admin.add_partitions("t", before, num_partitions=5)

        assert partitions_of(zk_client, "t") == after
        assert {p: after[p] for p in before} == before
        assert sorted(after) == [0, 1, 2, 3, 4]
        assert all(len(a.replicas) == 2 for a in after.values())
        assert zk_client.get_topic_ids_for_topics(["t"]) == {"t": topic_id}

    def test_given_replicas_are_taken(self, admin: AdminZkClient, zk_client: KafkaZkClient) -> None:
        admin.create_topic_with_assignment("t", {}, {0: [0]})

        after = admin.add_partitions(
            "t",
            partitions_of(zk_client, "t"),
            num_partitions=2,
            replica_assignment={1: [2]},
        )

        assert after == {0: ReplicaAssignment((0,)), 1: ReplicaAssignment((2,))}

    def test_validation_alone_writes_nothing(
        self, admin: AdminZkClient, zk_client: KafkaZkClient
    ) -> None:
        admin.create_topic("t", 1, 1)

        existing = partitions_of(zk_client, "t")
        admin.add_partitions("t", existing, num_partitions=3, validate_only=True)

        assert zk_client.get_topic_partition_count("t") == 1

    @pytest.mark.parametrize("count", [0, 1, 2])
    def test_number_must_grow(
        self, admin: AdminZkClient, zk_client: KafkaZkClient, count: int
    ) -> None:
        admin.create_topic("t", 2, 1)

        with pytest.raises(InvalidPartitionsError):
            admin.add_partitions("t", partitions_of(zk_client, "t"), num_partitions=count)

    @pytest.mark.parametrize("replicas", [[], [0], [0, 0], [0, 9], [0, 1, 2]])
    def test_bad_replicas_are_refused(
        self, admin: AdminZkClient, zk_client: KafkaZkClient, replicas: list[int]
    ) -> None:
        admin.create_topic("t", 1, 2)

        with pytest.raises(InvalidReplicaAssignmentError):
            admin.add_partitions(
                "t",
                partitions_of(zk_client, "t"),
                num_partitions=2,
                replica_assignment={1: replicas},
            )


class TestSettings:
    def test_change_replaces_and_notifies(
        self, admin: AdminZkClient, zk_client: KafkaZkClient
    ) -> None:
        admin.create_topic("t", 1, 1, config={"a": "1"})

        admin.change_topic_config("t", {"b": "2"})
        admin.change_broker_config(0, {"c": "3"})
        admin.change_broker_config(None, {"d": "4"})

        assert admin.fetch_entity_config(ConfigType.TOPIC, "t") == {"b": "2"}
        assert admin.fetch_all_entity_configs(ConfigType.BROKER) == {
            "0": {"c": "3"},
            "<default>": {"d": "4"},
        }
        changes = zk_client.znodes.get_children("/config/changes")
        data = [zk_client.znodes.get(f"/config/changes/{change}").data for change in changes]
        assert data == [
            b'{"version":2,"entity_path":"topics/t"}',
            b'{"version":2,"entity_path":"brokers/0"}',
            b'{"version":2,"entity_path":"brokers/<default>"}',
        ]

    def test_settings_of_a_missing_topic_are_refused(self, admin: AdminZkClient) -> None:
        with pytest.raises(UnknownTopicOrPartitionError):
            admin.change_topic_config("t", {})

    def test_bad_settings_are_refused(self, admin: AdminZkClient) -> None:
        admin.create_topic("t", 1, 1)

        with pytest.raises(InvalidConfigurationError):
            admin.change_topic_config("t", {"bad": "1"})
