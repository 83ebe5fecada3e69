"""confluent-kafka (librdkafka) against the broker."""

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import OffsetSpec

from tests.compat.brokers import Broker
from tests.compat.cases import BASE_TIMESTAMP_MS, CODECS, Message, assert_received, numbered
from tests.compat.confluent_client import ConfluentAdmin, ConfluentClient, only_result
from tests.compat.contract import AdminContract, ClientContract, MakeTopic
from tests.compat.wire import stored_batches


@pytest.fixture(scope="module")
def client(broker: Broker) -> ConfluentClient:
    return ConfluentClient(broker.bootstrap)


@pytest.fixture(scope="module")
def admin(broker: Broker) -> ConfluentAdmin:
    return ConfluentAdmin(broker.bootstrap)


class TestConfluentKafka(ClientContract, AdminContract):
    def test_greatest_timestamp_is_found(
        self, client: ConfluentClient, admin: ConfluentAdmin, make_topic: MakeTopic
    ) -> None:
        topic = make_topic()
        stamps = [BASE_TIMESTAMP_MS + delta for delta in (5, 900, 20, 30)]
        client.produce(topic, [Message(b"x", timestamp_ms=stamp) for stamp in stamps])

        spec = {TopicPartition(topic, 0): OffsetSpec.max_timestamp()}
        found = only_result(admin.client.list_offsets(spec))

        assert (found.offset, found.timestamp) == (1, BASE_TIMESTAMP_MS + 900)

    def test_missing_topic_is_created_by_the_first_record(
        self, client: ConfluentClient, topic_name: str
    ) -> None:
        sent = numbered(3)

        client.produce(topic_name, sent)

        assert_received(client.consume(topic_name, 0, 3), sent)

    def test_many_batches_are_read_through_small_fetches(
        self, broker: Broker, make_topic: MakeTopic
    ) -> None:
        topic = make_topic()
        small_batches = ConfluentClient(broker.bootstrap, **{"batch.num.messages": "7"})
        sent = numbered(2000)
        small_batches.produce(topic, sent)

        small_fetches = ConfluentClient(
            broker.bootstrap, **{"fetch.message.max.bytes": "3000", "fetch.max.bytes": "2000000"}
        )

        assert_received(small_fetches.consume(topic, 0, len(sent)), sent)

    @pytest.mark.parametrize("release", ["0.9.0", "0.10.0", "0.11.0", "2.0.0"])
    @pytest.mark.parametrize("codec", CODECS[:-1])
    def test_client_told_of_an_old_release_writes_and_reads(
        self, broker: Broker, make_topic: MakeTopic, release: str, codec: str
    ) -> None:
        topic = make_topic()
        old = ConfluentClient(
            broker.bootstrap,
            **{"api.version.request": "false", "broker.version.fallback": release},
        )
        sent = [Message(b"old record " * 30, b"key-%d" % i) for i in range(50)]

        old.produce(topic, sent, codec=codec)

        got = ConfluentClient(broker.bootstrap).consume(topic, 0, len(sent))
        assert [(m.key, m.value) for m in got] == [(m.key, m.value) for m in sent]
        assert [(m.key, m.value) for m in old.consume(topic, 0, len(sent))] == [
            (m.key, m.value) for m in sent
        ]
        assert {b.codec_id for b in stored_batches(broker.address, topic)} == {CODECS.index(codec)}
