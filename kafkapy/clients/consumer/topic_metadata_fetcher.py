"""Metadata of topics that a consumer does not read."""

from __future__ import annotations

from collections.abc import Iterable

from kafkapy.clients.cluster import PartitionInfo
from kafkapy.clients.consumer.consumer_network_client import ConsumerNetworkClient
from kafkapy.clients.deadline import Deadline
from kafkapy.clients.metadata import Metadata, metadata_request_for
from kafkapy.common.errors import (
    Errors,
    InvalidTopicError,
    KafkaError,
    RetriableError,
    TopicAuthorizationError,
)
from kafkapy.common.protocol.messages.metadata import MetadataResponse
from kafkapy.utils.backoff import ExponentialBackoff
from kafkapy.utils.time import Time


class TopicMetadataFetcher:
    """Asks a broker, and leaves the consumer's own metadata alone. For the polling thread.

    Ports: org.apache.kafka.clients.consumer.internals.TopicMetadataFetcher
    """

    def __init__(
        self, client: ConsumerNetworkClient, time: Time, retry_backoff: ExponentialBackoff
    ) -> None:
        self._client = client
        self._time = time
        self._retry_backoff = retry_backoff

    def fetch(
        self,
        topics: Iterable[str] | None,
        deadline: Deadline,
        *,
        allow_auto_topic_creation: bool,
    ) -> dict[str, list[PartitionInfo]]:
        """The partitions of the topics that exist, of all topics when None.

        RequestTimeoutError when no broker has answered in time.
        """
        wanted = None if topics is None else tuple(topics)
        request = metadata_request_for(
            wanted, allow_auto_topic_creation=allow_auto_topic_creation and wanted is not None
        )
        attempts = 0
        while True:
            node = self._client.least_loaded_node()
            if node is None:
                self._client.await_metadata_update(deadline)
            else:
                future = self._client.send(node, request)
                self._client.poll_future(future, deadline)
                if future.failed and not future.is_retriable:
                    raise future.error
                if future.succeeded:
                    message = future.value.message
                    assert isinstance(message, MetadataResponse)
                    if not _should_retry(message):
                        return self._partitions(message)
            if deadline.is_expired:
                raise self._client.timeout_error("the topics' metadata came", deadline)
            backoff_ms = self._retry_backoff.backoff_ms(attempts)
            attempts += 1
            self._time.sleep(min(backoff_ms, deadline.remaining_ms))

    def _partitions(self, message: MetadataResponse) -> dict[str, list[PartitionInfo]]:
        metadata = Metadata(refresh_backoff_ms=0, refresh_backoff_max_ms=0, metadata_expire_ms=0)
        metadata.update_with_current_request_version(
            message, is_partial_update=False, now_ms=self._time.hi_res_clock_ms()
        )
        cluster = metadata.fetch()
        return {topic: list(cluster.partitions_for_topic(topic)) for topic in cluster.topics}


def _should_retry(message: MetadataResponse) -> bool:
    """Whether a topic is still being made; raises what no repetition mends."""
    retry = False
    for topic in message.topics:
        error = Errors.for_code(topic.error_code)
        if error in (Errors.NONE, Errors.UNKNOWN_TOPIC_OR_PARTITION):
            continue
        if error is Errors.INVALID_TOPIC_EXCEPTION:
            raise InvalidTopicError(f"Topic {topic.name!r} is invalid")
        if error is Errors.TOPIC_AUTHORIZATION_FAILED:
            raise TopicAuthorizationError(f"Not authorized for topic {topic.name}")
        if error.exception_class is None or not issubclass(error.exception_class, RetriableError):
            raise KafkaError(f"The metadata of topic {topic.name}: {error.message}")
        retry = True
    return retry
