"""The fixtures `kafka_broker` and `kafka_topic`.

pytest loads this for every test run where kafkapy is installed, so it imports nothing but pytest.
A project's own fixtures of these names take precedence, as always.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

if TYPE_CHECKING:
    from kafkapy.testing.broker_handle import BrokerHandle

_OPTION = "kafkapy_broker"
_PROPERTIES = "kafkapy_broker_properties"
_IN_PROCESS = "inprocess"
_PROCESS = "process"
_NOT_IN_A_TOPIC_NAME = re.compile(r"[^a-zA-Z0-9._-]+")
_MAX_NAME_LENGTH = 80


def pytest_addoption(parser: pytest.Parser) -> None:
    # With kafkapy in the name: a project may well have a --kafka-broker of its own.
    parser.getgroup("kafkapy").addoption(
        "--kafkapy-broker",
        dest=_OPTION,
        choices=(_IN_PROCESS, _PROCESS),
        default=_IN_PROCESS,
        help="where the kafka_broker fixture runs its broker (default: %(default)s)",
    )
    parser.addini(
        _PROPERTIES,
        "settings of the kafka_broker fixture's broker, one name=value a line",
        type="linelist",
        default=[],
    )


@pytest.fixture(scope="session")
def kafka_broker(request: pytest.FixtureRequest) -> Iterator[BrokerHandle]:
    """A running broker, the same for all tests of a session (with pytest-xdist, of a worker)."""
    with _new_broker(request.config) as broker:
        yield broker


@pytest.fixture
def kafka_topic(request: pytest.FixtureRequest, kafka_broker: BrokerHandle) -> Iterator[str]:
    """The name of a topic of the test's own; it goes with the test, and so do the test's faults."""
    test = _NOT_IN_A_TOPIC_NAME.sub("-", request.node.name)[:_MAX_NAME_LENGTH].strip("-.")
    name = f"{test}-{uuid4().hex[:8]}"
    kafka_broker.create_topic(name)
    yield name
    kafka_broker.faults.clear()
    if name in kafka_broker.topics():
        kafka_broker.delete_topic(name)


def _new_broker(config: pytest.Config) -> BrokerHandle:
    properties = {}
    for line in config.getini(_PROPERTIES):
        name, separator, value = line.partition("=")
        if not separator:
            raise pytest.UsageError(f"{_PROPERTIES}: expected name=value, not {line!r}")
        properties[name.strip()] = value.strip()
    if config.getoption(_OPTION) == _PROCESS:
        from kafkapy.testing.broker_process import BrokerProcess

        return BrokerProcess(properties)
    from kafkapy.testing.embedded_broker import EmbeddedBroker

    return EmbeddedBroker(properties)
