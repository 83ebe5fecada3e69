"""Compacting batches of magic 0 and 1, as an old broker has left them."""

import pytest

from kafkapy.common.compression import Compression, CompressionType
from kafkapy.common.record.legacy_record import write_legacy_record
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record import TimestampType
from kafkapy.storage.unified_log import UnifiedLog
from tests.helpers.mock_time import MockTime
from tests.unit.storage.cleaning import (
    DELETE_RETENTION_MS,
    clean,
    compacted_log,
    keyed,
    offsets_of,
    pairs_of,
    put,
    roll_and_clean,
)
from tests.unit.storage.harness import StorageHarness

MAGICS = [0, 1]
CODECS = [CompressionType.NONE, CompressionType.GZIP, CompressionType.LZ4, CompressionType.SNAPPY]


def put_legacy(
    log: UnifiedLog, magic: int, *pairs: tuple[str | None, str | None], **fields: object
) -> None:
    """As a follower, which takes batches as they are."""
    batch = keyed(
        *pairs,
        timestamp=1_000_000 if magic else -1,
        magic=magic,
        initial_offset=log.log_end_offset,
        **fields,  # type: ignore[arg-type]
    )
    log.append_as_follower(batch)


@pytest.mark.parametrize("magic", MAGICS)
@pytest.mark.parametrize("codec", CODECS)
def test_the_last_record_of_each_key_stays_in_its_format(
    storage: StorageHarness, time: MockTime, magic: int, codec: CompressionType
) -> None:
    log = compacted_log(storage)
    compression = Compression(codec)
    put_legacy(log, magic, ("a", "1"), ("b", "1"), ("c", "1"), compression=compression)
    put_legacy(log, magic, ("a", "2"), ("b", "2"), ("d", "1"), compression=compression)
    put_legacy(log, magic, ("b", "3"), compression=compression)

    roll_and_clean(log, time)

    assert pairs_of(log) == [("c", "1"), ("a", "2"), ("d", "1"), ("b", "3")]
    assert offsets_of(log) == [2, 3, 5, 6]
    for batch in log.segments[0].log.batches():
        assert (batch.magic, batch.compression_type) == (magic, codec)
        assert batch.is_valid


def test_log_append_time_of_a_compressed_set_survives(
    storage: StorageHarness, time: MockTime
) -> None:
    log = compacted_log(storage)
    put_legacy(
        log,
        1,
        ("a", "1"),
        ("b", "1"),
        compression=Compression(CompressionType.GZIP),
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        log_append_time=7_000_000,
    )
    put(log, time, ("a", "2"))

    roll_and_clean(log, time)

    old = next(iter(log.segments[0].log.batches()))
    assert old.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert [r.timestamp for r in old.records()] == [7_000_000]


@pytest.mark.parametrize("magic", MAGICS)
def test_formats_may_be_mixed(storage: StorageHarness, time: MockTime, magic: int) -> None:
    log = compacted_log(storage)
    put_legacy(log, magic, ("a", "old"), ("b", "old"))
    put(log, time, ("a", "new"), ("c", "new"))
    put(log, time, ("c", "newer"))

    roll_and_clean(log, time)

    assert pairs_of(log) == [("b", "old"), ("a", "new"), ("c", "newer")]
    assert [b.magic for b in log.segments[0].log.batches()] == [magic, 2, 2]


@pytest.mark.parametrize("magic", MAGICS)
def test_tombstones_go_by_the_age_of_the_clean_segments(
    storage: StorageHarness, time: MockTime, magic: int
) -> None:
    log = compacted_log(storage)
    put_legacy(log, magic, ("a", "1"))
    put_legacy(log, magic, ("a", None))
    end = roll_and_clean(log, time)
    assert pairs_of(log) == [("a", None)]
    put_legacy(log, magic, ("b", "1"))
    log.roll()

    old, young = log.segments[:2]
    old.last_modified_ms = young.last_modified_ms = 100_000_000
    clean(log, time, dirty_from=end)
    assert pairs_of(log) == [("a", None), ("b", "1")]

    put_legacy(log, magic, ("c", "1"))
    log.roll()
    put_legacy(log, magic, ("d", "1"))
    log.roll()
    first, second, third = log.segments[:3]
    first.last_modified_ms = 100_000_000
    second.last_modified_ms = third.last_modified_ms = 100_000_000 + DELETE_RETENTION_MS
    clean(log, time, dirty_from=third.base_offset)

    assert pairs_of(log) == [("b", "1"), ("c", "1"), ("d", "1")]


@pytest.mark.parametrize("codec", [CompressionType.GZIP, CompressionType.LZ4])
def test_a_set_that_was_wrapped_into_another_magic_is_put_right(
    storage: StorageHarness, time: MockTime, codec: CompressionType
) -> None:
    """Old brokers did that when they compacted compressed sets."""
    inner = keyed(("a", "1"), ("b", "1"), timestamp=-1, magic=0)
    built = bytearray()
    write_legacy_record(
        built,
        offset=1,
        magic=1,
        timestamp=5_000_000,
        key=None,
        value=codec.compress(bytes(inner.buffer), 1, None),
        codec=codec,
    )
    log = compacted_log(storage)
    log.append_as_follower(MemoryRecords(built))

    roll_and_clean(log, time)

    (batch,) = log.segments[0].log.batches()
    assert {record.magic for record in batch.records()} == {1}
    assert pairs_of(log) == [("a", "1"), ("b", "1")]
    assert offsets_of(log) == [0, 1]
