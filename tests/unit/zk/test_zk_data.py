"""Paths and bytes of znodes, compared with what Apache Kafka 3.9 writes."""

from uuid import UUID

import pytest

from kafkapy.common.types import TopicPartition, uuid_from_base64
from kafkapy.metadata.broker import Broker
from kafkapy.metadata.end_point import EndPoint, SecurityProtocol
from kafkapy.metadata.leader_and_isr import (
    LeaderAndIsr,
    LeaderIsrAndControllerEpoch,
    LeaderRecoveryState,
)
from kafkapy.metadata.replica_assignment import ReplicaAssignment
from kafkapy.zk.metadata_store import Stat
from kafkapy.zk.zk_data import (
    PERSISTENT_ZK_PATHS,
    BrokerIdZNode,
    BrokerInfo,
    BrokerSequenceIdZNode,
    ClusterIdZNode,
    ConfigEntityChangeNotificationSequenceZNode,
    ConfigEntityZNode,
    ControllerEpochZNode,
    ControllerZNode,
    DeleteTopicsTopicZNode,
    IsrChangeNotificationSequenceZNode,
    LogDirEventNotificationSequenceZNode,
    MalformedZNodeError,
    PreferredReplicaElectionZNode,
    ProducerIdBlockZNode,
    ProducerIdsBlock,
    ReassignPartitionsZNode,
    TopicPartitionStateZNode,
    TopicZNode,
)

TP0, TP1 = TopicPartition("t", 0), TopicPartition("t", 1)
PLAINTEXT = EndPoint("PLAINTEXT", SecurityProtocol.PLAINTEXT, "localhost", 9092)
TOPIC_ID: UUID = uuid_from_base64("ZOLr9CLNQjSW70hyIHx6BQ")


def test_paths() -> None:
    assert ControllerZNode.path == "/controller"
    assert ControllerEpochZNode.path == "/controller_epoch"
    assert BrokerIdZNode.path(7) == "/brokers/ids/7"
    assert BrokerSequenceIdZNode.path == "/brokers/seqid"
    assert TopicZNode.path("t") == "/brokers/topics/t"
    assert TopicPartitionStateZNode.path(TP1) == "/brokers/topics/t/partitions/1/state"
    assert ConfigEntityZNode.path("topics", "t") == "/config/topics/t"
    assert (
        ConfigEntityChangeNotificationSequenceZNode.create_path == "/config/changes/config_change_"
    )
    assert (
        IsrChangeNotificationSequenceZNode.path("0000000003")
        == "/isr_change_notification/isr_change_0000000003"
    )
    assert (
        LogDirEventNotificationSequenceZNode.path("0000000003")
        == "/log_dir_event_notification/log_dir_event_0000000003"
    )
    assert DeleteTopicsTopicZNode.path("t") == "/admin/delete_topics/t"
    assert ReassignPartitionsZNode.path == "/admin/reassign_partitions"
    assert PreferredReplicaElectionZNode.path == "/admin/preferred_replica_election"
    assert ClusterIdZNode.path == "/cluster/id"
    assert ProducerIdBlockZNode.path == "/latest_producer_id_block"


def test_paths_made_at_start_up() -> None:
    assert {
        "/consumers",
        "/brokers/ids",
        "/brokers/topics",
        "/config/changes",
        "/admin/delete_topics",
        "/brokers/seqid",
        "/isr_change_notification",
        "/latest_producer_id_block",
        "/log_dir_event_notification",
        "/config/topics",
        "/config/clients",
        "/config/users",
        "/config/brokers",
        "/config/ips",
    } <= set(PERSISTENT_ZK_PATHS)


def test_controller() -> None:
    data = b'{"version":2,"brokerid":3,"timestamp":"1700000000000","kraftControllerEpoch":-1}'

    assert ControllerZNode.encode(3, 1_700_000_000_000) == data
    assert ControllerZNode.decode(data) == 3
    assert ControllerZNode.decode(b'{"version":1,"brokerid":4,"timestamp":"1"}') == 4


def test_controller_epoch_is_a_bare_number() -> None:
    assert ControllerEpochZNode.encode(12) == b"12"
    assert ControllerEpochZNode.decode(b"12") == 12
    with pytest.raises(MalformedZNodeError, match="/controller_epoch"):
        ControllerEpochZNode.decode(b"")


def test_broker_registration_version_5() -> None:
    data = (
        b'{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},'
        b'"endpoints":["PLAINTEXT://localhost:9092"],"jmx_port":-1,"port":9092,'
        b'"host":"localhost","version":5,"timestamp":"1700000000000"}'
    )
    broker = Broker(3, (PLAINTEXT,))

    assert BrokerIdZNode.encode(BrokerInfo(broker), 1_700_000_000_000) == data
    decoded = BrokerIdZNode.decode(3, data, epoch=25)
    assert decoded == BrokerInfo(broker)
    assert decoded.broker.epoch == 25


def test_broker_registration_with_rack_and_named_listeners() -> None:
    broker = Broker(
        1,
        (
            EndPoint("CLIENT", SecurityProtocol.SASL_SSL, "host1", 9092),
            EndPoint("REPLICATION", SecurityProtocol.SSL, "::1", 9093),
        ),
        rack="dc1",
    )

    data = BrokerIdZNode.encode(BrokerInfo(broker, jmx_port=9999), 5)

    assert data == (
        b'{"features":{},"listener_security_protocol_map":{"CLIENT":"SASL_SSL",'
        b'"REPLICATION":"SSL"},"endpoints":["CLIENT://host1:9092","REPLICATION://[::1]:9093"],'
        b'"jmx_port":9999,"port":-1,"host":null,"version":5,"rack":"dc1","timestamp":"5"}'
    )
    assert BrokerIdZNode.decode(1, data) == BrokerInfo(broker, jmx_port=9999)


@pytest.mark.parametrize(
    "data",
    [
        b'{"version":1,"host":"localhost","port":9092,"jmx_port":-1,"timestamp":"1"}',
        b'{"version":3,"host":"localhost","port":9092,"jmx_port":-1,"timestamp":"1",'
        b'"endpoints":["PLAINTEXT://localhost:9092"],"rack":null}',
        b'{"version":5,"host":"localhost","port":9092,"jmx_port":-1,"timestamp":"1",'
        b'"endpoints":["PLAINTEXT://localhost:9092"],'
        b'"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},'
        b'"features":{"feature":{"min_version":1,"max_version":3}}}',
    ],
)
def test_broker_registrations_of_other_versions_are_read(data: bytes) -> None:
    assert BrokerIdZNode.decode(0, data).broker == Broker(0, (PLAINTEXT,))


@pytest.mark.parametrize(
    "data",
    [
        None,
        b"",
        b"{",
        b"[]",
        b'{"version":0,"jmx_port":-1}',
        b'{"version":5,"jmx_port":-1}',
        b'{"version":5,"jmx_port":-1,"endpoints":["nonsense"]}',
        b'{"version":5,"jmx_port":-1,"endpoints":["X://h:1"]}',
    ],
)
def test_unreadable_registration_names_its_znode(data: bytes | None) -> None:
    with pytest.raises(MalformedZNodeError, match="/brokers/ids/9"):
        BrokerIdZNode.decode(9, data)


def test_topic_version_3() -> None:
    data = (
        b'{"removing_replicas":{"1":[0]},"partitions":{"0":[0,1],"1":[2,1,0]},'
        b'"topic_id":"ZOLr9CLNQjSW70hyIHx6BQ","adding_replicas":{"1":[2]},"version":3}'
    )
    assignment = {
        TP0: ReplicaAssignment((0, 1)),
        TP1: ReplicaAssignment((2, 1, 0), adding_replicas=(2,), removing_replicas=(0,)),
    }

    assert TopicZNode.encode(TOPIC_ID, assignment) == data
    decoded = TopicZNode.decode("t", data)
    assert (decoded.topic_id, decoded.assignment) == (TOPIC_ID, assignment)


def test_topic_partitions_are_written_in_order_of_number() -> None:
    assignment = {TopicPartition("t", p): ReplicaAssignment((0,)) for p in (10, 2, 0)}

    assert b'"partitions":{"0":[0],"2":[0],"10":[0]}' in TopicZNode.encode(None, assignment)


def test_topic_of_version_1_has_no_id() -> None:
    decoded = TopicZNode.decode("t", b'{"version":1,"partitions":{"0":[1,2]}}')

    assert decoded.topic_id is None
    assert decoded.assignment == {TP0: ReplicaAssignment((1, 2))}


@pytest.mark.parametrize(
    "data",
    [
        b'{"version":3,"partitions":{"x":[0]}}',
        b'{"version":3,"partitions":{"0":"1"}}',
        b'{"version":3,"partitions":{"0":[0]},"topic_id":"short"}',
    ],
)
def test_unreadable_topic_names_its_znode(data: bytes) -> None:
    with pytest.raises(MalformedZNodeError, match="/brokers/topics/t"):
        TopicZNode.decode("t", data)


def test_partition_state() -> None:
    data = b'{"controller_epoch":5,"leader":1,"version":1,"leader_epoch":2,"isr":[1,0]}'
    state = LeaderIsrAndControllerEpoch(LeaderAndIsr(1, 2, (1, 0), partition_epoch=7), 5)

    assert TopicPartitionStateZNode.encode(state) == data
    assert TopicPartitionStateZNode.decode(TP0, data, Stat(version=7)) == state


def test_partition_state_names_recovery_only_while_it_lasts() -> None:
    recovering = LeaderAndIsr(1, 2, (1,), LeaderRecoveryState.RECOVERING)
    state = LeaderIsrAndControllerEpoch(recovering, 5)

    data = TopicPartitionStateZNode.encode(state)

    assert data.endswith(b',"leader_recovery_state":1}')
    assert TopicPartitionStateZNode.decode(TP0, data, Stat()) == state


def test_config() -> None:
    data = b'{"version":1,"config":{"retention.ms":"1","x":"\xc3\xa4"}}'
    config = {"retention.ms": "1", "x": "\u00e4"}

    assert ConfigEntityZNode.encode(config) == data
    assert ConfigEntityZNode.decode("topics", "t", data) == config
    assert ConfigEntityZNode.decode("topics", "t", None) == {}


def test_config_change() -> None:
    data = b'{"version":2,"entity_path":"topics/t"}'

    assert ConfigEntityChangeNotificationSequenceZNode.encode("topics/t") == data
    assert ConfigEntityChangeNotificationSequenceZNode.decode(data) == "topics/t"


def test_config_change_of_version_1() -> None:
    data = b'{"version":1,"entity_type":"topics","entity_name":"t"}'

    assert ConfigEntityChangeNotificationSequenceZNode.decode(data) == "topics/t"


@pytest.mark.parametrize(
    "data",
    [b'{"version":1,"entity_type":"users","entity_name":"u"}', b'{"version":3}'],
)
def test_unknown_config_change_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedZNodeError, match="/config/changes"):
        ConfigEntityChangeNotificationSequenceZNode.decode(data)


def test_isr_change_and_preferred_election_list_partitions() -> None:
    data = b'{"version":1,"partitions":[{"topic":"t","partition":0},{"topic":"t","partition":1}]}'

    assert IsrChangeNotificationSequenceZNode.encode([TP0, TP1]) == data
    assert PreferredReplicaElectionZNode.encode([TP0, TP1]) == data
    assert IsrChangeNotificationSequenceZNode.decode(data) == {TP0, TP1}
    assert PreferredReplicaElectionZNode.decode(data) == {TP0, TP1}
    number = IsrChangeNotificationSequenceZNode.sequence_number("isr_change_0000000012")
    assert number == "0000000012"


def test_log_dir_event() -> None:
    data = b'{"version":1,"broker":2,"event":1}'

    assert LogDirEventNotificationSequenceZNode.encode(2) == data
    assert LogDirEventNotificationSequenceZNode.decode(data) == 2


def test_reassignment() -> None:
    data = b'{"version":1,"partitions":[{"topic":"t","partition":1,"replicas":[3,4]}]}'

    assert ReassignPartitionsZNode.encode({TP1: [3, 4]}) == data
    assert ReassignPartitionsZNode.decode(data) == {TP1: (3, 4)}


def test_cluster_id() -> None:
    data = b'{"version":"1","id":"0-qO5c0cSx6Xr_0aaXdpZg"}'

    assert ClusterIdZNode.encode("0-qO5c0cSx6Xr_0aaXdpZg") == data
    assert ClusterIdZNode.decode(data) == "0-qO5c0cSx6Xr_0aaXdpZg"


def test_producer_id_block() -> None:
    data = b'{"version":1,"broker":0,"block_start":"1000","block_end":"1999"}'
    block = ProducerIdsBlock(0, 1000, 1000)

    assert ProducerIdBlockZNode.encode(block) == data
    assert ProducerIdBlockZNode.decode(data) == block
    assert block.next_block_first_id == 2000
