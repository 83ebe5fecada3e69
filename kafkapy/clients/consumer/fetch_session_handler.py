"""The client's half of fetch sessions (KIP-227): only what changes is sent."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.fetch import FetchResponse
from kafkapy.common.types import ZERO_UUID, TopicPartition

logger = logging.getLogger(__name__)

INVALID_SESSION_ID = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
_MAX_EPOCH = 2**31 - 1
_FIRST_VERSION_WITH_TOPIC_IDS = 13


@dataclass(frozen=True, slots=True)
class FetchMetadata:
    """A session and how far it has come.

    Ports: org.apache.kafka.common.requests.FetchMetadata
    """

    session_id: int
    epoch: int

    @property
    def is_full(self) -> bool:
        """The request names all partitions: it starts a session, or does without one."""
        return self.epoch in (INITIAL_EPOCH, FINAL_EPOCH)

    def next_incremental(self) -> FetchMetadata:
        return FetchMetadata(self.session_id, 1 if self.epoch == _MAX_EPOCH else self.epoch + 1)

    def close_existing_and_start_new(self) -> FetchMetadata:
        return FetchMetadata(self.session_id, INITIAL_EPOCH)


INITIAL = FetchMetadata(INVALID_SESSION_ID, INITIAL_EPOCH)


@dataclass(frozen=True, slots=True)
class PartitionRequest:
    """What is asked of one partition.

    Ports: org.apache.kafka.common.requests.FetchRequest.PartitionData
    """

    topic_id: UUID
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int | None


@dataclass(frozen=True, slots=True)
class FetchRequestData:
    """The next request of a session.

    Ports: org.apache.kafka.clients.FetchSessionHandler.FetchRequestData
    """

    to_send: Mapping[TopicPartition, PartitionRequest]
    to_forget: Mapping[TopicPartition, UUID]
    session_partitions: Mapping[TopicPartition, PartitionRequest]
    metadata: FetchMetadata
    can_use_topic_ids: bool


@dataclass(slots=True)
class FetchSessionHandler:
    """The session with one node. For use under its owner's lock.

    Ports: org.apache.kafka.clients.FetchSessionHandler
    """

    node_id: int
    _next: FetchMetadata = INITIAL
    _uses_topic_ids: bool = False
    # In the order in which the broker is to serve them.
    _partitions: dict[TopicPartition, PartitionRequest] = field(default_factory=dict)
    _topic_names: dict[UUID, str] = field(default_factory=dict)

    @property
    def session_partitions(self) -> Mapping[TopicPartition, PartitionRequest]:
        return self._partitions

    @property
    def session_topic_names(self) -> Mapping[UUID, str]:
        return self._topic_names

    def build(self, wanted: dict[TopicPartition, PartitionRequest]) -> FetchRequestData:
        """A request that makes the session's partitions the wanted ones."""
        can_use_topic_ids = all(request.topic_id != ZERO_UUID for request in wanted.values())
        if not self._next.is_full and can_use_topic_ids != self._uses_topic_ids:
            # One session cannot have both: start another.
            self._next = self._next.close_existing_and_start_new()
        self._uses_topic_ids = can_use_topic_ids
        previous = self._partitions
        self._partitions = dict(wanted)
        if can_use_topic_ids:
            self._topic_names = {request.topic_id: tp.topic for tp, request in wanted.items()}
        if self._next.is_full:
            return FetchRequestData(wanted, {}, self._partitions, self._next, can_use_topic_ids)
        to_send = {
            partition: request
            for partition, request in wanted.items()
            if previous.get(partition) != request
        }
        to_forget = {
            partition: request.topic_id
            for partition, request in previous.items()
            # Of a topic made anew the old one is forgotten while the new one is asked for.
            if partition not in wanted or wanted[partition].topic_id != request.topic_id
        }
        return FetchRequestData(to_send, to_forget, self._partitions, self._next, can_use_topic_ids)

    def close_request(self) -> FetchRequestData | None:
        """The request that ends the session; None when there is none."""
        if self._next.session_id == INVALID_SESSION_ID:
            return None
        metadata = FetchMetadata(self._next.session_id, FINAL_EPOCH)
        return FetchRequestData({}, {}, {}, metadata, self._uses_topic_ids)

    def handle_response(self, response: FetchResponse, version: int) -> bool:
        """Whether the response is of use; what comes next in the session follows from it."""
        error = Errors.for_code(response.error_code)
        if error is not Errors.NONE:
            logger.info("Node %d ended fetch session %s: %s", self.node_id, self._next, error.name)
            if error is Errors.FETCH_SESSION_ID_NOT_FOUND:
                self._next = INITIAL
            else:
                self._next = self._next.close_existing_and_start_new()
            return False
        answered = self._answered_partitions(response, version)
        was_full = self._next.is_full
        if was_full and not response.responses and response.throttle_time_ms > 0:
            # Throttled: the broker has done nothing yet.
            self._next = INITIAL
            return False
        matches = answered is not None and (
            answered == self._partitions.keys() if was_full else answered <= self._partitions.keys()
        )
        if not matches:
            logger.warning(
                "Node %d answered for partitions that it was not asked about", self.node_id
            )
            self._next = INITIAL if was_full else self._next.close_existing_and_start_new()
            return False
        if response.session_id == INVALID_SESSION_ID:
            self._next = INITIAL
        elif was_full:
            self._next = FetchMetadata(response.session_id, 1)
        else:
            self._next = self._next.next_incremental()
        return True

    def handle_error(self) -> None:
        """Whether the broker has seen the request is not known: start over."""
        self._next = self._next.close_existing_and_start_new()

    def _answered_partitions(
        self, response: FetchResponse, version: int
    ) -> set[TopicPartition] | None:
        """None when a topic id is unknown."""
        answered: set[TopicPartition] = set()
        for topic in response.responses:
            name: str | None = topic.topic
            if version >= _FIRST_VERSION_WITH_TOPIC_IDS:
                name = self._topic_names.get(topic.topic_id)
            if name is None:
                return None
            answered.update(TopicPartition(name, p.partition_index) for p in topic.partitions)
        return answered
