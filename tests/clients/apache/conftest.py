"""Apache Kafka in the place of the broker, for the tests that are run against both."""

from collections.abc import Iterator

import pytest

from tests.compat.brokers import Broker, start_apache
from tests.compat.conftest import make_topic, neutral_admin  # noqa: F401 - of this broker


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    started = start_apache(tmp_path_factory.mktemp("apache"))
    yield started
    assert started.stop() == started.clean_exit_code, started.tail()
