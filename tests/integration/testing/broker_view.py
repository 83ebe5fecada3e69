"""All of a broker that a real client can see, and the things clients do to it."""

from dataclasses import dataclass

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
)

from kafkapy.testing import BrokerHandle

_TIMEOUT_S = 20
_RETENTION = "retention.ms"


@dataclass(frozen=True)
class BrokerView:
    """Topics with their settings, committed records and end offsets; groups with their offsets."""

    partitions: dict[str, int]
    retention: dict[str, str]
    records: dict[tuple[str, int], list[tuple[int, bytes]]]
    watermarks: dict[tuple[str, int], tuple[int, int]]
    committed: dict[str, dict[tuple[str, int], int]]


class RealClient:
    """librdkafka's admin client, producers and consumers on one broker."""

    def __init__(self, broker: BrokerHandle) -> None:
        self._settings = {"bootstrap.servers": broker.bootstrap_servers}
        self._admin = AdminClient(self._settings)

    def view(self) -> BrokerView:
        partitions = {
            name: len(topic.partitions)
            for name, topic in self._admin.list_topics(timeout=_TIMEOUT_S).topics.items()
            if not name.startswith("__")
        }
        consumer = Consumer(
            {
                **self._settings,
                "group.id": "viewer",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 10,
            }
        )
        try:
            every = [(name, index) for name, n in partitions.items() for index in range(n)]
            watermarks = {
                (name, index): consumer.get_watermark_offsets(
                    TopicPartition(name, index), timeout=_TIMEOUT_S
                )
                for name, index in every
            }
            records = self._read(consumer, every)
        finally:
            consumer.close()
        return BrokerView(
            partitions, self._retention(list(partitions)), records, watermarks, self._committed()
        )

    @staticmethod
    def _read(
        consumer: Consumer, every: list[tuple[str, int]]
    ) -> dict[tuple[str, int], list[tuple[int, bytes]]]:
        found: dict[tuple[str, int], list[tuple[int, bytes]]] = {key: [] for key in every}
        consumer.assign([TopicPartition(name, index, 0) for name, index in every])
        ended: set[tuple[str, int]] = set()
        while len(ended) < len(every):
            message = consumer.poll(_TIMEOUT_S)
            assert message is not None
            key = (message.topic(), message.partition())
            if message.error() is not None:
                ended.add(key)
            else:
                found[key].append((message.offset(), message.value()))
        return found

    def _retention(self, topics: list[str]) -> dict[str, str]:
        resources = [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in topics]
        if not resources:
            return {}
        futures = self._admin.describe_configs(resources)
        return {
            resource.name: future.result(_TIMEOUT_S)[_RETENTION].value
            for resource, future in futures.items()
        }

    def _committed(self) -> dict[str, dict[tuple[str, int], int]]:
        listed = self._admin.list_consumer_groups().result(_TIMEOUT_S).valid
        groups = [group.group_id for group in listed]
        committed = {}
        for group in groups:
            request = [ConsumerGroupTopicPartitions(group)]
            future = self._admin.list_consumer_group_offsets(request)[group]
            offsets = future.result(_TIMEOUT_S).topic_partitions
            committed[group] = {(tp.topic, tp.partition): tp.offset for tp in offsets}
        return committed

    def create(self, topic: str) -> None:
        self._done(self._admin.create_topics([NewTopic(topic, 1, 1)]))

    def delete(self, topic: str) -> None:
        self._done(self._admin.delete_topics([topic]))

    def grow(self, topic: str) -> None:
        count = len(self._admin.list_topics(topic, timeout=_TIMEOUT_S).topics[topic].partitions)
        self._done(self._admin.create_partitions([NewPartitions(topic, count + 1)]))

    def alter(self, topic: str, retention_ms: int) -> None:
        entry = ConfigEntry(
            _RETENTION, str(retention_ms), incremental_operation=AlterConfigOpType.SET
        )
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
        self._done(self._admin.incremental_alter_configs([resource]))

    def produce(self, topic: str, count: int) -> None:
        producer = Producer(self._settings)
        for number in range(count):
            producer.produce(topic, f"{topic}-{number}", partition=0)
        assert producer.flush(_TIMEOUT_S) == 0

    def transact(self, topic: str, count: int, *, commit: bool) -> None:
        producer = Producer({**self._settings, "transactional.id": "transactor"})
        producer.init_transactions(_TIMEOUT_S)
        producer.begin_transaction()
        for number in range(count):
            producer.produce(topic, f"transacted-{number}", partition=0)
        if commit:
            producer.commit_transaction(_TIMEOUT_S)
        else:
            producer.abort_transaction(_TIMEOUT_S)

    def commit(self, group: str, topic: str, offset: int) -> None:
        consumer = Consumer({**self._settings, "group.id": group})
        try:
            consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
        finally:
            consumer.close()

    def delete_records(self, topic: str, offset: int) -> None:
        self._done(self._admin.delete_records([TopicPartition(topic, 0, offset)]))

    def delete_group(self, group: str) -> None:
        self._done(self._admin.delete_consumer_groups([group]))

    @staticmethod
    def _done(futures: dict[object, object]) -> None:
        for future in futures.values():
            try:
                future.result(_TIMEOUT_S)  # type: ignore[attr-defined]
            except KafkaException as refused:
                # An operation that makes no sense now is still one that clients do.
                assert refused.args[0].code() < 100, refused
