"""kafka-broker-api-versions, kafka-cluster, -log-dirs and -delete-records beside Apache Kafka's."""

import json
from pathlib import Path

import pytest

from kafkapy.clients.producer import KafkaProducer
from tests.compat.apache_tools import ApacheTools
from tests.compat.brokers import Broker
from tests.compat.contract import MakeTopic
from tests.compat.outcome import run_ours
from tests.tools.compare.conftest import Compare


def test_versions_of_apis_are_shown(compare: Compare, broker: Broker) -> None:
    shown = compare("kafka-broker-api-versions", "--bootstrap-server", broker.bootstrap)

    assert shown.lines[0] == f"{broker.bootstrap} (id: 0 rack: null) -> ("


def test_the_id_of_the_cluster_is_shown(compare: Compare, broker: Broker) -> None:
    shown = compare("kafka-cluster", "cluster-id", "--bootstrap-server", broker.bootstrap)

    assert shown.stdout.startswith("Cluster ID: ")


@pytest.mark.parametrize("options", [(), ("--broker-list", "0"), ("--topic-list", "A,none")])
def test_log_directories_are_shown(
    compare: Compare, broker: Broker, make_topic: MakeTopic, options: tuple[str, ...]
) -> None:
    topic = make_topic(partitions=2)
    options = tuple(option.replace("A", topic) for option in options)

    shown = compare(
        "kafka-log-dirs",
        *("--bootstrap-server", broker.bootstrap, "--describe", *options),
        normalise=_in_any_order,
    )

    assert f'"partition":"{topic}-1","size":0' in shown.stdout


def _in_any_order(stdout: str) -> object:
    *lines, described = stdout.splitlines()
    brokers = json.loads(described)
    for of_broker in brokers["brokers"]:
        for log_dir in of_broker["logDirs"]:
            log_dir["partitions"].sort(key=lambda partition: partition["partition"])
    return lines, brokers


def test_records_are_deleted(
    compare: Compare, broker: Broker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic(partitions=2)
    with KafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        for i in range(10):
            producer.send(topic, b"v", partition=i % 2)
    offsets = tmp_path / "offsets.json"
    entries = [
        {"topic": topic, "partition": 0, "offset": 2},
        {"topic": topic, "partition": 1, "offset": -1},
    ]
    offsets.write_text(json.dumps({"partitions": entries, "version": 1}))

    shown = compare(
        "kafka-delete-records",
        *("--bootstrap-server", broker.bootstrap, "--offset-json-file", str(offsets)),
        normalise=lambda text: sorted(text.splitlines()),
    )

    assert shown.lines[2:] == [
        f"partition: {topic}-0\tlow_watermark: 2",
        f"partition: {topic}-1\tlow_watermark: 5",
    ]


def test_records_that_cannot_be_deleted_are_told(
    apache: ApacheTools, broker: Broker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic()
    offsets = tmp_path / "offsets.json"
    entry = {"topic": topic, "partition": 0, "offset": 77}
    offsets.write_text(json.dumps({"partitions": [entry]}))
    words = ("--bootstrap-server", broker.bootstrap, "--offset-json-file", str(offsets))

    theirs = apache.run("kafka-delete-records", *words)
    ours = run_ours("kafka-delete-records", *words)

    assert ours.code == 1
    for shown in (ours, theirs):
        assert shown.lines[2].startswith(f"partition: {topic}-0\terror: ")


@pytest.mark.parametrize(
    "content",
    [
        "nonsense",
        "[]",
        "{}",
        '{"partitions": [{"topic": "t", "partition": 0}]}',
        '{"partitions": [{"partition": 0, "offset": 1}]}',
        '{"partitions": [{"topic": "t", "partition": 0, "offset": "x"}]}',
        '{"partitions": [{"topic": "t", "partition": 0, "offset": 1},'
        ' {"topic": "t", "partition": 0, "offset": 2}]}',
        None,
    ],
)
def test_a_file_that_is_not_right_is_one_line_and_ends_as_in_kafka(
    apache: ApacheTools, broker: Broker, tmp_path: Path, content: str | None
) -> None:
    offsets = tmp_path / "offsets.json"
    if content is not None:
        offsets.write_text(content)
    words = ("--bootstrap-server", broker.bootstrap, "--offset-json-file", str(offsets))

    theirs = apache.run("kafka-delete-records", *words)
    ours = run_ours("kafka-delete-records", *words)

    assert (ours.code, ours.stdout) == (theirs.code, theirs.stdout) == (1, "")
    assert len(ours.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("kafka-broker-api-versions", ""),
        ("kafka-cluster", ""),
        ("kafka-cluster", "nonsense"),
        ("kafka-cluster", "cluster-id"),
        ("kafka-delete-records", "--bootstrap-server BROKER"),
        ("kafka-log-dirs", "--bootstrap-server BROKER"),
        ("kafka-log-dirs", "--bootstrap-server BROKER --describe --broker-list 0,7"),
        ("kafka-log-dirs", "--bootstrap-server BROKER --describe --broker-list x"),
    ],
)
def test_bad_use_is_one_line_and_ends_as_in_kafka(
    compare: Compare, broker: Broker, command: str, line: str
) -> None:
    ended = compare(command, *line.replace("BROKER", broker.bootstrap).split())

    assert (ended.code, ended.stdout) == (1, "")
    assert len(ended.stderr.splitlines()) == 1
