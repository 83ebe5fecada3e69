"""The metadata that a consumer needs."""

from __future__ import annotations

from collections.abc import Iterable

from kafkapy.clients.client_request import VersionedRequest
from kafkapy.clients.consumer.subscription_state import SubscriptionState
from kafkapy.clients.metadata import Metadata, metadata_request_for


class ConsumerMetadata(Metadata):
    """Of the topics subscribed to, all topics where a pattern picks them, and for a while those
    that a call has asked about. Thread-safe.

    Ports: org.apache.kafka.clients.consumer.internals.ConsumerMetadata
    """

    def __init__(
        self,
        subscriptions: SubscriptionState,
        *,
        refresh_backoff_ms: int,
        refresh_backoff_max_ms: int,
        metadata_expire_ms: int,
        include_internal_topics: bool,
        allow_auto_topic_creation: bool,
    ) -> None:
        super().__init__(
            refresh_backoff_ms=refresh_backoff_ms,
            refresh_backoff_max_ms=refresh_backoff_max_ms,
            metadata_expire_ms=metadata_expire_ms,
        )
        # constant after construction
        self._subscriptions = subscriptions
        self._include_internal_topics = include_internal_topics
        self.allow_auto_topic_creation = allow_auto_topic_creation
        self._transient_topics: set[str] = set()  # guarded by self._lock

    def new_request(self) -> VersionedRequest:
        if self._subscriptions.has_pattern_subscription:
            return metadata_request_for(None, allow_auto_topic_creation=False)
        with self._lock:
            topics = self._subscriptions.metadata_topics | self._transient_topics
        return metadata_request_for(
            topics, allow_auto_topic_creation=self.allow_auto_topic_creation
        )

    def retain_topic(self, topic: str, is_internal: bool, now_ms: int) -> bool:
        with self._lock:
            if topic in self._transient_topics or self._subscriptions.needs_metadata(topic):
                return True
        if is_internal and not self._include_internal_topics:
            return False
        return self._subscriptions.matches_subscribed_pattern(topic)

    def add_transient_topics(self, topics: Iterable[str]) -> None:
        """Topics that are not subscribed to, for the length of one call."""
        with self._lock:
            self._transient_topics.update(topics)
            cluster = self.fetch()
            if not all(topic in cluster.topics for topic in self._transient_topics):
                self.request_update_for_new_topics()

    def clear_transient_topics(self) -> None:
        with self._lock:
            self._transient_topics.clear()
