import pytest

from kafkapy.common.network.idle_expiry_manager import NEVER, IdleExpiryManager
from kafkapy.common.network.kafka_channel import ChannelMuteEvent, KafkaChannel
from kafkapy.common.network.send_receive import NetworkReceive, NetworkSend
from tests.helpers.in_memory_transport import InMemoryTransport

MS = 1_000_000
SLACK_MS = 10  # of a time-out of 1000 ms


def channel(name: str) -> KafkaChannel:
    return KafkaChannel(
        name, InMemoryTransport(), receive=NetworkReceive(), client_address="127.0.0.1"
    )


def test_channel_expires_after_the_whole_time_and_is_forgotten() -> None:
    manager = IdleExpiryManager(1000)
    idle = channel("idle")
    manager.update(idle, 0)

    assert list(manager.expired(1000 * MS)) == []
    assert list(manager.expired((1000 + SLACK_MS) * MS)) == [idle]
    assert list(manager.expired(5000 * MS)) == []


def test_activity_starts_the_time_again() -> None:
    manager = IdleExpiryManager(1000)
    first, second = channel("first"), channel("second")
    manager.update(first, 0)
    manager.update(second, 1 * MS)

    manager.update(first, 500 * MS)

    assert list(manager.expired(1100 * MS)) == [second]
    assert manager.least_recently_used() is first
    assert list(manager.expired(1600 * MS)) == [first]


def test_channel_with_a_request_being_handled_does_not_expire() -> None:
    manager = IdleExpiryManager(1000)
    busy = channel("busy")
    manager.update(busy, 0)
    busy.handle_mute_event(ChannelMuteEvent.REQUEST_RECEIVED)

    assert list(manager.expired(2000 * MS)) == []
    busy.handle_mute_event(ChannelMuteEvent.RESPONSE_SENT)
    busy.maybe_unmute()
    assert list(manager.expired(2500 * MS)) == []
    assert list(manager.expired(3100 * MS)) == [busy]


def test_channel_whose_response_nobody_reads_expires() -> None:
    manager = IdleExpiryManager(1000)
    stuck = channel("stuck")
    manager.update(stuck, 0)
    stuck.handle_mute_event(ChannelMuteEvent.REQUEST_RECEIVED)
    stuck.pending_send = NetworkSend([b"unread"], 6)

    assert list(manager.expired(1100 * MS)) == [stuck]


def test_negative_time_out_never_expires() -> None:
    manager = IdleExpiryManager(NEVER)
    manager.update(channel("idle"), 0)

    assert list(manager.expired(10**18)) == []
    assert manager.least_recently_used() is not None


def test_removed_channel_is_unknown() -> None:
    manager = IdleExpiryManager(1000)
    gone = channel("gone")
    manager.update(gone, 0)

    manager.remove(gone)
    manager.remove(gone)

    assert manager.least_recently_used() is None
    assert list(manager.expired(5000 * MS)) == []


@pytest.mark.parametrize("max_idle_ms", [0, 10, 1000, 600_000])
def test_granularity_is_little_against_the_time_out(max_idle_ms: int) -> None:
    granularity_ns = IdleExpiryManager(max_idle_ms).granularity_ns

    assert granularity_ns <= max_idle_ms * MS / 100
    assert granularity_ns <= 1000 * MS
