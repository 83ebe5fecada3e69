"""What has been fetched and not yet been handed out."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Collection, Iterable

from kafkapy.clients.consumer.completed_fetch import CompletedFetch
from kafkapy.common.types import TopicPartition


class FetchBuffer:
    """Completed fetches in the order they came; the first may have been handed out in part.

    Thread-safe: responses are also handled by the heartbeat thread. Only the thread that polls
    takes fetches out.

    Ports: org.apache.kafka.clients.consumer.internals.FetchBuffer
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # guarded by self._lock
        self._fetches: deque[CompletedFetch] = deque()
        self._next_in_line: CompletedFetch | None = None

    @property
    def is_empty(self) -> bool:
        with self._lock:
            return not self._fetches

    @property
    def next_in_line(self) -> CompletedFetch | None:
        with self._lock:
            return self._next_in_line

    @next_in_line.setter
    def next_in_line(self, fetch: CompletedFetch | None) -> None:
        with self._lock:
            self._next_in_line = fetch

    def add(self, fetch: CompletedFetch) -> None:
        with self._lock:
            self._fetches.append(fetch)

    def add_all(self, fetches: Iterable[CompletedFetch]) -> None:
        with self._lock:
            self._fetches.extend(fetches)

    def peek(self) -> CompletedFetch | None:
        with self._lock:
            return self._fetches[0] if self._fetches else None

    def pop(self) -> CompletedFetch | None:
        with self._lock:
            return self._fetches.popleft() if self._fetches else None

    def buffered_fetches(self) -> dict[TopicPartition, list[CompletedFetch]]:
        """What is left of each partition, in order."""
        buffered: dict[TopicPartition, list[CompletedFetch]] = {}
        with self._lock:
            if self._next_in_line is not None and not self._next_in_line.is_consumed:
                buffered[self._next_in_line.partition] = [self._next_in_line]
            for fetch in self._fetches:
                buffered.setdefault(fetch.partition, []).append(fetch)
        return buffered

    def has_completed_fetches(self, partitions: Collection[TopicPartition]) -> bool:
        with self._lock:
            return any(fetch.partition in partitions for fetch in self._fetches)

    def retain_all(self, partitions: Collection[TopicPartition]) -> None:
        """Drop what is of other partitions."""
        with self._lock:
            self._fetches = deque(f for f in self._fetches if f.partition in partitions)
            if self._next_in_line is not None and self._next_in_line.partition not in partitions:
                self._next_in_line.drain()
                self._next_in_line = None
