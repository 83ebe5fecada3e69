"""Creating and deleting topics, and giving them more partitions."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from kafkapy.common.errors import (
    ApiError,
    Errors,
    InvalidConfigurationError,
    InvalidPartitionsError,
    InvalidReplicaAssignmentError,
    InvalidRequestError,
    InvalidTopicError,
    KafkaError,
    PolicyViolationError,
    TopicExistsError,
    UnknownTopicOrPartitionError,
)
from kafkapy.common.protocol.messages.create_partitions import CreatePartitionsRequest
from kafkapy.common.protocol.messages.create_topics import CreateTopicsRequest
from kafkapy.common.types import ZERO_UUID
from kafkapy.metadata.metadata_cache import MetadataCache
from kafkapy.purgatory.delayed_operation import DelayedOperation
from kafkapy.purgatory.delayed_operation_purgatory import DelayedOperationPurgatory
from kafkapy.server.auto_topic_creation import TopicErrors
from kafkapy.server.config_admin_manager import ConfigAdminManager, ConfigEntry
from kafkapy.server.delayed_topic_operations import (
    DelayedCreatePartitions,
    DelayedDeleteTopics,
    TopicKey,
)
from kafkapy.zk.admin_zk_client import AdminZkClient, TopicAlreadyMarkedForDeletionError
from kafkapy.zk.kafka_zk_client import KafkaZkClient

log = logging.getLogger(__name__)

_USE_DEFAULT = -1
# As much as Kafka's own controller takes in one go; what is asked is planned in memory first.
MAX_PARTITIONS_PER_REQUEST = 10_000


@dataclass(slots=True)
class TopicResult:
    """What became of one topic of an admin request."""

    error: Errors = Errors.NONE
    message: str | None = None
    topic_id: UUID = ZERO_UUID
    num_partitions: int = -1
    replication_factor: int = -1
    configs: list[ConfigEntry] = field(default_factory=list)


TopicResults = dict[str, TopicResult]
Callback = Callable[[TopicResults], None]


class AdminManager:
    """Writes topic changes to the metadata store, where the controller sees them, and waits for it.

    Ports: kafka.server.ZkAdminManager
    """

    def __init__(
        self,
        zk_client: KafkaZkClient,
        admin_zk_client: AdminZkClient,
        metadata_cache: MetadataCache,
        configs: ConfigAdminManager,
        purgatory: DelayedOperationPurgatory[DelayedOperation],
        *,
        default_num_partitions: int,
        default_replication_factor: int,
    ) -> None:
        self._zk_client = zk_client
        self._admin_zk_client = admin_zk_client
        self._metadata_cache = metadata_cache
        self._configs = configs
        self._purgatory = purgatory
        self._default_num_partitions = default_num_partitions
        self._default_replication_factor = default_replication_factor
        # What a change was checked against must still hold when it is written.
        self._one_change = threading.Lock()

    def try_complete_delayed_topic_operations(self, topic: str) -> None:
        """To be called when this broker learnt something new about the topic."""
        self._purgatory.check_and_complete(TopicKey(topic))

    def create_topics(
        self,
        topics: list[CreateTopicsRequest.CreatableTopic],
        *,
        timeout_ms: int,
        validate_only: bool,
        callback: Callback,
    ) -> None:
        asked = sum(len(topic.assignments) or max(0, topic.num_partitions) for topic in topics)
        if asked > MAX_PARTITIONS_PER_REQUEST:
            refusal = TopicResult(Errors.POLICY_VIOLATION, _too_many(asked))
            callback({topic.name: refusal for topic in topics})
            return
        results: TopicResults = {}
        for topic in topics:
            with self._one_change:
                results[topic.name] = _attempt(
                    lambda topic=topic: self._create_topic(topic, validate_only=validate_only),  # type: ignore[misc]
                    f"Topic {topic.name} could not be created",
                )
        self._await_leaders(
            results, timeout_ms=timeout_ms, validate_only=validate_only, callback=callback
        )

    def create_topics_without_waiting(
        self, topics: list[CreateTopicsRequest.CreatableTopic]
    ) -> TopicErrors:
        results: TopicResults = {}
        self.create_topics(topics, timeout_ms=0, validate_only=False, callback=results.update)
        return {name: (result.error, result.message) for name, result in results.items()}

    def _create_topic(
        self, topic: CreateTopicsRequest.CreatableTopic, *, validate_only: bool
    ) -> TopicResult:
        if self._metadata_cache.contains_topic(topic.name):
            raise TopicExistsError(f"Topic {topic.name} already exists")
        configs: dict[str, str] = {}
        for config in topic.configs:
            if config.value is None:
                raise InvalidConfigurationError(f"{config.name} of topic {topic.name} has no value")
            configs[config.name] = config.value
        assignment = self._assignment(topic)
        self._configs.validate_topic_config(configs)
        self._admin_zk_client.validate_topic_create(topic.name, assignment, configs)
        return TopicResult(
            topic_id=ZERO_UUID
            if validate_only
            else self._admin_zk_client.create_topic_with_assignment(
                topic.name, configs, assignment, validate=False
            ),
            num_partitions=len(assignment),
            replication_factor=len(next(iter(assignment.values()))),
            configs=self._configs.topic_entries(configs),
        )

    def _assignment(self, topic: CreateTopicsRequest.CreatableTopic) -> Mapping[int, Sequence[int]]:
        if topic.assignments:
            if (topic.num_partitions, topic.replication_factor) != (_USE_DEFAULT, _USE_DEFAULT):
                raise InvalidRequestError(
                    f"Topic {topic.name}: give either an assignment of replicas or the numbers of "
                    "partitions and replicas, not both"
                )
            self._require_brokers(topic)
            return {a.partition_index: tuple(a.broker_ids) for a in topic.assignments}
        num_partitions = (
            self._default_num_partitions
            if topic.num_partitions == _USE_DEFAULT
            else topic.num_partitions
        )
        replication_factor = (
            self._default_replication_factor
            if topic.replication_factor == _USE_DEFAULT
            else topic.replication_factor
        )
        return self._admin_zk_client.assign_replicas(num_partitions, replication_factor)

    def _require_brokers(self, topic: CreateTopicsRequest.CreatableTopic) -> None:
        """A partition without a replica that lives could never be led."""
        alive = {broker.id for broker in self._metadata_cache.get_alive_brokers()}
        for assignment in topic.assignments:
            unknown = set(assignment.broker_ids) - alive
            if unknown or not assignment.broker_ids:
                raise InvalidReplicaAssignmentError(
                    f"Partition {assignment.partition_index} of topic {topic.name} is assigned to "
                    + (f"unknown brokers {sorted(unknown)}" if unknown else "no broker")
                )

    def delete_topics(self, topics: set[str], *, timeout_ms: int, callback: Callback) -> None:
        results: TopicResults = {}
        for topic in topics:
            with self._one_change:
                results[topic] = _attempt(
                    lambda topic=topic: self._delete_topic(topic),  # type: ignore[misc]
                    f"Topic {topic} could not be deleted",
                )
        pending = {topic for topic, result in results.items() if result.error is Errors.NONE}

        def done(still_there: set[str]) -> None:
            for topic in still_there:
                results[topic].error = Errors.REQUEST_TIMED_OUT
            callback(results)

        self._finish(
            DelayedDeleteTopics(timeout_ms, pending, self._metadata_cache, done),
            pending,
            timeout_ms=timeout_ms,
            done=done,
        )

    def _delete_topic(self, topic: str) -> TopicResult:
        if not self._metadata_cache.contains_topic(topic):
            raise UnknownTopicOrPartitionError(f"Topic {topic} does not exist")
        try:
            self._admin_zk_client.delete_topic(topic)
        except TopicAlreadyMarkedForDeletionError:
            log.info("Topic %s is being deleted already", topic)
        return TopicResult()

    def create_partitions(
        self,
        topics: list[CreatePartitionsRequest.CreatePartitionsTopic],
        *,
        timeout_ms: int,
        validate_only: bool,
        callback: Callback,
    ) -> None:
        results: TopicResults = {}
        for topic in topics:
            with self._one_change:
                results[topic.name] = _attempt(
                    lambda topic=topic: self._create_partitions(topic, validate_only=validate_only),  # type: ignore[misc]
                    f"Topic {topic.name} could not be given more partitions",
                )
        self._await_leaders(
            results, timeout_ms=timeout_ms, validate_only=validate_only, callback=callback
        )

    def _create_partitions(
        self, topic: CreatePartitionsRequest.CreatePartitionsTopic, *, validate_only: bool
    ) -> TopicResult:
        existing = self._zk_client.get_full_replica_assignment_for_topics([topic.name])
        if not existing:
            raise UnknownTopicOrPartitionError(f"Topic {topic.name} does not exist")
        if self._zk_client.is_topic_marked_for_deletion(topic.name):
            raise InvalidTopicError(f"Topic {topic.name} is being deleted")
        by_partition = {
            partition.partition: assignment for partition, assignment in existing.items()
        }
        increase = topic.count - len(by_partition)
        if increase <= 0:
            raise InvalidPartitionsError(
                f"Topic {topic.name} has {len(by_partition)} partitions already; the number can "
                f"only grow, not become {topic.count}"
            )
        if increase > MAX_PARTITIONS_PER_REQUEST:
            raise PolicyViolationError(f"Topic {topic.name}: {_too_many(increase)}")
        new_assignment = None
        if topic.assignments is not None:
            if len(topic.assignments) != increase:
                raise InvalidReplicaAssignmentError(
                    f"Topic {topic.name} gains {increase} partitions, but replicas are assigned "
                    f"for {len(topic.assignments)}"
                )
            new_assignment = {
                len(by_partition) + index: list(assignment.broker_ids)
                for index, assignment in enumerate(topic.assignments)
            }
        assignment = self._admin_zk_client.add_partitions(
            topic.name,
            by_partition,
            num_partitions=topic.count,
            replica_assignment=new_assignment,
            validate_only=validate_only,
        )
        return TopicResult(num_partitions=len(assignment))

    def _await_leaders(
        self, results: TopicResults, *, timeout_ms: int, validate_only: bool, callback: Callback
    ) -> None:
        if validate_only:
            callback(results)
            return
        pending = {
            topic: result.num_partitions
            for topic, result in results.items()
            if result.error is Errors.NONE
        }

        def done(leaderless: set[str]) -> None:
            for topic in leaderless:
                results[topic].error = Errors.REQUEST_TIMED_OUT
            callback(results)

        self._finish(
            DelayedCreatePartitions(timeout_ms, pending, self._metadata_cache, done),
            set(pending),
            timeout_ms=timeout_ms,
            done=done,
        )

    def _finish(
        self,
        operation: DelayedOperation,
        pending: set[str],
        *,
        timeout_ms: int,
        done: Callable[[set[str]], None],
    ) -> None:
        if not pending or timeout_ms <= 0:
            done(pending)
        else:
            self._purgatory.try_complete_else_watch(
                operation, [TopicKey(topic) for topic in sorted(pending)]
            )


def _too_many(partitions: int) -> str:
    return f"{partitions} new partitions in one request, {MAX_PARTITIONS_PER_REQUEST} at most"


def _attempt(action: Callable[[], TopicResult], failure: str) -> TopicResult:
    """A topic's own failure must not fail the others."""
    try:
        return action()
    except ApiError as e:
        log.info("%s: %s", failure, e)
        return TopicResult(Errors.for_exception(e), str(e))
    except KafkaError as e:
        log.exception(failure)
        return TopicResult(Errors.UNKNOWN_SERVER_ERROR, str(e))
