from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from kafkapy.common.errors import ControllerMovedError, KafkaError, KafkaStorageError
from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.types import TopicPartition
from kafkapy.metadata.broker import Broker
from kafkapy.metadata.leader_and_isr import LeaderAndIsr, LeaderIsrAndControllerEpoch
from kafkapy.metadata.replica_assignment import ReplicaAssignment
from kafkapy.utils.time import Time
from kafkapy.zk.checked_ephemeral import CheckedEphemeral
from kafkapy.zk.metadata_store import (
    MATCH_ANY_VERSION,
    UNKNOWN_VERSION,
    CreateMode,
    CreateRequest,
    DeleteRequest,
    GetDataRequest,
    MetadataStore,
    MultiRequest,
    NodeExistsError,
    Response,
    SetDataRequest,
    Stat,
    StateChangeHandler,
    StoreCode,
    ZNodeChangeHandler,
    ZNodeChildChangeHandler,
)
from kafkapy.zk.notification_queue import NotificationQueue
from kafkapy.zk.zk_data import (
    PERSISTENT_ZK_PATHS,
    PRODUCER_ID_BLOCK_SIZE,
    BrokerIdsZNode,
    BrokerIdZNode,
    BrokerInfo,
    BrokerSequenceIdZNode,
    ClusterIdZNode,
    ConfigEntityChangeNotificationSequenceZNode,
    ConfigEntityChangeNotificationZNode,
    ConfigEntityTypeZNode,
    ConfigEntityZNode,
    ConfigType,
    ControllerEpochZNode,
    ControllerZNode,
    DeleteTopicsTopicZNode,
    DeleteTopicsZNode,
    IsrChangeNotificationSequenceZNode,
    IsrChangeNotificationZNode,
    LogDirEventNotificationSequenceZNode,
    LogDirEventNotificationZNode,
    MalformedZNodeError,
    PreferredReplicaElectionZNode,
    ProducerIdBlockZNode,
    ProducerIdsBlock,
    ReassignPartitionsZNode,
    TopicIdReplicaAssignment,
    TopicPartitionStateZNode,
    TopicPartitionsZNode,
    TopicPartitionZNode,
    TopicsZNode,
    TopicZNode,
)
from kafkapy.zk.zk_request_sender import ZkRequestSender
from kafkapy.zk.znode_client import ZnodeClient

log = logging.getLogger(__name__)

# In /controller_epoch before any broker has become controller.
INITIAL_CONTROLLER_EPOCH = 0
INITIAL_CONTROLLER_EPOCH_ZK_VERSION = 0
_MAX_PRODUCER_ID = 2**63 - 1


@dataclass(frozen=True, slots=True)
class UpdateLeaderAndIsrResult:
    """Partitions written or failed for good, and those whose znode had another version.

    Ports: kafka.zk.KafkaZkClient.UpdateLeaderAndIsrResult
    """

    finished_partitions: dict[TopicPartition, LeaderAndIsr | KafkaError]
    partitions_to_retry: list[TopicPartition]


class KafkaZkClient:
    """Kafka's operations on the metadata store, whichever store it is. Thread-safe.

    Methods named `_raw` answer the store's responses in the order asked; the others raise
    StoreError for what the caller cannot expect. `expected_controller_epoch_zk_version` fences a
    write: when /controller_epoch has another version ControllerMovedError is raised.

    Ports: kafka.zk.KafkaZkClient
    """

    def __init__(
        self, store: MetadataStore, time: Time, metrics: MetricsRegistry | None = None
    ) -> None:
        self._store = store  # constant after construction, like all below
        self._time = time
        self._sender = ZkRequestSender(store, time, metrics or MetricsRegistry())
        self.znodes = ZnodeClient(self._sender)
        self._broker_ephemeral = CheckedEphemeral(self._sender, store)
        self._isr_changes = NotificationQueue(
            IsrChangeNotificationZNode.path, IsrChangeNotificationSequenceZNode, self._sender
        )
        self._log_dir_events = NotificationQueue(
            LogDirEventNotificationZNode.path, LogDirEventNotificationSequenceZNode, self._sender
        )

    def close(self) -> None:
        self._store.close()

    # Brokers

    def register_broker(self, broker_info: BrokerInfo) -> int:
        """Create the broker's ephemeral znode; its czxid is the broker epoch."""
        data = BrokerIdZNode.encode(broker_info, self._time.milliseconds())
        stat = self._broker_ephemeral.create(broker_info.path, data)
        log.info(
            "Registered broker %d at %s with epoch %d",
            broker_info.broker.id,
            broker_info.path,
            stat.czxid,
        )
        return stat.czxid

    def update_broker_info(self, broker_info: BrokerInfo) -> None:
        data = BrokerIdZNode.encode(broker_info, self._time.milliseconds())
        self._sender.send(SetDataRequest(broker_info.path, data)).maybe_raise()
        log.info("Updated broker %d at %s", broker_info.broker.id, broker_info.path)

    def get_all_brokers_in_cluster(self) -> list[Broker]:
        return list(self.get_all_broker_and_epochs_in_cluster())

    def get_all_broker_and_epochs_in_cluster(self) -> dict[Broker, int]:
        ids = self.get_sorted_broker_list()
        brokers = [self._broker(i, r) for i, r in self.znodes.get_all(ids, BrokerIdZNode.path)]
        return {broker: broker.epoch for broker in brokers if broker is not None}

    def get_broker(self, broker_id: int) -> Broker | None:
        return self._broker(broker_id, self.znodes.get(BrokerIdZNode.path(broker_id)))

    def get_sorted_broker_list(self) -> list[int]:
        return sorted(int(child) for child in self.znodes.get_children(BrokerIdsZNode.path))

    def generate_broker_sequence_id(self) -> int:
        """A number no other call has got or will get: the version that the znode reached."""
        request = SetDataRequest(BrokerSequenceIdZNode.path, b"")
        response = self._sender.send(request)
        if response.result_code is StoreCode.NO_NODE:
            self.znodes.make_sure_persistent_path_exists(BrokerSequenceIdZNode.path)
            response = self._sender.send(request)
        return response.stat_or_raise().version

    @staticmethod
    def _broker(broker_id: int, response: Response) -> Broker | None:
        if response.result_code is StoreCode.NO_NODE:
            return None
        epoch = response.stat_or_raise().czxid
        return BrokerIdZNode.decode(broker_id, response.data, epoch).broker

    # Controller

    def register_controller_and_increment_controller_epoch(
        self, controller_id: int
    ) -> tuple[int, int]:
        """Become the controller: the new epoch and the version of /controller_epoch.

        ControllerMovedError when another broker is, or becomes it first.
        """
        epoch, stat = self.get_controller_epoch() or self._create_controller_epoch()
        new_epoch = epoch + 1
        now_ms = self._time.milliseconds()
        controller = ControllerZNode.encode(controller_id, now_ms)
        create = CreateRequest(ControllerZNode.path, controller, CreateMode.EPHEMERAL)
        increment = SetDataRequest(
            ControllerEpochZNode.path, ControllerEpochZNode.encode(new_epoch), stat.version
        )
        response = self._sender.send(MultiRequest((create, increment)))
        if response.ok:
            return new_epoch, response.results[1].stat_or_raise().version
        if response.result_code in (StoreCode.NODE_EXISTS, StoreCode.BAD_VERSION):
            return self._check_controller_and_epoch(controller_id, new_epoch)
        raise response.exception

    def _create_controller_epoch(self) -> tuple[int, Stat]:
        response = self.create_controller_epoch_raw(INITIAL_CONTROLLER_EPOCH)
        if response.ok:
            return INITIAL_CONTROLLER_EPOCH, response.stat_or_raise()
        if response.result_code is StoreCode.NODE_EXISTS:
            found = self.get_controller_epoch()
            if found is not None:
                return found
            raise KafkaError(f"{ControllerEpochZNode.path} existed but went away while reading it")
        raise response.exception

    def _check_controller_and_epoch(self, controller_id: int, new_epoch: int) -> tuple[int, int]:
        """A write whose answer was lost is repeated and then fails; it may still have been ours."""
        found = self.get_controller_epoch()
        if self.get_controller_id() == controller_id and found is not None:
            epoch, stat = found
            if epoch == new_epoch:
                return new_epoch, stat.version
        raise ControllerMovedError(
            f"Another broker became the controller while broker {controller_id} tried to"
        )

    def get_controller_id(self) -> int | None:
        response = self.znodes.get(ControllerZNode.path)
        if response.result_code is StoreCode.NO_NODE:
            return None
        response.maybe_raise()
        return ControllerZNode.decode(response.data)

    def delete_controller(self, expected_controller_epoch_zk_version: int) -> None:
        request = DeleteRequest(ControllerZNode.path)
        self._sender.send(request, expected_controller_epoch_zk_version)

    def get_controller_epoch(self) -> tuple[int, Stat] | None:
        response = self.znodes.get(ControllerEpochZNode.path)
        if response.result_code is StoreCode.NO_NODE:
            return None
        stat = response.stat_or_raise()
        return ControllerEpochZNode.decode(response.data), stat

    def set_controller_epoch_raw(self, epoch: int, epoch_zk_version: int) -> Response:
        data = ControllerEpochZNode.encode(epoch)
        return self._sender.send(SetDataRequest(ControllerEpochZNode.path, data, epoch_zk_version))

    def create_controller_epoch_raw(self, epoch: int) -> Response:
        data = ControllerEpochZNode.encode(epoch)
        return self._sender.send(CreateRequest(ControllerEpochZNode.path, data))

    # Partition states

    def get_topic_partition_states_raw(
        self, partitions: Sequence[TopicPartition]
    ) -> list[Response]:
        requests = [GetDataRequest(TopicPartitionStateZNode.path(tp)) for tp in partitions]
        return self._sender.send_all(requests)

    def set_topic_partition_states_raw(
        self,
        states: Mapping[TopicPartition, LeaderIsrAndControllerEpoch],
        expected_controller_epoch_zk_version: int,
    ) -> list[Response]:
        """Each is written only if its znode still has the version `partition_epoch`."""
        requests = [
            SetDataRequest(
                TopicPartitionStateZNode.path(tp),
                TopicPartitionStateZNode.encode(state),
                state.leader_and_isr.partition_epoch,
            )
            for tp, state in states.items()
        ]
        return self._sender.send_all(requests, expected_controller_epoch_zk_version)

    def create_topic_partition_states_raw(
        self,
        states: Mapping[TopicPartition, LeaderIsrAndControllerEpoch],
        expected_controller_epoch_zk_version: int,
    ) -> list[Response]:
        """Also makes the znodes above the states; that they exist is no error."""
        topics = dict.fromkeys(tp.topic for tp in states)
        parents = [CreateRequest(TopicPartitionsZNode.path(topic)) for topic in topics]
        parents += [CreateRequest(TopicPartitionZNode.path(tp)) for tp in states]
        requests = parents + [
            CreateRequest(TopicPartitionStateZNode.path(tp), TopicPartitionStateZNode.encode(state))
            for tp, state in states.items()
        ]
        responses = self._sender.send_all(requests, expected_controller_epoch_zk_version)
        return responses[len(parents) :]

    def update_leader_and_isr(
        self,
        leader_and_isrs: Mapping[TopicPartition, LeaderAndIsr],
        controller_epoch: int,
        expected_controller_epoch_zk_version: int,
    ) -> UpdateLeaderAndIsrResult:
        states = {
            tp: LeaderIsrAndControllerEpoch(leader_and_isr, controller_epoch)
            for tp, leader_and_isr in leader_and_isrs.items()
        }
        finished: dict[TopicPartition, LeaderAndIsr | KafkaError] = {}
        retry: list[TopicPartition] = []
        try:
            responses = self.set_topic_partition_states_raw(
                states, expected_controller_epoch_zk_version
            )
        except (ControllerMovedError, KafkaStorageError):
            raise
        except KafkaError as e:
            return UpdateLeaderAndIsrResult(dict.fromkeys(leader_and_isrs, e), [])
        for (tp, leader_and_isr), response in zip(leader_and_isrs.items(), responses, strict=True):
            if response.ok:
                version = response.stat_or_raise().version
                finished[tp] = leader_and_isr.with_partition_epoch(version)
            elif response.result_code is StoreCode.BAD_VERSION:
                retry.append(tp)
            else:
                finished[tp] = response.exception
        return UpdateLeaderAndIsrResult(finished, retry)

    def get_topic_partition_state(
        self, partition: TopicPartition
    ) -> LeaderIsrAndControllerEpoch | None:
        return self.get_topic_partition_states([partition]).get(partition)

    def get_topic_partition_states(
        self, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, LeaderIsrAndControllerEpoch]:
        """Without the partitions that have no state yet, or one that cannot be understood."""
        states = {}
        responses = self.get_topic_partition_states_raw(partitions)
        for tp, response in zip(partitions, responses, strict=True):
            if response.result_code is StoreCode.NO_NODE:
                continue
            stat = response.stat_or_raise()
            try:
                states[tp] = TopicPartitionStateZNode.decode(tp, response.data, stat)
            except MalformedZNodeError as e:
                log.error("Leaving out partition %s: %s", tp, e)
        return states

    # Topics

    def get_all_topics_in_cluster(self, *, register_watch: bool = False) -> set[str]:
        return set(self.znodes.get_children(TopicsZNode.path, register_watch=register_watch))

    def topic_exists(self, topic: str) -> bool:
        return self.znodes.path_exists(TopicZNode.path(topic))

    def create_topic_assignment(
        self,
        topic: str,
        topic_id: UUID | None,
        assignment: Mapping[TopicPartition, Sequence[int]],
    ) -> None:
        """NodeExistsError when the topic exists."""
        persisted = {tp: ReplicaAssignment.of(replicas) for tp, replicas in assignment.items()}
        self.znodes.create_recursive(TopicZNode.path(topic), TopicZNode.encode(topic_id, persisted))

    def set_topic_assignment_raw(
        self,
        topic: str,
        topic_id: UUID | None,
        assignment: Mapping[TopicPartition, ReplicaAssignment],
        expected_controller_epoch_zk_version: int,
    ) -> Response:
        data = TopicZNode.encode(topic_id, assignment)
        request = SetDataRequest(TopicZNode.path(topic), data)
        return self._sender.send(request, expected_controller_epoch_zk_version)

    def set_topic_assignment(
        self,
        topic: str,
        topic_id: UUID | None,
        assignment: Mapping[TopicPartition, ReplicaAssignment],
        expected_controller_epoch_zk_version: int = MATCH_ANY_VERSION,
    ) -> None:
        self.set_topic_assignment_raw(
            topic, topic_id, assignment, expected_controller_epoch_zk_version
        ).maybe_raise()

    def set_topic_ids(
        self,
        assignments: Mapping[str, Mapping[TopicPartition, ReplicaAssignment]],
        topic_ids: Mapping[str, UUID],
        expected_controller_epoch_zk_version: int,
    ) -> None:
        """Give ids to topics made before there were any."""
        requests = [
            SetDataRequest(TopicZNode.path(topic), TopicZNode.encode(topic_ids[topic], assignment))
            for topic, assignment in assignments.items()
        ]
        for response in self._sender.send_all(requests, expected_controller_epoch_zk_version):
            response.maybe_raise()

    def get_replica_assignment_and_topic_id_for_topics(
        self, topics: Collection[str]
    ) -> list[TopicIdReplicaAssignment]:
        """In the order of `topics`; one that does not exist has neither id nor partitions."""
        found = []
        for topic, response in self.znodes.get_all(topics, TopicZNode.path):
            if response.result_code is StoreCode.NO_NODE:
                found.append(TopicIdReplicaAssignment(topic, None, {}))
            else:
                response.maybe_raise()
                found.append(TopicZNode.decode(topic, response.data))
        return found

    def get_topic_ids_for_topics(self, topics: Collection[str]) -> dict[str, UUID]:
        found = self.get_replica_assignment_and_topic_id_for_topics(topics)
        return {t.topic: t.topic_id for t in found if t.topic_id is not None}

    def get_full_replica_assignment_for_topics(
        self, topics: Collection[str]
    ) -> dict[TopicPartition, ReplicaAssignment]:
        found = self.get_replica_assignment_and_topic_id_for_topics(topics)
        return {tp: replicas for topic in found for tp, replicas in topic.assignment.items()}

    def get_replica_assignment_for_topics(
        self, topics: Collection[str]
    ) -> dict[TopicPartition, tuple[int, ...]]:
        full = self.get_full_replica_assignment_for_topics(topics)
        return {tp: assignment.replicas for tp, assignment in full.items()}

    def get_partitions_for_topics(self, topics: Collection[str]) -> dict[str, list[int]]:
        found = self.get_replica_assignment_and_topic_id_for_topics(topics)
        return {t.topic: [tp.partition for tp in t.assignment] for t in found if t.assignment}

    def get_topic_partition_count(self, topic: str) -> int | None:
        partitions = self.get_partitions_for_topics([topic])
        return len(partitions[topic]) if topic in partitions else None

    def get_replicas_for_partition(self, partition: TopicPartition) -> tuple[int, ...]:
        return self.get_replica_assignment_for_topics([partition.topic]).get(partition, ())

    def delete_topic_znode(self, topic: str, expected_controller_epoch_zk_version: int) -> None:
        self.znodes.delete_recursive(TopicZNode.path(topic), expected_controller_epoch_zk_version)

    def create_delete_topic_path(self, topic: str) -> None:
        self.znodes.create_recursive(DeleteTopicsTopicZNode.path(topic))

    def get_topic_deletions(self) -> list[str]:
        return list(self.znodes.get_children(DeleteTopicsZNode.path))

    def is_topic_marked_for_deletion(self, topic: str) -> bool:
        return self.znodes.path_exists(DeleteTopicsTopicZNode.path(topic))

    def delete_topic_deletions(
        self, topics: Sequence[str], expected_controller_epoch_zk_version: int
    ) -> None:
        requests = [DeleteRequest(DeleteTopicsTopicZNode.path(topic)) for topic in topics]
        self._sender.send_all(requests, expected_controller_epoch_zk_version)

    # Settings

    def get_entity_configs(
        self, root_entity_type: str, sanitized_entity_name: str
    ) -> dict[str, str]:
        """Empty when the entity has none."""
        configs = self.get_entities_configs(root_entity_type, [sanitized_entity_name])
        return configs[sanitized_entity_name]

    def get_entities_configs(
        self, root_entity_type: str, sanitized_entity_names: Collection[str]
    ) -> dict[str, dict[str, str]]:
        responses = self._config_responses(root_entity_type, sanitized_entity_names)
        return {name: _config(root_entity_type, name, answer) for name, answer in responses}

    def get_topic_configs(
        self, topics: Collection[str]
    ) -> tuple[dict[str, dict[str, str]], dict[str, KafkaError]]:
        """Settings per topic, and what went wrong for the topics whose settings cannot be read."""
        configs: dict[str, dict[str, str]] = {}
        failed: dict[str, KafkaError] = {}
        for topic, response in self._config_responses(ConfigType.TOPIC, topics):
            try:
                configs[topic] = _config(ConfigType.TOPIC, topic, response)
            except KafkaError as e:
                failed[topic] = e
        return configs, failed

    def _config_responses(
        self, entity_type: str, names: Collection[str]
    ) -> list[tuple[str, Response]]:
        return self.znodes.get_all(names, lambda name: ConfigEntityZNode.path(entity_type, name))

    def set_or_create_entity_configs(
        self, root_entity_type: str, sanitized_entity_name: str, config: Mapping[str, str]
    ) -> None:
        path = ConfigEntityZNode.path(root_entity_type, sanitized_entity_name)
        data = ConfigEntityZNode.encode(config)
        while True:
            response = self._sender.send(SetDataRequest(path, data))
            if response.result_code is not StoreCode.NO_NODE:
                response.maybe_raise()
                return
            try:
                self.znodes.create_recursive(path, data)
                return
            except NodeExistsError:
                log.debug("%s was created by somebody else: setting it", path)

    def get_all_entities_with_config(self, entity_type: str) -> list[str]:
        return list(self.znodes.get_children(ConfigEntityTypeZNode.path(entity_type)))

    def create_config_change_notification(self, sanitized_entity_path: str) -> None:
        self.znodes.make_sure_persistent_path_exists(ConfigEntityChangeNotificationZNode.path)
        self.znodes.create_sequential_persistent_path(
            ConfigEntityChangeNotificationSequenceZNode.create_path,
            ConfigEntityChangeNotificationSequenceZNode.encode(sanitized_entity_path),
        )

    def delete_topic_configs(
        self, topics: Sequence[str], expected_controller_epoch_zk_version: int
    ) -> None:
        requests = [DeleteRequest(ConfigEntityZNode.path(ConfigType.TOPIC, t)) for t in topics]
        self._sender.send_all(requests, expected_controller_epoch_zk_version)

    # Notifications of brokers to the controller

    def propagate_isr_changes(self, partitions: Collection[TopicPartition]) -> None:
        path = self.znodes.create_sequential_persistent_path(
            IsrChangeNotificationSequenceZNode.path(),
            IsrChangeNotificationSequenceZNode.encode(partitions),
        )
        log.debug("Added %s for %s", path, partitions)

    def get_all_isr_change_notifications(self) -> list[str]:
        """Sequence numbers; sets the watch of a registered child handler."""
        return self._isr_changes.sequence_numbers()

    def get_partitions_from_isr_change_notifications(
        self, sequence_numbers: Sequence[str]
    ) -> list[TopicPartition]:
        changes = self._isr_changes.read(sequence_numbers)
        return [partition for change in changes for partition in sorted(change)]

    def delete_isr_change_notifications(
        self,
        expected_controller_epoch_zk_version: int,
        sequence_numbers: Sequence[str] | None = None,
    ) -> None:
        """Those numbered, or all."""
        self._isr_changes.delete(expected_controller_epoch_zk_version, sequence_numbers)

    def propagate_log_dir_event(self, broker_id: int) -> None:
        path = self.znodes.create_sequential_persistent_path(
            LogDirEventNotificationSequenceZNode.path(),
            LogDirEventNotificationSequenceZNode.encode(broker_id),
        )
        log.debug("Added %s for broker %d", path, broker_id)

    def get_log_dir_event_notifications(self) -> list[str]:
        """Sequence numbers; sets the watch of a registered child handler."""
        return self._log_dir_events.sequence_numbers()

    def get_broker_ids_from_log_dir_events(self, sequence_numbers: Sequence[str]) -> list[int]:
        return self._log_dir_events.read(sequence_numbers)

    def delete_log_dir_event_notifications(
        self,
        expected_controller_epoch_zk_version: int,
        sequence_numbers: Sequence[str] | None = None,
    ) -> None:
        """Those numbered, or all."""
        self._log_dir_events.delete(expected_controller_epoch_zk_version, sequence_numbers)

    # Requests of administrators to the controller

    def get_partition_reassignment(self) -> dict[TopicPartition, tuple[int, ...]]:
        response = self.znodes.get(ReassignPartitionsZNode.path)
        if response.result_code is StoreCode.NO_NODE:
            return {}
        response.maybe_raise()
        return ReassignPartitionsZNode.decode(response.data)

    def set_or_create_partition_reassignment(
        self,
        reassignment: Mapping[TopicPartition, Sequence[int]],
        expected_controller_epoch_zk_version: int,
    ) -> None:
        path, data = ReassignPartitionsZNode.path, ReassignPartitionsZNode.encode(reassignment)
        version = expected_controller_epoch_zk_version
        response = self._sender.send(SetDataRequest(path, data), version)
        if response.result_code is StoreCode.NO_NODE:
            response = self._sender.send(CreateRequest(path, data), version)
        response.maybe_raise()

    def create_partition_reassignment(
        self, reassignment: Mapping[TopicPartition, Sequence[int]]
    ) -> None:
        """NodeExistsError while another one runs."""
        path = ReassignPartitionsZNode.path
        self.znodes.create_recursive(path, ReassignPartitionsZNode.encode(reassignment))

    def delete_partition_reassignment(self, expected_controller_epoch_zk_version: int) -> None:
        request = DeleteRequest(ReassignPartitionsZNode.path)
        self._sender.send(request, expected_controller_epoch_zk_version)

    def reassign_partitions_in_progress(self) -> bool:
        return self.znodes.path_exists(ReassignPartitionsZNode.path)

    def get_preferred_replica_election(self) -> set[TopicPartition]:
        response = self.znodes.get(PreferredReplicaElectionZNode.path)
        if response.result_code is StoreCode.NO_NODE:
            return set()
        response.maybe_raise()
        return PreferredReplicaElectionZNode.decode(response.data)

    def create_preferred_replica_election(self, partitions: Collection[TopicPartition]) -> None:
        """NodeExistsError while another one runs."""
        path = PreferredReplicaElectionZNode.path
        self.znodes.create_recursive(path, PreferredReplicaElectionZNode.encode(partitions))

    def delete_preferred_replica_election(self, expected_controller_epoch_zk_version: int) -> None:
        request = DeleteRequest(PreferredReplicaElectionZNode.path)
        self._sender.send(request, expected_controller_epoch_zk_version)

    # The cluster

    def create_top_level_paths(self) -> None:
        self.znodes.create_all(PERSISTENT_ZK_PATHS)

    def get_cluster_id(self) -> str | None:
        response = self.znodes.get(ClusterIdZNode.path)
        if response.result_code is StoreCode.NO_NODE:
            return None
        response.maybe_raise()
        return ClusterIdZNode.decode(response.data)

    def create_or_get_cluster_id(self, proposed_cluster_id: str) -> str:
        try:
            self.znodes.create_recursive(
                ClusterIdZNode.path, ClusterIdZNode.encode(proposed_cluster_id)
            )
            return proposed_cluster_id
        except NodeExistsError:
            existing = self.get_cluster_id()
            if existing is None:
                raise KafkaError(f"{ClusterIdZNode.path} existed but cannot be read") from None
            return existing

    def get_new_producer_id_block(self, broker_id: int) -> ProducerIdsBlock:
        """A block of producer ids that no broker had before."""
        path = ProducerIdBlockZNode.path
        while True:
            data, version = self.znodes.get_data_and_version(path)
            first = ProducerIdBlockZNode.decode(data).next_block_first_id if data else 0
            if first > _MAX_PRODUCER_ID - PRODUCER_ID_BLOCK_SIZE:
                raise KafkaError(
                    f"All producer ids are given out: the next block starts at {first}"
                )
            block = ProducerIdsBlock(broker_id, first, PRODUCER_ID_BLOCK_SIZE)
            encoded = ProducerIdBlockZNode.encode(block)
            if version == UNKNOWN_VERSION:
                self.znodes.make_sure_persistent_path_exists(path)
                continue
            succeeded, _ = self.znodes.conditional_update_path(
                path, encoded, version, _written_before
            )
            if succeeded:
                log.info("Acquired producer ids from %d to %d", first, block.last_producer_id)
                return block

    # Handlers

    def register_state_change_handler(self, handler: StateChangeHandler) -> None:
        self._store.register_state_change_handler(handler)

    def unregister_state_change_handler(self, name: str) -> None:
        self._store.unregister_state_change_handler(name)

    def register_znode_change_handler_and_check_existence(
        self, handler: ZNodeChangeHandler
    ) -> bool:
        """Register, set the watch, and tell whether the znode exists now."""
        self._store.register_znode_change_handler(handler)
        return self.znodes.path_exists(handler.path)

    def register_znode_change_handler(self, handler: ZNodeChangeHandler) -> None:
        """Register only: the next read of the path sets the watch."""
        self._store.register_znode_change_handler(handler)

    def unregister_znode_change_handler(self, path: str) -> None:
        self._store.unregister_znode_change_handler(path)

    def register_znode_child_change_handler(self, handler: ZNodeChildChangeHandler) -> None:
        """Register only: the next listing of the path's children sets the watch."""
        self._store.register_znode_child_change_handler(handler)

    def unregister_znode_child_change_handler(self, path: str) -> None:
        self._store.unregister_znode_child_change_handler(path)


def _config(entity_type: str, name: str, response: Response) -> dict[str, str]:
    if response.result_code is StoreCode.NO_NODE:
        return {}
    response.maybe_raise()
    return ConfigEntityZNode.decode(entity_type, name, response.data)


def _written_before(client: ZnodeClient, path: str, data: bytes) -> tuple[bool, int]:
    """Whether a write that was refused had in fact been done by us."""
    found, version = client.get_data_and_version(path)
    return (True, version) if found == data else (False, UNKNOWN_VERSION)
