"""The produce path through the replica manager."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kafkapy.common.errors import (
    ApiError,
    CorruptRecordError,
    Errors,
    KafkaStorageError,
    NotLeaderOrFollowerError,
    RecordBatchTooLargeError,
    RecordTooLargeError,
    UnknownTopicOrPartitionError,
)
from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.types import INTERNAL_TOPICS, TopicPartition
from kafkapy.replication.action_queue import ActionQueue
from kafkapy.replication.delayed_operations import DelayedOperations
from kafkapy.replication.delayed_produce import (
    DelayedProduce,
    ProduceCallback,
    ProducePartitionStatus,
)
from kafkapy.replication.hosted_partitions import HostedPartitions
from kafkapy.replication.partition_response import INVALID_OFFSET, PartitionResponse
from kafkapy.storage.append_origin import AppendOrigin
from kafkapy.storage.broker_topic_stats import BrokerTopicStats
from kafkapy.storage.log_append_info import LeaderHwChange
from kafkapy.storage.log_validator import RecordValidationError
from kafkapy.storage.verification_state_entry import VerificationGuard

logger = logging.getLogger(__name__)

_VALID_ACKS: Final = (-1, 0, 1)
_NONE: Final = Errors.NONE  # kept at hand: asking an enum for a member is slow
NO_GUARDS: Mapping[TopicPartition, VerificationGuard] = MappingProxyType({})
# Expected in normal running, so they count neither as failures of the broker nor are they logged.
_EXPECTED_ERRORS = (
    UnknownTopicOrPartitionError,
    NotLeaderOrFollowerError,
    RecordTooLargeError,
    RecordBatchTooLargeError,
    CorruptRecordError,
    KafkaStorageError,
)


class _AppendResult:
    """What is answered, and what has become of the high watermark."""

    __slots__ = ("hw_change", "response")

    def __init__(self, response: PartitionResponse, hw_change: LeaderHwChange) -> None:
        self.response = response
        self.hw_change = hw_change


class ReplicaAppends:
    """Appends records to the partitions led here and answers when that is durable enough.

    Thread-safe; the response callback runs with no lock held.

    Ports: kafka.server.ReplicaManager (appendRecords, appendToLocalLog)
    """

    def __init__(
        self,
        *,
        partitions: HostedPartitions,
        delayed_operations: DelayedOperations,
        broker_topic_stats: BrokerTopicStats,
        metrics: MetricsRegistry,
    ) -> None:
        self._partitions = partitions
        self._delayed_operations = delayed_operations
        self._broker_topic_stats = broker_topic_stats
        self._metrics = metrics

    def append_records(
        self,
        *,
        timeout_ms: int,
        required_acks: int,
        internal_topics_allowed: bool,
        origin: AppendOrigin,
        entries_per_partition: Mapping[TopicPartition, MemoryRecords],
        response_callback: ProduceCallback,
        action_queue: ActionQueue,
        verification_guards: Mapping[TopicPartition, VerificationGuard] = NO_GUARDS,
    ) -> None:
        if required_acks not in _VALID_ACKS:
            response_callback(
                {
                    topic_partition: PartitionResponse(Errors.INVALID_REQUIRED_ACKS)
                    for topic_partition in entries_per_partition
                }
            )
            return
        results = {
            topic_partition: self._append_to_local_log(
                topic_partition,
                records,
                required_acks=required_acks,
                internal_topics_allowed=internal_topics_allowed,
                origin=origin,
                verification_guard=verification_guards.get(
                    topic_partition, VerificationGuard.SENTINEL
                ),
            )
            for topic_partition, records in entries_per_partition.items()
        }
        action_queue.add(lambda: self._complete_purgatories(results))
        responses = {tp: result.response for tp, result in results.items()}
        if required_acks == -1 and any(response.error is _NONE for response in responses.values()):
            self._delayed_operations.produce.try_complete_else_watch(
                DelayedProduce(
                    timeout_ms,
                    {
                        tp: ProducePartitionStatus(response.last_offset + 1, response)
                        for tp, response in responses.items()
                    },
                    partitions=self._partitions,
                    metrics=self._metrics,
                    response_callback=response_callback,
                ),
                responses,
            )
        else:
            response_callback(responses)

    def _append_to_local_log(
        self,
        topic_partition: TopicPartition,
        records: MemoryRecords,
        *,
        required_acks: int,
        internal_topics_allowed: bool,
        origin: AppendOrigin,
        verification_guard: VerificationGuard,
    ) -> _AppendResult:
        topic = topic_partition.topic
        self._broker_topic_stats.mark_produce_request(topic)
        if topic in INTERNAL_TOPICS and not internal_topics_allowed:
            return _failed(Errors.INVALID_TOPIC_EXCEPTION)
        try:
            info = self._partitions.get_or_raise(topic_partition).append_records_to_leader(
                records, origin, required_acks, verification_guard
            )
        except _EXPECTED_ERRORS as error:
            return _failed(Errors.for_exception(error))
        except RecordValidationError as error:
            return _AppendResult(
                PartitionResponse(
                    Errors.for_exception(error),
                    log_start_offset=self._on_failure(topic_partition, error),
                    record_errors=error.record_errors,
                    error_message=str(error),
                ),
                LeaderHwChange.NONE,
            )
        except Exception as error:
            return _failed(Errors.for_exception(error), self._on_failure(topic_partition, error))
        self._broker_topic_stats.update_bytes_in(
            topic, num_bytes=records.size_in_bytes, num_messages=info.num_messages
        )
        conversion = info.record_conversion_stats
        if conversion is not None and conversion.num_records_converted:
            self._broker_topic_stats.mark_produce_conversion(
                topic, conversion.num_records_converted
            )
        return _AppendResult(
            PartitionResponse(
                _NONE,
                info.first_offset,
                info.last_offset,
                info.log_append_time,
                info.log_start_offset,
            ),
            info.leader_hw_change,
        )

    def _on_failure(self, topic_partition: TopicPartition, error: Exception) -> int:
        """Count and log what should not have happened; the log's start for the answer."""
        self._broker_topic_stats.mark_failed_produce(topic_partition.topic)
        if isinstance(error, ApiError):
            # The client's mistake, which it is told of: nothing to alarm the broker's owner.
            logger.info("Append to %s is refused: %s", topic_partition, error)
        else:
            logger.error("Append to %s failed", topic_partition, exc_info=error)
        partition = self._partitions.get(topic_partition)
        log = partition.log if partition is not None else None
        return log.log_start_offset if log is not None else INVALID_OFFSET

    def _complete_purgatories(self, results: Mapping[TopicPartition, _AppendResult]) -> None:
        delayed_operations = self._delayed_operations
        for topic_partition, result in results.items():
            if result.hw_change is LeaderHwChange.INCREASED:
                delayed_operations.check_and_complete_all(topic_partition)
            elif result.hw_change is LeaderHwChange.SAME:
                # The log end has moved: followers may be waiting for that.
                delayed_operations.fetch.check_and_complete(topic_partition)


def _failed(error: Errors, log_start_offset: int = INVALID_OFFSET) -> _AppendResult:
    return _AppendResult(
        PartitionResponse(error, log_start_offset=log_start_offset), LeaderHwChange.NONE
    )
