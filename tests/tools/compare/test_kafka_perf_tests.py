"""kafka-producer-perf-test, kafka-consumer-perf-test and kafka-e2e-latency beside Kafka's own.

What they measure differs from run to run: only the numbers that do not, and the words around them,
are compared.
"""

import re
from pathlib import Path

import pytest

from tests.compat.brokers import Broker
from tests.compat.contract import MakeTopic
from tests.compat.outcome import run_ours
from tests.tools.compare.conftest import Compare

_DECIMAL = re.compile(r"\d+\.\d+")
_DATE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}")


def _without_measures(stdout: str) -> str:
    text = _DATE.sub("DATE", stdout)
    # As many decimals as there were.
    text = _DECIMAL.sub(lambda number: "." + "0" * len(number[0].split(".")[1]), text)
    text = re.sub(r"\d+ ms (\S+th)", r"N ms \1", text)
    text = re.sub(r"(th) = \d+", r"\1 = N", text)
    return re.sub(r", \d+, \d+, \.", ", N, N, .", text)


@pytest.mark.parametrize(
    "payload",
    [
        ("--record-size", "100"),
        ("--payload-monotonic",),
        ("--record-size", "10", "--transaction-duration-ms", "50"),
    ],
    ids=str,
)
def test_a_producer_is_measured(
    compare: Compare, broker: Broker, make_topic: MakeTopic, payload: tuple[str, ...]
) -> None:
    compare(
        "kafka-producer-perf-test",
        *("--topic", make_topic(), "--num-records", "200", "--throughput", "-1", *payload),
        *("--producer-props", f"bootstrap.servers={broker.bootstrap}", "linger.ms=5"),
        normalise=_without_measures,
    )


def test_payloads_come_from_a_file(
    compare: Compare, broker: Broker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    payloads = tmp_path / "payloads"
    payloads.write_text("one;two;three;")

    shown = compare(
        "kafka-producer-perf-test",
        *("--topic", make_topic(), "--num-records", "20", "--throughput", "1000"),
        *("--payload-file", str(payloads), "--payload-delimiter", ";"),
        *("--producer-props", f"bootstrap.servers={broker.bootstrap}"),
        normalise=_without_measures,
    )

    assert shown.lines[:2] == [f"Reading payloads from: {payloads}", "Number of messages read: 3"]


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--record-size", "10"),
        ("--record-size", "10", "--payload-monotonic", "--producer-props", "acks=1"),
        ("--record-size", "x", "--producer-props", "acks=1"),
        ("--payload-file", "/nowhere/payloads", "--producer-props", "acks=1"),
    ],
    ids=str,
)
def test_bad_use_of_the_producer_ends_as_in_kafka(
    compare: Compare, options: tuple[str, ...]
) -> None:
    wanted = ("--topic", "t", "--num-records", "1", "--throughput", "-1")

    ended = compare("kafka-producer-perf-test", *wanted, *options)

    assert ended.code == 1
    assert len(ended.stderr.splitlines()) == 1


@pytest.fixture(scope="module")
def filled_topic(broker: Broker) -> str:
    topic = "perf-consumed"
    done = run_ours(
        "kafka-producer-perf-test",
        *("--topic", topic, "--num-records", "300", "--throughput", "-1", "--record-size", "1000"),
        *("--producer-props", f"bootstrap.servers={broker.bootstrap}"),
    )
    assert done.lines[-1].startswith("300 records sent")
    return topic


@pytest.mark.parametrize(
    "options",
    [
        ("--messages", "300"),
        ("--messages", "300", "--hide-header", "--date-format", "yyyy-MM-dd HH:mm:ss:SSS"),
        ("--messages", "301", "--timeout", "1000"),
    ],
    ids=str,
)
def test_a_consumer_is_measured(
    compare: Compare, broker: Broker, filled_topic: str, options: tuple[str, ...]
) -> None:
    shown = compare(
        "kafka-consumer-perf-test",
        *("--bootstrap-server", broker.bootstrap, "--topic", filled_topic, *options),
        normalise=_without_measures,
    )

    assert ", 0.2861, " in shown.lines[-1]
    assert ", 300, " in shown.lines[-1]


def test_a_consumer_is_measured_as_it_reads(
    compare: Compare, broker: Broker, filled_topic: str
) -> None:
    def header_and_form(stdout: str) -> tuple[str, str]:
        lines = _without_measures(stdout).splitlines()
        return lines[0], re.sub(r"\d+", "N", lines[-1])

    compare(
        "kafka-consumer-perf-test",
        *("--bootstrap-server", broker.bootstrap, "--topic", filled_topic, "--messages", "300"),
        *("--show-detailed-stats", "--reporting-interval", "1"),
        normalise=header_and_form,
    )


@pytest.mark.parametrize("options", [(), ("--topic", "t"), ("--topic", "t", "--messages", "1")])
def test_bad_use_of_the_consumer_ends_as_in_kafka(
    compare: Compare, options: tuple[str, ...]
) -> None:
    ended = compare("kafka-consumer-perf-test", *options)

    assert ended.code == 1
    assert len(ended.stderr.splitlines()) == 1


def test_the_way_of_a_record_is_measured(
    compare: Compare, broker: Broker, make_topic: MakeTopic
) -> None:
    shown = compare(
        "kafka-e2e-latency",
        *(broker.bootstrap, make_topic(), "10", "all", "50"),
        normalise=lambda stdout: re.sub(r"\d+(\.\d+)?(?!th)", "N", stdout.replace(".9th", "")),
    )

    assert [line.split()[0] for line in shown.lines] == ["0", "Avg", "Percentiles:"]


@pytest.mark.parametrize("arguments", [(), ("127.0.0.1:1", "t", "1", "0", "10")], ids=str)
def test_bad_use_of_the_latency_test_ends_as_in_kafka(
    compare: Compare, arguments: tuple[str, ...]
) -> None:
    ended = compare("kafka-e2e-latency", *arguments)

    assert ended.code == 1
    assert len(ended.stderr.splitlines()) == 1
