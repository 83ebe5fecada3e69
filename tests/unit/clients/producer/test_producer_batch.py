import threading
import time

import pytest

from kafkapy.clients.producer.compression_ratio_estimator import CompressionRatioEstimator
from kafkapy.clients.producer.producer_batch import ProducerBatch
from kafkapy.common.compression import Compression, CompressionType
from kafkapy.common.errors import KafkaError, RequestTimeoutError
from kafkapy.common.record.default_record_batch import DefaultRecordBatch
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record import Header
from kafkapy.common.types import TopicPartition

PARTITION = TopicPartition("t", 3)


def make_batch(
    limit: int = 1000, codec: CompressionType = CompressionType.NONE, **more
) -> ProducerBatch:
    return ProducerBatch(
        PARTITION,
        write_limit=limit,
        reserved_bytes=limit,
        compression=Compression(codec),
        estimator=more.pop("estimator", None) or CompressionRatioEstimator(),
        created_ms=100,
        **more,
    )


def append(batch: ProducerBatch, value: bytes, timestamp: int = 5_000):
    return batch.try_append(timestamp, None, value, ())


def records_of(batch: ProducerBatch) -> list[bytes | None]:
    return [record.value for record in MemoryRecords(batch.close()).records()]


@pytest.mark.parametrize("codec", CompressionType)
def test_closed_batch_is_one_of_kafkas(codec: CompressionType) -> None:
    batch = make_batch(codec=codec)
    batch.try_append(5_000, b"k", b"v", (Header("h", b"x"),))
    batch.try_append(4_000, None, None, ())
    batch.set_producer_state(77, 3, 12, is_transactional=True)

    read = DefaultRecordBatch(memoryview(batch.close()))

    read.ensure_valid()
    assert (read.producer_id, read.producer_epoch, read.base_sequence) == (77, 3, 12)
    assert (read.count, read.last_offset, read.max_timestamp) == (2, 1, 5_000)
    assert read.is_transactional and read.compression_type is codec
    first, second = read.records()
    assert (first.timestamp, first.key, first.value) == (5_000, b"k", b"v")
    assert first.headers == (Header("h", b"x"),)
    assert (second.timestamp, second.key, second.value) == (4_000, None, None)


def test_batch_takes_records_up_to_its_limit_and_the_first_in_any_case() -> None:
    batch = make_batch(limit=300)
    assert append(batch, b"x" * 100) is not None
    assert append(batch, b"x" * 100) is not None
    assert not batch.is_full

    assert append(batch, b"x" * 100) is None

    assert records_of(batch) == [b"x" * 100] * 2
    large = make_batch(limit=300)
    assert append(large, b"x" * 1000) is not None
    assert large.is_full


def test_size_is_estimated_by_how_earlier_batches_compressed() -> None:
    estimator = CompressionRatioEstimator()
    estimator.reset("t", 0.1)
    batch = make_batch(limit=300, codec=CompressionType.GZIP, estimator=estimator)

    for _ in range(15):
        assert append(batch, b"x" * 100) is not None

    assert len(batch.close()) < 300
    assert batch.compression_ratio < 0.1
    assert estimator.estimation("t") == pytest.approx(0.095)


def test_futures_tell_each_record_its_offset() -> None:
    batch = make_batch()
    futures = [append(batch, b"v", timestamp=5_000 + i) for i in range(3)]
    assert not futures[0].is_done and futures[0].value is None

    assert batch.complete(40, -1)

    assert [future.get(0).offset for future in futures] == [40, 41, 42]
    assert [future.get(0).timestamp for future in futures] == [5_000, 5_001, 5_002]
    assert futures[2].get(0)[:2] == PARTITION


def test_log_append_time_replaces_the_records_own() -> None:
    batch = make_batch()
    future = append(batch, b"v")

    batch.complete(0, 9_999)

    assert future.get(0).timestamp == 9_999


def test_only_the_first_end_counts() -> None:
    batch = make_batch()
    future = append(batch, b"v")
    batch.abort(KafkaError("aborted"))

    assert not batch.complete(7, -1)
    assert not batch.complete_exceptionally(KafkaError("failed"))

    with pytest.raises(KafkaError, match="aborted"):
        future.get(0)
    assert future.failed() and not future.succeeded()


def test_success_twice_is_an_error() -> None:
    batch = make_batch()
    batch.complete(7, -1)

    with pytest.raises(ValueError, match="twice"):
        batch.complete(7, -1)


def test_records_may_fail_for_different_reasons() -> None:
    batch = make_batch()
    futures = [append(batch, b"v") for _ in range(2)]

    batch.complete_exceptionally(KafkaError("all"), lambda index: KafkaError(f"number {index}"))

    assert [str(future.exception) for future in futures] == ["number 0", "number 1"]


def test_waiting_for_an_outcome_has_an_end() -> None:
    future = append(make_batch(), b"v")

    with pytest.raises(RequestTimeoutError, match="t-3"):
        future.get(0)


def test_callbacks_are_called_once_also_when_added_late_or_beside_one_that_fails() -> None:
    batch = make_batch()
    future = append(batch, b"v")
    seen: list[object] = []

    def fail(metadata: object, error: object) -> None:
        raise RuntimeError("callback")

    future.when_done(fail)
    future.add_callback(lambda metadata: seen.append(metadata.offset))
    future.add_errback(seen.append)
    batch.complete(7, -1)
    future.when_done(fail)  # as when the answer comes before the callback is handed in
    future.add_both(lambda metadata: seen.append(("late", metadata.offset)))

    assert seen == [7, ("late", 7)]


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.GZIP])
def test_split_batch_keeps_records_order_sequences_and_futures(codec: CompressionType) -> None:
    batch = make_batch(limit=10_000, codec=codec)
    futures = [append(batch, b"%04d" % i * 25, timestamp=5_000 + i) for i in range(20)]
    batch.set_producer_state(77, 3, 100, is_transactional=True)
    seen: list[int] = []
    for future in futures:
        future.add_callback(lambda metadata: seen.append(metadata.offset))

    parts = batch.split(500)

    assert batch.is_done and len(parts) > 3
    assert [v for part in parts for v in records_of(part)] == [b"%04d" % i * 25 for i in range(20)]
    sequence = 100
    for part in parts:
        assert part.is_split and part.is_closed and part.is_transactional
        assert (part.producer_id, part.producer_epoch, part.base_sequence) == (77, 3, sequence)
        sequence += part.record_count
    assert not any(future.is_done for future in futures)
    offset = 1000
    for part in parts:
        part.complete(offset, -1)
        offset += part.record_count
    assert [future.get(0).offset for future in futures] == list(range(1000, 1020))
    assert seen == list(range(1000, 1020))


def test_future_of_a_split_batch_is_waited_for_no_longer_than_once() -> None:
    batch = make_batch(limit=10_000)
    future, *_ = [append(batch, b"v" * 100) for _ in range(20)]
    split = threading.Timer(0.4, batch.split, (500,))
    split.start()
    started = time.monotonic()

    with pytest.raises(RequestTimeoutError):
        future.get(0.6)

    waited = time.monotonic() - started
    split.join()
    assert 0.55 < waited < 0.9


def test_record_larger_than_the_split_size_is_a_batch_of_its_own() -> None:
    batch = make_batch(limit=10_000)
    for size in (10, 2_000, 10):
        append(batch, b"x" * size)

    parts = batch.split(100)

    assert [part.record_count for part in parts] == [1, 1, 1]


def test_retry_to_a_new_leader_is_told_from_one_to_the_same() -> None:
    batch = make_batch()
    batch.maybe_update_leader_epoch(5)
    assert not batch.has_leader_changed_for_the_ongoing_retry

    batch.reenqueued(200)
    batch.maybe_update_leader_epoch(5)
    assert not batch.has_leader_changed_for_the_ongoing_retry
    batch.maybe_update_leader_epoch(6)
    assert batch.has_leader_changed_for_the_ongoing_retry

    batch.reenqueued(300)
    batch.maybe_update_leader_epoch(6)
    assert not batch.has_leader_changed_for_the_ongoing_retry


def test_new_place_in_the_sequence_changes_the_bytes_and_not_the_records() -> None:
    batch = make_batch()
    append(batch, b"v")
    batch.set_producer_state(77, 3, 12)
    batch.close()

    batch.reset_producer_state(77, 4, 0)

    read = DefaultRecordBatch(memoryview(batch.close()))
    read.ensure_valid()
    assert (read.producer_epoch, read.base_sequence) == (4, 0)
    assert batch.sequence_has_been_reset
    assert records_of(batch) == [b"v"]


def test_estimate_gets_worse_at_once_and_better_slowly() -> None:
    estimator = CompressionRatioEstimator()

    estimator.update("t", 0.2)
    assert estimator.estimation("t") == pytest.approx(0.995)
    estimator.reset("t", 0.3)
    estimator.update("t", 0.5)
    assert estimator.estimation("t") == pytest.approx(0.5)
    estimator.update("t", 0.51)
    assert estimator.estimation("t") == pytest.approx(0.55)
    assert estimator.estimation("other") == 1.0
