"""Which connections have been idle for too long."""

from collections import OrderedDict
from collections.abc import Callable, Iterator

from kafkapy.common.network.kafka_channel import KafkaChannel

NEVER = -1
_MAX_GRANULARITY_NS = 1_000_000_000


class IdleExpiryManager:
    """The channels of a selector, the longest idle first. For one thread.

    Activity need not be told again within `granularity_ns`, which is little against the time-out:
    that spares nearly every request the book-keeping.

    Ports: org.apache.kafka.common.network.Selector.IdleExpiryManager
    """

    def __init__(
        self, max_idle_ms: int, has_peer_closed: Callable[[int], bool] = lambda _: False
    ) -> None:
        """`has_peer_closed` is asked by descriptor."""
        # constant after construction
        self._has_peer_closed = has_peer_closed
        self._max_idle_ns = max_idle_ms * 1_000_000 if max_idle_ms >= 0 else NEVER
        self.granularity_ns = _MAX_GRANULARITY_NS
        if self._max_idle_ns != NEVER:
            self.granularity_ns = min(self._max_idle_ns // 100, _MAX_GRANULARITY_NS)
        # Ordered by `last_active_ns`, ascending.
        self._order: OrderedDict[KafkaChannel, None] = OrderedDict()

    def update(self, channel: KafkaChannel, now_ns: int) -> None:
        """Something happened on the channel; the first time makes it known here."""
        channel.last_active_ns = now_ns
        self._order[channel] = None
        self._order.move_to_end(channel)

    def remove(self, channel: KafkaChannel) -> None:
        self._order.pop(channel, None)

    def expired(self, now_ns: int) -> Iterator[KafkaChannel]:
        """Take out the channels that have been idle for the whole time.

        A channel whose request is being handled is not idle, however long that takes, unless its
        peer has gone: requests that wait for days must not keep such connections.
        """
        if self._max_idle_ns == NEVER:
            return
        while (channel := self.least_recently_used()) is not None:
            # Up to `granularity_ns` of the latest activity may not have been told.
            if now_ns - channel.last_active_ns < self._max_idle_ns + self.granularity_ns:
                return
            if channel.is_being_handled and not self._has_peer_closed(channel.fd):
                self.update(channel, now_ns)
            else:
                del self._order[channel]
                yield channel

    def least_recently_used(self) -> KafkaChannel | None:
        return next(iter(self._order), None)
