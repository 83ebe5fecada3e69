import contextlib
import socket
import ssl
import tempfile
from collections.abc import Callable
from dataclasses import replace

import pytest

from kafkapy.common.errors import SslAuthenticationError
from kafkapy.common.network.io_platform import READ
from kafkapy.common.network.selector import Selector
from kafkapy.common.network.send_receive import NetworkReceive, NetworkSend
from kafkapy.common.network.socket_address import SocketAddress
from kafkapy.common.network.ssl_channel_builder import SslChannelBuilder
from kafkapy.common.network.ssl_transport_layer import SslTransportLayer
from kafkapy.common.security.security_config import SecurityConfig
from kafkapy.common.security.ssl.ssl_factory import SslFactory
from tests.helpers.certificates import CertificateAuthority, Identity
from tests.helpers.mock_time import MockTime
from tests.helpers.tls_peer import TlsPeer, server_context

PEER = SocketAddress(socket.AF_INET, ("127.0.0.1", 9093), "broker.example")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def broker(authority: CertificateAuthority) -> Identity:
    return authority.issue("broker", "DNS:broker.example")


@pytest.fixture(scope="module")
def trusting(authority: CertificateAuthority) -> SecurityConfig:
    return SecurityConfig(
        ssl_truststore_type="PEM", ssl_truststore_location=str(authority.certificate)
    )


def transport_to(
    peer: TlsPeer, config: SecurityConfig, address: SocketAddress = PEER
) -> SslTransportLayer:
    return SslTransportLayer(peer.client_end, SslFactory(config).new_client_context(), address)


def shake_hands(transport: SslTransportLayer, peer: TlsPeer) -> int:
    """The number of steps it took."""
    for steps in range(20_000):
        if not transport.handshake():
            return steps
        peer.step()
    raise AssertionError("the handshake does not end")


def until(done: Callable[[], object], step: Callable[[], None]) -> None:
    for _ in range(20_000):
        if done():
            return
        step()
    raise AssertionError("it does not come")


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
@pytest.mark.parametrize("piece_bytes", [1, 100, 1 << 20])
def test_handshake_in_pieces_of_any_size_leads_to_a_usable_connection(
    broker: Identity, trusting: SecurityConfig, version: str, piece_bytes: int
) -> None:
    with TlsPeer(server_context(broker), piece_bytes=piece_bytes) as peer:
        transport = transport_to(peer, replace(trusting, ssl_enabled_protocols=(version,)))

        assert transport.handshake() == READ
        shake_hands(transport, peer)
        assert transport.send(b"hello") == 5
        until(lambda: peer.received == b"hello", peer.step)

        assert peer.tls.version() == version
        peer.step(b"world")
        buffer = bytearray(10)
        answers: list[int] = []

        def read() -> None:
            peer.step()
            with contextlib.suppress(BlockingIOError):
                answers.append(transport.recv_into(buffer))

        until(lambda: answers, read)
        assert buffer[: answers[0]] == b"world"
        transport.close()


def test_what_could_not_be_sent_is_sent_before_anything_else(
    broker: Identity, trusting: SecurityConfig
) -> None:
    payload = bytes(range(256)) * 16_384  # far more than the socket takes at once
    with TlsPeer(server_context(broker), piece_bytes=50_000) as peer:
        transport = transport_to(peer, trusting)
        shake_hands(transport, peer)
        send = NetworkSend([payload[:10], payload[10:300], payload[300:-5], payload[-5:]], 0)

        assert not send.write_to(transport)
        until(lambda: send.write_to(transport), peer.step)
        until(lambda: len(peer.received) == len(payload), peer.step)

        assert peer.received == payload


def test_slice_of_a_file_is_sent(broker: Identity, trusting: SecurityConfig) -> None:
    with TlsPeer(server_context(broker)) as peer, tempfile.TemporaryFile() as file:
        file.write(b"0123456789")
        file.flush()
        transport = transport_to(peer, trusting)
        shake_hands(transport, peer)

        assert transport.send_file(file.fileno(), 2, 5) == 5
        assert transport.send_file(file.fileno(), 10, 5) == 0
        until(lambda: peer.received == b"23456", peer.step)


def test_frame_that_came_with_another_is_not_forgotten(
    broker: Identity, trusting: SecurityConfig
) -> None:
    # Frames larger than one read takes, so that the second begins in what TLS has kept back.
    frames = [bytes([number]) * 20_000 for number in range(3)]
    with TlsPeer(server_context(broker)) as peer:
        transport = transport_to(peer, trusting)
        shake_hands(transport, peer)
        receive = NetworkReceive()
        receive.read_ahead_of = transport
        peer.step(b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames))

        scratch, received = bytearray(1024), []
        while len(received) < len(frames):
            frame = receive.read_from(transport, scratch)
            assert frame is not None
            received.append(bytes(frame))
            assert receive.has_buffered == (len(received) < len(frames))

        assert received == frames


def test_end_of_the_connection_is_read_as_such(broker: Identity, trusting: SecurityConfig) -> None:
    with TlsPeer(server_context(broker)) as peer:
        transport = transport_to(peer, trusting)
        shake_hands(transport, peer)
        peer.step(b"bye")
        peer.hang_up()

        buffer = bytearray(10)
        assert transport.recv_into(buffer) == 3
        assert transport.recv_into(buffer) == 0
        transport.close()


def refusal_of(transport: SslTransportLayer, peer: TlsPeer) -> str:
    with pytest.raises(SslAuthenticationError) as raised:
        shake_hands(transport, peer)
    with pytest.raises(ssl.SSLError):  # the peer is told too
        peer.step()
    return str(raised.value)


def test_certificate_of_an_unknown_authority_is_refused(broker: Identity) -> None:
    with TlsPeer(server_context(broker)) as peer:
        refusal = refusal_of(transport_to(peer, SecurityConfig()), peer)

    assert refusal.startswith(
        "TLS with broker.example:9093 failed: its certificate is not trusted: "
    )


def test_certificate_of_another_host_is_refused_unless_any_will_do(
    broker: Identity, trusting: SecurityConfig
) -> None:
    elsewhere = PEER._replace(name="other.example")
    with TlsPeer(server_context(broker)) as peer:
        refusal = refusal_of(transport_to(peer, trusting, elsewhere), peer)
    assert "other.example:9093 failed" in refusal and "Hostname mismatch" in refusal

    with TlsPeer(server_context(broker)) as peer:
        careless = replace(trusting, ssl_endpoint_identification_algorithm="")
        shake_hands(transport_to(peer, careless, elsewhere), peer)


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_client_without_the_certificate_that_is_asked_for_hears_so(
    authority: CertificateAuthority, broker: Identity, trusting: SecurityConfig, version: str
) -> None:
    config = replace(trusting, ssl_enabled_protocols=(version,))
    with TlsPeer(server_context(broker, str(authority.certificate))) as peer:
        transport = transport_to(peer, config)

        def go_on() -> None:
            try:
                peer.step()
            except ssl.SSLError:
                peer.send_raw(peer.tls_alert())
            if not transport.handshake():
                # In TLS 1.3 it is the first read that brings the refusal.
                with contextlib.suppress(BlockingIOError):
                    transport.recv_into(bytearray(10))

        transport.handshake()
        with pytest.raises(SslAuthenticationError, match="it refused this client: "):
            until(lambda: False, go_on)


def test_client_with_a_certificate_is_let_in(
    authority: CertificateAuthority, broker: Identity, trusting: SecurityConfig
) -> None:
    store = authority.issue("client").store
    config = replace(trusting, ssl_keystore_type="PEM", ssl_keystore_location=str(store))
    with TlsPeer(server_context(broker, str(authority.certificate))) as peer:
        transport = transport_to(peer, config)
        shake_hands(transport, peer)
        transport.send(b"x")
        until(lambda: peer.received == b"x", peer.step)

        certificate = peer.tls.getpeercert()
        assert certificate is not None and certificate["subject"] == ((("commonName", "client"),),)


def test_peer_that_does_not_speak_tls_is_told_apart(
    broker: Identity, trusting: SecurityConfig
) -> None:
    with TlsPeer(server_context(broker)) as peer:
        transport = transport_to(peer, trusting)
        peer.send_raw(b"\0\0\0\1!" * 10)
        with pytest.raises(SslAuthenticationError, match="9093 failed: it does not speak TLS"):
            transport.handshake()

    with TlsPeer(server_context(broker)) as peer:
        transport = transport_to(peer, trusting)
        transport.handshake()
        peer.hang_up()
        with pytest.raises((EOFError, ConnectionResetError)):
            transport.handshake()


def test_name_that_no_host_can_have_is_refused(broker: Identity, trusting: SecurityConfig) -> None:
    with TlsPeer(server_context(broker)) as peer:
        transport = transport_to(peer, trusting, PEER._replace(name=".example"))

        with pytest.raises(SslAuthenticationError, match="no name of a host"):
            transport.handshake()


def test_selector_encrypts_before_it_calls_a_connection_connected(
    broker: Identity, trusting: SecurityConfig, time: MockTime
) -> None:
    builder = SslChannelBuilder(SslFactory(trusting).new_client_context())
    selector = Selector(builder, time, max_receive_size=-1, connections_max_idle_ms=-1)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = SocketAddress(socket.AF_INET, listener.getsockname(), "broker.example")
        selector.connect("1", address)
        connection, _ = listener.accept()
    with TlsPeer(server_context(broker), piece_bytes=500) as peer:
        peer.take_over(connection)

        def step() -> None:
            selector.poll(0)
            peer.step()

        step()
        assert not selector.connected
        until(lambda: selector.connected, step)

        channel = selector.connected.popleft()
        selector.send(channel, NetworkSend([b"\0\0\0\1", b"?"], 5))
        until(lambda: peer.received == b"\0\0\0\1?", step)
        peer.step(b"\0\0\0\1!\0\0\0\2!!")
        until(lambda: selector.completed_receives, step)
        assert selector.completed_receives.popleft() == (channel, b"!")
        selector.unmute(channel)
        assert selector.read_ahead()
        assert selector.completed_receives.popleft() == (channel, b"!!")
        selector.close()
