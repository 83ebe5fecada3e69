"""Records that wait to be sent, in batches by partition."""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kafkapy.clients.client_errors import IllegalStateError
from kafkapy.clients.cluster import Cluster
from kafkapy.clients.cluster_connection_states import FOREVER_MS
from kafkapy.clients.metadata_snapshot import MetadataSnapshot
from kafkapy.clients.producer.buffer_pool import BufferPool
from kafkapy.clients.producer.compression_ratio_estimator import CompressionRatioEstimator
from kafkapy.clients.producer.future_record_metadata import FutureRecordMetadata
from kafkapy.clients.producer.partitioner import UNKNOWN_PARTITION, BuiltInPartitioner
from kafkapy.clients.producer.producer_batch import ProducerBatch
from kafkapy.clients.producer.transaction_manager import TransactionManager
from kafkapy.common.compression import Compression
from kafkapy.common.errors import KafkaError, RequestTimeoutError
from kafkapy.common.record.default_record import record_size_upper_bound
from kafkapy.common.record.record import Header
from kafkapy.common.record.record_batch import RECORD_BATCH_OVERHEAD
from kafkapy.common.types import TopicPartition
from kafkapy.metadata.broker import Node
from kafkapy.utils.backoff import ExponentialBackoff
from kafkapy.utils.time import Time

_EXPONENT_BASE = 2

# The future, whether a batch was begun, whether the sender should look. Plain: one a record.
RecordAppendResult: TypeAlias = tuple[FutureRecordMetadata, bool, bool]


@dataclass(frozen=True, slots=True)
class AccumulatorConfig:
    """What the accumulator is told by the producer's settings."""

    batch_size: int
    compression: Compression
    linger_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    delivery_timeout_ms: int


@dataclass(frozen=True, slots=True)
class ReadyCheckResult:
    """Nodes that have something to be sent to, and when to look again.

    Ports: org.apache.kafka.clients.producer.internals.RecordAccumulator.ReadyCheckResult
    """

    ready_nodes: frozenset[Node]
    next_ready_check_delay_ms: int
    unknown_leader_topics: frozenset[str]


class _TopicInfo:
    __slots__ = ("batches", "partitioner")

    def __init__(self, partitioner: BuiltInPartitioner) -> None:
        self.partitioner = partitioner
        self.batches: dict[int, deque[ProducerBatch]] = {}


class RecordAccumulator:
    """Batches by partition; whoever sends appends to them and the sender drains them. Thread-safe.

    One lock for all of it: with one interpreter lock around, finer ones would only cost.

    Ports: org.apache.kafka.clients.producer.internals.RecordAccumulator
    """

    def __init__(
        self,
        config: AccumulatorConfig,
        buffer_pool: BufferPool,
        time: Time,
        *,
        transaction_manager: TransactionManager | None = None,
        rng: random.Random | None = None,
    ) -> None:
        # constant after construction
        self._batch_size = max(1, config.batch_size)
        self._compression = config.compression
        self._linger_ms = config.linger_ms
        self.delivery_timeout_ms = config.delivery_timeout_ms
        self._retry_backoff = ExponentialBackoff(
            config.retry_backoff_ms, _EXPONENT_BASE, config.retry_backoff_max_ms
        )
        self._free = buffer_pool
        self._time = time
        self._transaction_manager = transaction_manager
        self._estimator = CompressionRatioEstimator()
        self._random = rng or random.Random()
        # Before a transaction manager's, where both are taken.
        self._lock = threading.Lock()
        # guarded by self._lock
        self._topic_infos: dict[str, _TopicInfo] = {}
        self._undrained: dict[TopicPartition, deque[ProducerBatch]] = {}  # none of them empty
        self._incomplete: dict[ProducerBatch, None] = {}  # in the order they were begun
        self._flushes_in_progress = 0
        self._appends_in_progress = 0
        self._closed = False
        # used by the sender's thread only
        self._muted: set[TopicPartition] = set()
        self._drain_index = 0
        self._next_batch_expiry_ms: int | None = None

    # Filling

    def append(
        self,
        topic: str,
        partition: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header],
        max_block_ms: int,
        cluster: Cluster,
    ) -> RecordAppendResult:
        """Add a record; without a partition to the topic's current one.

        Waits for memory when a batch must be begun; BufferExhaustedError after `max_block_ms`.
        """
        # Positional, for speed. This is the path of nearly every record; the other follows below.
        info = self._topic_infos.get(topic)
        if info is not None:
            with self._lock:
                if self._closed:
                    raise IllegalStateError("The producer is closed")
                effective = partition
                if partition == UNKNOWN_PARTITION:
                    effective = info.partitioner.partition(cluster)
                batches = info.batches.get(effective)
                if batches:
                    batch = batches[-1]
                    if not batch.is_closed:
                        future = batch.try_append(timestamp, key, value, headers)
                        if future is not None:
                            filled = batch.is_filled
                            if partition == UNKNOWN_PARTITION:
                                info.partitioner.update(
                                    batch.last_record_bytes, cluster, may_switch=filled
                                )
                            return future, False, filled
                        batch.close_for_appends()
        return self._append_to_new_batch(
            topic, partition, timestamp, key, value, headers, max_block_ms, cluster
        )

    def _append_to_new_batch(
        self,
        topic: str,
        partition: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header],
        max_block_ms: int,
        cluster: Cluster,
    ) -> RecordAppendResult:
        upper_bound = RECORD_BATCH_OVERHEAD + record_size_upper_bound(key, value, headers)
        size = max(self._batch_size, upper_bound)
        with self._lock:
            self._ensure_open_locked()
            # Whoever closes by force waits until nobody can add a batch any more.
            self._appends_in_progress += 1
        is_reserved = False
        try:
            self._free.allocate(size, max_block_ms)
            is_reserved = True
            now_ms = self._time.hi_res_clock_ms()
            with self._lock:
                self._ensure_open_locked()
                info = self._topic_info_locked(topic)
                effective = partition
                if partition == UNKNOWN_PARTITION:
                    effective = info.partitioner.partition(cluster)
                batches = info.batches.setdefault(effective, deque())
                future: FutureRecordMetadata | None = None
                begun = False
                if batches and not batches[-1].is_closed:
                    # Somebody else began a batch while this thread waited for memory.
                    batch = batches[-1]
                    future = batch.try_append(timestamp, key, value, headers)
                    if future is None:
                        batch.close_for_appends()
                if future is None:
                    begun = True
                    batch = ProducerBatch(
                        TopicPartition(topic, effective),
                        write_limit=size,
                        reserved_bytes=size,
                        compression=self._compression,
                        estimator=self._estimator,
                        created_ms=now_ms,
                    )
                    future = batch.try_append(timestamp, key, value, headers)
                    assert future is not None  # the first record always fits
                    is_reserved = False
                    if not batches:
                        self._undrained[batch.topic_partition] = batches
                    batches.append(batch)
                    self._incomplete[batch] = None
                if partition == UNKNOWN_PARTITION:
                    info.partitioner.update(
                        batch.last_record_bytes, cluster, may_switch=batch.is_filled
                    )
                # Of more than two the sender knows already, and comes when it can.
                return future, begun, len(batches) <= 2 or batch.is_filled
        finally:
            with self._lock:
                self._appends_in_progress -= 1
            if is_reserved:
                self._free.deallocate(size)

    # Draining

    def ready(self, snapshot: MetadataSnapshot, now_ms: int) -> ReadyCheckResult:
        """Which nodes have a batch that is full, or has waited long enough, or is not to wait."""
        ready_nodes: set[Node] = set()
        unknown_leader_topics: set[str] = set()
        delay_ms = FOREVER_MS
        manager = self._transaction_manager
        with self._lock:
            nothing_waits = (
                self._free.queued > 0
                or self._closed
                or self._flushes_in_progress > 0
                or (manager is not None and manager.is_completing)
            )
            for partition, batches in self._undrained.items():
                batch = batches[0]
                leader = snapshot.cluster.leader_for(partition)
                if leader is None:
                    unknown_leader_topics.add(partition.topic)
                    continue
                if leader in ready_nodes or partition in self._muted:
                    continue
                batch.maybe_update_leader_epoch(snapshot.leader_epoch_for(partition))
                waited_ms = batch.waited_ms(now_ms)
                backoff_ms = self._backoff_ms(batch, waited_ms)
                if backoff_ms > 0:
                    delay_ms = min(delay_ms, backoff_ms)
                    continue
                linger_left_ms = self._linger_ms - waited_ms
                is_full = len(batches) > 1 or batch.is_full
                if is_full or nothing_waits or batch.attempts > 0 or linger_left_ms <= 0:
                    ready_nodes.add(leader)
                else:
                    delay_ms = min(delay_ms, linger_left_ms)
        return ReadyCheckResult(frozenset(ready_nodes), delay_ms, frozenset(unknown_leader_topics))

    def drain(
        self, snapshot: MetadataSnapshot, nodes: Collection[Node], max_size: int, now_ms: int
    ) -> dict[int, list[ProducerBatch]]:
        """Take one batch of each partition that the nodes lead, up to `max_size` for each node."""
        drained: dict[int, list[ProducerBatch]] = {node.id: [] for node in nodes}
        if not drained:
            return {}
        sizes = dict.fromkeys(drained, 0)
        manager = self._transaction_manager
        with self._lock:
            partitions = list(self._undrained)
            # Another first each time, or a small max.request.size would starve the last.
            self._drain_index = (self._drain_index + 1) % max(1, len(partitions))
            start = self._drain_index
            for partition in partitions[start:] + partitions[:start]:
                leader = snapshot.cluster.leader_for(partition)
                if leader is None or leader.id not in drained or partition in self._muted:
                    continue
                batches = self._undrained[partition]
                batch = batches[0]
                batch.maybe_update_leader_epoch(snapshot.leader_epoch_for(partition))
                if self._backoff_ms(batch, batch.waited_ms(now_ms)) > 0:
                    continue
                size = batch.estimated_size_bytes
                if drained[leader.id] and sizes[leader.id] + size > max_size:
                    continue
                if manager is not None and not manager.try_assign_sequence(batch):
                    continue
                self._poll_first_locked(partition, batches)
                sizes[leader.id] += size
                drained[leader.id].append(batch)
        # Outside the lock: this is where records are compressed.
        for batches_of_node in drained.values():
            for batch in batches_of_node:
                batch.close()
                batch.drained(now_ms)
        return drained

    def _backoff_ms(self, batch: ProducerBatch, waited_ms: int) -> int:
        """How long a batch that failed has still to wait."""
        if batch.attempts == 0 or batch.has_leader_changed_for_the_ongoing_retry:
            return 0
        return max(0, self._retry_backoff.backoff_ms(batch.attempts - 1) - waited_ms)

    def expired_batches(self, now_ms: int) -> list[ProducerBatch]:
        """Take out the batches that were not sent within the delivery time-out."""
        expired: list[ProducerBatch] = []
        with self._lock:
            for partition, batches in list(self._undrained.items()):
                while batches:
                    batch = batches[0]
                    if not batch.has_reached_delivery_timeout(self.delivery_timeout_ms, now_ms):
                        self.maybe_update_next_batch_expiry(batch)
                        break
                    self._poll_first_locked(partition, batches)
                    batch.close_for_appends()
                    expired.append(batch)
        return expired

    def maybe_update_next_batch_expiry(self, batch: ProducerBatch) -> None:
        expiry_ms = batch.created_ms + self.delivery_timeout_ms
        if self._next_batch_expiry_ms is None or expiry_ms < self._next_batch_expiry_ms:
            self._next_batch_expiry_ms = expiry_ms

    def reset_next_batch_expiry(self) -> None:
        self._next_batch_expiry_ms = None

    def time_to_next_expiry_ms(self, now_ms: int) -> int:
        expiry_ms = self._next_batch_expiry_ms
        return FOREVER_MS if expiry_ms is None else max(0, expiry_ms - now_ms)

    # Coming back

    def reenqueue(self, batch: ProducerBatch, now_ms: int) -> None:
        """A batch is to be tried again: in front of the others."""
        batch.reenqueued(now_ms)
        with self._lock:
            batches = self._batches_of_locked(batch.topic_partition)
            self._insert_locked(batches, batch)

    def split_and_reenqueue(self, batch: ProducerBatch) -> int:
        """The broker finds the batch too large: put smaller ones in its place; how many."""
        topic = batch.topic_partition.topic
        # It compressed worse than was thought when it was filled.
        self._estimator.reset(topic, max(1.0, batch.compression_ratio))
        target_size = self._batch_size
        if batch.is_split:
            target_size = batch.estimated_size_bytes // 2
        parts = batch.split(target_size)
        with self._lock:
            batches = self._batches_of_locked(batch.topic_partition)
            for part in reversed(parts):
                self._incomplete[part] = None
                if self._transaction_manager is not None:
                    self._transaction_manager.add_in_flight_batch(part)
                self._insert_locked(batches, part)
        return len(parts)

    def _insert_locked(self, batches: deque[ProducerBatch], batch: ProducerBatch) -> None:
        self._undrained[batch.topic_partition] = batches
        if not batch.has_sequence:
            batches.appendleft(batch)
            return
        # Among batches that were sent before, the order is that of their sequences.
        index = 0
        for queued in batches:
            if not queued.has_sequence or queued.base_sequence >= batch.base_sequence:
                break
            index += 1
        batches.insert(index, batch)

    def deallocate(self, batch: ProducerBatch) -> None:
        """The batch is done with."""
        with self._lock:
            self._incomplete.pop(batch, None)
        reserved, batch.reserved_bytes = batch.reserved_bytes, 0
        if reserved:
            self._free.deallocate(reserved)

    # For the sender and the user

    @property
    def has_undrained(self) -> bool:
        with self._lock:
            return bool(self._undrained)

    @property
    def has_incomplete(self) -> bool:
        with self._lock:
            return bool(self._incomplete)

    def mute_partition(self, partition: TopicPartition) -> None:
        self._muted.add(partition)

    def unmute_partition(self, partition: TopicPartition) -> None:
        self._muted.discard(partition)

    def begin_flush(self) -> None:
        with self._lock:
            self._flushes_in_progress += 1

    def await_flush_completion(self, timeout_ms: int | None = None) -> None:
        """Wait until what was appended before `begin_flush` is done and its callbacks have been
        called; RequestTimeoutError."""
        deadline_ms = None
        if timeout_ms is not None:
            deadline_ms = self._time.hi_res_clock_ms() + timeout_ms
        try:
            with self._lock:
                waiting = deque(self._incomplete)
            while waiting:
                batch = waiting.popleft()
                timeout_s = None
                if deadline_ms is not None:
                    timeout_s = max(0, deadline_ms - self._time.hi_res_clock_ms()) / 1000
                if not batch.result.wait(timeout_s, for_callbacks=True):
                    raise RequestTimeoutError(
                        f"{len(waiting) + 1} batches were not flushed within {timeout_ms} ms"
                    )
                waiting.extend(batch.parts)
        finally:
            with self._lock:
                self._flushes_in_progress -= 1

    def abort_undrained_batches(self, reason: KafkaError) -> None:
        """Give up on the batches that no broker can have seen."""
        self._abort(
            reason,
            lambda batch: (
                not (
                    batch.has_sequence if self._transaction_manager is not None else batch.is_closed
                )
            ),
        )

    def abort_incomplete_batches(self, reason: KafkaError) -> None:
        """Give up on everything; `close` comes before."""
        while True:
            self._abort(reason, lambda batch: True)
            with self._lock:
                if self._appends_in_progress == 0:
                    break
            # They wait for memory, and find the pool closed; then one more time.
            self._time.sleep(1)
        self._abort(reason, lambda batch: True)

    def close(self) -> None:
        """No more appends."""
        with self._lock:
            self._closed = True

    def _abort(self, reason: KafkaError, chosen: Callable[[ProducerBatch], bool]) -> None:
        with self._lock:
            aborted = [batch for batch in self._incomplete if chosen(batch)]
            for batch in aborted:
                batch.close_for_appends()
                batches = self._undrained.get(batch.topic_partition)
                if batches is not None and batch in batches:
                    batches.remove(batch)
                    if not batches:
                        del self._undrained[batch.topic_partition]
        for batch in aborted:
            batch.abort(reason)
            self.deallocate(batch)

    def _ensure_open_locked(self) -> None:
        if self._closed:
            raise IllegalStateError("The producer is closed")

    def _topic_info_locked(self, topic: str) -> _TopicInfo:
        info = self._topic_infos.get(topic)
        if info is None:
            partitioner = BuiltInPartitioner(topic, self._batch_size, self._random)
            info = self._topic_infos[topic] = _TopicInfo(partitioner)
        return info

    def _batches_of_locked(self, partition: TopicPartition) -> deque[ProducerBatch]:
        info = self._topic_info_locked(partition.topic)
        return info.batches.setdefault(partition.partition, deque())

    def _poll_first_locked(self, partition: TopicPartition, batches: deque[ProducerBatch]) -> None:
        batch = batches.popleft()
        batch.close_for_appends()
        if not batches:
            del self._undrained[partition]
