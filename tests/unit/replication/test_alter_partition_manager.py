import pytest

from kafkapy.common.errors import InvalidUpdateVersionError, KafkaError
from kafkapy.common.types import ZERO_UUID, TopicIdPartition, TopicPartition
from kafkapy.metadata.leader_and_isr import LeaderAndIsr, LeaderIsrAndControllerEpoch
from kafkapy.replication.alter_partition_manager import ZkAlterPartitionManager
from kafkapy.zk.embedded_store import EmbeddedStore
from kafkapy.zk.kafka_zk_client import KafkaZkClient
from kafkapy.zk.zk_data import TopicPartitionStateZNode, TopicZNode

TP = TopicPartition("t", 0)
TIP = TopicIdPartition(ZERO_UUID, TP)
MATCH_ANY_CONTROLLER = -1


@pytest.fixture
def zk_client(tmp_path, time):
    client = KafkaZkClient(EmbeddedStore(str(tmp_path / "store.db"), time), time)
    client.create_top_level_paths()
    client.znodes.create_all([TopicZNode.path(TP.topic)])
    client.create_topic_partition_states_raw(
        {TP: LeaderIsrAndControllerEpoch(LeaderAndIsr(1, 0, (1, 2)), 3)}, MATCH_ANY_CONTROLLER
    )
    yield client
    client.close()


@pytest.fixture
def manager(zk_client, time):
    manager = ZkAlterPartitionManager(time.scheduler, time, zk_client)
    manager.start()
    return manager


def stored(zk_client) -> LeaderIsrAndControllerEpoch:
    return zk_client.get_topic_partition_state(TP)


def test_accepted_isr_is_written_with_the_next_version(manager, zk_client):
    answers = []

    manager.submit(TIP, LeaderAndIsr(1, 0, (1,)), 3, answers.append)

    assert answers == [LeaderAndIsr(1, 0, (1,), partition_epoch=1)]
    assert stored(zk_client).leader_and_isr.isr == (1,)
    assert stored(zk_client).controller_epoch == 3


def test_isr_on_top_of_an_old_version_is_refused(manager, zk_client):
    manager.submit(TIP, LeaderAndIsr(1, 0, (1,)), 3, lambda answer: None)
    answers = []

    manager.submit(TIP, LeaderAndIsr(1, 0, (1, 2, 3)), 3, answers.append)

    assert isinstance(answers[0], InvalidUpdateVersionError)
    assert stored(zk_client).leader_and_isr.isr == (1,)


def test_repeated_write_whose_first_answer_was_lost_is_accepted(manager, zk_client):
    manager.submit(TIP, LeaderAndIsr(1, 0, (1,)), 3, lambda answer: None)
    answers = []

    manager.submit(TIP, LeaderAndIsr(1, 0, (1,)), 3, answers.append)

    assert answers == [LeaderAndIsr(1, 0, (1,), partition_epoch=1)]


def test_write_that_the_store_fails_is_repeated_until_its_fate_is_known(
    manager, zk_client, time, monkeypatch
):
    answers = []

    def fail(*arguments):
        raise KafkaError("connection lost")

    with monkeypatch.context() as patch:
        patch.setattr(zk_client.znodes, "conditional_update_path", fail)
        manager.submit(TIP, LeaderAndIsr(1, 0, (1,)), 3, answers.append)
        time.sleep(1000)
        assert answers == []
    time.sleep(1000)

    assert answers == [LeaderAndIsr(1, 0, (1,), partition_epoch=1)]


def test_controller_is_notified_once_changes_have_settled(manager, zk_client, time):
    manager.submit(TIP, LeaderAndIsr(1, 0, (1,)), 3, lambda answer: None)

    time.sleep(5000)
    assert zk_client.get_all_isr_change_notifications() == []
    time.sleep(2500)

    notifications = zk_client.get_all_isr_change_notifications()
    assert zk_client.get_partitions_from_isr_change_notifications(notifications) == [TP]
    time.sleep(60_000)
    assert len(zk_client.get_all_isr_change_notifications()) == 1


def test_controller_is_notified_after_a_minute_of_constant_change(manager, zk_client, time):
    for version in range(30):
        manager.submit(
            TIP, LeaderAndIsr(1, 0, (1, version), partition_epoch=version), 3, lambda answer: None
        )
        time.sleep(2500)

    assert len(zk_client.get_all_isr_change_notifications()) == 1


def test_znode_path_is_that_of_the_partition_state():
    assert TopicPartitionStateZNode.path(TP) == "/brokers/topics/t/partitions/0/state"
