"""A broker for each module, and topics of each test's own."""

from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest

from kafkapy.testing import EmbeddedBroker

MakeTopic = Callable[..., str]


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    settings = {
        "log.cleaner.backoff.ms": "20",
        "log.cleaner.min.cleanable.ratio": "0.01",
        # Some records have times long past.
        "log.retention.ms": "-1",
    }
    with EmbeddedBroker(settings) as broker:
        yield broker


@pytest.fixture
def make_topic(broker: EmbeddedBroker) -> Iterator[MakeTopic]:
    """Makes topics with names of their own; faults of a test go with it."""

    def make(partitions: int = 1, **configs: str) -> str:
        name = f"t-{uuid4().hex[:12]}"
        broker.create_topic(name, partitions=partitions, configs=configs)
        return name

    yield make
    broker.faults.clear()


@pytest.fixture
def topic(make_topic: MakeTopic) -> str:
    return make_topic()
