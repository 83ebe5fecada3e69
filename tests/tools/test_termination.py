"""Commands that run until they are told to end: they tidy up, whatever they are doing."""

import signal
import subprocess
import sys

import pytest

from kafkapy.clients.consumer import KafkaConsumer, TopicPartition
from tests.compat.brokers import Broker
from tests.compat.contract import MakeTopic
from tests.helpers.waiting import wait_until

_TIMEOUT_S = 30
# What each is told, and a part of what it says once it is at work; None: then there is a record.
_COMMANDS = {
    "kafka-verifiable-producer": ("--throughput 1000 {server} {topic}", "producer_send_success"),
    "kafka-verifiable-consumer": ("--group-id g-{name} {server} {topic}", "partitions_assigned"),
    "kafka-producer-perf-test": (
        # It waits for long after the first record.
        "--num-records 9 --record-size 9 --throughput 0.01 {topic}"
        " --producer-props bootstrap.servers={address}",
        None,
    ),
    "kafka-consumer-perf-test": ("--messages 10 --timeout 60000 {server} {topic}", "start.time"),
    "kafka-e2e-latency": ("{address} {name} 100000000 1 10", "0\t"),
    "kafka-console-producer": ("{server} {topic}", None),
    "kafka-replica-verification": (
        "--broker-list {address} --topics-include {name} --max-wait-ms 100",
        "verification process is started",
    ),
}


@pytest.mark.parametrize("command", _COMMANDS)
def test_a_command_ends_tidily_when_it_is_told_to(
    broker: Broker,
    make_topic: MakeTopic,
    command: str,
) -> None:
    name = make_topic()
    options, sign = _COMMANDS[command]
    filled = options.format(
        name=name,
        address=broker.bootstrap,
        server=f"--bootstrap-server {broker.bootstrap}",
        topic=f"--topic {name}",
    )
    module = command.replace("-", "_")
    with subprocess.Popen(
        [sys.executable, "-u", "-m", f"kafkapy.tools.{module}", *filled.split()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        if sign is None:
            # For the one that sends lines; it then waits for another.
            process.stdin.write("a line\n")
            process.stdin.flush()
            _await_record(broker, name)
        else:
            while sign not in (line := process.stdout.readline()):
                assert line, process.communicate()[1]
        process.send_signal(signal.SIGTERM)
        said, errors = process.communicate(timeout=_TIMEOUT_S)

    assert process.returncode == 128 + signal.SIGTERM
    assert errors == ""
    assert ("shutdown_complete" in said) == ("verifiable" in command)


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("kafka_verifiable_producer", "--throughput 1000 {server}"),
        ("kafka_verifiable_consumer", "--group-id g-{name} {server}"),
        (
            "kafka_producer_perf_test",
            "--num-records 10000000 --record-size 9 --throughput 1000"
            " --producer-props bootstrap.servers={address}",
        ),
    ],
)
def test_a_command_that_reports_from_callbacks_ends_quietly_when_nobody_reads_on(
    broker: Broker, make_topic: MakeTopic, command: str, options: str
) -> None:
    name = make_topic()
    filled = options.format(
        name=name, address=broker.bootstrap, server=f"--bootstrap-server {broker.bootstrap}"
    )
    with subprocess.Popen(
        [sys.executable, "-m", f"kafkapy.tools.{command}", "--topic", name, *filled.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        try:
            if "verifiable" in command:
                process.stdout.readline()  # this one is not written by a callback
            process.stdout.close()
            process.wait(_TIMEOUT_S)
            errors = process.stderr.read()
        finally:
            process.kill()

    assert (process.returncode, errors) == (141, "")


def _await_record(broker: Broker, topic: str) -> None:
    with KafkaConsumer(bootstrap_servers=broker.bootstrap) as consumer:
        partition = TopicPartition(topic, 0)
        wait_until(lambda: consumer.end_offsets([partition])[partition] >= 1)
