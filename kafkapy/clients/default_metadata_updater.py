"""Keeps a client's Metadata fresh through the client's own connections."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kafkapy.clients.cluster_connection_states import FOREVER_MS
from kafkapy.clients.metadata import Metadata, MetadataRequestAndVersion
from kafkapy.common.errors import Errors, KafkaError, RetriableError
from kafkapy.common.protocol.headers import RequestHeader
from kafkapy.common.protocol.messages.metadata import MetadataResponse
from kafkapy.metadata.broker import Node

if TYPE_CHECKING:
    from kafkapy.clients.network_client import NetworkClient

logger = logging.getLogger(__name__)


class DefaultMetadataUpdater:
    """Asks the least loaded node, one request at a time. For the thread of its client.

    Ports: org.apache.kafka.clients.NetworkClient.DefaultMetadataUpdater
    """

    def __init__(
        self,
        client: NetworkClient,
        metadata: Metadata,
        *,
        reconnect_backoff_ms: int,
        request_timeout_ms: int,
        rebootstrap: bool,
    ) -> None:
        # constant after construction
        self._client = client
        self._metadata = metadata
        self._reconnect_backoff_ms = reconnect_backoff_ms
        self._request_timeout_ms = request_timeout_ms
        self._rebootstrap = rebootstrap
        self._in_progress: MetadataRequestAndVersion | None = None

    def fetch_nodes(self) -> Sequence[Node]:
        return self._metadata.fetch().nodes

    def is_update_due(self, now_ms: int) -> bool:
        return self._in_progress is None and self._metadata.time_to_next_update_ms(now_ms) == 0

    def maybe_update(self, now_ms: int) -> int:
        wait_ms = self._request_timeout_ms
        if self._in_progress is None:
            wait_ms = self._metadata.time_to_next_update_ms(now_ms)
        if self._in_progress is not None or wait_ms > 0:
            return wait_ms
        found = self._client.find_least_loaded_node(now_ms)
        if self._rebootstrap and found.node is None and not found.is_any_connection_ready:
            self._metadata.rebootstrap()
            found = self._client.find_least_loaded_node(now_ms)
        if found.node is None:
            logger.debug("No node to ask for metadata is available")
            return self._reconnect_backoff_ms
        return self._update_from(found.node, now_ms)

    def _update_from(self, node: Node, now_ms: int) -> int:
        if self._client.can_send_request(node.id, now_ms):
            wanted = self._metadata.new_request_and_version(now_ms)
            self._in_progress = wanted
            logger.debug("Asking %s for metadata: %s", node, wanted.request)
            self._client.send_internal_request(wanted.request, node.id, now_ms)
            return self._request_timeout_ms
        if self._client.is_any_node_connecting():
            # Connecting to yet another node would not help: wait for the one under way.
            return self._reconnect_backoff_ms
        if self._client.can_connect(node.id, now_ms):
            self._client.initiate_connect(node, now_ms)
            return self._reconnect_backoff_ms
        # Connected, with as many requests in flight as there may be, or throttled.
        return FOREVER_MS

    def handle_server_disconnect(
        self, now_ms: int, node_id: int, authentication_error: KafkaError | None, *, reason: str
    ) -> None:
        self._metadata.connection_lost(node_id, reason)
        cluster = self._metadata.fetch()
        # With bootstrap nodes alone the user may have given a wrong address: that is worth a word.
        if cluster.is_bootstrap_configured and (node := cluster.node_by_id(node_id)) is not None:
            logger.warning("Bootstrap broker %s:%d: %s", node.host, node.port, reason)
        if authentication_error is not None:
            self._metadata.fatal_error(authentication_error)
        # The node may be gone for good, and its partitions be led by others.
        self._metadata.request_update()

    def handle_failed_request(self, now_ms: int, error: KafkaError | None) -> None:
        if error is not None:
            self._metadata.fatal_error(error)
        self._metadata.failed_update(now_ms)
        self._in_progress = None

    def handle_successful_response(
        self, header: RequestHeader, now_ms: int, response: MetadataResponse
    ) -> None:
        wanted, self._in_progress = self._in_progress, None
        if wanted is None:
            return
        self._log_errors(header, response)
        # A broker that is starting may know of none, itself included: keep what there is.
        if not response.brokers:
            logger.debug("Ignoring metadata without brokers")
            self._metadata.failed_update(now_ms)
            return
        self._metadata.update(
            response,
            request_version=wanted.request_version,
            is_partial_update=wanted.is_partial_update,
            now_ms=now_ms,
            api_version=header.api_version,
        )

    def close(self) -> None:
        self._metadata.close()

    @staticmethod
    def _log_errors(header: RequestHeader, response: MetadataResponse) -> None:
        errors = {
            topic.name: error
            for topic in response.topics
            if (error := Errors.for_code(topic.error_code)) is not Errors.NONE
        }
        if not errors:
            return
        # A topic that is just being created has no leader yet: that passes by itself.
        passing = all(
            error.exception_class is not None and issubclass(error.exception_class, RetriableError)
            for error in errors.values()
        )
        logger.log(
            logging.INFO if passing else logging.WARNING,
            "Errors in the metadata of correlation id %d: %s",
            header.correlation_id,
            {name: error.name for name, error in errors.items()},
        )
