"""A broker for each module; a module that needs other settings has a `broker` of its own."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.helpers.api import create_topic
from tests.helpers.broker import Broker, Client, running_broker


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with running_broker(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@pytest.fixture
def client(broker: Broker) -> Iterator[Client]:
    with broker.client() as client:
        yield client


@pytest.fixture
def topic(client: Client) -> str:
    """A topic with one partition, of this test alone."""
    return create_topic(client)


MakeBroker = Callable[..., Broker]


@pytest.fixture
def make_broker(tmp_path: Path) -> Iterator[MakeBroker]:
    """Starts brokers for one test: `make_broker({"num.partitions": "3"})`."""
    with ExitStack() as stack:
        count = 0

        def make(properties: Mapping[str, str] | None = None) -> Broker:
            nonlocal count
            count += 1
            return stack.enter_context(running_broker(tmp_path / f"broker-{count}", properties))

        yield make
