"""What incremental fetches are about, which their requests do not say."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from kafkapy.common.protocol.messages.fetch import FetchRequest, FetchResponse

_NO_SESSION = 0
_MAX_SESSIONS = 1000


class FetchedPartition(NamedTuple):
    """A partition as a fetch names it: by topic, or from version 13 on by topic id."""

    topic: str
    topic_id: UUID
    partition: int


class FetchSessions:
    """The partitions of each fetch session, learned from requests and responses. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # guarded by self._lock
        self._sessions: OrderedDict[int, set[FetchedPartition]] = OrderedDict()
        self._names: dict[UUID, str] = {}

    def learn_names(self, names: Mapping[UUID, str]) -> None:
        with self._lock:
            self._names.update(names)

    def name_of(self, topic_id: UUID) -> str | None:
        with self._lock:
            return self._names.get(topic_id)

    def partitions(self, fetch: FetchRequest) -> set[FetchedPartition]:
        """Those the request names, and those of its session that it does not forget."""
        with self._lock:
            found = set(self._sessions.get(fetch.session_id, ()))
            for topic in fetch.topics:
                for partition in topic.partitions:
                    found.add(self._partition(topic.topic, topic.topic_id, partition.partition))
            for forgotten in fetch.forgotten_topics_data:
                for index in forgotten.partitions:
                    found.discard(self._partition(forgotten.topic, forgotten.topic_id, index))
        return found

    def answered(self, fetch: FetchRequest, response: FetchResponse) -> None:
        """Remember what the session is about from now on."""
        partitions = self.partitions(fetch)
        if response.session_id == _NO_SESSION:
            return
        with self._lock:
            self._sessions[response.session_id] = partitions
            self._sessions.move_to_end(response.session_id)
            if len(self._sessions) > _MAX_SESSIONS:
                self._sessions.popitem(last=False)

    def _partition(self, topic: str, topic_id: UUID, partition: int) -> FetchedPartition:
        return FetchedPartition(topic or self._names.get(topic_id, ""), topic_id, partition)
