from uuid import UUID

import pytest

from kafkapy.common.errors import ControllerMovedError, KafkaError
from kafkapy.common.types import TopicPartition
from kafkapy.metadata.broker import Broker
from kafkapy.metadata.end_point import EndPoint, SecurityProtocol
from kafkapy.metadata.leader_and_isr import LeaderAndIsr, LeaderIsrAndControllerEpoch
from kafkapy.metadata.replica_assignment import ReplicaAssignment
from kafkapy.zk.embedded_store import EmbeddedStore
from kafkapy.zk.kafka_zk_client import KafkaZkClient
from kafkapy.zk.metadata_store import (
    UNKNOWN_VERSION,
    MetadataStore,
    NodeExistsError,
    NoNodeError,
    StoreCode,
)
from kafkapy.zk.zk_data import (
    PERSISTENT_ZK_PATHS,
    BrokerInfo,
    ConfigType,
    ProducerIdBlockZNode,
    ProducerIdsBlock,
    TopicZNode,
)
from tests.helpers.mock_time import MockTime
from tests.unit.zk.conftest import OpenSession
from tests.unit.zk.handlers import (
    RecordingChangeHandler,
    RecordingChildHandler,
    RecordingStateHandler,
)

TOPIC_ID = UUID(int=77)
TP0, TP1 = TopicPartition("t", 0), TopicPartition("t", 1)


def broker_info(broker_id: int, *, port: int = 9092, rack: str | None = None) -> BrokerInfo:
    endpoint = EndPoint("PLAINTEXT", SecurityProtocol.PLAINTEXT, "localhost", port)
    return BrokerInfo(Broker(broker_id, (endpoint,), rack))


def state(leader: int = 0, partition_epoch: int = 0) -> LeaderIsrAndControllerEpoch:
    return LeaderIsrAndControllerEpoch(
        LeaderAndIsr(leader, 0, (0, 1), partition_epoch=partition_epoch), 1
    )


@pytest.fixture
def client(store: MetadataStore, time: MockTime) -> KafkaZkClient:
    """Over every kind of store."""
    client = KafkaZkClient(store, time)
    client.create_top_level_paths()
    return client


@pytest.fixture
def epoch_version(client: KafkaZkClient) -> int:
    return client.register_controller_and_increment_controller_epoch(0)[1]


def test_top_level_paths_are_made_once_and_again(client: KafkaZkClient) -> None:
    client.create_top_level_paths()

    assert all(client.znodes.path_exists(path) for path in PERSISTENT_ZK_PATHS)


class TestBrokers:
    def test_registered_brokers_are_found_with_their_epoch(self, client: KafkaZkClient) -> None:
        epoch = client.register_broker(broker_info(1, rack="r"))

        assert client.get_broker(1) == broker_info(1, rack="r").broker
        assert client.get_broker(2) is None
        assert client.get_sorted_broker_list() == [1]
        assert client.get_all_broker_and_epochs_in_cluster() == {
            broker_info(1, rack="r").broker: epoch
        }

    def test_every_registration_has_a_greater_epoch(
        self, open_session: OpenSession, client: KafkaZkClient, time: MockTime
    ) -> None:
        first_run = KafkaZkClient(open_session(), time)
        first = first_run.register_broker(broker_info(1))
        first_run.close()

        assert client.register_broker(broker_info(1)) > first

    def test_registering_again_in_the_same_session_keeps_the_epoch(
        self, client: KafkaZkClient
    ) -> None:
        epoch = client.register_broker(broker_info(1))

        assert client.register_broker(broker_info(1)) == epoch

    def test_id_of_another_live_broker_is_refused(
        self, open_session: OpenSession, client: KafkaZkClient, time: MockTime
    ) -> None:
        KafkaZkClient(open_session(), time).register_broker(broker_info(1))

        with pytest.raises(NodeExistsError, match="/brokers/ids/1"):
            client.register_broker(broker_info(1))

    def test_updated_registration_is_read_back(self, client: KafkaZkClient) -> None:
        client.register_broker(broker_info(1))

        client.update_broker_info(broker_info(1, port=9999))

        assert client.get_broker(1) == broker_info(1, port=9999).broker

    def test_sequence_ids_are_unique(self, client: KafkaZkClient) -> None:
        assert [client.generate_broker_sequence_id() for _ in range(3)] == [1, 2, 3]


class TestController:
    def test_first_controller_has_epoch_1(self, client: KafkaZkClient) -> None:
        assert client.get_controller_id() is None
        assert client.get_controller_epoch() is None

        epoch, version = client.register_controller_and_increment_controller_epoch(3)

        assert (epoch, version) == (1, 1)
        assert client.get_controller_id() == 3
        found = client.get_controller_epoch()
        assert found is not None and (found[0], found[1].version) == (epoch, version)

    def test_second_controller_is_refused_while_the_first_lives(
        self, open_session: OpenSession, client: KafkaZkClient, time: MockTime
    ) -> None:
        client.register_controller_and_increment_controller_epoch(3)
        other = KafkaZkClient(open_session(), time)

        with pytest.raises(ControllerMovedError):
            other.register_controller_and_increment_controller_epoch(4)
        assert client.get_controller_id() == 3

    def test_next_controller_has_the_next_epoch(self, client: KafkaZkClient) -> None:
        _, version = client.register_controller_and_increment_controller_epoch(3)
        client.delete_controller(version)

        assert client.register_controller_and_increment_controller_epoch(4) == (2, 2)
        assert client.get_controller_id() == 4

    def test_stale_controller_can_write_nothing(
        self, client: KafkaZkClient, epoch_version: int
    ) -> None:
        client.create_topic_assignment("t", TOPIC_ID, {TP0: [0]})
        client.create_topic_partition_states_raw({TP0: state()}, epoch_version)
        stale = epoch_version
        client.set_controller_epoch_raw(2, epoch_version)

        for write in (
            lambda: client.create_topic_partition_states_raw({TP1: state()}, stale),
            lambda: client.set_topic_partition_states_raw({TP0: state(5)}, stale),
            lambda: client.update_leader_and_isr({TP0: state(5).leader_and_isr}, 1, stale),
            lambda: client.set_topic_assignment("t", TOPIC_ID, {}, stale),
            lambda: client.delete_topic_znode("t", stale),
            lambda: client.delete_controller(stale),
            lambda: client.delete_topic_deletions(["t"], stale),
        ):
            with pytest.raises(ControllerMovedError):
                write()
        assert client.get_topic_partition_states([TP0, TP1]) == {TP0: state()}
        assert client.topic_exists("t")
        assert client.get_controller_id() == 0

    def test_negative_epoch_version_is_a_mistake(self, client: KafkaZkClient) -> None:
        with pytest.raises(ValueError, match="-2"):
            client.delete_controller(UNKNOWN_VERSION)


class TestPartitionStates:
    def test_states_are_created_once(self, client: KafkaZkClient, epoch_version: int) -> None:
        client.create_topic_assignment("t", TOPIC_ID, {TP0: [0], TP1: [0]})

        first = client.create_topic_partition_states_raw(
            {TP0: state(), TP1: state()}, epoch_version
        )
        again = client.create_topic_partition_states_raw({TP0: state()}, epoch_version)

        assert [r.result_code for r in first] == [StoreCode.OK, StoreCode.OK]
        assert [r.result_code for r in again] == [StoreCode.NODE_EXISTS]
        assert client.get_topic_partition_state(TP0) == state()
        assert client.get_topic_partition_state(TopicPartition("t", 9)) is None

    def test_update_sorts_partitions_by_outcome(
        self, client: KafkaZkClient, epoch_version: int
    ) -> None:
        client.create_topic_assignment("t", TOPIC_ID, {TP0: [0], TP1: [0]})
        client.create_topic_partition_states_raw({TP0: state(), TP1: state()}, epoch_version)
        missing = TopicPartition("t", 9)

        result = client.update_leader_and_isr(
            {
                TP0: state(1).leader_and_isr,
                TP1: state(1, partition_epoch=4).leader_and_isr,
                missing: state(1).leader_and_isr,
            },
            1,
            epoch_version,
        )

        assert result.partitions_to_retry == [TP1]
        assert result.finished_partitions[TP0] == state(1, partition_epoch=1).leader_and_isr
        assert isinstance(result.finished_partitions[missing], NoNodeError)
        assert client.get_topic_partition_state(TP0) == state(1, partition_epoch=1)


class TestTopics:
    def test_assignment_and_id_are_read_back(self, client: KafkaZkClient) -> None:
        client.create_topic_assignment("t", TOPIC_ID, {TP0: [0, 1], TP1: [1, 0]})

        assert client.get_all_topics_in_cluster() == {"t"}
        assert client.get_topic_ids_for_topics(["t", "none"]) == {"t": TOPIC_ID}
        assert client.get_replica_assignment_for_topics(["t"]) == {TP0: (0, 1), TP1: (1, 0)}
        assert client.get_partitions_for_topics(["t", "none"]) == {"t": [0, 1]}
        assert client.get_topic_partition_count("t") == 2
        assert client.get_topic_partition_count("none") is None
        assert client.get_replicas_for_partition(TP1) == (1, 0)

    def test_topic_is_created_once(self, client: KafkaZkClient) -> None:
        client.create_topic_assignment("t", TOPIC_ID, {TP0: [0]})

        with pytest.raises(NodeExistsError):
            client.create_topic_assignment("t", TOPIC_ID, {TP0: [1]})

    def test_reassignment_is_read_back(self, client: KafkaZkClient) -> None:
        client.create_topic_assignment("t", TOPIC_ID, {TP0: [0]})
        moving = ReplicaAssignment((0, 1), (1,), (0,))

        client.set_topic_assignment("t", TOPIC_ID, {TP0: moving})

        assert client.get_full_replica_assignment_for_topics(["t"]) == {TP0: moving}

    def test_assignment_of_a_missing_topic_cannot_be_set(self, client: KafkaZkClient) -> None:
        with pytest.raises(NoNodeError):
            client.set_topic_assignment("t", TOPIC_ID, {})

    def test_old_topics_are_given_ids(self, client: KafkaZkClient, epoch_version: int) -> None:
        client.create_topic_assignment("t", None, {TP0: [0]})
        assignment = client.get_full_replica_assignment_for_topics(["t"])

        client.set_topic_ids({"t": assignment}, {"t": TOPIC_ID}, epoch_version)

        assert client.get_topic_ids_for_topics(["t"]) == {"t": TOPIC_ID}
        assert client.get_full_replica_assignment_for_topics(["t"]) == assignment

    def test_deleting_takes_all_znodes_below(
        self, client: KafkaZkClient, epoch_version: int
    ) -> None:
        client.create_topic_assignment("t", TOPIC_ID, {TP0: [0], TP1: [0]})
        client.create_topic_partition_states_raw({TP0: state(), TP1: state()}, epoch_version)

        client.delete_topic_znode("t", epoch_version)

        assert client.get_all_topics_in_cluster() == set()
        assert client.znodes.delete_recursive(TopicZNode.path("t")) is False

    def test_deletion_markers(self, client: KafkaZkClient, epoch_version: int) -> None:
        client.create_delete_topic_path("t")
        client.create_delete_topic_path("u")
        assert client.is_topic_marked_for_deletion("t")

        client.delete_topic_deletions(["t", "never"], epoch_version)

        assert client.get_topic_deletions() == ["u"]

    def test_listing_topics_sets_the_watch_only_if_asked(self, client: KafkaZkClient) -> None:
        handler = RecordingChildHandler("/brokers/topics")
        client.register_znode_child_change_handler(handler)
        client.get_all_topics_in_cluster()
        client.create_topic_assignment("t", TOPIC_ID, {TP0: [0]})

        client.get_all_topics_in_cluster(register_watch=True)
        client.create_topic_assignment("u", TOPIC_ID, {TopicPartition("u", 0): [0]})

        assert [handler.next(), *handler.pending] == ["children"]


class TestSettings:
    def test_settings_are_created_then_replaced(self, client: KafkaZkClient) -> None:
        client.set_or_create_entity_configs(ConfigType.TOPIC, "t", {"a": "1", "b": "2"})
        client.set_or_create_entity_configs(ConfigType.TOPIC, "t", {"a": "3"})

        assert client.get_entity_configs(ConfigType.TOPIC, "t") == {"a": "3"}
        assert client.get_entity_configs(ConfigType.TOPIC, "none") == {}
        assert client.get_all_entities_with_config(ConfigType.TOPIC) == ["t"]

    def test_nested_entities(self, client: KafkaZkClient) -> None:
        client.set_or_create_entity_configs(ConfigType.USER, "u/clients/c", {"a": "1"})

        assert client.get_entity_configs(ConfigType.USER, "u/clients/c") == {"a": "1"}
        assert client.get_entity_configs(ConfigType.USER, "u") == {}

    def test_unreadable_settings_fail_for_their_topic_only(self, client: KafkaZkClient) -> None:
        client.set_or_create_entity_configs(ConfigType.TOPIC, "good", {"a": "1"})
        client.znodes.create_recursive("/config/topics/bad", b"{")

        configs, failed = client.get_topic_configs(["good", "bad", "none"])

        assert configs == {"good": {"a": "1"}, "none": {}}
        assert "/config/topics/bad" in str(failed["bad"])

    def test_settings_of_topics_are_deleted(
        self, client: KafkaZkClient, epoch_version: int
    ) -> None:
        client.set_or_create_entity_configs(ConfigType.TOPIC, "t", {"a": "1"})

        client.delete_topic_configs(["t", "none"], epoch_version)

        assert client.get_all_entities_with_config(ConfigType.TOPIC) == []


class TestNotifications:
    def test_isr_changes(self, client: KafkaZkClient, epoch_version: int) -> None:
        client.propagate_isr_changes([TP0])
        client.propagate_isr_changes([TP0, TP1])

        numbers = client.get_all_isr_change_notifications()

        assert numbers == ["0000000000", "0000000001"]
        assert client.get_partitions_from_isr_change_notifications([*numbers, "none"]) == [
            TP0,
            TP0,
            TP1,
        ]
        client.delete_isr_change_notifications(epoch_version, numbers[:1])
        assert client.get_all_isr_change_notifications() == numbers[1:]
        client.delete_isr_change_notifications(epoch_version)
        assert client.get_all_isr_change_notifications() == []

    def test_log_dir_events(self, client: KafkaZkClient, epoch_version: int) -> None:
        client.propagate_log_dir_event(2)
        client.propagate_log_dir_event(1)

        numbers = client.get_log_dir_event_notifications()

        assert client.get_broker_ids_from_log_dir_events([*numbers, "none"]) == [2, 1]
        client.delete_log_dir_event_notifications(epoch_version)
        assert client.get_log_dir_event_notifications() == []

    def test_config_changes_are_numbered(self, client: KafkaZkClient) -> None:
        client.create_config_change_notification("topics/t")

        assert client.znodes.get_children("/config/changes") == ("config_change_0000000000",)


class TestAdministration:
    def test_reassignment(self, client: KafkaZkClient, epoch_version: int) -> None:
        assert client.get_partition_reassignment() == {}

        client.create_partition_reassignment({TP0: [1]})
        assert client.reassign_partitions_in_progress()
        client.set_or_create_partition_reassignment({TP0: [1], TP1: [2]}, epoch_version)

        assert client.get_partition_reassignment() == {TP0: (1,), TP1: (2,)}
        client.delete_partition_reassignment(epoch_version)
        assert not client.reassign_partitions_in_progress()

    def test_preferred_replica_election(self, client: KafkaZkClient, epoch_version: int) -> None:
        assert client.get_preferred_replica_election() == set()

        client.create_preferred_replica_election([TP0])

        assert client.get_preferred_replica_election() == {TP0}
        with pytest.raises(NodeExistsError):
            client.create_preferred_replica_election([TP1])
        client.delete_preferred_replica_election(epoch_version)
        assert client.get_preferred_replica_election() == set()


class TestCluster:
    def test_first_cluster_id_stays(self, client: KafkaZkClient) -> None:
        assert client.get_cluster_id() is None

        assert client.create_or_get_cluster_id("first") == "first"
        assert client.create_or_get_cluster_id("second") == "first"
        assert client.get_cluster_id() == "first"

    def test_producer_id_blocks_follow_each_other(self, client: KafkaZkClient) -> None:
        blocks = [client.get_new_producer_id_block(broker) for broker in (0, 1, 0)]

        assert [(b.assigned_broker_id, b.first_producer_id) for b in blocks] == [
            (0, 0),
            (1, 1000),
            (0, 2000),
        ]
        assert all(b.block_size == 1000 for b in blocks)

    def test_producer_ids_run_out_loudly(self, client: KafkaZkClient) -> None:
        last = ProducerIdBlockZNode.encode(ProducerIdsBlock(0, 2**63 - 1500, 1000))
        client.znodes.conditional_update_path(ProducerIdBlockZNode.path, last, 0)

        with pytest.raises(KafkaError, match="producer ids"):
            client.get_new_producer_id_block(0)

    def test_conditional_update_needs_the_version(self, client: KafkaZkClient) -> None:
        client.znodes.create_recursive("/x/y", b"0")

        update = client.znodes.conditional_update_path
        assert update("/x/y", b"1", 0) == (True, 1)
        assert update("/x/y", b"2", 0) == (False, UNKNOWN_VERSION)
        assert update("/none", b"2", 0) == (False, UNKNOWN_VERSION)
        assert client.znodes.get_data_and_version("/x/y") == (b"1", 1)


def test_registering_a_handler_tells_whether_the_znode_exists(client: KafkaZkClient) -> None:
    handler = RecordingChangeHandler("/controller")

    before = client.register_znode_change_handler_and_check_existence(handler)
    client.register_controller_and_increment_controller_epoch(0)

    assert before is False
    assert handler.next() == "created"
    assert client.register_znode_change_handler_and_check_existence(handler) is True


def test_broker_registers_again_in_its_next_session(
    embedded: EmbeddedStore, zk_client: KafkaZkClient
) -> None:
    state_changes = RecordingStateHandler()
    zk_client.register_state_change_handler(state_changes)
    first = zk_client.register_broker(broker_info(1))

    embedded.expire_session()
    assert [state_changes.next(), state_changes.next()] == ["before", "after"]

    assert zk_client.get_broker(1) is None
    assert zk_client.register_broker(broker_info(1)) > first
