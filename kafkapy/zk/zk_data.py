"""Paths of Kafka's znodes and the JSON in them, byte for byte as Apache Kafka 3.9 writes them.

Each class is the name space of one znode: `path`, `encode`, `decode`. Keys are in the order in
which Apache Kafka's hash maps happen to put them, so that a plain diff can compare two stores.
Data that cannot be understood raises KafkaError naming the znode.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from kafkapy.common.errors import KafkaError
from kafkapy.common.types import TopicPartition, uuid_from_base64, uuid_to_base64
from kafkapy.metadata.broker import Broker
from kafkapy.metadata.end_point import EndPoint, SecurityProtocol
from kafkapy.metadata.leader_and_isr import (
    LeaderAndIsr,
    LeaderIsrAndControllerEpoch,
    LeaderRecoveryState,
)
from kafkapy.metadata.replica_assignment import ReplicaAssignment
from kafkapy.zk.metadata_store import Stat

JsonObject = dict[str, object]
_ENDPOINT = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)", re.ASCII)


class MalformedZNodeError(KafkaError):
    """A znode holds something else than what its path promises."""

    def __init__(self, path: str, data: bytes | None, problem: object) -> None:
        super().__init__(f"Cannot read znode {path}: {problem}; its data is {data!r}")


class ConfigType:
    """Kinds of entities that have settings.

    Ports: org.apache.kafka.server.config.ConfigType
    """

    TOPIC = "topics"
    CLIENT = "clients"
    USER = "users"
    BROKER = "brokers"
    IP = "ips"
    CLIENT_METRICS = "client-metrics"
    GROUP = "groups"
    ALL = (TOPIC, CLIENT, USER, BROKER, IP, CLIENT_METRICS, GROUP)


# The entity that stands for every entity of its type.
DEFAULT_ENTITY_NAME = "<default>"


class ControllerZNode:
    path = "/controller"

    @staticmethod
    def encode(broker_id: int, timestamp_ms: int) -> bytes:
        return _encode(
            {
                "version": 2,
                "brokerid": broker_id,
                "timestamp": str(timestamp_ms),
                "kraftControllerEpoch": -1,
            }
        )

    @staticmethod
    def decode(data: bytes | None) -> int:
        return _Json(ControllerZNode.path, data).integer("brokerid")


class ControllerEpochZNode:
    path = "/controller_epoch"

    @staticmethod
    def encode(epoch: int) -> bytes:
        return str(epoch).encode()

    @staticmethod
    def decode(data: bytes | None) -> int:
        try:
            return int(data or b"")
        except ValueError as e:
            raise MalformedZNodeError(ControllerEpochZNode.path, data, e) from e


class BrokerIdsZNode:
    path = "/brokers/ids"


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """A broker's registration.

    Ports: kafka.zk.BrokerInfo
    """

    broker: Broker
    version: int = 5
    jmx_port: int = -1

    @property
    def path(self) -> str:
        return BrokerIdZNode.path(self.broker.id)


class BrokerIdZNode:
    @staticmethod
    def path(broker_id: int) -> str:
        return f"{BrokerIdsZNode.path}/{broker_id}"

    @staticmethod
    def encode(info: BrokerInfo, timestamp_ms: int) -> bytes:
        """`host` and `port` are for clients that know only plaintext: null and -1 without one."""
        broker = info.broker
        plaintext = next(
            (e for e in broker.endpoints if e.security_protocol is SecurityProtocol.PLAINTEXT), None
        )
        value: JsonObject = {}
        if info.version >= 5:
            value["features"] = {}
        if info.version >= 4:
            value["listener_security_protocol_map"] = {
                e.listener_name: e.security_protocol.name for e in broker.endpoints
            }
        value["endpoints"] = [e.connection_string for e in broker.endpoints]
        value["jmx_port"] = info.jmx_port
        value["port"] = plaintext.port if plaintext else -1
        value["host"] = plaintext.host if plaintext else None
        value["version"] = info.version
        if broker.rack is not None and info.version >= 3:
            value["rack"] = broker.rack
        value["timestamp"] = str(timestamp_ms)
        return _encode(value)

    @staticmethod
    def decode(broker_id: int, data: bytes | None, epoch: int = -1) -> BrokerInfo:
        js = _Json(BrokerIdZNode.path(broker_id), data)
        version = js.integer("version")
        endpoints: list[EndPoint]
        if version < 1:
            raise js.error(f"unsupported version {version} of a broker registration")
        if version == 1:
            protocol = SecurityProtocol.PLAINTEXT
            host, port = js.string("host"), js.integer("port")
            endpoints = [EndPoint(protocol.name, protocol, host, port)]
        else:
            protocols = js.optional_mapping("listener_security_protocol_map")
            endpoints = [_parse_endpoint(js, text, protocols) for text in js.items("endpoints")]
        rack = js.value.get("rack")
        broker = Broker(broker_id, tuple(endpoints), str(rack) if rack is not None else None, epoch)
        return BrokerInfo(broker, version, js.integer("jmx_port"))


class TopicsZNode:
    path = "/brokers/topics"


@dataclass(frozen=True, slots=True)
class TopicIdReplicaAssignment:
    """Ports: kafka.zk.TopicZNode.TopicIdReplicaAssignment"""

    topic: str
    topic_id: UUID | None
    assignment: dict[TopicPartition, ReplicaAssignment]


class TopicZNode:
    @staticmethod
    def path(topic: str) -> str:
        return f"{TopicsZNode.path}/{topic}"

    @staticmethod
    def encode(
        topic_id: UUID | None, assignment: Mapping[TopicPartition, ReplicaAssignment]
    ) -> bytes:
        ordered = sorted((tp.partition, replicas) for tp, replicas in assignment.items())
        value: JsonObject = {
            "removing_replicas": {
                str(p): a.removing_replicas for p, a in ordered if a.removing_replicas
            },
            "partitions": {str(p): a.replicas for p, a in ordered},
        }
        if topic_id is not None:
            value["topic_id"] = uuid_to_base64(topic_id)
        value["adding_replicas"] = {
            str(p): a.adding_replicas for p, a in ordered if a.adding_replicas
        }
        value["version"] = 3
        return _encode(value)

    @staticmethod
    def decode(topic: str, data: bytes | None) -> TopicIdReplicaAssignment:
        """Versions 1 to 3: without id, and without replicas on the move, before them."""
        js = _Json(TopicZNode.path(topic), data)
        adding = js.optional_mapping("adding_replicas")
        removing = js.optional_mapping("removing_replicas")
        try:
            assignment = {
                TopicPartition(topic, int(partition)): ReplicaAssignment(
                    replicas=js.integers(replicas),
                    adding_replicas=js.integers(adding.get(partition, ())),
                    removing_replicas=js.integers(removing.get(partition, ())),
                )
                for partition, replicas in js.optional_mapping("partitions").items()
            }
            topic_id = uuid_from_base64(js.string("topic_id")) if "topic_id" in js.value else None
        except ValueError as e:
            raise js.error(e) from e
        return TopicIdReplicaAssignment(topic, topic_id, assignment)


class TopicPartitionsZNode:
    @staticmethod
    def path(topic: str) -> str:
        return f"{TopicZNode.path(topic)}/partitions"


class TopicPartitionZNode:
    @staticmethod
    def path(partition: TopicPartition) -> str:
        return f"{TopicPartitionsZNode.path(partition.topic)}/{partition.partition}"


class TopicPartitionStateZNode:
    @staticmethod
    def path(partition: TopicPartition) -> str:
        return f"{TopicPartitionZNode.path(partition)}/state"

    @staticmethod
    def encode(state: LeaderIsrAndControllerEpoch) -> bytes:
        leader_and_isr = state.leader_and_isr
        value: JsonObject = {
            "controller_epoch": state.controller_epoch,
            "leader": leader_and_isr.leader,
            "version": 1,
            "leader_epoch": leader_and_isr.leader_epoch,
            "isr": leader_and_isr.isr,
        }
        if leader_and_isr.leader_recovery_state is not LeaderRecoveryState.RECOVERED:
            value["leader_recovery_state"] = int(leader_and_isr.leader_recovery_state)
        return _encode(value)

    @staticmethod
    def decode(
        partition: TopicPartition, data: bytes | None, stat: Stat
    ) -> LeaderIsrAndControllerEpoch:
        js = _Json(TopicPartitionStateZNode.path(partition), data)
        recovery = js.integer("leader_recovery_state") if "leader_recovery_state" in js.value else 0
        if recovery not in tuple(LeaderRecoveryState):
            raise js.error(f"there is no leader recovery state {recovery}")
        leader_and_isr = LeaderAndIsr(
            leader=js.integer("leader"),
            leader_epoch=js.integer("leader_epoch"),
            isr=js.integers(js.value.get("isr")),
            leader_recovery_state=LeaderRecoveryState(recovery),
            partition_epoch=stat.version,
        )
        return LeaderIsrAndControllerEpoch(leader_and_isr, js.integer("controller_epoch"))


class ConfigEntityTypeZNode:
    @staticmethod
    def path(entity_type: str) -> str:
        return f"/config/{entity_type}"


class ConfigEntityZNode:
    @staticmethod
    def path(entity_type: str, entity_name: str) -> str:
        return f"{ConfigEntityTypeZNode.path(entity_type)}/{entity_name}"

    @staticmethod
    def encode(config: Mapping[str, str]) -> bytes:
        return _encode({"version": 1, "config": dict(config)})

    @staticmethod
    def decode(entity_type: str, entity_name: str, data: bytes | None) -> dict[str, str]:
        if not data:
            return {}
        js = _Json(ConfigEntityZNode.path(entity_type, entity_name), data)
        return {key: str(value) for key, value in js.optional_mapping("config").items()}


class ConfigEntityChangeNotificationZNode:
    path = "/config/changes"


class ConfigEntityChangeNotificationSequenceZNode:
    sequence_number_prefix = "config_change_"
    create_path = f"{ConfigEntityChangeNotificationZNode.path}/{sequence_number_prefix}"

    @staticmethod
    def encode(sanitized_entity_path: str) -> bytes:
        return _encode({"version": 2, "entity_path": sanitized_entity_path})

    @staticmethod
    def decode(data: bytes | None) -> str:
        """The entity path of a version 2 notification, or that which a version 1 one means."""
        js = _Json(ConfigEntityChangeNotificationZNode.path, data)
        match js.integer("version"):
            case 1:
                entity_type, name = js.string("entity_type"), js.string("entity_name")
                if entity_type not in (ConfigType.TOPIC, ConfigType.CLIENT):
                    raise js.error(f"unexpected entity type {entity_type} in version 1")
                return f"{entity_type}/{name}"
            case 2:
                return js.string("entity_path")
            case other:
                raise js.error(f"unsupported version {other} of a config change")


class IsrChangeNotificationZNode:
    path = "/isr_change_notification"


class IsrChangeNotificationSequenceZNode:
    sequence_number_prefix = "isr_change_"

    @staticmethod
    def path(sequence_number: str = "") -> str:
        prefix = IsrChangeNotificationSequenceZNode.sequence_number_prefix
        return f"{IsrChangeNotificationZNode.path}/{prefix}{sequence_number}"

    @staticmethod
    def encode(partitions: Collection[TopicPartition]) -> bytes:
        return _encode_partitions(partitions)

    @staticmethod
    def decode(data: bytes | None) -> set[TopicPartition]:
        return _decode_partitions(IsrChangeNotificationZNode.path, data)

    @staticmethod
    def sequence_number(path: str) -> str:
        return path.rpartition(IsrChangeNotificationSequenceZNode.sequence_number_prefix)[2]


class LogDirEventNotificationZNode:
    path = "/log_dir_event_notification"


class LogDirEventNotificationSequenceZNode:
    sequence_number_prefix = "log_dir_event_"
    log_dir_failure_event = 1

    @staticmethod
    def path(sequence_number: str = "") -> str:
        prefix = LogDirEventNotificationSequenceZNode.sequence_number_prefix
        return f"{LogDirEventNotificationZNode.path}/{prefix}{sequence_number}"

    @staticmethod
    def encode(broker_id: int) -> bytes:
        event = LogDirEventNotificationSequenceZNode.log_dir_failure_event
        return _encode({"version": 1, "broker": broker_id, "event": event})

    @staticmethod
    def decode(data: bytes | None) -> int:
        return _Json(LogDirEventNotificationZNode.path, data).integer("broker")

    @staticmethod
    def sequence_number(path: str) -> str:
        return path.rpartition(LogDirEventNotificationSequenceZNode.sequence_number_prefix)[2]


class DeleteTopicsZNode:
    path = "/admin/delete_topics"


class DeleteTopicsTopicZNode:
    @staticmethod
    def path(topic: str) -> str:
        return f"{DeleteTopicsZNode.path}/{topic}"


class ReassignPartitionsZNode:
    path = "/admin/reassign_partitions"

    @staticmethod
    def encode(reassignment: Mapping[TopicPartition, Sequence[int]]) -> bytes:
        partitions = [
            {"topic": tp.topic, "partition": tp.partition, "replicas": list(replicas)}
            for tp, replicas in reassignment.items()
        ]
        return _encode({"version": 1, "partitions": partitions})

    @staticmethod
    def decode(data: bytes | None) -> dict[TopicPartition, tuple[int, ...]]:
        js = _Json(ReassignPartitionsZNode.path, data)
        return {
            _partition(js, entry): js.integers(js.mapping(entry).get("replicas"))
            for entry in js.items("partitions")
        }


class PreferredReplicaElectionZNode:
    path = "/admin/preferred_replica_election"

    @staticmethod
    def encode(partitions: Collection[TopicPartition]) -> bytes:
        return _encode_partitions(partitions)

    @staticmethod
    def decode(data: bytes | None) -> set[TopicPartition]:
        return _decode_partitions(PreferredReplicaElectionZNode.path, data)


class ClusterIdZNode:
    path = "/cluster/id"

    @staticmethod
    def encode(cluster_id: str) -> bytes:
        return _encode({"version": "1", "id": cluster_id})

    @staticmethod
    def decode(data: bytes | None) -> str:
        return _Json(ClusterIdZNode.path, data).string("id")


class BrokerSequenceIdZNode:
    path = "/brokers/seqid"


@dataclass(frozen=True, slots=True)
class ProducerIdsBlock:
    """A run of producer ids given to one broker.

    Ports: org.apache.kafka.server.common.ProducerIdsBlock
    """

    assigned_broker_id: int
    first_producer_id: int
    block_size: int

    @property
    def last_producer_id(self) -> int:
        return self.first_producer_id + self.block_size - 1

    @property
    def next_block_first_id(self) -> int:
        return self.first_producer_id + self.block_size


PRODUCER_ID_BLOCK_SIZE = 1000


class ProducerIdBlockZNode:
    """The last block of producer ids given out; ids are strings, being 64 bits wide."""

    path = "/latest_producer_id_block"

    @staticmethod
    def encode(block: ProducerIdsBlock) -> bytes:
        return _encode(
            {
                "version": 1,
                "broker": block.assigned_broker_id,
                "block_start": str(block.first_producer_id),
                "block_end": str(block.last_producer_id),
            }
        )

    @staticmethod
    def decode(data: bytes | None) -> ProducerIdsBlock:
        js = _Json(ProducerIdBlockZNode.path, data)
        try:
            first, last = int(js.string("block_start")), int(js.string("block_end"))
        except ValueError as e:
            raise js.error(e) from e
        return ProducerIdsBlock(js.integer("broker"), first, last - first + 1)


class ConsumerPathZNode:
    path = "/consumers"


# Names under which state change handlers register.
CONTROLLER_HANDLER = "controller-state-change-handler"

# Made by every broker at start-up.
PERSISTENT_ZK_PATHS = (
    ConsumerPathZNode.path,
    BrokerIdsZNode.path,
    TopicsZNode.path,
    ConfigEntityChangeNotificationZNode.path,
    DeleteTopicsZNode.path,
    BrokerSequenceIdZNode.path,
    IsrChangeNotificationZNode.path,
    ProducerIdBlockZNode.path,
    LogDirEventNotificationZNode.path,
    *(ConfigEntityTypeZNode.path(entity_type) for entity_type in ConfigType.ALL),
)


def zk_node_change_listener_handler(seq_node_root: str) -> str:
    return f"change-notification-{seq_node_root}"


def _encode(value: JsonObject) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _encode_partitions(partitions: Collection[TopicPartition]) -> bytes:
    entries = [{"topic": tp.topic, "partition": tp.partition} for tp in partitions]
    return _encode({"version": 1, "partitions": entries})


def _decode_partitions(path: str, data: bytes | None) -> set[TopicPartition]:
    js = _Json(path, data)
    return {_partition(js, entry) for entry in js.items("partitions")}


def _partition(js: _Json, entry: object) -> TopicPartition:
    fields = js.mapping(entry)
    topic, partition = fields.get("topic"), fields.get("partition")
    if not isinstance(topic, str) or not isinstance(partition, int):
        raise js.error(f"{entry!r} names no partition")
    return TopicPartition(topic, partition)


def _parse_endpoint(js: _Json, text: object, protocols: Mapping[str, object]) -> EndPoint:
    """Without a map, as before version 4, the listener is named after its protocol."""
    match = _ENDPOINT.fullmatch(str(text))
    if match is None:
        raise js.error(f"{text!r} is no endpoint")
    name, host, port = match.groups()
    protocol = str(protocols.get(name, name))
    if protocol not in SecurityProtocol.__members__:
        raise js.error(f"endpoint {text!r} has no security protocol")
    return EndPoint(name, SecurityProtocol[protocol], host, int(port))


class _Json:
    """A JSON object read from a znode, whose accessors check what they find."""

    def __init__(self, path: str, data: bytes | None) -> None:
        self._path = path
        self._data = data
        try:
            value = json.loads(data or b"")
        except ValueError as e:
            raise self.error(e) from e
        self.value = self.mapping(value)

    def error(self, problem: object) -> MalformedZNodeError:
        return MalformedZNodeError(self._path, self._data, problem)

    def mapping(self, value: object) -> JsonObject:
        if not isinstance(value, dict):
            raise self.error(f"{value!r} is no JSON object")
        return value

    def optional_mapping(self, key: str) -> JsonObject:
        value = self.value.get(key)
        return {} if value is None else self.mapping(value)

    def integer(self, key: str) -> int:
        value = self.value.get(key)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.error(f"{key} is {value!r}, not an integer")
        return value

    def string(self, key: str) -> str:
        value = self.value.get(key)
        if not isinstance(value, str):
            raise self.error(f"{key} is {value!r}, not a string")
        return value

    def items(self, key: str) -> list[object]:
        value = self.value.get(key)
        if not isinstance(value, list):
            raise self.error(f"{key} is {value!r}, not an array")
        return value

    def integers(self, value: object) -> tuple[int, ...]:
        if not isinstance(value, list | tuple) or not all(isinstance(v, int) for v in value):
            raise self.error(f"{value!r} is no array of integers")
        return tuple(value)
