"""Looking at records before they are sent and at their outcome."""

from __future__ import annotations

import logging
import threading
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
        self._interceptors = tuple(interceptors)  # constant after construction
        self._lock = threading.Lock()
        self._open = self._interceptors  # guarded by self._lock

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
        """Each of them once, however often the producer is closed."""
        with self._lock:
            still_open, self._open = self._open, ()
        for interceptor in still_open:
            try:
                interceptor.close()
            except Exception:
                logger.exception("Interceptor %r failed to close", interceptor)
