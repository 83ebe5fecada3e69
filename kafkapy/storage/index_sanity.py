"""Cheap checks that an index file on disk belongs to its segment, without mapping it.

Only the last entries are looked at: enough to notice a file that is empty where it must not be,
full of zeros, too long, cut off or another segment's, at the cost of a few small reads per segment
at start-up. A wrong offset index could hide records; a wrong time index could delete them early.
"""

import struct

from kafkapy.common.errors import CorruptRecordError
from kafkapy.common.record.file_records import FileRecords
from kafkapy.common.record.record_batch import CURRENT_MAGIC_VALUE, HEADER_SIZE_UP_TO_MAGIC
from kafkapy.storage import offset_index, time_index
from kafkapy.storage.abstract_index import INT_MAX
from kafkapy.storage.file_system import FileSystem
from kafkapy.storage.storage_errors import CorruptIndexError

_BATCH_START = struct.Struct(">qiib")  # base offset, size, leader epoch, magic


def check_offset_index(
    path: str, base_offset: int, log: FileRecords, file_system: FileSystem
) -> None:
    """Raises CorruptIndexError unless the last entry points to a batch that it can be about."""
    entry = _last_entries(path, offset_index.ENTRY, 1, file_system)
    if not entry:
        return
    relative, position = offset_index.ENTRY.unpack(entry)
    if not (
        0 < relative <= INT_MAX and 0 < position <= log.size_in_bytes - HEADER_SIZE_UP_TO_MAGIC
    ):
        raise CorruptIndexError(f"{path} ends with an entry that is not of this segment")
    first, size, _, magic = _BATCH_START.unpack(log.read(position, HEADER_SIZE_UP_TO_MAGIC))
    if not (
        base_offset < first <= base_offset + relative
        and size > 0
        and 0 <= magic <= CURRENT_MAGIC_VALUE
    ):
        raise CorruptIndexError(f"{path} ends with an entry for position {position}, no batch")
    # The log's end is looked for behind it: with an offset that is not there none would be found.
    try:
        found = log.search_for_offset_with_size(base_offset + relative, position)
    except CorruptRecordError as e:
        raise CorruptIndexError(f"{path} ends with an entry that cannot be checked: {e}") from e
    if found is None or found.offset != base_offset + relative:
        raise CorruptIndexError(f"{path} ends with offset {base_offset + relative}, no batch does")


def check_time_index(path: str, log: FileRecords, file_system: FileSystem) -> None:
    """Raises CorruptIndexError unless the last two entries are in order.

    An entry of zeros was lost on its way to disk, unless the records are as old as that.
    """
    entries = _last_entries(path, time_index.ENTRY, 2, file_system)
    if not entries:
        # A closed segment with records has an entry, unless they carry no timestamps.
        return
    previous_timestamp, previous_relative = 0, -1
    if time_index.ENTRY.unpack_from(entries)[0] == 0 and _first_timestamp(path, log) <= 0:
        previous_timestamp = -1
    for timestamp, relative in time_index.ENTRY.iter_unpack(entries):
        if (
            timestamp <= previous_timestamp
            or relative < max(previous_relative, 0)
            or log.size_in_bytes == 0
        ):
            raise CorruptIndexError(f"{path} ends with entries that are not of this segment")
        previous_timestamp, previous_relative = timestamp, relative


def _first_timestamp(path: str, log: FileRecords) -> int:
    """The greatest one of the first batch."""
    try:
        first = next(log.batches(), None)
    except CorruptRecordError as e:
        raise CorruptIndexError(f"{path} cannot be checked: {e}") from e
    return time_index.NO_TIMESTAMP if first is None else first.max_timestamp


def _last_entries(path: str, entry: struct.Struct, count: int, file_system: FileSystem) -> bytes:
    channel = file_system.open(path, read_only=True)
    try:
        size = channel.size()
        if size % entry.size:
            raise CorruptIndexError(
                f"The size of {path}, {size}, is not a multiple of {entry.size}"
            )
        start = max(0, size - count * entry.size)
        return channel.read_at(size - start, start)
    finally:
        channel.close()
