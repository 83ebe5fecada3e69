"""Records one by one, with positions that follow."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

from kafkapy.clients.consumer.consumer_record import ConsumerRecord
from kafkapy.clients.consumer.subscription_state import SubscriptionState
from kafkapy.clients.consumer.topic_partition_state import FetchPosition
from kafkapy.common.types import TopicPartition
from kafkapy.utils.time import Time

Poll = Callable[[int], dict[TopicPartition, list[ConsumerRecord]]]

_POLL_MS = 1_000


class RecordIterator:
    """Goes through what polls return. While it does, each position is just past the last record
    handed out: a commit covers no record that the application has not seen.

    For the one thread that uses the consumer.
    """

    def __init__(
        self, poll: Poll, subscriptions: SubscriptionState, time: Time, timeout_ms: int
    ) -> None:
        """It ends after `timeout_ms` without a record; -1: never."""
        self._poll = poll
        self._subscriptions = subscriptions
        self._time = time
        self._timeout_ms = timeout_ms

    def records(self) -> Generator[ConsumerRecord, None, None]:
        last_ms = self._time.hi_res_clock_ms()
        while True:
            wait_ms = _POLL_MS
            if self._timeout_ms >= 0:
                left_ms = last_ms + self._timeout_ms - self._time.hi_res_clock_ms()
                if left_ms <= 0:
                    return
                wait_ms = min(wait_ms, left_ms)
            polled = self._poll(wait_ms)
            ends = {tp: self._rewind(tp, records[0]) for tp, records in polled.items()}
            for partition, records in polled.items():
                yield from self._records_of(partition, records, ends[partition])
            if polled:
                last_ms = self._time.hi_res_clock_ms()

    def _rewind(self, partition: TopicPartition, first: ConsumerRecord) -> FetchPosition | None:
        """Back to the first record; the position at which the next poll goes on."""
        return self._subscriptions.rewind_position(partition, first.offset)

    def _records_of(
        self, partition: TopicPartition, records: list[ConsumerRecord], end: FetchPosition | None
    ) -> Iterator[ConsumerRecord]:
        if end is None:
            return
        subscriptions = self._subscriptions
        expected = records[0].offset
        for record in records:
            # The application may have sought elsewhere, or lost the partition, meanwhile.
            if not subscriptions.advance_position(partition, expected, record.offset + 1):
                return
            expected = record.offset + 1
            yield record
        subscriptions.advance_position(partition, expected, end.offset)
