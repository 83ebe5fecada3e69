"""A broker for all compatibility tests of a worker, and topics in it."""

import os
import uuid
import warnings
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.compat.apache_tools import ApacheTools, KafkaTool
from tests.compat.brokers import Broker, start_broker

# kafka-python loads its schemas by a deprecated call, on import and never again.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka  # noqa: F401


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    if bootstrap := os.environ.get("KAFKAPY_COMPAT_BOOTSTRAP"):
        yield Broker(bootstrap)
        return
    started = start_broker(tmp_path_factory.mktemp("broker"))
    try:
        yield started
    finally:
        code = started.stop()
    assert code == started.clean_exit_code, started.tail()


@pytest.fixture
def topic_name() -> str:
    """A name no other test uses, nor an earlier run against a broker that stays up."""
    return f"compat-{uuid.uuid4().hex}"


@pytest.fixture(scope="session")
def neutral_admin(broker: Broker) -> AdminClient:
    """Makes the topics of tests that are not about making topics."""
    return AdminClient({"bootstrap.servers": broker.bootstrap})


@pytest.fixture
def make_topic(neutral_admin: AdminClient) -> Callable[..., str]:
    def make(*, partitions: int = 1, config: dict[str, str] | None = None) -> str:
        name = f"compat-{uuid.uuid4().hex}"
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=config or {})
        for created in neutral_admin.create_topics([topic]).values():
            created.result(10)
        return name

    return make


@pytest.fixture(scope="session")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheTools]:
    tools = ApacheTools(tmp_path_factory.mktemp("apache-tools"))
    yield tools
    tools.close()


@pytest.fixture(scope="session")
def kafka_tool(apache: ApacheTools) -> KafkaTool:
    """What one of Kafka's commands printed on standard output; it must succeed."""

    def run(command: str, *arguments: str, stdin: str = "") -> str:
        outcome = apache.run(command, *arguments, stdin=stdin)
        assert outcome.code == 0, f"{command} {arguments}: {outcome}"
        return outcome.stdout

    return run
