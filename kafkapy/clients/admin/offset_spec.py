"""Which offset of a partition is asked for, and the answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class OffsetSpec(IntEnum):
    """An offset by what it is; one by time is asked for by the time itself, in ms.

    Ports: org.apache.kafka.clients.admin.OffsetSpec
    """

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5


class IsolationLevel(IntEnum):
    """Whether what is not committed yet counts.

    Ports: org.apache.kafka.common.IsolationLevel
    """

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


@dataclass(frozen=True, slots=True)
class ListOffsetsResultInfo:
    """An offset; -1 when there is none, as of a time after the last record.

    Ports: org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo
    """

    offset: int
    timestamp: int
    leader_epoch: int | None
