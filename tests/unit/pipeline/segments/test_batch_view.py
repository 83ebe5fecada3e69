"""A row for each batch, those that cannot be read included."""

import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from kafkapy.common.compression import Compression, CompressionType
from kafkapy.pipeline.pipeline_errors import SchemaError
from tests.helpers.mock_time import MockTime
from tests.helpers.records import records
from tests.helpers.segment_rows import segment_batches
from tests.unit.pipeline.segments.reading import filled_log, rows, segment_files
from tests.unit.storage.cleaning import TransactionalProducer, put
from tests.unit.storage.harness import StorageHarness


def view(path: str | Path, **options: Any) -> list[dict[str, Any]]:
    return rows(path, view="batches", **options)


def test_rows_are_the_headers(storage: StorageHarness, time: MockTime) -> None:
    log = storage.open_log()
    begin = time.milliseconds()
    put(log, time, ("a", "1"), ("b", "2"), compression=Compression(CompressionType.ZSTD))
    producer = TransactionalProducer(log, time, 7, epoch=3)
    producer.put(("c", "3"))
    producer.abort()
    (path,) = segment_files(log)

    first, second, marker = view(storage.log_dir)

    assert first.pop("firstTimestamp").timestamp() * 1000 == begin
    assert first.pop("maxTimestamp").timestamp() * 1000 == begin
    assert first == {
        "topic": "topic",
        "partition": 0,
        "baseOffset": 0,
        "lastOffset": 1,
        "count": 2,
        "magic": 2,
        "codec": "zstd",
        "timestampType": 0,
        "producerId": -1,
        "producerEpoch": -1,
        "baseSequence": -1,
        "isTransactional": False,
        "isControl": False,
        "leaderEpoch": 0,
        "sizeInBytes": second["position"],
        "position": 0,
        "file": str(path),
        "crcValid": True,
        "error": None,
    }
    assert [
        (row["baseOffset"], row["producerId"], row["producerEpoch"], row["baseSequence"])
        for row in (second, marker)
    ] == [(2, 7, 3, 0), (3, 7, 3, -1)]
    assert (second["isTransactional"], second["isControl"]) == (True, False)
    assert (marker["isTransactional"], marker["isControl"]) == (True, True)


@pytest.mark.parametrize("split_bytes", [1, 300, 1500, 100_000])
def test_each_batch_is_one_row_whatever_the_split_size(
    storage: StorageHarness, time: MockTime, split_bytes: int
) -> None:
    filled_log(storage, time)

    found = view(storage.log_dir, splitBytes=split_bytes)

    assert [row["baseOffset"] for row in found] == list(range(0, 240, 4))
    assert {row["codec"] for row in found} == {"none", "gzip", "snappy", "lz4", "zstd"}


def test_old_formats_have_no_count(storage: StorageHarness) -> None:
    path = Path(storage.partition_dir()) / "00000000000000000000.log"
    path.parent.mkdir()
    path.write_bytes(records("a", "b", magic=1, codec=CompressionType.GZIP).buffer)

    (row,) = view(storage.log_dir)

    assert (row["magic"], row["baseOffset"], row["lastOffset"], row["count"]) == (1, 0, 1, None)
    assert (row["codec"], row["firstTimestamp"], row["crcValid"]) == ("gzip", None, True)


def test_corrupt_batches_are_rows_with_an_error(storage: StorageHarness, time: MockTime) -> None:
    log = filled_log(storage, time)
    damaged, hidden = (list(log.segments[n].log.batches())[2] for n in (0, 1))
    log.close()
    paths = segment_files(log)
    for path, position, data in (
        (paths[0], damaged.position + 70, b"\xff"),
        (paths[1], hidden.position + 8, b"\0\0\0\1"),
    ):
        with path.open("r+b") as file:
            file.seek(position)
            file.write(data)
    os.truncate(paths[-1], paths[-1].stat().st_size - 3)

    found = view(storage.log_dir)

    wrong_crc, no_batch, cut = [row for row in found if row["error"] is not None]
    assert (wrong_crc["baseOffset"], wrong_crc["crcValid"]) == (damaged.base_offset, False)
    assert "crc" in wrong_crc["error"]
    assert (no_batch["baseOffset"], no_batch["position"]) == (None, hidden.position)
    assert no_batch["file"] == str(paths[1])
    assert cut["error"] == "the file ends inside this batch"
    assert [row["topic"] for row in (wrong_crc, no_batch, cut)] == ["topic"] * 3
    assert len(found) >= 60 - 3


def test_crcs_are_not_looked_at_unless_wanted(storage: StorageHarness, time: MockTime) -> None:
    log = storage.open_log()
    put(log, time, ("a", "1"))
    log.close()
    (path,) = segment_files(log)
    content = bytearray(path.read_bytes())
    content[-2] ^= 1
    path.write_bytes(content)

    (row,) = view(storage.log_dir, checkCrcs=False)

    assert (row["crcValid"], row["error"]) == (None, None)


def test_offsets_choose_batches(storage: StorageHarness, time: MockTime) -> None:
    filled_log(storage, time)

    found = view(
        storage.log_dir,
        startingOffsets={"topic": {"0": 10}},
        endingOffsets={"topic": {"0": 17}},
    )

    assert [row["baseOffset"] for row in found] == [8, 12, 16]


def test_a_schema_prunes_columns_and_others_are_named(
    storage: StorageHarness, time: MockTime
) -> None:
    filled_log(storage, time)
    wanted = StructType([StructField("codec", StringType()), StructField("baseOffset", LongType())])
    unknown = StructType([StructField("offset", LongType())])
    other_type = StructType([StructField("codec", LongType())])

    (batch,) = segment_batches(storage.log_dir, view="batches", columns=wanted)

    assert batch.schema.names == ["codec", "baseOffset"]
    with pytest.raises(SchemaError, match="column offset: there is no such column; there are top"):
        segment_batches(storage.log_dir, view="batches", columns=unknown)
    with pytest.raises(SchemaError, match="column codec: its type is string, not bigint"):
        segment_batches(storage.log_dir, view="batches", columns=other_type)
