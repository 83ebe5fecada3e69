"""Everything about transactions that a broker runs, put together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kafkapy.clients.blocking_node_client import BlockingNodeClient
from kafkapy.clients.inter_broker_send_thread import GenerateRequest, InterBrokerSendThread
from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.types import TopicPartition
from kafkapy.coordinator.transaction.add_partitions_to_txn_manager import (
    AddPartitionsToTxnManager,
)
from kafkapy.coordinator.transaction.producer_id_manager import ProducerIdManager
from kafkapy.coordinator.transaction.transaction_coordinator import TransactionCoordinator
from kafkapy.coordinator.transaction.transaction_marker_channel_manager import (
    TransactionMarkerChannelManager,
)
from kafkapy.coordinator.transaction.transaction_state_manager import TransactionStateManager
from kafkapy.metadata.broker import Node
from kafkapy.metadata.metadata_cache import MetadataCache
from kafkapy.replication.replica_manager import ReplicaManager
from kafkapy.replication.transaction_verification import TransactionVerification
from kafkapy.server.kafka_config import KafkaConfig
from kafkapy.utils.scheduler import KafkaScheduler
from kafkapy.utils.time import Time
from kafkapy.zk.kafka_zk_client import KafkaZkClient


@dataclass(frozen=True, slots=True)
class TransactionServices:
    """The coordinator, what verifies appends, and the threads of both."""

    coordinator: TransactionCoordinator
    verification: TransactionVerification
    add_partitions_to_txn_manager: AddPartitionsToTxnManager
    scheduler: KafkaScheduler

    def startup(self, retrieve_partition_count: Callable[[], int | None]) -> None:
        self.scheduler.startup()
        self.coordinator.startup(retrieve_partition_count)

    def shutdown(self) -> None:
        self.scheduler.shutdown()
        self.add_partitions_to_txn_manager.shutdown()
        self.coordinator.shutdown()


def build_transaction_services(
    config: KafkaConfig,
    *,
    broker_id: int,
    zk_client: KafkaZkClient,
    replica_manager: ReplicaManager,
    metadata_cache: MetadataCache,
    is_verification_enabled: Callable[[], bool],
    time: Time,
    metrics: MetricsRegistry,
) -> TransactionServices:
    # A thread of its own: loading a partition must not wait for retention, nor the other way round.
    scheduler = KafkaScheduler(1, time, "transaction-log-manager-")
    request_timeout_ms = config.broker.request_timeout_ms
    listener = config.inter_broker_listener_name

    def senders(name: str) -> Callable[[Node, GenerateRequest], InterBrokerSendThread]:
        def new_sender(node: Node, generate_request: GenerateRequest) -> InterBrokerSendThread:
            client = BlockingNodeClient(
                node,
                client_id=f"broker-{broker_id}-{name}",
                time=time,
                request_timeout_ms=request_timeout_ms,
            )
            return InterBrokerSendThread(
                f"{name}-{broker_id}-to-{node.id}", client, generate_request
            )

        return new_sender

    def partition_exists(topic_partition: TopicPartition) -> bool:
        count = zk_client.get_topic_partition_count(topic_partition.topic)
        return count is not None and topic_partition.partition < count

    state_manager = TransactionStateManager(
        config.transaction_coordinator,
        replica_manager=replica_manager,
        scheduler=scheduler,
        time=time,
        metrics=metrics,
        request_timeout_ms=request_timeout_ms,
    )
    coordinator = TransactionCoordinator(
        config.transaction_coordinator,
        scheduler=scheduler,
        producer_id_manager=ProducerIdManager(
            lambda: zk_client.get_new_producer_id_block(broker_id)
        ),
        state_manager=state_manager,
        marker_channel_manager=TransactionMarkerChannelManager(
            state_manager,
            metadata_cache,
            scheduler=scheduler,
            metrics=metrics,
            inter_broker_listener_name=listener,
            new_sender=senders("TxnMarkerSenderThread"),
            partition_exists=partition_exists,
        ),
        time=time,
        try_complete_actions=replica_manager.try_complete_actions,
    )
    add_partitions_to_txn_manager = AddPartitionsToTxnManager(
        coordinator,
        metadata_cache,
        broker_id=broker_id,
        time=time,
        metrics=metrics,
        inter_broker_listener_name=listener,
        new_sender=senders("AddPartitionsToTxnSenderThread"),
        try_complete_actions=replica_manager.try_complete_actions,
    )
    return TransactionServices(
        coordinator,
        TransactionVerification(
            replica_manager,
            add_partitions_to_txn_manager,
            is_verification_enabled,
        ),
        add_partitions_to_txn_manager,
        scheduler,
    )
