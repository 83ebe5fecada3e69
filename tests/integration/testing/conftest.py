"""Brokers as a test has them: in its own process, or beside it."""

import warnings
from collections.abc import Iterator

import pytest

from kafkapy.testing import BrokerHandle, BrokerProcess, EmbeddedBroker

# kafka-python loads its schemas by a deprecated call, on import and never again.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka  # noqa: F401


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture(scope="session", params=[EmbeddedBroker, BrokerProcess])
def either_broker(request: pytest.FixtureRequest) -> Iterator[BrokerHandle]:
    with request.param() as broker:
        yield broker


@pytest.fixture
def topic(broker: EmbeddedBroker, request: pytest.FixtureRequest) -> Iterator[str]:
    """A topic; faults go with the test."""
    name = request.node.name.replace("[", "-").replace("]", "")[:100]
    broker.create_topic(name)
    yield name
    broker.faults.clear()
