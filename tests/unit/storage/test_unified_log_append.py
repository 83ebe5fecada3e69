"""UnifiedLog: appending as leader and as follower."""

import pytest

from kafkapy.common.compression import Compression, CompressionType
from kafkapy.common.errors import (
    CorruptRecordError,
    InvalidProducerEpochError,
    InvalidRecordError,
    OutOfOrderSequenceError,
    RecordBatchTooLargeError,
    RecordTooLargeError,
)
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.types import random_topic_id
from kafkapy.storage.append_origin import AppendOrigin
from kafkapy.storage.storage_errors import OffsetsOutOfOrderError, UnexpectedAppendOffsetError
from tests.unit.storage.harness import (
    TIMESTAMP,
    StorageHarness,
    append,
    joined,
    marker,
    read_all,
    records,
    values_of,
)


def test_leader_assigns_offsets_and_epoch(storage: StorageHarness) -> None:
    log = storage.open_log()

    first = log.append_as_leader(records("a", "b"), 3)
    second = log.append_as_leader(records("c"), 4)

    assert (first.first_offset, first.last_offset) == (0, 1)
    assert (second.first_offset, second.last_offset, second.num_messages) == (2, 2, 1)
    assert [(r.offset, r.value) for r in read_all(log)] == [(0, b"a"), (1, b"b"), (2, b"c")]
    assert [b.leader_epoch for s in log.segments for b in s.log.batches()] == [3, 4]
    assert log.leader_epoch_cache.epoch_entries == ((3, 0), (4, 2))


@pytest.mark.parametrize("codec", list(CompressionType))
def test_every_codec_comes_back(storage: StorageHarness, codec: CompressionType) -> None:
    log = storage.open_log()

    append(log, *(f"value-{i}" for i in range(50)), compression=Compression(codec))

    assert values_of(log) == [f"value-{i}" for i in range(50)]
    assert {b.compression_type for b in log.active_segment.log.batches()} == {codec}


@pytest.mark.parametrize("magic", [0, 1])
def test_old_formats_are_stored_as_v2(storage: StorageHarness, magic: int) -> None:
    log = storage.open_log()

    info = log.append_as_leader(records("a", "b", magic=magic), 0)

    assert (info.first_offset, info.last_offset) == (0, 1)
    assert [b.magic for b in log.active_segment.log.batches()] == [2]
    assert values_of(log) == ["a", "b"]


def test_topic_codec_replaces_the_producers(storage: StorageHarness) -> None:
    log = storage.open_log(storage.config(compression_type="gzip"))

    append(log, "a" * 100, "b" * 100)

    assert [b.compression_type for b in log.active_segment.log.batches()] == [CompressionType.GZIP]
    assert values_of(log) == ["a" * 100, "b" * 100]


def test_log_append_time_is_the_brokers(storage: StorageHarness) -> None:
    log = storage.open_log(storage.config(message_timestamp_type="LogAppendTime"))

    info = log.append_as_leader(records("a", timestamp=5), 0)

    assert info.log_append_time == storage.time.milliseconds()
    assert [r.timestamp for r in read_all(log)] == [storage.time.milliseconds()]


def test_create_time_append_reports_no_append_time(storage: StorageHarness) -> None:
    info = storage.open_log().append_as_leader(records("a"), 0)

    assert (info.log_append_time, info.max_timestamp) == (-1, TIMESTAMP)


def test_corrupt_batch_is_refused_and_nothing_changes(storage: StorageHarness) -> None:
    log = storage.open_log()
    batch = records("a")
    batch.buffer[-1] ^= 1

    with pytest.raises(CorruptRecordError):
        log.append_as_leader(MemoryRecords(batch.buffer), 0)

    assert (log.log_end_offset, log.size) == (0, 0)
    assert storage.stats.invalid_message_crc_records.count == 1


def test_client_batch_must_begin_at_offset_zero(storage: StorageHarness) -> None:
    with pytest.raises(InvalidRecordError, match="base offset"):
        storage.open_log().append_as_leader(records("a", offset=5), 0)


def test_batch_above_max_message_bytes_is_refused(storage: StorageHarness) -> None:
    log = storage.open_log(storage.config(max_message_bytes=100))

    with pytest.raises(RecordTooLargeError):
        append(log, "x" * 100)

    assert storage.stats.topic_stats("topic").bytes_rejected.count > 100


def test_conversion_beyond_max_message_bytes_is_refused(storage: StorageHarness) -> None:
    log = storage.open_log(storage.config(max_message_bytes=200, compression_type="uncompressed"))

    with pytest.raises(RecordTooLargeError, match="conversion"):
        append(log, "x" * 1000, compression=Compression(CompressionType.GZIP))

    assert log.log_end_offset == 0


def test_follower_takes_any_size(storage: StorageHarness) -> None:
    log = storage.open_log(storage.config(max_message_bytes=100))

    log.append_as_follower(records("x" * 1000, offset=0, leader_epoch=1))

    assert log.log_end_offset == 1


def test_batch_above_segment_bytes_is_refused(storage: StorageHarness) -> None:
    log = storage.open_log(storage.config(segment_bytes=100))

    with pytest.raises(RecordBatchTooLargeError):
        append(log, "x" * 100)


def test_null_key_on_a_compacted_topic_is_refused(storage: StorageHarness) -> None:
    log = storage.open_log(storage.config(cleanup_policy=("compact",)))

    with pytest.raises(InvalidRecordError):
        append(log, "a", key=None)


def test_empty_records_append_nothing(storage: StorageHarness) -> None:
    info = storage.open_log().append_as_follower(MemoryRecords(b""))

    assert info.valid_bytes == 0


def test_follower_keeps_offsets_and_epochs(storage: StorageHarness) -> None:
    log = storage.open_log()

    log.append_as_follower(
        joined(records("a", offset=10, leader_epoch=2), records("b", offset=12, leader_epoch=5))
    )

    assert log.log_end_offset == 13
    assert log.leader_epoch_cache.epoch_entries == ((2, 10), (5, 12))


def test_follower_drops_half_a_batch_at_the_end(storage: StorageHarness) -> None:
    log = storage.open_log()
    whole = records("a", offset=0, leader_epoch=0)
    half = records("b", offset=1, leader_epoch=0).buffer[:40]

    log.append_as_follower(MemoryRecords(bytearray(bytes(whole.buffer) + bytes(half))))

    assert (log.log_end_offset, log.size) == (1, whole.size_in_bytes)


def test_follower_refuses_offsets_before_its_end(storage: StorageHarness) -> None:
    log = storage.open_log()
    log.append_as_follower(records("a", "b", offset=0, leader_epoch=0))

    with pytest.raises(UnexpectedAppendOffsetError) as raised:
        log.append_as_follower(records("c", offset=1, leader_epoch=0))

    assert (raised.value.first_offset, raised.value.last_offset) == (1, 1)


def test_follower_refuses_offsets_that_go_back(storage: StorageHarness) -> None:
    with pytest.raises(OffsetsOutOfOrderError):
        storage.open_log().append_as_follower(
            joined(records("a", offset=5), records("b", offset=4))
        )


def test_old_format_from_a_leader_clears_the_epochs(storage: StorageHarness) -> None:
    log = storage.open_log()
    log.append_as_follower(records("a", offset=0, leader_epoch=1))

    log.append_as_follower(records("b", offset=1, magic=1))

    assert log.leader_epoch_cache.is_empty
    assert log.log_end_offset == 2


# --- idempotent producers


def test_duplicate_is_answered_with_the_first_offset(storage: StorageHarness) -> None:
    log = storage.open_log()
    for i in range(5):
        append(log, "a", "b", producer_id=7, producer_epoch=0, sequence=i * 2)

    again = [
        log.append_as_leader(
            records("a", "b", producer_id=7, producer_epoch=0, sequence=i * 2), 0
        ).first_offset
        for i in range(5)
    ]

    assert again == [0, 2, 4, 6, 8]
    assert log.log_end_offset == 10


def test_duplicate_older_than_five_batches_is_out_of_order(storage: StorageHarness) -> None:
    log = storage.open_log()
    for i in range(6):
        append(log, "a", producer_id=7, producer_epoch=0, sequence=i)

    with pytest.raises(OutOfOrderSequenceError):
        append(log, "a", producer_id=7, producer_epoch=0, sequence=0)

    assert log.log_end_offset == 6


@pytest.mark.parametrize("sequence", [0, 2, 100])
def test_sequence_gap_is_refused(storage: StorageHarness, sequence: int) -> None:
    log = storage.open_log()
    append(log, "a", "b", producer_id=7, producer_epoch=0, sequence=0)

    with pytest.raises(OutOfOrderSequenceError):
        append(log, "c", producer_id=7, producer_epoch=0, sequence=sequence + 1)

    assert log.log_end_offset == 2


def test_sequence_wraps_around(storage: StorageHarness) -> None:
    log = storage.open_log()
    append(log, "a", "b", "c", producer_id=7, producer_epoch=0, sequence=(1 << 31) - 2)

    append(log, "d", producer_id=7, producer_epoch=0, sequence=1)
    duplicate = append(log, "a", "b", "c", producer_id=7, producer_epoch=0, sequence=(1 << 31) - 2)

    assert (log.log_end_offset, duplicate) == (4, 0)


def test_unknown_producer_may_begin_anywhere(storage: StorageHarness) -> None:
    log = storage.open_log()

    append(log, "a", producer_id=7, producer_epoch=3, sequence=50)

    assert log.log_end_offset == 1


def test_older_epoch_is_fenced(storage: StorageHarness) -> None:
    log = storage.open_log()
    append(log, "a", producer_id=7, producer_epoch=3, sequence=0)

    with pytest.raises(InvalidProducerEpochError):
        append(log, "b", producer_id=7, producer_epoch=2, sequence=1)

    assert log.log_end_offset == 1


def test_new_epoch_begins_with_sequence_zero(storage: StorageHarness) -> None:
    log = storage.open_log()
    append(log, "a", producer_id=7, producer_epoch=3, sequence=0)

    with pytest.raises(OutOfOrderSequenceError):
        append(log, "b", producer_id=7, producer_epoch=4, sequence=1)
    append(log, "b", producer_id=7, producer_epoch=4, sequence=0)

    assert log.log_end_offset == 2


def test_producer_expires_when_idle(storage: StorageHarness) -> None:
    log = storage.open_log()
    append(log, "a", producer_id=7, producer_epoch=0, sequence=0)

    storage.time.sleep(86_400_000 + 600_000)

    assert log.active_producers() == ()
    append(log, "b", producer_id=7, producer_epoch=0, sequence=9)
    assert log.log_end_offset == 2


def test_duplicate_is_known_after_a_restart(storage: StorageHarness) -> None:
    log = storage.open_log()
    append(log, "a", producer_id=7, producer_epoch=0, sequence=0)
    append(log, "b", producer_id=7, producer_epoch=0, sequence=1)
    log.close()

    log = storage.open_log()

    assert append(log, "b", producer_id=7, producer_epoch=0, sequence=1) == 1
    assert append(log, "c", producer_id=7, producer_epoch=0, sequence=2) == 2


def test_duplicates_of_five_batches_are_known_after_a_crash(storage: StorageHarness) -> None:
    log = storage.open_log()
    for i in range(3):
        append(log, "a", producer_id=7, producer_epoch=0, sequence=i)

    log = storage.open_log(clean=False)

    assert [append(log, "a", producer_id=7, producer_epoch=0, sequence=i) for i in range(3)] == [
        0,
        1,
        2,
    ]


def test_producer_state_follows_truncation(storage: StorageHarness) -> None:
    log = storage.open_log()
    for i in range(3):
        append(log, "a", producer_id=7, producer_epoch=0, sequence=i)

    log.truncate_to(1)

    assert append(log, "b", producer_id=7, producer_epoch=0, sequence=1) == 1


def test_coordinator_appends_without_sequence_checks(storage: StorageHarness) -> None:
    log = storage.open_log()
    append(log, "a", producer_id=7, producer_epoch=0, sequence=0, transactional=True)

    log.append_as_leader(marker(7, 0, commit=True), 0, origin=AppendOrigin.COORDINATOR)

    assert log.log_end_offset == 2


# --- the topic id


def test_topic_id_is_on_disk_before_the_first_record(storage: StorageHarness) -> None:
    topic_id = random_topic_id()
    log = storage.open_log(topic_id=topic_id)
    append(log, "a")
    log.close()

    assert storage.open_log().topic_id == topic_id
