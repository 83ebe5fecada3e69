import pytest

from kafkapy.common.network.kafka_channel import (
    ChannelMuteEvent,
    ChannelMuteState,
    KafkaChannel,
)
from kafkapy.common.network.memory_pool import MemoryPool
from kafkapy.common.network.send_receive import NetworkReceive, NetworkSend
from tests.helpers.in_memory_transport import InMemoryTransport, transport_pair

S = ChannelMuteState
E = ChannelMuteEvent

LEGAL = {
    (S.NOT_MUTED, E.REQUEST_RECEIVED): S.MUTED_AND_RESPONSE_PENDING,
    (S.MUTED_AND_RESPONSE_PENDING, E.RESPONSE_SENT): S.MUTED,
    (S.MUTED_AND_RESPONSE_PENDING, E.THROTTLE_STARTED): S.MUTED_AND_THROTTLED_AND_RESPONSE_PENDING,
    (S.MUTED_AND_THROTTLED_AND_RESPONSE_PENDING, E.RESPONSE_SENT): S.MUTED_AND_THROTTLED,
    (S.MUTED_AND_THROTTLED_AND_RESPONSE_PENDING, E.THROTTLE_ENDED): S.MUTED_AND_RESPONSE_PENDING,
    (S.MUTED_AND_THROTTLED, E.THROTTLE_ENDED): S.MUTED,
    (S.MUTED, E.THROTTLE_STARTED): S.MUTED_AND_THROTTLED,
}


def channel() -> KafkaChannel:
    return KafkaChannel(
        "c", InMemoryTransport(), receive=NetworkReceive(), client_address="127.0.0.1"
    )


@pytest.mark.parametrize(("state", "event"), LEGAL)
def test_legal_event_moves_on(state: ChannelMuteState, event: ChannelMuteEvent) -> None:
    muted = channel()
    muted.mute_state = state

    muted.handle_mute_event(event)

    assert muted.mute_state is LEGAL[state, event]
    assert muted.is_muted


@pytest.mark.parametrize(("state", "event"), [(s, e) for s in S for e in E if (s, e) not in LEGAL])
def test_illegal_event_raises_and_changes_nothing(
    state: ChannelMuteState, event: ChannelMuteEvent
) -> None:
    muted = channel()
    muted.mute_state = state

    with pytest.raises(ValueError, match=event.name):
        muted.handle_mute_event(event)

    assert muted.mute_state is state


@pytest.mark.parametrize("state", S)
def test_only_a_channel_without_pending_business_is_unmuted(state: ChannelMuteState) -> None:
    muted = channel()
    muted.mute_state = state
    muted.is_muted = state is not S.NOT_MUTED

    assert muted.maybe_unmute() == (state in (S.NOT_MUTED, S.MUTED))
    assert muted.is_muted == (state not in (S.NOT_MUTED, S.MUTED))


def test_channel_is_being_handled_until_its_response_is_on_the_way() -> None:
    busy = channel()
    assert not busy.is_being_handled

    busy.handle_mute_event(E.REQUEST_RECEIVED)
    assert busy.is_being_handled
    assert busy.is_request_in_flight
    busy.pending_send = NetworkSend([b"x"], 1)
    assert not busy.is_being_handled
    busy.pending_send = None
    busy.handle_mute_event(E.RESPONSE_SENT)
    assert not busy.is_request_in_flight


def test_closing_closes_the_transport_and_frees_the_memory_once() -> None:
    ours, theirs = transport_pair()
    pool = MemoryPool(1000)
    receive = NetworkReceive(1000, pool)
    closing = KafkaChannel("c", ours, receive=receive, client_address="127.0.0.1")
    theirs.send(b"\0\0\1\0begin")
    receive.read_from(ours, bytearray(100))
    assert pool.available_bytes == 1000 - 256

    closing.close()
    closing.close()

    assert ours.is_closed
    assert not closing.is_open
    assert pool.available_bytes == 1000
