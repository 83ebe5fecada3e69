"""kafka-replica-verification beside Apache Kafka's: both run until they are stopped."""

import re
import signal
import subprocess
import sys
from collections.abc import Sequence

import pytest

from kafkapy.clients.producer import KafkaProducer
from tests.compat.brokers import Broker
from tests.compat.contract import MakeTopic
from tests.compat.tools import MAIN_CLASSES, java_command
from tests.tools.compare.conftest import Compare

_NAME = "kafka-replica-verification"
_OURS = (sys.executable, "-m", "kafkapy.tools.kafka_replica_verification")


def _first_lines(command: Sequence[str], count: int) -> list[str]:
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            return [process.stdout.readline().strip() for _ in range(count)]
        finally:
            process.send_signal(signal.SIGTERM)


def _without_times(lines: list[str]) -> list[str]:
    return [re.sub(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}", "TIME", line) for line in lines]


def test_the_greatest_lag_is_reported(broker: Broker, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=2)
    with KafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(5):
            producer.send(topic, str(number).encode(), partition=0)
            producer.send(topic, str(number).encode(), partition=1)
    options = (
        *("--broker-list", broker.bootstrap, "--topics-include", topic, "--time", "-2"),
        *("--report-interval-ms", "300", "--max-wait-ms", "100"),
    )

    theirs = _first_lines(java_command(MAIN_CLASSES[_NAME], *options), 2)
    ours = _first_lines((*_OURS, *options), 2)

    assert _without_times(ours)[0] == _without_times(theirs)[0]
    # Of partitions with the same lag either may be named.
    anywhere = [re.sub(r"-[01] at", "-N at", _without_times(lines)[1]) for lines in (ours, theirs)]
    assert anywhere[0] == anywhere[1]
    assert f"TIME: max lag is 0 for partition {topic}-N at offset 5 among 2" in anywhere[0]


@pytest.mark.parametrize(
    "options",
    [(), ("--broker-list", "{broker}", "--topics-include", "(")],
    ids=str,
)
def test_bad_use_ends_as_in_kafka(
    compare: Compare, broker: Broker, options: tuple[str, ...]
) -> None:
    ended = compare(_NAME, *(option.format(broker=broker.bootstrap) for option in options))

    assert ended.code == 1
    assert len(ended.stderr.splitlines()) == 1
