"""What a fetch brought of one partition, on its way to the application."""

from __future__ import annotations

import heapq
import logging
from collections.abc import Iterator
from itertools import islice

from kafkapy.clients.consumer.consumer_errors import RecordDeserializationError
from kafkapy.clients.consumer.consumer_record import ConsumerRecord
from kafkapy.clients.consumer.fetch_config import FetchConfig
from kafkapy.common.errors import ApiError, Errors, KafkaError
from kafkapy.common.protocol.messages.fetch import FetchResponse
from kafkapy.common.record.control_record import ControlRecordType
from kafkapy.common.record.default_record import RecordFields, read_record_fields
from kafkapy.common.record.default_record_batch import DefaultRecordBatch
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record import TimestampType
from kafkapy.common.record.record_batch import RecordBatch
from kafkapy.common.types import TopicPartition

logger = logging.getLogger(__name__)

_new_tuple = tuple.__new__


class CompletedFetch:
    """The batches of one partition out of one response, taken apart as records are asked for.

    For the one thread that polls its consumer.

    Ports: org.apache.kafka.clients.consumer.internals.CompletedFetch
    """

    def __init__(
        self,
        partition: TopicPartition,
        data: FetchResponse.PartitionData,
        *,
        fetch_offset: int,
        config: FetchConfig,
    ) -> None:
        # constant after construction
        self.partition = partition
        self.data = data
        self._config = config
        self._has_deserializers = (
            config.key_deserializer is not None or config.value_deserializer is not None
        )

        self.next_fetch_offset = fetch_offset
        self.last_epoch: int | None = None
        self.is_consumed = False
        self.is_initialized = False
        self._decoded: MemoryRecords | None = None
        self._batches: Iterator[RecordBatch] = iter(())
        self._batch: RecordBatch | None = None
        self._records: Iterator[RecordFields] | None = None
        # A deserializer fails for the same record again, until the application seeks past it.
        self._failure: KafkaError | None = None
        self._aborted = [
            (aborted.first_offset, aborted.producer_id)
            for aborted in data.aborted_transactions or ()
        ]
        heapq.heapify(self._aborted)
        self._aborted_producer_ids: set[int] = set()

    @property
    def size_in_bytes(self) -> int:
        records = self.data.records
        return 0 if records is None else len(records)  # type: ignore[arg-type]

    @property
    def end_offset(self) -> int | None:
        """Where the next fetch goes on; None when that is not known before this one is handled."""
        if not self.size_in_bytes or self.data.error_code != Errors.NONE.code:
            return None
        try:
            batches = list(self._memory_records().batches())
        except ApiError:
            return None  # for initialize to tell
        return batches[-1].next_offset if batches else None

    def initialize(self) -> None:
        """Find the batches; KafkaError when there are bytes and no whole batch."""
        try:
            batches = list(self._memory_records().batches())
        except ApiError as error:
            raise KafkaError(
                f"What was fetched of {self.partition} at offset {self.next_fetch_offset}"
                f" is corrupt: {error}"
            ) from error
        if not batches and self.size_in_bytes:
            raise KafkaError(
                f"The batch of {self.partition} at offset {self.next_fetch_offset} is larger"
                " than max.partition.fetch.bytes, and the broker sends only part of it"
            )
        self._batches = iter(batches)
        self.is_initialized = True

    def _memory_records(self) -> MemoryRecords:
        """Decoded once, and kept there."""
        if self._decoded is None:
            self._decoded = MemoryRecords(self.data.records or b"")  # type: ignore[arg-type]
        return self._decoded

    def drain(self) -> None:
        """Nothing more is wanted of it."""
        self.is_consumed = True
        self._records = None
        self._decoded = None
        self._batches = iter(())

    def fetch_records(self, max_records: int) -> list[ConsumerRecord]:
        """The next records, fewer than asked for only at the end, or before one that cannot be
        read; KafkaError when that one is the first."""
        if self._failure is not None:
            raise self._failure
        records: list[ConsumerRecord] = []
        while len(records) < max_records and not self.is_consumed:
            try:
                if self._records is None and not self._next_batch():
                    self.drain()
                    break
                self._take(records, max_records - len(records))
            except KafkaError as error:
                self._failure = error
                if not records:
                    raise
                break
        return records

    def _take(self, into: list[ConsumerRecord], wanted: int) -> None:
        """Up to so many records of the current batch; it is left behind once it is empty."""
        batch, rows = self._batch, self._records
        assert batch is not None and rows is not None
        before = len(into)
        try:
            if self._has_deserializers:
                for row in islice(rows, wanted):
                    into.append(self._deserialized(row, batch))
            else:
                into += self._as_they_are(rows, batch, wanted)
        except ApiError as error:
            # The fast way gives all or nothing: have those before the bad record one by one.
            if len(into) == before:
                self._take_readable(into, batch, wanted)
            raise KafkaError(
                f"A record of {self.partition} after offset {batch.base_offset} cannot be read:"
                f" {error}; seek past it to go on"
            ) from error
        finally:
            if len(into) > before:
                self.next_fetch_offset = into[-1].offset + 1
        if len(into) - before < wanted:
            self._leave_batch()

    def _as_they_are(
        self, rows: Iterator[RecordFields], batch: RecordBatch, wanted: int
    ) -> list[ConsumerRecord]:
        topic, partition = self.partition
        epoch = batch.leader_epoch
        kind = batch.timestamp_type
        # The constructor of a NamedTuple costs as much as reading the record.
        return [
            _new_tuple(
                ConsumerRecord,
                (
                    topic,
                    partition,
                    epoch,
                    offset,
                    timestamp,
                    kind,
                    key,
                    value,
                    headers,
                    key_size,
                    value_size,
                ),
            )
            for offset, timestamp, key, value, headers, _, key_size, value_size in islice(
                rows, wanted
            )
        ]

    def _take_readable(self, into: list[ConsumerRecord], batch: RecordBatch, wanted: int) -> None:
        try:
            for row in islice(self._rows_from_position(batch), wanted):
                into.append(self._deserialized(row, batch))
        except ApiError as error:
            logger.debug("%s is readable up to here: %s", self.partition, error)

    def _deserialized(self, row: RecordFields, batch: RecordBatch) -> ConsumerRecord:
        offset, timestamp, key, value, headers, _, key_size, value_size = row
        topic, partition = self.partition
        config = self._config
        what = "key"
        try:
            new_key, new_value = key, value
            if key is not None and config.key_deserializer is not None:
                new_key = config.key_deserializer(topic, headers, key)
            what = "value"
            if value is not None and config.value_deserializer is not None:
                new_value = config.value_deserializer(topic, headers, value)
        except Exception as error:
            raise RecordDeserializationError(self.partition, offset, what) from error
        return ConsumerRecord(
            topic,
            partition,
            batch.leader_epoch,
            offset,
            timestamp,
            batch.timestamp_type,
            new_key,
            new_value,
            headers,
            key_size,
            value_size,
        )

    def _next_batch(self) -> bool:
        """Go to the next batch with records for the application; False at the end."""
        for batch in self._batches:
            if self._config.check_crcs:
                self._ensure_valid(batch)
            if self._config.read_committed and batch.has_producer_id:
                while self._aborted and self._aborted[0][0] <= batch.last_offset:
                    self._aborted_producer_ids.add(heapq.heappop(self._aborted)[1])
                if batch.is_control_batch:
                    if self._is_abort_marker(batch):
                        self._aborted_producer_ids.discard(batch.producer_id)
                elif batch.is_transactional and batch.producer_id in self._aborted_producer_ids:
                    self._pass_over(batch)
                    continue
            if batch.is_control_batch:
                self._pass_over(batch)
                continue
            self._batch = batch
            self.last_epoch = batch.leader_epoch if batch.leader_epoch >= 0 else None
            self._records = self._rows_from_position(batch)
            return True
        return False

    def _rows_from_position(self, batch: RecordBatch) -> Iterator[RecordFields]:
        rows = _rows_of(batch)
        first = self.next_fetch_offset
        if batch.base_offset >= first:
            return rows
        # A position in the middle of a batch: the broker sends the batch from its start.
        return (row for row in rows if row[0] >= first)

    def _leave_batch(self) -> None:
        batch = self._batch
        assert batch is not None
        self._records = None
        self._batch = None
        # Past records that compaction has removed from its end.
        self.next_fetch_offset = max(self.next_fetch_offset, batch.next_offset)

    def _pass_over(self, batch: RecordBatch) -> None:
        self.last_epoch = batch.leader_epoch if batch.leader_epoch >= 0 else None
        self.next_fetch_offset = batch.next_offset

    def _ensure_valid(self, batch: RecordBatch) -> None:
        try:
            batch.ensure_valid()
        except ApiError as error:
            raise KafkaError(
                f"A batch of {self.partition} at offset {self.next_fetch_offset} is corrupt:"
                f" {error}; seek past it to go on"
            ) from error

    def _is_abort_marker(self, batch: RecordBatch) -> bool:
        first = next(batch.records(), None)
        return first is not None and ControlRecordType.parse(first.key) is ControlRecordType.ABORT


def _rows_of(batch: RecordBatch) -> Iterator[RecordFields]:
    if isinstance(batch, DefaultRecordBatch):
        rows = read_record_fields(
            batch.record_input(), batch.count or 0, batch.base_offset, batch.base_timestamp
        )
        if batch.timestamp_type is TimestampType.LOG_APPEND_TIME:
            append_time = batch.max_timestamp
            return ((row[0], append_time, *row[2:]) for row in rows)
        return rows
    return (
        (
            record.offset,
            record.timestamp,
            record.key,
            record.value,
            record.headers,
            record.size_in_bytes,
            -1 if record.key is None else len(record.key),
            -1 if record.value is None else len(record.value),
        )
        for record in batch.records()
    )
