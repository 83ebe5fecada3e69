"""How many connections there may be, and from whom."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Mapping

from kafkapy.common.errors import KafkaError
from kafkapy.network.socket_server_config import NO_LIMIT, SocketServerConfig


class TooManyConnectionsError(KafkaError):
    """One address has as many connections as it may have.

    Ports: kafka.network.TooManyConnectionsException
    """

    def __init__(self, address: str, limit: int) -> None:
        super().__init__(f"Too many connections from {address} (at most {limit})")
        self.address = address
        self.limit = limit


class ConnectionQuotas:
    """Counts the connections of one broker. Thread-safe.

    At its listener's or the broker's limit a new connection waits for another to end, which stops
    that acceptor. The inter-broker listener is protected: it does not wait for the broker's limit;
    instead the processors of other listeners close their least recently used connections.

    Ports: kafka.network.ConnectionQuotas
    """

    def __init__(
        self,
        config: SocketServerConfig,
        *,
        protected_listener: str,
        listeners: tuple[str, ...],
        listener_limits: Mapping[str, int] | None = None,
    ) -> None:
        # constant after construction
        self._max_connections = config.max_connections
        self._max_per_ip = config.max_connections_per_ip
        self._per_ip_overrides = _resolved(config.connections_per_ip_overrides())
        self._protected_listener = protected_listener
        self._single_listener = len(listeners) == 1
        self._listener_limits = dict(listener_limits or {})

        self._changed = threading.Condition()
        # guarded by self._changed
        self._by_listener: Counter[str] = Counter()
        self._by_address: Counter[str] = Counter()
        self._total = 0
        self._closed = False

    def inc(self, listener: str, address: str) -> bool:
        """Count a connection, after waiting for a slot; False when the broker is closing.

        Raises TooManyConnectionsError when its address has too many.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._has_slot_locked(listener))
            if self._closed:
                return False
            limit = self._per_ip_overrides.get(address, self._max_per_ip)
            if self._by_address[address] >= limit:
                raise TooManyConnectionsError(address, limit)
            self._by_listener[listener] += 1
            self._by_address[address] += 1
            self._total += 1
            return True

    def dec(self, listener: str, address: str) -> None:
        with self._changed:
            self._by_listener[listener] -= 1
            self._total -= 1
            self._by_address[address] -= 1
            if self._by_address[address] == 0:
                del self._by_address[address]
            self._changed.notify_all()

    def has_slot(self, listener: str) -> bool:
        """Whether `inc` would go through without waiting."""
        with self._changed:
            return self._has_slot_locked(listener)

    def max_connections_exceeded(self, listener: str) -> bool:
        """Whether a processor of this listener must close a connection."""
        if self._max_connections == NO_LIMIT:
            return False
        with self._changed:
            return self._total > self._max_connections and not self._is_protected(listener)

    def count(self, address: str) -> int:
        with self._changed:
            return self._by_address[address]

    @property
    def total(self) -> int:
        with self._changed:
            return self._total

    def close(self) -> None:
        """Let whoever waits for a slot go."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _has_slot_locked(self, listener: str) -> bool:
        if self._by_listener[listener] >= self._listener_limits.get(listener, NO_LIMIT):
            return False
        return self._is_protected(listener) or self._total < self._max_connections

    def _is_protected(self, listener: str) -> bool:
        # A single listener is everybody's: protecting it would leave no limit.
        return listener == self._protected_listener and not self._single_listener


def _resolved(overrides: Mapping[str, int]) -> dict[str, int]:
    """Overrides by address; a name stands for all its addresses, or for itself if it has none."""
    by_address = {}
    for host, limit in overrides.items():
        try:
            addresses = {str(info[4][0]) for info in socket.getaddrinfo(host, None)}
        except OSError:
            addresses = {host}
        by_address.update(dict.fromkeys(addresses, limit))
    return by_address
