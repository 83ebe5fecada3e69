"""kafka-reassign-partitions beside Apache Kafka's.

A broker without reassignments refuses both alike; KAFKAPY_COMPAT_BROKER=apache shows the rest.
"""

import json
from pathlib import Path

import pytest

from tests.compat.apache_tools import ApacheTools
from tests.compat.brokers import Broker
from tests.compat.contract import MakeTopic
from tests.compat.outcome import run_ours
from tests.tools.compare.conftest import Compare

_COMMAND = "kafka-reassign-partitions"


def _result(stdout: str) -> list[str]:
    """Kafka tells errors and warnings on standard output, and forgets to end a line."""
    kept = stdout.replace("active.Clearing", "active.\nClearing").partition("Error: ")[0]
    return [line for line in kept.splitlines() if not line.startswith("Warning: ")]


@pytest.fixture
def assignment(make_topic: MakeTopic, tmp_path: Path) -> Path:
    """Of two partitions, to where they are."""
    topic = make_topic(partitions=2)
    partitions = [{"topic": topic, "partition": number, "replicas": [0]} for number in (1, 0)]
    path = tmp_path / "assignment.json"
    path.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return path


def test_without_moves_none_are_listed(compare: Compare, broker: Broker) -> None:
    compare(_COMMAND, "--bootstrap-server", broker.bootstrap, "--list", normalise=_result)


@pytest.mark.parametrize("brokers", ["0", "0,7"])
def test_an_assignment_is_proposed(
    compare: Compare, broker: Broker, make_topic: MakeTopic, tmp_path: Path, brokers: str
) -> None:
    topic = make_topic(partitions=2)
    topics = tmp_path / "topics.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))

    shown = compare(
        _COMMAND,
        *("--bootstrap-server", broker.bootstrap, "--generate", "--broker-list", brokers),
        *("--topics-to-move-json-file", str(topics)),
    )

    assert shown.lines[1] == shown.lines[4]
    assert len(json.loads(shown.lines[4])["partitions"]) == 2


def test_moves_are_started_throttled_verified_and_cancelled(
    compare: Compare, broker: Broker, assignment: Path
) -> None:
    topic = json.loads(assignment.read_text())["partitions"][0]["topic"]
    where = ("--bootstrap-server", broker.bootstrap)
    file = ("--reassignment-json-file", str(assignment))

    compare(_COMMAND, *where, "--execute", *file, normalise=_result)
    compare(_COMMAND, *where, "--verify", *file, "--preserve-throttles", normalise=_result)
    compare(_COMMAND, *where, "--execute", "--throttle", "5000", *file, normalise=_result)
    compare("kafka-configs", *where, "--describe", "--topic", topic)
    compare(_COMMAND, *where, "--verify", *file, normalise=_result)
    compare(_COMMAND, *where, "--cancel", *file, normalise=_result)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "--execute",
        "--verify",
        "--cancel",
        "--execute --verify --reassignment-json-file FILE",
        "--list --throttle 5",
        "--verify --reassignment-json-file FILE --throttle 5",
        "--generate --topics-to-move-json-file FILE",
        "--generate --topics-to-move-json-file FILE --broker-list 0,0",
        "--generate --topics-to-move-json-file FILE --broker-list x",
        "--execute --reassignment-json-file /nowhere",
    ],
)
def test_bad_use_is_one_line_and_ends_as_in_kafka(
    apache: ApacheTools, broker: Broker, assignment: Path, line: str
) -> None:
    words = line.replace("FILE", str(assignment)).split()

    theirs = apache.run(_COMMAND, "--bootstrap-server", broker.bootstrap, *words)
    ours = run_ours(_COMMAND, "--bootstrap-server", broker.bootstrap, *words)

    assert (ours.code, ours.stdout, theirs.code) == (1, "", 1)
    assert len(ours.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "content",
    [
        "nonsense",
        '{"version": 1, "partitions": []}',
        '{"version": 1, "partitions": [{"topic": "t", "partition": 0}]}',
        '{"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": []}]}',
        '{"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [0, 0]}]}',
        '{"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [0]},'
        ' {"topic": "t", "partition": 0, "replicas": [0]}]}',
        '{"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [0],'
        ' "log_dirs": []}]}',
    ],
)
def test_a_file_that_is_not_right_is_one_line_and_ends_as_in_kafka(
    apache: ApacheTools, broker: Broker, tmp_path: Path, content: str
) -> None:
    file = tmp_path / "assignment.json"
    file.write_text(content)
    words = (
        *("--bootstrap-server", broker.bootstrap),
        *("--execute", "--reassignment-json-file", str(file)),
    )

    theirs = apache.run(_COMMAND, *words)
    ours = run_ours(_COMMAND, *words)

    assert (ours.code, ours.stdout, theirs.code) == (1, "", 1)
    assert len(ours.stderr.splitlines()) == 1
