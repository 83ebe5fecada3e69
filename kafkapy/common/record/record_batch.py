"""What all record batches have in common, and the constants of the formats."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Final

from kafkapy.common.compression import CompressionType
from kafkapy.common.record.record import Record, TimestampType

MAGIC_VALUE_V0: Final = 0
MAGIC_VALUE_V1: Final = 1
MAGIC_VALUE_V2: Final = 2
CURRENT_MAGIC_VALUE: Final = MAGIC_VALUE_V2

# Every format starts alike: offset int64, size int32 of what follows, and the magic at byte 16.
OFFSET_LENGTH: Final = 8
SIZE_LENGTH: Final = 4
LOG_OVERHEAD: Final = OFFSET_LENGTH + SIZE_LENGTH
MAGIC_OFFSET: Final = 16
HEADER_SIZE_UP_TO_MAGIC: Final = MAGIC_OFFSET + 1
RECORD_BATCH_OVERHEAD: Final = 61
# Without offset and size: crc 4, magic 1, attributes 1, [timestamp 8], key size 4, value size 4.
RECORD_OVERHEAD_V0: Final = 14
RECORD_OVERHEAD_V1: Final = 22

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_PARTITION_LEADER_EPOCH: Final = -1

COMPRESSION_CODEC_MASK: Final = 0x07
TIMESTAMP_TYPE_MASK: Final = 0x08
TRANSACTIONAL_FLAG_MASK: Final = 0x10
CONTROL_FLAG_MASK: Final = 0x20
DELETE_HORIZON_FLAG_MASK: Final = 0x40

_MAX_INT32: Final = 2**31 - 1


class RecordBatch(ABC):
    """A batch of any magic, its header decoded once. Not thread-safe while a setter runs.

    Fields a magic does not have carry the NO_… constants; `count` is None where the format does
    not store it.

    Ports: org.apache.kafka.common.record.RecordBatch
    """

    __slots__ = (
        "attributes",
        "base_sequence",
        "count",
        "crc",
        "last_offset",
        "leader_epoch",
        "magic",
        "max_timestamp",
        "producer_epoch",
        "producer_id",
        "size_in_bytes",
    )

    magic: int
    size_in_bytes: int
    last_offset: int
    attributes: int
    crc: int
    max_timestamp: int
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int | None

    @property
    @abstractmethod
    def base_offset(self) -> int:
        """The first record's offset; a compressed v0/v1 batch has to be decompressed for it."""

    @property
    @abstractmethod
    def is_valid(self) -> bool:
        """Whether the stored checksum is right."""

    @abstractmethod
    def ensure_valid(self) -> None:
        """Raises CorruptRecordError unless the size is possible and the checksum right."""

    @abstractmethod
    def records(self) -> Iterator[Record]:
        """The records, decompressed as they are read.

        Raises InvalidRecordError or CorruptRecordError at the first record that is malformed.
        """

    @abstractmethod
    def to_bytes(self) -> bytes | memoryview:
        """The batch as it is stored."""

    @property
    def next_offset(self) -> int:
        return self.last_offset + 1

    @property
    def compression_type(self) -> CompressionType:
        """Raises UnsupportedCompressionTypeError for an id no codec has."""
        return CompressionType.for_id(self.attributes & COMPRESSION_CODEC_MASK)

    @property
    def is_compressed(self) -> bool:
        return self.attributes & COMPRESSION_CODEC_MASK != 0

    @property
    def timestamp_type(self) -> TimestampType:
        if self.magic == MAGIC_VALUE_V0:
            return TimestampType.NO_TIMESTAMP_TYPE
        if self.attributes & TIMESTAMP_TYPE_MASK:
            return TimestampType.LOG_APPEND_TIME
        return TimestampType.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return self.magic >= MAGIC_VALUE_V2 and self.attributes & TRANSACTIONAL_FLAG_MASK != 0

    @property
    def is_control_batch(self) -> bool:
        return self.magic >= MAGIC_VALUE_V2 and self.attributes & CONTROL_FLAG_MASK != 0

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def last_sequence(self) -> int:
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return increment_sequence(self.base_sequence, self.last_offset - self.base_offset)


class MutableRecordBatch(RecordBatch):
    """A batch in memory whose broker-assigned fields can be set in place.

    The setters write through to the buffer, which must then be writable.

    Ports: org.apache.kafka.common.record.MutableRecordBatch
    """

    __slots__ = ("buffer",)

    buffer: memoryview

    @abstractmethod
    def set_last_offset(self, offset: int) -> None:
        """Moves the batch so that its last record has this offset."""

    @abstractmethod
    def set_max_timestamp(self, timestamp_type: TimestampType, max_timestamp: int) -> None:
        """Recomputes the checksum, but only if something under it changes. Not for magic 0."""

    @abstractmethod
    def set_leader_epoch(self, epoch: int) -> None:
        """Only for magic 2."""

    def to_bytes(self) -> memoryview:
        return self.buffer


def increment_sequence(sequence: int, increment: int) -> int:
    """Sequence numbers wrap from 2**31 - 1 to 0."""
    if sequence > _MAX_INT32 - increment:
        return increment - (_MAX_INT32 - sequence) - 1
    return sequence + increment


def decrement_sequence(sequence: int, decrement: int) -> int:
    """The inverse of increment_sequence."""
    if sequence < decrement:
        return _MAX_INT32 - (decrement - sequence) + 1
    return sequence - decrement
