"""Apache Kafka's own command-line tools against the broker."""

import json
import re
from pathlib import Path

from tests.compat.apache_tools import KafkaTool
from tests.compat.brokers import Broker
from tests.compat.cases import numbered
from tests.compat.confluent_client import ConfluentClient
from tests.compat.contract import MakeTopic

_TOPICS = "kafka-topics"


def test_console_producer_and_consumer_round_trip_lines(
    broker: Broker, make_topic: MakeTopic, kafka_tool: KafkaTool
) -> None:
    topic = make_topic()
    lines = [f"trace:t{i}\tkey-{i}\tline {i}" for i in range(100)]
    server = ("--bootstrap-server", broker.bootstrap, "--topic", topic)

    kafka_tool(
        "kafka-console-producer",
        *server,
        *("--property", "parse.key=true", "--property", "parse.headers=true"),
        *("--compression-codec", "lz4"),
        stdin="\n".join(lines) + "\n",
    )
    printed = kafka_tool(
        "kafka-console-consumer",
        *server,
        *("--partition", "0", "--offset", "earliest", "--max-messages", "100"),
        *("--property", "print.key=true", "--property", "print.headers=true"),
        *("--timeout-ms", "20000"),
    )

    assert printed.splitlines() == lines


def test_topics_tool_creates_describes_alters_lists_and_deletes(
    broker: Broker, topic_name: str, kafka_tool: KafkaTool
) -> None:
    server = ("--bootstrap-server", broker.bootstrap)
    named = (*server, "--topic", topic_name)

    kafka_tool(
        _TOPICS, *named, "--create", "--partitions", "2", "--config", "retention.ms=86400000"
    )
    kafka_tool(_TOPICS, *named, "--alter", "--partitions", "3")
    described = kafka_tool(_TOPICS, *named, "--describe")
    kafka_tool(_TOPICS, *named, "--delete")
    listed = kafka_tool(_TOPICS, *server, "--list")

    assert "PartitionCount: 3" in described
    assert "retention.ms=86400000" in described
    assert (
        len(re.findall(r"Partition: \d+\s+Leader: \d+\s+Replicas: \d+\s+Isr: \d+", described)) == 3
    )
    assert topic_name not in listed.splitlines()


def test_configs_tool_alters_and_describes_a_topic(
    broker: Broker, make_topic: MakeTopic, kafka_tool: KafkaTool
) -> None:
    topic = make_topic()
    entity = ("--bootstrap-server", broker.bootstrap, "--entity-type", "topics")
    named = (*entity, "--entity-name", topic)

    kafka_tool("kafka-configs", *named, "--alter", "--add-config", "flush.ms=9000")
    described = kafka_tool("kafka-configs", *named, "--describe")

    assert "flush.ms=9000" in described


def test_get_offsets_follows_delete_records(
    broker: Broker, make_topic: MakeTopic, tmp_path: Path, kafka_tool: KafkaTool
) -> None:
    topic = make_topic()
    ConfluentClient(broker.bootstrap).produce(topic, numbered(10))
    server = ("--bootstrap-server", broker.bootstrap)
    plan = {"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": 4}]}
    plan_file = tmp_path / "plan.json"
    plan_file.write_text(json.dumps(plan))

    deleted = kafka_tool(
        "kafka-delete-records",
        *server,
        *("--offset-json-file", str(plan_file)),
    )
    earliest = kafka_tool("kafka-get-offsets", *server, "--topic", topic, "--time", "earliest")

    assert re.search(rf"{topic}-0\s+low_watermark: 4", deleted)
    assert earliest.split() == [f"{topic}:0:4"]


def test_log_dirs_tool_names_the_partition(
    broker: Broker, make_topic: MakeTopic, kafka_tool: KafkaTool
) -> None:
    topic = make_topic()

    printed = kafka_tool(
        "kafka-log-dirs",
        *("--bootstrap-server", broker.bootstrap, "--describe", "--topic-list", topic),
    )

    described = json.loads(printed.splitlines()[-1])
    (log_dir,) = described["brokers"][0]["logDirs"]
    assert log_dir["error"] is None
    assert [p["partition"] for p in log_dir["partitions"]] == [f"{topic}-0"]


def test_api_versions_tool_sees_usable_versions(broker: Broker, kafka_tool: KafkaTool) -> None:
    printed = kafka_tool("kafka-broker-api-versions", "--bootstrap-server", broker.bootstrap)

    assert printed.startswith(broker.bootstrap)
    assert "Produce(0): 0 to 11 [usable: 11]" in printed
    assert "Fetch(1): 0 to 17 [usable: 17]" in printed
    assert "ApiVersions(18): 0 to 4 [usable: 4]" in printed


def test_producer_perf_test_writes_what_it_was_asked_to(
    broker: Broker, make_topic: MakeTopic, kafka_tool: KafkaTool
) -> None:
    topic = make_topic()

    printed = kafka_tool(
        "kafka-producer-perf-test",
        *("--topic", topic, "--num-records", "20000", "--record-size", "100"),
        *("--throughput", "-1", "--producer-props", f"bootstrap.servers={broker.bootstrap}"),
    )

    assert printed.splitlines()[-1].startswith("20000 records sent")
    got = ConfluentClient(broker.bootstrap).consume(topic, 0, 20_000)
    assert {len(m.value or b"") for m in got} == {100}
