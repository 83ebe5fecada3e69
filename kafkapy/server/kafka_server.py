"""One broker, put together and taken apart."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable
from pathlib import Path

from kafkapy.common.config_def import InvalidValueError
from kafkapy.common.errors import KafkaError, KafkaStorageError
from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.metrics.stats import Gauge
from kafkapy.common.types import (
    CONSUMER_OFFSETS_TOPIC,
    TRANSACTION_STATE_TOPIC,
    random_topic_id,
    uuid_to_base64,
)
from kafkapy.controller.kafka_controller import KafkaController
from kafkapy.coordinator.group.group_coordinator import GroupCoordinator
from kafkapy.metadata.broker import Broker
from kafkapy.metadata.end_point import EndPoint
from kafkapy.metadata.metadata_cache import MetadataCache
from kafkapy.network.request_channel import RequestChannel
from kafkapy.network.socket_server import SocketServer
from kafkapy.purgatory.delayed_operation import DelayedOperation
from kafkapy.purgatory.delayed_operation_purgatory import DelayedOperationPurgatory
from kafkapy.replication.alter_partition_manager import ZkAlterPartitionManager
from kafkapy.replication.replica_manager import ReplicaManager
from kafkapy.replication.transaction_verification import TransactionVerification
from kafkapy.server.admin_manager import AdminManager
from kafkapy.server.api_version_manager import ApiVersionManager
from kafkapy.server.apis.api_versions import ApiVersionsHandler
from kafkapy.server.apis.cluster import ClusterHandler
from kafkapy.server.apis.configs import ConfigsHandler
from kafkapy.server.apis.coordinators import CoordinatorsHandler
from kafkapy.server.apis.fetch import FetchHandler
from kafkapy.server.apis.group_offsets import GroupOffsetsHandler
from kafkapy.server.apis.groups import GroupsHandler
from kafkapy.server.apis.inter_broker import InterBrokerHandler
from kafkapy.server.apis.metadata import MetadataHandler
from kafkapy.server.apis.offsets import OffsetsHandler
from kafkapy.server.apis.produce import ProduceHandler
from kafkapy.server.apis.reassignments import ReassignmentsHandler
from kafkapy.server.apis.topics import TopicsHandler
from kafkapy.server.apis.transaction_admin import TransactionAdminHandler
from kafkapy.server.apis.transaction_markers import TransactionMarkersHandler
from kafkapy.server.apis.transactions import TransactionsHandler
from kafkapy.server.auto_topic_creation import AutoTopicCreationManager
from kafkapy.server.broker_state import BrokerState
from kafkapy.server.config_admin_manager import ConfigAdminManager
from kafkapy.server.config_handler import (
    BrokerConfigHandler,
    ConfigChangeDispatcher,
    TopicConfigHandler,
)
from kafkapy.server.delayed_elect_leader import DelayedElectLeader
from kafkapy.server.dynamic_broker_config import DynamicBrokerConfig
from kafkapy.server.fetch_session import FetchManager, FetchSessionCache
from kafkapy.server.kafka_apis import ENABLED_APIS, ApiHandlers, KafkaApis
from kafkapy.server.kafka_config import METRICS_OFF, KafkaConfig
from kafkapy.server.leader_elections import LeaderElections
from kafkapy.server.linux_io_metrics import register_linux_io_metrics
from kafkapy.server.metrics_server import MetricsServer
from kafkapy.server.request_handler import (
    CONTROL_PLANE_REQUEST_HANDLER_AVG_IDLE_PERCENT,
    ApiRequestHandler,
    KafkaRequestHandlerPool,
)
from kafkapy.server.server_hooks import NO_HOOKS, ServerHooks
from kafkapy.server.transaction_services import (
    TransactionServices,
    build_transaction_services,
)
from kafkapy.storage.broker_metadata_checkpoint import (
    BrokerMetadata,
    BrokerMetadataCheckpoint,
    load_broker_metadata,
)
from kafkapy.storage.broker_topic_stats import BrokerTopicStats
from kafkapy.storage.file_system import FileSystem, OsFileSystem
from kafkapy.storage.log_dir_failure_channel import LogDirFailureChannel
from kafkapy.storage.log_manager import LogManager
from kafkapy.utils.scheduler import KafkaScheduler
from kafkapy.utils.time import Time
from kafkapy.utils.timer import SystemTimer
from kafkapy.zk.admin_zk_client import AdminZkClient
from kafkapy.zk.embedded_store import EMBEDDED_STORE_FILE, EmbeddedStore
from kafkapy.zk.kafka_zk_client import KafkaZkClient
from kafkapy.zk.metadata_store import MetadataStore, NodeExistsError, StoreTimeoutError
from kafkapy.zk.zk_data import DEFAULT_ENTITY_NAME, BrokerInfo, ConfigType

log = logging.getLogger(__name__)

BROKER_STATE = Gauge(
    "kafka.server:type=KafkaServer,name=BrokerState",
    "What the broker is doing: 1 starting, 2 recovering, 3 running, 7 shutting down.",
)
_CONTROL_PLANE_HANDLERS = 1
_FIRST_METADATA_TIMEOUT_S = 10


class KafkaServer:
    """A broker from start-up to shutdown. The one place where everything is constructed.

    `startup` and `shutdown` belong to one thread. If `startup` raises, `shutdown` undoes what it
    did.

    Ports: kafka.server.KafkaServer
    """

    def __init__(
        self,
        config: KafkaConfig,
        time: Time,
        *,
        file_system: FileSystem | None = None,
        store: Callable[[KafkaConfig, Time], MetadataStore] | None = None,
        on_fatal_error: Callable[[str], None] | None = None,
        hooks: ServerHooks = NO_HOOKS,
    ) -> None:
        # constant after construction
        self._config = config
        self._time = time
        self._file_system = file_system or OsFileSystem()
        self._open_store = store or open_metadata_store
        self._hooks = hooks
        self._on_fatal_error = on_fatal_error or (lambda reason: log.critical(reason))
        self._random = random.Random()
        self.metrics = MetricsRegistry()
        self._dynamic_config = DynamicBrokerConfig(config)
        self._api_versions = ApiVersionManager(ENABLED_APIS)
        self._metadata_changed = threading.Condition()
        self._closers: list[tuple[str, Callable[[], object]]] = []  # in the order of construction
        # set by startup
        self.state = BrokerState.NOT_RUNNING
        self.broker_id = config.broker.broker_id
        self.cluster_id = ""
        self.bound_listeners: tuple[EndPoint, ...] = ()
        self.metrics_address: str | None = None
        self.log_manager: LogManager | None = None
        self._socket_server: SocketServer | None = None

    def startup(self) -> None:
        """Raises KafkaError with one clear line when the broker cannot start."""
        self.state = BrokerState.STARTING
        self.metrics.gauge(BROKER_STATE, lambda: self.state.value)
        register_linux_io_metrics(self.metrics)
        self._start_metrics_server()
        scheduler = KafkaScheduler(self._config.broker.background_threads, self._time)
        self._on_shutdown("scheduler", scheduler.shutdown)
        scheduler.startup()

        broker_topic_stats = BrokerTopicStats(self.metrics)
        log_dir_failure_channel = LogDirFailureChannel()
        # Its constructor locks the directories; the embedded store lives in one of them.
        log_manager = LogManager(
            self._config.log_manager,
            self._config.topic_defaults,
            scheduler=scheduler,
            time=self._time,
            log_dir_failure_channel=log_dir_failure_channel,
            file_system=self._file_system,
            broker_topic_stats=broker_topic_stats,
            metrics=self.metrics,
            cleaner_config=self._config.cleaner,
        )
        self._on_shutdown("log manager", log_manager.shutdown)
        self.log_manager = log_manager
        zk_client = KafkaZkClient(
            self._open_store(self._config, self._time), self._time, self.metrics
        )
        self._on_shutdown("metadata store", zk_client.close)
        zk_client.create_top_level_paths()
        admin_zk_client = AdminZkClient(zk_client, rng=self._random)
        self._identify(zk_client, log_manager)
        self._load_dynamic_config(admin_zk_client, log_manager)

        self.state = BrokerState.RECOVERY
        log_manager.startup(
            admin_zk_client.fetch_all_entity_configs(ConfigType.TOPIC),
            fetch_topic_config=lambda topic: admin_zk_client.fetch_entity_config(
                ConfigType.TOPIC, topic
            ),
        )

        socket_server = self._open_socket_server()
        metadata_cache = MetadataCache(self.broker_id)
        alter_partition_manager = ZkAlterPartitionManager(scheduler, self._time, zk_client)
        alter_partition_manager.start()
        replica_manager = ReplicaManager(
            self._config.replica_manager,
            broker_id=self.broker_id,
            time=self._time,
            scheduler=scheduler,
            log_manager=log_manager,
            log_dir_failure_channel=log_dir_failure_channel,
            file_system=self._file_system,
            metadata_cache=metadata_cache,
            alter_partition_manager=alter_partition_manager,
            broker_topic_stats=broker_topic_stats,
            metrics=self.metrics,
            inter_broker_listener_name=self._config.inter_broker_listener_name,
            on_log_dir_failure=lambda log_dir: self._report_failed_log_dir(zk_client, log_dir),
            on_all_log_dirs_failed=lambda: self._on_fatal_error(
                "All directories of log.dirs have failed"
            ),
            on_thread_failure=lambda e: self._on_fatal_error(f"A background thread died: {e!r}"),
        )
        self._on_shutdown("replica manager", replica_manager.shutdown)
        replica_manager.startup()
        transactions = self._start_transactions(zk_client, replica_manager, metadata_cache)
        group_coordinator = self._start_group_coordinator(
            zk_client, replica_manager, transactions.verification
        )
        controller = self._new_controller(zk_client, scheduler)
        self._on_shutdown("controller", controller.shutdown)
        apis = self._apis_factory(
            zk_client=zk_client,
            admin_zk_client=admin_zk_client,
            metadata_cache=metadata_cache,
            replica_manager=replica_manager,
            controller=controller,
            broker_topic_stats=broker_topic_stats,
            group_coordinator=group_coordinator,
            transactions=transactions,
        )
        self._start_request_handlers(socket_server, apis)
        dispatcher = ConfigChangeDispatcher(
            admin_zk_client,
            {
                ConfigType.TOPIC: TopicConfigHandler(
                    log_manager, controller.enable_topic_unclean_leader_election
                ),
                ConfigType.BROKER: BrokerConfigHandler(self.broker_id, self._dynamic_config),
            },
        )
        self._on_shutdown("configuration listener", dispatcher.listen(zk_client, self._time).close)
        self._on_shutdown("request processing", socket_server.stop_processing_requests)
        self._on_shutdown("waiting fetches", replica_manager.answer_waiting_fetches)
        socket_server.enable_request_processing(hold=self._hooks.held_listeners)
        controller.startup()
        self._await_metadata(zk_client, metadata_cache)
        self.state = BrokerState.RUNNING
        log.info("Broker %d is running", self.broker_id)

    def open_listeners(self) -> None:
        """Serve the listeners that were held back."""
        if self._socket_server is not None:
            self._socket_server.enable_request_processing()

    def close_listeners(self) -> None:
        """Serve nobody any more, ahead of `shutdown`."""
        if self._socket_server is not None:
            self._socket_server.stop_processing_requests()

    def shutdown(self) -> None:
        """Undoes start-up in reverse. Idempotent; a part that fails does not stop the rest."""
        if self.state is BrokerState.NOT_RUNNING:
            return
        self.state = BrokerState.SHUTTING_DOWN
        while self._closers:
            name, close = self._closers.pop()
            try:
                close()
            except Exception:
                log.exception("The %s could not be shut down", name)
        self.state = BrokerState.NOT_RUNNING

    def _on_shutdown(self, name: str, close: Callable[[], object]) -> None:
        self._closers.append((name, close))

    def _start_metrics_server(self) -> None:
        broker = self._config.broker
        if broker.prometheus_port == METRICS_OFF:
            return
        server = MetricsServer(
            self.metrics,
            self._config.metrics_naming,
            self._time,
            host=broker.prometheus_host,
            port=broker.prometheus_port,
        )
        self._on_shutdown("metrics server", server.close)
        server.start()
        self.metrics_address = f"{server.host}:{server.port}"

    def _identify(self, zk_client: KafkaZkClient, log_manager: LogManager) -> None:
        """Settles the broker's and the cluster's id, and writes both into every log directory."""
        stored = load_broker_metadata(log_manager.live_log_dirs, self._file_system).metadata
        proposed = stored.cluster_id if stored is not None and stored.cluster_id else None
        self.cluster_id = zk_client.create_or_get_cluster_id(
            proposed or uuid_to_base64(random_topic_id())
        )
        if proposed is not None and proposed != self.cluster_id:
            raise KafkaError(
                f"The directories of log.dirs belong to cluster {proposed}, not to "
                f"{self.cluster_id} of zookeeper.connect"
            )
        configured = self._config.broker.broker_id
        if stored is not None and configured >= 0 and stored.broker_id != configured:
            raise InvalidValueError(
                "broker.id",
                str(configured),
                f"the directories of log.dirs belong to broker {stored.broker_id}",
            )
        if configured >= 0:
            self.broker_id = configured
        elif stored is not None:
            self.broker_id = stored.broker_id
        else:
            self.broker_id = (
                self._config.broker.reserved_broker_max_id + zk_client.generate_broker_sequence_id()
            )
        metadata = BrokerMetadata(self.broker_id, self.cluster_id)
        for log_dir in log_manager.live_log_dirs:
            checkpoint = BrokerMetadataCheckpoint(log_dir, self._file_system)
            if checkpoint.read() != metadata:
                checkpoint.write(metadata)

    def _load_dynamic_config(self, admin_zk_client: AdminZkClient, log_manager: LogManager) -> None:
        """Takes over what was altered in earlier runs; the listener follows later changes."""

        def reconfigure_logs(config: KafkaConfig) -> None:
            log_manager.reconfigure_default_log_config(config.topic_defaults)
            log_manager.reconfigure_producer_state(config.log_manager)

        self._dynamic_config.add_reconfigurable(reconfigure_logs)
        self._dynamic_config.add_reconfigurable(
            lambda config: log_manager.reconfigure_cleaner(config.cleaner),
            validate=lambda old, new: old.cleaner.validate_change_to(new.cleaner),
        )
        fetch = admin_zk_client.fetch_entity_config
        self._dynamic_config.update_default_config(fetch(ConfigType.BROKER, DEFAULT_ENTITY_NAME))
        self._dynamic_config.update_broker_config(fetch(ConfigType.BROKER, str(self.broker_id)))

    def _report_failed_log_dir(self, zk_client: KafkaZkClient, log_dir: str) -> None:
        try:
            zk_client.propagate_log_dir_event(self.broker_id)
        except KafkaError as e:
            # The embedded store may be in that very directory; the others go on all the same.
            log.error("The controller could not be told that %s has failed: %s", log_dir, e)

    def _open_socket_server(self) -> SocketServer:
        config = self._config
        server = SocketServer(
            config.socket_server,
            self.metrics,
            self._time,
            listeners=config.listeners,
            api_versions=self._api_versions,
            broker_id=self.broker_id,
            inter_broker_listener_name=config.inter_broker_listener_name,
            control_plane_listener_name=config.control_plane_listener_name,
            listener_max_connections=config.listener_max_connections(),
            drain_timeout_ms=self._hooks.drain_timeout_ms,
            request_channel_class=self._hooks.request_channel_class,
            open_server_socket=self._hooks.open_server_socket,
        )
        self._socket_server = server
        self._on_shutdown("socket server", server.shutdown)
        self.bound_listeners = tuple(
            EndPoint(
                e.listener_name, e.security_protocol, e.host, server.bound_port(e.listener_name)
            )
            for e in config.listeners
        )
        return server

    def _start_group_coordinator(
        self,
        zk_client: KafkaZkClient,
        replica_manager: ReplicaManager,
        transaction_verification: TransactionVerification,
    ) -> GroupCoordinator:
        config = self._config.group_coordinator
        coordinator = GroupCoordinator(
            config,
            broker_id=self.broker_id,
            replica_manager=replica_manager,
            transaction_verification=transaction_verification,
            time=self._time,
            metrics=self.metrics,
        )
        self._on_shutdown("group coordinator", coordinator.shutdown)
        coordinator.startup(
            zk_client.get_topic_partition_count(CONSUMER_OFFSETS_TOPIC)
            or config.offsets_topic_num_partitions
        )
        return coordinator

    def _start_transactions(
        self,
        zk_client: KafkaZkClient,
        replica_manager: ReplicaManager,
        metadata_cache: MetadataCache,
    ) -> TransactionServices:
        transactions = build_transaction_services(
            self._config,
            broker_id=self.broker_id,
            zk_client=zk_client,
            replica_manager=replica_manager,
            metadata_cache=metadata_cache,
            is_verification_enabled=lambda: (
                self._dynamic_config.current.log_manager.transaction_partition_verification_enable
            ),
            time=self._time,
            metrics=self.metrics,
        )
        self._on_shutdown("transaction coordinator", transactions.shutdown)
        transactions.startup(lambda: zk_client.get_topic_partition_count(TRANSACTION_STATE_TOPIC))
        return transactions

    def _new_controller(
        self, zk_client: KafkaZkClient, scheduler: KafkaScheduler
    ) -> KafkaController:
        """Registers the broker, which the controller then counts among the living."""
        ports = {e.listener_name: e.port for e in self.bound_listeners}
        broker_info = BrokerInfo(
            Broker(
                self.broker_id,
                self._config.advertised_listeners(ports),
                self._config.broker.broker_rack,
            )
        )
        try:
            broker_epoch = zk_client.register_broker(broker_info)
        except NodeExistsError as e:
            raise KafkaError(
                f"broker.id={self.broker_id}: a broker with this id is registered already; one "
                "that was killed stays so until zookeeper.session.timeout.ms have passed"
            ) from e
        controller = KafkaController(
            self._dynamic_config.current.controller,
            zk_client,
            broker_info=broker_info,
            broker_epoch=broker_epoch,
            inter_broker_listener_name=self._config.inter_broker_listener_name,
            control_plane_listener_name=self._config.control_plane_listener_name,
            time=self._time,
            metrics=self.metrics,
            scheduler=scheduler,
        )
        self._dynamic_config.add_reconfigurable(
            lambda config: controller.reconfigure(config.controller)
        )
        return controller

    def _apis_factory(
        self,
        *,
        zk_client: KafkaZkClient,
        admin_zk_client: AdminZkClient,
        metadata_cache: MetadataCache,
        replica_manager: ReplicaManager,
        controller: KafkaController,
        broker_topic_stats: BrokerTopicStats,
        group_coordinator: GroupCoordinator,
        transactions: TransactionServices,
    ) -> Callable[[RequestChannel], ApiRequestHandler]:
        """Makes the APIs of one plane; what the planes share is made here, once."""
        broker = self._config.broker
        purgatory: DelayedOperationPurgatory[DelayedOperation] = DelayedOperationPurgatory(
            "topic", SystemTimer("topic", self._time), self.broker_id, metrics=self.metrics
        )
        self._on_shutdown("topic purgatory", purgatory.shutdown)
        election_purgatory: DelayedOperationPurgatory[DelayedElectLeader] = (
            DelayedOperationPurgatory(
                "ElectLeader",
                SystemTimer("ElectLeader", self._time),
                self.broker_id,
                metrics=self.metrics,
            )
        )
        self._on_shutdown("election purgatory", election_purgatory.shutdown)
        elections = LeaderElections(controller, metadata_cache, election_purgatory, self._time)
        configs = ConfigAdminManager(
            self.broker_id, self._dynamic_config, metadata_cache, admin_zk_client
        )
        admin_manager = AdminManager(
            zk_client,
            admin_zk_client,
            metadata_cache,
            configs,
            purgatory,
            default_num_partitions=broker.num_partitions,
            default_replication_factor=broker.default_replication_factor,
        )
        auto_topic_creation = AutoTopicCreationManager(
            admin_manager,
            self._config.group_coordinator,
            self._config.transaction_coordinator,
            num_partitions=broker.num_partitions,
            replication_factor=broker.default_replication_factor,
            is_controller_active=lambda: controller.is_active,
        )
        fetch_manager = FetchManager(
            self._time,
            FetchSessionCache(
                broker.max_incremental_fetch_session_cache_slots, self.metrics, self._random
            ),
        )

        def apis(channel: RequestChannel) -> ApiRequestHandler:
            handlers = ApiHandlers(
                produce=ProduceHandler(
                    channel, replica_manager, metadata_cache, transactions.verification
                ),
                fetch=FetchHandler(
                    channel,
                    replica_manager,
                    metadata_cache,
                    fetch_manager,
                    broker_topic_stats,
                    fetch_max_bytes=broker.fetch_max_bytes,
                ),
                offsets=OffsetsHandler(channel, replica_manager, metadata_cache),
                metadata=MetadataHandler(
                    channel,
                    metadata_cache,
                    auto_topic_creation,
                    auto_create_topics=broker.auto_create_topics_enable,
                    cluster_id=self.cluster_id,
                    max_describe_partitions=broker.max_request_partition_size_limit,
                    is_starting=lambda: self.state is BrokerState.RECOVERY,
                ),
                api_versions=ApiVersionsHandler(channel, self._api_versions),
                topics=TopicsHandler(
                    channel,
                    admin_manager,
                    metadata_cache,
                    is_controller_active=lambda: controller.is_active,
                    deletion_enabled=self._config.controller.delete_topic_enable,
                ),
                configs=ConfigsHandler(channel, configs),
                cluster=ClusterHandler(
                    channel, replica_manager, metadata_cache, cluster_id=self.cluster_id
                ),
                coordinators=CoordinatorsHandler(channel, metadata_cache, auto_topic_creation),
                groups=GroupsHandler(channel, group_coordinator),
                group_offsets=GroupOffsetsHandler(
                    channel, group_coordinator, metadata_cache, self._time
                ),
                transactions=TransactionsHandler(
                    channel,
                    transactions.coordinator,
                    group_coordinator,
                    metadata_cache,
                    time=self._time,
                ),
                transaction_markers=TransactionMarkersHandler(
                    channel,
                    replica_manager,
                    group_coordinator,
                    time=self._time,
                    request_timeout_ms=broker.request_timeout_ms,
                ),
                transaction_admin=TransactionAdminHandler(
                    channel, transactions.coordinator, replica_manager
                ),
                reassignments=ReassignmentsHandler(channel, controller, elections, metadata_cache),
                inter_broker=InterBrokerHandler(
                    channel,
                    replica_manager,
                    controller,
                    admin_manager,
                    elections=elections,
                    coordinators={
                        CONSUMER_OFFSETS_TOPIC: group_coordinator,
                        TRANSACTION_STATE_TOPIC: transactions.coordinator,
                    },
                    on_metadata_update=self._on_metadata_update,
                    on_partitions_deleted=group_coordinator.handle_deleted_partitions,
                ),
            )
            kafka_apis = KafkaApis(
                channel, handlers, try_complete_actions=replica_manager.try_complete_actions
            )
            return self._hooks.wrap_apis(channel, kafka_apis)

        return apis

    def _start_request_handlers(
        self, socket_server: SocketServer, apis: Callable[[RequestChannel], ApiRequestHandler]
    ) -> None:
        channel = socket_server.data_plane_request_channel
        pool = KafkaRequestHandlerPool(
            self.broker_id,
            channel,
            apis(channel),
            time=self._time,
            num_threads=self._dynamic_config.current.broker.num_io_threads,
            metrics=self.metrics,
        )
        self._on_shutdown("request handlers", pool.shutdown)
        self._dynamic_config.add_reconfigurable(
            lambda config: pool.resize(config.broker.num_io_threads),
            validate=lambda old, new: old.broker.validate_change_to(new.broker),
        )
        control_channel = socket_server.control_plane_request_channel
        if control_channel is None:
            return
        control_pool = KafkaRequestHandlerPool(
            self.broker_id,
            control_channel,
            apis(control_channel),
            time=self._time,
            num_threads=_CONTROL_PLANE_HANDLERS,
            metrics=self.metrics,
            thread_name_prefix="control-plane",
            idle_gauge=CONTROL_PLANE_REQUEST_HANDLER_AVG_IDLE_PERCENT,
        )
        self._on_shutdown("control-plane request handler", control_pool.shutdown)

    def _on_metadata_update(self) -> None:
        with self._metadata_changed:
            self._metadata_changed.notify_all()

    def _await_metadata(self, zk_client: KafkaZkClient, metadata_cache: MetadataCache) -> None:
        """A client that connects at once should find this broker and every topic there was."""
        topics = zk_client.get_all_topics_in_cluster() - set(zk_client.get_topic_deletions())
        with self._metadata_changed:
            complete = self._metadata_changed.wait_for(
                lambda: (
                    metadata_cache.has_alive_broker(self.broker_id)
                    and topics <= metadata_cache.all_topics()
                ),
                _FIRST_METADATA_TIMEOUT_S,
            )
        if not complete:
            log.warning("The controller has not told this broker of all topics yet")


def open_metadata_store(config: KafkaConfig, time: Time) -> MetadataStore:
    """ZooKeeper if there is one, else a store of this broker's own in its first log directory."""
    if config.broker.zookeeper_connect is None:
        path = Path(config.log_manager.log_dirs[0]) / EMBEDDED_STORE_FILE
        try:
            return EmbeddedStore(path, time)
        except (OSError, KafkaStorageError) as e:
            raise KafkaError(f"log.dirs: the metadata store cannot be used: {e}") from e
    from kafkapy.zk.zookeeper_client import ZooKeeperClient

    connect = config.broker.zookeeper_connect
    session_timeout_ms = config.broker.zookeeper_session_timeout_ms
    try:
        return ZooKeeperClient(
            connect,
            session_timeout_ms=session_timeout_ms,
            connection_timeout_ms=config.broker.zookeeper_connection_timeout_ms
            or session_timeout_ms,
            max_in_flight_requests=config.broker.zookeeper_max_in_flight_requests,
        )
    except (StoreTimeoutError, ValueError) as e:
        raise KafkaError(f"zookeeper.connect={connect}: {e}") from e
