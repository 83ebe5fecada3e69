"""Where reading starts or ends, before any broker was asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from kafkapy.common.types import TopicPartition


class LogEnd(IntEnum):
    """An end of the log, of all partitions or of one; the numbers stand for it in JSON.

    Ports: org.apache.spark.sql.kafka010.KafkaOffsetRangeLimit
    """

    EARLIEST = -2
    LATEST = -1


@dataclass(frozen=True, slots=True)
class SpecificOffsets:
    """An offset for each partition, some of them perhaps a LogEnd.

    Ports: org.apache.spark.sql.kafka010.SpecificOffsetRangeLimit
    """

    option: str
    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class SpecificTimestamps:
    """The first record at or after a time of its own for each partition.

    Ports: org.apache.spark.sql.kafka010.SpecificTimestampRangeLimit
    """

    option: str
    timestamps_ms: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class GlobalTimestamp:
    """The first record at or after one time, in all partitions.

    Ports: org.apache.spark.sql.kafka010.GlobalTimestampRangeLimit
    """

    option: str
    timestamp_ms: int


OffsetRangeLimit = LogEnd | SpecificOffsets | SpecificTimestamps | GlobalTimestamp
