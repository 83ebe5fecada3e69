"""The broker that decides who leads what."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

from kafkapy.common.errors import (
    BrokerNotAvailableError,
    ControllerMovedError,
    Errors,
    KafkaStorageError,
    StaleBrokerEpochError,
)
from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from kafkapy.common.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
)
from kafkapy.common.types import TopicPartition
from kafkapy.controller import controller_events as events
from kafkapy.controller.alter_partition_processor import AlterPartitionProcessor
from kafkapy.controller.broker_change_processor import BrokerChangeProcessor
from kafkapy.controller.controller_broker_request_batch import (
    ControllerBrokerRequestBatch,
    IllegalBatchError,
)
from kafkapy.controller.controller_channel_manager import ControllerChannelManager
from kafkapy.controller.controller_config import ControllerConfig
from kafkapy.controller.controller_context import ControllerContext
from kafkapy.controller.controller_deletion_client import ControllerDeletionClient
from kafkapy.controller.controller_event_manager import ControllerEventManager
from kafkapy.controller.controller_events import (
    ApiResult,
    ControllerEvent,
    ElectionTrigger,
    ElectionType,
)
from kafkapy.controller.controller_metrics import ControllerMetrics
from kafkapy.controller.controller_session_handler import ControllerSessionHandler
from kafkapy.controller.controller_zk_handlers import (
    PartitionModificationsWatch,
    child_change_handlers,
    controller_change_handler,
)
from kafkapy.controller.leader_election_manager import LeaderElectionManager
from kafkapy.controller.partition_reassignment_manager import PartitionReassignmentManager
from kafkapy.controller.partition_state_machine import PartitionStateMachine
from kafkapy.controller.replica_state_machine import ReplicaStateMachine
from kafkapy.controller.topic_change_processor import TopicChangeProcessor
from kafkapy.controller.topic_deletion_manager import TopicDeletionManager
from kafkapy.metadata.replica_assignment import ReplicaAssignment
from kafkapy.utils.log_context import LogContext
from kafkapy.utils.scheduler import ScheduledTask, Scheduler
from kafkapy.utils.time import Time
from kafkapy.zk.kafka_zk_client import KafkaZkClient
from kafkapy.zk.zk_data import BrokerInfo

T = TypeVar("T")

NO_CONTROLLER = -1
_FIRST_REBALANCE_DELAY_MS = 5_000
_RETRY_MS = 1_000


class KafkaController:
    """Every broker's candidate for controller; the one elected leads the cluster. Thread-safe.

    Everything happens on the event thread: public methods put an event on its queue and answer
    through a callback, which runs there. The context and all collaborators belong to it.

    Ports: kafka.controller.KafkaController
    """

    def __init__(
        self,
        config: ControllerConfig,
        zk_client: KafkaZkClient,
        *,
        broker_info: BrokerInfo,
        broker_epoch: int,
        inter_broker_listener_name: str,
        control_plane_listener_name: str | None = None,
        time: Time,
        metrics: MetricsRegistry,
        scheduler: Scheduler,
    ) -> None:
        self.broker_id = broker_id = broker_info.broker.id  # constant after construction
        self._zk_client = zk_client
        self._scheduler = scheduler
        self._log = LogContext(f"[Controller id={broker_id}] ").logger(__name__)
        self._config = config  # replaced as a whole
        # written by the event thread, read by any
        self._broker_info = broker_info
        self._broker_epoch = broker_epoch
        self._active_controller_id = NO_CONTROLLER
        self._rebalance_task: ScheduledTask | None = None
        self._is_leaving = False  # resigned, but the store is not told yet

        self.context = ControllerContext()
        self._metrics = ControllerMetrics(metrics)
        self.event_manager = ControllerEventManager(
            broker_id,
            self._process,
            time=time,
            metrics=metrics,
            event_times=self._metrics.event_times,
        )
        put_event = self.event_manager.put
        self._metrics.register(
            is_active=lambda: self.is_active, state=lambda: self.event_manager.state
        )
        self._channel_manager = ControllerChannelManager(
            broker_id,
            config=config,
            listener_name=control_plane_listener_name or inter_broker_listener_name,
            time=time,
            metrics=metrics,
        )
        self._batch = ControllerBrokerRequestBatch(
            broker_id,
            context=self.context,
            sender=self._channel_manager,
            send_event=put_event,
            inter_broker_listener_name=inter_broker_listener_name,
        )
        self._partition_state_machine = PartitionStateMachine(
            broker_id,
            context=self.context,
            zk_client=zk_client,
            request_batch=self._batch,
            is_unclean_enabled=lambda: self._config.unclean_leader_election_enable,
            unclean_leader_elections=self._metrics.unclean_leader_elections,
        )
        self._replica_state_machine = ReplicaStateMachine(
            broker_id, context=self.context, zk_client=zk_client, request_batch=self._batch
        )
        self._partition_modifications = PartitionModificationsWatch(zk_client, put_event)
        self._topic_deletion_manager = TopicDeletionManager(
            broker_id,
            is_delete_topic_enabled=config.delete_topic_enable,
            context=self.context,
            replica_state_machine=self._replica_state_machine,
            partition_state_machine=self._partition_state_machine,
            client=ControllerDeletionClient(
                zk_client, self._partition_modifications, self._send_update_metadata_to_all
            ),
        )
        self._reassignments = PartitionReassignmentManager(
            broker_id,
            context=self.context,
            zk_client=zk_client,
            request_batch=self._batch,
            partition_state_machine=self._partition_state_machine,
            replica_state_machine=self._replica_state_machine,
            topic_deletion_manager=self._topic_deletion_manager,
            send_update_metadata=self._send_update_metadata_to_all,
            put_event=put_event,
        )
        self._elections = LeaderElectionManager(
            broker_id,
            imbalance_percentage=config.leader_imbalance_per_broker_percentage,
            context=self.context,
            zk_client=zk_client,
            partition_state_machine=self._partition_state_machine,
            put_event=put_event,
        )
        self._topics = TopicChangeProcessor(
            broker_id,
            context=self.context,
            zk_client=zk_client,
            partition_state_machine=self._partition_state_machine,
            replica_state_machine=self._replica_state_machine,
            topic_deletion_manager=self._topic_deletion_manager,
            partition_modifications=self._partition_modifications,
        )
        self._brokers = BrokerChangeProcessor(
            broker_id,
            context=self.context,
            zk_client=zk_client,
            channel_manager=self._channel_manager,
            request_batch=self._batch,
            partition_state_machine=self._partition_state_machine,
            replica_state_machine=self._replica_state_machine,
            topic_deletion_manager=self._topic_deletion_manager,
            reassignment_manager=self._reassignments,
            send_update_metadata=self._send_update_metadata,
            put_event=put_event,
        )
        self._alter_partition = AlterPartitionProcessor(
            broker_id,
            context=self.context,
            zk_client=zk_client,
            on_isr_change=self._on_isr_change,
        )
        self._controller_change_handler = controller_change_handler(put_event)
        self._child_change_handlers = child_change_handlers(put_event)
        self._session_handler = ControllerSessionHandler(self.event_manager)

    @property
    def is_active(self) -> bool:
        return self._active_controller_id == self.broker_id

    @property
    def active_controller_id(self) -> int:
        """The controller as this broker knows it, NO_CONTROLLER while there is none."""
        return self._active_controller_id

    @property
    def broker_epoch(self) -> int:
        """Of this broker's own registration; changes when its session with the store is lost."""
        return self._broker_epoch

    # From any thread

    def startup(self) -> None:
        """Begin to run for controller. The store's top-level paths must exist, and this broker
        be registered and ready to take the controller's requests."""
        self._zk_client.register_state_change_handler(self._session_handler)
        self.event_manager.put(events.Startup())
        self.event_manager.start()

    def shutdown(self) -> None:
        """Resign if need be. The store is told by the end of the session."""
        self.event_manager.close()
        self._zk_client.unregister_state_change_handler(self._session_handler.name)
        self._zk_client.unregister_znode_change_handler(self._controller_change_handler.path)
        self._on_controller_resignation()
        self._active_controller_id = NO_CONTROLLER
        self._channel_manager.close()

    def controlled_shutdown(
        self, broker_id: int, broker_epoch: int, callback: events.ControlledShutdownCallback
    ) -> None:
        """Hand over what a stopping broker leads; the callback gets what it still leads."""
        self.event_manager.put(events.ControlledShutdown(broker_id, broker_epoch, callback))

    def alter_partitions(
        self,
        request: AlterPartitionRequest,
        version: int,
        callback: events.AlterPartitionCallback,
    ) -> None:
        self.event_manager.put(events.AlterPartitionReceived(request, version, callback))

    def elect_leaders(
        self,
        partitions: Collection[TopicPartition],
        election_type: ElectionType,
        callback: events.ElectLeadersCallback,
    ) -> None:
        self.event_manager.put(
            events.ReplicaLeaderElection(
                frozenset(partitions), election_type, ElectionTrigger.ADMIN_CLIENT, callback
            )
        )

    def alter_partition_reassignments(
        self,
        reassignments: events.ReassignmentTargets,
        callback: events.AlterReassignmentsCallback,
    ) -> None:
        self.event_manager.put(events.ApiPartitionReassignment(reassignments, callback))

    def list_partition_reassignments(
        self,
        partitions: Collection[TopicPartition] | None,
        callback: events.ListReassignmentsCallback,
    ) -> None:
        wanted = frozenset(partitions) if partitions is not None else None
        self.event_manager.put(events.ListPartitionReassignments(wanted, callback))

    def allocate_producer_ids(
        self, request: AllocateProducerIdsRequest, callback: events.AllocateProducerIdsCallback
    ) -> None:
        self.event_manager.put(events.AllocateProducerIds(request, callback))

    def reconfigure(self, config: ControllerConfig) -> None:
        """The broker's settings were changed; once the default allows unclean elections,
        partitions that waited for that get leaders."""
        was_enabled = self._config.unclean_leader_election_enable
        self._config = config
        if config.unclean_leader_election_enable and not was_enabled:
            self.event_manager.put(events.UncleanLeaderElectionEnable())

    def enable_topic_unclean_leader_election(self, topic: str) -> None:
        if self.is_active:
            self.event_manager.put(events.TopicUncleanLeaderElectionEnable(topic))

    def is_topic_queued_for_deletion(self, topic: str) -> bool:
        return self._topic_deletion_manager.is_topic_queued_up_for_deletion(topic)

    def update_broker_info(self, broker_info: BrokerInfo) -> None:
        """This broker's addresses have changed."""
        self._broker_info = broker_info
        self._zk_client.update_broker_info(broker_info)

    # On the event thread

    def _process(self, event: ControllerEvent) -> None:
        try:
            self._dispatch(event)
        except ControllerMovedError as error:
            self._log.info("Controller moved to another broker, seen at %s: %s", event, error)
            self._maybe_resign()
        except (IllegalBatchError, KafkaStorageError):
            # Some state change never reached the brokers or the store. A new controller begins
            # with what the store has, and tells the brokers everything.
            self._log.exception("Forcing the controller to resign after %s", event)
            self._trigger_controller_move()
        except Exception:
            self._log.exception("Error processing event %s", event)
        finally:
            self._metrics.update(self.context, is_active=self.is_active)

    def _dispatch(self, event: ControllerEvent) -> None:
        match event:
            case events.Startup():
                self._zk_client.register_znode_change_handler_and_check_existence(
                    self._controller_change_handler
                )
                self._elect()
            case events.ControllerChange():
                self._maybe_resign()
            case events.Reelect():
                self._reelect()
            case events.Vacate(epoch_zk_version):
                if self._is_leaving:
                    self._vacate(epoch_zk_version)
            case events.RegisterBrokerAndReelect():
                self._broker_epoch = self._zk_client.register_broker(self._broker_info)
                self._reelect()
            case events.Expire():
                self._active_controller_id = NO_CONTROLLER
                self._on_controller_resignation()
            case _ if not self.is_active:
                event.preempt()
            case events.ControlledShutdown():
                self._answer(event, event.callback, lambda: self._controlled_shutdown(event))
            case events.AlterPartitionReceived():
                self._answer(event, event.callback, lambda: self._alter_isr(event))
                self._maybe_complete_reassignments(event.request)
            case events.ReplicaLeaderElection():
                self._answer(event, event.callback, lambda: self._elect_leaders(event))
            case events.ApiPartitionReassignment():
                self._answer(event, event.callback, lambda: self._reassign(event))
            case events.ListPartitionReassignments():
                self._answer(event, event.callback, lambda: self._list_reassignments(event))
            case events.AllocateProducerIds():
                self._answer(event, event.callback, lambda: self._allocate(event.request))
            case _:
                self._dispatch_change(event)

    def _answer(
        self, event: ControllerEvent, callback: Callable[[T], None], compute: Callable[[], T]
    ) -> None:
        """Whoever waits gets the result or the exception, and exactly one of them."""
        try:
            result = compute()
        except ControllerMovedError:
            event.preempt()
            raise
        except Exception as error:
            event.fail(error)
            raise
        callback(result)

    def _controlled_shutdown(
        self, event: events.ControlledShutdown
    ) -> frozenset[TopicPartition] | Exception:
        try:
            return self._brokers.controlled_shutdown(event.broker_id, event.broker_epoch)
        except (BrokerNotAvailableError, StaleBrokerEpochError) as error:
            return error

    def _alter_isr(self, event: events.AlterPartitionReceived) -> AlterPartitionResponse:
        return self._alter_partition.process(event.request, event.version)

    def _elect_leaders(self, event: events.ReplicaLeaderElection) -> events.ElectionResults:
        if event.partitions is None:
            self._elections.process_zk_election()
            return {}
        return self._elections.elect(event.partitions, event.election_type, event.trigger)

    def _reassign(
        self, event: events.ApiPartitionReassignment
    ) -> dict[TopicPartition, ApiResult] | ApiResult:
        return self._reassignments.process_api_reassignment(event.reassignments)

    def _list_reassignments(
        self, event: events.ListPartitionReassignments
    ) -> dict[TopicPartition, ReplicaAssignment] | ApiResult:
        wanted = event.partitions
        current = self._reassignments.current_reassignments()
        return {p: a for p, a in current.items() if wanted is None or p in wanted}

    def _allocate(self, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
        epoch = self.context.live_broker_id_and_epochs.get(request.broker_id)
        if epoch is None:
            return AllocateProducerIdsResponse(error_code=Errors.BROKER_ID_NOT_REGISTERED.code)
        if epoch != request.broker_epoch:
            return AllocateProducerIdsResponse(error_code=Errors.STALE_BROKER_EPOCH.code)
        block = self._zk_client.get_new_producer_id_block(request.broker_id)
        return AllocateProducerIdsResponse(
            producer_id_start=block.first_producer_id, producer_id_len=block.block_size
        )

    def _dispatch_change(self, event: ControllerEvent) -> None:
        """Events that nobody waits for and that only the controller heeds."""
        match event:
            case events.BrokerChange():
                self._brokers.process_broker_change()
            case events.BrokerModifications(broker_id):
                self._brokers.process_broker_modification(broker_id)
            case events.TopicChange():
                self._topics.process_topic_change()
            case events.PartitionModifications(topic):
                self._topics.process_partition_modifications(topic)
            case events.TopicDeletion():
                self._topics.process_topic_deletion()
            case events.TopicDeletionStopReplicaResponseReceived(replica_id, error, errors):
                self._topics.process_stop_replica_response(replica_id, error, errors)
            case events.LeaderAndIsrResponseReceived(response, broker_id):
                self._brokers.process_leader_and_isr_response(response, broker_id)
            case events.UpdateMetadataResponseReceived(response, broker_id):
                if response.error_code != Errors.NONE.code:
                    name = Errors.for_code(response.error_code).name
                    self._log.error("UpdateMetadata to broker %d failed: %s", broker_id, name)
            case events.LogDirEventNotification():
                self._brokers.process_log_dir_event_notifications()
            case events.IsrChangeNotification():
                self._process_isr_change_notifications()
            case events.AutoPreferredReplicaLeaderElection():
                try:
                    self._elections.rebalance()
                finally:
                    interval_s = self._config.leader_imbalance_check_interval_seconds
                    self._schedule_rebalance(interval_s * 1000)
            case events.UncleanLeaderElectionEnable():
                self._partition_state_machine.trigger_online_partition_state_change()
            case events.TopicUncleanLeaderElectionEnable(topic):
                self._partition_state_machine.trigger_online_partition_state_change(topic)
            case events.ZkPartitionReassignment():
                self._reassignments.process_zk_reassignment()
            case _:
                raise ValueError(f"unknown controller event {event}")

    def _reelect(self) -> None:
        self._maybe_resign()
        self._elect()

    def _elect(self) -> None:
        self._active_controller_id = self._read_controller_id()
        if self._active_controller_id != NO_CONTROLLER:
            self._log.debug("Broker %d is the controller", self._active_controller_id)
            return
        try:
            epoch, version = self._zk_client.register_controller_and_increment_controller_epoch(
                self.broker_id
            )
        except ControllerMovedError:
            self._maybe_resign()
            self._log.info("Broker %d was elected as controller", self._active_controller_id)
            return
        except KafkaStorageError as error:
            self._log.warning("Nobody can be elected as controller now: %s", error)
            self._put_later(events.Reelect())
            return
        try:
            self.context.epoch, self.context.epoch_zk_version = epoch, version
            self._active_controller_id = self.broker_id
            self._is_leaving = False
            self._log.info("Elected as the controller, epoch %d", epoch)
            self._on_controller_failover()
        except ControllerMovedError:
            raise
        except Exception:
            self._log.exception("Error while becoming the controller; giving it up")
            # What failed now would fail again at once, for ever.
            self._trigger_controller_move(later=True)

    def _on_controller_failover(self) -> None:
        """Learn the cluster, then put it right."""
        for handler in self._child_change_handlers:
            self._zk_client.register_znode_child_change_handler(handler)
        version = self.context.epoch_zk_version
        # What these would tell is read below anyway.
        self._zk_client.delete_log_dir_event_notifications(version)
        self._zk_client.delete_isr_change_notifications(version)
        self._zk_client.get_log_dir_event_notifications()
        self._zk_client.get_all_isr_change_notifications()
        self._brokers.initialize()
        self._topics.initialize()
        self._channel_manager.startup(self.context.live_or_shutting_down_brokers)
        self._topic_deletion_manager.init(*self._topics.topic_deletions_in_progress())
        # Brokers must know each other before they are told to lead or follow.
        self._send_update_metadata_to_all(())
        self._replica_state_machine.startup()
        self._partition_state_machine.startup()
        self._log.info(
            "Ready to serve as the controller with epoch %d: brokers %s, %d partitions",
            self.context.epoch,
            sorted(self.context.live_or_shutting_down_broker_ids),
            self.context.partition_count,
        )
        self._reassignments.initialize()
        self._topic_deletion_manager.try_topic_deletion()
        self._elections.process_zk_election()
        if self._config.auto_leader_rebalance_enable:
            self._schedule_rebalance(_FIRST_REBALANCE_DELAY_MS)

    def _on_controller_resignation(self) -> None:
        """Forget everything; nothing of it may be written any more."""
        self._log.debug("Resigning")
        for handler in self._child_change_handlers:
            self._zk_client.unregister_znode_child_change_handler(handler.path)
        self._elections.unregister()
        self._reassignments.unregister()
        self._brokers.unregister()
        self._partition_modifications.unwatch_all()
        if self._rebalance_task is not None:
            self._rebalance_task.cancel()
            self._rebalance_task = None
        self._channel_manager.shutdown()
        self._batch.clear()
        self.context.reset()

    def _maybe_resign(self) -> None:
        was_active = self.is_active
        # A watch fires once: set it again before looking who it is now.
        self._zk_client.register_znode_change_handler_and_check_existence(
            self._controller_change_handler
        )
        self._active_controller_id = self._read_controller_id()
        if was_active and not self.is_active:
            self._log.info("Broker %d is the controller now", self._active_controller_id)
            self._on_controller_resignation()

    def _trigger_controller_move(self, *, later: bool = False) -> None:
        """Give the controllership up, so that a broker, perhaps this one, starts afresh."""
        self._active_controller_id = self._read_controller_id()
        if not self.is_active:
            self._log.warning("Controller moved already to %d", self._active_controller_id)
            return
        version = self.context.epoch_zk_version
        self._active_controller_id = NO_CONTROLLER
        self._on_controller_resignation()
        if later:
            self._leave_later(version)
        else:
            self._vacate(version)

    def _vacate(self, epoch_zk_version: int) -> None:
        """An election follows: this broker's too is begun by the znode's end."""
        try:
            self._zk_client.delete_controller(epoch_zk_version)
            self._is_leaving = False
        except KafkaStorageError as error:
            self._log.warning("The place of controller cannot be left now: %s", error)
            self._leave_later(epoch_zk_version)

    def _leave_later(self, epoch_zk_version: int) -> None:
        self._is_leaving = True
        self._put_later(events.Vacate(epoch_zk_version))

    def _put_later(self, event: ControllerEvent) -> None:
        def put() -> None:
            self.event_manager.put(event)

        self._scheduler.schedule_once("controller-retry", put, _RETRY_MS)

    def _read_controller_id(self) -> int:
        controller_id = self._zk_client.get_controller_id()
        if controller_id is None or (self._is_leaving and controller_id == self.broker_id):
            return NO_CONTROLLER
        return controller_id

    def _maybe_complete_reassignments(self, request: AlterPartitionRequest) -> None:
        """After the answer: a leader need not wait for what its new ISR may complete."""
        if not self.context.partitions_being_reassigned:
            return
        for topic in request.topics:
            name = self.context.topic_names.get(topic.topic_id, topic.topic_name)
            for data in topic.partitions:
                self._reassignments.maybe_complete(TopicPartition(name, data.partition_index))

    def _process_isr_change_notifications(self) -> None:
        """A broker changed ISRs in the store itself, as brokers before 2.7 do."""
        numbers = self._zk_client.get_all_isr_change_notifications()
        if not numbers:
            return
        try:
            partitions = self._zk_client.get_partitions_from_isr_change_notifications(numbers)
            self._topics.update_leader_and_isr_cache(partitions)
            self._on_isr_change(partitions)
            for partition in partitions:
                self._reassignments.maybe_complete(partition)
        finally:
            self._zk_client.delete_isr_change_notifications(self.context.epoch_zk_version, numbers)

    def _on_isr_change(self, partitions: Collection[TopicPartition]) -> None:
        if partitions:
            self._send_update_metadata_to_all(partitions)

    def _send_update_metadata_to_all(self, partitions: Collection[TopicPartition]) -> None:
        self._send_update_metadata(self.context.live_or_shutting_down_broker_ids, partitions)

    def _send_update_metadata(
        self, broker_ids: Iterable[int], partitions: Collection[TopicPartition]
    ) -> None:
        """IllegalBatchError when an earlier state change is still unsent."""
        self._batch.new_batch()
        self._batch.add_update_metadata_request_for_brokers(broker_ids, partitions)
        self._batch.send_requests_to_brokers(self.context.epoch)

    def _schedule_rebalance(self, delay_ms: int) -> None:
        self._rebalance_task = self._scheduler.schedule_once(
            "auto-leader-rebalance-task", self._put_rebalance, delay_ms
        )

    def _put_rebalance(self) -> None:
        self.event_manager.put(events.AutoPreferredReplicaLeaderElection())
