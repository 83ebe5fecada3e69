"""Brokers that go away and come back under a consumer."""

from pathlib import Path
from unittest.mock import Mock

import pytest
from confluent_kafka import Producer

from kafkapy.clients.consumer import KafkaConsumer, TopicPartition
from kafkapy.common.errors import SaslAuthenticationError
from tests.clients.helpers import poll_until, read, values
from tests.compat.brokers import Broker, start_broker


def produce(broker: Broker, *written: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for value in written:
        producer.produce("topic", value, partition=0)
    assert producer.flush(20) == 0


def consumer_of(broker: Broker, **settings: object) -> KafkaConsumer:
    return KafkaConsumer(
        bootstrap_servers=broker.bootstrap,
        auto_offset_reset="earliest",
        heartbeat_interval_ms=200,
        reconnect_backoff_max_ms=200,
        retry_backoff_max_ms=200,
        **settings,
    )


def test_consumers_go_on_where_they_were_when_a_broker_comes_back(tmp_path: Path) -> None:
    broker = start_broker(tmp_path, overrides={"offsets.topic.num.partitions": "1"})
    port = broker.address[1]
    member = consumer_of(broker, group_id="group", enable_auto_commit=False)
    alone = consumer_of(broker)
    partition = TopicPartition("topic", 0)
    try:
        produce(broker, "a", "b")
        member.subscribe(["topic"])
        alone.assign([partition])
        assert values(read(member, 2)) == values(read(alone, 2)) == [b"a", b"b"]
        member.commit_sync()

        broker.kill()
        assert member.poll(100) == alone.poll(100) == {}
        broker = start_broker(tmp_path, port=port, overrides={"offsets.topic.num.partitions": "1"})
        produce(broker, "c")

        assert values(read(alone, 1)) == [b"c"]
        # A member that the restarted coordinator has forgotten may be given "c" twice, never less.
        assert b"c" in values(poll_until(lambda: _is_at(member, partition, 3), member))
        member.commit_sync()
        assert member.committed(partition) == 3
    finally:
        member.close(5_000)
        alone.close(5_000)
        broker.stop()


def _is_at(consumer: KafkaConsumer, partition: TopicPartition, offset: int) -> bool:
    return partition in consumer.assignment() and consumer.position(partition) == offset


def test_closing_without_a_broker_takes_no_longer_than_it_may(tmp_path: Path) -> None:
    broker = start_broker(tmp_path)
    member = consumer_of(broker, group_id="group")
    try:
        produce(broker, "a")
        member.subscribe(["topic"])
        read(member, 1)
    finally:
        broker.stop()

    member.close(300)


def test_refusal_while_records_are_handed_out_loses_none_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = start_broker(tmp_path)
    consumer = consumer_of(broker, max_poll_records=1)
    partition = TopicPartition("topic", 0)
    try:
        produce(broker, "a", "b", "c")
        consumer.assign([partition])
        consumed = values(read(consumer, 1))
        # The connection is lost, and the broker refuses another: the password has been changed.
        client = consumer._parts.client
        for node in consumer._parts.metadata.fetch().nodes:
            client.disconnect_async(node)
        client.poll_no_wakeup()
        refusal = SaslAuthenticationError("refused")
        monkeypatch.setattr(client, "is_unavailable", lambda node: True)
        monkeypatch.setattr(client, "maybe_raise_auth_failure", Mock(side_effect=refusal))

        with pytest.raises(SaslAuthenticationError, match="refused"):
            while True:
                consumed += values(consumer.poll(100).get(partition, []))

        assert consumer.position(partition) == len(consumed)
    finally:
        consumer.close(1_000)
        broker.stop()
