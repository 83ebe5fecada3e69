"""Code of the application's environment that sees what a consumer does."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from kafkapy.clients.consumer.consumer_record import ConsumerRecord
from kafkapy.clients.consumer.offset_and_metadata import OffsetAndMetadata
from kafkapy.common.types import TopicPartition

logger = logging.getLogger(__name__)

Records = dict[TopicPartition, list[ConsumerRecord]]


class ConsumerInterceptor:
    """Override what is needed. Called by the thread that polls; commits also by the heartbeat
    thread.

    Ports: org.apache.kafka.clients.consumer.ConsumerInterceptor
    """

    def on_consume(self, records: Records) -> Records:
        """Before poll returns them; what is returned here is returned there."""
        return records

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """After offsets have been committed."""

    def close(self) -> None:
        """With the consumer."""


class ConsumerInterceptors:
    """All of them in turn. One that raises is logged and does not stop the others.

    Ports: org.apache.kafka.clients.consumer.internals.ConsumerInterceptors
    """

    def __init__(self, interceptors: Iterable[Any]) -> None:
        """Of interceptors, or of classes of them."""
        self._interceptors: list[ConsumerInterceptor] = [
            each() if isinstance(each, type) else each for each in interceptors
        ]

    def on_consume(self, records: Records) -> Records:
        for interceptor in self._interceptors:
            try:
                records = interceptor.on_consume(records)
            except Exception:
                logger.exception("Interceptor %s failed on records", interceptor)
        return records

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        for interceptor in self._interceptors:
            try:
                interceptor.on_commit(offsets)
            except Exception:
                logger.exception("Interceptor %s failed on a commit", interceptor)

    def close(self) -> None:
        for interceptor in self._interceptors:
            try:
                interceptor.close()
            except Exception:
                logger.exception("Interceptor %s failed to close", interceptor)
