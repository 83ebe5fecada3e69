"""What a consumer knows of one partition that it reads."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from kafkapy.clients.client_errors import IllegalStateError
from kafkapy.clients.consumer.offset_reset_strategy import OffsetResetStrategy
from kafkapy.clients.metadata import LeaderAndEpoch


class FetchState(Enum):
    """Whether there is a position, and whether it may be fetched from.

    Ports: org.apache.kafka.clients.consumer.internals.SubscriptionState.FetchStates
    """

    INITIALIZING = auto()
    FETCHING = auto()
    AWAIT_RESET = auto()
    AWAIT_VALIDATION = auto()

    def may_follow(self, previous: FetchState) -> bool:
        """Only a new position ends the wait for a reset: there is none to be validated."""
        if self is FetchState.INITIALIZING:
            return False
        return not (previous is FetchState.AWAIT_RESET and self is FetchState.AWAIT_VALIDATION)

    @property
    def requires_position(self) -> bool:
        return self in (FetchState.FETCHING, FetchState.AWAIT_VALIDATION)


class FetchPosition(NamedTuple):
    """The next offset to fetch, the epoch of the last record before it, and the leader to ask.

    Ports: org.apache.kafka.clients.consumer.internals.SubscriptionState.FetchPosition
    """

    offset: int
    offset_epoch: int | None
    current_leader: LeaderAndEpoch


class TopicPartitionState:
    """Position, ends of the log and pauses of one partition. For use under its owner's lock.

    Ports: org.apache.kafka.clients.consumer.internals.SubscriptionState.TopicPartitionState
    """

    __slots__ = (
        "fetch_state",
        "high_watermark",
        "last_stable_offset",
        "next_retry_ms",
        "paused",
        "pending_revocation",
        "position",
        "preferred_read_replica",
        "preferred_read_replica_expires_ms",
        "reset_strategy",
    )

    def __init__(self) -> None:
        self.fetch_state = FetchState.INITIALIZING
        self.position: FetchPosition | None = None
        self.high_watermark: int | None = None
        self.last_stable_offset: int | None = None
        self.paused = False
        self.pending_revocation = False
        self.reset_strategy: OffsetResetStrategy | None = None
        self.next_retry_ms: int | None = None
        self.preferred_read_replica: int | None = None
        self.preferred_read_replica_expires_ms = 0

    @property
    def has_valid_position(self) -> bool:
        return self.fetch_state is FetchState.FETCHING

    @property
    def is_fetchable(self) -> bool:
        return not self.paused and not self.pending_revocation and self.has_valid_position

    @property
    def awaiting_reset(self) -> bool:
        return self.fetch_state is FetchState.AWAIT_RESET

    @property
    def awaiting_validation(self) -> bool:
        return self.fetch_state is FetchState.AWAIT_VALIDATION

    def awaiting_retry_backoff(self, now_ms: int) -> bool:
        return self.next_retry_ms is not None and now_ms < self.next_retry_ms

    def reset(self, strategy: OffsetResetStrategy) -> None:
        self._move(FetchState.AWAIT_RESET, None)
        self.reset_strategy = strategy
        self.next_retry_ms = None

    def seek_validated(self, position: FetchPosition) -> None:
        self._move(FetchState.FETCHING, position)
        self.reset_strategy = None
        self.next_retry_ms = None

    def seek_unvalidated(self, position: FetchPosition) -> None:
        self.seek_validated(position)
        self._validate(position)

    def maybe_validate_position(self, leader: LeaderAndEpoch) -> bool:
        """Take note of the leader; True while the position is still to be validated."""
        if self.awaiting_reset or leader.leader is None:
            return False
        if self.position is not None and self.position.current_leader != leader:
            self._validate(FetchPosition(self.position.offset, self.position.offset_epoch, leader))
            self.preferred_read_replica = None
        return self.awaiting_validation

    def update_leader_without_validation(self, leader: LeaderAndEpoch) -> None:
        if self.position is not None:
            self._move(
                FetchState.FETCHING,
                FetchPosition(self.position.offset, self.position.offset_epoch, leader),
            )
            self.next_retry_ms = None

    def complete_validation(self) -> None:
        if self.position is not None:
            self._move(FetchState.FETCHING, self.position)
            self.next_retry_ms = None

    def _validate(self, position: FetchPosition) -> None:
        # Without epochs there is nothing to compare.
        has_epochs = position.offset_epoch is not None and position.current_leader.epoch is not None
        self._move(FetchState.AWAIT_VALIDATION if has_epochs else FetchState.FETCHING, position)
        self.next_retry_ms = None

    def _move(self, state: FetchState, position: FetchPosition | None) -> None:
        if not state.may_follow(self.fetch_state):
            return
        if state.requires_position and position is None:
            raise IllegalStateError(f"no position in state {state.name}")
        self.fetch_state = state
        self.position = position
