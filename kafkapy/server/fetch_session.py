"""Incremental fetch sessions (KIP-227): a consumer names its partitions once, then only changes.

A fetch request belongs to one of four contexts: without a session, opening one (full), within one
(incremental), or wrong. The context yields the partitions to read and later decides which results
go into the response: an incremental one leaves out partitions with no news.
"""

from __future__ import annotations

import random
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from kafkapy.common.errors import Errors
from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.metrics.stats import Gauge, Meter
from kafkapy.common.protocol.messages.fetch import FetchResponse
from kafkapy.common.types import ZERO_UUID, TopicIdPartition, TopicPartition
from kafkapy.storage.fetch_params import FetchPartitionData
from kafkapy.utils.time import Time

INVALID_SESSION_ID = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
# A session idle for this long may be evicted by any newcomer.
MIN_EVICTION_MS = 120_000

NUM_FETCH_SESSIONS = Gauge(
    "kafka.server:type=FetchSessionCache,name=NumIncrementalFetchSessions",
    "Incremental fetch sessions kept.",
)
NUM_FETCH_PARTITIONS = Gauge(
    "kafka.server:type=FetchSessionCache,name=NumIncrementalFetchPartitionsCached",
    "Partitions in all incremental fetch sessions.",
)
FETCH_SESSION_EVICTIONS = Meter(
    "kafka.server:type=FetchSessionCache,name=IncrementalFetchSessionEvictionsPerSec",
    "Incremental fetch sessions that made room for others.",
)

PartitionResult = tuple[TopicIdPartition, FetchResponse.PartitionData]
PartitionKey = tuple[UUID | str, int]


@dataclass(frozen=True, slots=True)
class FetchMetadata:
    """The session id and epoch of a request. Epoch 0 opens a session, -1 ends it or wants none.

    Ports: org.apache.kafka.common.requests.FetchMetadata
    """

    session_id: int
    epoch: int

    @property
    def is_full(self) -> bool:
        return self.epoch in (INITIAL_EPOCH, FINAL_EPOCH)

    @staticmethod
    def next_epoch(previous: int) -> int:
        if previous < 0:
            return FINAL_EPOCH
        return 1 if previous == 0x7FFFFFFF else previous + 1


class CachedPartition:
    """What a session remembers of one partition.

    Ports: kafka.server.CachedPartition
    """

    __slots__ = ("data", "high_watermark", "log_start_offset", "topic_id_partition")

    def __init__(self, topic_id_partition: TopicIdPartition, data: FetchPartitionData) -> None:
        self.topic_id_partition = topic_id_partition
        self.data = data
        # What the client was last told; -1 makes the next response carry this partition.
        self.high_watermark = -1
        self.log_start_offset = -1

    def has_news(self, result: FetchResponse.PartitionData, *, remember: bool) -> bool:
        """Whether the client must be told; with `remember`, as if it now were."""
        news = records_size(result) > 0
        if self.high_watermark != result.high_watermark:
            news = True
            if remember:
                self.high_watermark = result.high_watermark
        if self.log_start_offset != result.log_start_offset:
            news = True
            if remember:
                self.log_start_offset = result.log_start_offset
        if result.preferred_read_replica != -1 or result.diverging_epoch.epoch != -1:
            news = True
        if result.error_code != Errors.NONE.code:
            news = True
            if remember:
                # Tell the client again once the error has gone, whatever the offsets are then.
                self.high_watermark = -1
        return news


class FetchSession:
    """One client's partitions, in the order they are read. Guarded by its own lock.

    Ports: kafka.server.FetchSession
    """

    def __init__(
        self,
        session_id: int,
        *,
        privileged: bool,
        uses_topic_ids: bool,
        partitions: dict[PartitionKey, CachedPartition],
        now_ms: int,
    ) -> None:
        # constant after construction
        self.id = session_id
        self.privileged = privileged
        self.uses_topic_ids = uses_topic_ids
        self.creation_ms = now_ms
        self.lock = threading.Lock()
        # guarded by self.lock
        self.partitions = partitions
        self.epoch = FetchMetadata.next_epoch(INITIAL_EPOCH)
        # guarded by the cache's lock
        self.last_used_ms = now_ms

    def update_locked(
        self,
        fetch_data: dict[TopicIdPartition, FetchPartitionData],
        to_forget: Iterable[TopicIdPartition],
    ) -> None:
        for topic_id_partition, data in fetch_data.items():
            key = partition_key(topic_id_partition)
            cached = self.partitions.get(key)
            if cached is None:
                self.partitions[key] = CachedPartition(topic_id_partition, data)
            else:
                cached.data = data
        for topic_id_partition in to_forget:
            self.partitions.pop(partition_key(topic_id_partition), None)


class FetchSessionCache:
    """A bounded set of sessions, least recently used first. Thread-safe.

    Ports: kafka.server.FetchSessionCache
    """

    def __init__(self, max_entries: int, metrics: MetricsRegistry, rng: random.Random) -> None:
        # constant after construction
        self._max_entries = max_entries
        self._random = rng
        self._evictions = metrics.meter(FETCH_SESSION_EVICTIONS)
        self._lock = threading.Lock()
        # guarded by self._lock
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        metrics.gauge(NUM_FETCH_SESSIONS, lambda: len(self._sessions))
        metrics.gauge(NUM_FETCH_PARTITIONS, self._total_partitions)

    def get(self, session_id: int) -> FetchSession | None:
        with self._lock:
            return self._sessions.get(session_id)

    def remove(self, session_id: int) -> None:
        with self._lock:
            self._sessions.pop(session_id, None)

    def touch(self, session: FetchSession, now_ms: int) -> None:
        with self._lock:
            if session.id in self._sessions:
                session.last_used_ms = now_ms
                self._sessions.move_to_end(session.id)

    def maybe_create_session(
        self,
        *,
        privileged: bool,
        uses_topic_ids: bool,
        partitions: dict[PartitionKey, CachedPartition],
        now_ms: int,
    ) -> int:
        """The new session's id, or INVALID_SESSION_ID when there is no room for it."""
        with self._lock:
            if len(self._sessions) >= self._max_entries and not self._try_evict_locked(
                privileged=privileged, size=len(partitions), now_ms=now_ms
            ):
                return INVALID_SESSION_ID
            session = FetchSession(
                self._new_session_id_locked(),
                privileged=privileged,
                uses_topic_ids=uses_topic_ids,
                partitions=partitions,
                now_ms=now_ms,
            )
            self._sessions[session.id] = session
            return session.id

    def _new_session_id_locked(self) -> int:
        while True:
            session_id = self._random.randint(1, 0x7FFFFFFF)
            if session_id not in self._sessions:
                return session_id

    def _try_evict_locked(self, *, privileged: bool, size: int, now_ms: int) -> bool:
        """Frees a slot: an idle session's, or one that is worth less than the newcomer.

        Followers are worth more than consumers, larger sessions more than smaller ones; a young
        session only makes room for a follower, and only if it is a consumer's.
        """
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        victim: FetchSession | None = oldest
        if now_ms - oldest.last_used_ms <= MIN_EVICTION_MS:
            candidates = [
                session
                for session in self._sessions.values()
                if now_ms - session.creation_ms > MIN_EVICTION_MS
                or (privileged and not session.privileged)
            ]
            victim = min(candidates, key=_worth, default=None)
            if victim is None or _worth(victim)[:2] >= (privileged, size):
                return False
        assert victim is not None
        del self._sessions[victim.id]
        self._evictions.mark()
        return True

    def _total_partitions(self) -> int:
        with self._lock:
            return sum(len(session.partitions) for session in self._sessions.values())


class FetchContext(Protocol):
    """Ports: kafka.server.FetchContext"""

    def partitions(self) -> Iterator[tuple[TopicIdPartition, FetchPartitionData]]:
        """What to read, in order."""
        ...

    def response(self, results: list[PartitionResult]) -> FetchResponse:
        """The answer that carries these results."""
        ...


@dataclass(frozen=True, slots=True)
class SessionErrorContext:
    """The request names no session that could be continued.

    Ports: kafka.server.SessionErrorContext
    """

    error: Errors

    def partitions(self) -> Iterator[tuple[TopicIdPartition, FetchPartitionData]]:
        return iter(())

    def response(self, results: list[PartitionResult]) -> FetchResponse:
        return FetchResponse(error_code=self.error.code)


@dataclass(frozen=True, slots=True)
class SessionlessFetchContext:
    """Ports: kafka.server.SessionlessFetchContext"""

    fetch_data: dict[TopicIdPartition, FetchPartitionData]

    def partitions(self) -> Iterator[tuple[TopicIdPartition, FetchPartitionData]]:
        return iter(self.fetch_data.items())

    def response(self, results: list[PartitionResult]) -> FetchResponse:
        return _response(results, INVALID_SESSION_ID)


@dataclass(frozen=True, slots=True)
class FullFetchContext:
    """Opens a session if the cache has room.

    Ports: kafka.server.FullFetchContext
    """

    fetch_data: dict[TopicIdPartition, FetchPartitionData]
    cache: FetchSessionCache
    privileged: bool
    uses_topic_ids: bool
    time: Time

    def partitions(self) -> Iterator[tuple[TopicIdPartition, FetchPartitionData]]:
        return iter(self.fetch_data.items())

    def response(self, results: list[PartitionResult]) -> FetchResponse:
        cached: dict[PartitionKey, CachedPartition] = {}
        for topic_id_partition, result in results:
            partition = CachedPartition(topic_id_partition, self.fetch_data[topic_id_partition])
            partition.has_news(result, remember=True)
            cached[partition_key(topic_id_partition)] = partition
        session_id = self.cache.maybe_create_session(
            privileged=self.privileged,
            uses_topic_ids=self.uses_topic_ids,
            partitions=cached,
            # Not when the request came in: it may have waited for longer than sessions may idle.
            now_ms=self.time.milliseconds(),
        )
        return _response(results, session_id)


@dataclass(frozen=True, slots=True)
class IncrementalFetchContext:
    """Continues a session.

    Ports: kafka.server.IncrementalFetchContext
    """

    session: FetchSession
    request_epoch: int
    topic_names: Mapping[UUID, str]

    def partitions(self) -> Iterator[tuple[TopicIdPartition, FetchPartitionData]]:
        with self.session.lock:
            cached = list(self.session.partitions.values())
        for partition in cached:
            if not partition.topic_id_partition.topic_partition.topic:
                self._maybe_resolve_unknown_name(partition)
            yield partition.topic_id_partition, partition.data

    def _maybe_resolve_unknown_name(self, partition: CachedPartition) -> None:
        """A topic unknown when the session began may have become known since.

        Never the reverse: with its name a deleted topic is told from one that never was.
        """
        unknown = partition.topic_id_partition
        name = self.topic_names.get(unknown.topic_id)
        if name is not None:
            partition.topic_id_partition = TopicIdPartition(
                unknown.topic_id, TopicPartition(name, unknown.topic_partition.partition)
            )

    def response(self, results: list[PartitionResult]) -> FetchResponse:
        session = self.session
        with session.lock:
            if session.epoch != FetchMetadata.next_epoch(self.request_epoch):
                return FetchResponse(
                    error_code=Errors.INVALID_FETCH_SESSION_EPOCH.code, session_id=session.id
                )
            news = []
            for topic_id_partition, result in results:
                key = partition_key(topic_id_partition)
                cached = session.partitions.get(key)
                if cached is None:
                    continue
                if cached.has_news(result, remember=True):
                    news.append((topic_id_partition, result))
                    if records_size(result) > 0:
                        # Read the others first next time, so that a busy partition starves none.
                        session.partitions[key] = session.partitions.pop(key)
        return _response(news, session.id)


class FetchManager:
    """Finds the context of each fetch request.

    Ports: kafka.server.FetchManager
    """

    def __init__(self, time: Time, cache: FetchSessionCache) -> None:
        self._time = time
        self._cache = cache

    def new_context(
        self,
        metadata: FetchMetadata,
        fetch_data: dict[TopicIdPartition, FetchPartitionData],
        *,
        to_forget: list[TopicIdPartition],
        is_follower: bool,
        uses_topic_ids: bool,
        topic_names: Mapping[UUID, str],
    ) -> FetchContext:
        if metadata.is_full:
            if metadata.session_id != INVALID_SESSION_ID:
                self._cache.remove(metadata.session_id)
            if metadata.epoch == FINAL_EPOCH:
                return SessionlessFetchContext(fetch_data)
            return FullFetchContext(
                fetch_data,
                self._cache,
                privileged=is_follower,
                uses_topic_ids=uses_topic_ids,
                time=self._time,
            )
        session = self._cache.get(metadata.session_id)
        if session is None:
            return SessionErrorContext(Errors.FETCH_SESSION_ID_NOT_FOUND)
        with session.lock:
            if session.epoch != metadata.epoch:
                return SessionErrorContext(Errors.INVALID_FETCH_SESSION_EPOCH)
            if session.uses_topic_ids != uses_topic_ids:
                return SessionErrorContext(Errors.FETCH_SESSION_TOPIC_ID_ERROR)
            session.update_locked(fetch_data, to_forget)
            emptied = not session.partitions
            if not emptied:
                session.epoch = FetchMetadata.next_epoch(session.epoch)
        if emptied:
            self._cache.remove(session.id)
            return SessionlessFetchContext(fetch_data)
        self._cache.touch(session, self._time.milliseconds())
        return IncrementalFetchContext(session, metadata.epoch, topic_names)


def partition_key(topic_id_partition: TopicIdPartition) -> PartitionKey:
    """By id where there is one: a name may be missing, or have been given to another topic."""
    topic, partition = topic_id_partition.topic_partition
    return (
        (topic_id_partition.topic_id, partition)
        if topic_id_partition.topic_id != ZERO_UUID
        else (
            topic,
            partition,
        )
    )


def _worth(session: FetchSession) -> tuple[bool, int, int]:
    return session.privileged, len(session.partitions), session.id


def records_size(result: FetchResponse.PartitionData) -> int:
    records = result.records
    if records is None:
        return 0
    if isinstance(records, bytes | bytearray | memoryview):
        return len(records)
    return records.size_in_bytes


def _response(results: list[PartitionResult], session_id: int) -> FetchResponse:
    topics: list[FetchResponse.FetchableTopicResponse] = []
    current: TopicIdPartition | None = None
    for topic_id_partition, result in results:
        if (
            current is None
            or current.topic_id != topic_id_partition.topic_id
            or current.topic_partition.topic != topic_id_partition.topic_partition.topic
        ):
            current = topic_id_partition
            topics.append(
                FetchResponse.FetchableTopicResponse(
                    topic=current.topic_partition.topic, topic_id=current.topic_id, partitions=[]
                )
            )
        topics[-1].partitions.append(result)
    return FetchResponse(session_id=session_id, responses=topics)
