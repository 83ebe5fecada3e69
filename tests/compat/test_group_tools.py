"""Kafka's own tools for groups: kafka-consumer-groups, and kafka-dump-log on __consumer_offsets."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.compat.apache_tools import KafkaTool
from tests.compat.brokers import Broker, start_broker

CONSUMER_GROUPS = "kafka-consumer-groups"
DUMP_LOG = "kafka-dump-log"
TOPIC = "events"
GROUP = "readers"


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Broker]:
    broker = start_broker(tmp_path, overrides={"offsets.topic.num.partitions": "1"})
    try:
        yield broker
    finally:
        assert broker.stop() == broker.clean_exit_code, broker.tail()


def consume_and_commit(bootstrap: str, *, leave: bool = True) -> Consumer:
    """A group that has read and committed ten records of two partitions."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, 2, 1)])[TOPIC].result(10)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(10):
        producer.produce(TOPIC, b"%d" % number, partition=number % 2)
    assert producer.flush(20) == 0
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": GROUP,
            "client.id": "reader-1",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([TOPIC])
    read = 0
    while read < 10:
        message = consumer.poll(10)
        assert message is not None and message.error() is None
        read += 1
    consumer.commit(
        offsets=[TopicPartition(TOPIC, p, 5, metadata="all read") for p in range(2)],
        asynchronous=False,
    )
    if leave:
        consumer.close()
    return consumer


def test_consumer_groups_lists_describes_resets_and_deletes(
    own_broker: Broker, kafka_tool: KafkaTool
) -> None:
    consumer = consume_and_commit(own_broker.bootstrap, leave=False)

    def tool(*arguments: str) -> str:
        server = ("--bootstrap-server", own_broker.bootstrap)
        return kafka_tool(CONSUMER_GROUPS, *server, *arguments)

    described = tool("--describe", "--group", GROUP)
    rows = [line.split() for line in described.splitlines() if line.startswith(GROUP)]
    assert sorted(row[1:6] for row in rows) == [
        [TOPIC, "0", "5", "5", "0"],
        [TOPIC, "1", "5", "5", "0"],
    ]
    assert all(
        row[6].startswith("reader-1-") and row[7:] == ["/127.0.0.1", "reader-1"] for row in rows
    )
    consumer.close()

    assert re.search(rf"{GROUP}\s+Empty", tool("--list", "--state"))
    assert GROUP not in tool("--list", "--state", "Stable")
    reset = ("--reset-offsets", "--to-earliest", "--topic", TOPIC, "--execute")
    assert re.search(rf"{TOPIC}\s+0\s+0", tool("--group", GROUP, *reset))
    tool("--delete-offsets", "--group", GROUP, "--topic", f"{TOPIC}:0")
    assert not re.search(rf"{TOPIC}\s+0\s", tool("--describe", "--group", GROUP))
    assert "was successful" in tool("--delete", "--group", GROUP)
    assert GROUP not in tool("--list")


def test_dump_log_decodes_groups_and_offsets(tmp_path: Path, kafka_tool: KafkaTool) -> None:
    broker = start_broker(tmp_path, overrides={"offsets.topic.num.partitions": "1"})
    consume_and_commit(broker.bootstrap)
    assert broker.stop() == broker.clean_exit_code, broker.tail()
    assert broker.log_dir is not None
    segment = broker.log_dir / "__consumer_offsets-0" / "00000000000000000000.log"

    dumped = kafka_tool(DUMP_LOG, "--offsets-decoder", "--files", str(segment))

    records = [line for line in dumped.splitlines() if "payload:" in line]
    offsets = [r for r in records if '"type":"1"' in r]
    assert {int(p) for r in offsets for p in re.findall(r'"partition":(\d)', r)} == {0, 1}
    assert all('"group":"readers"' in r and '"offset":5' in r for r in offsets)
    assert all('"metadata":"all read' in r for r in offsets)
    groups = [r for r in records if '"type":"2"' in r]
    assert any('"clientId":"reader-1"' in r and '"generation":1' in r for r in groups)
    assert '"members":[]' in groups[-1]
    assert "unknown" not in dumped.lower()
