"""A batch of records on its way to one partition."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from enum import Enum, auto

from kafkapy.clients.producer.compression_ratio_estimator import CompressionRatioEstimator
from kafkapy.clients.producer.future_record_metadata import (
    FutureRecordMetadata,
    ProduceRequestResult,
)
from kafkapy.clients.producer.record_metadata import UNKNOWN_OFFSET
from kafkapy.common.compression import Compression, CompressionType
from kafkapy.common.errors import KafkaError, RecordBatchTooLargeError
from kafkapy.common.record.default_record import encode_record
from kafkapy.common.record.default_record_batch import DefaultRecordBatch, encode_batch
from kafkapy.common.record.record import NO_TIMESTAMP, Header
from kafkapy.common.record.record_batch import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    RECORD_BATCH_OVERHEAD,
    TRANSACTIONAL_FLAG_MASK,
    increment_sequence,
)
from kafkapy.common.types import TopicPartition

logger = logging.getLogger(__name__)

# The estimate of a batch being filled errs on the large side.
_ESTIMATION_FACTOR = 1.05


class FinalState(Enum):
    """Ports: org.apache.kafka.clients.producer.internals.ProducerBatch.FinalState"""

    ABORTED = auto()
    FAILED = auto()
    SUCCEEDED = auto()


class ProducerBatch:
    """Records of one partition, encoded as they come, and who waits for them.

    Filled under the accumulator's lock, then handled by the sender's thread alone; only the first
    of several ends counts. Times are the monotonic clock's, timestamps the records' own.

    Ports: org.apache.kafka.clients.producer.internals.ProducerBatch
    """

    __slots__ = (
        "_attempts_when_leader_changed",
        "_base_timestamp",
        "_compressed",
        "_encoded",
        "_end_lock",
        "_estimator",
        "_final_state",
        "_futures",
        "_leader_epoch",
        "_max_timestamp",
        "_ratio",
        "_records",
        "_size",
        "_write_limit",
        "attempts",
        "base_sequence",
        "compression",
        "created_ms",
        "drained_ms",
        "in_retry",
        "is_closed",
        "is_filled",
        "is_split",
        "is_transactional",
        "last_attempt_ms",
        "last_record_bytes",
        "parts",
        "producer_epoch",
        "producer_id",
        "record_count",
        "reopened",
        "reserved_bytes",
        "result",
        "topic_partition",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        *,
        write_limit: int,
        reserved_bytes: int,
        compression: Compression,
        estimator: CompressionRatioEstimator,
        created_ms: int,
        is_split: bool = False,
    ) -> None:
        # constant after construction
        self.topic_partition = topic_partition
        self.compression = compression
        self.created_ms = created_ms
        self.is_split = is_split
        self.reserved_bytes = reserved_bytes  # of the buffer pool
        self._write_limit = write_limit
        self._estimator = estimator
        self.result = ProduceRequestResult(topic_partition)
        self._end_lock = threading.Lock()

        self.record_count = 0
        self.is_closed = False
        self.attempts = 0
        self.in_retry = False
        self.reopened = False  # its sequence was set anew after it had been sent
        self.drained_ms = created_ms
        self.last_attempt_ms = created_ms
        self.is_filled = False  # no more records are worth waiting for
        self.last_record_bytes = 0
        self.parts: list[ProducerBatch] = []  # what it was split into
        self._leader_epoch: int | None = None
        self._attempts_when_leader_changed = -1
        self.producer_id = NO_PRODUCER_ID
        self.producer_epoch = NO_PRODUCER_EPOCH
        self.base_sequence = NO_SEQUENCE
        self.is_transactional = False
        # Joined when the batch is closed: a buffer that grows would be copied again and again.
        self._records: list[bytes] = []
        self._size = 0
        self._ratio = 1.0
        if compression.type is not CompressionType.NONE:
            self._ratio = estimator.estimation(topic_partition.topic) * _ESTIMATION_FACTOR
        self._base_timestamp = NO_TIMESTAMP
        self._max_timestamp = NO_TIMESTAMP
        self._futures: list[FutureRecordMetadata] = []
        self._compressed = b""
        self._encoded: bytearray | None = None
        self._final_state: FinalState | None = None  # set under self._end_lock

    def try_append(
        self,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header],
    ) -> FutureRecordMetadata | None:
        """Append one record; None when it does not fit. The first always does."""
        index = self.record_count
        if index == 0:
            self._base_timestamp = timestamp
        record = encode_record(timestamp - self._base_timestamp, index, key, value, headers)
        record_size = len(record)
        size = self._size + record_size
        estimated_size = size * self._ratio + RECORD_BATCH_OVERHEAD
        if estimated_size >= self._write_limit:
            if index > 0 and estimated_size > self._write_limit:
                return None
            self.is_filled = True
        if timestamp > self._max_timestamp:
            self._max_timestamp = timestamp
        self._records.append(record)
        self._size = size
        self.last_record_bytes = record_size
        self.record_count = index + 1
        future = FutureRecordMetadata(
            self.result,
            index,
            timestamp,
            -1 if key is None else len(key),
            -1 if value is None else len(value),
        )
        self._futures.append(future)
        return future

    # Its bytes

    @property
    def is_full(self) -> bool:
        return self.is_closed or self.is_filled

    @property
    def estimated_size_bytes(self) -> int:
        if self._encoded is not None:
            return len(self._encoded)
        return RECORD_BATCH_OVERHEAD + int(self._size * self._ratio)

    @property
    def compression_ratio(self) -> float:
        return len(self._compressed) / self._size if self._compressed else 1.0

    @property
    def is_compressed(self) -> bool:
        return self.compression.type is not CompressionType.NONE

    def close_for_appends(self) -> None:
        """No record fits any more."""
        self.is_closed = True

    def close(self) -> bytearray:
        """The batch as it is sent; the same at each call until the producer state changes."""
        self.is_closed = True
        if self._encoded is None:
            if self._records:
                self._compressed = b"".join(self._records)
                self._records.clear()
                if self.is_compressed:
                    self._compressed = self.compression.compress(self._compressed)
                    self._estimator.update(self.topic_partition.topic, self.compression_ratio)
            attributes = int(self.compression.type)
            if self.is_transactional:
                attributes |= TRANSACTIONAL_FLAG_MASK
            self._encoded = encode_batch(
                self._compressed,
                count=self.record_count,
                attributes=attributes,
                last_offset_delta=self.record_count - 1,
                base_timestamp=self._base_timestamp,
                max_timestamp=self._max_timestamp,
                producer_id=self.producer_id,
                producer_epoch=self.producer_epoch,
                base_sequence=self.base_sequence,
            )
        return self._encoded

    # Its place in the producer's sequence

    @property
    def has_sequence(self) -> bool:
        return self.base_sequence != NO_SEQUENCE

    @property
    def last_sequence(self) -> int:
        return increment_sequence(self.base_sequence, self.record_count - 1)

    @property
    def sequence_has_been_reset(self) -> bool:
        return self.reopened

    def set_producer_state(
        self,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        *,
        is_transactional: bool = False,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.is_transactional = is_transactional
        self._encoded = None

    def reset_producer_state(
        self, producer_id: int, producer_epoch: int, base_sequence: int
    ) -> None:
        """Another place than the one it was sent with before."""
        self.reopened = True
        self.set_producer_state(
            producer_id, producer_epoch, base_sequence, is_transactional=self.is_transactional
        )

    # Attempts

    def waited_ms(self, now_ms: int) -> int:
        return max(0, now_ms - self.last_attempt_ms)

    def queue_time_ms(self) -> int:
        return self.drained_ms - self.created_ms

    def reenqueued(self, now_ms: int) -> None:
        self.attempts += 1
        self.last_attempt_ms = now_ms
        self.in_retry = True

    def drained(self, now_ms: int) -> None:
        self.drained_ms = max(self.drained_ms, now_ms)

    def has_reached_delivery_timeout(self, delivery_timeout_ms: int, now_ms: int) -> bool:
        return delivery_timeout_ms <= now_ms - self.created_ms

    def maybe_update_leader_epoch(self, leader_epoch: int | None) -> None:
        """The partition is led in this epoch now."""
        if leader_epoch is not None and (
            self._leader_epoch is None or leader_epoch > self._leader_epoch
        ):
            self._attempts_when_leader_changed = self.attempts
            self._leader_epoch = leader_epoch

    @property
    def has_leader_changed_for_the_ongoing_retry(self) -> bool:
        """Whether the next attempt goes to another leader than the last, and so need not wait."""
        return self.attempts > 0 and self.attempts == self._attempts_when_leader_changed

    # Its end

    @property
    def is_done(self) -> bool:
        return self._final_state is not None

    def complete(self, base_offset: int, log_append_time: int) -> bool:
        """It was written. False when it had ended before."""
        return self._end(FinalState.SUCCEEDED, base_offset, log_append_time, None)

    def complete_exceptionally(
        self, error: KafkaError, error_by_index: Callable[[int], KafkaError] | None = None
    ) -> bool:
        """It failed, each record by its own error where those are known."""
        return self._end(
            FinalState.FAILED, UNKNOWN_OFFSET, NO_TIMESTAMP, error_by_index or (lambda _: error)
        )

    def abort(self, error: KafkaError) -> None:
        """Give up on it; an answer that comes later is ignored."""
        self._end(FinalState.ABORTED, UNKNOWN_OFFSET, NO_TIMESTAMP, lambda _: error)

    def split(self, batch_size: int) -> list[ProducerBatch]:
        """Smaller batches with its records, to which the futures move on; this one is done."""
        buffer = memoryview(self.close())
        batches: list[ProducerBatch] = []
        batch: ProducerBatch | None = None
        records = DefaultRecordBatch(buffer).records()
        for record, future in zip(records, self._futures, strict=True):
            moved = None
            if batch is not None:
                moved = batch.try_append(record.timestamp, record.key, record.value, record.headers)
            if batch is None or moved is None:
                batch = ProducerBatch(
                    self.topic_partition,
                    write_limit=max(batch_size, RECORD_BATCH_OVERHEAD + record.size_in_bytes),
                    reserved_bytes=0,
                    compression=self.compression,
                    estimator=self._estimator,
                    created_ms=self.created_ms,
                    is_split=True,
                )
                batches.append(batch)
                moved = batch.try_append(record.timestamp, record.key, record.value, record.headers)
            assert moved is not None  # the first record of a batch always fits
            future.chain(moved)
        sequence = self.base_sequence
        for part in batches:
            part.close_for_appends()
            if self.has_sequence:
                part.set_producer_state(
                    self.producer_id,
                    self.producer_epoch,
                    sequence,
                    is_transactional=self.is_transactional,
                )
                sequence = increment_sequence(sequence, part.record_count)
        self.parts = batches
        error = RecordBatchTooLargeError("The batch was split")
        self._end(FinalState.FAILED, UNKNOWN_OFFSET, NO_TIMESTAMP, lambda _: error)
        return batches

    def _end(
        self,
        state: FinalState,
        base_offset: int,
        log_append_time: int,
        error_by_index: Callable[[int], KafkaError] | None,
    ) -> bool:
        with self._end_lock:
            if self._final_state is not None:
                # An aborted batch may be answered after all; nothing else ends twice.
                if self._final_state is FinalState.SUCCEEDED and state is FinalState.SUCCEEDED:
                    raise ValueError(f"a batch of {self.topic_partition} succeeded twice")
                logger.debug("Batch of %s ended %s before", self.topic_partition, state)
                return False
            self._final_state = state
        self.result.complete(base_offset, log_append_time, error_by_index)
        return True

    def __repr__(self) -> str:
        return f"ProducerBatch({self.topic_partition}, {self.record_count} records)"
