"""NetworkClient against a peer that the test plays by hand, on the same thread."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Callable, Iterator

import pytest

from kafkapy.clients.client_errors import IllegalStateError
from kafkapy.clients.client_request import ClientResponse, VersionedRequest
from kafkapy.clients.cluster_connection_states import FOREVER_MS
from kafkapy.clients.metadata import Metadata
from kafkapy.clients.metadata_updater import ManualMetadataUpdater
from kafkapy.clients.network_client import NetworkClient, NetworkClientConfig
from kafkapy.common.errors import Errors, UnsupportedVersionError
from kafkapy.common.network.channel_builders import ChannelBuilder, PlaintextChannelBuilder
from kafkapy.common.network.selector import Selector
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.headers import encode_response_header, parse_request_header
from kafkapy.common.protocol.message_registry import request_class
from kafkapy.common.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkapy.common.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkapy.common.protocol.messages.metadata import MetadataRequest
from kafkapy.common.protocol.schema import Message
from kafkapy.metadata.broker import Node
from tests.helpers.mock_time import MockTime
from tests.unit.clients.metadata_responses import metadata_response

_SIZE = struct.Struct(">i")
_ROUNDS = 2_000


def supported(*changes: tuple[ApiKeys, int, int]) -> ApiVersionsResponse:
    ranges = {int(api): (api.min_version, api.max_version) for api in ApiKeys}
    ranges |= {int(api): (low, high) for api, low, high in changes}
    return ApiVersionsResponse(
        api_keys=[
            ApiVersionsResponse.ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, (low, high) in ranges.items()
        ]
    )


class Peer:
    """One listener and its latest connection. Whatever it waits for, it lets the client poll."""

    def __init__(self, time: MockTime, channel_builder: ChannelBuilder | None = None) -> None:
        self.time = time
        self._channel_builder = channel_builder or PlaintextChannelBuilder()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setblocking(False)
        self.node = Node(1, *self.listener.getsockname()[:2])
        self.connection: socket.socket | None = None
        self.metadata = Metadata(
            refresh_backoff_ms=10, refresh_backoff_max_ms=100, metadata_expire_ms=60_000
        )
        self.updater = ManualMetadataUpdater([self.node])
        self.client = self.new_client(metadata_updater=self.updater)
        self.responses: list[ClientResponse] = []
        self._received = bytearray()

    def new_client(
        self,
        *,
        metadata: Metadata | None = None,
        metadata_updater: ManualMetadataUpdater | None = None,
    ) -> NetworkClient:
        selector = Selector(
            self._channel_builder,
            self.time,
            max_receive_size=-1,
            connections_max_idle_ms=-1,
        )
        config = NetworkClientConfig(
            client_id="test",
            request_timeout_ms=1_000,
            reconnect_backoff_ms=50,
            reconnect_backoff_max_ms=50,
        )
        return NetworkClient(
            selector, config, self.time, metadata=metadata, metadata_updater=metadata_updater
        )

    @property
    def now_ms(self) -> int:
        return self.time.hi_res_clock_ms()

    def poll(self) -> None:
        self.responses += self.client.poll(1, self.now_ms)

    def until(self, condition: Callable[[], object]) -> None:
        for _ in range(_ROUNDS):
            if condition():
                return
            self.poll()
        raise AssertionError("it does not come")

    def accept(self) -> None:
        def accepted() -> bool:
            try:
                self.connection, _ = self.listener.accept()
            except BlockingIOError:
                return False
            self.connection.setblocking(False)
            self._received.clear()
            return True

        self.until(accepted)

    def read(self) -> tuple[int, int, Message]:
        """Correlation id, version and message of the next request."""
        assert self.connection is not None

        def is_complete() -> bool:
            with contextlib.suppress(BlockingIOError):
                self._received += self.connection.recv(65536)
            return (
                len(self._received) >= 4
                and len(self._received) >= 4 + _SIZE.unpack_from(self._received)[0]
            )

        self.until(is_complete)
        size = _SIZE.unpack_from(self._received)[0]
        frame = bytes(self._received[4 : 4 + size])
        del self._received[: 4 + size]
        header, position = parse_request_header(frame)
        message = request_class(header.api_key).decode(frame[position:], header.api_version)
        return header.correlation_id, header.api_version, message

    def write(self, correlation_id: int, version: int, response: Message) -> None:
        assert self.connection is not None and response.API_KEY is not None
        body = encode_response_header(response.API_KEY, version, correlation_id)
        body += response.encode(version)
        self.connection.sendall(_SIZE.pack(len(body)) + body)

    def make_ready(self, versions: ApiVersionsResponse | None = None) -> None:
        assert not self.client.ready(self.node, self.now_ms)
        self.accept()
        correlation_id, version, request = self.read()
        assert isinstance(request, ApiVersionsRequest)
        self.write(correlation_id, version, versions or supported())
        self.until(lambda: self.client.ready(self.node, self.now_ms))

    def send(self, request: VersionedRequest | None = None, **more) -> None:
        request = request or VersionedRequest(HeartbeatRequest(group_id="g"))
        self.client.send(
            self.client.new_client_request(self.node.id, request, self.now_ms, **more), self.now_ms
        )

    def answer(self) -> None:
        correlation_id, version, _ = self.read()
        self.write(correlation_id, version, HeartbeatResponse())

    def close(self) -> None:
        self.client.close()
        self.listener.close()
        if self.connection is not None:
            self.connection.close()


@pytest.fixture
def peer(time: MockTime) -> Iterator[Peer]:
    peer = Peer(time)
    yield peer
    peer.close()


def test_versions_are_agreed_before_the_first_request(peer: Peer) -> None:
    assert not peer.client.ready(peer.node, peer.now_ms)
    peer.accept()
    correlation_id, version, request = peer.read()

    assert version == 4
    assert request.client_software_name == "kafkapy-clients"
    assert not peer.client.is_ready(peer.node, peer.now_ms)
    assert peer.client.node_api_versions(1) is None

    peer.write(correlation_id, version, supported((ApiKeys.HEARTBEAT, 0, 2)))
    peer.until(lambda: peer.client.is_ready(peer.node, peer.now_ms))
    peer.send()

    assert peer.read()[1] == 2


def test_broker_that_knows_only_older_versions_is_asked_again(peer: Peer) -> None:
    peer.client.ready(peer.node, peer.now_ms)
    peer.accept()
    correlation_id, _, _ = peer.read()
    refusal = ApiVersionsResponse(
        error_code=Errors.UNSUPPORTED_VERSION.code,
        api_keys=[
            ApiVersionsResponse.ApiVersion(
                api_key=ApiKeys.API_VERSIONS, min_version=0, max_version=2
            )
        ],
    )

    peer.write(correlation_id, 0, refusal)

    correlation_id, version, _ = peer.read()
    assert version == 2
    peer.write(correlation_id, version, supported())
    peer.until(lambda: peer.client.is_ready(peer.node, peer.now_ms))


def test_response_reaches_its_callback(peer: Peer) -> None:
    peer.make_ready()
    seen: list[ClientResponse] = []
    peer.send(callback=seen.append)
    assert peer.client.in_flight_request_count(1) == peer.client.in_flight_request_count() == 1

    peer.answer()
    peer.until(lambda: seen)

    assert seen == peer.responses
    assert seen[0].message == HeartbeatResponse() and not seen[0].disconnected
    assert seen[0].destination == 1 and seen[0].api_version == 4
    assert not peer.client.has_in_flight_requests


def test_several_responses_that_come_at_once_are_all_handed_out_in_order(peer: Peer) -> None:
    peer.make_ready()
    for _ in range(5):
        peer.send()
    for _ in range(5):
        peer.answer()

    peer.until(lambda: len(peer.responses) == 5)

    ids = [response.header.correlation_id for response in peer.responses]
    assert ids == sorted(ids)


def test_node_with_too_many_requests_in_flight_is_not_ready(peer: Peer) -> None:
    peer.make_ready()
    for _ in range(5):
        assert peer.client.is_ready(peer.node, peer.now_ms)
        peer.send()

    assert not peer.client.is_ready(peer.node, peer.now_ms)
    with pytest.raises(ValueError, match="not ready"):
        peer.send()
    peer.answer()
    peer.until(lambda: peer.client.is_ready(peer.node, peer.now_ms))


def test_lost_connection_ends_its_requests(peer: Peer) -> None:
    peer.make_ready()
    for _ in range(2):
        peer.send()

    peer.connection.close()
    peer.until(lambda: len(peer.responses) == 2)

    assert all(response.disconnected and not response.timed_out for response in peer.responses)
    assert peer.client.connection_failed(peer.node)
    assert not peer.client.ready(peer.node, peer.now_ms)  # the backoff
    assert 0 < peer.client.connection_delay_ms(peer.node, peer.now_ms) <= 60
    peer.time.sleep(60)
    peer.make_ready()
    assert peer.client.connection_delay_ms(peer.node, peer.now_ms) == FOREVER_MS


def test_request_without_an_answer_times_out(peer: Peer) -> None:
    peer.make_ready()
    peer.send(request_timeout_ms=5_000)
    peer.send(request_timeout_ms=300)
    peer.time.sleep(301)

    peer.until(lambda: len(peer.responses) == 2)

    assert [response.timed_out for response in peer.responses] == [False, True]
    assert all(response.disconnected for response in peer.responses)
    assert peer.client.connection_failed(peer.node)


def test_refused_connection_is_known_as_failed(peer: Peer) -> None:
    peer.listener.close()

    peer.client.ready(peer.node, peer.now_ms)
    peer.until(lambda: peer.client.connection_failed(peer.node))

    assert not peer.client.can_connect(1, peer.now_ms)


def test_request_that_the_broker_does_not_know_ends_with_a_mismatch(peer: Peer) -> None:
    peer.make_ready(supported((ApiKeys.HEARTBEAT, 0, 2)))
    seen: list[ClientResponse] = []

    peer.send(VersionedRequest(HeartbeatRequest(), min_version=3), callback=seen.append)
    peer.until(lambda: seen)

    assert isinstance(seen[0].version_mismatch, UnsupportedVersionError)
    assert not seen[0].disconnected
    assert peer.client.is_ready(peer.node, peer.now_ms)


def test_request_may_be_built_for_the_version_that_is_taken(peer: Peer) -> None:
    peer.make_ready(supported((ApiKeys.HEARTBEAT, 0, 1)))

    peer.send(
        VersionedRequest(
            lambda version: HeartbeatRequest(group_id=f"v{version}"), api_key=ApiKeys.HEARTBEAT
        )
    )

    assert peer.read()[2].group_id == "v1"


def test_request_without_a_response_ends_when_it_is_written(peer: Peer) -> None:
    peer.make_ready()

    peer.send(expect_response=False)
    peer.until(lambda: peer.responses)

    assert peer.responses[0].message is None and not peer.responses[0].disconnected
    assert not peer.client.has_in_flight_requests


@pytest.mark.parametrize("garbage", [b"\x00\x00\x00\x05\x00\x00\x00\x63\x00", b"\xff\xff\xff\xff"])
def test_malformed_response_costs_the_connection(peer: Peer, garbage: bytes) -> None:
    peer.make_ready()
    peer.send()
    peer.read()

    peer.connection.sendall(garbage)
    peer.until(lambda: peer.responses)

    assert peer.responses[0].disconnected
    assert peer.client.connection_failed(peer.node)


def test_throttled_client_leaves_the_broker_alone(peer: Peer) -> None:
    peer.make_ready()
    peer.send()
    correlation_id, version, _ = peer.read()

    peer.write(correlation_id, version, HeartbeatResponse(throttle_time_ms=400))
    peer.until(lambda: peer.responses)

    assert not peer.client.is_ready(peer.node, peer.now_ms)
    assert peer.client.throttle_delay_ms(peer.node, peer.now_ms) == 400
    peer.time.sleep(400)
    assert peer.client.is_ready(peer.node, peer.now_ms)


def test_least_loaded_node_is_the_one_with_the_fewest_requests(peer: Peer) -> None:
    assert peer.client.least_loaded_node(peer.now_ms) == peer.node  # it can be connected to
    peer.make_ready()
    other = Node(2, "127.0.0.1", peer.node.port)
    peer.updater.nodes = (peer.node, other)

    assert all(peer.client.least_loaded_node(peer.now_ms) == peer.node for _ in range(10))
    peer.updater.nodes = ()
    assert peer.client.least_loaded_node(peer.now_ms) is None


def test_disconnecting_ends_requests_with_the_next_poll(peer: Peer) -> None:
    peer.make_ready()
    peer.send()

    peer.client.disconnect(1)

    assert peer.client.connection_failed(peer.node)
    peer.poll()
    assert [response.disconnected for response in peer.responses] == [True]


def test_closing_a_node_forgets_its_requests(peer: Peer) -> None:
    peer.make_ready()
    peer.send()

    peer.client.close_node(1)
    peer.poll()

    assert peer.responses == []
    assert not peer.client.has_in_flight_requests


def test_wakeup_ends_a_poll(peer: Peer) -> None:
    peer.client.wakeup()

    assert peer.client.poll(60_000, peer.now_ms) == []


def test_closed_client_is_refused(peer: Peer) -> None:
    peer.client.close()
    peer.client.close()

    with pytest.raises(IllegalStateError):
        peer.client.poll(0, peer.now_ms)


def test_callback_that_fails_does_not_stop_the_others(peer: Peer) -> None:
    peer.make_ready()
    seen: list[ClientResponse] = []

    def fail(_: ClientResponse) -> None:
        raise RuntimeError("callback")

    peer.send(callback=fail)
    peer.send(callback=seen.append)
    peer.answer()
    peer.answer()

    peer.until(lambda: seen)


def with_metadata(peer: Peer) -> None:
    """Replace the client by one that fetches metadata, and agree on the versions."""
    peer.client.close()
    peer.client = peer.new_client(metadata=peer.metadata)
    peer.metadata.bootstrap([(peer.node.host, peer.node.port)])
    peer.accept()
    correlation_id, version, _ = peer.read()
    peer.write(correlation_id, version, supported())


def test_metadata_is_fetched_from_a_bootstrap_broker(peer: Peer) -> None:
    with_metadata(peer)

    correlation_id, version, request = peer.read()

    assert isinstance(request, MetadataRequest)
    peer.write(correlation_id, version, metadata_response({"t": 1}))
    peer.until(lambda: peer.metadata.fetch().topics == {"t"})
    assert peer.responses == []  # it was the client's own


def test_metadata_that_names_no_broker_is_asked_for_again(peer: Peer) -> None:
    with_metadata(peer)
    correlation_id, version, _ = peer.read()

    answer = metadata_response({"t": 1})
    answer.brokers = []
    peer.write(correlation_id, version, answer)
    peer.until(lambda: not peer.client.has_in_flight_requests)
    peer.time.sleep(200)

    assert isinstance(peer.read()[2], MetadataRequest)
    assert peer.metadata.fetch().is_bootstrap_configured


def test_lost_connection_asks_for_metadata(peer: Peer) -> None:
    with_metadata(peer)
    correlation_id, version, _ = peer.read()
    peer.write(correlation_id, version, metadata_response({"t": 1}))
    peer.until(lambda: peer.metadata.fetch().topics == {"t"})
    assert not peer.metadata.update_requested

    peer.connection.close()

    peer.until(lambda: peer.metadata.update_requested)
