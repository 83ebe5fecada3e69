"""Control records: what brokers write into partitions beside the clients' records.

key: version int16 | type int16
value of ABORT and COMMIT: version int16 | coordinator epoch int32
"""

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from kafkapy.common.errors import InvalidRecordError
from kafkapy.common.record.record import Record

CURRENT_CONTROL_RECORD_KEY_VERSION: Final = 0
CURRENT_END_TXN_MARKER_VERSION: Final = 0

_KEY: Final = struct.Struct(">hh")
_END_TXN_VALUE: Final = struct.Struct(">hi")


class ControlRecordType(IntEnum):
    """The type in a control record's key; a type of a newer release reads as UNKNOWN.

    Ports: org.apache.kafka.common.record.ControlRecordType
    """

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6

    @staticmethod
    def parse(key: bytes | None) -> "ControlRecordType":
        """Raises InvalidRecordError for a key that no control record can have."""
        if key is None or len(key) < _KEY.size:
            raise InvalidRecordError("control record key is shorter than four bytes")
        version, type_id = _KEY.unpack_from(key)
        if version < 0:
            raise InvalidRecordError(f"control record key has an invalid version {version}")
        if 0 <= type_id <= ControlRecordType.KRAFT_VOTERS:
            return ControlRecordType(type_id)
        return ControlRecordType.UNKNOWN

    def key(self) -> bytes:
        """The key of a control record of this type."""
        if self is ControlRecordType.UNKNOWN:
            raise ValueError("a control record of unknown type cannot be written")
        return _KEY.pack(CURRENT_CONTROL_RECORD_KEY_VERSION, self)


@dataclass(frozen=True, slots=True)
class EndTransactionMarker:
    """The commit or abort of a transaction.

    Ports: org.apache.kafka.common.record.EndTransactionMarker
    """

    control_type: ControlRecordType
    coordinator_epoch: int

    def __post_init__(self) -> None:
        if self.control_type not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
            raise InvalidRecordError(f"{self.control_type.name} does not end a transaction")

    def value(self) -> bytes:
        """The value of the marker's control record."""
        return _END_TXN_VALUE.pack(CURRENT_END_TXN_MARKER_VERSION, self.coordinator_epoch)

    @staticmethod
    def deserialize(record: Record) -> "EndTransactionMarker":
        """Raises InvalidRecordError unless the record ends a transaction."""
        control_type = ControlRecordType.parse(record.key)
        if record.value is None or len(record.value) < _END_TXN_VALUE.size:
            raise InvalidRecordError("end transaction marker has too short a value")
        version, coordinator_epoch = _END_TXN_VALUE.unpack_from(record.value)
        if version < 0:
            raise InvalidRecordError(f"end transaction marker has an invalid version {version}")
        return EndTransactionMarker(control_type, coordinator_epoch)
