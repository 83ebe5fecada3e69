"""kafka-leader-election beside Apache Kafka's; a broker without elections refuses both alike."""

import json
from pathlib import Path

import pytest

from tests.compat.apache_tools import ApacheTools
from tests.compat.brokers import Broker
from tests.compat.contract import MakeTopic
from tests.compat.outcome import run_ours
from tests.tools.compare.conftest import Compare

_COMMAND = "kafka-leader-election"


def _any_order(stdout: str) -> list[str]:
    return sorted(stdout.replace(",", "").split())


@pytest.mark.parametrize(
    "line",
    [
        "--election-type preferred --topic A --partition 0",
        "--election-type UNCLEAN --topic A --partition 1",
        "--election-type preferred --all-topic-partitions",
    ],
)
def test_leaders_are_elected(
    compare: Compare, broker: Broker, make_topic: MakeTopic, line: str
) -> None:
    topic = make_topic(partitions=2)
    words = [topic if word == "A" else word for word in line.split()]

    compare(_COMMAND, "--bootstrap-server", broker.bootstrap, *words, normalise=_any_order)


def test_leaders_of_the_partitions_in_a_file_are_elected(
    compare: Compare, broker: Broker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic(partitions=2)
    file = tmp_path / "partitions.json"
    partitions = [{"topic": topic, "partition": partition} for partition in (1, 0)]
    file.write_text(json.dumps({"partitions": partitions}))

    compare(
        _COMMAND,
        *("--bootstrap-server", broker.bootstrap, "--election-type", "preferred"),
        *("--path-to-json-file", str(file)),
        normalise=_any_order,
    )


def test_a_partition_that_does_not_exist_is_one_line_and_exit_code_1(
    apache: ApacheTools, broker: Broker
) -> None:
    words = (
        *("--bootstrap-server", broker.bootstrap, "--election-type", "preferred"),
        *("--topic", "none", "--partition", "0"),
    )

    theirs = apache.run(_COMMAND, *words)
    ours = run_ours(_COMMAND, *words)

    assert (ours.code, ours.stdout, theirs.code) == (1, "", 1)
    assert len(ours.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "line",
    [
        "--election-type preferred",
        "--election-type nonsense --topic t --partition 0",
        "--election-type preferred --topic t",
        "--election-type preferred --partition 0",
        "--election-type preferred --topic t --partition 0 --all-topic-partitions",
        "--election-type preferred --path-to-json-file /nowhere",
        "--topic t --partition 0",
    ],
)
def test_bad_use_is_one_line_and_ends_as_in_kafka(
    compare: Compare, broker: Broker, line: str
) -> None:
    ended = compare(_COMMAND, "--bootstrap-server", broker.bootstrap, *line.split())

    assert (ended.code, ended.stdout) == (1, "")
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "content",
    [
        '{"partitions": [{"topic": "t", "partition": 0}, {"topic": "t", "partition": 0}]}',
        '{"partitions": [{"topic": "t"}]}',
        "nonsense",
    ],
)
def test_a_file_that_is_not_right_is_one_line_and_ends_as_in_kafka(
    compare: Compare, broker: Broker, tmp_path: Path, content: str
) -> None:
    file = tmp_path / "partitions.json"
    file.write_text(content)

    ended = compare(
        _COMMAND,
        *("--bootstrap-server", broker.bootstrap, "--election-type", "preferred"),
        *("--path-to-json-file", str(file)),
    )

    assert ended.code == 1
    assert len(ended.stderr.splitlines()) == 1
