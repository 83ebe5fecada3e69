"""The examples of docs/clients.md run as they stand."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.compat.brokers import Broker

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "clients.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)


@pytest.fixture(scope="module")
def orders(broker: Broker) -> str:
    """The topic that the examples read."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for number in range(3):
        producer.produce("orders", f'{{"order": {number}}}', partition=0)
    assert producer.flush(20) == 0
    return "orders"


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_the_examples_work(broker: Broker, orders: str, example: str) -> None:
    # Five seconds are for people to read.
    code = example.replace("127.0.0.1:9092", broker.bootstrap).replace("5_000,", "1_000,")

    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60
    )

    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_the_document_has_examples() -> None:
    assert len(EXAMPLES) >= 4
