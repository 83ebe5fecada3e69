import pytest

from kafkapy.clients.cluster_connection_states import (
    FOREVER_MS,
    ClusterConnectionStates,
    ConnectionState,
)
from kafkapy.common.errors import SaslAuthenticationError
from kafkapy.common.network.socket_address import SocketAddress

HOST = "host"


def address(name: str) -> SocketAddress:
    return SocketAddress(2, (name, 9092))


class Resolver:
    def __init__(self, *names: str) -> None:
        self.answers = [address(name) for name in names]
        self.calls = 0

    def __call__(self, host: str, port: int) -> list[SocketAddress]:
        self.calls += 1
        return list(self.answers)


def make(resolver: Resolver | None = None) -> ClusterConnectionStates:
    return ClusterConnectionStates(
        reconnect_backoff_ms=100,
        reconnect_backoff_max_ms=1_000,
        connection_setup_timeout_ms=500,
        connection_setup_timeout_max_ms=2_000,
        host_resolver=resolver or Resolver("a"),
    )


def connect(states: ClusterConnectionStates, now_ms: int = 0) -> None:
    states.connecting(1, now_ms, HOST, 9092)


def test_unknown_node_can_be_connected_to() -> None:
    states = make()

    assert states.can_connect(1, 0)
    assert not states.is_disconnected(1)
    assert states.connection_delay_ms(1, 0) == 0
    assert states.state(1) is ConnectionState.DISCONNECTED


def test_connection_passes_its_states() -> None:
    states = make()

    connect(states)
    assert not states.can_connect(1, 0)
    assert states.is_connecting(1) and states.is_preparing_connection(1)
    assert not states.is_connected(1)

    states.checking_api_versions(1)
    assert states.is_connected(1) and states.is_preparing_connection(1)
    assert not states.is_connecting(1) and not states.is_ready(1, 0)

    states.ready(1)
    assert states.is_ready(1, 0) and states.has_ready_nodes(0)
    assert states.connection_delay_ms(1, 0) == FOREVER_MS


def test_disconnected_node_waits_longer_with_each_failure() -> None:
    states = make()
    waits = []

    for _ in range(6):
        connect(states)
        states.disconnected(1, 0)
        waits.append(states.connection_delay_ms(1, 0))
        assert states.is_blacked_out(1, 0) and not states.can_connect(1, 0)

    assert waits[0] <= 120
    assert waits[3] >= 0.8 * 800
    assert max(waits) <= 1_000
    assert states.can_connect(1, 1_000)


def test_ready_connection_starts_the_backoff_over() -> None:
    states = make()
    for _ in range(5):
        connect(states)
        states.disconnected(1, 0)
    connect(states)
    states.ready(1)

    states.disconnected(1, 0)

    assert states.connection_delay_ms(1, 0) <= 120


def test_connecting_takes_at_most_its_time() -> None:
    states = make()
    connect(states)

    assert states.nodes_with_connection_setup_timeout(300) == []
    assert states.nodes_with_connection_setup_timeout(700) == [1]
    states.disconnected(1, 700)
    connect(states, 2_000)
    assert states.nodes_with_connection_setup_timeout(2_700) == []  # it doubles


def test_throttled_node_is_not_ready() -> None:
    states = make()
    connect(states)
    states.ready(1)

    states.throttle(1, 500)
    states.throttle(1, 300)

    assert not states.is_ready(1, 499) and not states.has_ready_nodes(499)
    assert states.throttle_delay_ms(1, 400) == 100
    assert states.poll_delay_ms(1, 400) == 100
    assert states.is_ready(1, 500)


def test_addresses_of_a_host_are_tried_in_turn() -> None:
    resolver = Resolver("a", "b", "c")
    states = make(resolver)
    tried = []

    for _ in range(3):
        tried.append(states.connecting(1, 0, HOST, 9092))
        states.disconnected(1, 0)

    assert tried == [address("a"), address("b"), address("c")]
    assert resolver.calls == 1


def test_host_is_resolved_again_after_its_last_address() -> None:
    resolver = Resolver("a", "b")
    states = make(resolver)
    for _ in range(2):
        states.connecting(1, 0, HOST, 9092)
        states.disconnected(1, 0)
    resolver.answers = [address("b"), address("d")]

    assert states.connecting(1, 0, HOST, 9092) == address("d")  # b has just failed
    assert resolver.calls == 2


def test_moved_node_is_resolved_at_its_new_host() -> None:
    resolver = Resolver("a")
    states = make(resolver)
    connect(states)
    states.disconnected(1, 0)

    states.connecting(1, 0, "elsewhere", 9092)

    assert resolver.calls == 2


def test_failed_authentication_is_remembered_until_the_next_attempt() -> None:
    states = make()
    connect(states)
    error = SaslAuthenticationError("wrong password")

    states.authentication_failed(1, 0, error)

    assert states.authentication_error(1) is error
    assert states.is_disconnected(1) and not states.can_connect(1, 0)
    connect(states, 1_000)
    assert states.authentication_error(1) is None


def test_removed_node_is_forgotten_with_its_backoff() -> None:
    states = make()
    connect(states)
    states.disconnected(1, 0)

    states.remove(1)

    assert states.can_connect(1, 0)
    with pytest.raises(KeyError):
        states.ready(1)
