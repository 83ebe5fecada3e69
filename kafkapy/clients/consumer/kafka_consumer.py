"""The consumer as applications use it."""

from __future__ import annotations

import inspect
import logging
import re
import uuid
from collections.abc import Collection, Generator, Iterator, Mapping
from types import TracebackType
from typing import Any, Self, overload

from kafkapy.clients.client_arguments import MAX_INT64, check_topic
from kafkapy.clients.client_config import parse_client_config
from kafkapy.clients.client_errors import IllegalStateError
from kafkapy.clients.cluster import PartitionInfo
from kafkapy.clients.consumer.consumer_config import ConsumerConfig
from kafkapy.clients.consumer.consumer_coordinator import ConsumerCoordinator
from kafkapy.clients.consumer.consumer_group_metadata import ConsumerGroupMetadata
from kafkapy.clients.consumer.consumer_parts import ConsumerParts
from kafkapy.clients.consumer.consumer_rebalance_listener import ConsumerRebalanceListener
from kafkapy.clients.consumer.consumer_record import ConsumerRecord
from kafkapy.clients.consumer.fetch_collector import Fetch
from kafkapy.clients.consumer.offset_and_metadata import OffsetAndMetadata, OffsetAndTimestamp
from kafkapy.clients.consumer.offset_committer import OffsetCommitCallback
from kafkapy.clients.consumer.offset_reset_strategy import OffsetResetStrategy
from kafkapy.clients.consumer.record_iterator import RecordIterator
from kafkapy.clients.consumer.topic_partition_state import FetchPosition
from kafkapy.clients.deadline import Deadline
from kafkapy.clients.single_thread_guard import SingleThreadGuard
from kafkapy.common.errors import InvalidGroupIdError, KafkaError
from kafkapy.common.types import TopicPartition
from kafkapy.utils.time import SystemTime, Time

logger = logging.getLogger(__name__)

DEFAULT_CLOSE_TIMEOUT_MS = 30_000


class KafkaConsumer:
    """Reads records from topics, alone or sharing partitions with the other members of a group.

        consumer = KafkaConsumer("topic", bootstrap_servers="localhost:9092", group_id="group")
        for record in consumer:
            print(record.value)

    For one thread at a time: any other is refused with ConcurrentModificationError. Only `wakeup`
    may be called from anywhere; it makes the call under way, or the next one, raise WakeupError.
    Settings are those of ConsumerConfig.

    Ports: org.apache.kafka.clients.consumer.KafkaConsumer
    """

    def __init__(
        self,
        *topics: str,
        properties: Mapping[str, Any] | None = None,
        time: Time | None = None,
        **settings: Any,
    ) -> None:
        """`topics` are subscribed to at once; settings are keywords or dotted `properties`."""
        explicit = settings.keys() | {name.replace(".", "_") for name in properties or {}}
        config = parse_client_config(ConsumerConfig, properties, settings)
        self._time = time or SystemTime()
        self._guard = SingleThreadGuard("consumer")
        self._parts = ConsumerParts.build(
            config,
            self._time,
            client_id=config.client_id or _client_id(config.group_id),
            is_auto_commit_explicit="enable_auto_commit" in explicit,
        )
        self.config = config
        self._iterator: Generator[ConsumerRecord, None, None] | None = None
        self._has_all_positions = False
        self._is_closing = False
        if topics:
            try:
                self.subscribe(topics)
            except BaseException:
                self.close(0)
                raise

    # Subscriptions

    def subscribe(
        self,
        topics: Collection[str] | re.Pattern[str] = (),
        pattern: str | re.Pattern[str] | None = None,
        listener: ConsumerRebalanceListener | None = None,
    ) -> None:
        """Join the group for these topics, or for all whose whole name matches the pattern.

        It replaces what was subscribed to before; no topics at all: as unsubscribe.
        """
        with self._guard:
            if isinstance(topics, re.Pattern):
                pattern = topics
                topics = ()
            if isinstance(topics, str):
                raise TypeError("topics must be a list of names, not one name")
            topics = tuple(topics)  # an iterator can be gone through only once
            if topics and pattern is not None:
                raise ValueError("either topics or a pattern, not both")
            if listener is not None and not isinstance(listener, ConsumerRebalanceListener):
                raise TypeError("listener must be a ConsumerRebalanceListener")
            self._ensure_group()
            parts = self._parts
            if pattern is not None:
                parts.subscriptions.subscribe_pattern(re.compile(pattern), listener)
                parts.metadata.request_update_for_new_topics()
            elif topics:
                for topic in topics:
                    _check_topic(topic)
                if parts.subscriptions.subscribe(topics, listener):
                    parts.metadata.request_update_for_new_topics()
                wanted = frozenset(topics)
                assigned = parts.subscriptions.assigned_partitions
                parts.fetcher.clear_buffered_data_for_unassigned_partitions(
                    frozenset(tp for tp in assigned if tp.topic in wanted)
                )
            else:
                self.unsubscribe()

    def assign(self, partitions: Collection[TopicPartition]) -> None:
        """Read these partitions, whatever others read. Positions of those that stay are kept."""
        with self._guard:
            partitions = [_partition(partition) for partition in partitions]
            if not partitions:
                self.unsubscribe()
                return
            parts = self._parts
            # What is given up here goes through no rebalance that would commit it.
            if parts.subscriptions.has_user_assignment and parts.coordinator is not None:
                parts.coordinator.maybe_auto_commit_async()
            if parts.subscriptions.assign_from_user(partitions):
                parts.metadata.request_update_for_new_topics()
            parts.fetcher.clear_buffered_data_for_unassigned_partitions(frozenset(partitions))

    def unsubscribe(self) -> None:
        """Leave the group and read nothing."""
        with self._guard:
            parts = self._parts
            parts.fetcher.clear_buffered_data_for_unassigned_partitions(frozenset())
            try:
                if parts.coordinator is not None:
                    parts.coordinator.on_leave_prepare()
            finally:
                if parts.coordinator is not None:
                    parts.coordinator.maybe_leave_group("the consumer unsubscribed")
                parts.subscriptions.unsubscribe()

    def subscription(self) -> set[str]:
        """The topics subscribed to, which a pattern's are too."""
        with self._guard:
            return set(self._parts.subscriptions.subscription)

    def assignment(self) -> set[TopicPartition]:
        with self._guard:
            return set(self._parts.subscriptions.assigned_partitions)

    def enforce_rebalance(self, reason: str | None = None) -> None:
        """Join again with the next poll, as when something only the assignor sees has changed."""
        with self._guard:
            self._ensure_group().request_rejoin(reason or "the application asks for it")

    # Records

    def poll(
        self, timeout_ms: int = 0, max_records: int | None = None, update_offsets: bool = True
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """The next records, after waiting for some up to the time-out; none is no error.

        Joining the group, heartbeats of the poll interval and automatic commits happen here, so it
        has to be called again and again. `update_offsets` off: positions stay, and the same
        records come again.
        """
        with self._guard:
            if timeout_ms < 0:
                raise ValueError(f"timeout_ms must not be negative: {timeout_ms}")
            if max_records is not None and max_records <= 0:
                raise ValueError(f"max_records must be positive: {max_records}")
            parts = self._parts
            parts.metrics.polled()
            if parts.subscriptions.has_no_subscription_or_user_assignment:
                raise IllegalStateError(
                    "The consumer is not subscribed to any topic nor assigned any partition"
                )
            deadline = Deadline(self._time, timeout_ms)
            while True:
                parts.client.maybe_trigger_wakeup()
                self._update_assignment_metadata_if_needed(deadline)
                before = {} if update_offsets else self._positions()
                fetch = self._poll_for_fetches(deadline, max_records)
                if not fetch.is_empty:
                    for partition in fetch.records if not update_offsets else ():
                        parts.subscriptions.update_position(partition, before[partition])
                    self._fetch_ahead()
                    return parts.interceptors.on_consume(fetch.records)
                if deadline.is_expired:
                    return {}

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """One record at a time, forever, or until consumer.timeout.ms passes without one.

        A commit in between covers just the records handed out.
        """
        if self._iterator is None:
            self._iterator = self._records()
        return self._iterator

    def __next__(self) -> ConsumerRecord:
        return next(iter(self))

    def _records(self) -> Generator[ConsumerRecord, None, None]:
        timeout_ms = self.config.consumer_timeout_ms
        records = RecordIterator(self.poll, self._parts.subscriptions, self._time, timeout_ms)
        try:
            yield from records.records()
        finally:
            self._iterator = None

    def _update_assignment_metadata_if_needed(self, deadline: Deadline) -> bool:
        coordinator = self._parts.coordinator
        if coordinator is not None and not coordinator.poll(deadline, wait_for_join_group=False):
            return False
        return self._update_fetch_positions(deadline)

    def _update_fetch_positions(self, deadline: Deadline) -> bool:
        parts = self._parts
        parts.offset_fetcher.validate_positions_if_needed()
        self._has_all_positions = parts.subscriptions.has_all_fetch_positions
        if self._has_all_positions:
            return True
        coordinator = parts.coordinator
        if coordinator is not None and not coordinator.init_with_committed_offsets_if_needed(
            deadline
        ):
            return False
        parts.subscriptions.reset_initializing_positions()
        parts.offset_fetcher.reset_positions_if_needed()
        return True

    def _poll_for_fetches(self, deadline: Deadline, max_records: int | None) -> Fetch:
        parts = self._parts
        fetch = parts.fetcher.collect_fetch(max_records)
        if not fetch.is_empty:
            return fetch
        timeout_ms = deadline.remaining_ms
        if parts.coordinator is not None:
            timeout_ms = min(timeout_ms, parts.coordinator.time_to_next_poll_ms())
        parts.fetcher.send_fetches()
        if not self._has_all_positions:
            # A look-up may be waiting for its turn to be tried again.
            timeout_ms = min(timeout_ms, self.config.retry_backoff_ms)
        parts.client.poll(
            Deadline(self._time, timeout_ms), lambda: not parts.fetcher.has_available_fetches()
        )
        return parts.fetcher.collect_fetch(max_records)

    def _fetch_ahead(self) -> None:
        """On its way while the application works on what it has."""
        parts = self._parts
        try:
            if parts.fetcher.send_fetches() or parts.client.has_unsent_requests():
                parts.client.transmit_sends()
        except KafkaError as error:
            # The application has not got its records yet: the poll after the last of them raises.
            logger.debug("Fetching ahead failed: %s", error)

    def _positions(self) -> dict[TopicPartition, FetchPosition]:
        subscriptions = self._parts.subscriptions
        return {
            partition: position
            for partition in subscriptions.assigned_partitions
            if (position := subscriptions.position_if_assigned(partition)) is not None
        }

    # Positions

    def position(self, partition: TopicPartition, timeout_ms: int | None = None) -> int:
        """The offset of the next record; RequestTimeoutError when it cannot be found out."""
        with self._guard:
            parts = self._parts
            if not parts.subscriptions.is_assigned(partition):
                raise IllegalStateError(f"{partition} is not assigned to this consumer")
            deadline = self._deadline(timeout_ms)
            while True:
                position = parts.subscriptions.valid_position(partition)
                if position is not None:
                    return position.offset
                if deadline.is_expired:
                    raise parts.client.timeout_error(
                        f"the position of {partition} was known", deadline
                    )
                self._update_fetch_positions(deadline)
                parts.client.poll(Deadline(self._time, min(deadline.remaining_ms,
                    self.config.retry_backoff_ms)))  # fmt: skip

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """The next poll starts there."""
        with self._guard:
            epoch: int | None = None
            if isinstance(offset, OffsetAndMetadata):
                epoch = offset.leader_epoch
                offset = offset.offset
            if not isinstance(offset, int) or not 0 <= offset <= MAX_INT64:
                raise ValueError(f"offset must be a number from 0 on of 64 bits, not {offset}")
            parts = self._parts
            parts.metadata.update_last_seen_epoch_if_newer(partition, epoch)
            leader = parts.metadata.current_leader(partition)
            parts.subscriptions.seek_unvalidated(partition, FetchPosition(offset, epoch, leader))

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """All assigned ones without an argument. Takes effect with the next poll or position."""
        self._seek_to(partitions, OffsetResetStrategy.EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """All assigned ones without an argument. Takes effect with the next poll or position."""
        self._seek_to(partitions, OffsetResetStrategy.LATEST)

    def _seek_to(
        self, partitions: tuple[TopicPartition, ...], strategy: OffsetResetStrategy
    ) -> None:
        with self._guard:
            subscriptions = self._parts.subscriptions
            for partition in partitions or subscriptions.assigned_partitions:
                subscriptions.request_offset_reset(_partition(partition), strategy)

    def pause(self, *partitions: TopicPartition) -> None:
        """Nothing is returned from them until they are resumed; their assignment stays."""
        with self._guard:
            for partition in partitions:
                self._parts.subscriptions.pause(_partition(partition))

    def resume(self, *partitions: TopicPartition) -> None:
        with self._guard:
            for partition in partitions:
                self._parts.subscriptions.resume(_partition(partition))

    def paused(self) -> set[TopicPartition]:
        with self._guard:
            return set(self._parts.subscriptions.paused_partitions)

    # Committed offsets

    def commit_sync(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        timeout_ms: int | None = None,
    ) -> None:
        """Commit the offsets, or the present positions, and wait until that is done.

        CommitFailedError: the group has gone on without this member. RebalanceInProgressError: poll
        first, then commit again. RequestTimeoutError: it may or may not have been done.
        """
        with self._guard:
            coordinator = self._ensure_group()
            deadline = self._deadline(timeout_ms)
            wanted = self._offsets_to_commit(offsets)
            if not coordinator.committer.commit_sync(wanted, deadline):
                raise self._parts.client.timeout_error(f"{wanted} was committed", deadline)

    def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        timeout_ms: int | None = None,
    ) -> None:
        """As commit_sync, by the name kafka-python has for it."""
        self.commit_sync(offsets, timeout_ms)

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        callback: OffsetCommitCallback | None = None,
    ) -> None:
        """Commit without waiting; the callback gets the offsets, and the error or None, in a later
        call of this consumer. It is not tried again: RetriableCommitFailedError says when that may
        help."""
        with self._guard:
            coordinator = self._ensure_group()
            coordinator.committer.commit_async(self._offsets_to_commit(offsets), callback)

    @overload
    def committed(
        self, partitions: TopicPartition, metadata: bool = False, timeout_ms: int | None = None
    ) -> Any: ...

    @overload
    def committed(
        self,
        partitions: Collection[TopicPartition],
        metadata: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, OffsetAndMetadata | None]: ...

    def committed(
        self,
        partitions: TopicPartition | Collection[TopicPartition],
        metadata: bool = False,
        timeout_ms: int | None = None,
    ) -> Any:
        """What the group has committed: for one partition its offset, with `metadata` an
        OffsetAndMetadata, for several a dict of those; None where there is nothing."""
        with self._guard:
            coordinator = self._ensure_group()
            deadline = self._deadline(timeout_ms)
            single = isinstance(partitions, TopicPartition)
            wanted = [partitions] if isinstance(partitions, TopicPartition) else list(partitions)
            offsets = coordinator.committer.fetch_committed(wanted, deadline)
            if offsets is None:
                raise self._parts.client.timeout_error(
                    f"the committed offsets of {sorted(map(str, wanted))} were known", deadline
                )
            for partition, committed in offsets.items():
                if committed is not None:
                    self._parts.metadata.update_last_seen_epoch_if_newer(
                        partition, committed.leader_epoch
                    )
            if not single:
                return {partition: offsets.get(partition) for partition in wanted}
            found = offsets.get(wanted[0])
            return found if metadata or found is None else found.offset

    def group_metadata(self) -> ConsumerGroupMetadata:
        """For a producer's send_offsets_to_transaction."""
        with self._guard:
            return self._ensure_group().group_metadata

    def _offsets_to_commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        if offsets is None:
            return self._parts.subscriptions.all_consumed()
        wanted = {}
        for partition, offset in offsets.items():
            if isinstance(offset, int):
                offset = OffsetAndMetadata(offset)
            if offset.offset < 0:
                raise ValueError(f"the offset of {partition} must not be negative: {offset.offset}")
            if offset.offset > MAX_INT64:
                raise ValueError(
                    f"the offset of {partition} has more than 64 bits: {offset.offset}"
                )
            self._parts.metadata.update_last_seen_epoch_if_newer(partition, offset.leader_epoch)
            wanted[_partition(partition)] = offset
        return wanted

    # Questions about topics and logs

    def partitions_for_topic(self, topic: str, timeout_ms: int | None = None) -> set[int] | None:
        """The numbers of its partitions; None when there is no such topic."""
        infos = self.partitions_for(topic, timeout_ms)
        return {info.partition for info in infos} if infos else None

    def partitions_for(self, topic: str, timeout_ms: int | None = None) -> list[PartitionInfo]:
        """Empty when there is no such topic."""
        with self._guard:
            _check_topic(topic)
            known = self._parts.metadata.fetch().partitions_for_topic(topic)
            if known:
                return list(known)
            found = self._parts.topic_metadata_fetcher.fetch(
                (topic,),
                self._deadline(timeout_ms),
                allow_auto_topic_creation=self.config.allow_auto_create_topics,
            )
            return found.get(topic, [])

    def list_topics(self, timeout_ms: int | None = None) -> dict[str, list[PartitionInfo]]:
        """All topics that this client may see."""
        with self._guard:
            return self._parts.topic_metadata_fetcher.fetch(
                None, self._deadline(timeout_ms), allow_auto_topic_creation=False
            )

    def topics(self) -> set[str]:
        return set(self.list_topics())

    def beginning_offsets(
        self, partitions: Collection[TopicPartition], timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        with self._guard:
            return self._parts.offset_fetcher.beginning_offsets(
                map(_partition, partitions), self._deadline(timeout_ms)
            )

    def end_offsets(
        self, partitions: Collection[TopicPartition], timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """Where the next records will go; with read_committed, where the first open transaction
        begins."""
        with self._guard:
            return self._parts.offset_fetcher.end_offsets(
                map(_partition, partitions), self._deadline(timeout_ms)
            )

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after each time; None where there is none."""
        with self._guard:
            for partition, timestamp in timestamps.items():
                _partition(partition)
                if timestamp < 0:
                    raise ValueError(f"the time for {partition} must not be negative: {timestamp}")
            return self._parts.offset_fetcher.offsets_for_times(
                timestamps, self._deadline(timeout_ms)
            )

    def highwater(self, partition: TopicPartition) -> int | None:
        """The high watermark that came with the last fetch; None before one."""
        with self._guard:
            return self._parts.subscriptions.high_watermark(partition)

    def current_lag(self, partition: TopicPartition) -> int | None:
        """How many offsets lie between the position and the end, as of the last fetch."""
        with self._guard:
            return self._parts.subscriptions.partition_lag(
                partition, read_committed=self.config.is_read_committed
            )

    def metrics(self) -> Mapping[str, Mapping[str, float]]:
        """By group and name, as Kafka documents them."""
        return self._parts.metrics.snapshot(len(self._parts.subscriptions.assigned_partitions))

    # The end

    def wakeup(self) -> None:
        """From any thread, also a signal handler: the call under way raises WakeupError."""
        self._parts.client.wakeup()

    def close(self, timeout_ms: int | None = None, *, autocommit: bool = True) -> None:
        """Commit if that is automatic, leave the group, close the connections. A second call does
        nothing."""
        if timeout_ms is not None and timeout_ms < 0:
            raise ValueError(f"timeout_ms must not be negative: {timeout_ms}")
        self._guard.acquire()
        try:
            if self._is_closing:
                return
            self._is_closing = True
            # In a listener or callback of an iteration that one is running, and ends by itself.
            iterator = self._iterator
            if iterator is not None and inspect.getgeneratorstate(iterator) != inspect.GEN_RUNNING:
                iterator.close()
            limit_ms = DEFAULT_CLOSE_TIMEOUT_MS if timeout_ms is None else timeout_ms
            try:
                # A listener that hears of it here may still commit.
                self._parts.close(Deadline(self._time, limit_ms), autocommit=autocommit)
            finally:
                self._guard.is_closed = True
        finally:
            self._guard.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _deadline(self, timeout_ms: int | None) -> Deadline:
        if timeout_ms is not None and timeout_ms < 0:
            raise ValueError(f"timeout_ms must not be negative: {timeout_ms}")
        return Deadline(
            self._time, self.config.default_api_timeout_ms if timeout_ms is None else timeout_ms
        )

    def _ensure_group(self) -> ConsumerCoordinator:
        coordinator = self._parts.coordinator
        if coordinator is None:
            raise InvalidGroupIdError(
                "Subscribing and committing need a group: set group.id, or assign partitions"
            )
        return coordinator


def _client_id(group_id: str | None) -> str:
    prefix = "consumer" if group_id is None else f"consumer-{group_id}"
    return f"{prefix}-{uuid.uuid4().hex[:8]}"


def _partition(partition: Any) -> TopicPartition:
    if isinstance(partition, TopicPartition):
        _check_topic(partition.topic)
        return partition
    raise TypeError(f"expected a TopicPartition, not {partition!r}")


def _check_topic(topic: Any) -> None:
    check_topic(topic)
    if not topic.strip():
        raise ValueError("a topic must not be empty")
