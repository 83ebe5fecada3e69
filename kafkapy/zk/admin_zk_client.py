from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum
from uuid import UUID

from kafkapy.common.errors import (
    InvalidPartitionsError,
    InvalidReplicaAssignmentError,
    InvalidTopicError,
    KafkaError,
    TopicExistsError,
    UnknownTopicOrPartitionError,
)
from kafkapy.common.topic import has_collision, has_collision_chars, validate_topic_name
from kafkapy.common.types import TopicPartition, random_topic_id
from kafkapy.metadata.broker import BrokerMetadata
from kafkapy.metadata.replica_assignment import ReplicaAssignment
from kafkapy.zk.kafka_zk_client import KafkaZkClient
from kafkapy.zk.metadata_store import NodeExistsError
from kafkapy.zk.replica_placement import assign_replicas_to_brokers
from kafkapy.zk.zk_data import DEFAULT_ENTITY_NAME, ConfigType

ConfigValidator = Callable[[Mapping[str, str]], object]


class TopicAlreadyMarkedForDeletionError(KafkaError):
    """The topic's deletion was asked for before.

    Ports: kafka.common.TopicAlreadyMarkedForDeletionException
    """


class RackAwareMode(Enum):
    """What becomes of racks in an assignment: not looked at, all brokers must have one, or used
    only if all have one.

    Ports: kafka.admin.RackAwareMode
    """

    DISABLED = "disabled"
    ENFORCED = "enforced"
    SAFE = "safe"


class AdminZkClient:
    """Changes to topics and settings, checked and then written to the metadata store.

    Thread-safe; the controller and the config listeners of all brokers act on what is written.

    Ports: kafka.zk.AdminZkClient
    """

    def __init__(
        self,
        zk_client: KafkaZkClient,
        *,
        validate_topic_config: ConfigValidator | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self._zk_client = zk_client  # constant after construction, like all below
        self._validate_topic_config = validate_topic_config
        self._rng = rng or random.Random()

    # Topics

    def create_topic(
        self,
        topic: str,
        partitions: int,
        replication_factor: int,
        *,
        config: Mapping[str, str] | None = None,
        rack_aware_mode: RackAwareMode = RackAwareMode.ENFORCED,
    ) -> UUID:
        """The new topic's id."""
        assignment = self.assign_replicas(
            partitions, replication_factor, rack_aware_mode=rack_aware_mode
        )
        return self.create_topic_with_assignment(topic, config or {}, assignment)

    def assign_replicas(
        self,
        partitions: int,
        replication_factor: int,
        *,
        rack_aware_mode: RackAwareMode = RackAwareMode.SAFE,
    ) -> dict[int, list[int]]:
        brokers = self.get_broker_metadatas(rack_aware_mode)
        return assign_replicas_to_brokers(brokers, partitions, replication_factor, rng=self._rng)

    def get_broker_metadatas(
        self,
        rack_aware_mode: RackAwareMode = RackAwareMode.ENFORCED,
        broker_ids: Collection[int] | None = None,
    ) -> list[BrokerMetadata]:
        """Registered brokers by id, with racks as the mode says."""
        brokers = sorted(self._zk_client.get_all_brokers_in_cluster(), key=lambda b: b.id)
        if broker_ids is not None:
            brokers = [broker for broker in brokers if broker.id in broker_ids]
        with_rack = sum(broker.rack is not None for broker in brokers)
        partly = 0 < with_rack < len(brokers)
        if rack_aware_mode is RackAwareMode.ENFORCED and partly:
            raise KafkaError("Some brokers have a rack and some have none: give all of them one")
        use_racks = rack_aware_mode is not RackAwareMode.DISABLED and not partly
        return [BrokerMetadata(b.id, b.rack if use_racks else None) for b in brokers]

    def create_topic_with_assignment(
        self,
        topic: str,
        config: Mapping[str, str],
        assignment: Mapping[int, Sequence[int]],
        *,
        validate: bool = True,
    ) -> UUID:
        """The new topic's id. Settings are written first: the controller sees a complete topic."""
        if validate:
            self.validate_topic_create(topic, assignment, config)
        self._zk_client.set_or_create_entity_configs(ConfigType.TOPIC, topic, config)
        topic_id = random_topic_id()
        partitions = {TopicPartition(topic, p): replicas for p, replicas in assignment.items()}
        try:
            self._zk_client.create_topic_assignment(topic, topic_id, partitions)
        except NodeExistsError as e:
            raise TopicExistsError(f"Topic {topic} exists") from e
        return topic_id

    def validate_topic_create(
        self, topic: str, assignment: Mapping[int, Sequence[int]], config: Mapping[str, str]
    ) -> None:
        validate_topic_name(topic)
        if self._zk_client.topic_exists(topic):
            is_leaving = self._zk_client.is_topic_marked_for_deletion(topic)
            raise TopicExistsError(
                f"Topic {topic} {'is being deleted' if is_leaving else 'exists'}"
            )
        if has_collision_chars(topic):
            topics = self._zk_client.get_all_topics_in_cluster()
            colliding = sorted(t for t in topics if t != topic and has_collision(t, topic))
            if colliding:
                raise InvalidTopicError(
                    f"Topic {topic} would collide in metric names with {', '.join(colliding)}:"
                    " '.' and '_' count as equal there"
                )
        if len({len(replicas) for replicas in assignment.values()}) != 1:
            raise InvalidReplicaAssignmentError(
                "All partitions of a topic must have the same number of replicas"
            )
        for partition, replicas in assignment.items():
            _validate_distinct(partition, replicas)
        if sorted(assignment) != list(range(len(assignment))):
            raise InvalidReplicaAssignmentError(
                f"Partitions must be numbered from 0 without gaps, not {sorted(assignment)}"
            )
        if self._validate_topic_config is not None:
            self._validate_topic_config(config)

    def delete_topic(self, topic: str) -> None:
        """Ask the controller to delete the topic; it is gone some time later."""
        if not self._zk_client.topic_exists(topic):
            raise UnknownTopicOrPartitionError(f"Topic {topic} does not exist")
        try:
            self._zk_client.create_delete_topic_path(topic)
        except NodeExistsError as e:
            raise TopicAlreadyMarkedForDeletionError(
                f"Topic {topic} is being deleted already"
            ) from e

    def add_partitions(
        self,
        topic: str,
        existing: Mapping[int, ReplicaAssignment],
        *,
        num_partitions: int,
        all_brokers: Sequence[BrokerMetadata] | None = None,
        replica_assignment: Mapping[int, Sequence[int]] | None = None,
        validate_only: bool = False,
    ) -> dict[int, ReplicaAssignment]:
        """All partitions of the topic after the addition, the existing ones unchanged."""
        brokers = all_brokers or self.get_broker_metadatas(RackAwareMode.SAFE)
        new = self._new_partitions(
            topic,
            existing,
            num_partitions=num_partitions,
            brokers=brokers,
            replica_assignment=replica_assignment,
        )
        combined = {**existing, **{p: ReplicaAssignment.of(r) for p, r in new.items()}}
        if not validate_only:
            topic_id = self._zk_client.get_topic_ids_for_topics([topic]).get(topic)
            partitions = {TopicPartition(topic, p): a for p, a in combined.items()}
            self._zk_client.set_topic_assignment(topic, topic_id, partitions)
        return combined

    @staticmethod
    def _validate_new_replicas(
        assignment: Mapping[int, Sequence[int]], *, count: int, broker_ids: Collection[int]
    ) -> None:
        for partition, replicas in assignment.items():
            if not replicas:
                raise InvalidReplicaAssignmentError(f"Partition {partition} has no replicas")
            _validate_distinct(partition, replicas)
            unknown = sorted(set(replicas) - set(broker_ids))
            if unknown:
                raise InvalidReplicaAssignmentError(
                    f"Partition {partition} has replicas on unknown brokers {unknown}"
                )
            if len(replicas) != count:
                raise InvalidReplicaAssignmentError(
                    f"Partition {partition} has {len(replicas)} replicas, the topic has {count}"
                )

    def _new_partitions(
        self,
        topic: str,
        existing: Mapping[int, ReplicaAssignment],
        *,
        num_partitions: int,
        brokers: Sequence[BrokerMetadata],
        replica_assignment: Mapping[int, Sequence[int]] | None,
    ) -> Mapping[int, Sequence[int]]:
        if 0 not in existing:
            raise KafkaError(f"Topic {topic} has no partition 0 to take the replication factor of")
        replicas_of_first = existing[0].replicas
        to_add = num_partitions - len(existing)
        if to_add <= 0:
            raise InvalidPartitionsError(
                f"Topic {topic} has {len(existing)} partitions; {num_partitions} would be no more"
            )
        if replica_assignment is not None:
            self._validate_new_replicas(
                replica_assignment,
                count=len(replicas_of_first),
                broker_ids={broker.id for broker in brokers},
            )
            return replica_assignment
        # Go on behind the broker with which the topic began.
        start = next((i for i, b in enumerate(brokers) if b.id >= replicas_of_first[0]), 0)
        return assign_replicas_to_brokers(
            brokers,
            to_add,
            len(replicas_of_first),
            rng=self._rng,
            fixed_start_index=start,
            start_partition_id=len(existing),
        )

    # Settings

    def change_topic_config(self, topic: str, config: Mapping[str, str]) -> None:
        """Replace the topic's settings by these."""
        validate_topic_name(topic)
        if not self._zk_client.topic_exists(topic):
            raise UnknownTopicOrPartitionError(f"Topic {topic} does not exist")
        if self._validate_topic_config is not None:
            self._validate_topic_config(config)
        self.change_entity_config(ConfigType.TOPIC, topic, config)

    def change_broker_config(self, broker_id: int | None, config: Mapping[str, str]) -> None:
        """Replace the dynamic settings of one broker, or those of all (None)."""
        name = DEFAULT_ENTITY_NAME if broker_id is None else str(broker_id)
        self.change_entity_config(ConfigType.BROKER, name, config)

    def change_entity_config(
        self, root_entity_type: str, sanitized_entity_name: str, config: Mapping[str, str]
    ) -> None:
        """Replace an entity's settings and tell all brokers."""
        self._zk_client.set_or_create_entity_configs(
            root_entity_type, sanitized_entity_name, config
        )
        self._zk_client.create_config_change_notification(
            f"{root_entity_type}/{sanitized_entity_name}"
        )

    def fetch_entity_config(
        self, root_entity_type: str, sanitized_entity_name: str
    ) -> dict[str, str]:
        return self._zk_client.get_entity_configs(root_entity_type, sanitized_entity_name)

    def fetch_all_entity_configs(self, entity_type: str) -> dict[str, dict[str, str]]:
        names = self._zk_client.get_all_entities_with_config(entity_type)
        return self._zk_client.get_entities_configs(entity_type, names)


def _validate_distinct(partition: int, replicas: Sequence[int]) -> None:
    if len(set(replicas)) != len(replicas):
        raise InvalidReplicaAssignmentError(
            f"Partition {partition} names a broker twice: {list(replicas)}"
        )
