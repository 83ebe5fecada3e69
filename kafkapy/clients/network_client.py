"""Requests and responses of a client, over connections to many nodes, on one thread."""

from __future__ import annotations

import itertools
import logging
import random
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import kafkapy
from kafkapy.clients.api_versions import NodeApiVersions
from kafkapy.clients.client_errors import IllegalStateError
from kafkapy.clients.client_request import (
    ClientRequest,
    ClientResponse,
    RequestCompletionHandler,
    VersionedRequest,
)
from kafkapy.clients.cluster_connection_states import (
    ClusterConnectionStates,
    ConnectionState,
)
from kafkapy.clients.default_metadata_updater import DefaultMetadataUpdater
from kafkapy.clients.in_flight_requests import InFlightRequest, InFlightRequests
from kafkapy.clients.metadata import Metadata
from kafkapy.clients.metadata_updater import MetadataUpdater
from kafkapy.clients.throttling import should_client_throttle, throttle_time_ms
from kafkapy.common.errors import (
    ApiError,
    AuthenticationError,
    Errors,
    SslAuthenticationError,
    UnsupportedVersionError,
)
from kafkapy.common.network.request_framing import frame_request, parse_response
from kafkapy.common.network.selector import USE_DEFAULT_BUFFER, Selector
from kafkapy.common.network.send_receive import TlsPeerError
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.codec import ProtocolError
from kafkapy.common.protocol.headers import RequestHeader
from kafkapy.common.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkapy.common.protocol.messages.metadata import MetadataResponse
from kafkapy.common.protocol.schema import Message
from kafkapy.metadata.broker import Node
from kafkapy.utils.time import Time

logger = logging.getLogger(__name__)

CLIENT_SOFTWARE_NAME = "kafkapy-clients"
_MAX_CORRELATION_ID = 0x7FFFFFFF


@dataclass(frozen=True, slots=True)
class NetworkClientConfig:
    """What a NetworkClient is told by the settings of its owner."""

    client_id: str
    request_timeout_ms: int = 30_000
    max_in_flight_requests_per_connection: int = 5
    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 1_000
    connection_setup_timeout_ms: int = 10_000
    connection_setup_timeout_max_ms: int = 30_000
    send_buffer_bytes: int = USE_DEFAULT_BUFFER
    receive_buffer_bytes: int = USE_DEFAULT_BUFFER
    rebootstrap: bool = False
    discover_broker_versions: bool = True


class LeastLoadedNode(NamedTuple):
    """Ports: org.apache.kafka.clients.LeastLoadedNode"""

    node: Node | None
    is_any_connection_ready: bool


class NetworkClient:
    """Sends requests to nodes and hands out their responses, in order per node.

    For one thread, which must call `poll` for anything to happen; only `wakeup` and
    `new_client_request` may be called from others. `now_ms` is always the monotonic clock's
    (`Time.hi_res_clock_ms`).

    Ports: org.apache.kafka.clients.NetworkClient
    """

    def __init__(
        self,
        selector: Selector,
        config: NetworkClientConfig,
        time: Time,
        *,
        metadata: Metadata | None = None,
        metadata_updater: MetadataUpdater | None = None,
    ) -> None:
        """Either `metadata`, which is then kept fresh, or an updater of the owner's own."""
        # constant after construction
        self._selector = selector
        self._config = config
        self._time = time
        self._correlation_ids = itertools.count()
        self._random = random.Random()
        if metadata_updater is None:
            if metadata is None:
                raise ValueError("neither metadata nor a metadata updater is given")
            metadata_updater = DefaultMetadataUpdater(
                self,
                metadata,
                reconnect_backoff_ms=config.reconnect_backoff_ms,
                request_timeout_ms=config.request_timeout_ms,
                rebootstrap=config.rebootstrap,
            )
        self._metadata_updater = metadata_updater

        self._states = ClusterConnectionStates(
            reconnect_backoff_ms=config.reconnect_backoff_ms,
            reconnect_backoff_max_ms=config.reconnect_backoff_max_ms,
            connection_setup_timeout_ms=config.connection_setup_timeout_ms,
            connection_setup_timeout_max_ms=config.connection_setup_timeout_max_ms,
        )
        self._in_flight = InFlightRequests(config.max_in_flight_requests_per_connection)
        self._api_versions: dict[int, NodeApiVersions] = {}
        # The version in which a node is still to be asked what it supports.
        self._needs_api_versions: dict[int, int] = {}
        # When nodes are to be told again who this is; few brokers want that.
        self._session_ends_ms: dict[int, int] = {}
        # Ended without the network: sent without an answer to wait for, or never sendable.
        self._ended_responses: deque[ClientResponse] = deque()
        self._closed = False

    # Connections

    def ready(self, node: Node, now_ms: int) -> bool:
        """Whether a request can be sent to the node now; starts to connect if that may help."""
        if not node.host:
            raise ValueError(f"node {node} has no address")
        if self.is_ready(node, now_ms):
            return True
        if self._states.can_connect(node.id, now_ms):
            self.initiate_connect(node, now_ms)
        return False

    def is_ready(self, node: Node, now_ms: int) -> bool:
        # Metadata goes first: with many requests in flight it would wait for long.
        return not self._metadata_updater.is_update_due(now_ms) and self.can_send_request(
            node.id, now_ms
        )

    def can_send_request(self, node_id: int, now_ms: int) -> bool:
        if not self._states.is_ready(node_id, now_ms) or not self._in_flight.can_send_more(node_id):
            return False
        if self._session_ends_ms and self._is_session_over(node_id, now_ms):
            return False
        channel = self._selector.channels.get(str(node_id))
        return channel is not None and channel.pending_send is None

    def can_connect(self, node_id: int, now_ms: int) -> bool:
        return self._states.can_connect(node_id, now_ms)

    def connection_delay_ms(self, node: Node, now_ms: int) -> int:
        """How long the node cannot even be connected to; FOREVER_MS when that is not the matter."""
        return self._states.connection_delay_ms(node.id, now_ms)

    def throttle_delay_ms(self, node: Node, now_ms: int) -> int:
        return self._states.throttle_delay_ms(node.id, now_ms)

    def poll_delay_ms(self, node: Node, now_ms: int) -> int:
        """How long to poll before the node is worth another look."""
        return self._states.poll_delay_ms(node.id, now_ms)

    def connection_failed(self, node: Node) -> bool:
        return self._states.is_disconnected(node.id)

    def authentication_error(self, node: Node) -> ApiError | None:
        return self._states.authentication_error(node.id)

    def is_any_node_connecting(self) -> bool:
        nodes = self._metadata_updater.fetch_nodes()
        return any(self._states.is_preparing_connection(node.id) for node in nodes)

    def has_ready_nodes(self, now_ms: int) -> bool:
        return self._states.has_ready_nodes(now_ms)

    def node_api_versions(self, node_id: int) -> NodeApiVersions | None:
        """What a connected node supports; None before it has said so."""
        return self._api_versions.get(node_id)

    def initiate_connect(self, node: Node, now_ms: int) -> None:
        logger.debug("Connecting to %s", node)
        try:
            address = self._states.connecting(node.id, now_ms, node.host, node.port)
            self._selector.connect(
                str(node.id),
                address,
                send_buffer_bytes=self._config.send_buffer_bytes,
                receive_buffer_bytes=self._config.receive_buffer_bytes,
            )
        except OSError as error:
            logger.warning("Connecting to %s failed: %s", node, error)
            self._states.disconnected(node.id, now_ms)
            self._metadata_updater.handle_server_disconnect(
                now_ms, node.id, None, reason=str(error)
            )

    def disconnect(self, node_id: int) -> None:
        """Close the connection; its requests end as disconnected with the next poll."""
        if self._states.is_disconnected(node_id):
            return
        now_ms = self._time.hi_res_clock_ms()
        self._close_channel(node_id)
        self._end_requests(node_id, now_ms, self._ended_responses)
        self._states.disconnected(node_id, now_ms)
        self._forget_versions(node_id)

    def close_node(self, node_id: int) -> None:
        """Close the connection and forget the node; nobody hears of its requests any more."""
        self._close_channel(node_id)
        now_ms = self._time.hi_res_clock_ms()
        for request in self._in_flight.clear_all(node_id):
            if request.is_internal and request.header.api_key == ApiKeys.METADATA:
                self._metadata_updater.handle_failed_request(now_ms, None)
        self._states.remove(node_id)
        self._forget_versions(node_id)

    # Requests

    def new_client_request(
        self,
        node_id: int,
        request: VersionedRequest,
        created_ms: int,
        *,
        expect_response: bool = True,
        request_timeout_ms: int | None = None,
        callback: RequestCompletionHandler | None = None,
    ) -> ClientRequest:
        return ClientRequest(
            node_id,
            request,
            next(self._correlation_ids) & _MAX_CORRELATION_ID,
            self._config.client_id,
            created_ms,
            expect_response,
            request_timeout_ms or self._config.request_timeout_ms,
            callback,
        )

    def send(self, request: ClientRequest, now_ms: int) -> None:
        """Start to send to a node that is ready. A request that the node's versions cannot express
        ends at the next poll with `version_mismatch`."""
        if self._closed:
            raise IllegalStateError("The client is closed")
        if not self.can_send_request(request.destination, now_ms):
            raise ValueError(f"node {request.destination} is not ready for a request")
        self._do_send(request, now_ms, is_internal=False)

    def send_internal_request(self, request: VersionedRequest, node_id: int, now_ms: int) -> None:
        """Send one whose response only the client itself handles."""
        self._do_send(self.new_client_request(node_id, request, now_ms), now_ms, is_internal=True)

    def poll(self, timeout_ms: int, now_ms: int) -> list[ClientResponse]:
        """Do what I/O can be done, after waiting for some up to the time-out.

        The responses that came, and requests that ended otherwise, in order; the callbacks have
        been called.
        """
        if self._closed:
            raise IllegalStateError("The client is closed")
        if self._session_ends_ms:
            self._renew_sessions(now_ms)
        metadata_timeout_ms = self._metadata_updater.maybe_update(now_ms)
        if self._ended_responses:
            timeout_ms = 0
        timeout_ms = max(0, min(timeout_ms, metadata_timeout_ms, self._config.request_timeout_ms))
        if timeout_ms > 0:
            # A request may have less time than others, or have used it up in part.
            timeout_ms = min(timeout_ms, self._in_flight.time_to_next_expiry_ms(now_ms))
        self._selector.poll(timeout_ms)
        now_ms = self._time.hi_res_clock_ms()
        responses: list[ClientResponse] = []
        while self._ended_responses:
            responses.append(self._ended_responses.popleft())
        self._handle_completed_sends(responses, now_ms)
        self._handle_completed_receives(responses, now_ms)
        self._handle_disconnections(responses, now_ms)
        self._handle_connections()
        if self._needs_api_versions:
            self._ask_for_api_versions(now_ms)
        self._handle_timed_out_connections(responses, now_ms)
        self._handle_timed_out_requests(responses, now_ms)
        for response in responses:
            self._call_back(response)
        return responses

    def in_flight_request_count(self, node_id: int | None = None) -> int:
        return self._in_flight.count(node_id)

    @property
    def has_in_flight_requests(self) -> bool:
        return self._in_flight.count() > 0

    def least_loaded_node(self, now_ms: int) -> Node | None:
        """The node with the fewest requests in flight that could take one; None when none could."""
        return self.find_least_loaded_node(now_ms).node

    def find_least_loaded_node(self, now_ms: int) -> LeastLoadedNode:
        nodes = self._metadata_updater.fetch_nodes()
        if not nodes:
            return LeastLoadedNode(None, False)
        fewest: int | None = None
        found_ready: Node | None = None
        found_connecting: Node | None = None
        found_can_connect: Node | None = None
        is_any_ready = False
        start = self._random.randrange(len(nodes))
        for index in range(len(nodes)):
            node = nodes[(start + index) % len(nodes)]
            is_any_ready = is_any_ready or self._states.is_ready(node.id, now_ms)
            if self.can_send_request(node.id, now_ms):
                in_flight = self._in_flight.count(node.id)
                if in_flight == 0:
                    return LeastLoadedNode(node, True)
                if fewest is None or in_flight < fewest:
                    fewest, found_ready = in_flight, node
            elif self._states.is_preparing_connection(node.id):
                found_connecting = node
            elif self._states.can_connect(node.id, now_ms) and (
                found_can_connect is None
                or self._states.last_connect_attempt_ms(node.id)
                < self._states.last_connect_attempt_ms(found_can_connect.id)
            ):
                found_can_connect = node
        # Better a loaded connection than a new one, and one under way than another.
        return LeastLoadedNode(found_ready or found_connecting or found_can_connect, is_any_ready)

    def wakeup(self) -> None:
        """From any thread: the current poll, or the next, returns at once."""
        self._selector.wakeup()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._selector.close()
            self._metadata_updater.close()

    def _do_send(self, request: ClientRequest, now_ms: int, *, is_internal: bool) -> None:
        wanted = request.request
        node_id = request.destination
        try:
            versions = self._api_versions.get(node_id)
            if versions is None:
                # Asked before the node has said what it supports: only ApiVersions itself is.
                version = wanted.api_key.max_version
                if wanted.max_version is not None:
                    version = min(version, wanted.max_version)
            else:
                version = versions.latest_usable_version(
                    wanted.api_key, wanted.min_version, wanted.max_version
                )
            header = request.make_header(version)
            send = frame_request(header, wanted.build(version))
        except UnsupportedVersionError as mismatch:
            logger.debug("%s cannot be sent to node %d: %s", request, node_id, mismatch)
            if not is_internal:
                self._ended_responses.append(
                    ClientResponse(
                        request.make_header(wanted.api_key.max_version),
                        node_id,
                        request.created_ms,
                        now_ms,
                        callback=request.callback,
                        version_mismatch=mismatch,
                    )
                )
            elif request.api_key is ApiKeys.METADATA:
                self._metadata_updater.handle_failed_request(now_ms, mismatch)
            return
        in_flight = InFlightRequest(header, request, is_internal, now_ms)
        self._in_flight.add(in_flight)
        channel = self._selector.channels[str(node_id)]
        if self._selector.send(channel, send) and not request.expect_response:
            self._in_flight.complete_last_sent(node_id)
            self._ended_responses.append(in_flight.completed(None, now_ms))

    def _handle_completed_sends(self, responses: list[ClientResponse], now_ms: int) -> None:
        completed = self._selector.completed_sends
        while completed:
            channel, _ = completed.popleft()
            node_id = int(channel.id)
            request = self._in_flight.last_sent(node_id)
            if request is not None and not request.client_request.expect_response:
                self._in_flight.complete_last_sent(node_id)
                responses.append(request.completed(None, now_ms))

    def _handle_completed_receives(self, responses: list[ClientResponse], now_ms: int) -> None:
        completed = self._selector.completed_receives
        while completed or self._selector.read_ahead():
            channel, payload = completed.popleft()
            node_id = int(channel.id)
            request = self._in_flight.complete_next(node_id)
            if request is None:
                logger.warning("Node %d sent a response nobody asked for", node_id)
                self._drop_connection(node_id, responses, now_ms, reason="an unasked response")
                continue
            try:
                message = parse_response(payload, request.header)
            except ProtocolError as error:
                logger.warning("Node %d sent a malformed response: %s", node_id, error)
                responses.extend(self._end_request(request, now_ms))
                self._drop_connection(node_id, responses, now_ms, reason="a malformed response")
                continue
            # More may have come with it.
            self._selector.unmute(channel)
            self._maybe_throttle(message, request.header, node_id, now_ms)
            if not request.is_internal:
                responses.append(request.completed(message, now_ms))
            elif isinstance(message, MetadataResponse):
                self._metadata_updater.handle_successful_response(request.header, now_ms, message)
            elif isinstance(message, ApiVersionsResponse):
                self._handle_api_versions(responses, request, message, now_ms)

    def _handle_api_versions(
        self,
        responses: list[ClientResponse],
        request: InFlightRequest,
        response: ApiVersionsResponse,
        now_ms: int,
    ) -> None:
        node_id = request.client_request.destination
        if response.error_code != Errors.NONE.code:
            if (
                request.header.api_version == 0
                or response.error_code != Errors.UNSUPPORTED_VERSION.code
            ):
                logger.warning(
                    "Node %d refused to say which versions it supports: %s",
                    node_id,
                    Errors.for_code(response.error_code).name,
                )
                self._drop_connection(node_id, responses, now_ms, reason="a refused ApiVersions")
            else:
                # An older broker tells which version of this request it knows, or means 0.
                own = [a for a in response.api_keys if a.api_key == ApiKeys.API_VERSIONS]
                self._needs_api_versions[node_id] = own[0].max_version if own else 0
            return
        versions = NodeApiVersions.from_response(response)
        self._api_versions[node_id] = versions
        self._states.ready(node_id)
        logger.debug("Node %d supports %s", node_id, versions)

    def _handle_disconnections(self, responses: list[ClientResponse], now_ms: int) -> None:
        disconnected = self._selector.disconnected
        while disconnected:
            channel, cause = disconnected.popleft()
            node_id = int(channel.id)
            if self._states.state(node_id).is_disconnected:
                continue  # it was closed here, and handled there
            if isinstance(cause, TlsPeerError):
                cause = SslAuthenticationError(
                    f"{self._states.address(node_id)} speaks TLS: security.protocol must be SSL or"
                    " SASL_SSL"
                )
            if isinstance(cause, AuthenticationError):
                logger.error("Node %d: %s", node_id, cause)
                self._states.authentication_failed(node_id, now_ms, cause)
            else:
                logger.info("Node %d disconnected: %s", node_id, cause)
                self._states.disconnected(node_id, now_ms)
            self._end_connection(node_id, responses, now_ms, reason=_reason(cause))

    def _handle_connections(self) -> None:
        connected = self._selector.connected
        while connected:
            channel = connected.popleft()
            node_id = int(channel.id)
            if self._states.state(node_id) is not ConnectionState.CONNECTING:
                continue
            authenticator = channel.authenticator
            if authenticator is not None and authenticator.reauthenticate_at_ms is not None:
                self._session_ends_ms[node_id] = authenticator.reauthenticate_at_ms
            if self._config.discover_broker_versions:
                self._states.checking_api_versions(node_id)
                self._needs_api_versions[node_id] = ApiVersionsRequest.VERSIONS.highest
            else:
                self._api_versions[node_id] = NodeApiVersions.of_this_client()
                self._states.ready(node_id)

    def _is_session_over(self, node_id: int, now_ms: int) -> bool:
        end_ms = self._session_ends_ms.get(node_id)
        return end_ms is not None and now_ms >= end_ms

    def _renew_sessions(self, now_ms: int) -> None:
        """Authenticate anew before a broker ends the session, once nothing is in flight."""
        for node_id in list(self._session_ends_ms):
            if self._is_session_over(node_id, now_ms) and not self._in_flight.count(node_id):
                logger.debug("Authenticating anew at node %d", node_id)
                del self._session_ends_ms[node_id]
                self._states.reauthenticating(node_id, now_ms)
                self._selector.reauthenticate(self._selector.channels[str(node_id)])

    def _ask_for_api_versions(self, now_ms: int) -> None:
        waiting, self._needs_api_versions = self._needs_api_versions, {}
        for node_id, version in waiting.items():
            channel = self._selector.channels.get(str(node_id))
            if channel is None:
                continue
            if channel.pending_send is not None:
                self._needs_api_versions[node_id] = version
                continue
            request = ApiVersionsRequest(
                client_software_name=CLIENT_SOFTWARE_NAME,
                client_software_version=kafkapy.__version__,
            )
            self.send_internal_request(
                VersionedRequest(request, max_version=version), node_id, now_ms
            )

    def _handle_timed_out_connections(self, responses: list[ClientResponse], now_ms: int) -> None:
        for node_id in self._states.nodes_with_connection_setup_timeout(now_ms):
            logger.info("Node %d: connecting took too long", node_id)
            self._drop_connection(node_id, responses, now_ms, reason="connecting took too long")

    def _handle_timed_out_requests(self, responses: list[ClientResponse], now_ms: int) -> None:
        for node_id in list(self._in_flight.nodes_with_timed_out_requests(now_ms)):
            logger.info("Node %d did not answer in time", node_id)
            self._drop_connection(
                node_id, responses, now_ms, reason="a request timed out", timed_out=True
            )

    def _drop_connection(
        self,
        node_id: int,
        responses: list[ClientResponse],
        now_ms: int,
        *,
        reason: str,
        timed_out: bool = False,
    ) -> None:
        self._close_channel(node_id)
        self._states.disconnected(node_id, now_ms)
        self._end_connection(node_id, responses, now_ms, reason=reason, timed_out=timed_out)

    def _end_connection(
        self,
        node_id: int,
        responses: list[ClientResponse],
        now_ms: int,
        *,
        reason: str,
        timed_out: bool = False,
    ) -> None:
        """What follows when the node's state says that it is disconnected."""
        self._forget_versions(node_id)
        self._end_requests(node_id, now_ms, responses, timed_out=timed_out)
        self._metadata_updater.handle_server_disconnect(
            now_ms, node_id, self._states.authentication_error(node_id), reason=reason
        )

    def _end_requests(
        self,
        node_id: int,
        now_ms: int,
        responses: list[ClientResponse] | deque[ClientResponse],
        *,
        timed_out: bool = False,
    ) -> None:
        for request in self._in_flight.clear_all(node_id):
            responses.extend(self._end_request(request, now_ms, timed_out=timed_out))

    def _end_request(
        self, request: InFlightRequest, now_ms: int, *, timed_out: bool = False
    ) -> list[ClientResponse]:
        if not request.is_internal:
            # Those behind the one that timed out are only disconnected.
            expired = timed_out and request.has_expired(now_ms)
            refusal = self._states.authentication_error(request.client_request.destination)
            return [request.disconnected(now_ms, timed_out=expired, authentication_error=refusal)]
        if request.header.api_key == ApiKeys.METADATA:
            self._metadata_updater.handle_failed_request(now_ms, None)
        return []

    def _forget_versions(self, node_id: int) -> None:
        self._api_versions.pop(node_id, None)
        self._needs_api_versions.pop(node_id, None)
        self._session_ends_ms.pop(node_id, None)

    def _close_channel(self, node_id: int) -> None:
        channel = self._selector.channels.get(str(node_id))
        if channel is not None:
            self._selector.close_channel(channel)

    def _maybe_throttle(
        self, message: Message, header: RequestHeader, node_id: int, now_ms: int
    ) -> None:
        throttle_ms = throttle_time_ms(message)
        if throttle_ms > 0 and should_client_throttle(header.api_key, header.api_version):
            self._states.throttle(node_id, now_ms + throttle_ms)

    @staticmethod
    def _call_back(response: ClientResponse) -> None:
        try:
            response.on_complete()
        except Exception:
            logger.exception("Handling a response failed: %s", response.header)


def _reason(cause: Exception) -> str:
    """Why a connection ended, for people."""
    text = str(cause) or type(cause).__name__
    if isinstance(cause, EOFError | ConnectionResetError | BrokenPipeError):
        # All that a listener with another protocol has to say, too.
        return f"{text}; is its security.protocol another?"
    return text
