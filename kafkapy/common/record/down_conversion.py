"""Turning batches back into formats that old consumers can read."""

from collections.abc import Iterable
from typing import NamedTuple

from kafkapy.common.compression import Compression, CompressionType
from kafkapy.common.errors import UnsupportedCompressionTypeError
from kafkapy.common.record.file_records import FileRecords
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.memory_records_builder import MemoryRecordsBuilder
from kafkapy.common.record.record import NO_TIMESTAMP, TimestampType
from kafkapy.common.record.record_batch import MAGIC_VALUE_V1, RecordBatch


class ConvertedRecords(NamedTuple):
    """Records in an older format and what making them took.

    Ports: org.apache.kafka.common.record.ConvertedRecords
    """

    records: MemoryRecords
    num_records_converted: int
    temporary_memory_bytes: int


def down_convert(
    records: FileRecords | MemoryRecords, to_magic: int, first_offset: int = 0
) -> MemoryRecords:
    """The records in the given format or an older one; see convert_batches."""
    return convert_batches(records.batches(), to_magic, first_offset).records


def convert_batches(
    batches: Iterable[RecordBatch], to_magic: int, first_offset: int = 0
) -> ConvertedRecords:
    """Converts batches of a newer magic and copies the others.

    Magic 0 and 1 know neither control batches nor headers: both are dropped, and so are the
    records before first_offset of uncompressed batches, because clients of those formats expect
    to be sent none. These clients cannot read zstd: a batch of it ends the records, and raises
    UnsupportedCompressionTypeError when there are none before it.
    """
    out = bytearray()
    converted = 0
    temporary_bytes = 0
    for batch in batches:
        if to_magic <= MAGIC_VALUE_V1:
            if batch.is_control_batch:
                continue
            if batch.compression_type is CompressionType.ZSTD:
                if out:
                    # The client gets on as far as it can; its next fetch begins at this batch.
                    break
                raise UnsupportedCompressionTypeError("zstd batches cannot be converted down")
        if batch.magic <= to_magic:
            out += batch.to_bytes()
            continue
        builder = _convert_batch(batch, to_magic, first_offset)
        if builder is not None:
            out += builder.build()
            converted += builder.num_records
            temporary_bytes += builder.uncompressed_bytes_written
    return ConvertedRecords(MemoryRecords(out), converted, temporary_bytes)


def _convert_batch(
    batch: RecordBatch, to_magic: int, first_offset: int
) -> MemoryRecordsBuilder | None:
    """The batch in a builder; None when no record is left of it."""
    builder: MemoryRecordsBuilder | None = None
    log_append_time = NO_TIMESTAMP
    if batch.timestamp_type is TimestampType.LOG_APPEND_TIME:
        log_append_time = batch.max_timestamp
    for record in batch.records():
        if not batch.is_compressed and record.offset < first_offset:
            continue
        if builder is None:
            # Compaction may have removed the batch's first records: relative offsets of a v1
            # wrapper count from the first that is there.
            builder = MemoryRecordsBuilder(
                magic=to_magic,
                compression=Compression(batch.compression_type),
                timestamp_type=batch.timestamp_type,
                base_offset=record.offset,
                log_append_time=log_append_time,
            )
        builder.append_with_offset(record.offset, record)
    return builder
