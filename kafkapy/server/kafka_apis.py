"""The table of all APIs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.messages.produce import ProduceRequest
from kafkapy.network.request_channel import Request, RequestChannel
from kafkapy.server.apis.api_versions import ApiVersionsHandler
from kafkapy.server.apis.cluster import ClusterHandler
from kafkapy.server.apis.configs import ConfigsHandler
from kafkapy.server.apis.coordinators import CoordinatorsHandler
from kafkapy.server.apis.error_responses import error_response
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

log = logging.getLogger(__name__)

Handler = Callable[[Request], None]


@dataclass(frozen=True, slots=True)
class ApiHandlers:
    """One object for each family of APIs."""

    produce: ProduceHandler
    fetch: FetchHandler
    offsets: OffsetsHandler
    metadata: MetadataHandler
    api_versions: ApiVersionsHandler
    topics: TopicsHandler
    configs: ConfigsHandler
    cluster: ClusterHandler
    coordinators: CoordinatorsHandler
    groups: GroupsHandler
    group_offsets: GroupOffsetsHandler
    transactions: TransactionsHandler
    transaction_markers: TransactionMarkersHandler
    transaction_admin: TransactionAdminHandler
    reassignments: ReassignmentsHandler
    inter_broker: InterBrokerHandler


# What is here is advertised, and what is advertised is here.
_TABLE: dict[ApiKeys, Callable[[ApiHandlers], Handler]] = {
    ApiKeys.PRODUCE: lambda h: h.produce.handle,
    ApiKeys.FETCH: lambda h: h.fetch.handle,
    ApiKeys.LIST_OFFSETS: lambda h: h.offsets.handle_list_offsets,
    ApiKeys.METADATA: lambda h: h.metadata.handle_metadata,
    ApiKeys.LEADER_AND_ISR: lambda h: h.inter_broker.handle_leader_and_isr,
    ApiKeys.STOP_REPLICA: lambda h: h.inter_broker.handle_stop_replica,
    ApiKeys.UPDATE_METADATA: lambda h: h.inter_broker.handle_update_metadata,
    ApiKeys.CONTROLLED_SHUTDOWN: lambda h: h.inter_broker.handle_controlled_shutdown,
    ApiKeys.OFFSET_COMMIT: lambda h: h.group_offsets.handle_offset_commit,
    ApiKeys.OFFSET_FETCH: lambda h: h.group_offsets.handle_offset_fetch,
    ApiKeys.FIND_COORDINATOR: lambda h: h.coordinators.handle_find_coordinator,
    ApiKeys.JOIN_GROUP: lambda h: h.groups.handle_join_group,
    ApiKeys.HEARTBEAT: lambda h: h.groups.handle_heartbeat,
    ApiKeys.LEAVE_GROUP: lambda h: h.groups.handle_leave_group,
    ApiKeys.SYNC_GROUP: lambda h: h.groups.handle_sync_group,
    ApiKeys.DESCRIBE_GROUPS: lambda h: h.groups.handle_describe_groups,
    ApiKeys.LIST_GROUPS: lambda h: h.groups.handle_list_groups,
    ApiKeys.API_VERSIONS: lambda h: h.api_versions.handle,
    ApiKeys.CREATE_TOPICS: lambda h: h.topics.handle_create_topics,
    ApiKeys.DELETE_TOPICS: lambda h: h.topics.handle_delete_topics,
    ApiKeys.DELETE_RECORDS: lambda h: h.offsets.handle_delete_records,
    ApiKeys.INIT_PRODUCER_ID: lambda h: h.transactions.handle_init_producer_id,
    ApiKeys.OFFSET_FOR_LEADER_EPOCH: lambda h: h.offsets.handle_offset_for_leader_epoch,
    ApiKeys.ADD_PARTITIONS_TO_TXN: lambda h: h.transactions.handle_add_partitions_to_txn,
    ApiKeys.ADD_OFFSETS_TO_TXN: lambda h: h.transactions.handle_add_offsets_to_txn,
    ApiKeys.END_TXN: lambda h: h.transactions.handle_end_txn,
    ApiKeys.WRITE_TXN_MARKERS: lambda h: h.transaction_markers.handle_write_txn_markers,
    ApiKeys.TXN_OFFSET_COMMIT: lambda h: h.transactions.handle_txn_offset_commit,
    ApiKeys.DESCRIBE_CONFIGS: lambda h: h.configs.handle_describe_configs,
    ApiKeys.ALTER_CONFIGS: lambda h: h.configs.handle_alter_configs,
    ApiKeys.DESCRIBE_LOG_DIRS: lambda h: h.cluster.handle_describe_log_dirs,
    ApiKeys.CREATE_PARTITIONS: lambda h: h.topics.handle_create_partitions,
    ApiKeys.DELETE_GROUPS: lambda h: h.groups.handle_delete_groups,
    ApiKeys.ELECT_LEADERS: lambda h: h.reassignments.handle_elect_leaders,
    ApiKeys.INCREMENTAL_ALTER_CONFIGS: lambda h: h.configs.handle_incremental_alter_configs,
    ApiKeys.ALTER_PARTITION_REASSIGNMENTS: lambda h: (
        h.reassignments.handle_alter_partition_reassignments
    ),
    ApiKeys.LIST_PARTITION_REASSIGNMENTS: lambda h: (
        h.reassignments.handle_list_partition_reassignments
    ),
    ApiKeys.OFFSET_DELETE: lambda h: h.group_offsets.handle_offset_delete,
    ApiKeys.ALTER_PARTITION: lambda h: h.inter_broker.handle_alter_partition,
    ApiKeys.DESCRIBE_CLUSTER: lambda h: h.cluster.handle_describe_cluster,
    ApiKeys.DESCRIBE_PRODUCERS: lambda h: h.transaction_admin.handle_describe_producers,
    ApiKeys.DESCRIBE_TRANSACTIONS: lambda h: h.transaction_admin.handle_describe_transactions,
    ApiKeys.LIST_TRANSACTIONS: lambda h: h.transaction_admin.handle_list_transactions,
    ApiKeys.ALLOCATE_PRODUCER_IDS: lambda h: h.inter_broker.handle_allocate_producer_ids,
    ApiKeys.DESCRIBE_TOPIC_PARTITIONS: lambda h: h.metadata.handle_describe_topic_partitions,
}

ENABLED_APIS = frozenset(_TABLE)


class KafkaApis:
    """Gives each request to its handler; whatever a handler raises becomes an error response.

    Ports: kafka.server.KafkaApis
    """

    def __init__(
        self,
        request_channel: RequestChannel,
        handlers: ApiHandlers,
        *,
        try_complete_actions: Callable[[], None],
    ) -> None:
        self._request_channel = request_channel
        self._handlers = {api_key: handler(handlers) for api_key, handler in _TABLE.items()}
        self._try_complete_actions = try_complete_actions

    def handle(self, request: Request) -> None:
        try:
            self._handlers[request.header.api_key](request)
        except Exception as e:
            self._handle_error(request, e)
        finally:
            # Purgatories are completed here, where this thread holds no lock.
            self._try_complete_actions()

    def _handle_error(self, request: Request, error: Exception) -> None:
        code = Errors.for_exception(error)
        if code is Errors.UNKNOWN_SERVER_ERROR:
            log.error("%s failed", request, exc_info=error)
        else:
            log.info("%s is refused: %s", request, error)
        body = request.body
        if isinstance(body, ProduceRequest) and body.acks == 0:
            self._request_channel.close_connection(request)
            return
        response = error_response(request, code, str(error))
        if response is None:
            self._request_channel.close_connection(request)
        else:
            self._request_channel.send_response(request, response)
