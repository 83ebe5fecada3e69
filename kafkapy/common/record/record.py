"""One record: as handed in (SimpleRecord) and as read from a batch of any magic (Record)."""

from enum import IntEnum
from typing import Final, NamedTuple

NO_TIMESTAMP: Final = -1


class TimestampType(IntEnum):
    """What a batch's timestamps mean.

    Ports: org.apache.kafka.common.record.TimestampType
    """

    NO_TIMESTAMP_TYPE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1

    @staticmethod
    def for_name(name: str) -> "TimestampType":
        """The type of a configuration value (`message.timestamp.type`)."""
        if name == "CreateTime":
            return TimestampType.CREATE_TIME
        if name == "LogAppendTime":
            return TimestampType.LOG_APPEND_TIME
        raise ValueError(f"unknown timestamp type {name!r}")


class Header(NamedTuple):
    """A record header.

    Ports: org.apache.kafka.common.header.internals.RecordHeader
    """

    key: str
    value: bytes | None


class SimpleRecord(NamedTuple):
    """A record that is not yet in any batch.

    Ports: org.apache.kafka.common.record.SimpleRecord
    """

    timestamp: int = NO_TIMESTAMP
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[Header, ...] = ()


class Record(NamedTuple):
    """A record read from a batch.

    `magic` is the record's own: inside a compressed v0/v1 message set it may differ from the
    wrapper's. `size_in_bytes` is what the record takes when it is not compressed.

    Ports: org.apache.kafka.common.record.Record
    """

    magic: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    sequence: int
    size_in_bytes: int
