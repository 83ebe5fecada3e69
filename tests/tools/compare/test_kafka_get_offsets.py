"""kafka-get-offsets beside Apache Kafka's."""

import uuid

import pytest

from kafkapy.clients.admin import AdminClient, NewTopic
from kafkapy.clients.producer import KafkaProducer
from tests.compat.brokers import Broker
from tests.tools.compare.conftest import Compare

_TIMESTAMP = 1_700_000_000_000


@pytest.fixture(scope="module")
def prefix(broker: Broker) -> str:
    """Of the topics -x, with records in two of three partitions, and -y, with one partition."""
    prefix = f"offsets-{uuid.uuid4().hex[:8]}"
    with AdminClient(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic(f"{prefix}-x", 3), NewTopic(f"{prefix}-y", 1)])
    with KafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        for i in range(20):
            timestamp_ms = _TIMESTAMP + 1000 * i
            producer.send(f"{prefix}-x", b"v", partition=i % 2, timestamp_ms=timestamp_ms)
        producer.send(f"{prefix}-y", b"v")
    return prefix


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("--topic P-x", ["P-x:0:10", "P-x:1:10", "P-x:2:0"]),
        ("--topic P-x --partitions 0,2", ["P-x:0:10", "P-x:2:0"]),
        ("--topic P.* --time earliest", ["P-x:0:0", "P-x:1:0", "P-x:2:0", "P-y:0:0"]),
        ("--topic P-x --time -2", ["P-x:0:0", "P-x:1:0", "P-x:2:0"]),
        ("--topic P-x --time max-timestamp", ["P-x:0:9", "P-x:1:9"]),
        ("--topic P-x --time -3 --partitions 1", ["P-x:1:9"]),
        (f"--topic P-x --time {_TIMESTAMP + 4000}", ["P-x:0:2", "P-x:1:2"]),
        ("--topic P-x --time earliest-local", ["P-x:0:0", "P-x:1:0", "P-x:2:0"]),
        ("--topic P-x --time latest-tiered", []),
        ("--topic-partitions P-x:0,P-y", ["P-x:0:10", "P-y:0:1"]),
        ("--topic-partitions P-x:1-,P.*:-1", ["P-x:0:10", "P-x:1:10", "P-x:2:0", "P-y:0:1"]),
        ("--topic-partitions P-x:0-2", ["P-x:0:10", "P-x:1:10"]),
    ],
)
def test_offsets_are_shown(
    compare: Compare, broker: Broker, prefix: str, line: str, shown: list[str]
) -> None:
    words = line.replace("P", prefix).split()

    outcome = compare("kafka-get-offsets", "--bootstrap-server", broker.bootstrap, *words)

    assert outcome.lines == [text.replace("P", prefix) for text in shown]


@pytest.mark.parametrize("line", ["", "--topic-partitions :0", "--exclude-internal-topics"])
def test_offsets_of_all_topics_are_shown(
    compare: Compare, broker: Broker, prefix: str, line: str
) -> None:
    # The old name of the option does as well.
    shown = compare("kafka-get-offsets", "--broker-list", broker.bootstrap, *line.split())

    assert f"{prefix}-y:0:1" in shown.lines


@pytest.mark.parametrize(
    "line",
    [
        "--topic none",
        "--topic P-x --partitions 9",
        "--topic P-x --partitions x",
        "--topic P-x --time x",
        f"--topic P-x --time {2**63}",
        "--topic=",
        "--topic-partitions P-x:a",
        "--topic-partitions P-x --topic y",
        "--topic-partitions P-x --partitions 0",
    ],
)
def test_bad_use_is_one_line_and_ends_as_in_kafka(
    compare: Compare, broker: Broker, prefix: str, line: str
) -> None:
    words = line.replace("P", prefix).split()

    ended = compare("kafka-get-offsets", "--bootstrap-server", broker.bootstrap, *words)

    assert (ended.code, ended.stdout) == (1, "")
    assert len(ended.stderr.splitlines()) == 1


def test_a_broker_must_be_named(compare: Compare) -> None:
    assert compare("kafka-get-offsets", "--topic", "x").code == 1
