"""What can go wrong on disk and has no code on the wire (or a code only through its base class)."""

from kafkapy.common.errors import (
    InvalidRecordError,
    KafkaError,
    OffsetOutOfRangeError,
)


class CorruptIndexError(KafkaError):
    """An index file does not fit its segment and must be built anew.

    Ports: org.apache.kafka.storage.internals.log.CorruptIndexException
    """


class CorruptSnapshotError(KafkaError):
    """A producer snapshot cannot be read and is to be thrown away.

    Ports: org.apache.kafka.storage.internals.log.CorruptSnapshotException
    """


class InvalidOffsetError(KafkaError):
    """An index entry that does not come after the one before.

    Ports: org.apache.kafka.common.errors.InvalidOffsetException
    """


class LogSegmentOffsetOverflowError(KafkaError):
    """An offset too far from its segment's base to fit an index.

    Ports: org.apache.kafka.common.errors.LogSegmentOffsetOverflowException
    """


class OffsetsOutOfOrderError(InvalidRecordError):
    """Records to append as they are, but their offsets do not increase.

    Ports: kafka.common.OffsetsOutOfOrderException
    """


class UnexpectedAppendOffsetError(OffsetOutOfRangeError):
    """A follower was given records that begin before its log end.

    Ports: kafka.common.UnexpectedAppendOffsetException
    """

    def __init__(self, message: str, *, first_offset: int, last_offset: int) -> None:
        super().__init__(message)
        self.first_offset = first_offset
        self.last_offset = last_offset


class LogCleaningAbortedError(KafkaError):
    """Somebody else needs the log that is being compacted.

    Ports: kafka.common.LogCleaningAbortedException
    """


class CleanerShutdownError(KafkaError):
    """The thread that compacts a log has been asked to stop.

    Ports: kafka.common.ThreadShutdownException
    """


class LogDirLockedError(KafkaError):
    """Another process uses the log directory."""


class InconsistentBrokerMetadataError(KafkaError):
    """The log directories do not belong to one broker, or not to this one.

    Ports: kafka.common.InconsistentBrokerMetadataException
    """
