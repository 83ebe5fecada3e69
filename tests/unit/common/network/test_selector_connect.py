"""Connections that a selector makes itself."""

import socket
from collections.abc import Callable, Iterator

import pytest

from kafkapy.common.network.channel_builders import PlaintextChannelBuilder
from kafkapy.common.network.io_platform import NATIVE, PORTABLE
from kafkapy.common.network.selector import Selector
from kafkapy.common.network.send_receive import NetworkSend
from kafkapy.common.network.socket_address import SocketAddress
from tests.helpers.mock_time import MockTime


@pytest.fixture(params=[NATIVE, PORTABLE], ids=["native", "portable"])
def selector(time: MockTime, request: pytest.FixtureRequest) -> Iterator[Selector]:
    selector = Selector(
        PlaintextChannelBuilder(request.param),
        time,
        max_receive_size=1000,
        connections_max_idle_ms=-1,
        platform=request.param,
    )
    yield selector
    selector.close()


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


def address_of(listener: socket.socket) -> SocketAddress:
    return SocketAddress(socket.AF_INET, listener.getsockname())


def poll_until(selector: Selector, condition: Callable[[], object]) -> None:
    for _ in range(1000):
        if condition():
            return
        selector.poll(10)
    raise AssertionError("it does not come")


def test_connection_is_told_when_it_is_made(selector: Selector, listener: socket.socket) -> None:
    selector.connect("1", address_of(listener), send_buffer_bytes=4096, receive_buffer_bytes=4096)
    peer, _ = listener.accept()
    with peer:
        poll_until(selector, lambda: selector.connected)

        channel = selector.connected.popleft()
        assert channel.id == "1" and channel is selector.channels["1"]
        assert selector.send(channel, NetworkSend([b"\0\0\0\1x"], 5))
        assert peer.recv(10) == b"\0\0\0\1x"
        peer.sendall(b"\0\0\0\2yz\0\0\0\1!")
        poll_until(selector, lambda: selector.completed_receives)
        assert selector.completed_receives.popleft() == (channel, bytearray(b"yz"))
        selector.unmute(channel)
        poll_until(selector, lambda: selector.completed_receives)
        assert selector.completed_receives.popleft()[1] == b"!"


def test_refused_connection_is_disconnected(selector: Selector, listener: socket.socket) -> None:
    address = address_of(listener)
    listener.close()

    selector.connect("1", address)
    poll_until(selector, lambda: selector.disconnected)

    channel, cause = selector.disconnected.popleft()
    assert channel.id == "1" and isinstance(cause, ConnectionRefusedError)
    assert selector.channels == {} and not selector.connected


def test_id_in_use_is_refused(selector: Selector, listener: socket.socket) -> None:
    selector.connect("1", address_of(listener))

    with pytest.raises(ValueError, match="1 already"):
        selector.connect("1", address_of(listener))


def test_connection_may_be_given_up_while_it_is_made(
    selector: Selector, listener: socket.socket
) -> None:
    selector.connect("1", address_of(listener))

    selector.close_channel(selector.channels["1"])
    selector.poll(0)

    assert not selector.channels and not selector.connected and not selector.disconnected
