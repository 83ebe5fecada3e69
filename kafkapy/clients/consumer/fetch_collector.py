"""Turns what was fetched into what poll returns."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from kafkapy.clients.client_errors import IllegalStateError
from kafkapy.clients.consumer.completed_fetch import CompletedFetch
from kafkapy.clients.consumer.consumer_errors import FetchOffsetOutOfRangeError
from kafkapy.clients.consumer.consumer_metrics import ConsumerMetrics
from kafkapy.clients.consumer.consumer_record import ConsumerRecord
from kafkapy.clients.consumer.fetch_buffer import FetchBuffer
from kafkapy.clients.consumer.fetch_config import FetchConfig
from kafkapy.clients.consumer.subscription_state import SubscriptionState
from kafkapy.clients.consumer.topic_partition_state import FetchPosition
from kafkapy.clients.metadata import Metadata
from kafkapy.common.errors import Errors, KafkaError, TopicAuthorizationError
from kafkapy.common.types import TopicPartition
from kafkapy.utils.time import Time

logger = logging.getLogger(__name__)

_STALE_METADATA = frozenset(
    {
        Errors.NOT_LEADER_OR_FOLLOWER,
        Errors.REPLICA_NOT_AVAILABLE,
        Errors.KAFKA_STORAGE_ERROR,
        Errors.FENCED_LEADER_EPOCH,
        Errors.OFFSET_NOT_AVAILABLE,
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
        Errors.UNKNOWN_TOPIC_ID,
        Errors.INCONSISTENT_TOPIC_ID,
    }
)


@dataclass(slots=True)
class Fetch:
    """Records by partition; also without records a position may have moved.

    Ports: org.apache.kafka.clients.consumer.internals.Fetch
    """

    records: dict[TopicPartition, list[ConsumerRecord]] = field(default_factory=dict)
    position_advanced: bool = False

    @property
    def is_empty(self) -> bool:
        return not self.records and not self.position_advanced


class FetchCollector:
    """Takes records out of the buffer and moves the positions past them. For the polling thread.

    Ports: org.apache.kafka.clients.consumer.internals.FetchCollector
    """

    def __init__(
        self,
        *,
        metadata: Metadata,
        subscriptions: SubscriptionState,
        config: FetchConfig,
        metrics: ConsumerMetrics,
        time: Time,
    ) -> None:
        # constant after construction
        self._metadata = metadata
        self._subscriptions = subscriptions
        self._config = config
        self._metrics = metrics
        self._time = time

    def collect_fetch(self, buffer: FetchBuffer, max_records: int) -> Fetch:
        """At most so many records; raises what made a fetch fail, once nothing comes before it."""
        fetch = Fetch()
        paused: list[CompletedFetch] = []
        remaining = max_records
        try:
            while remaining > 0:
                current = buffer.next_in_line
                if current is None or current.is_consumed:
                    upcoming = buffer.peek()
                    if upcoming is None:
                        break
                    buffer.next_in_line = self._initialized(upcoming, buffer, fetch)
                    buffer.pop()
                elif self._subscriptions.is_paused(current.partition):
                    # Kept for when it is resumed, out of the way of the others.
                    paused.append(current)
                    buffer.next_in_line = None
                else:
                    remaining -= self._take_records(current, remaining, fetch)
        except KafkaError:
            if fetch.is_empty:
                raise
        finally:
            buffer.add_all(paused)
        return fetch

    def _initialized(
        self, fetch: CompletedFetch, buffer: FetchBuffer, collected: Fetch
    ) -> CompletedFetch | None:
        if fetch.is_initialized:
            return fetch
        try:
            return self._initialize(fetch)
        except KafkaError:
            # One that only carries an error goes with it; one with records is tried again.
            if collected.is_empty and fetch.size_in_bytes == 0:
                buffer.pop()
            raise

    def _take_records(self, fetch: CompletedFetch, max_records: int, into: Fetch) -> int:
        partition = fetch.partition
        subscriptions = self._subscriptions
        if not subscriptions.is_fetchable(partition):
            logger.debug("Dropping what was fetched of %s: it is not to be read now", partition)
            fetch.drain()
            return 0
        position = subscriptions.position(partition)
        if position is None or fetch.next_fetch_offset != position.offset:
            logger.debug("Dropping what was fetched of %s: it is at %s now", partition, position)
            fetch.drain()
            return 0
        try:
            records = fetch.fetch_records(max_records)
        finally:
            if fetch.is_consumed and fetch.size_in_bytes:
                subscriptions.move_partition_to_end(partition)
        if fetch.next_fetch_offset > position.offset:
            subscriptions.update_position(
                partition,
                FetchPosition(fetch.next_fetch_offset, fetch.last_epoch, position.current_leader),
            )
            into.position_advanced = True
        if records:
            known = into.records.get(partition)
            if known is None:
                into.records[partition] = records
            else:
                known += records
            lag = subscriptions.partition_lag(partition, read_committed=self._config.read_committed)
            self._metrics.records_consumed(partition, len(records), lag)
        return len(records)

    def _initialize(self, fetch: CompletedFetch) -> CompletedFetch | None:
        """None when it is of no use."""
        partition = fetch.partition
        subscriptions = self._subscriptions
        error = Errors.for_code(fetch.data.error_code)
        position = subscriptions.position_if_assigned(partition)
        if position is None or not subscriptions.has_valid_position(partition):
            logger.debug("Dropping what was fetched of %s: it has no position now", partition)
            return None
        if error is not Errors.NONE:
            try:
                self._handle_error(fetch, error)
            finally:
                subscriptions.move_partition_to_end(partition)
            return None
        if position.offset != fetch.next_fetch_offset:
            logger.debug("Dropping what was fetched of %s: it is at %s now", partition, position)
            return None
        fetch.initialize()
        data = fetch.data
        subscriptions.update_log_ends(
            partition,
            high_watermark=data.high_watermark,
            last_stable_offset=data.last_stable_offset,
        )
        if data.preferred_read_replica >= 0:
            subscriptions.update_preferred_read_replica(
                partition,
                data.preferred_read_replica,
                self._time.hi_res_clock_ms() + self._config.preferred_read_replica_ms,
            )
        return fetch

    def _handle_error(self, fetch: CompletedFetch, error: Errors) -> None:
        partition = fetch.partition
        subscriptions = self._subscriptions
        if error in _STALE_METADATA:
            logger.debug("Fetching %s failed: %s", partition, error.name)
            self._metadata.request_update(reset_equivalent_response_backoff=False)
            subscriptions.clear_preferred_read_replica(partition)
        elif error is Errors.OFFSET_OUT_OF_RANGE:
            # A follower may be behind the leader: ask the leader before anything is reset.
            if subscriptions.clear_preferred_read_replica(partition) is not None:
                return
            position = subscriptions.position_if_assigned(partition)
            if position is None or position.offset != fetch.next_fetch_offset:
                return
            if not subscriptions.has_default_reset_policy:
                raise FetchOffsetOutOfRangeError({partition: position.offset})
            logger.info("Offset %d of %s is outside the log", position.offset, partition)
            subscriptions.request_offset_reset_if_assigned(partition)
        elif error is Errors.TOPIC_AUTHORIZATION_FAILED:
            raise TopicAuthorizationError(f"Not authorized to read topic {partition.topic}")
        elif error in (Errors.UNKNOWN_LEADER_EPOCH, Errors.UNKNOWN_SERVER_ERROR):
            logger.info("Fetching %s failed: %s", partition, error.name)
        elif error is Errors.CORRUPT_MESSAGE:
            raise KafkaError(
                f"The broker found a corrupt record when reading {partition} at offset"
                f" {fetch.next_fetch_offset}"
            )
        else:
            raise IllegalStateError(f"Fetching {partition} failed unexpectedly: {error.name}")
