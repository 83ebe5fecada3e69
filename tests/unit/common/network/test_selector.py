import errno
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator

import pytest

from kafkapy.common.network.channel_builders import PlaintextChannelBuilder
from kafkapy.common.network.io_platform import NATIVE, PORTABLE, IoPlatform, Poller
from kafkapy.common.network.kafka_channel import ChannelMuteEvent, KafkaChannel
from kafkapy.common.network.memory_pool import MemoryPool
from kafkapy.common.network.selector import IdleTimeoutError, Selector
from kafkapy.common.network.send_receive import InvalidReceiveError, NetworkSend
from tests.helpers.mock_time import MockTime

MAX_SIZE = 100_000
MAX_IDLE_MS = 1000
MakeSelector = Callable[..., Selector]


class Peer:
    """The client's end of a connection."""

    def __init__(self, selector: Selector, name: str) -> None:
        self.sock, server_side = socket.socketpair()
        self.sock.setblocking(False)
        self.channel = selector.register(name, server_side, "127.0.0.1")

    def send(self, *payloads: bytes) -> None:
        self.sock.sendall(b"".join(struct.pack(">i", len(p)) + p for p in payloads))


class FullPoller:
    """A poller that may be at the operating system's limit, for so many registrations."""

    def __init__(self, poller: Poller) -> None:
        self.refusals = 0
        self.modify = poller.modify
        self.unregister = poller.unregister
        self.poll = poller.poll
        self.close = poller.close
        self._register = poller.register

    def register(self, fd: int, events: int) -> None:
        if self.refusals:
            self.refusals -= 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._register(fd, events)


@pytest.fixture(params=[NATIVE, PORTABLE], ids=["native", "portable"])
def platform(request: pytest.FixtureRequest) -> IoPlatform:
    chosen: IoPlatform = request.param
    return chosen


@pytest.fixture
def make_selector(time: MockTime, platform: IoPlatform) -> Iterator[MakeSelector]:
    made = []

    def make(memory_pool: MemoryPool | None = None, *, poller: Poller | None = None) -> Selector:
        selector = Selector(
            PlaintextChannelBuilder(platform),
            time,
            max_receive_size=MAX_SIZE,
            connections_max_idle_ms=MAX_IDLE_MS,
            memory_pool=memory_pool,
            platform=platform
            if poller is None
            else IoPlatform(lambda: poller, platform.new_waker, platform.send_file),
        )
        made.append(selector)
        return selector

    yield make
    for selector in made:
        selector.close()


@pytest.fixture
def full_poller(platform: IoPlatform) -> FullPoller:
    return FullPoller(platform.new_poller())


@pytest.fixture
def selector(make_selector: MakeSelector) -> Selector:
    return make_selector()


@pytest.fixture
def connect(selector: Selector) -> Iterator[Callable[[], Peer]]:
    peers: list[Peer] = []

    def connect() -> Peer:
        peers.append(Peer(selector, f"connection-{len(peers)}"))
        return peers[-1]

    yield connect
    for peer in peers:
        peer.sock.close()


def received(selector: Selector) -> list[tuple[KafkaChannel, bytes]]:
    frames = [(channel, bytes(payload)) for channel, payload in selector.completed_receives]
    selector.completed_receives.clear()
    return frames


def begin_request(channel: KafkaChannel) -> None:
    channel.handle_mute_event(ChannelMuteEvent.REQUEST_RECEIVED)


def end_request(selector: Selector, channel: KafkaChannel) -> None:
    channel.handle_mute_event(ChannelMuteEvent.RESPONSE_SENT)
    selector.unmute(channel)


def test_frames_of_all_connections_are_received(
    selector: Selector, connect: Callable[[], Peer]
) -> None:
    first, second = connect(), connect()
    first.send(b"a")
    second.send(b"b")

    selector.poll(0)

    assert sorted(received(selector), key=lambda r: r[1]) == [
        (first.channel, b"a"),
        (second.channel, b"b"),
    ]


def test_poll_takes_one_frame_from_a_connection(
    selector: Selector, connect: Callable[[], Peer]
) -> None:
    peer = connect()
    peer.send(b"first", b"second", b"third")

    frames = []
    for _ in range(3):
        selector.poll(0)
        (frame,) = received(selector)
        frames.append(frame[1])
        begin_request(peer.channel)
        end_request(selector, peer.channel)

    assert frames == [b"first", b"second", b"third"]


def test_muted_connection_is_not_read_and_then_continues(
    selector: Selector, connect: Callable[[], Peer]
) -> None:
    peer = connect()
    begin_request(peer.channel)
    peer.send(b"early")

    for _ in range(3):
        selector.poll(0)
    assert received(selector) == []
    end_request(selector, peer.channel)
    selector.poll(0)

    assert received(selector) == [(peer.channel, b"early")]


def test_pipelined_frame_does_not_wait_for_more_bytes(
    selector: Selector, connect: Callable[[], Peer]
) -> None:
    peer = connect()
    peer.send(b"first", b"second")
    selector.poll(0)
    received(selector)
    begin_request(peer.channel)
    selector.poll(0)

    end_request(selector, peer.channel)
    selector.poll(60_000)

    assert received(selector) == [(peer.channel, b"second")]


def test_connection_that_sent_ahead_is_watched_again_once_all_is_read(
    selector: Selector, connect: Callable[[], Peer]
) -> None:
    peer = connect()
    frames = []
    for ahead in (b"second", b"third", b""):
        begin_request(peer.channel)
        if ahead:
            peer.send(ahead)
        selector.poll(0)
        end_request(selector, peer.channel)
        selector.poll(0)
        frames += [payload for _, payload in received(selector)]

    peer.send(b"later")
    selector.poll(60_000)

    assert frames == [b"second", b"third"]
    assert received(selector) == [(peer.channel, b"later")]


def test_connection_that_always_sends_ahead_is_not_idle(
    selector: Selector, connect: Callable[[], Peer], time: MockTime
) -> None:
    peer = connect()
    for _ in range(5):
        begin_request(peer.channel)
        peer.send(b"ahead")
        selector.poll(0)
        time.sleep(MAX_IDLE_MS // 2)
        end_request(selector, peer.channel)
        selector.poll(0)
        assert received(selector) == [(peer.channel, b"ahead")]

    assert not selector.disconnected


def test_throttled_connection_stays_muted_after_its_response(
    selector: Selector, connect: Callable[[], Peer]
) -> None:
    peer = connect()
    begin_request(peer.channel)
    peer.channel.handle_mute_event(ChannelMuteEvent.THROTTLE_STARTED)
    peer.send(b"next")

    end_request(selector, peer.channel)
    selector.poll(0)
    assert received(selector) == []
    peer.channel.handle_mute_event(ChannelMuteEvent.THROTTLE_ENDED)
    selector.unmute(peer.channel)
    selector.poll(0)

    assert received(selector) == [(peer.channel, b"next")]


def test_peer_that_leaves_while_its_request_is_handled_is_noticed_afterwards(
    selector: Selector, connect: Callable[[], Peer]
) -> None:
    peer = connect()
    begin_request(peer.channel)
    peer.sock.close()

    for _ in range(3):
        selector.poll(0)
    assert not selector.disconnected
    end_request(selector, peer.channel)
    selector.poll(0)

    ((channel, cause),) = selector.disconnected
    assert channel is peer.channel
    assert isinstance(cause, EOFError | OSError)
    assert selector.channels == {}


def test_requests_sent_before_leaving_are_all_delivered(
    selector: Selector, connect: Callable[[], Peer]
) -> None:
    peer = connect()
    peer.send(b"1", b"2", b"3")
    peer.sock.close()

    frames = []
    for _ in range(4):
        selector.poll(0)
        for channel, payload in received(selector):
            frames.append(payload)
            begin_request(channel)
            end_request(selector, channel)

    assert frames == [b"1", b"2", b"3"]
    assert len(selector.disconnected) == 1


def test_small_response_is_sent_at_once(selector: Selector, connect: Callable[[], Peer]) -> None:
    peer = connect()

    assert selector.send(peer.channel, NetworkSend([b"response"], 8))

    assert peer.sock.recv(100) == b"response"
    assert not selector.completed_sends


def test_large_response_is_sent_as_the_peer_reads(
    selector: Selector, connect: Callable[[], Peer]
) -> None:
    peer = connect()
    data = bytes(range(256)) * 20_000
    send = NetworkSend([data], len(data))

    assert not selector.send(peer.channel, send)
    arrived = bytearray()
    while len(arrived) < len(data):
        selector.poll(0)
        try:
            arrived += peer.sock.recv(1 << 20)
        except BlockingIOError:
            continue
    selector.poll(0)

    assert arrived == data
    assert list(selector.completed_sends) == [(peer.channel, send)]
    selector.completed_sends.clear()
    peer.send(b"read on")
    selector.poll(0)
    assert received(selector) == [(peer.channel, b"read on")]


def test_second_response_before_the_first_is_sent_raises(
    selector: Selector, connect: Callable[[], Peer]
) -> None:
    peer = connect()
    large = bytes(10_000_000)
    selector.send(peer.channel, NetworkSend([large], len(large)))

    with pytest.raises(ValueError, match="still sending"):
        selector.send(peer.channel, NetworkSend([b"x"], 1))


def test_sending_to_a_peer_that_left_disconnects(
    selector: Selector, connect: Callable[[], Peer]
) -> None:
    peer = connect()
    begin_request(peer.channel)
    peer.sock.close()

    assert not selector.send(peer.channel, NetworkSend([b"x"], 1))

    ((channel, cause),) = selector.disconnected
    assert channel is peer.channel
    assert isinstance(cause, OSError)


def test_unacceptable_frame_disconnects_only_its_connection(
    selector: Selector, connect: Callable[[], Peer]
) -> None:
    bad, good = connect(), connect()
    bad.sock.sendall(struct.pack(">i", MAX_SIZE + 1))
    good.send(b"fine")

    selector.poll(0)

    ((channel, cause),) = selector.disconnected
    assert channel is bad.channel
    assert isinstance(cause, InvalidReceiveError)
    assert received(selector) == [(good.channel, b"fine")]


def test_paused_selector_sends_but_does_not_read(
    selector: Selector, connect: Callable[[], Peer]
) -> None:
    peer, other = connect(), connect()
    selector.pause_reads()
    peer.send(b"later")

    selector.poll(0)
    assert received(selector) == []
    assert selector.send(other.channel, NetworkSend([b"x"], 1))
    selector.resume_reads()
    selector.poll(0)

    assert received(selector) == [(peer.channel, b"later")]


def test_channel_unmuted_while_paused_is_read_after_resuming(
    selector: Selector, connect: Callable[[], Peer]
) -> None:
    peer = connect()
    peer.send(b"first", b"second")
    selector.poll(0)
    received(selector)
    begin_request(peer.channel)
    selector.pause_reads()
    end_request(selector, peer.channel)

    selector.poll(0)
    assert received(selector) == []
    selector.resume_reads()
    selector.poll(0)

    assert received(selector) == [(peer.channel, b"second")]


def test_wakeup_before_poll_makes_it_return(selector: Selector) -> None:
    selector.wakeup()

    selector.poll(60_000)


def test_wakeup_from_another_thread_ends_the_poll(selector: Selector) -> None:
    thread = threading.Thread(target=lambda: selector.poll(60_000))
    thread.start()

    while thread.is_alive():
        selector.wakeup()
        thread.join(0.001)


def test_connection_that_cannot_be_polled_leaves_nothing_behind(
    full_poller: FullPoller, make_selector: MakeSelector, time: MockTime
) -> None:
    selector = make_selector(poller=full_poller)
    client_side, server_side = socket.socketpair()
    full_poller.refusals = 1
    with client_side, server_side, pytest.raises(OSError, match="No space"):
        selector.register("refused", server_side, "127.0.0.1")
    # It is likely to get the same descriptor.
    served = Peer(selector, "served")

    time.sleep(MAX_IDLE_MS // 2)
    served.send(b"a")
    selector.poll(0)
    assert received(selector) == [(served.channel, b"a")]
    time.sleep(MAX_IDLE_MS // 2 + 20)
    selector.poll(0)

    assert not selector.disconnected
    assert selector.channels == {"served": served.channel}
    served.sock.close()


def test_connection_that_cannot_be_polled_again_does_not_take_others_along(
    full_poller: FullPoller, make_selector: MakeSelector
) -> None:
    selector = make_selector(poller=full_poller)
    first, second = Peer(selector, "first"), Peer(selector, "second")
    for peer in (first, second):
        begin_request(peer.channel)
        peer.sock.sendall(struct.pack(">i", 3) + b"a")
    selector.poll(0)  # muted and readable: no longer polled
    for peer in (first, second):
        end_request(selector, peer.channel)

    full_poller.refusals = 1
    selector.poll(0)
    second.sock.sendall(b"bc")
    selector.poll(0)

    assert [channel for channel, _ in selector.disconnected] == [first.channel]
    assert received(selector) == [(second.channel, b"abc")]
    first.sock.close()
    second.sock.close()


def test_connection_that_cannot_be_polled_after_a_pause_does_not_take_others_along(
    full_poller: FullPoller, make_selector: MakeSelector
) -> None:
    selector = make_selector(poller=full_poller)
    first, second = Peer(selector, "first"), Peer(selector, "second")
    first.send(b"a")
    second.send(b"b")
    selector.pause_reads()
    selector.poll(0)

    full_poller.refusals = 1
    selector.resume_reads()
    selector.poll(0)

    assert [channel for channel, _ in selector.disconnected] == [first.channel]
    assert received(selector) == [(second.channel, b"b")]
    first.sock.close()
    second.sock.close()


def test_idle_connection_is_disconnected(
    selector: Selector, connect: Callable[[], Peer], time: MockTime
) -> None:
    idle = connect()
    time.sleep(600)
    active = connect()
    time.sleep(500)

    selector.poll(0)

    ((channel, cause),) = selector.disconnected
    assert channel is idle.channel
    assert isinstance(cause, IdleTimeoutError)
    assert selector.least_recently_used() is active.channel


def test_connection_with_a_request_in_flight_is_not_idle(
    selector: Selector, connect: Callable[[], Peer], time: MockTime
) -> None:
    busy = connect()
    begin_request(busy.channel)

    for _ in range(5):
        time.sleep(MAX_IDLE_MS)
        selector.poll(0)

    assert not selector.disconnected


def test_connection_that_was_left_with_a_request_in_flight_is_idle(
    selector: Selector, connect: Callable[[], Peer], time: MockTime
) -> None:
    left = connect()
    begin_request(left.channel)
    left.sock.close()

    selector.poll(0)
    assert not selector.disconnected
    time.sleep(2 * MAX_IDLE_MS)
    selector.poll(0)

    assert [channel for channel, _ in selector.disconnected] == [left.channel]


def test_connection_is_idle_from_the_end_of_its_request(
    selector: Selector, connect: Callable[[], Peer], time: MockTime
) -> None:
    busy = connect()
    begin_request(busy.channel)
    time.sleep(MAX_IDLE_MS - 10)
    end_request(selector, busy.channel)

    time.sleep(MAX_IDLE_MS)
    selector.poll(0)
    assert not selector.disconnected
    time.sleep(MAX_IDLE_MS)
    selector.poll(0)

    assert [channel for channel, _ in selector.disconnected] == [busy.channel]


def test_connection_is_not_idle_while_its_request_is_not_read(
    selector: Selector, connect: Callable[[], Peer], time: MockTime
) -> None:
    patient, idle = connect(), connect()
    selector.pause_reads()
    patient.send(b"request")
    for _ in range(3):
        selector.poll(0)
        time.sleep(MAX_IDLE_MS)

    selector.resume_reads()
    selector.poll(0)

    assert received(selector) == [(patient.channel, b"request")]
    assert [channel for channel, _ in selector.disconnected] == [idle.channel]


def test_half_a_request_does_not_keep_a_connection_open(
    selector: Selector, connect: Callable[[], Peer], time: MockTime
) -> None:
    slow = connect()
    slow.sock.sendall(struct.pack(">i", 1000) + b"slow")
    selector.poll(0)

    time.sleep(2 * MAX_IDLE_MS)
    selector.poll(0)

    assert [channel for channel, _ in selector.disconnected] == [slow.channel]


def test_reading_waits_until_memory_is_released(make_selector: MakeSelector) -> None:
    pool = MemoryPool(10)
    selector = make_selector(pool)
    first, second = Peer(selector, "first"), Peer(selector, "second")
    first.send(b"x" * 20)
    selector.poll(0)
    assert [payload for _, payload in received(selector)] == [b"x" * 20]

    second.send(b"y" * 5)
    for _ in range(3):
        selector.poll(0)
    assert received(selector) == []
    pool.release(20)
    selector.poll(60_000)
    selector.poll(0)

    assert received(selector) == [(second.channel, b"y" * 5)]
    assert pool.available_bytes == 5
    first.sock.close()
    second.sock.close()


def test_closed_channel_leaves_nothing_behind(
    selector: Selector, connect: Callable[[], Peer]
) -> None:
    peer = connect()

    selector.close_channel(peer.channel)
    selector.close_channel(peer.channel)

    assert selector.channels == {}
    assert peer.sock.recv(1) == b""
    assert not selector.disconnected
    selector.poll(0)
