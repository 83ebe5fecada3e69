"""A transaction coordinator over real logs, with a mock clock and the brokers played by hand."""

from __future__ import annotations

import itertools
from pathlib import Path
from uuid import UUID

from kafkapy.clients.inter_broker_send_thread import GenerateRequest
from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.write_txn_markers import (
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kafkapy.common.types import TRANSACTION_STATE_TOPIC, TopicPartition
from kafkapy.coordinator.transaction import transaction_log
from kafkapy.coordinator.transaction.producer_id_manager import ProducerIdManager
from kafkapy.coordinator.transaction.transaction_coordinator import (
    InitProducerIdResult,
    ProducerIdAndEpoch,
    TransactionCoordinator,
)
from kafkapy.coordinator.transaction.transaction_coordinator_config import (
    TransactionCoordinatorConfig,
)
from kafkapy.coordinator.transaction.transaction_marker_channel_manager import (
    RETRY_BACKOFF_MS,
    TransactionMarkerChannelManager,
)
from kafkapy.coordinator.transaction.transaction_metadata import TransactionMetadata
from kafkapy.coordinator.transaction.transaction_result import TransactionResult
from kafkapy.coordinator.transaction.transaction_state import TransactionState
from kafkapy.coordinator.transaction.transaction_state_manager import (
    CoordinatorEpochAndTxnMetadata,
    TransactionStateManager,
)
from kafkapy.metadata.broker import Node
from kafkapy.storage.fetch_isolation import FetchIsolation
from kafkapy.zk.zk_data import ProducerIdsBlock
from tests.helpers.mock_time import MockTime
from tests.unit.replication.harness import LISTENER, ReplicaHarness

TXN_ID = "txn"
TIMEOUT_MS = 10_000
LOG = TopicPartition(TRANSACTION_STATE_TOPIC, 0)
A, B = TopicPartition("data", 0), TopicPartition("data", 1)
_TOPIC_IDS = {TRANSACTION_STATE_TOPIC: UUID(int=1001), "data": UUID(int=1002)}


class FakeSender:
    """Sends nothing until the test says so."""

    def __init__(self, node: Node, generate_request: GenerateRequest) -> None:
        self.node = node
        self.generate_request = generate_request
        self.is_shut_down = False

    def start(self) -> None: ...

    def wakeup(self) -> None: ...

    def initiate_shutdown(self) -> bool:
        self.is_shut_down = True
        return True

    def await_shutdown(self) -> None: ...


class TransactionHarness:
    def __init__(self, directory: Path, time: MockTime, **settings: int) -> None:
        self.time = time
        self.broker = ReplicaHarness(directory, time)
        self.config = TransactionCoordinatorConfig(
            transaction_topic_num_partitions=1,
            transaction_topic_min_isr=1,
            **settings,
        )
        self.senders: list[FakeSender] = []
        self.existing_partitions = {A, B}
        self.next_producer_ids = itertools.count(1000)
        self.lead(LOG)
        self.lead(A)
        self.lead(B)
        self._start()

    def _start(self) -> None:
        broker = self.broker
        self.state_manager = TransactionStateManager(
            self.config,
            replica_manager=broker.replica_manager,
            scheduler=self.time.scheduler,
            time=self.time,
            metrics=broker.metrics,
            request_timeout_ms=30_000,
        )
        self.markers = TransactionMarkerChannelManager(
            self.state_manager,
            broker.metadata_cache,
            scheduler=self.time.scheduler,
            metrics=broker.metrics,
            inter_broker_listener_name=LISTENER,
            new_sender=self._new_sender,
            partition_exists=lambda tp: tp in self.existing_partitions,
        )
        self.coordinator = TransactionCoordinator(
            self.config,
            scheduler=self.time.scheduler,
            producer_id_manager=ProducerIdManager(self._allocate_block),
            state_manager=self.state_manager,
            marker_channel_manager=self.markers,
            time=self.time,
            try_complete_actions=broker.replica_manager.try_complete_actions,
        )
        self.coordinator.startup(lambda: None)
        self.coordinator.on_election(LOG.partition, 0)

    def fail_over(self, coordinator_epoch: int = 1) -> None:
        """The coordinator goes and comes back, with nothing but its log."""
        self.coordinator.on_resignation(LOG.partition, coordinator_epoch)
        self.coordinator.on_election(LOG.partition, coordinator_epoch)

    def close(self) -> None:
        self.coordinator.shutdown()
        self.broker.close()

    def lead(self, tp: TopicPartition, **fields) -> None:
        topic_id = _TOPIC_IDS[tp.topic]
        self.broker.update_metadata(tp, topic_id=topic_id)
        self.broker.leader_and_isr(tp, topic_id=topic_id, **fields)

    def follow(self, tp: TopicPartition, leader_epoch: int = 1) -> None:
        """Another broker leads the partition from now on."""
        self.broker.leader_and_isr(
            tp, topic_id=_TOPIC_IDS[tp.topic], leader=2, leader_epoch=leader_epoch, replicas=(1, 2)
        )

    def _new_sender(self, node: Node, generate_request: GenerateRequest) -> FakeSender:
        self.senders.append(FakeSender(node, generate_request))
        return self.senders[-1]

    def _allocate_block(self) -> ProducerIdsBlock:
        return ProducerIdsBlock(1, next(self.next_producer_ids), 1)

    # The producers' part

    def init(
        self,
        name: str | None = TXN_ID,
        *,
        timeout_ms: int = TIMEOUT_MS,
        expected: tuple[int, int] | None = None,
    ) -> InitProducerIdResult:
        results: list[InitProducerIdResult] = []
        self.coordinator.handle_init_producer_id(
            name,
            timeout_ms,
            None if expected is None else ProducerIdAndEpoch(*expected),
            results.append,
        )
        (result,) = results
        return result

    def add(
        self, *partitions: TopicPartition, producer: tuple[int, int], name: str | None = TXN_ID
    ) -> Errors:
        errors: list[Errors] = []
        self.coordinator.handle_add_partitions_to_transaction(
            name,
            producer_id=producer[0],
            producer_epoch=producer[1],
            partitions=partitions,
            callback=errors.append,
        )
        (error,) = errors
        return error

    def end(
        self, result: TransactionResult, *, producer: tuple[int, int], name: str | None = TXN_ID
    ) -> Errors:
        errors: list[Errors] = []
        self.coordinator.handle_end_transaction(
            name,
            producer_id=producer[0],
            producer_epoch=producer[1],
            result=result,
            callback=errors.append,
        )
        (error,) = errors
        return error

    def verify(
        self, *partitions: TopicPartition, producer: tuple[int, int], name: str | None = TXN_ID
    ) -> list[Errors]:
        found = self.coordinator.handle_verify_partitions_in_transaction(
            name, producer_id=producer[0], producer_epoch=producer[1], partitions=partitions
        )
        return [found[partition] for partition in partitions]

    def started(self, *partitions: TopicPartition) -> tuple[int, int]:
        """A producer with an open transaction."""
        result = self.init()
        assert result.error is Errors.NONE
        producer = result.producer_id, result.producer_epoch
        assert self.add(*(partitions or (A,)), producer=producer) is Errors.NONE
        return producer

    def bring_to(self, state: TransactionState) -> tuple[int, int]:
        """A producer whose transaction is in this state."""
        if state is TransactionState.EMPTY:
            result = self.init()
            return result.producer_id, result.producer_epoch
        producer = self.started()
        if state is not TransactionState.ONGOING:
            commits = state in (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)
            result = TransactionResult.COMMIT if commits else TransactionResult.ABORT
            assert self.end(result, producer=producer) is Errors.NONE
            if state in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT):
                self.deliver()
        assert self.metadata().state is state
        return producer

    # The brokers' part

    def deliver(
        self, errors: dict[TopicPartition, Errors] | None = None, *, answered: bool = True
    ) -> list[WriteTxnMarkersRequest]:
        """Send what waits; every partition answers NONE unless told."""
        sent = []
        for sender in list(self.senders):
            while (outgoing := sender.generate_request()) is not None:
                assert isinstance(outgoing.request, WriteTxnMarkersRequest)
                sent.append(outgoing.request)
                outgoing.handler(_answer(outgoing.request, errors or {}) if answered else None)
        return sent

    def back_off(self) -> None:
        self.time.sleep(RETRY_BACKOFF_MS)

    # What is there

    def metadata(self, name: str = TXN_ID) -> TransactionMetadata:
        found = self.state_manager.get_transaction_state(name)
        assert isinstance(found, CoordinatorEpochAndTxnMetadata), found
        return found.transaction_metadata

    def logged(self) -> list[tuple[str, TransactionState | None]]:
        """The transaction log; None is a tombstone."""
        log = self.broker.log_manager.get_log(LOG)
        assert log is not None
        data = log.read(0, 1 << 20, FetchIsolation.LOG_END, min_one_message=True)
        found = []
        for batch in data.records.batches():
            for record in batch.records():
                name = transaction_log.read_key(record.key)
                state = record.value and transaction_log.read_value(name, record.value).state
                found.append((name, state))
        return found


def partitions_of(request: WriteTxnMarkersRequest) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, index)
        for marker in request.markers
        for topic in marker.topics
        for index in topic.partition_indexes
    ]


def _answer(
    request: WriteTxnMarkersRequest, errors: dict[TopicPartition, Errors]
) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            WriteTxnMarkersResponse.WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WriteTxnMarkersResponse.WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult(
                                partition_index=index,
                                error_code=errors.get(
                                    TopicPartition(topic.name, index), Errors.NONE
                                ).code,
                            )
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )
