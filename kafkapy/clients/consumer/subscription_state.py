"""What a consumer has subscribed to, what it reads, and from where."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto

from kafkapy.clients.client_errors import IllegalStateError
from kafkapy.clients.consumer.consumer_errors import NoOffsetForPartitionError
from kafkapy.clients.consumer.consumer_rebalance_listener import ConsumerRebalanceListener
from kafkapy.clients.consumer.offset_and_metadata import OffsetAndMetadata
from kafkapy.clients.consumer.offset_reset_strategy import OffsetResetStrategy
from kafkapy.clients.consumer.topic_partition_state import (
    FetchPosition,
    FetchState,
    TopicPartitionState,
)
from kafkapy.clients.metadata import LeaderAndEpoch
from kafkapy.common.types import TopicPartition

logger = logging.getLogger(__name__)

UNDEFINED_EPOCH = -1
UNDEFINED_EPOCH_OFFSET = -1


class SubscriptionType(Enum):
    """Ports: org.apache.kafka.clients.consumer.internals.SubscriptionState.SubscriptionType"""

    NONE = auto()
    AUTO_TOPICS = auto()
    AUTO_PATTERN = auto()
    USER_ASSIGNED = auto()


@dataclass(frozen=True, slots=True)
class LogTruncation:
    """A position whose records the log has lost, and where the log went another way if known.

    Ports: org.apache.kafka.clients.consumer.internals.SubscriptionState.LogTruncation
    """

    topic_partition: TopicPartition
    fetch_position: FetchPosition
    divergent_offset: OffsetAndMetadata | None


class SubscriptionState:
    """Topics, a pattern, or partitions assigned by hand: one of the three, and the state of every
    partition assigned.

    Thread-safe: the heartbeat thread completes requests too.

    Ports: org.apache.kafka.clients.consumer.internals.SubscriptionState
    """

    def __init__(self, default_reset_strategy: OffsetResetStrategy) -> None:
        self._default_reset_strategy = default_reset_strategy  # constant after construction
        self._lock = threading.RLock()
        # guarded by self._lock
        self._type = SubscriptionType.NONE
        self._subscription: frozenset[str] = frozenset()
        self._group_subscription: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None
        self._listener: ConsumerRebalanceListener | None = None
        # In the order in which they are fetched next.
        self._assignment: dict[TopicPartition, TopicPartitionState] = {}

    # Subscribing

    def subscribe(self, topics: Iterable[str], listener: ConsumerRebalanceListener | None) -> bool:
        """Whether the topics are others than before."""
        with self._lock:
            self._listener = listener
            self._set_type(SubscriptionType.AUTO_TOPICS)
            return self._change_subscription(frozenset(topics))

    def subscribe_pattern(
        self, pattern: re.Pattern[str], listener: ConsumerRebalanceListener | None
    ) -> None:
        with self._lock:
            self._listener = listener
            self._set_type(SubscriptionType.AUTO_PATTERN)
            self._pattern = pattern

    def subscribe_from_pattern(self, topics: Iterable[str]) -> bool:
        """The topics that now match; whether they are others than before."""
        with self._lock:
            if self._type is not SubscriptionType.AUTO_PATTERN:
                raise IllegalStateError("There is no subscription by pattern")
            return self._change_subscription(frozenset(topics))

    def group_subscribe(self, topics: Iterable[str]) -> bool:
        """The leader of a group also follows what the others subscribe to; whether that is new."""
        with self._lock:
            self._ensure_auto_assigned()
            self._group_subscription = frozenset(topics)
            return not self._subscription >= self._group_subscription

    def reset_group_subscription(self) -> None:
        with self._lock:
            self._group_subscription = frozenset()

    def unsubscribe(self) -> None:
        with self._lock:
            self._subscription = frozenset()
            self._group_subscription = frozenset()
            self._replace_assignment(())
            self._pattern = None
            self._type = SubscriptionType.NONE
            self._listener = None

    def assign_from_user(self, partitions: Collection[TopicPartition]) -> bool:
        """Whether the partitions are others than before; those that stay keep their position."""
        with self._lock:
            self._set_type(SubscriptionType.USER_ASSIGNED)
            if self._assignment.keys() == set(partitions):
                return False
            self._subscription = frozenset(partition.topic for partition in partitions)
            self._replace_assignment(partitions)
            return True

    def assign_from_subscribed(self, partitions: Collection[TopicPartition]) -> None:
        """What the group's leader assigned; those that stay keep their position."""
        with self._lock:
            self._ensure_auto_assigned()
            self._replace_assignment(partitions)

    def matches_subscription(self, partitions: Iterable[TopicPartition]) -> bool:
        """Whether an assignment is of topics that are subscribed to now."""
        with self._lock:
            if self._pattern is not None:
                return all(self._pattern.fullmatch(tp.topic) is not None for tp in partitions)
            return all(tp.topic in self._subscription for tp in partitions)

    @property
    def has_no_subscription_or_user_assignment(self) -> bool:
        with self._lock:
            return self._type is SubscriptionType.NONE

    @property
    def is_auto_assigned(self) -> bool:
        """Partitions come from a group."""
        with self._lock:
            return self._type in (SubscriptionType.AUTO_TOPICS, SubscriptionType.AUTO_PATTERN)

    @property
    def has_user_assignment(self) -> bool:
        with self._lock:
            return self._type is SubscriptionType.USER_ASSIGNED

    @property
    def has_pattern_subscription(self) -> bool:
        with self._lock:
            return self._type is SubscriptionType.AUTO_PATTERN

    def matches_subscribed_pattern(self, topic: str) -> bool:
        with self._lock:
            return self._pattern is not None and self._pattern.fullmatch(topic) is not None

    @property
    def subscription(self) -> frozenset[str]:
        with self._lock:
            return self._subscription if self.is_auto_assigned else frozenset()

    @property
    def metadata_topics(self) -> frozenset[str]:
        """The topics whose metadata is needed: of the whole group for its leader."""
        with self._lock:
            if self._group_subscription:
                return self._group_subscription | self._subscription
            return self._subscription

    def needs_metadata(self, topic: str) -> bool:
        with self._lock:
            return topic in self._subscription or topic in self._group_subscription

    @property
    def rebalance_listener(self) -> ConsumerRebalanceListener | None:
        with self._lock:
            return self._listener

    # The assignment

    @property
    def assigned_partitions(self) -> frozenset[TopicPartition]:
        with self._lock:
            return frozenset(self._assignment)

    def is_assigned(self, partition: TopicPartition) -> bool:
        with self._lock:
            return partition in self._assignment

    def mark_pending_revocation(self, partitions: Iterable[TopicPartition]) -> None:
        """They are about to go: nothing more is fetched or handed out from them."""
        with self._lock:
            for partition in partitions:
                self._state(partition).pending_revocation = True

    def move_partition_to_end(self, partition: TopicPartition) -> None:
        """It had its turn: others come first in the next fetch."""
        with self._lock:
            state = self._assignment.pop(partition, None)
            if state is not None:
                self._assignment[partition] = state

    def pause(self, partition: TopicPartition) -> None:
        with self._lock:
            self._state(partition).paused = True

    def resume(self, partition: TopicPartition) -> None:
        with self._lock:
            self._state(partition).paused = False

    @property
    def paused_partitions(self) -> frozenset[TopicPartition]:
        with self._lock:
            return frozenset(tp for tp, state in self._assignment.items() if state.paused)

    def is_paused(self, partition: TopicPartition) -> bool:
        with self._lock:
            state = self._assignment.get(partition)
            return state is not None and state.paused

    def is_fetchable(self, partition: TopicPartition) -> bool:
        with self._lock:
            state = self._assignment.get(partition)
            return state is not None and state.is_fetchable

    def fetchable_partitions(self) -> list[TopicPartition]:
        """In the order in which they are to be served."""
        with self._lock:
            return [tp for tp, state in self._assignment.items() if state.is_fetchable]

    # Positions

    def position(self, partition: TopicPartition) -> FetchPosition | None:
        with self._lock:
            return self._state(partition).position

    def position_if_assigned(self, partition: TopicPartition) -> FetchPosition | None:
        with self._lock:
            state = self._assignment.get(partition)
            return None if state is None else state.position

    def has_valid_position(self, partition: TopicPartition) -> bool:
        with self._lock:
            state = self._assignment.get(partition)
            return state is not None and state.has_valid_position

    def valid_position(self, partition: TopicPartition) -> FetchPosition | None:
        with self._lock:
            state = self._state(partition)
            return state.position if state.has_valid_position else None

    def update_position(self, partition: TopicPartition, position: FetchPosition) -> None:
        """After records have been handed out."""
        with self._lock:
            state = self._state(partition)
            if not state.has_valid_position:
                raise IllegalStateError(f"{partition} has no valid position to be moved")
            state.position = position

    def rewind_position(self, partition: TopicPartition, offset: int) -> FetchPosition | None:
        """Back to what has been fetched and not been seen; the position until now.

        Also while that waits to be validated: what is not handed out then is fetched again.
        """
        with self._lock:
            state = self._assignment.get(partition)
            if state is None or state.position is None:
                return None
            end = state.position
            state.position = FetchPosition(offset, end.offset_epoch, end.current_leader)
            return end

    def advance_position(self, partition: TopicPartition, expected: int, offset: int) -> bool:
        """Move on within what has been fetched; False when the position is not the expected one
        any more, or must not be read from."""
        with self._lock:
            state = self._assignment.get(partition)
            if state is None or not state.is_fetchable or state.position is None:
                return False
            position = state.position
            if position.offset != expected:
                return False
            state.position = FetchPosition(offset, position.offset_epoch, position.current_leader)
            return True

    def seek_validated(self, partition: TopicPartition, position: FetchPosition) -> None:
        with self._lock:
            self._state(partition).seek_validated(position)

    def seek_unvalidated(self, partition: TopicPartition, position: FetchPosition) -> None:
        with self._lock:
            self._state(partition).seek_unvalidated(position)

    def maybe_seek_unvalidated(
        self,
        partition: TopicPartition,
        position: FetchPosition,
        requested_strategy: OffsetResetStrategy,
    ) -> None:
        """The end of a reset, unless the partition or the wish is another by now."""
        with self._lock:
            state = self._assignment.get(partition)
            if state is None or not state.awaiting_reset:
                logger.debug("Not resetting %s, which waits for it no longer", partition)
            elif state.reset_strategy is not requested_strategy:
                logger.debug("Not resetting %s: another reset was asked for since", partition)
            else:
                logger.info("Resetting %s to offset %d", partition, position.offset)
                state.seek_unvalidated(position)

    @property
    def has_all_fetch_positions(self) -> bool:
        with self._lock:
            return all(state.has_valid_position for state in self._assignment.values())

    def initializing_partitions(self) -> set[TopicPartition]:
        """Neither a position nor a reset under way."""
        with self._lock:
            return {
                tp
                for tp, state in self._assignment.items()
                if state.fetch_state is FetchState.INITIALIZING and not state.pending_revocation
            }

    def all_consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The positions, as they would be committed."""
        with self._lock:
            return {
                tp: OffsetAndMetadata(state.position.offset, "", state.position.offset_epoch)
                for tp, state in self._assignment.items()
                if state.has_valid_position and state.position is not None
            }

    # Resets

    @property
    def has_default_reset_policy(self) -> bool:
        return self._default_reset_strategy is not OffsetResetStrategy.NONE

    def request_offset_reset(
        self, partition: TopicPartition, strategy: OffsetResetStrategy | None = None
    ) -> None:
        """By the default strategy unless another is given."""
        with self._lock:
            self._state(partition).reset(strategy or self._default_reset_strategy)

    def request_offset_reset_if_assigned(self, partition: TopicPartition) -> None:
        with self._lock:
            if partition in self._assignment:
                self.request_offset_reset(partition)

    def reset_initializing_positions(self) -> None:
        """For partitions without a committed offset; NoOffsetForPartitionError without a policy."""
        with self._lock:
            partitions = self.initializing_partitions()
            if partitions and not self.has_default_reset_policy:
                raise NoOffsetForPartitionError(partitions)
            for partition in partitions:
                self.request_offset_reset(partition)

    def is_offset_reset_needed(self, partition: TopicPartition) -> bool:
        with self._lock:
            return self._state(partition).awaiting_reset

    def partitions_needing_reset(self, now_ms: int) -> dict[TopicPartition, OffsetResetStrategy]:
        with self._lock:
            return {
                tp: state.reset_strategy
                for tp, state in self._assignment.items()
                if state.awaiting_reset
                and state.reset_strategy is not None
                and not state.awaiting_retry_backoff(now_ms)
            }

    def partitions_needing_validation(self, now_ms: int) -> list[TopicPartition]:
        with self._lock:
            return [
                tp
                for tp, state in self._assignment.items()
                if state.awaiting_validation and not state.awaiting_retry_backoff(now_ms)
            ]

    def set_next_allowed_retry(self, partitions: Iterable[TopicPartition], next_ms: int) -> None:
        """A request about them is under way, or failed: not again before then."""
        with self._lock:
            for partition in partitions:
                state = self._assignment.get(partition)
                if state is not None:
                    state.next_retry_ms = next_ms

    # Validation against the leader's epochs

    def maybe_validate_position(
        self, partition: TopicPartition, leader: LeaderAndEpoch, *, can_validate: bool
    ) -> bool:
        """Take note of the leader, which may be too old to be asked about epochs; True while the
        position is still to be validated."""
        with self._lock:
            state = self._assignment.get(partition)
            if state is None:
                return False
            if leader.leader is not None and not can_validate:
                state.update_leader_without_validation(leader)
                return False
            return state.maybe_validate_position(leader)

    def is_awaiting_validation(self, partition: TopicPartition) -> bool:
        with self._lock:
            return self._state(partition).awaiting_validation

    def complete_validation(self, partition: TopicPartition) -> None:
        with self._lock:
            self._state(partition).complete_validation()

    def maybe_complete_validation(
        self,
        partition: TopicPartition,
        requested: FetchPosition,
        *,
        leader_epoch: int,
        end_offset: int,
    ) -> LogTruncation | None:
        """Where the epoch of the position ends, as its leader says; a truncation for the user to
        settle when there is one and no reset policy."""
        with self._lock:
            state = self._assignment.get(partition)
            if state is None or not state.awaiting_validation or state.position != requested:
                logger.debug("The position of %s has changed since it was asked about", partition)
                return None
            if end_offset == UNDEFINED_EPOCH_OFFSET or leader_epoch == UNDEFINED_EPOCH:
                if not self.has_default_reset_policy:
                    return LogTruncation(partition, requested, None)
                logger.info("Nothing of the epoch of %s is left in %s", requested, partition)
                self.request_offset_reset(partition)
            elif end_offset < requested.offset:
                if not self.has_default_reset_policy:
                    divergent = OffsetAndMetadata(end_offset, "", leader_epoch)
                    return LogTruncation(partition, requested, divergent)
                logger.info(
                    "%s was truncated below %s: going back to %d", partition, requested, end_offset
                )
                state.seek_validated(
                    FetchPosition(end_offset, leader_epoch, requested.current_leader)
                )
            else:
                state.complete_validation()
            return None

    # What fetch responses tell

    def update_log_ends(
        self,
        partition: TopicPartition,
        *,
        high_watermark: int,
        last_stable_offset: int,
    ) -> None:
        """Negative where the response did not say."""
        with self._lock:
            state = self._state(partition)
            if high_watermark >= 0:
                state.high_watermark = high_watermark
            if last_stable_offset >= 0:
                state.last_stable_offset = last_stable_offset

    def high_watermark(self, partition: TopicPartition) -> int | None:
        with self._lock:
            return self._state(partition).high_watermark

    def partition_end_offset(
        self, partition: TopicPartition, *, read_committed: bool
    ) -> int | None:
        with self._lock:
            state = self._state(partition)
            return state.last_stable_offset if read_committed else state.high_watermark

    def partition_lag(self, partition: TopicPartition, *, read_committed: bool) -> int | None:
        with self._lock:
            end = self.partition_end_offset(partition, read_committed=read_committed)
            position = self._state(partition).position
            return None if end is None or position is None else end - position.offset

    def update_preferred_read_replica(
        self, partition: TopicPartition, replica_id: int, expires_ms: int
    ) -> None:
        with self._lock:
            state = self._state(partition)
            state.preferred_read_replica = replica_id
            state.preferred_read_replica_expires_ms = expires_ms

    def preferred_read_replica(self, partition: TopicPartition, now_ms: int) -> int | None:
        with self._lock:
            state = self._assignment.get(partition)
            if state is None or now_ms >= state.preferred_read_replica_expires_ms:
                return None
            return state.preferred_read_replica

    def clear_preferred_read_replica(self, partition: TopicPartition) -> int | None:
        """The replica that was preferred until now."""
        with self._lock:
            state = self._assignment.get(partition)
            if state is None:
                return None
            replica_id, state.preferred_read_replica = state.preferred_read_replica, None
            return replica_id

    def _set_type(self, wanted: SubscriptionType) -> None:
        if self._type is SubscriptionType.NONE:
            self._type = wanted
        elif self._type is not wanted:
            raise IllegalStateError(
                "Subscription to topics, partitions and pattern are mutually exclusive:"
                f" this consumer has {_WORDS[self._type]}, so call unsubscribe() first"
            )

    def _change_subscription(self, topics: frozenset[str]) -> bool:
        if topics == self._subscription:
            return False
        self._subscription = topics
        return True

    def _replace_assignment(self, partitions: Iterable[TopicPartition]) -> None:
        kept = self._assignment
        self._assignment = {}
        for partition in partitions:
            state = kept.get(partition)
            self._assignment[partition] = TopicPartitionState() if state is None else state

    def _ensure_auto_assigned(self) -> None:
        if not self.is_auto_assigned:
            raise IllegalStateError("This consumer takes part in no group")

    def _state(self, partition: TopicPartition) -> TopicPartitionState:
        state = self._assignment.get(partition)
        if state is None:
            raise IllegalStateError(f"{partition} is not assigned to this consumer")
        return state


_WORDS: Mapping[SubscriptionType, str] = {
    SubscriptionType.AUTO_TOPICS: "subscribed to topics",
    SubscriptionType.AUTO_PATTERN: "subscribed to a pattern",
    SubscriptionType.USER_ASSIGNED: "partitions assigned",
}
