"""What is asked of every client: an adapter per client, the same tests for all."""

from collections.abc import Callable, Sequence
from typing import Protocol

import pytest

from tests.compat.brokers import Broker
from tests.compat.cases import (
    BASE_TIMESTAMP_MS,
    BULK_PARTITIONS,
    BULK_RECORDS,
    CODECS,
    Can,
    Message,
    assert_received,
    megabyte,
    numbered,
    samples,
)
from tests.compat.wire import stored_batches

EARLIEST = -2
LATEST = -1
MakeTopic = Callable[..., str]


class Client(Protocol):
    """A client library or program behind the few verbs the tests use."""

    can: frozenset[Can]

    def produce(
        self,
        topic: str,
        messages: Sequence[Message],
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> None:
        """Sends and waits until the client reports success; raises if it does not."""

    def consume(self, topic: str, partition: int, count: int, *, offset: int = 0) -> list[Message]:
        """Reads `count` messages of one partition, without a group."""


class Admin(Protocol):
    """The administrative half of a client."""

    def create_topic(self, topic: str, partitions: int, config: dict[str, str]) -> None: ...
    def delete_topic(self, topic: str) -> None: ...
    def partition_count(self, topic: str) -> int | None:
        """None if there is no such topic."""

    def add_partitions(self, topic: str, total: int) -> None: ...
    def topic_config(self, topic: str) -> dict[str, str]: ...
    def set_topic_config(self, topic: str, key: str, value: str) -> None: ...
    def delete_records(self, topic: str, partition: int, before_offset: int) -> None: ...
    def offset_for(self, topic: str, partition: int, timestamp_ms: int) -> int:
        """ListOffsets with a timestamp, EARLIEST or LATEST."""

    def brokers(self) -> list[str]:
        """host:port of the live ones."""


class ClientContract:
    """Produce and consume; the subclass's module gives the `client` fixture."""

    @pytest.mark.parametrize("codec", CODECS)
    def test_records_round_trip_under_every_codec(
        self, broker: Broker, client: Client, make_topic: MakeTopic, codec: str
    ) -> None:
        topic = make_topic()
        sent = samples(client.can)

        client.produce(topic, sent, codec=codec)

        assert_received(client.consume(topic, 0, len(sent)), sent)
        # The fillers come last; a small batch before them may not be worth compressing.
        assert stored_batches(broker.address, topic)[-1].codec_id == CODECS.index(codec)

    @pytest.mark.parametrize("acks", ["0", "1", "all"])
    def test_every_acks_setting_stores_the_records(
        self, client: Client, make_topic: MakeTopic, acks: str
    ) -> None:
        topic = make_topic()
        sent = numbered(50)

        client.produce(topic, sent, acks=acks)

        assert_received(client.consume(topic, 0, len(sent)), sent)

    @pytest.mark.parametrize("codec", CODECS)
    def test_megabyte_record_round_trips_under_every_codec(
        self, broker: Broker, client: Client, make_topic: MakeTopic, codec: str
    ) -> None:
        topic = make_topic()
        sent = [megabyte(), Message(b"after", b"small")]

        client.produce(topic, sent, codec=codec)

        assert_received(client.consume(topic, 0, len(sent)), sent)
        assert stored_batches(broker.address, topic)[0].codec_id == CODECS.index(codec)

    def test_ten_thousand_records_over_six_partitions_arrive_in_order(
        self, client: Client, make_topic: MakeTopic
    ) -> None:
        topic = make_topic(partitions=BULK_PARTITIONS)
        sent = numbered(BULK_RECORDS, partitions=BULK_PARTITIONS)

        client.produce(topic, sent)

        for partition in range(BULK_PARTITIONS):
            expected = sent[partition::BULK_PARTITIONS]
            assert_received(client.consume(topic, partition, len(expected)), expected)

    def test_reading_starts_at_the_asked_offset(
        self, client: Client, make_topic: MakeTopic
    ) -> None:
        topic = make_topic()
        sent = numbered(100)
        client.produce(topic, sent)

        got = client.consume(topic, 0, 58, offset=42)

        assert_received(got, sent[42:])

    def test_idempotent_producer_stores_its_id_and_sequence(
        self, broker: Broker, client: Client, make_topic: MakeTopic
    ) -> None:
        if Can.IDEMPOTENCE not in client.can:
            pytest.skip("this client has no idempotent producer")
        topic = make_topic()
        sent = numbered(200)

        client.produce(topic, sent, idempotent=True)

        assert_received(client.consume(topic, 0, len(sent)), sent)
        batches = stored_batches(broker.address, topic)
        assert len({b.producer_id for b in batches} - {-1}) == 1
        assert [b.base_sequence for b in batches] == [b.base_offset for b in batches]


class AdminContract:
    """Administration; the module gives `admin` too."""

    def test_topic_is_created_grown_and_deleted(self, admin: Admin, topic_name: str) -> None:
        assert admin.partition_count(topic_name) is None

        admin.create_topic(topic_name, 3, {})
        assert admin.partition_count(topic_name) == 3

        admin.add_partitions(topic_name, 5)
        assert admin.partition_count(topic_name) == 5

        admin.delete_topic(topic_name)
        assert admin.partition_count(topic_name) is None

    def test_creating_a_topic_twice_is_refused(self, admin: Admin, topic_name: str) -> None:
        admin.create_topic(topic_name, 1, {})

        with pytest.raises(Exception, match=r"(?i)already.?exists"):
            admin.create_topic(topic_name, 1, {})

    def test_topic_config_is_created_read_and_altered(self, admin: Admin, topic_name: str) -> None:
        admin.create_topic(topic_name, 1, {"retention.ms": "86400000"})
        before = admin.topic_config(topic_name)

        admin.set_topic_config(topic_name, "max.message.bytes", "2000000")

        assert before["retention.ms"] == "86400000"
        assert before["max.message.bytes"] == "1048588"
        assert before["cleanup.policy"] == "delete"
        assert admin.topic_config(topic_name)["max.message.bytes"] == "2000000"

    def test_delete_records_moves_the_earliest_offset(
        self, admin: Admin, client: Client, topic_name: str
    ) -> None:
        admin.create_topic(topic_name, 1, {})
        sent = numbered(20)
        client.produce(topic_name, sent)

        admin.delete_records(topic_name, 0, 7)

        assert admin.offset_for(topic_name, 0, EARLIEST) == 7
        assert admin.offset_for(topic_name, 0, LATEST) == 20
        assert_received(client.consume(topic_name, 0, 13, offset=7), sent[7:])

    def test_offsets_are_found_by_timestamp(
        self, admin: Admin, client: Client, topic_name: str
    ) -> None:
        admin.create_topic(topic_name, 1, {})
        sent = [Message(b"at-%d" % i, timestamp_ms=BASE_TIMESTAMP_MS + 1000 * i) for i in range(10)]
        client.produce(topic_name, sent)

        assert admin.offset_for(topic_name, 0, BASE_TIMESTAMP_MS + 4000) == 4
        assert admin.offset_for(topic_name, 0, BASE_TIMESTAMP_MS + 4001) == 5
        assert admin.offset_for(topic_name, 0, BASE_TIMESTAMP_MS - 1) == 0

    def test_cluster_lists_the_broker(self, admin: Admin, broker: Broker) -> None:
        assert admin.brokers() == [broker.bootstrap]
