"""kafka-configs beside Apache Kafka's.

Against a broker without quotas or credentials both end with that; KAFKAPY_COMPAT_BROKER=apache
shows the rest.
"""

import uuid
from pathlib import Path

import pytest

from kafkapy.common.errors import Errors
from tests.compat.apache_tools import ApacheTools
from tests.compat.brokers import Broker
from tests.compat.contract import MakeTopic
from tests.compat.outcome import Outcome, run_ours
from tests.tools.compare.conftest import Compare

_COMMAND = "kafka-configs"
_BROKER_SETTING = "log.retention.ms"


def _ours(broker: Broker, *arguments: str) -> Outcome:
    return run_ours(_COMMAND, "--bootstrap-server", broker.bootstrap, *arguments)


def _in_any_order(stdout: str) -> list[str]:
    return sorted(stdout.splitlines())


@pytest.mark.parametrize(
    "options",
    [
        ("--topic", "A"),
        ("--entity-type", "topics", "--entity-name", "A"),
        ("--topic", "A", "--all"),
    ],
)
def test_settings_of_a_topic_are_shown(
    compare: Compare, broker: Broker, make_topic: MakeTopic, options: tuple[str, ...]
) -> None:
    topic = make_topic()
    options = tuple(topic if option == "A" else option for option in options)
    added = _ours(
        broker,
        *("--alter", "--topic", topic),
        *("--add-config", "retention.ms=86400000 , cleanup.policy=[compact,delete]"),
    )

    shown = compare(_COMMAND, "--bootstrap-server", broker.bootstrap, "--describe", *options)

    assert added.lines == [f"Completed updating config for topic {topic}."]
    assert (
        "  cleanup.policy=compact,delete sensitive=false"
        " synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete, "
    ) in shown.stdout


def test_settings_of_all_topics_are_shown(
    compare: Compare, broker: Broker, make_topic: MakeTopic
) -> None:
    topic = make_topic(config={"retention.ms": "1234567"})

    shown = compare(
        _COMMAND,
        *("--bootstrap-server", broker.bootstrap, "--describe", "--entity-type", "topics"),
        normalise=_in_any_order,
    )

    assert f"Dynamic configs for topic {topic} are:" in shown.lines


def test_settings_of_a_topic_are_set_from_a_file_and_taken_away(
    compare: Compare, broker: Broker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic()
    settings = tmp_path / "topic.properties"
    settings.write_text("# for a day\nretention.ms = 86400000\nsegment.ms=3600000\n")

    _ours(broker, "--alter", "--topic", topic, "--add-config-file", str(settings))
    _ours(
        broker,
        *("--alter", "--topic", topic, "--delete-config", "retention.ms"),
        *("--add-config", "segment.ms=7200000,"),
    )

    shown = compare(
        _COMMAND, "--bootstrap-server", broker.bootstrap, "--describe", "--topic", topic
    )
    assert [line.split()[0] for line in shown.lines[1:]] == ["segment.ms=7200000"]


@pytest.mark.parametrize(
    "options",
    [
        ("--broker", "0"),
        ("--broker-defaults",),
        ("--entity-type", "brokers"),
        ("--entity-type", "brokers", "--entity-default"),
        ("--broker", "0", "--all"),
    ],
    ids=" ".join,
)
def test_settings_of_brokers_are_shown(
    compare: Compare, broker: Broker, options: tuple[str, ...]
) -> None:
    of_one = _ours(broker, "--alter", "--broker", "0", "--add-config", f"{_BROKER_SETTING}=999999")
    of_all = _ours(
        broker, "--alter", "--broker-defaults", "--add-config", f"{_BROKER_SETTING}=888888"
    )

    shown = compare(_COMMAND, "--bootstrap-server", broker.bootstrap, "--describe", *options)
    for whose in (("--broker", "0"), ("--broker-defaults",)):
        assert _ours(broker, "--alter", *whose, "--delete-config", _BROKER_SETTING).code == 0

    assert of_one.lines == ["Completed updating config for broker 0."]
    assert of_all.lines == ["Completed updating default config for brokers in the cluster."]
    assert f"  {_BROKER_SETTING}=" in shown.stdout


def test_quotas_are_set_and_shown(compare: Compare, broker: Broker) -> None:
    user, client = f"u-{uuid.uuid4().hex[:8]}", f"c-{uuid.uuid4().hex[:8]}"
    where = ("--bootstrap-server", broker.bootstrap)
    for line, quotas in (
        (f"--user {user}", "producer_byte_rate=1024,consumer_byte_rate=123456789"),
        ("--user-defaults", "request_percentage=50.5"),
        (f"--client {client}", "controller_mutation_rate=0.0001"),
        ("--client-defaults", "producer_byte_rate=1e6"),
        (f"--user {user} --client {client}", "producer_byte_rate=1"),
        (f"--user {user} --client-defaults", "producer_byte_rate=2"),
        ("--ip 127.0.0.9", "connection_creation_rate=5"),
        ("--ip-defaults", "connection_creation_rate=6"),
    ):
        compare(_COMMAND, *where, "--alter", *line.split(), "--add-config", quotas)
        compare(_COMMAND, *where, "--describe", *line.split())
    for types in (["users"], ["clients"], ["users", "clients"], ["ips"]):
        words = [word for kind in types for word in ("--entity-type", kind)]
        compare(_COMMAND, *where, "--describe", *words, normalise=_in_any_order)


def test_credentials_are_set_and_shown(compare: Compare, broker: Broker) -> None:
    user = f"u-{uuid.uuid4().hex[:8]}"
    where = ("--bootstrap-server", broker.bootstrap)
    both = "SCRAM-SHA-256=[iterations=8192,password=a=b],SCRAM-SHA-512=[password=x]"

    compare(_COMMAND, *where, "--alter", "--user", user, "--add-config", both)
    compare(_COMMAND, *where, "--describe", "--user", user)
    _ours(broker, "--alter", "--user", user, "--delete-config", "SCRAM-SHA-256")
    compare(_COMMAND, *where, "--describe", "--user", user)


@pytest.mark.parametrize(
    "line",
    [
        "--alter --topic none --add-config retention.ms=1",
        "--alter --topic A --add-config nonsense=1",
        "--alter --topic A --add-config retention.ms=x",
        "--alter --topic A --add-config retention.ms=",
        "--alter --broker 0 --add-config broker.id=7",
    ],
)
def test_what_the_broker_refuses_is_told_in_its_words(
    apache: ApacheTools, broker: Broker, make_topic: MakeTopic, line: str
) -> None:
    topic = make_topic()
    words = [topic if word == "A" else word for word in line.split()]

    theirs = apache.run(_COMMAND, "--bootstrap-server", broker.bootstrap, *words)
    ours = _ours(broker, *words)

    assert (ours.code, ours.stdout) == (theirs.code, theirs.stdout) == (1, "")
    # Apache Kafka refuses a topic that is not there without a word.
    is_wordless = theirs.stderr.endswith("UnknownTopicOrPartitionException: \n")
    told = Errors.UNKNOWN_TOPIC_OR_PARTITION.message if is_wordless else theirs.stderr
    assert ours.stderr.strip() in told


@pytest.mark.parametrize(
    "line",
    [
        "",
        "--topic A",
        "--describe",
        "--describe --alter --topic A",
        "--describe --topic A --add-config a=b",
        "--describe --topic A --broker 0",
        "--describe --topic A --entity-type topics",
        "--describe --entity-type topics --entity-type topics",
        "--describe --entity-type nonsense",
        "--describe --entity-name x",
        "--describe --broker x",
        "--describe --broker-logger x",
        "--describe --topic none",
        "--alter --topic A",
        "--alter --topic A --add-config retention.ms",
        "--alter --topic A --add-config retention.ms=1,x",
        "--alter --topic A --add-config =1",
        "--alter --topic A --delete-config retention.ms",
        "--alter --topic A --delete-config=",
        "--alter --topic A --add-config a=b --add-config-file f",
        "--alter --topic A --add-config-file /nowhere",
        "--alter --entity-type topics --add-config retention.ms=5",
        "--alter --entity-type brokers --add-config retention.ms=5",
        "--alter --entity-type users --entity-name a --entity-name b --delete-config x",
        "--alter --client c --add-config nonsense=1",
        "--alter --client c --add-config producer_byte_rate=x",
        "--alter --ip host.invalid --add-config connection_creation_rate=6",
        "--alter --user u --add-config SCRAM-SHA-256=[iterations=8192]",
        "--alter --user u --add-config SCRAM-SHA-256=[password=x],producer_byte_rate=4",
        "--alter --user-defaults --add-config SCRAM-SHA-256=[password=x]",
        "--alter --user u --client c --add-config SCRAM-SHA-256=[password=x]",
    ],
)
def test_bad_use_is_one_line_and_ends_as_in_kafka(
    apache: ApacheTools, broker: Broker, make_topic: MakeTopic, line: str
) -> None:
    topic = make_topic() if " A" in line else ""
    words = [topic if word == "A" else word for word in line.split()]

    theirs = apache.run(_COMMAND, "--bootstrap-server", broker.bootstrap, *words)
    ours = _ours(broker, *words)

    assert (ours.code, ours.stdout, theirs.code) == (1, "", 1)
    assert len(ours.stderr.splitlines()) == 1


def test_a_broker_must_be_named(compare: Compare) -> None:
    assert compare(_COMMAND, "--describe", "--topic", "t").code == 1
