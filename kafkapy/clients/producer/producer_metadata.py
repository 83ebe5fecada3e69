"""The metadata of the topics that a producer writes to."""

from __future__ import annotations

import threading

from kafkapy.clients.client_errors import IllegalStateError
from kafkapy.clients.client_request import VersionedRequest
from kafkapy.clients.metadata import Metadata, metadata_request_for
from kafkapy.common.errors import KafkaError, RequestTimeoutError
from kafkapy.common.protocol.messages.metadata import MetadataResponse
from kafkapy.utils.time import Time


class ProducerMetadata(Metadata):
    """Covers the topics of late; one that is not written to for long is forgotten. Thread-safe.

    Ports: org.apache.kafka.clients.producer.internals.ProducerMetadata
    """

    def __init__(
        self,
        time: Time,
        *,
        refresh_backoff_ms: int,
        refresh_backoff_max_ms: int,
        metadata_expire_ms: int,
        metadata_idle_ms: int,
    ) -> None:
        super().__init__(
            refresh_backoff_ms=refresh_backoff_ms,
            refresh_backoff_max_ms=refresh_backoff_max_ms,
            metadata_expire_ms=metadata_expire_ms,
        )
        # constant after construction
        self._time = time
        self._metadata_idle_ms = metadata_idle_ms
        self._updated = threading.Condition(self._lock)
        # guarded by self._lock
        self._topics: dict[str, int] = {}  # when each is forgotten
        self._new_topics: set[str] = set()

    def new_request(self) -> VersionedRequest:
        return metadata_request_for(self._topics, allow_auto_topic_creation=True)

    def new_request_for_new_topics(self) -> VersionedRequest | None:
        return metadata_request_for(self._new_topics, allow_auto_topic_creation=True)

    def retain_topic(self, topic: str, is_internal: bool, now_ms: int) -> bool:
        expires_ms = self._topics.get(topic)
        if expires_ms is None:
            return False
        if topic not in self._new_topics and expires_ms <= now_ms:
            del self._topics[topic]
            return False
        return True

    def add(self, topic: str, now_ms: int) -> None:
        """The topic is in use."""
        with self._lock:
            if topic not in self._topics:
                self._new_topics.add(topic)
                self.request_update_for_new_topics()
            self._topics[topic] = now_ms + self._metadata_idle_ms

    def contains_topic(self, topic: str) -> bool:
        with self._lock:
            return topic in self._topics

    def request_update_for_topic(self, topic: str) -> int:
        """The version to be exceeded; a topic not heard of yet is asked for alone."""
        with self._lock:
            if topic in self._new_topics:
                return self.request_update_for_new_topics()
            return self.request_update(reset_equivalent_response_backoff=False)

    def await_update(self, last_version: int, timeout_ms: int) -> None:
        """Wait for a later version. RequestTimeoutError, or what the update failed with."""
        deadline_ms = self._time.hi_res_clock_ms() + timeout_ms
        with self._lock:
            while self._update_version <= last_version:
                if self._closed:
                    raise IllegalStateError("The producer was closed while waiting for metadata")
                self.maybe_raise_fatal_error()
                remaining_ms = deadline_ms - self._time.hi_res_clock_ms()
                if remaining_ms <= 0:
                    raise RequestTimeoutError(f"No metadata within {timeout_ms} ms")
                self._updated.wait(remaining_ms / 1000)
            if self._closed:
                raise IllegalStateError("The producer was closed while waiting for metadata")
            self.maybe_raise_fatal_error()

    def update(
        self,
        response: MetadataResponse,
        *,
        request_version: int,
        is_partial_update: bool,
        now_ms: int,
        api_version: int = MetadataResponse.VERSIONS.highest,
    ) -> None:
        with self._lock:
            super().update(
                response,
                request_version=request_version,
                is_partial_update=is_partial_update,
                now_ms=now_ms,
                api_version=api_version,
            )
            # Also those that do not exist: they have been asked for, and are not new any more.
            if self._new_topics:
                self._new_topics -= {topic.name for topic in response.topics}
            self._updated.notify_all()

    def fatal_error(self, error: KafkaError) -> None:
        with self._lock:
            super().fatal_error(error)
            self._updated.notify_all()

    def close(self) -> None:
        with self._lock:
            super().close()
            self._updated.notify_all()
