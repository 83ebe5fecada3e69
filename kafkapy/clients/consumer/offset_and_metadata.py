"""Offsets as applications hand them in and get them back."""

from __future__ import annotations

from typing import NamedTuple


class OffsetAndMetadata(NamedTuple):
    """A committed position: the next offset to read, and a text of the application's own.

    `leader_epoch` is that of the last record consumed, where it is known.

    Ports: org.apache.kafka.clients.consumer.OffsetAndMetadata
    """

    offset: int
    metadata: str = ""
    leader_epoch: int | None = None


class OffsetAndTimestamp(NamedTuple):
    """Where a look-up by time ended: the first record at or after the time asked for.

    Ports: org.apache.kafka.clients.consumer.OffsetAndTimestamp
    """

    offset: int
    timestamp: int
    leader_epoch: int | None = None
