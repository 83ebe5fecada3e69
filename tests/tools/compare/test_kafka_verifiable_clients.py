"""kafka-verifiable-producer and -consumer beside Apache Kafka's: the same events."""

import json
import uuid
from typing import Any

import pytest

from tests.compat.apache_tools import ApacheTools
from tests.compat.brokers import Broker
from tests.compat.contract import MakeTopic
from tests.compat.outcome import run_ours
from tests.compat.tools import MAIN_CLASSES, java_command, run
from tests.tools.compare.conftest import Compare


def _events(stdout: str) -> list[dict[str, Any]]:
    """Each line, without what differs from run to run."""
    changing = ("timestamp", "topic", "avg_throughput")
    return [
        {
            name: [{**p, "topic": ""} for p in value] if isinstance(value, list) else value
            for name, value in json.loads(line).items()
            if name not in changing
        }
        for line in stdout.splitlines()
    ]


def _names(stdout: str) -> list[tuple[list[str], set[str]]]:
    """The two names that each line begins with, and the others: their order is an accident of the
    JVM's, another one when its classes come out of an archive.
    """
    lines = [list(json.loads(line)) for line in stdout.splitlines()]
    return [(names[:2], set(names[2:])) for names in lines]


def test_a_producer_tells_of_each_record(broker: Broker, make_topic: MakeTopic) -> None:
    options = ("--bootstrap-server", broker.bootstrap, "--max-messages", "3", "--throughput", "100")
    more = (
        "--value-prefix",
        "7",
        "--repeating-keys",
        "2",
        "--message-create-time",
        "1700000000000",
    )

    # In a JVM of its own: it has more to say when that ends.
    main_class = MAIN_CLASSES["kafka-verifiable-producer"]
    theirs = run(java_command(main_class, *options, *more, "--topic", make_topic()))
    ours = run_ours("kafka-verifiable-producer", *options, *more, "--topic", make_topic())

    assert ours.code == 0
    assert _events(ours.stdout) == _events(theirs)
    assert _names(ours.stdout) == _names(theirs)


@pytest.mark.parametrize("options", [("--verbose",), ("--enable-autocommit",)], ids=str)
def test_a_consumer_tells_what_it_does(
    broker: Broker, make_topic: MakeTopic, apache: ApacheTools, options: tuple[str, ...]
) -> None:
    topic = make_topic()
    server = ("--bootstrap-server", broker.bootstrap, "--topic", topic)
    run_ours("kafka-verifiable-producer", *server, "--max-messages", "1")
    common = (*server, "--max-messages", "1", *options)
    name = "kafka-verifiable-consumer"

    theirs = apache.run(name, *common, "--group-id", f"g-{uuid.uuid4().hex}")
    ours = run_ours(name, *common, "--group-id", f"g-{uuid.uuid4().hex}")

    assert ours.code == theirs.code == 0
    assert _events(ours.stdout) == _events(theirs.stdout)
    assert _names(ours.stdout) == _names(theirs.stdout)


def test_a_consumer_takes_no_more_than_it_was_told_to(
    broker: Broker, make_topic: MakeTopic
) -> None:
    server = ("--bootstrap-server", broker.bootstrap, "--topic", make_topic())
    group = ("--group-id", f"g-{uuid.uuid4().hex}", "--max-messages", "3")
    run_ours("kafka-verifiable-producer", *server, "--max-messages", "6")

    first, second = (run_ours("kafka-verifiable-consumer", *server, *group).stdout for _ in "ab")

    committed = [dict(e)["offsets"][0]["offset"] for e in _events(first) if "offsets" in dict(e)]
    assert committed[-1] == 3
    assert '"minOffset":3' in second


@pytest.mark.parametrize("command", ["kafka-verifiable-producer", "kafka-verifiable-consumer"])
def test_help_is_shown_without_arguments(compare: Compare, command: str) -> None:
    compare(command, normalise=lambda stdout: stdout.startswith("usage:"))


@pytest.mark.parametrize("command", ["kafka-verifiable-producer", "kafka-verifiable-consumer"])
@pytest.mark.parametrize("options", [("--topic", "t"), ("--no-such-option",)], ids=str)
def test_bad_use_ends_as_in_kafka(compare: Compare, command: str, options: tuple[str, ...]) -> None:
    ended = compare(command, *options)

    assert ended.code == 1
    assert len(ended.stderr.splitlines()) == 1
