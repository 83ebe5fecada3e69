"""Looking at records before they are sent and at their outcome."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from kafkapy.clients.producer.producer_record import ProducerRecord
from kafkapy.clients.producer.record_metadata import RecordMetadata
from kafkapy.common.errors import KafkaError

logger = logging.getLogger(__name__)


class ProducerInterceptor:
    """Base of interceptors: override what is of interest.

    `on_send` runs on the thread that sends, `on_acknowledgement` on the sender's.

    Ports: org.apache.kafka.clients.producer.ProducerInterceptor
    """

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """The record to be sent, which may be another."""
        return record

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: KafkaError | None) -> None:
        """The record was written, or failed."""

    def close(self) -> None:
        """The producer was closed."""


class ProducerInterceptors:
    """The interceptors of a producer, in order. One that fails is logged and passed over.

    Ports: org.apache.kafka.clients.producer.internals.ProducerInterceptors
    """

    def __init__(self, interceptors: Sequence[ProducerInterceptor]) -> None:
        self._interceptors = tuple(interceptors)

    def __bool__(self) -> bool:
        return bool(self._interceptors)

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        for interceptor in self._interceptors:
            try:
                record = interceptor.on_send(record)
            except Exception:
                logger.exception("Interceptor %r failed before a send", interceptor)
        return record

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: KafkaError | None) -> None:
        for interceptor in self._interceptors:
            try:
                interceptor.on_acknowledgement(metadata, error)
            except Exception:
                logger.exception("Interceptor %r failed after a send", interceptor)

    def close(self) -> None:
        for interceptor in self._interceptors:
            try:
                interceptor.close()
            except Exception:
                logger.exception("Interceptor %r failed to close", interceptor)
