"""Where to go when there is no position, or one that the log no longer has."""

from __future__ import annotations

from enum import Enum

# The timestamps that mean an end of the log in ListOffsets.
LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2


class OffsetResetStrategy(Enum):
    """Values are those of `auto.offset.reset`.

    Ports: org.apache.kafka.clients.consumer.OffsetResetStrategy
    """

    LATEST = "latest"
    EARLIEST = "earliest"
    NONE = "none"

    @property
    def timestamp(self) -> int | None:
        """What to ask ListOffsets for; NONE asks for nothing."""
        return _TIMESTAMPS[self]


_TIMESTAMPS = {
    OffsetResetStrategy.LATEST: LATEST_TIMESTAMP,
    OffsetResetStrategy.EARLIEST: EARLIEST_TIMESTAMP,
    OffsetResetStrategy.NONE: None,
}
