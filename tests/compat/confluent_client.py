"""confluent-kafka behind the verbs of the contract; other tests read and write with it too."""

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka import Message as Received
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tests.compat.cases import EVERYTHING, Message
from tests.compat.contract import EARLIEST, LATEST

_WAIT_S = 20


class ConfluentClient:
    can = EVERYTHING

    def __init__(self, bootstrap: str, **settings: str) -> None:
        self._settings = {"bootstrap.servers": bootstrap, **settings}

    def produce(
        self,
        topic: str,
        messages: Sequence[Message],
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> None:
        producer = Producer(
            {
                **self._settings,
                "compression.type": codec,
                "acks": acks,
                "enable.idempotence": idempotent,
                "message.max.bytes": 2_000_000,
                "linger.ms": 5,
            }
        )
        failures: list[KafkaError] = []

        def delivered(error: KafkaError | None, _: Received) -> None:
            if error is not None:
                failures.append(error)

        for message in messages:
            producer.produce(
                topic,
                key=message.key,
                value=message.value,
                headers=list(message.headers),
                partition=message.partition,
                timestamp=message.timestamp_ms or 0,
                on_delivery=delivered,
            )
        assert producer.flush(_WAIT_S) == 0
        assert failures == []

    def consume(self, topic: str, partition: int, count: int, *, offset: int = 0) -> list[Message]:
        # librdkafka wants a group name even where no group is used.
        settings = {**self._settings, "group.id": "unused", "enable.auto.commit": False}
        consumer = Consumer({**settings, "auto.offset.reset": "error"})
        try:
            consumer.assign([TopicPartition(topic, partition, offset)])
            received = []
            while len(received) < count:
                chunk = consumer.consume(count - len(received), timeout=_WAIT_S)
                assert chunk, f"{len(received)} of {count} within {_WAIT_S} s"
                received += chunk
            return [_message(r) for r in received]
        finally:
            consumer.close()


def _message(received: Received) -> Message:
    assert received.error() is None, received.error()
    headers = tuple(received.headers() or ())
    _, timestamp_ms = received.timestamp()
    return Message(received.value(), received.key(), headers, timestamp_ms, received.partition())


class ConfluentAdmin:
    def __init__(self, bootstrap: str) -> None:
        self.client = AdminClient({"bootstrap.servers": bootstrap})

    def create_topic(self, topic: str, partitions: int, config: dict[str, str]) -> None:
        new = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=config)
        only_result(self.client.create_topics([new]))

    def delete_topic(self, topic: str) -> None:
        only_result(self.client.delete_topics([topic]))

    def partition_count(self, topic: str) -> int | None:
        # Asked for by name a missing topic would be created; the list of all of them is harmless.
        found = self.client.list_topics(timeout=_WAIT_S).topics.get(topic)
        return None if found is None else len(found.partitions)

    def add_partitions(self, topic: str, total: int) -> None:
        only_result(self.client.create_partitions([NewPartitions(topic, total)]))

    def topic_config(self, topic: str) -> dict[str, str]:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        entries = only_result(self.client.describe_configs([resource]))
        return {key: entry.value for key, entry in entries.items()}

    def set_topic_config(self, topic: str, key: str, value: str) -> None:
        change = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])
        only_result(self.client.incremental_alter_configs([resource]))

    def delete_records(self, topic: str, partition: int, before_offset: int) -> None:
        target = TopicPartition(topic, partition, before_offset)
        only_result(self.client.delete_records([target]))

    def offset_for(self, topic: str, partition: int, timestamp_ms: int) -> int:
        named = {EARLIEST: OffsetSpec.earliest(), LATEST: OffsetSpec.latest()}
        spec = named.get(timestamp_ms) or OffsetSpec.for_timestamp(timestamp_ms)
        return only_result(
            self.client.list_offsets({TopicPartition(topic, partition): spec})
        ).offset

    def brokers(self) -> list[str]:
        nodes = self.client.describe_cluster().result(_WAIT_S).nodes
        return [f"{node.host}:{node.port}" for node in nodes]


def only_result(futures: dict[Any, Future[Any]]) -> Any:
    (future,) = futures.values()
    return future.result(_WAIT_S)
