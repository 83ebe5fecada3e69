"""What a leader knows about the followers of a partition."""

from __future__ import annotations

import threading
from typing import NamedTuple

from kafkapy.common.types import TopicPartition
from kafkapy.storage.log_offset_metadata import (
    UNKNOWN_OFFSET,
    UNKNOWN_OFFSET_METADATA,
    LogOffsetMetadata,
)


class ReplicaState(NamedTuple):
    """A follower as its last fetch showed it. Times are monotonic.

    `last_caught_up_time_ms` is the latest time at which the follower had everything that the
    leader had then; lag is measured from it.

    Ports: kafka.cluster.ReplicaState
    """

    log_start_offset: int = UNKNOWN_OFFSET
    log_end_offset_metadata: LogOffsetMetadata = UNKNOWN_OFFSET_METADATA
    last_fetch_leader_log_end_offset: int = 0
    last_fetch_time_ms: int = 0
    last_caught_up_time_ms: int = 0
    broker_epoch: int | None = None

    @property
    def log_end_offset(self) -> int:
        return self.log_end_offset_metadata.message_offset

    def is_caught_up(self, leader_end_offset: int, *, now_ms: int, max_lag_ms: int) -> bool:
        return (
            self.log_end_offset == leader_end_offset
            or now_ms - self.last_caught_up_time_ms <= max_lag_ms
        )


class Replica:
    """A remote replica of a partition that this broker leads. Thread-safe.

    Ports: kafka.cluster.Replica
    """

    __slots__ = ("_lock", "broker_id", "state", "topic_partition")

    def __init__(self, broker_id: int, topic_partition: TopicPartition) -> None:
        self.broker_id = broker_id  # constant after construction
        self.topic_partition = topic_partition
        self._lock = threading.Lock()
        self.state = ReplicaState()  # replaced under self._lock, read without

    def update_fetch_state(
        self,
        fetch_offset: LogOffsetMetadata,
        *,
        start_offset: int,
        fetch_time_ms: int,
        leader_end_offset: int,
        broker_epoch: int,
    ) -> None:
        """Take in a fetch of the follower, which has everything below `fetch_offset`.

        A fetch from where the leader's log ended at the fetch before means the follower had caught
        up at that time, even if the leader has moved on since.
        """
        with self._lock:
            old = self.state
            caught_up_ms = old.last_caught_up_time_ms
            if fetch_offset.message_offset >= leader_end_offset:
                caught_up_ms = max(caught_up_ms, fetch_time_ms)
            elif fetch_offset.message_offset >= old.last_fetch_leader_log_end_offset:
                caught_up_ms = max(caught_up_ms, old.last_fetch_time_ms)
            self.state = ReplicaState(
                log_start_offset=start_offset,
                log_end_offset_metadata=fetch_offset,
                last_fetch_leader_log_end_offset=max(
                    leader_end_offset, old.last_fetch_leader_log_end_offset
                ),
                last_fetch_time_ms=fetch_time_ms,
                last_caught_up_time_ms=caught_up_ms,
                broker_epoch=broker_epoch,
            )

    def reset_state(
        self, *, now_ms: int, leader_end_offset: int, is_new_leader: bool, is_in_sync: bool
    ) -> None:
        """Start over under a new leader epoch: who is in the ISR counts as caught up now."""
        with self._lock:
            old = self.state
            since_ms = now_ms if is_in_sync else 0
            if is_new_leader:
                self.state = ReplicaState(
                    last_fetch_leader_log_end_offset=UNKNOWN_OFFSET,
                    last_caught_up_time_ms=since_ms,
                )
            else:
                self.state = old._replace(
                    last_fetch_leader_log_end_offset=leader_end_offset,
                    last_fetch_time_ms=since_ms,
                    last_caught_up_time_ms=since_ms,
                )

    def __repr__(self) -> str:
        return f"Replica({self.topic_partition}, broker={self.broker_id}, {self.state})"
