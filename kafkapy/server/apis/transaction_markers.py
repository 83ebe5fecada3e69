"""WriteTxnMarkers: a coordinator ends transactions in the partitions led here."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.write_txn_markers import (
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kafkapy.common.record.control_record import ControlRecordType, EndTransactionMarker
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.types import CONSUMER_OFFSETS_TOPIC, TopicPartition
from kafkapy.coordinator.group.group_coordinator import GroupCoordinator
from kafkapy.coordinator.transaction.transaction_result import TransactionResult
from kafkapy.network.request_channel import Request, RequestChannel
from kafkapy.replication.replica_manager import ReplicaManager
from kafkapy.server.apis.by_topic import by_topic
from kafkapy.storage.append_origin import AppendOrigin
from kafkapy.utils.time import Time

log = logging.getLogger(__name__)


class TransactionMarkersHandler:
    """Appends markers as control batches; offsets that a marker commits go to their groups.

    Ports: kafka.server.KafkaApis.handleWriteTxnMarkersRequest
    """

    def __init__(
        self,
        request_channel: RequestChannel,
        replica_manager: ReplicaManager,
        group_coordinator: GroupCoordinator,
        *,
        time: Time,
        request_timeout_ms: int,
    ) -> None:
        self._request_channel = request_channel
        self._replica_manager = replica_manager
        self._group_coordinator = group_coordinator
        self._time = time
        self._request_timeout_ms = request_timeout_ms

    def handle_write_txn_markers(self, request: Request) -> None:
        body = request.body_as(WriteTxnMarkersRequest)
        answer = _Answer(len(body.markers))
        for marker in body.markers:
            self._write(marker, answer, request)
        if not body.markers:
            self._request_channel.send_response(request, answer.response())

    def _write(
        self, marker: WriteTxnMarkersRequest.WritableTxnMarker, answer: _Answer, request: Request
    ) -> None:
        result = TransactionResult(marker.transaction_result)
        errors: dict[TopicPartition, Errors] = {}
        entries: dict[TopicPartition, MemoryRecords] = {}
        for topic in marker.topics:
            for index in topic.partition_indexes:
                partition = TopicPartition(topic.name, index)
                if self._replica_manager.get_partition(partition) is None:
                    errors[partition] = Errors.UNKNOWN_TOPIC_OR_PARTITION
                elif marker.producer_epoch < 0:
                    # A partition that does not know the producer would take it.
                    errors[partition] = Errors.INVALID_PRODUCER_EPOCH
                else:
                    entries[partition] = self._control_batch(marker, result)

        def finish(appended: Mapping[TopicPartition, Errors]) -> None:
            if answer.add(marker.producer_id, {**errors, **appended}):
                self._request_channel.send_response(request, answer.response())

        if not entries:
            finish({})
            return
        self._replica_manager.append_records(
            timeout_ms=self._request_timeout_ms,
            required_acks=-1,
            internal_topics_allowed=True,
            origin=AppendOrigin.COORDINATOR,
            entries_per_partition=entries,
            response_callback=lambda responses: self._complete_offsets(
                marker.producer_id,
                result,
                {partition: response.error for partition, response in responses.items()},
                finish,
            ),
        )

    def _control_batch(
        self, marker: WriteTxnMarkersRequest.WritableTxnMarker, result: TransactionResult
    ) -> MemoryRecords:
        control_type = (
            ControlRecordType.COMMIT
            if result is TransactionResult.COMMIT
            else ControlRecordType.ABORT
        )
        return MemoryRecords.with_end_transaction_marker(
            EndTransactionMarker(control_type, marker.coordinator_epoch),
            timestamp=self._time.milliseconds(),
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
        )

    def _complete_offsets(
        self,
        producer_id: int,
        result: TransactionResult,
        errors: Mapping[TopicPartition, Errors],
        finish: Callable[[Mapping[TopicPartition, Errors]], None],
    ) -> None:
        """Whoever learns that a transaction is complete finds its offsets in force, or gone."""
        written = [
            partition
            for partition, error in errors.items()
            if partition.topic == CONSUMER_OFFSETS_TOPIC and error is Errors.NONE
        ]
        if not written:
            finish(errors)
            return

        def on_complete(failure: Exception | None) -> None:
            if failure is None:
                finish(errors)
                return
            log.error(
                "Groups could not take over the offsets of producer %d",
                producer_id,
                exc_info=failure,
            )
            finish({**errors, **dict.fromkeys(written, Errors.UNKNOWN_SERVER_ERROR)})

        self._group_coordinator.schedule_handle_txn_completion(
            producer_id, written, result, on_complete=on_complete
        )


class _Answer:
    """Collects the results of all markers of a request. Thread-safe."""

    def __init__(self, markers: int) -> None:
        self._lock = threading.Lock()
        # guarded by self._lock
        self._remaining = markers
        self._errors: dict[int, dict[TopicPartition, Errors]] = {}

    def add(self, producer_id: int, errors: Mapping[TopicPartition, Errors]) -> bool:
        """Whether that was the last; a producer may have several markers."""
        with self._lock:
            self._errors.setdefault(producer_id, {}).update(errors)
            self._remaining -= 1
            return self._remaining == 0

    def response(self) -> WriteTxnMarkersResponse:
        response = WriteTxnMarkersResponse
        return response(
            markers=[
                response.WritableTxnMarkerResult(
                    producer_id=producer_id,
                    topics=[
                        response.WritableTxnMarkerTopicResult(
                            name=topic,
                            partitions=[
                                response.WritableTxnMarkerPartitionResult(
                                    partition_index=index, error_code=error.code
                                )
                                for index, error in partitions.items()
                            ],
                        )
                        for topic, partitions in by_topic(errors).items()
                    ],
                )
                for producer_id, errors in self._errors.items()
            ]
        )
