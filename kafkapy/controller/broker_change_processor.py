"""What follows from brokers coming, going, moving, stopping, and losing disks."""

from __future__ import annotations

from collections.abc import Callable, Collection

from kafkapy.common.errors import (
    BrokerNotAvailableError,
    Errors,
    StaleBrokerEpochError,
)
from kafkapy.common.protocol.messages.leader_and_isr import LeaderAndIsrResponse
from kafkapy.common.types import TopicPartition
from kafkapy.controller.controller_broker_request_batch import ControllerBrokerRequestBatch
from kafkapy.controller.controller_channel_manager import ControllerChannelManager
from kafkapy.controller.controller_context import ControllerContext, PartitionAndReplica
from kafkapy.controller.controller_events import ControllerEvent
from kafkapy.controller.controller_zk_handlers import broker_modifications_handler
from kafkapy.controller.election import ControlledShutdownPartitionLeaderElectionStrategy
from kafkapy.controller.partition_reassignment_manager import PartitionReassignmentManager
from kafkapy.controller.partition_state import PartitionState
from kafkapy.controller.partition_state_machine import PartitionStateMachine
from kafkapy.controller.replica_state import ReplicaState
from kafkapy.controller.replica_state_machine import ReplicaStateMachine
from kafkapy.controller.topic_deletion_manager import TopicDeletionManager
from kafkapy.utils.log_context import LogContext
from kafkapy.zk.kafka_zk_client import KafkaZkClient

UNKNOWN_BROKER_EPOCH = -1


class BrokerChangeProcessor:
    """Keeps the picture of the brokers, and drives both state machines by it.

    Belongs to the event thread.

    Ports: kafka.controller.KafkaController (processBrokerChange, onBrokerStartup, onBrokerFailure,
    onReplicasBecomeOffline, doControlledShutdown)
    """

    def __init__(
        self,
        controller_id: int,
        *,
        context: ControllerContext,
        zk_client: KafkaZkClient,
        channel_manager: ControllerChannelManager,
        request_batch: ControllerBrokerRequestBatch,
        partition_state_machine: PartitionStateMachine,
        replica_state_machine: ReplicaStateMachine,
        topic_deletion_manager: TopicDeletionManager,
        reassignment_manager: PartitionReassignmentManager,
        send_update_metadata: Callable[[Collection[int], Collection[TopicPartition]], None],
        put_event: Callable[[ControllerEvent], object],
    ) -> None:
        self._context = context  # constant after construction
        self._zk_client = zk_client
        self._channel_manager = channel_manager
        self._batch = request_batch
        self._partition_state_machine = partition_state_machine
        self._replica_state_machine = replica_state_machine
        self._topic_deletion_manager = topic_deletion_manager
        self._reassignment_manager = reassignment_manager
        self._send_update_metadata = send_update_metadata
        self._put_event = put_event
        self._watched_brokers: dict[int, str] = {}  # the paths of their handlers
        self._log = LogContext(f"[Controller id={controller_id}] ").logger(__name__)

    def initialize(self) -> None:
        """After a failover: which brokers are there."""
        self._context.set_live_brokers(self._zk_client.get_all_broker_and_epochs_in_cluster())
        self._context.shutting_down_broker_ids.clear()
        self._watch(self._context.live_or_shutting_down_broker_ids)
        self._log.info(
            "Initialized broker epochs cache: %s", dict(self._context.live_broker_id_and_epochs)
        )

    def unregister(self) -> None:
        self._unwatch(list(self._watched_brokers))

    def process_broker_change(self) -> None:
        current = self._zk_client.get_all_broker_and_epochs_in_cluster()
        current_epochs = {broker.id: epoch for broker, epoch in current.items()}
        known_epochs = dict(self._context.live_broker_id_and_epochs)
        new = current_epochs.keys() - known_epochs.keys()
        dead = known_epochs.keys() - current_epochs.keys()
        # Gone and back between two looks: its old connection and its state are worth nothing.
        bounced = {
            broker_id
            for broker_id in current_epochs.keys() & known_epochs.keys()
            if current_epochs[broker_id] > known_epochs[broker_id]
        }
        self._log.info(
            "Newly added brokers: %s, deleted brokers: %s, bounced brokers: %s, all live: %s",
            sorted(new),
            sorted(dead),
            sorted(bounced),
            sorted(current_epochs),
        )
        for broker_id in dead | bounced:
            self._channel_manager.remove_broker(broker_id)
        for broker in current:
            if broker.id in new | bounced:
                self._channel_manager.add_broker(broker)
        if new:
            self._context.add_live_brokers({b: e for b, e in current.items() if b.id in new})
            self.on_broker_startup(new)
        if bounced:
            self._context.remove_live_brokers(bounced)
            self.on_broker_failure(bounced)
            self._context.add_live_brokers({b: e for b, e in current.items() if b.id in bounced})
            self.on_broker_startup(bounced)
        if dead:
            self._context.remove_live_brokers(dead)
            self.on_broker_failure(dead)

    def process_broker_modification(self, broker_id: int) -> None:
        """Its addresses may have changed; it did not restart."""
        broker = self._zk_client.get_broker(broker_id)
        known = self._context.live_or_shutting_down_broker(broker_id)
        if broker is not None and known is not None and broker.endpoints != known.endpoints:
            self._log.info("Updated broker %s, was %s", broker, known)
            self._context.update_broker_metadata(broker)
            self._send_update_metadata(self._context.live_or_shutting_down_broker_ids, ())

    def on_broker_startup(self, new_brokers: set[int]) -> None:
        self._log.info("New broker startup callback for %s", sorted(new_brokers))
        context = self._context
        for broker_id in new_brokers:
            context.replicas_on_offline_dirs.pop(broker_id, None)
        # The others learn of the new brokers, the new brokers of everything.
        existing = context.live_or_shutting_down_broker_ids - new_brokers
        self._send_update_metadata(existing, ())
        self._send_update_metadata(new_brokers, context.partitions_with_leaders)
        # A new broker hears of its replicas first: only then can it host what is elected next.
        replicas = context.replicas_on_brokers(new_brokers)
        self._replica_state_machine.handle_state_changes(replicas, ReplicaState.ONLINE)
        self._partition_state_machine.trigger_online_partition_state_change()
        self._reassignment_manager.maybe_resume(
            lambda _, assignment: not new_brokers.isdisjoint(assignment.target_replicas)
        )
        self._topic_deletion_manager.resume_deletion_for_topics(
            {r.topic for r in replicas if context.is_topic_queued_up_for_deletion(r.topic)}
        )
        self._watch(new_brokers)

    def on_broker_failure(self, dead_brokers: set[int]) -> None:
        self._log.info("Broker failure callback for %s", sorted(dead_brokers))
        for broker_id in dead_brokers:
            self._context.replicas_on_offline_dirs.pop(broker_id, None)
        self._context.shutting_down_broker_ids -= dead_brokers
        self.on_replicas_become_offline(self._context.replicas_on_brokers(dead_brokers))
        self._unwatch(dead_brokers)

    def on_replicas_become_offline(self, replicas: Collection[PartitionAndReplica]) -> None:
        context = self._context
        for_deletion = [r for r in replicas if context.is_topic_queued_up_for_deletion(r.topic)]
        others = [r for r in replicas if not context.is_topic_queued_up_for_deletion(r.topic)]
        leaderless = context.partitions_with_offline_leader
        self._partition_state_machine.handle_state_changes(leaderless, PartitionState.OFFLINE)
        self._partition_state_machine.trigger_online_state_change_for_partitions(leaderless)
        self._replica_state_machine.handle_state_changes(others, ReplicaState.OFFLINE)
        if for_deletion:
            self._topic_deletion_manager.fail_replica_deletion(for_deletion)
        if not leaderless:
            # No election has told the brokers that somebody is gone.
            self._send_update_metadata(context.live_or_shutting_down_broker_ids, ())

    def process_log_dir_event_notifications(self) -> None:
        """A broker lost a disk: asking it to host its replicas shows which ones it cannot."""
        numbers = self._zk_client.get_log_dir_event_notifications()
        if not numbers:
            return
        try:
            broker_ids = set(self._zk_client.get_broker_ids_from_log_dir_events(numbers))
            self._log.info("Handling log directory failure for brokers %s", sorted(broker_ids))
            self._replica_state_machine.handle_state_changes(
                self._context.replicas_on_brokers(broker_ids), ReplicaState.ONLINE
            )
        finally:
            self._zk_client.delete_log_dir_event_notifications(
                self._context.epoch_zk_version, numbers
            )

    def process_leader_and_isr_response(
        self, response: LeaderAndIsrResponse, broker_id: int
    ) -> None:
        error = Errors.for_code(response.error_code)
        if error is not Errors.NONE:
            self._log.error("LeaderAndIsr request to broker %d failed: %s", broker_id, error.name)
            return
        offline: set[TopicPartition] = set()
        online: set[TopicPartition] = set()
        for topic in response.topics:
            name = self._context.topic_names.get(topic.topic_id)
            if name is None:
                continue  # deleted in the meantime
            for entry in topic.partition_errors:
                partition = TopicPartition(name, entry.partition_index)
                if entry.error_code == Errors.KAFKA_STORAGE_ERROR.code:
                    offline.add(partition)
                elif entry.error_code == Errors.NONE.code:
                    online.add(partition)
        previous = self._context.replicas_on_offline_dirs.get(broker_id, frozenset())
        now_offline = (previous - online) | offline
        self._context.replicas_on_offline_dirs[broker_id] = now_offline
        newly_offline = now_offline - previous
        if newly_offline:
            self._log.info("Replicas on broker %d are offline: %s", broker_id, newly_offline)
            self.on_replicas_become_offline(
                [PartitionAndReplica(partition, broker_id) for partition in newly_offline]
            )

    def controlled_shutdown(self, broker_id: int, broker_epoch: int) -> frozenset[TopicPartition]:
        """Move leadership away from a stopping broker; the replicated partitions it still leads."""
        context = self._context
        known_epoch = context.live_broker_id_and_epochs.get(broker_id)
        if known_epoch is None:
            raise BrokerNotAvailableError(f"Broker id {broker_id} does not exist.")
        if broker_epoch != UNKNOWN_BROKER_EPOCH and broker_epoch < known_epoch:
            raise StaleBrokerEpochError(
                f"Controlled shutdown of broker {broker_id} with epoch {broker_epoch}, which is "
                f"over: its epoch is {known_epoch}"
            )
        self._log.info("Shutting down broker %d", broker_id)
        context.shutting_down_broker_ids.add(broker_id)
        led: list[TopicPartition] = []
        followed: list[TopicPartition] = []
        for partition in context.partitions_on_broker(broker_id):
            info = context.partition_leadership_info(partition)
            # Without another replica there is nobody to hand over to.
            if (
                info is not None
                and len(context.partition_replica_assignment(partition)) > 1
                and not context.is_topic_queued_up_for_deletion(partition.topic)
            ):
                (led if info.leader_and_isr.leader == broker_id else followed).append(partition)
        self._partition_state_machine.handle_state_changes(
            led, PartitionState.ONLINE, ControlledShutdownPartitionLeaderElectionStrategy()
        )
        # Followers stop fetching first, then leave the ISR: the other way round they would be
        # let in again at once.
        self._batch.new_batch()
        for partition in followed:
            self._batch.add_stop_replica_request_for_brokers(
                (broker_id,), partition, delete_partition=False
            )
        self._batch.send_requests_to_brokers(context.epoch)
        self._replica_state_machine.handle_state_changes(
            [PartitionAndReplica(partition, broker_id) for partition in followed],
            ReplicaState.OFFLINE,
        )
        return frozenset(
            partition
            for partition in context.partitions_led_by(broker_id)
            if len(context.partition_replica_assignment(partition)) > 1
        )

    def _watch(self, broker_ids: Collection[int]) -> None:
        for broker_id in broker_ids:
            handler = broker_modifications_handler(broker_id, self._put_event)
            self._zk_client.register_znode_change_handler_and_check_existence(handler)
            self._watched_brokers[broker_id] = handler.path

    def _unwatch(self, broker_ids: Collection[int]) -> None:
        for broker_id in broker_ids:
            path = self._watched_brokers.pop(broker_id, None)
            if path is not None:
                self._zk_client.unregister_znode_change_handler(path)
