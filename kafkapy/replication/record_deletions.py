"""Moving the start of logs, on every replica."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from kafkapy.common.errors import (
    Errors,
    KafkaStorageError,
    NotLeaderOrFollowerError,
    OffsetOutOfRangeError,
    PolicyViolationError,
    UnknownTopicOrPartitionError,
)
from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.types import INTERNAL_TOPICS, TopicPartition
from kafkapy.replication.delayed_delete_records import (
    DelayedDeleteRecords,
    DeleteRecordsCallback,
    DeleteRecordsPartitionResult,
    DeleteRecordsPartitionStatus,
)
from kafkapy.replication.delayed_operations import DelayedOperations
from kafkapy.replication.hosted_partitions import HostedPartitions

logger = logging.getLogger(__name__)

_EXPECTED_ERRORS = (
    UnknownTopicOrPartitionError,
    NotLeaderOrFollowerError,
    OffsetOutOfRangeError,
    PolicyViolationError,
    KafkaStorageError,
)


class RecordDeletions:
    """Deletes records here and answers when every replica has. Thread-safe.

    Ports: kafka.server.ReplicaManager (deleteRecords, deleteRecordsOnLocalLog)
    """

    def __init__(
        self,
        *,
        partitions: HostedPartitions,
        delayed_operations: DelayedOperations,
        metrics: MetricsRegistry,
    ) -> None:
        self._partitions = partitions
        self._delayed_operations = delayed_operations
        self._metrics = metrics

    def delete_records(
        self,
        timeout_ms: int,
        offset_per_partition: Mapping[TopicPartition, int],
        response_callback: DeleteRecordsCallback,
        *,
        allow_internal_topics: bool,
    ) -> None:
        statuses = {
            topic_partition: self._delete_on_local_log(
                topic_partition, offset, allow_internal_topics=allow_internal_topics
            )
            for topic_partition, offset in offset_per_partition.items()
        }
        if any(
            status.result.error is Errors.NONE
            and status.result.low_watermark < status.required_offset
            for status in statuses.values()
        ):
            self._delayed_operations.delete_records.try_complete_else_watch(
                DelayedDeleteRecords(
                    timeout_ms,
                    statuses,
                    partitions=self._partitions,
                    metrics=self._metrics,
                    response_callback=response_callback,
                ),
                statuses,
            )
        else:
            response_callback({tp: status.result for tp, status in statuses.items()})

    def _delete_on_local_log(
        self, topic_partition: TopicPartition, offset: int, *, allow_internal_topics: bool
    ) -> DeleteRecordsPartitionStatus:
        if topic_partition.topic in INTERNAL_TOPICS and not allow_internal_topics:
            return _failed(Errors.INVALID_TOPIC_EXCEPTION)
        try:
            outcome = self._partitions.get_or_raise(topic_partition).delete_records_on_leader(
                offset
            )
        except _EXPECTED_ERRORS as error:
            return _failed(Errors.for_exception(error))
        except Exception as error:
            logger.exception("Deleting records of %s failed", topic_partition)
            return _failed(Errors.for_exception(error))
        return DeleteRecordsPartitionStatus(
            outcome.requested_offset,
            DeleteRecordsPartitionResult(Errors.NONE, outcome.low_watermark),
        )


def _failed(error: Errors) -> DeleteRecordsPartitionStatus:
    return DeleteRecordsPartitionStatus(-1, DeleteRecordsPartitionResult(error))
