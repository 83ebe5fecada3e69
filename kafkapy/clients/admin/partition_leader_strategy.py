from __future__ import annotations

from collections.abc import Sequence

from kafkapy.clients.admin.lookup_strategy import LookupResult, LookupStrategy
from kafkapy.clients.client_request import VersionedRequest
from kafkapy.clients.metadata import metadata_request_for
from kafkapy.common.errors import Errors, KafkaError
from kafkapy.common.protocol.messages.metadata import MetadataResponse
from kafkapy.common.protocol.schema import Message
from kafkapy.common.types import TopicPartition

_RETRIABLE_TOPIC_ERRORS = frozenset(
    {
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
        Errors.LEADER_NOT_AVAILABLE,
        Errors.BROKER_NOT_AVAILABLE,
    }
)
_RETRIABLE_PARTITION_ERRORS = frozenset(
    {
        Errors.NOT_LEADER_OR_FOLLOWER,
        Errors.REPLICA_NOT_AVAILABLE,
        Errors.LEADER_NOT_AVAILABLE,
        Errors.BROKER_NOT_AVAILABLE,
        Errors.KAFKA_STORAGE_ERROR,
    }
)


class PartitionLeaderStrategy(LookupStrategy[TopicPartition]):
    """The leader of a partition. An unknown topic may be one that was just made: asked for again.

    Ports: org.apache.kafka.clients.admin.internals.PartitionLeaderStrategy
    """

    call_name = "the look-up of partition leaders"

    def build_request(self, keys: Sequence[TopicPartition]) -> VersionedRequest:
        return metadata_request_for({key.topic for key in keys}, allow_auto_topic_creation=False)

    def handle_response(
        self, keys: Sequence[TopicPartition], response: Message
    ) -> LookupResult[TopicPartition]:
        assert isinstance(response, MetadataResponse)
        topics = {topic.name: topic for topic in response.topics}
        result: LookupResult[TopicPartition] = LookupResult()
        for key in keys:
            topic = topics.get(key.topic)
            topic_error = (
                Errors.UNKNOWN_TOPIC_OR_PARTITION
                if topic is None
                else Errors.for_code(topic.error_code)
            )
            if topic is None or topic_error is not Errors.NONE:
                error = _named(topic_error, key)
                if topic_error in _RETRIABLE_TOPIC_ERRORS:
                    result.retried[key] = error
                else:
                    result.failed[key] = error
            else:
                self._look_for_leader(key, topic, result)
        return result

    @staticmethod
    def _look_for_leader(
        key: TopicPartition,
        topic: MetadataResponse.MetadataResponseTopic,
        result: LookupResult[TopicPartition],
    ) -> None:
        for partition in topic.partitions:
            if partition.partition_index != key.partition:
                continue
            partition_error = Errors.for_code(partition.error_code)
            if partition_error is Errors.NONE and partition.leader_id < 0:
                partition_error = Errors.LEADER_NOT_AVAILABLE
            if partition_error is Errors.NONE:
                result.mapped[key] = partition.leader_id
            elif partition_error in _RETRIABLE_PARTITION_ERRORS:
                result.retried[key] = _named(partition_error, key)
            else:
                result.failed[key] = _named(partition_error, key)
            return
        result.retried[key] = _named(Errors.UNKNOWN_TOPIC_OR_PARTITION, key)


def _named(error: Errors, key: TopicPartition) -> KafkaError:
    return error.exception(f"{key}: {error.message}")
