"""Batches as they come from a fetch or a file, into Arrow record batches of a good size."""

from __future__ import annotations

import heapq
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol

import numpy as np
import pyarrow as pa

from kafkapy.common.compression import CompressionType
from kafkapy.common.errors import ApiError
from kafkapy.common.record.control_record import ControlRecordType
from kafkapy.common.record.default_record import encode_record
from kafkapy.common.record.default_record_batch import CRC_START, HEADER, DefaultRecordBatch
from kafkapy.common.record.legacy_record_batch import LegacyRecordBatch
from kafkapy.common.record.record import TimestampType
from kafkapy.common.record.record_batch import (
    COMPRESSION_CODEC_MASK,
    CONTROL_FLAG_MASK,
    HEADER_SIZE_UP_TO_MAGIC,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MAGIC_VALUE_V2,
    RECORD_BATCH_OVERHEAD,
    RECORD_OVERHEAD_V0,
    RECORD_OVERHEAD_V1,
    TIMESTAMP_TYPE_MASK,
)
from kafkapy.common.types import TopicPartition
from kafkapy.pipeline.columnar.arrow_columns import ArrowColumns
from kafkapy.pipeline.columnar.record_fields import RecordFields, RecordSection
from kafkapy.pipeline.columnar.record_schema import RecordSchema
from kafkapy.pipeline.pipeline_errors import CorruptDataError
from kafkapy.utils.checksums import crc32c

_OFFSET_AND_SIZE: Final = struct.Struct(">qi")
# Of what follows the size field, for each magic.
_SMALLEST: Final = (
    RECORD_OVERHEAD_V0,
    RECORD_OVERHEAD_V1,
    RECORD_BATCH_OVERHEAD - LOG_OVERHEAD,
)


class AbortedTransaction(Protocol):
    """As a Fetch answer and a transaction index name it."""

    @property
    def producer_id(self) -> int: ...

    @property
    def first_offset(self) -> int: ...


class LostFramingError(CorruptDataError):
    """A batch is so corrupt that nothing behind it can be found."""


class RecordColumnsDecoder:
    """Decodes one partition's batches in their order; not thread-safe.

    Rows are kept back until there are enough for a record batch, so that small batches cost little
    more than large ones. `next_offset` and `consumed_bytes` are right once an iterator of `decode`
    is exhausted. The bytes given must not change before their rows are out.
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        schema: RecordSchema,
        *,
        start_offset: int,
        end_offset: int,
        check_crcs: bool = True,
        read_committed: bool = False,
        max_rows: int = 20_000,
        max_bytes: int = 8 * 1024 * 1024,
        on_corrupt: Callable[[int, str], None] | None = None,
    ) -> None:
        """`on_corrupt` gets the offset of each batch that is left out, and why.

        Without it a corrupt batch raises CorruptDataError.
        """
        # constant after construction
        self._topic_partition = topic_partition
        self._columns = schema.columns
        self._arrow_columns = ArrowColumns(topic_partition, schema)
        self._start_offset = start_offset
        self._end_offset = end_offset
        self._check_crcs = check_crcs
        self._read_committed = read_committed
        self._max_rows = max_rows
        self._max_bytes = max_bytes
        self._on_corrupt = on_corrupt

        self.next_offset = start_offset  # after the last batch taken, control batches included
        self.consumed_bytes = 0  # of the last call of decode: its whole batches
        self._aborted: list[tuple[int, int]] = []  # a heap of first offsets and producer ids
        self._aborted_producer_ids: set[int] = set()
        self._sections: list[RecordSection] = []
        self._rows = 0
        self._bytes = 0

    def add_aborted(self, transactions: Iterable[AbortedTransaction]) -> None:
        """Aborted transactions that overlap what is decoded next; one may be named again."""
        for transaction in transactions:
            heapq.heappush(self._aborted, (transaction.first_offset, transaction.producer_id))

    def decode(self, records: bytes | memoryview) -> Iterator[pa.RecordBatch]:
        """Takes all whole batches up to the end offset; one cut off at the end is left alone.

        A batch that is left out does not move `next_offset`. One of an impossible size or magic
        raises LostFramingError even if others may be left out.
        """
        view = memoryview(records)
        total = len(view)
        position = 0
        self.consumed_bytes = 0
        while total - position >= HEADER_SIZE_UP_TO_MAGIC and self.next_offset < self._end_offset:
            offset, length = _OFFSET_AND_SIZE.unpack_from(view, position)
            magic = view[position + MAGIC_OFFSET]
            if magic > MAGIC_VALUE_V2 or length < _SMALLEST[magic]:
                raise LostFramingError(
                    self._corrupt(offset, f"it declares {length} bytes and the magic {magic}")
                )
            end = position + LOG_OVERHEAD + length
            if end > total:
                return
            if magic == MAGIC_VALUE_V2 and offset >= self._end_offset:
                self.next_offset = self._end_offset
                return
            try:
                if magic == MAGIC_VALUE_V2:
                    section = self._section(view, position, end)
                else:
                    section = self._legacy_section(LegacyRecordBatch(view[position:end]))
            except (ApiError, ValueError) as error:
                self._leave_out(offset, error)
            else:
                if section is not None:
                    rows = self._rows + section.record_count
                    size = self._bytes + len(section.content)
                    if self._sections and (rows > self._max_rows or size > self._max_bytes):
                        yield from self.finish()
                        rows = section.record_count
                        size = len(section.content)
                    self._sections.append(section)
                    self._rows = rows
                    self._bytes = size
            position = end
            self.consumed_bytes = end

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The rows kept back so far."""
        sections, self._sections = self._sections, []
        self._rows = 0
        self._bytes = 0
        if sections:
            yield from self._record_batches(sections)

    def _section(self, view: memoryview, position: int, end: int) -> RecordSection | None:
        """The records of a v2 batch; None if it has none to be read.

        Called for every batch, and many batches hold one record: no step more than needed.
        """
        (
            base_offset,
            _,
            _,
            _,
            crc,
            attributes,
            last_offset_delta,
            base_timestamp,
            max_timestamp,
            producer_id,
            _,
            _,
            count,
        ) = HEADER.unpack_from(view, position)
        if self._check_crcs:
            computed = crc32c(view[position + CRC_START : end])
            if crc != computed:
                raise ValueError(f"its stored crc is {crc}, but the computed one {computed}")
        last_offset = base_offset + last_offset_delta
        if last_offset >= self.next_offset:
            self.next_offset = last_offset + 1
        if (
            self._read_committed
            and producer_id >= 0
            and self._is_aborted(view[position:end], last_offset)
        ):
            return None
        if attributes & CONTROL_FLAG_MASK or last_offset < self._start_offset:
            return None
        content: bytes | memoryview = view[position + RECORD_BATCH_OVERHEAD : end]
        if attributes & COMPRESSION_CODEC_MASK:
            codec = CompressionType.for_id(attributes & COMPRESSION_CODEC_MASK)
            content = b"".join(codec.decompress_pieces(content))
        if count < 0 or count > len(content):
            raise ValueError(f"it declares {count} records in {len(content)} bytes")
        if attributes & TIMESTAMP_TYPE_MASK:
            return RecordSection(
                content,
                count,
                base_offset,
                base_timestamp,
                max_timestamp,
                TimestampType.LOG_APPEND_TIME,
            )
        return RecordSection(
            content, count, base_offset, base_timestamp, None, TimestampType.CREATE_TIME
        )

    def _legacy_section(self, batch: LegacyRecordBatch) -> RecordSection | None:
        """The records of an old batch written anew: such logs are rare, and one way is enough."""
        if self._check_crcs:
            batch.ensure_valid()
            if batch.is_compressed:
                batch.ensure_inner_valid()
        self.next_offset = max(self.next_offset, batch.last_offset + 1)
        if batch.last_offset < self._start_offset:
            return None
        records = list(batch.records())
        if not records:
            return None
        first = records[0]
        content = b"".join(
            encode_record(
                record.timestamp - first.timestamp,
                record.offset - first.offset,
                record.key,
                record.value,
            )
            for record in records
        )
        return RecordSection(
            content, len(records), first.offset, first.timestamp, None, batch.timestamp_type
        )

    def _is_aborted(self, batch: memoryview, last_offset: int) -> bool:
        """Follows the aborted transactions through a batch of a producer with an id."""
        aborted = self._aborted
        while aborted and aborted[0][0] <= last_offset:
            self._aborted_producer_ids.add(heapq.heappop(aborted)[1])
        if not self._aborted_producer_ids:
            return False
        header = DefaultRecordBatch(batch)
        if header.is_control_batch:
            marker = next(header.records(), None)
            if (
                marker is not None
                and ControlRecordType.parse(marker.key) is ControlRecordType.ABORT
            ):
                self._aborted_producer_ids.discard(header.producer_id)
            return False
        return header.is_transactional and header.producer_id in self._aborted_producer_ids

    def _record_batches(self, sections: list[RecordSection]) -> list[pa.RecordBatch]:
        try:
            fields = RecordFields.decode(sections, self._columns)
            inside = (fields.offsets >= self._start_offset) & (fields.offsets < self._end_offset)
            if not inside.all():
                fields = fields.select(np.flatnonzero(inside))
            return [self._arrow_columns.record_batch(part) for part in self._parts(fields)]
        except ValueError as error:
            if len(sections) == 1:
                self._leave_out(sections[0].base_offset, error)
                return []
            # One of them is not what it says; the others are.
            return [batch for section in sections for batch in self._record_batches([section])]

    def _parts(self, fields: RecordFields) -> Iterator[RecordFields]:
        """Cuts what a large batch holds to size."""
        start = 0
        while start < fields.count:
            end_of_part = fields.starts[start] + self._max_bytes
            by_bytes = int(np.searchsorted(fields.ends, end_of_part, "right"))
            end = min(start + self._max_rows, max(by_bytes, start + 1), fields.count)
            yield fields.select(slice(start, end)) if end - start < fields.count else fields
            start = end

    def _leave_out(self, offset: int, error: Exception) -> None:
        if self._on_corrupt is None:
            raise CorruptDataError(self._corrupt(offset, str(error))) from error
        self._on_corrupt(offset, str(error))

    def _corrupt(self, offset: int, reason: str) -> str:
        return f"{self._topic_partition}: the batch at offset {offset} is corrupt: {reason}"
