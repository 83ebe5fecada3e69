"""The waiting room of delayed operations."""

from __future__ import annotations

import logging
import threading
from collections.abc import Hashable, Iterable
from typing import Final, Generic, TypeVar

from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.metrics.stats import Gauge
from kafkapy.purgatory.delayed_operation import DelayedOperation
from kafkapy.purgatory.expired_operation_reaper import ExpiredOperationReaper
from kafkapy.utils.timer import Timer

logger = logging.getLogger(__name__)

PURGATORY_SIZE = Gauge(
    "kafka.server:type=DelayedOperationPurgatory,name=PurgatorySize",
    "Entries in the watcher lists; an operation counts once per key.",
    labels=("delayedOperation",),
)
NUM_DELAYED_OPERATIONS = Gauge(
    "kafka.server:type=DelayedOperationPurgatory,name=NumDelayedOperations",
    "Operations waiting for their condition or their time-out.",
    labels=("delayedOperation",),
)

# Locks are cheap to wait for when their sections are this short: fewer shards than Kafka's 512.
_SHARDS: Final = 32

OperationT = TypeVar("OperationT", bound=DelayedOperation)


class _Watchers(Generic[OperationT]):
    """The operations watched under one key. Thread-safe.

    Ports: kafka.server.DelayedOperationPurgatory.Watchers
    """

    __slots__ = ("_lock", "_operations")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._operations: dict[OperationT, None] = {}  # guarded by self._lock

    def __len__(self) -> int:
        return len(self._operations)

    def watch(self, operation: OperationT) -> None:
        with self._lock:
            self._operations[operation] = None

    def try_complete_watched(self) -> int:
        """Complete what can be; operations run with no lock of the purgatory held.

        One that fails is logged: the others, and whoever checks, have no part in it.
        """
        with self._lock:
            operations = list(self._operations)
        completed = 0
        done = []
        for operation in operations:
            if operation.is_completed:
                done.append(operation)
                continue
            try:
                if operation.safe_try_complete():
                    completed += 1
                    done.append(operation)
            except Exception:
                logger.exception("%r could not be completed", operation)
        self._remove(done)
        return completed

    def purge_completed(self) -> int:
        with self._lock:
            done = [operation for operation in self._operations if operation.is_completed]
        self._remove(done)
        return len(done)

    def take_all(self) -> list[OperationT]:
        with self._lock:
            operations = list(self._operations)
            self._operations.clear()
        return operations

    def _remove(self, done: list[OperationT]) -> None:
        if done:
            with self._lock:
                for operation in done:
                    self._operations.pop(operation, None)


class _WatcherShard(Generic[OperationT]):
    __slots__ = ("by_key", "lock")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        # Changed under the lock. A lone lookup needs none: an operation looks at its condition
        # again after it is watched, so a check that comes too early to see it loses nothing.
        self.by_key: dict[Hashable, _Watchers[OperationT]] = {}


class DelayedOperationPurgatory(Generic[OperationT]):
    """The waiting room of one kind of operation. Thread-safe.

    Keys are any hashable value; operations on a partition use its TopicPartition.

    Ports: kafka.server.DelayedOperationPurgatory
    """

    def __init__(
        self,
        name: str,
        timer: Timer,
        broker_id: int = 0,
        purge_interval: int = 1000,
        metrics: MetricsRegistry | None = None,
        *,
        reaper_enabled: bool = True,
        timer_enabled: bool = True,
    ) -> None:
        self.name = name  # constant after construction
        self._timer = timer
        self._purge_interval = purge_interval
        self._metrics = metrics
        self._timer_enabled = timer_enabled
        self._shards: tuple[_WatcherShard[OperationT], ...] = tuple(
            _WatcherShard() for _ in range(_SHARDS)
        )
        self._total_lock = threading.Lock()
        # Operations watched since the last purge, completed or not; guarded by self._total_lock.
        self._estimated_total_operations = 0
        self._waiting_is_over = False  # once set, never unset
        if metrics is not None:
            metrics.gauge(PURGATORY_SIZE, lambda: self.watched, delayedOperation=name)
            metrics.gauge(NUM_DELAYED_OPERATIONS, lambda: self.num_delayed, delayedOperation=name)
        self._reaper: ExpiredOperationReaper | None = None
        if reaper_enabled:
            self._reaper = ExpiredOperationReaper(f"ExpirationReaper-{broker_id}-{name}", self)
            self._reaper.start()

    def try_complete_else_watch(self, operation: OperationT, keys: Iterable[Hashable]) -> bool:
        """Whether this call completed the operation; if not, it is watched until it is done.

        The condition is checked again after the operation is watched under every key: it may have
        come true in between, with nobody left to notice.
        """
        with operation.lock:
            if operation.try_complete():
                return True
            watched = False
            for key in keys:
                self._watch(key, operation)
                watched = True
            if watched:
                with self._total_lock:
                    self._estimated_total_operations += 1
            # An operation watched too late for `end_waiting` to see it sees what that has set.
            if operation.try_complete() or (self._waiting_is_over and operation.force_complete()):
                return True
        if self._timer_enabled and not operation.is_completed:
            self._timer.add(operation)
        if operation.is_completed:
            # Perhaps between that check and the timer: nothing is left to expire.
            operation.cancel()
        return False

    def check_and_complete(self, key: Hashable) -> int:
        """Complete what waits for this key and can be completed; how many that were."""
        shard = self._shards[hash(key) % _SHARDS]
        watchers = shard.by_key.get(key)
        if watchers is None:
            return 0
        completed = watchers.try_complete_watched()
        if not len(watchers):
            self._remove_key_if_empty(shard, key, watchers)
        return completed

    def cancel_for_key(self, key: Hashable) -> list[OperationT]:
        """Stop watching this key and take its operations off the timer; they stay incomplete."""
        shard = self._shards[hash(key) % _SHARDS]
        with shard.lock:
            watchers = shard.by_key.pop(key, None)
        if watchers is None:
            return []
        operations = watchers.take_all()
        for operation in operations:
            operation.cancel()
        return operations

    def end_waiting(self) -> None:
        """Complete all that waits; from now on an operation is completed instead of watched."""
        self._waiting_is_over = True
        for _, _, watchers in self._all_watchers():
            for operation in watchers.take_all():
                try:
                    operation.force_complete()
                except Exception:
                    logger.exception("%r could not be completed", operation)

    @property
    def watched(self) -> int:
        """Entries in the watcher lists, completed ones not yet purged included."""
        return sum(len(watchers) for _, _, watchers in self._all_watchers())

    @property
    def num_delayed(self) -> int:
        return self._timer.size

    def advance_clock(self, timeout_ms: int) -> None:
        """Let time-outs happen, then purge if too many completed operations are still watched."""
        self._timer.advance_clock(timeout_ms)
        delayed = self.num_delayed
        with self._total_lock:
            if self._estimated_total_operations - delayed <= self._purge_interval:
                return
            # Set before the purge, so that what comes in meanwhile counts for the next one.
            self._estimated_total_operations = delayed
        purged = 0
        for shard, key, watchers in self._all_watchers():
            purged += watchers.purge_completed()
            if not len(watchers):
                self._remove_key_if_empty(shard, key, watchers)
        logger.debug("Purged %d completed operations from purgatory %s", purged, self.name)

    def shutdown(self) -> None:
        """End the reaper and the timer. Operations still waiting are left as they are."""
        if self._reaper is not None:
            self._reaper.initiate_shutdown()
        self._timer.close()
        if self._reaper is not None:
            self._reaper.await_shutdown()
        if self._metrics is not None:
            self._metrics.remove(PURGATORY_SIZE, delayedOperation=self.name)
            self._metrics.remove(NUM_DELAYED_OPERATIONS, delayedOperation=self.name)
            self._metrics = None

    def _watch(self, key: Hashable, operation: OperationT) -> None:
        shard = self._shards[hash(key) % _SHARDS]
        with shard.lock:
            watchers = shard.by_key.get(key)
            if watchers is None:
                watchers = shard.by_key[key] = _Watchers()
            # Still under the shard's lock, or the list could be dropped as empty meanwhile.
            watchers.watch(operation)

    def _remove_key_if_empty(
        self, shard: _WatcherShard[OperationT], key: Hashable, watchers: _Watchers[OperationT]
    ) -> None:
        with shard.lock:
            if shard.by_key.get(key) is watchers and not len(watchers):
                del shard.by_key[key]

    def _all_watchers(
        self,
    ) -> list[tuple[_WatcherShard[OperationT], Hashable, _Watchers[OperationT]]]:
        found = []
        for shard in self._shards:
            with shard.lock:
                found += [(shard, key, watchers) for key, watchers in shard.by_key.items()]
        return found
