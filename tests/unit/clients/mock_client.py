"""A KafkaClient without a network: responses are prepared, or given to requests already sent.

    client.prepare_response(ProduceResponse(...))        # for the next request
    client.prepare_response(..., matcher=lambda r: ..., node=node, disconnected=True)
    client.respond(ProduceResponse(...))                  # to the oldest unanswered request

Ports: org.apache.kafka.clients.MockClient
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from kafkapy.clients.api_versions import NodeApiVersions
from kafkapy.clients.client_request import (
    ClientRequest,
    ClientResponse,
    RequestCompletionHandler,
    VersionedRequest,
)
from kafkapy.clients.cluster_connection_states import FOREVER_MS
from kafkapy.clients.metadata import Metadata
from kafkapy.common.errors import ApiError, UnsupportedVersionError
from kafkapy.common.protocol.messages.metadata import MetadataResponse
from kafkapy.common.protocol.schema import Message
from kafkapy.metadata.broker import Node
from tests.helpers.mock_time import MockTime

RequestMatcher = Callable[[Message], bool]


@dataclass(slots=True)
class _Prepared:
    message: Message | None
    matcher: RequestMatcher
    node_id: int | None
    disconnected: bool
    version_mismatch: bool


@dataclass(slots=True)
class _Sent:
    request: ClientRequest
    version: int
    message: Message


class MockClient:
    """For one thread. A poll that finds nothing moves the clock on by `tick_ms`."""

    def __init__(
        self,
        time: MockTime,
        metadata: Metadata | None = None,
        *,
        nodes: tuple[Node, ...] = (),
        tick_ms: int = 0,
        request_timeout_ms: int = 30_000,
    ) -> None:
        self._time = time
        self._metadata = metadata
        self._nodes = nodes
        self._tick_ms = tick_ms
        self._request_timeout_ms = request_timeout_ms
        self._correlation_ids = itertools.count()
        self._api_versions = NodeApiVersions.of_this_client()
        self._ready: set[int] = set()
        self._blacked_out_until_ms: dict[int, int] = {}
        self._unreachable_until_ms: dict[int, int] = {}
        self._throttled_until_ms: dict[int, int] = {}
        self._authentication_errors: dict[int, ApiError] = {}
        self._prepared: deque[_Prepared] = deque()
        self._ended: deque[ClientResponse] = deque()
        self._metadata_updates: deque[MetadataResponse] = deque()
        self.sent: deque[_Sent] = deque()  # not answered yet, oldest first
        self.requests: list[Message] = []  # all that were ever sent
        self.wakeups = 0
        self.is_closed = False

    # What tests do

    @property
    def request_count(self) -> int:
        return len(self.sent)

    def prepare_response(
        self,
        message: Message | None,
        *,
        matcher: RequestMatcher = lambda request: True,
        node: Node | None = None,
        disconnected: bool = False,
        version_mismatch: bool = False,
    ) -> None:
        """For a later request; they are used in order, and a request must match its own."""
        node_id = None if node is None else node.id
        self._prepared.append(_Prepared(message, matcher, node_id, disconnected, version_mismatch))

    @property
    def has_prepared_responses(self) -> bool:
        return bool(self._prepared)

    def respond(
        self,
        message: Message | None = None,
        *,
        matcher: RequestMatcher = lambda request: True,
        node: Node | None = None,
        disconnected: bool = False,
    ) -> None:
        """To the oldest unanswered request (of the node) that matches."""
        for sent in self.sent:
            if (node is None or sent.request.destination == node.id) and matcher(sent.message):
                self.sent.remove(sent)
                self._end(sent, message, disconnected=disconnected)
                return
        raise AssertionError(f"no request to respond to with {message}")

    def prepare_metadata_update(self, response: MetadataResponse) -> None:
        """For the next time the metadata wants an update."""
        self._metadata_updates.append(response)

    def update_metadata(self, response: MetadataResponse) -> None:
        assert self._metadata is not None
        self._metadata.update_with_current_request_version(
            response, is_partial_update=False, now_ms=self._time.hi_res_clock_ms()
        )

    def set_api_versions(self, versions: NodeApiVersions) -> None:
        self._api_versions = versions

    def back_off(self, node: Node, duration_ms: int) -> None:
        """The node cannot be connected to for so long."""
        self._blacked_out_until_ms[node.id] = self._time.hi_res_clock_ms() + duration_ms
        self._ready.discard(node.id)

    def set_unreachable(self, node: Node, duration_ms: int) -> None:
        self.disconnect(node.id)
        self._unreachable_until_ms[node.id] = self._time.hi_res_clock_ms() + duration_ms

    def throttle(self, node: Node, duration_ms: int) -> None:
        self._throttled_until_ms[node.id] = self._time.hi_res_clock_ms() + duration_ms

    def authentication_failed(self, node: Node, error: ApiError, backoff_ms: int) -> None:
        self._authentication_errors[node.id] = error
        self.disconnect(node.id)
        self.back_off(node, backoff_ms)

    # What a KafkaClient does

    def ready(self, node: Node, now_ms: int) -> bool:
        if self._is_past(self._blacked_out_until_ms, node.id, now_ms) and self._is_past(
            self._unreachable_until_ms, node.id, now_ms
        ):
            self._authentication_errors.pop(node.id, None)
            self._ready.add(node.id)
        return self.is_ready(node, now_ms)

    def is_ready(self, node: Node, now_ms: int) -> bool:
        return node.id in self._ready and self._is_past(self._throttled_until_ms, node.id, now_ms)

    def connection_delay_ms(self, node: Node, now_ms: int) -> int:
        if node.id in self._ready:
            return FOREVER_MS
        return max(0, self._blacked_out_until_ms.get(node.id, 0) - now_ms)

    def throttle_delay_ms(self, node: Node, now_ms: int) -> int:
        return max(0, self._throttled_until_ms.get(node.id, 0) - now_ms)

    def poll_delay_ms(self, node: Node, now_ms: int) -> int:
        return self.throttle_delay_ms(node, now_ms) or self.connection_delay_ms(node, now_ms)

    def connection_failed(self, node: Node) -> bool:
        now_ms = self._time.hi_res_clock_ms()
        return not self._is_past(self._blacked_out_until_ms, node.id, now_ms)

    def authentication_error(self, node: Node) -> ApiError | None:
        return self._authentication_errors.get(node.id)

    def node_api_versions(self, node_id: int) -> NodeApiVersions | None:
        return self._api_versions

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
            next(self._correlation_ids),
            "mock-client",
            created_ms,
            expect_response,
            request_timeout_ms or self._request_timeout_ms,
            callback,
        )

    def send(self, request: ClientRequest, now_ms: int) -> None:
        wanted = request.request
        try:
            version = self._api_versions.latest_usable_version(
                wanted.api_key, wanted.min_version, wanted.max_version
            )
            message = wanted.build(version)
            message.encode(version)  # what cannot be sent is not accepted here either
        except UnsupportedVersionError as mismatch:
            header = request.make_header(wanted.api_key.max_version)
            self._ended.append(
                ClientResponse(
                    header,
                    request.destination,
                    request.created_ms,
                    now_ms,
                    callback=request.callback,
                    version_mismatch=mismatch,
                )
            )
            return
        self.requests.append(message)
        sent = _Sent(request, version, message)
        prepared = next(
            (p for p in self._prepared if p.node_id in (None, request.destination)), None
        )
        if prepared is not None:
            self._prepared.remove(prepared)
            assert prepared.matcher(message), f"not the request expected: {message}"
            self._end(
                sent,
                prepared.message,
                disconnected=prepared.disconnected,
                version_mismatch=prepared.version_mismatch,
            )
        else:
            self.sent.append(sent)

    def poll(self, timeout_ms: int, now_ms: int) -> list[ClientResponse]:
        self._expire_requests(now_ms)
        self._maybe_update_metadata(now_ms)
        responses = []
        # A callback may send, and be answered at once: that is for this poll too.
        while self._ended:
            response = self._ended.popleft()
            response.on_complete()
            responses.append(response)
        if not responses and self._tick_ms and timeout_ms > 0:
            self._time.sleep(min(timeout_ms, self._tick_ms))
        return responses

    def in_flight_request_count(self, node_id: int | None = None) -> int:
        return sum(node_id in (None, sent.request.destination) for sent in self.sent)

    @property
    def has_in_flight_requests(self) -> bool:
        return bool(self.sent)

    def has_ready_nodes(self, now_ms: int) -> bool:
        return any(self.is_ready(node, now_ms) for node in self._known_nodes())

    def least_loaded_node(self, now_ms: int) -> Node | None:
        usable = [
            node
            for node in self._known_nodes()
            if self._is_past(self._blacked_out_until_ms, node.id, now_ms)
        ]
        return usable[0] if usable else None

    def disconnect(self, node_id: int) -> None:
        for sent in list(self.sent):
            if sent.request.destination == node_id:
                self.sent.remove(sent)
                self._end(sent, None, disconnected=True)
        self._ready.discard(node_id)

    def close_node(self, node_id: int) -> None:
        self._ready.discard(node_id)

    def wakeup(self) -> None:
        self.wakeups += 1

    def close(self) -> None:
        self.is_closed = True
        if self._metadata is not None:
            self._metadata.close()

    def _known_nodes(self) -> tuple[Node, ...]:
        return self._nodes if self._metadata is None else self._metadata.fetch().nodes

    def _maybe_update_metadata(self, now_ms: int) -> None:
        metadata = self._metadata
        if metadata is None or not self._metadata_updates or not metadata.update_requested:
            return
        if self.least_loaded_node(now_ms) is not None:
            self.update_metadata(self._metadata_updates.popleft())

    def _expire_requests(self, now_ms: int) -> None:
        for sent in list(self.sent):
            if now_ms - sent.request.created_ms > sent.request.request_timeout_ms:
                self.sent.remove(sent)
                self._end(sent, None, disconnected=True, timed_out=True)
                self.disconnect(sent.request.destination)

    def _end(
        self,
        sent: _Sent,
        message: Message | None,
        *,
        disconnected: bool = False,
        timed_out: bool = False,
        version_mismatch: bool = False,
    ) -> None:
        request = sent.request
        mismatch = UnsupportedVersionError("not supported") if version_mismatch else None
        self._ended.append(
            ClientResponse(
                request.make_header(sent.version),
                request.destination,
                request.created_ms,
                self._time.hi_res_clock_ms(),
                None if disconnected else message,
                request.callback,
                disconnected=disconnected,
                timed_out=timed_out,
                version_mismatch=mismatch,
            )
        )

    @staticmethod
    def _is_past(until_ms: dict[int, int], node_id: int, now_ms: int) -> bool:
        return until_ms.get(node_id, 0) <= now_ms
