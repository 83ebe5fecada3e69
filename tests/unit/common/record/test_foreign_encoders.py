"""Batches written by the encoders of real clients are read by ours, and the other way round."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AioDefaultBuilder
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder as AioLegacyBuilder
from aiokafka.record.memory_records import MemoryRecords as AioMemoryRecords

from kafkapy.common.compression import Compression, CompressionType
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record import Header, SimpleRecord

with warnings.catch_warnings():
    # kafka-python reads its message schemas through a deprecated function.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record import MemoryRecords as KafkaPythonMemoryRecords
    from kafka.record import MemoryRecordsBuilder as KafkaPythonBuilder

NONE, GZIP, SNAPPY, LZ4, ZSTD = CompressionType

RECORDS = [
    SimpleRecord(1_700_000_000_000 + i, None if i % 3 == 0 else b"key%d" % i, b"v" * i)
    for i in range(200)
] + [SimpleRecord(1_700_000_000_500, b"tombstone", None)]
WITH_HEADERS = [
    SimpleRecord(5, b"k", b"v", (Header("a", b"1"), Header("a", b"2"), Header("ü", b""))),
    SimpleRecord(3, None, b"w", ()),
]

# aiokafka refuses lz4 with magic 0, whose frames need the old descriptor checksum.
AIOKAFKA = (
    [(0, codec) for codec in (NONE, GZIP, SNAPPY)]
    + [(1, codec) for codec in (NONE, GZIP, SNAPPY, LZ4)]
    + [(2, codec) for codec in CompressionType]
)
# Without further packages kafka-python has gzip only.
KAFKA_PYTHON = [(magic, codec) for magic in (0, 1, 2) for codec in (NONE, GZIP)]


def aiokafka_encode(magic: int, codec: CompressionType, wanted: list[SimpleRecord]) -> bytes:
    builder: Any
    if magic == 2:
        builder = AioDefaultBuilder(2, codec, 0, -1, -1, -1, 1 << 30)
    else:
        builder = AioLegacyBuilder(magic, codec, 1 << 30)
    for offset, record in enumerate(wanted):
        headers = [tuple(header) for header in record.headers]
        assert builder.append(
            offset, timestamp=record.timestamp, key=record.key, value=record.value, headers=headers
        )
    return bytes(builder.build())


def kafka_python_encode(magic: int, codec: CompressionType, wanted: list[SimpleRecord]) -> bytes:
    builder = KafkaPythonBuilder(magic, int(codec), 1 << 30)
    for record in wanted:
        headers = [tuple(header) for header in record.headers]
        assert builder.append(record.timestamp, record.key, record.value, headers)
    builder.close()
    return bytes(builder._buffer)


def foreign_read(reader: Any) -> list[SimpleRecord]:
    found = []
    while reader.has_next():
        batch = reader.next_batch()
        assert batch.validate_crc()
        for r in batch:
            headers = tuple(Header(key, value) for key, value in r.headers or ())
            found.append(SimpleRecord(r.timestamp, r.key, r.value, headers))
    return found


def expected(magic: int, wanted: list[SimpleRecord]) -> list[SimpleRecord]:
    return wanted if magic > 0 else [r._replace(timestamp=-1) for r in wanted]


@pytest.mark.parametrize(
    ("encode", "magic", "codec"),
    [(aiokafka_encode, *case) for case in AIOKAFKA]
    + [(kafka_python_encode, *case) for case in KAFKA_PYTHON],
)
def test_batches_of_clients_are_read(
    encode: Callable[[int, CompressionType, list[SimpleRecord]], bytes],
    magic: int,
    codec: CompressionType,
) -> None:
    source = MemoryRecords(encode(magic, codec, RECORDS))

    found = list(source.records())

    for batch in source.batches():
        batch.ensure_valid()
        assert batch.compression_type is codec
    simple = [SimpleRecord(r.timestamp, r.key, r.value, r.headers) for r in found]
    assert simple == expected(magic, RECORDS)
    assert [r.offset for r in found] == list(range(len(RECORDS)))


@pytest.mark.parametrize(("magic", "codec"), AIOKAFKA)
def test_aiokafka_reads_our_batches(magic: int, codec: CompressionType) -> None:
    source = MemoryRecords.with_records(*RECORDS, magic=magic, compression=Compression(codec))

    found = foreign_read(AioMemoryRecords(bytes(source.buffer)))

    assert [r._replace(timestamp=-1 if magic == 0 else r.timestamp) for r in found] == expected(
        magic, RECORDS
    )


@pytest.mark.parametrize(("magic", "codec"), KAFKA_PYTHON)
def test_kafka_python_reads_our_batches(magic: int, codec: CompressionType) -> None:
    source = MemoryRecords.with_records(*RECORDS, magic=magic, compression=Compression(codec))

    found = foreign_read(KafkaPythonMemoryRecords(bytes(source.buffer)))

    assert [r._replace(timestamp=-1 if magic == 0 else r.timestamp) for r in found] == expected(
        magic, RECORDS
    )


@pytest.mark.parametrize("codec", list(CompressionType))
def test_headers_pass_both_ways(codec: CompressionType) -> None:
    ours = MemoryRecords.with_records(*WITH_HEADERS, compression=Compression(codec))
    theirs = MemoryRecords(aiokafka_encode(2, codec, WITH_HEADERS))

    assert foreign_read(AioMemoryRecords(bytes(ours.buffer))) == WITH_HEADERS
    assert [r.headers for r in theirs.records()] == [r.headers for r in WITH_HEADERS]


def test_uncompressed_v2_batches_are_equal_byte_for_byte() -> None:
    ours = MemoryRecords.with_records(*WITH_HEADERS)

    theirs = bytearray(kafka_python_encode(2, NONE, WITH_HEADERS))

    # The leader epoch is the broker's to set; clients leave 0 or -1 in its place.
    theirs[12:16] = ours.buffer[12:16]
    assert bytes(theirs) == bytes(ours.buffer)
