"""kafka-topics beside Apache Kafka's."""

import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from tests.compat.apache_tools import ApacheTools
from tests.compat.brokers import Broker
from tests.compat.contract import MakeTopic
from tests.compat.outcome import Outcome, run_ours
from tests.tools.compare.conftest import Compare

_ERROR = "Error while executing topic command : "


@pytest.fixture(scope="module")
def topics(broker: Broker) -> list[str]:
    """Three of them: with settings, with replicas by hand, plain."""
    prefix = f"topics-{uuid.uuid4().hex[:8]}"
    names = [f"{prefix}-a", f"{prefix}-b", f"{prefix}-c"]
    settings = ("--config", "retention.ms=86400000", "--config", "cleanup.policy = compact")
    for name, options in zip(
        names,
        (("--partitions", "3", *settings), ("--replica-assignment", "0,0"), ()),
        strict=True,
    ):
        assert _ours(broker, "--create", "--topic", name, *options).lines == [
            f"Created topic {name}."
        ]
    return names


def _ours(broker: Broker, *arguments: str) -> Outcome:
    return run_ours("kafka-topics", "--bootstrap-server", broker.bootstrap, *arguments)


def _in_any_order(stdout: str) -> list[tuple[str, list[str]]]:
    """Kafka shows topics, and the settings of each, in the order of a hash table."""
    parted = (line.partition("Configs: ") for line in stdout.splitlines())
    return sorted((line, sorted(settings.split(","))) for line, _, settings in parted)


@pytest.mark.parametrize("pattern", ["*-a", "*-a,*-c", "*-[bc]", "*.*", "none"])
def test_topics_are_listed(
    compare: Compare, broker: Broker, topics: list[str], pattern: str
) -> None:
    wanted = pattern.replace("*", topics[0][:-2])

    compare("kafka-topics", "--bootstrap-server", broker.bootstrap, "--list", "--topic", wanted)


@pytest.mark.parametrize("options", [(), ("--exclude-internal",)])
def test_all_topics_are_listed(
    compare: Compare, broker: Broker, topics: list[str], options: tuple[str, ...]
) -> None:
    listed = compare(
        "kafka-topics", "--bootstrap-server", broker.bootstrap, "--list", *options
    ).lines

    assert set(topics) <= set(listed)


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--topics-with-overrides",),
        ("--under-replicated-partitions",),
        ("--unavailable-partitions",),
        ("--under-min-isr-partitions",),
        ("--at-min-isr-partitions",),
        ("--at-min-isr-partitions", "--unavailable-partitions"),
        ("--exclude-internal",),
        ("--if-exists", "--partition-size-limit-per-response", "1"),
    ],
    ids=" ".join,
)
def test_topics_are_described(
    compare: Compare, broker: Broker, topics: list[str], options: tuple[str, ...]
) -> None:
    where = ("--bootstrap-server", broker.bootstrap, "--describe")

    compare(
        "kafka-topics",
        *(*where, "--topic", f"{topics[0][:-2]}.*", *options),
        normalise=_in_any_order,
    )


def test_all_topics_are_described(compare: Compare, broker: Broker, topics: list[str]) -> None:
    where = ("--bootstrap-server", broker.bootstrap, "--describe")

    shown = compare("kafka-topics", *where, normalise=_in_any_order)

    assert sum(line.startswith(f"\tTopic: {topics[0]}\t") for line in shown.lines) == 3


def test_a_topic_is_described_by_its_id(
    compare: Compare, broker: Broker, topics: list[str]
) -> None:
    described = _ours(broker, "--describe", "--topic", topics[1])
    topic_id = described.lines[0].split("\t")[1].removeprefix("TopicId: ")

    by_id = compare(
        "kafka-topics",
        *("--bootstrap-server", broker.bootstrap, "--describe", "--topic-id", topic_id),
    )

    assert by_id.stdout.replace("N/A", "") == described.stdout.replace("N/A", "")


@pytest.mark.parametrize(
    "options",
    [
        ("--describe", "--topic", "none", "--if-exists"),
        ("--describe", "--topic-id", "4fZ0gCJ5TRqY9DgIMlr9Sw", "--if-exists"),
        ("--alter", "--topic", "none", "--partitions", "2", "--if-exists"),
        ("--delete", "--topic", "none", "--if-exists"),
        ("--create", "--topic", "A", "--if-not-exists"),
    ],
    ids=" ".join,
)
def test_what_has_nothing_to_do_is_no_error(
    compare: Compare, broker: Broker, topics: list[str], options: tuple[str, ...]
) -> None:
    options = tuple(topics[0] if option == "A" else option for option in options)

    done = compare("kafka-topics", "--bootstrap-server", broker.bootstrap, *options)

    assert (done.code, done.stdout) == (0, "")


def test_partitions_are_added(compare: Compare, broker: Broker, make_topic: MakeTopic) -> None:
    topic = make_topic()

    added = _ours(broker, "--alter", "--topic", topic, "--partitions", "3")
    assigned = _ours(
        broker,
        *("--alter", "--topic", topic, "--partitions", "4", "--replica-assignment", "0,0,0,0"),
    )

    assert (added.code, added.stdout, assigned.code) == (0, "", 0)
    shown = compare(
        "kafka-topics", "--bootstrap-server", broker.bootstrap, "--describe", "--topic", topic
    )
    assert "PartitionCount: 4" in shown.stdout


def test_topics_are_deleted_by_pattern(broker: Broker) -> None:
    prefix = f"gone-{uuid.uuid4().hex[:8]}"
    for suffix in ("x", "y"):
        _ours(broker, "--create", "--topic", f"{prefix}.{suffix}")

    deleted = _ours(broker, "--delete", "--topic", rf"{prefix}\..*")

    assert (deleted.code, deleted.stdout, deleted.stderr) == (0, "", "")
    assert _ours(broker, "--list", "--topic", f"{prefix}.*").lines == [""]


@pytest.mark.parametrize(
    "options",
    [
        ("--create", "--topic", "A"),
        ("--create", "--topic", "bad name"),
        ("--create", "--topic", "new", "--replica-assignment", "7"),
        ("--create", "--topic", "new", "--replication-factor", "3"),
        ("--create", "--topic", "new", "--config", "nonsense=1"),
        ("--alter", "--topic", "A", "--partitions", "3"),
        ("--alter", "--topic", "A", "--partitions", "2"),
        ("--alter", "--topic", "A", "--partitions", "4", "--replica-assignment", "0"),
    ],
    ids=" ".join,
)
def test_what_the_broker_refuses_is_told_in_its_words(
    apache: ApacheTools, broker: Broker, topics: list[str], options: tuple[str, ...]
) -> None:
    if broker.is_apache and "--replica-assignment" in options and "--create" in options:
        pytest.skip("Apache Kafka makes the topic, and waits until broker 7 is there")
    options = tuple(topics[0] if option == "A" else option for option in options)

    theirs = apache.run("kafka-topics", "--bootstrap-server", broker.bootstrap, *options)
    ours = _ours(broker, *options)

    assert (ours.code, ours.stdout) == (theirs.code, "")
    assert ours.stderr == theirs.stdout.removeprefix(_ERROR)


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--list", "--create"),
        ("--create",),
        ("--delete",),
        ("--alter", "--topic", "A"),
        ("--alter", "--topic", "A", "--partitions", "9", "--config", "retention.ms=4"),
        ("--create", "--topic", "new", "--replica-assignment", "0:0"),
        ("--create", "--topic", "new", "--replica-assignment", "0,0:1"),
        ("--create", "--topic", "new", "--replica-assignment", "x"),
        ("--create", "--topic", "new", "--replica-assignment", "0", "--partitions", "1"),
        ("--create", "--topic", "new", "--partitions", "0"),
        ("--create", "--topic", "new", "--partitions", "x"),
        ("--create", "--topic", "new", "--replication-factor", "0"),
        ("--create", "--topic", "new", "--replication-factor", "40000"),
        ("--create", "--topic", "new", "--config", "retention.ms"),
        ("--create", "--topic", "new", "--config", "retention.ms="),
        ("--create", "--topic", "new", "--config", "retention.ms=x"),
        ("--create", "--topic", "new", "--if-exists"),
        ("--list", "--if-exists"),
        ("--list", "--if-not-exists"),
        ("--list", "--partitions", "3"),
        ("--list", "--unavailable-partitions"),
        ("--describe", "--topics-with-overrides", "--unavailable-partitions"),
        ("--delete", "--topic", "A", "--exclude-internal"),
        ("--describe", "--topic", "none"),
        ("--describe", "--topic", "t["),
        ("--describe", "--topic-id", "AAAA"),
        ("--describe", "--topic-id", "4fZ0gCJ5TRqY9DgIMlr9Sw"),
        ("--alter", "--topic", "none", "--partitions", "2"),
        ("--delete", "--topic", "none"),
        ("--list", "--bootstrap-server", "twice"),
    ],
    ids=" ".join,
)
def test_bad_use_is_one_line_and_ends_as_in_kafka(
    apache: ApacheTools, broker: Broker, topics: list[str], options: tuple[str, ...]
) -> None:
    options = tuple(topics[0] if option == "A" else option for option in options)

    theirs = apache.run("kafka-topics", "--bootstrap-server", broker.bootstrap, *options)
    ours = _ours(broker, *options)

    assert (ours.code, theirs.code) == (1, 1)
    assert (ours.stdout, len(ours.stderr.splitlines())) == ("", 1)


@pytest.mark.parametrize("server", ["nowhere", "127.0.0.1:1", "host.invalid:9092"])
def test_a_broker_that_cannot_be_reached_is_named(server: str, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text("default.api.timeout.ms=300\nrequest.timeout.ms=200\n")
    module = (sys.executable, "-m", "kafkapy.tools.kafka_topics")

    # In a process of its own, for what the interpreter itself might say.
    ended = subprocess.run(
        [*module, "--bootstrap-server", server, "--list", "--command-config", str(config)],
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert (ended.returncode, ended.stdout) == (1, "")
    assert server in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
