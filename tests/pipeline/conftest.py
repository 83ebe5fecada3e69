"""One Spark and one broker for all tests of a worker.

A session costs ten seconds and a query one: few queries, and many assertions on each. Give a query
that outlives its test a name of its own, and stop it.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from kafkapy.pipeline.spark.kafka_data_source import HAS_LIMITS
from kafkapy.testing.broker_process import BrokerProcess
from tests.compat.tools import require_spark_connector
from tests.helpers.spark import running_spark

MakeTopic = Callable[..., str]

_DIRECTORY = Path(__file__).parent
_TIMEOUT_S = 300
# Spark 4.1 leaves its connections to the driver's JVM to the garbage collector.
_UNCLOSED = "ignore:Exception ignored in. <socket.socket:pytest.PytestUnraisableExceptionWarning"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """local[2], both our sources registered; the official connector too if it was fetched."""
    with running_spark(tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.fixture(scope="session")
def official_format(spark: SparkSession) -> str:
    """The official connector's format; skips the test where the connector is not."""
    require_spark_connector()
    return "kafka"


@pytest.fixture(scope="session")
def spark_broker() -> Iterator[BrokerProcess]:
    """A process of its own: in the tests' it would wait whenever a test computes.

    Records that say they are years old stay, however long the tests take.
    """
    with BrokerProcess({"log.retention.ms": "-1"}) as broker:
        yield broker


@pytest.fixture
def make_topic(spark_broker: BrokerProcess) -> Iterator[MakeTopic]:
    """Makes topics with names of their own, which go with the test."""
    made: list[str] = []

    def make(partitions: int = 2, *, configs: dict[str, str] | None = None) -> str:
        name = f"pipeline-{uuid4().hex[:12]}"
        spark_broker.create_topic(name, partitions=partitions, configs=configs)
        made.append(name)
        return name

    yield make
    spark_broker.faults.clear()
    for name in set(made) & spark_broker.topics().keys():
        spark_broker.delete_topic(name)


@pytest.fixture
def topic(make_topic: MakeTopic) -> str:
    """A topic with two partitions, of this test alone."""
    return make_topic()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test may have to wait for Spark to start, on cores that other workers use."""
    for item in items:
        if not item.path.is_relative_to(_DIRECTORY):
            continue
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(_TIMEOUT_S))
        if not HAS_LIMITS:
            item.add_marker(pytest.mark.filterwarnings(_UNCLOSED))
