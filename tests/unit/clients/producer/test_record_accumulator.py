from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pytest

from kafkapy.clients.client_errors import IllegalStateError
from kafkapy.clients.cluster_connection_states import FOREVER_MS
from kafkapy.clients.metadata import Metadata
from kafkapy.clients.metadata_snapshot import MetadataSnapshot
from kafkapy.clients.producer.buffer_pool import BufferExhaustedError, BufferPool
from kafkapy.clients.producer.partitioner import UNKNOWN_PARTITION
from kafkapy.clients.producer.producer_batch import ProducerBatch
from kafkapy.clients.producer.record_accumulator import AccumulatorConfig, RecordAccumulator
from kafkapy.common.compression import NO_COMPRESSION
from kafkapy.common.errors import KafkaError, RequestTimeoutError
from kafkapy.common.types import TopicPartition
from tests.helpers.mock_time import MockTime
from tests.unit.clients.metadata_responses import metadata_response, node

BATCH_SIZE = 1000
LINGER_MS = 50
DELIVERY_TIMEOUT_MS = 10_000
CONFIG = AccumulatorConfig(
    batch_size=BATCH_SIZE,
    compression=NO_COMPRESSION,
    linger_ms=LINGER_MS,
    retry_backoff_ms=100,
    retry_backoff_max_ms=1_000,
    delivery_timeout_ms=DELIVERY_TIMEOUT_MS,
)
MAX_REQUEST = 1 << 20


class Fixture:
    """An accumulator, a cluster of two brokers, topic "t" with four partitions."""

    def __init__(
        self, time: MockTime, config: AccumulatorConfig = CONFIG, memory: int = 100_000
    ) -> None:
        self.time = time
        self.pool = BufferPool(memory, time)
        self.accumulator = RecordAccumulator(config, self.pool, time, rng=random.Random(5))
        metadata = Metadata(refresh_backoff_ms=1, refresh_backoff_max_ms=1, metadata_expire_ms=1)
        metadata.update_with_current_request_version(
            metadata_response({"t": 4}, brokers=2), is_partial_update=False, now_ms=0
        )
        self.snapshot: MetadataSnapshot = metadata.snapshot

    @property
    def now_ms(self) -> int:
        return self.time.hi_res_clock_ms()

    def append(self, value: bytes = b"v", partition: int = 0):
        return self.accumulator.append(
            "t", partition, 1, None, value, (), 10, self.snapshot.cluster
        )

    def ready(self):
        return self.accumulator.ready(self.snapshot, self.now_ms)

    def drain(self, *nodes: int, max_size: int = MAX_REQUEST) -> list[ProducerBatch]:
        chosen = [node(i) for i in nodes or (0, 1)]
        drained = self.accumulator.drain(self.snapshot, chosen, max_size, self.now_ms)
        return [batch for batches in drained.values() for batch in batches]


@pytest.fixture
def fixture(time: MockTime) -> Fixture:
    return Fixture(time)


def test_batch_is_ready_once_it_is_full(fixture: Fixture) -> None:
    appended = 0
    while True:
        _, begun, should_wake = fixture.append(b"x" * 100)
        appended += 1
        assert should_wake == begun
        if begun and appended > 1:
            break
        assert fixture.ready().ready_nodes == frozenset()

    assert fixture.ready().ready_nodes == {node(0)}
    (batch,) = fixture.drain()
    assert batch.record_count == appended - 1
    assert len(batch.close()) <= BATCH_SIZE


def test_batch_that_is_not_full_is_ready_after_the_linger_time(fixture: Fixture) -> None:
    fixture.append()

    assert fixture.ready().next_ready_check_delay_ms == LINGER_MS
    fixture.time.sleep(LINGER_MS - 1)
    assert fixture.ready().ready_nodes == frozenset()
    assert fixture.ready().next_ready_check_delay_ms == 1
    fixture.time.sleep(1)
    assert fixture.ready().ready_nodes == {node(0)}


def test_nothing_to_send_is_nothing_to_look_at_again(fixture: Fixture) -> None:
    assert fixture.ready().next_ready_check_delay_ms == FOREVER_MS
    assert not fixture.accumulator.has_undrained and not fixture.accumulator.has_incomplete


def test_sender_is_woken_for_what_it_does_not_know(fixture: Fixture) -> None:
    wakes = [fixture.append(b"x" * 600)[2] for _ in range(5)]

    # Begun, then the first is full; of the others it knows by then.
    assert wakes == [True, True, False, False, False]


def test_topics_without_a_leader_are_named(fixture: Fixture) -> None:
    fixture.append(partition=7)

    assert fixture.ready().unknown_leader_topics == {"t"}
    assert fixture.ready().ready_nodes == frozenset()
    assert fixture.drain() == []


def test_drain_takes_one_batch_of_each_partition_of_the_nodes(fixture: Fixture) -> None:
    for partition in range(4):
        for _ in range(2):
            fixture.append(b"x" * 900, partition)

    of_one = fixture.drain(1)
    assert sorted(b.topic_partition.partition for b in of_one) == [1, 3]
    rest = fixture.drain()
    assert sorted(b.topic_partition.partition for b in rest) == [0, 1, 2, 3]
    assert fixture.drain(1) == []
    assert len(fixture.drain(0)) == 2
    assert not fixture.accumulator.has_undrained and fixture.accumulator.has_incomplete


def test_drain_keeps_to_the_request_size_but_takes_at_least_one(fixture: Fixture) -> None:
    for partition in (0, 2):
        fixture.append(b"x" * 900, partition)

    assert len(fixture.drain(0, max_size=1500)) == 1
    assert len(fixture.drain(0, max_size=10)) == 1


def test_partitions_take_turns_when_requests_are_small(time: MockTime) -> None:
    fixture = Fixture(time)
    for partition in (0, 2):
        for _ in range(3):
            fixture.append(b"x" * 900, partition)

    order = [fixture.drain(0, max_size=10)[0].topic_partition.partition for _ in range(4)]

    assert set(order[:2]) == set(order[2:]) == {0, 2}


def test_muted_partition_is_neither_ready_nor_drained(fixture: Fixture) -> None:
    fixture.append(b"x" * 2000)
    fixture.accumulator.mute_partition(TopicPartition("t", 0))

    assert fixture.ready().ready_nodes == frozenset()
    assert fixture.drain() == []
    fixture.accumulator.unmute_partition(TopicPartition("t", 0))
    assert len(fixture.drain()) == 1


def test_retried_batch_waits_its_backoff_and_goes_first(fixture: Fixture) -> None:
    fixture.append(b"first" * 200)
    (batch,) = fixture.drain()
    fixture.append(b"second" * 200)

    fixture.accumulator.reenqueue(batch, fixture.now_ms)

    assert fixture.ready().ready_nodes == frozenset()
    assert 0 < fixture.ready().next_ready_check_delay_ms <= 120
    assert fixture.drain() == []
    fixture.time.sleep(121)
    assert fixture.drain() == [batch]
    assert batch.attempts == 1 and batch.in_retry


def test_retried_batch_does_not_wait_for_a_new_leader(fixture: Fixture) -> None:
    fixture.append(b"x" * 2000)
    (batch,) = fixture.drain()
    fixture.accumulator.reenqueue(batch, fixture.now_ms)
    metadata = Metadata(refresh_backoff_ms=1, refresh_backoff_max_ms=1, metadata_expire_ms=1)
    metadata.update_with_current_request_version(
        metadata_response({"t": 4}, brokers=2, leader_epoch=1, leaders={("t", 0): 1}),
        is_partial_update=False,
        now_ms=0,
    )
    fixture.snapshot = metadata.snapshot

    assert fixture.ready().ready_nodes == {node(1)}
    assert fixture.drain(1) == [batch]


def test_flush_sends_at_once_and_waits_for_what_was_there(fixture: Fixture) -> None:
    fixture.append()
    fixture.accumulator.begin_flush()

    assert fixture.ready().ready_nodes == {node(0)}
    (batch,) = fixture.drain()
    with pytest.raises(RequestTimeoutError, match="1 batches"):
        fixture.accumulator.await_flush_completion(0)
    fixture.append()
    assert fixture.ready().ready_nodes == frozenset()  # that flush is over
    batch.complete(0, -1)
    fixture.accumulator.deallocate(batch)
    fixture.accumulator.begin_flush()
    (second,) = fixture.drain()
    second.complete(1, -1)
    fixture.accumulator.await_flush_completion()


def test_flush_waits_for_callbacks_that_are_running(fixture: Fixture) -> None:
    future, _, _ = fixture.append()
    fixture.accumulator.begin_flush()
    (batch,) = fixture.drain()
    outcomes: list[str] = []

    def flush_meanwhile(metadata: object, error: object) -> None:
        with pytest.raises(RequestTimeoutError):
            fixture.accumulator.await_flush_completion(0)
        outcomes.append("still waiting")

    future.when_done(flush_meanwhile)
    batch.complete(0, -1)

    assert outcomes == ["still waiting"]
    fixture.accumulator.begin_flush()
    fixture.accumulator.await_flush_completion(0)


def test_flush_waits_for_the_parts_of_a_split_batch(fixture: Fixture) -> None:
    for _ in range(8):
        fixture.append(b"x" * 100)
    (batch,) = fixture.drain()
    fixture.accumulator.split_and_reenqueue(batch)
    fixture.accumulator.deallocate(batch)

    fixture.accumulator.begin_flush()

    with pytest.raises(RequestTimeoutError):
        fixture.accumulator.await_flush_completion(0)


def test_split_batches_take_the_place_of_the_large_one(time: MockTime) -> None:
    fixture = Fixture(time, replace(CONFIG, batch_size=5000))
    futures = [fixture.append(b"%02d" % i * 50)[0] for i in range(40)]
    (batch,) = fixture.drain()
    fixture.append(b"later" * 1000)

    count = fixture.accumulator.split_and_reenqueue(batch)
    fixture.accumulator.deallocate(batch)

    assert count == 1  # one of the batch size again: only the next split halves it
    (again,) = fixture.drain()
    assert again.is_split and again.record_count == 40
    assert fixture.accumulator.split_and_reenqueue(again) >= 2
    parts = [fixture.drain()[0] for _ in range(2)]
    assert sum(part.record_count for part in parts) <= 40
    assert not futures[0].is_done


def test_batches_expire_after_the_delivery_timeout(fixture: Fixture) -> None:
    fixture.append(partition=0)
    fixture.time.sleep(100)
    fixture.append(partition=1)
    assert fixture.accumulator.expired_batches(fixture.now_ms) == []
    assert fixture.accumulator.time_to_next_expiry_ms(fixture.now_ms) == DELIVERY_TIMEOUT_MS - 100

    fixture.time.sleep(DELIVERY_TIMEOUT_MS - 100)

    (expired,) = fixture.accumulator.expired_batches(fixture.now_ms)
    assert expired.topic_partition.partition == 0
    fixture.accumulator.reset_next_batch_expiry()
    assert fixture.accumulator.time_to_next_expiry_ms(fixture.now_ms) == FOREVER_MS
    assert fixture.accumulator.expired_batches(fixture.now_ms) == []
    assert fixture.accumulator.time_to_next_expiry_ms(fixture.now_ms) == 100


def test_full_pool_fails_appends_and_makes_batches_ready(time: MockTime) -> None:
    fixture = Fixture(time, memory=2 * BATCH_SIZE)
    for _ in range(2):
        fixture.append(b"x" * 900)
    # MockTime stands still: no time to wait at all.
    with pytest.raises(BufferExhaustedError):
        fixture.accumulator.append("t", 0, 1, None, b"x" * 900, (), 0, fixture.snapshot.cluster)

    assert fixture.pool.available_bytes == 0
    for batch in (*fixture.drain(), *fixture.drain()):
        batch.complete(0, -1)
        fixture.accumulator.deallocate(batch)
        fixture.accumulator.deallocate(batch)  # once is enough
    assert fixture.pool.available_bytes == 2 * BATCH_SIZE
    fixture.append(b"x" * 900)


def test_large_record_gets_a_batch_of_its_own_size(fixture: Fixture) -> None:
    fixture.append(b"x" * 5000)

    (batch,) = fixture.drain()

    assert batch.reserved_bytes > 5000
    assert fixture.pool.available_bytes == 100_000 - batch.reserved_bytes


def test_records_without_a_partition_fill_one_after_the_other(fixture: Fixture) -> None:
    futures = [fixture.append(b"x" * 100, UNKNOWN_PARTITION)[0] for _ in range(100)]

    partitions = [future.topic_partition.partition for future in futures]
    runs = 1 + sum(a != b for a, b in itertools.pairwise(partitions))
    assert set(partitions) == {0, 1, 2, 3}
    assert runs <= 12


def test_closed_accumulator_takes_nothing_and_gives_what_it_has(fixture: Fixture) -> None:
    fixture.append()
    fixture.accumulator.close()

    for partition in (0, 1):
        with pytest.raises(IllegalStateError, match="closed"):
            fixture.append(partition=partition)
    assert fixture.ready().ready_nodes == {node(0)}


def test_aborting_fails_everything_and_frees_its_memory(fixture: Fixture) -> None:
    drained_future, _, _ = fixture.append(b"x" * 2000)
    fixture.drain()
    waiting_future, _, _ = fixture.append()
    fixture.accumulator.close()

    fixture.accumulator.abort_incomplete_batches(KafkaError("enough"))

    for future in (drained_future, waiting_future):
        assert str(future.exception) == "enough"
    assert fixture.pool.available_bytes == 100_000
    assert not fixture.accumulator.has_incomplete and not fixture.accumulator.has_undrained


def test_aborting_what_was_not_drained_leaves_what_was(fixture: Fixture) -> None:
    drained_future, _, _ = fixture.append(b"x" * 2000)
    fixture.drain()
    waiting_future, _, _ = fixture.append()

    fixture.accumulator.abort_undrained_batches(KafkaError("enough"))

    assert waiting_future.failed() and not drained_future.is_done
