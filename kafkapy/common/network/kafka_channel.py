"""One connection, as its selector and processor see it."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

from kafkapy.common.network.authenticator import Authenticator
from kafkapy.common.network.send_receive import NetworkReceive, NetworkSend
from kafkapy.common.network.transport_layer import TransportLayer
from kafkapy.common.security.kafka_principal import ANONYMOUS, KafkaPrincipal


class ChannelMuteState(IntEnum):
    """Why nothing is read from a connection.

    Ports: org.apache.kafka.common.network.KafkaChannel.ChannelMuteState
    """

    NOT_MUTED = 0
    MUTED = 1
    MUTED_AND_RESPONSE_PENDING = 2
    MUTED_AND_THROTTLED = 3
    MUTED_AND_THROTTLED_AND_RESPONSE_PENDING = 4


class ChannelMuteEvent(IntEnum):
    """What moves a connection from one mute state to another.

    Ports: org.apache.kafka.common.network.KafkaChannel.ChannelMuteEvent
    """

    REQUEST_RECEIVED = 0
    RESPONSE_SENT = 1
    THROTTLE_STARTED = 2
    THROTTLE_ENDED = 3


_State = ChannelMuteState
_Event = ChannelMuteEvent

# What is absent here is illegal. A response may be sent before or after its throttling has ended.
_TRANSITIONS: Final = {
    (_State.NOT_MUTED, _Event.REQUEST_RECEIVED): _State.MUTED_AND_RESPONSE_PENDING,
    (_State.MUTED, _Event.THROTTLE_STARTED): _State.MUTED_AND_THROTTLED,
    (_State.MUTED_AND_RESPONSE_PENDING, _Event.RESPONSE_SENT): _State.MUTED,
    (
        _State.MUTED_AND_RESPONSE_PENDING,
        _Event.THROTTLE_STARTED,
    ): _State.MUTED_AND_THROTTLED_AND_RESPONSE_PENDING,
    (_State.MUTED_AND_THROTTLED, _Event.THROTTLE_ENDED): _State.MUTED,
    (
        _State.MUTED_AND_THROTTLED_AND_RESPONSE_PENDING,
        _Event.RESPONSE_SENT,
    ): _State.MUTED_AND_THROTTLED,
    (
        _State.MUTED_AND_THROTTLED_AND_RESPONSE_PENDING,
        _Event.THROTTLE_ENDED,
    ): _State.MUTED_AND_RESPONSE_PENDING,
}
# The same by state and then by event: this is asked twice for every request.
_NEXT_STATE: Final = tuple(tuple(_TRANSITIONS.get((s, e)) for e in _Event) for s in _State)


class ClientInformation(NamedTuple):
    """What a client says it is, by ApiVersions.

    Ports: org.apache.kafka.common.network.ClientInformation
    """

    software_name: str
    software_version: str


UNKNOWN_CLIENT: Final = ClientInformation("unknown", "unknown")


class KafkaChannel:
    """A connection and its state. For the thread of its selector only.

    Ports: org.apache.kafka.common.network.KafkaChannel
    """

    __slots__ = (
        "authenticator",
        "client_address",
        "client_information",
        "fd",
        "id",
        "interest",
        "is_muted",
        "is_open",
        "last_active_ns",
        "last_receive_poll",
        "mute_state",
        "pending_send",
        "principal",
        "receive",
        "transport",
    )

    def __init__(
        self,
        channel_id: str,
        transport: TransportLayer,
        *,
        receive: NetworkReceive,
        client_address: str,
        principal: KafkaPrincipal = ANONYMOUS,
    ) -> None:
        # constant after construction
        self.id = channel_id
        self.transport = transport
        self.fd = transport.fileno()
        self.receive = receive
        self.client_address = client_address
        self.principal = principal
        self.authenticator: Authenticator | None = None  # set by whoever builds the channel

        self.client_information = UNKNOWN_CLIENT
        self.is_open = True
        self.mute_state = ChannelMuteState.NOT_MUTED
        self.is_muted = False  # whether mute_state is another than NOT_MUTED
        self.pending_send: NetworkSend | None = None
        # kept by the selector
        self.interest = 0
        self.last_active_ns = 0
        self.last_receive_poll = 0

    def prepare(self) -> int:
        """Handshake and authentication, as far as they go now: the events to wait for, 0 when the
        channel is ready for use. Raises what they raise."""
        awaited = self.transport.handshake()
        if awaited or self.authenticator is None:
            return awaited
        return self.authenticator.authenticate()

    @property
    def is_being_handled(self) -> bool:
        """Its request is with a handler or waits for memory, or it is throttled: not its turn."""
        return (self.is_muted and self.pending_send is None) or self.receive.is_waiting_for_memory

    @property
    def is_request_in_flight(self) -> bool:
        """A request has come and its response is not yet sent."""
        return (
            self.mute_state is ChannelMuteState.MUTED_AND_RESPONSE_PENDING
            or self.mute_state is ChannelMuteState.MUTED_AND_THROTTLED_AND_RESPONSE_PENDING
        )

    def handle_mute_event(self, event: ChannelMuteEvent) -> None:
        """A request mutes the channel; what follows decides when `maybe_unmute` may unmute it.

        Raises ValueError, and changes nothing, when the event is illegal in this state.
        """
        state = _NEXT_STATE[self.mute_state][event]
        if state is None:
            raise ValueError(f"{event.name} is illegal while {self.id} is {self.mute_state.name}")
        self.mute_state = state
        self.is_muted = True

    def maybe_unmute(self) -> bool:
        """Whether it is unmuted now: nothing is pending and it is not throttled."""
        if self.mute_state is ChannelMuteState.MUTED:
            self.mute_state = ChannelMuteState.NOT_MUTED
            self.is_muted = False
        return not self.is_muted

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            self.receive.close()
            self.transport.close()
