"""Compacting a log: which records stay, where, and in what form."""

import os
from pathlib import Path

import pytest

from kafkapy.common.compression import Compression, CompressionType
from kafkapy.common.errors import CorruptRecordError
from kafkapy.common.record.default_record_batch import DefaultRecordBatch
from kafkapy.common.record.record import Header, SimpleRecord
from kafkapy.common.types import TopicPartition
from kafkapy.storage.producer_state_manager_config import ProducerStateManagerConfig
from kafkapy.storage.storage_errors import LogCleaningAbortedError
from tests.helpers.mock_time import MockTime
from tests.helpers.records import record, records
from tests.unit.storage.cleaning import (
    DELETE_RETENTION_MS,
    clean,
    compacted_log,
    keyed,
    new_cleaner,
    offsets_of,
    pairs_of,
    put,
    put_each,
    roll_and_clean,
)
from tests.unit.storage.harness import StorageHarness, read_all

CODECS = list(CompressionType)


def test_only_the_last_record_of_each_key_stays(storage: StorageHarness, time: MockTime) -> None:
    log = compacted_log(storage)
    put_each(log, time, [("a", "1"), ("b", "1"), ("a", "2"), ("c", "1"), ("b", "2")])

    end = roll_and_clean(log, time)

    assert end == 5
    assert pairs_of(log) == [("a", "2"), ("c", "1"), ("b", "2")]
    assert offsets_of(log) == [2, 3, 4]


def test_the_active_segment_is_not_touched(storage: StorageHarness, time: MockTime) -> None:
    log = compacted_log(storage)
    put_each(log, time, [("a", "1"), ("a", "2")])
    log.roll()
    put_each(log, time, [("a", "3"), ("a", "4")])

    end, _ = clean(log, time)

    assert end == 2
    assert pairs_of(log) == [("a", "2"), ("a", "3"), ("a", "4")]


def test_a_later_record_makes_one_of_the_clean_part_obsolete(
    storage: StorageHarness, time: MockTime
) -> None:
    log = compacted_log(storage)
    put_each(log, time, [("a", "1"), ("b", "1")])
    end = roll_and_clean(log, time)
    put_each(log, time, [("a", "2"), ("c", "1")])

    assert roll_and_clean(log, time, dirty_from=end) == 4
    assert pairs_of(log) == [("b", "1"), ("a", "2"), ("c", "1")]


def test_compacting_twice_changes_nothing(storage: StorageHarness, time: MockTime) -> None:
    log = compacted_log(storage)
    put_each(log, time, [("a", "1"), ("b", "1"), ("a", "2"), ("c", None)])
    roll_and_clean(log, time)
    before = [(r.offset, r.key, r.value, r.timestamp) for r in read_all(log)]

    clean(log, time)

    assert [(r.offset, r.key, r.value, r.timestamp) for r in read_all(log)] == before


@pytest.mark.parametrize("codec", CODECS)
def test_what_is_left_of_a_batch_keeps_its_offsets_times_and_codec(
    storage: StorageHarness, time: MockTime, codec: CompressionType
) -> None:
    log = compacted_log(storage)
    compression = Compression(codec)
    put(log, time, ("a", "1"), ("b", "x" * 100), ("a", "2"), ("c", "1"), compression=compression)
    sent_ms = time.milliseconds()
    time.sleep(1000)
    put(log, time, ("c", "2"), compression=compression)

    roll_and_clean(log, time)

    first, second = log.segments[0].log.batches()
    assert [(r.offset, r.key, r.timestamp) for r in first.records()] == [
        (1, b"b", sent_ms),
        (2, b"a", sent_ms),
    ]
    assert (first.base_offset, first.last_offset, first.count) == (0, 3, 2)
    assert first.compression_type is codec
    assert first.max_timestamp == sent_ms
    assert first.is_valid
    assert second.base_offset == 4


def test_the_greatest_timestamp_of_a_batch_is_that_of_what_is_left(
    storage: StorageHarness, time: MockTime
) -> None:
    log = compacted_log(storage)
    old, young = record("old", key="a", timestamp=1000), record("young", key="b", timestamp=9000)
    log.append_as_leader(records(old, young), 0)
    put(log, time, ("b", "2"))

    roll_and_clean(log, time)

    first = next(iter(log.segments[0].log.batches()))
    assert [r.timestamp for r in first.records()] == [1000]
    assert first.max_timestamp == 1000


def test_a_batch_that_is_kept_as_a_whole_keeps_its_bytes(
    storage: StorageHarness, time: MockTime
) -> None:
    log = compacted_log(storage)
    put(log, time, ("a", "1"), ("b", "1"))
    put(log, time, ("c", "1"))
    before = [bytes(batch.to_bytes()) for batch in log.segments[0].log.batches()]
    put(log, time, ("c", "2"))

    roll_and_clean(log, time)

    after = [bytes(batch.to_bytes()) for batch in log.segments[0].log.batches()]
    assert after[0] == before[0]
    assert len(after) == 2


def test_headers_survive(storage: StorageHarness, time: MockTime) -> None:
    log = compacted_log(storage)
    header = Header("h", b"1")
    kept = SimpleRecord(time.milliseconds(), b"a", b"1", (header,))
    gone = SimpleRecord(time.milliseconds(), b"b", b"1", (header,))
    log.append_as_leader(records(gone, kept), 0)
    put(log, time, ("b", "2"))

    roll_and_clean(log, time)

    assert [r.headers for r in read_all(log)] == [(header,), ()]


def test_records_without_a_key_go(storage: StorageHarness, time: MockTime) -> None:
    log = storage.open_log()  # before the topic became a compacted one
    log.append_as_leader(records("keyless"), 0)
    put(log, time, ("a", "1"))
    log.update_config(storage.config(cleanup_policy=("compact",)))

    log.roll()
    _, stats = clean(log, time)

    assert pairs_of(log) == [("a", "1")]
    assert stats.invalid_messages_read == 1


@pytest.mark.parametrize("io_buffer_size", [0, 1, 17, 61, 100, 1000])
def test_batches_larger_than_the_buffer_are_read_whole(
    storage: StorageHarness, time: MockTime, io_buffer_size: int
) -> None:
    log = compacted_log(storage)
    put_each(log, time, [("a", "x" * 2000), ("b", "1"), ("a", "y" * 3000), ("b", "2")])
    log.roll()

    clean(log, time, cleaner=new_cleaner(time, io_buffer_size=io_buffer_size))

    assert pairs_of(log) == [("a", "y" * 3000), ("b", "2")]


# --- the map of keys


def test_a_map_that_is_full_ends_the_round_and_the_next_goes_on(
    storage: StorageHarness, time: MockTime
) -> None:
    log = compacted_log(storage)
    written = [(str(i % 20), str(i)) for i in range(100)]
    for i in range(0, 100, 7):
        put(log, time, *written[i : i + 7])
    log.roll()
    cleaner = new_cleaner(time, slots=10, load_factor=1)

    ends = []
    end = 0
    while end < 100:
        end, stats = clean(log, time, dirty_from=end, cleaner=cleaner)
        ends.append(end)
        assert stats.buffer_utilization <= 1

    assert len(ends) > 2
    assert ends == sorted(set(ends))
    assert dict(pairs_of(log)) == dict(written)
    assert len(pairs_of(log)) == 20


def test_records_behind_the_map_all_stay(storage: StorageHarness, time: MockTime) -> None:
    log = compacted_log(storage)
    put_each(log, time, [("a", "1"), ("b", "1"), ("c", "1"), ("a", "2"), ("a", "3")])
    log.roll()

    end, _ = clean(log, time, cleaner=new_cleaner(time, slots=2, load_factor=1))

    assert end == 2
    assert pairs_of(log) == [("a", "1"), ("b", "1"), ("c", "1"), ("a", "2"), ("a", "3")]


# --- tombstones


def test_a_tombstone_removes_its_key_and_goes_after_delete_retention(
    storage: StorageHarness, time: MockTime
) -> None:
    log = compacted_log(storage)
    put_each(log, time, [("a", "1"), ("b", "1"), ("a", None)])

    roll_and_clean(log, time)
    assert pairs_of(log) == [("b", "1"), ("a", None)]

    time.sleep(DELETE_RETENTION_MS - 1)
    clean(log, time)
    assert pairs_of(log) == [("b", "1"), ("a", None)]

    time.sleep(1)
    clean(log, time)
    assert pairs_of(log) == [("b", "1")]


@pytest.mark.parametrize("codec", CODECS)
def test_the_delete_horizon_is_set_once_and_leaves_timestamps_alone(
    storage: StorageHarness, time: MockTime, codec: CompressionType
) -> None:
    log = compacted_log(storage)
    put(log, time, ("a", "1"), ("b", None), ("c", "1"), compression=Compression(codec))
    sent_ms = time.milliseconds()
    time.sleep(5000)
    roll_and_clean(log, time)
    horizon_ms = sent_ms + 5000 + DELETE_RETENTION_MS
    time.sleep(100)

    clean(log, time)

    batch = next(iter(log.segments[0].log.batches())).load_full_batch()
    assert isinstance(batch, DefaultRecordBatch)
    assert batch.delete_horizon_ms == horizon_ms
    assert {r.timestamp for r in batch.records()} == {sent_ms}
    assert batch.max_timestamp == sent_ms
    assert batch.is_valid


def test_tombstones_may_stay_for_ever(storage: StorageHarness, time: MockTime) -> None:
    log = compacted_log(storage, delete_retention_ms=(1 << 63) - 1)
    sent_ms = time.milliseconds()
    put_each(log, time, [("a", "1"), ("b", "1"), ("a", None)])
    log.roll()

    for _ in range(2):
        time.sleep(DELETE_RETENTION_MS)
        clean(log, time)

    assert pairs_of(log) == [("b", "1"), ("a", None)]
    assert {record.timestamp for record in read_all(log)} == {sent_ms}


def test_a_younger_tombstone_stays_when_an_older_one_goes(
    storage: StorageHarness, time: MockTime
) -> None:
    log = compacted_log(storage)
    put(log, time, ("a", None))
    end = roll_and_clean(log, time)
    time.sleep(DELETE_RETENTION_MS)
    put(log, time, ("b", None))

    roll_and_clean(log, time, dirty_from=end)

    assert pairs_of(log) == [("b", None)]


def test_a_value_after_a_tombstone_brings_the_key_back(
    storage: StorageHarness, time: MockTime
) -> None:
    log = compacted_log(storage)
    put_each(log, time, [("a", "1"), ("a", None), ("a", "2")])

    roll_and_clean(log, time)

    assert pairs_of(log) == [("a", "2")]


# --- producers


def test_the_last_batch_of_an_active_producer_stays_without_its_records(
    storage: StorageHarness, time: MockTime
) -> None:
    log = compacted_log(storage)
    put(log, time, ("a", "1"), producer_id=7, producer_epoch=3, base_sequence=0)
    put(log, time, ("a", "2"), ("a", "3"), producer_id=7, producer_epoch=3, base_sequence=1)
    put(log, time, ("a", "4"))

    roll_and_clean(log, time)

    empty, last = log.segments[0].log.batches()
    assert (empty.producer_id, empty.producer_epoch, empty.base_sequence) == (7, 3, 1)
    assert (empty.base_offset, empty.last_offset, empty.count) == (1, 2, 0)
    assert empty.last_sequence == 2
    assert empty.is_valid
    assert list(empty.records()) == []
    assert pairs_of(log) == [("a", "4")]
    assert last.base_offset == 3


def test_a_producer_goes_on_after_compaction_and_a_crash(
    storage: StorageHarness, time: MockTime
) -> None:
    log = compacted_log(storage)
    for i in range(3):
        put(log, time, ("a", str(i)), producer_id=7, producer_epoch=0, base_sequence=i)
    put(log, time, ("a", "last"))
    roll_and_clean(log, time)
    for name in os.listdir(log.dir):
        if name.endswith(".snapshot"):
            os.unlink(f"{log.dir}/{name}")

    log = storage.open_log(log.config, clean=False)
    append = keyed(("a", "3"), timestamp=0, producer_id=7, producer_epoch=0, base_sequence=3)

    assert log.append_as_leader(append, 0).first_offset == 4


def test_a_producer_that_has_expired_leaves_nothing(
    storage: StorageHarness, time: MockTime
) -> None:
    log = compacted_log(storage)
    put(log, time, ("a", "1"), producer_id=7, producer_epoch=0, base_sequence=0)
    put(log, time, ("a", "2"))
    time.sleep(ProducerStateManagerConfig().producer_id_expiration_ms + 1)
    log.remove_expired_producers()

    roll_and_clean(log, time)

    assert [batch.base_offset for batch in log.segments[0].log.batches()] == [1]


# --- when it must stop, or cannot go on


def test_work_that_is_aborted_leaves_the_log_as_it_was(
    storage: StorageHarness, time: MockTime
) -> None:
    log = compacted_log(storage)
    put_each(log, time, [("a", "1"), ("a", "2")])
    log.roll()
    before = sorted(os.listdir(log.dir))
    looks = 0

    def abort_the_copy(topic_partition: TopicPartition) -> None:
        nonlocal looks
        looks += 1
        if looks == 2:
            raise LogCleaningAbortedError(f"{topic_partition} is wanted by somebody else")

    with pytest.raises(LogCleaningAbortedError):
        clean(log, time, cleaner=new_cleaner(time, check_done=abort_the_copy))

    assert sorted(os.listdir(log.dir)) == before
    assert pairs_of(log) == [("a", "1"), ("a", "2")]


def test_a_damaged_batch_is_not_given_a_new_checksum(
    storage: StorageHarness, time: MockTime
) -> None:
    log = compacted_log(storage)
    put(log, time, ("a", "1"), ("b", "1"))
    put(log, time, ("a", "2"))
    log.roll()
    path = log.segments[0].log.path
    data = bytearray(Path(path).read_bytes())
    data[-1] ^= 1
    Path(path).write_bytes(data)

    with pytest.raises(CorruptRecordError, match="crc"):
        clean(log, time)

    assert Path(path).read_bytes() == data
    assert not [name for name in os.listdir(log.dir) if name.endswith(".cleaned")]


def test_a_batch_that_is_cut_off_is_named(storage: StorageHarness, time: MockTime) -> None:
    log = compacted_log(storage)
    put_each(log, time, [("a", "1"), ("a", "2")])
    log.roll()
    segment = log.segments[0]
    size = segment.size
    segment.log.truncate_to(size - 5)

    with pytest.raises(CorruptRecordError, match=f"position {size // 2}"):
        clean(log, time)
