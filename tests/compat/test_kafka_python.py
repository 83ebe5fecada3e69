"""kafka-python against the broker: KafkaProducer, KafkaConsumer, KafkaAdminClient."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic
from kafka.codec import has_lz4, has_snappy, has_zstd

from tests.compat.brokers import Broker
from tests.compat.cases import (
    BASE_TIMESTAMP_MS,
    EVERYTHING,
    Can,
    Message,
    assert_received,
    numbered,
)
from tests.compat.contract import EARLIEST, LATEST, AdminContract, ClientContract, MakeTopic

_WAIT_S = 20
_CODEC_IS_INSTALLED = {"snappy": has_snappy, "lz4": has_lz4, "zstd": has_zstd}


class KafkaPythonClient:
    can = EVERYTHING - {Can.NULL_HEADER}

    def __init__(self, bootstrap: str, **settings: object) -> None:
        self._settings = {"bootstrap_servers": bootstrap, **settings}

    def produce(
        self,
        topic: str,
        messages: Sequence[Message],
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> None:
        if not _CODEC_IS_INSTALLED.get(codec, lambda: True)():
            pytest.skip(f"kafka-python: its package for {codec} is not installed")
        producer = KafkaProducer(
            **self._settings,
            compression_type=None if codec == "none" else codec,
            acks=acks if acks == "all" else int(acks),
            enable_idempotence=idempotent,
            max_request_size=2_000_000,
            linger_ms=5,
        )
        try:
            futures = [
                producer.send(
                    topic,
                    key=message.key,
                    value=message.value,
                    headers=list(message.headers),
                    partition=message.partition,
                    timestamp_ms=message.timestamp_ms,
                )
                for message in messages
            ]
            for future in futures:
                future.get(_WAIT_S)
        finally:
            producer.close()

    def consume(self, topic: str, partition: int, count: int, *, offset: int = 0) -> list[Message]:
        consumer = KafkaConsumer(
            **self._settings, group_id=None, consumer_timeout_ms=_WAIT_S * 1000
        )
        try:
            target = TopicPartition(topic, partition)
            consumer.assign([target])
            consumer.seek(target, offset)
            return [
                Message(r.value, r.key, tuple(r.headers), r.timestamp, r.partition)
                for r in itertools.islice(consumer, count)
            ]
        finally:
            consumer.close()


class KafkaPythonAdmin:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._admin = KafkaAdminClient(bootstrap_servers=bootstrap)

    def close(self) -> None:
        self._admin.close()

    def create_topic(self, topic: str, partitions: int, config: dict[str, str]) -> None:
        new = NewTopic(topic, num_partitions=partitions, replication_factor=1, topic_configs=config)
        self._admin.create_topics([new])

    def delete_topic(self, topic: str) -> None:
        self._admin.delete_topics([topic])

    def partition_count(self, topic: str) -> int | None:
        if topic not in self._admin.list_topics():
            return None
        return len(self._admin.describe_topics([topic])[0]["partitions"])

    def add_partitions(self, topic: str, total: int) -> None:
        self._admin.create_partitions({topic: NewPartitions(total)})

    def topic_config(self, topic: str) -> dict[str, str]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        described = self._admin.describe_configs([resource], config_filter="all")
        return {key: entry["value"] for key, entry in described["topic"][topic].items()}

    def set_topic_config(self, topic: str, key: str, value: str) -> None:
        self._admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {key: value})])

    def delete_records(self, topic: str, partition: int, before_offset: int) -> None:
        self._admin.delete_records({TopicPartition(topic, partition): before_offset})

    def offset_for(self, topic: str, partition: int, timestamp_ms: int) -> int:
        target = TopicPartition(topic, partition)
        consumer = KafkaConsumer(bootstrap_servers=self._bootstrap, group_id=None)
        try:
            if timestamp_ms == EARLIEST:
                return consumer.beginning_offsets([target])[target]
            if timestamp_ms == LATEST:
                return consumer.end_offsets([target])[target]
            return consumer.offsets_for_times({target: timestamp_ms})[target].offset
        finally:
            consumer.close()

    def brokers(self) -> list[str]:
        described = self._admin.describe_cluster()["brokers"]
        return [f"{broker['host']}:{broker['port']}" for broker in described]


@pytest.fixture(scope="module")
def client(broker: Broker) -> KafkaPythonClient:
    return KafkaPythonClient(broker.bootstrap)


@pytest.fixture(scope="module")
def admin(broker: Broker) -> Iterator[KafkaPythonAdmin]:
    admin = KafkaPythonAdmin(broker.bootstrap)
    yield admin
    admin.close()


class TestKafkaPython(ClientContract, AdminContract):
    def test_broker_is_taken_for_the_release_it_ports(self, broker: Broker) -> None:
        consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id=None)
        try:
            assert consumer.config["api_version"] == (3, 9)
        finally:
            consumer.close()

    @pytest.mark.parametrize("api_version", [(0, 9), (0, 10, 0), (0, 10, 2), (1, 0), (2, 4)])
    @pytest.mark.parametrize("codec", ["none", "gzip"])
    def test_client_held_to_an_old_release_writes_and_reads(
        self,
        broker: Broker,
        make_topic: MakeTopic,
        api_version: tuple[int, ...],
        codec: str,
    ) -> None:
        topic = make_topic()
        old = KafkaPythonClient(broker.bootstrap, api_version=api_version)
        sent = numbered(50)

        old.produce(topic, sent, codec=codec)

        got = old.consume(topic, 0, len(sent))
        if api_version < (0, 10):
            # Magic 0 has no timestamp.
            assert {m.timestamp_ms for m in got} == {None}
            got = [replace(m, timestamp_ms=BASE_TIMESTAMP_MS + 1) for m in got]
        assert_received(got, sent)
