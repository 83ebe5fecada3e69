"""The metadata of one topic."""

from __future__ import annotations

from kafkapy.clients.client_request import VersionedRequest
from kafkapy.clients.metadata import Metadata, metadata_request_for


class TopicMetadata(Metadata):
    """Asks for one topic alone, and never creates it. Thread-safe."""

    def __init__(
        self,
        topic: str,
        *,
        refresh_backoff_ms: int,
        refresh_backoff_max_ms: int,
        metadata_expire_ms: int,
    ) -> None:
        super().__init__(
            refresh_backoff_ms=refresh_backoff_ms,
            refresh_backoff_max_ms=refresh_backoff_max_ms,
            metadata_expire_ms=metadata_expire_ms,
        )
        self._topic = topic  # constant after construction

    def new_request(self) -> VersionedRequest:
        return metadata_request_for((self._topic,), allow_auto_topic_creation=False)

    def retain_topic(self, topic: str, is_internal: bool, now_ms: int) -> bool:
        return topic == self._topic
