"""How kafka-console-consumer ends when it is told to, or when nobody reads on."""

import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator

import pytest

from kafkapy.clients.producer import KafkaProducer
from tests.compat.brokers import Broker
from tests.compat.outcome import run_ours

_COMMAND = (sys.executable, "-m", "kafkapy.tools.kafka_console_consumer")
_TIMEOUT_S = 30


@pytest.fixture(scope="module")
def topic(broker: Broker) -> Iterator[str]:
    name = f"console-{uuid.uuid4().hex}"
    with KafkaProducer(bootstrap_servers=broker.bootstrap, linger_ms=5) as producer:
        for number in range(2000):
            # Together more than a pipe holds.
            producer.send(name, f"{number:0100d}".encode(), partition=0)
    yield name


def _start(broker: Broker, topic: str, *options: str) -> subprocess.Popen[str]:
    server = ("--bootstrap-server", broker.bootstrap, "--topic", topic)
    return subprocess.Popen(
        [*_COMMAND, *server, "--from-beginning", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell's background job would ignore SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


@pytest.mark.parametrize(("signal_number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_and_what_was_shown_is_committed(
    broker: Broker,
    topic: str,
    signal_number: int,
    code: int,
) -> None:
    group = f"g-{uuid.uuid4().hex}"
    with _start(broker, topic, "--group", group) as process:
        assert process.stdout is not None
        for _ in range(2000):
            process.stdout.readline()
        process.send_signal(signal_number)
        _, errors = process.communicate(timeout=_TIMEOUT_S)

    assert process.returncode == code
    assert errors.splitlines() == ["Processed a total of 2000 messages"]
    left = run_ours(
        "kafka-console-consumer",
        *("--bootstrap-server", broker.bootstrap, "--topic", topic, "--group", group),
        *("--from-beginning", "--timeout-ms", "1500"),
    )
    assert left.stdout == ""


def test_it_ends_quietly_when_nobody_reads_on(broker: Broker, topic: str) -> None:
    with _start(broker, topic) as process:
        assert process.stdout is not None and process.stderr is not None
        assert int(process.stdout.readline()) == 0
        process.stdout.close()
        errors = process.stderr.read()
        process.wait(_TIMEOUT_S)

    assert "Traceback" not in errors
    assert process.returncode == 141
