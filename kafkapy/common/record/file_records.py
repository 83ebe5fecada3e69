"""Records in a file, and slices of such files that are sent without passing through Python."""

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol

from kafkapy.common.errors import CorruptRecordError, KafkaError
from kafkapy.common.record.file_channel_record_batch import FileChannelRecordBatch
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record import NO_TIMESTAMP, Record
from kafkapy.common.record.record_batch import (
    HEADER_SIZE_UP_TO_MAGIC,
    LOG_OVERHEAD,
    MAGIC_VALUE_V2,
    NO_PARTITION_LEADER_EPOCH,
    RECORD_BATCH_OVERHEAD,
    RECORD_OVERHEAD_V0,
)
from kafkapy.utils.varint import BytesLike

MAX_FILE_SIZE: Final = 2**31 - 1

# Headers are read through a window instead of one read each: small batches share one read. A search
# starts at an index entry, so its batch is near; a scan goes through the whole file.
_SEARCH_WINDOW_BYTES: Final = 4 * 1024
_SCAN_WINDOW_BYTES: Final = 16 * 1024

_OFFSET_AND_SIZE: Final = struct.Struct(">qi")
_OFFSETS_HEADER: Final = struct.Struct(">qiib4xhi")  # up to the last offset delta of magic 2


class FileChannel(Protocol):
    """An open file, as the FileSystem seam hands it out. All methods raise OSError."""

    @property
    def path(self) -> str: ...

    def fileno(self) -> int: ...

    def read_at(self, size: int, position: int) -> bytes:
        """May return less than size; nothing only at the end of the file."""
        ...

    def write_at(self, data: BytesLike, position: int) -> int:
        """How many bytes were written, at least one; may be less than asked."""
        ...

    def truncate(self, size: int) -> None: ...

    def flush(self) -> None:
        """Forces data to the disk (fsync)."""
        ...

    def size(self) -> int: ...

    def rename_to(self, path: str) -> None:
        """Moves the file atomically; `path` is the new one from then on."""
        ...

    def close(self) -> None: ...


class LogOffsetPosition(NamedTuple):
    """Where a batch is: its last offset, its position in the file and its size."""

    offset: int
    position: int
    size: int


class TimestampAndOffset(NamedTuple):
    """A record found by its timestamp; the epoch is None where the format has none."""

    timestamp: int
    offset: int
    leader_epoch: int | None


class FileRecords:
    """A file of batches, or a slice of one.

    One thread at a time may change the file (append, truncate_to, trim); any may read beside it.
    A slice keeps its bounds for ever: appends do not move them.

    Ports: org.apache.kafka.common.record.FileRecords
    """

    __slots__ = ("_channel", "_size", "is_slice", "position")

    def __init__(
        self,
        channel: FileChannel,
        start: int = 0,
        end: int = MAX_FILE_SIZE,
        *,
        is_slice: bool = False,
    ) -> None:
        """`end` below the file's size hides what lies after it: a preallocated file's zeros."""
        self._channel = channel
        self.position = start  # absolute start in the file
        self.is_slice = is_slice
        if not is_slice:
            file_size = channel.size()
            if file_size > MAX_FILE_SIZE:
                raise KafkaError(f"{channel.path} is larger than a segment may be: {file_size}")
            end = min(file_size, end)
        self._size = end - start

    @property
    def path(self) -> str:
        return self._channel.path

    @property
    def channel(self) -> FileChannel:
        return self._channel

    @property
    def size_in_bytes(self) -> int:
        return self._size

    def fileno(self) -> int:
        return self._channel.fileno()

    def append(self, records: MemoryRecords) -> int:
        """Writes all of records at the end; returns their size.

        When the channel fails the size stays as it was, so that what was written in part is not
        part of these records.
        """
        data = records.buffer
        total = len(data)
        if total > MAX_FILE_SIZE - self._size:
            raise ValueError(f"{total} bytes do not fit a file of {self._size} bytes")
        position = self.position + self._size
        written = self._channel.write_at(data, position)
        while written < total:
            written += self._channel.write_at(data[written:], position + written)
        self._size += total
        return total

    def slice(self, position: int, size: int) -> "FileRecords":
        """Up to size bytes from a position relative to this start, as far as there are any now."""
        available = self._available_bytes(position, size)
        start = self.position + position
        return FileRecords(self._channel, start, start + available, is_slice=True)

    def read(self, position: int, size: int) -> bytes:
        """Up to size bytes from a position relative to this start; shorter only at the end."""
        return self._read_fully(self._available_bytes(position, size), position)

    def to_memory_records(self) -> MemoryRecords:
        """All of it, loaded."""
        return MemoryRecords(self.read(0, self._size))

    def batches(self, start: int = 0) -> Iterator[FileChannelRecordBatch]:
        """The batches from a position on; each loads its records only when asked.

        An incomplete batch at the end is left out. Raises CorruptRecordError for a batch with an
        impossible size.
        """
        end = self._size
        position = start
        window = b""
        window_start = position
        while position < end - HEADER_SIZE_UP_TO_MAGIC:
            offset = position - window_start
            header_size = min(RECORD_BATCH_OVERHEAD, end - position)
            if len(window) - offset < header_size:
                window = self._read_fully(min(_SCAN_WINDOW_BYTES, end - position), position)
                window_start = position
                offset = 0
                if len(window) < header_size:
                    return
            _, length = _OFFSET_AND_SIZE.unpack_from(window, offset)
            size = _checked_batch_size(length, position)
            if size > end - position:
                return
            yield FileChannelRecordBatch(self, position, window[offset : offset + header_size])
            position += size

    def records(self) -> Iterator[Record]:
        """The records of all batches."""
        for batch in self.batches():
            yield from batch.records()

    def search_for_offset_with_size(
        self, target_offset: int, starting_position: int
    ) -> LogOffsetPosition | None:
        """The first batch from a position on whose last offset is at least the target."""
        end = self._size
        position = starting_position
        window = b""
        window_start = position
        needed = _OFFSETS_HEADER.size
        while position <= end - LOG_OVERHEAD - RECORD_OVERHEAD_V0:
            offset = position - window_start
            if len(window) - offset < needed:
                window = self._read_fully(min(_SEARCH_WINDOW_BYTES, end - position), position)
                window_start = position
                offset = 0
                if len(window) < needed:
                    # The last entry of a v0/v1 file may be shorter than a v2 header.
                    window += bytes(needed - len(window))
            base_offset, length, _, magic, _, delta = _OFFSETS_HEADER.unpack_from(window, offset)
            size = _checked_batch_size(length, position)
            if size > end - position:
                return None
            last_offset = base_offset + delta if magic >= MAGIC_VALUE_V2 else base_offset
            if last_offset >= target_offset:
                return LogOffsetPosition(last_offset, position, size)
            position += size
        return None

    def search_for_timestamp(
        self, target_timestamp: int, starting_position: int, starting_offset: int
    ) -> TimestampAndOffset | None:
        """The first record from both starts on whose timestamp is at least the target."""
        for batch in self.batches(starting_position):
            if batch.max_timestamp < target_timestamp:
                continue
            for record in batch.records():
                if record.timestamp >= target_timestamp and record.offset >= starting_offset:
                    return TimestampAndOffset(
                        record.timestamp, record.offset, _epoch_or_none(batch.leader_epoch)
                    )
        return None

    def largest_timestamp_after(self, starting_position: int) -> TimestampAndOffset:
        """The greatest timestamp from a position on, with the last offset of its batch."""
        timestamp = NO_TIMESTAMP
        offset = -1
        epoch = NO_PARTITION_LEADER_EPOCH
        for batch in self.batches(starting_position):
            if batch.max_timestamp > timestamp:
                timestamp = batch.max_timestamp
                offset = batch.last_offset
                epoch = batch.leader_epoch
        return TimestampAndOffset(timestamp, offset, _epoch_or_none(epoch))

    def truncate_to(self, size: int) -> int:
        """Cuts the file; returns how many bytes went."""
        original = self._size
        if size < 0 or size > original:
            raise KafkaError(f"cannot truncate {self.path} of {original} bytes to {size}")
        if size < self._channel.size():
            self._channel.truncate(size)
            self._size = size
        return original - size

    def trim(self) -> None:
        """Gives back what was preallocated and not used.

        Durably: nobody flushes the file again if its records are on disk already, and zeros behind
        them would pass for damage.
        """
        if self._size < self._channel.size():
            self.truncate_to(self._size)
            self._channel.flush()

    def flush(self) -> None:
        self._channel.flush()

    def rename_to(self, path: str) -> None:
        self._channel.rename_to(path)

    def close_handlers(self) -> None:
        """Closes without trimming."""
        self._channel.close()

    def close(self) -> None:
        """Trims, flushes and closes."""
        self.truncate_to(self._size)
        self.flush()
        self._channel.close()

    def __repr__(self) -> str:
        return f"FileRecords({self.path}, position={self.position}, size={self._size})"

    def _available_bytes(self, position: int, size: int) -> int:
        current = self._size
        if position < 0 or size < 0 or position > current:
            raise ValueError(f"{size} bytes at {position} are not within {current} bytes")
        return min(size, current - position)

    def _read_fully(self, size: int, position: int) -> bytes:
        absolute = self.position + position
        data = self._channel.read_at(size, absolute)
        while 0 < len(data) < size:
            more = self._channel.read_at(size - len(data), absolute + len(data))
            if not more:
                break
            data += more
        return data


def _checked_batch_size(length: int, position: int) -> int:
    if length < RECORD_OVERHEAD_V0:
        raise CorruptRecordError(
            f"record size {length} at position {position} is less than the smallest possible"
        )
    return LOG_OVERHEAD + length


def _epoch_or_none(epoch: int) -> int | None:
    return None if epoch == NO_PARTITION_LEADER_EPOCH else epoch
