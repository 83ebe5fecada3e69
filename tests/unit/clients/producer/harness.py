"""A sender with everything around it but the network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kafkapy.clients.producer.buffer_pool import BufferPool
from kafkapy.clients.producer.future_record_metadata import FutureRecordMetadata
from kafkapy.clients.producer.producer_metadata import ProducerMetadata
from kafkapy.clients.producer.producer_metrics import ProducerMetrics
from kafkapy.clients.producer.record_accumulator import AccumulatorConfig, RecordAccumulator
from kafkapy.clients.producer.sender import Sender, SenderConfig
from kafkapy.clients.producer.transaction_manager import TransactionManager
from kafkapy.common.compression import NO_COMPRESSION
from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from kafkapy.common.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from kafkapy.common.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kafkapy.common.protocol.messages.find_coordinator import FindCoordinatorResponse
from kafkapy.common.protocol.messages.init_producer_id import InitProducerIdResponse
from kafkapy.common.protocol.messages.produce import ProduceRequest, ProduceResponse
from kafkapy.common.protocol.messages.txn_offset_commit import TxnOffsetCommitResponse
from kafkapy.common.protocol.schema import Message
from kafkapy.common.record.default_record_batch import DefaultRecordBatch
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.types import TopicPartition
from tests.helpers.mock_time import MockTime
from tests.unit.clients.metadata_responses import metadata_response
from tests.unit.clients.mock_client import MockClient

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)
PRODUCER_ID = 1234
DELIVERY_TIMEOUT_MS = 30_000
REQUEST_TIMEOUT_MS = 5_000
CONFIG = SenderConfig(
    max_request_size=1 << 20,
    acks=-1,
    retries=2**31 - 1,
    request_timeout_ms=REQUEST_TIMEOUT_MS,
    retry_backoff_ms=50,
    guarantee_message_order=False,
)


class Harness:
    """Topic "t" with two partitions, both on broker 0. Records are sent as they come."""

    def __init__(
        self,
        time: MockTime,
        *,
        idempotent: bool = True,
        transactional_id: str | None = None,
        batch_size: int = 100,
        **config,
    ) -> None:
        self.time = time
        self.metadata = ProducerMetadata(
            time,
            refresh_backoff_ms=50,
            refresh_backoff_max_ms=100,
            metadata_expire_ms=1 << 30,
            metadata_idle_ms=1 << 30,
        )
        self.metadata.add("t", 0)
        self.client = MockClient(time, self.metadata, request_timeout_ms=REQUEST_TIMEOUT_MS)
        self.client.update_metadata(metadata_response({"t": 2}))
        self.manager: TransactionManager | None = None
        if idempotent or transactional_id:
            self.manager = TransactionManager(
                transactional_id=transactional_id,
                transaction_timeout_ms=60_000,
                retry_backoff_ms=50,
            )
        self.pool = BufferPool(1 << 20, time)
        self.accumulator = RecordAccumulator(
            AccumulatorConfig(
                batch_size=batch_size,
                compression=NO_COMPRESSION,
                linger_ms=0,
                retry_backoff_ms=50,
                retry_backoff_max_ms=50,
                delivery_timeout_ms=DELIVERY_TIMEOUT_MS,
            ),
            self.pool,
            time,
            transaction_manager=self.manager,
        )
        self.metrics = ProducerMetrics(time, self.pool)
        self.sender = Sender(
            self.client,
            self.metadata,
            self.accumulator,
            replace(CONFIG, **config),
            time,
            self.metrics,
            transaction_manager=self.manager,
        )

    @property
    def txn(self) -> TransactionManager:
        assert self.manager is not None
        return self.manager

    def append(self, value: bytes = b"v", partition: TopicPartition = T0) -> FutureRecordMetadata:
        """A record in a batch of its own, when it has more than half of the batch size."""
        cluster = self.metadata.fetch()
        future, _, _ = self.accumulator.append(
            partition.topic, partition.partition, 1, None, value, (), 0, cluster
        )
        if self.manager is not None and self.manager.is_transactional:
            self.manager.maybe_add_partition(partition)
        return future

    def run(self, rounds: int = 1) -> None:
        for _ in range(rounds):
            self.sender.run_once()

    def run_until(self, condition: Callable[[], object], rounds: int = 50) -> None:
        for _ in range(rounds):
            if condition():
                return
            self.sender.run_once()
        raise AssertionError("it does not come")

    def get_producer_id(self, epoch: int = 0) -> None:
        """Of a producer without transactions."""
        self.client.prepare_response(init_response(epoch=epoch))
        self.run_until(lambda: self.txn.has_producer_id)

    def init_transactions(self, epoch: int = 0) -> None:
        result = self.txn.initialize_transactions()
        self.client.prepare_response(coordinator_response())
        self.client.prepare_response(init_response(epoch=epoch))
        self.run_until(lambda: result.is_completed)
        result.wait(0)

    def sent(self, kind: type[Message]) -> list[Message]:
        return [request for request in self.client.requests if isinstance(request, kind)]

    def produced(self) -> list[tuple[TopicPartition, DefaultRecordBatch]]:
        """The batches of all Produce requests so far."""
        found = []
        for request in self.sent(ProduceRequest):
            for topic in request.topic_data:
                for data in topic.partition_data:
                    for batch in MemoryRecords(data.records).batches():
                        found.append((TopicPartition(topic.name, data.index), batch))
        return found

    def sequences(self) -> list[tuple[int, int]]:
        """(epoch, base sequence) of every batch sent so far."""
        return [(batch.producer_epoch, batch.base_sequence) for _, batch in self.produced()]


def produce_response(
    error: Errors = Errors.NONE,
    *,
    offset: int = 0,
    partition: TopicPartition = T0,
    log_start_offset: int = -1,
    **more,
) -> ProduceResponse:
    return ProduceResponse(
        responses=[
            ProduceResponse.TopicProduceResponse(
                name=partition.topic,
                partition_responses=[
                    ProduceResponse.PartitionProduceResponse(
                        index=partition.partition,
                        error_code=error.code,
                        base_offset=offset if error is Errors.NONE else -1,
                        log_start_offset=log_start_offset,
                        **more,
                    )
                ],
            )
        ]
    )


def init_response(
    error: Errors = Errors.NONE, *, producer_id: int = PRODUCER_ID, epoch: int = 0
) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        error_code=error.code, producer_id=producer_id, producer_epoch=epoch
    )


def coordinator_response(error: Errors = Errors.NONE) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        coordinators=[
            FindCoordinatorResponse.Coordinator(
                key="", node_id=0, host="127.0.0.1", port=1000, error_code=error.code
            )
        ]
    )


def partitions_response(
    error: Errors = Errors.NONE, *partitions: TopicPartition
) -> AddPartitionsToTxnResponse:
    topics: dict[str, AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = {}
    for partition in partitions or (T0,):
        topic = topics.setdefault(
            partition.topic,
            AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult(name=partition.topic),
        )
        topic.results_by_partition.append(
            AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult(
                partition_index=partition.partition, partition_error_code=error.code
            )
        )
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=list(topics.values()))


def end_response(error: Errors = Errors.NONE) -> EndTxnResponse:
    return EndTxnResponse(error_code=error.code)


def offsets_response(error: Errors = Errors.NONE) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(error_code=error.code)


def offset_commit_response(
    error: Errors = Errors.NONE, *partitions: TopicPartition
) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic(
                name=partition.topic,
                partitions=[
                    TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition(
                        partition_index=partition.partition, error_code=error.code
                    )
                ],
            )
            for partition in partitions or (T0,)
        ]
    )


def is_commit(request: Message) -> bool:
    return isinstance(request, EndTxnRequest) and request.committed


def is_abort(request: Message) -> bool:
    return isinstance(request, EndTxnRequest) and not request.committed


def adds_partitions(request: Message) -> bool:
    return isinstance(request, AddPartitionsToTxnRequest)
