import threading

import pytest

from kafkapy.network.connection_quotas import ConnectionQuotas, TooManyConnectionsError
from kafkapy.network.socket_server_config import SocketServerConfig
from tests.helpers.waiting import wait_until

INTERNAL, CLIENTS = "INTERNAL", "CLIENTS"


def quotas(
    config: SocketServerConfig,
    *,
    listeners: tuple[str, ...] = (INTERNAL, CLIENTS),
    listener_limits: dict[str, int] | None = None,
) -> ConnectionQuotas:
    return ConnectionQuotas(
        config,
        protected_listener=INTERNAL,
        listeners=listeners,
        listener_limits=listener_limits,
    )


def test_address_may_have_so_many_connections_and_no_more() -> None:
    limited = quotas(SocketServerConfig(max_connections_per_ip=2))

    assert limited.inc(CLIENTS, "10.0.0.1")
    assert limited.inc(INTERNAL, "10.0.0.1")
    with pytest.raises(TooManyConnectionsError, match=r"10\.0\.0\.1 \(at most 2\)"):
        limited.inc(CLIENTS, "10.0.0.1")
    assert limited.inc(CLIENTS, "10.0.0.2")
    limited.dec(INTERNAL, "10.0.0.1")
    assert limited.inc(CLIENTS, "10.0.0.1")
    assert limited.count("10.0.0.1") == 2
    assert limited.total == 3


def test_override_replaces_the_limit_of_one_address() -> None:
    limited = quotas(
        SocketServerConfig(
            max_connections_per_ip=0, max_connections_per_ip_overrides=("127.0.0.1:1",)
        )
    )

    assert limited.inc(CLIENTS, "127.0.0.1")
    with pytest.raises(TooManyConnectionsError):
        limited.inc(CLIENTS, "127.0.0.1")
    with pytest.raises(TooManyConnectionsError):
        limited.inc(CLIENTS, "10.0.0.1")


def test_override_by_name_counts_for_its_addresses() -> None:
    limited = quotas(
        SocketServerConfig(
            max_connections_per_ip=0, max_connections_per_ip_overrides=("localhost:1",)
        )
    )

    assert limited.inc(CLIENTS, "127.0.0.1")


def test_new_connection_waits_for_a_slot_of_the_broker() -> None:
    limited = quotas(SocketServerConfig(max_connections=1))
    limited.inc(CLIENTS, "10.0.0.1")
    counted: list[bool] = []
    thread = threading.Thread(target=lambda: counted.append(limited.inc(CLIENTS, "10.0.0.2")))

    assert not limited.has_slot(CLIENTS)
    thread.start()
    limited.dec(CLIENTS, "10.0.0.1")
    thread.join(30)

    assert counted == [True]
    assert limited.count("10.0.0.2") == 1


def test_protected_listener_does_not_wait_and_others_must_close() -> None:
    limited = quotas(SocketServerConfig(max_connections=1))
    limited.inc(CLIENTS, "10.0.0.1")

    assert limited.inc(INTERNAL, "10.0.0.2")

    assert limited.max_connections_exceeded(CLIENTS)
    assert not limited.max_connections_exceeded(INTERNAL)
    limited.dec(CLIENTS, "10.0.0.1")
    assert not limited.max_connections_exceeded(CLIENTS)


def test_only_listener_is_not_protected() -> None:
    limited = quotas(SocketServerConfig(max_connections=1), listeners=(INTERNAL,))
    limited.inc(INTERNAL, "10.0.0.1")

    assert not limited.has_slot(INTERNAL)


def test_limit_of_one_listener_holds_for_the_protected_one_too() -> None:
    limited = quotas(SocketServerConfig(), listener_limits={INTERNAL: 1})
    limited.inc(INTERNAL, "10.0.0.1")

    assert not limited.has_slot(INTERNAL)
    assert limited.has_slot(CLIENTS)


def test_closing_lets_a_waiting_connection_go() -> None:
    limited = quotas(SocketServerConfig(max_connections=1))
    limited.inc(CLIENTS, "10.0.0.1")
    counted: list[bool] = []
    thread = threading.Thread(target=lambda: counted.append(limited.inc(CLIENTS, "10.0.0.2")))
    thread.start()

    limited.close()

    wait_until(lambda: counted == [False])
    thread.join(30)
