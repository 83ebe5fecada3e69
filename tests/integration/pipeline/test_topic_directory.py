import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kafkapy.clients.producer import KafkaProducer
from kafkapy.pipeline.jobs.pipeline_config import PipelineConfig, TopicSource
from kafkapy.pipeline.jobs.pipeline_file import PipelineFile
from kafkapy.pipeline.jobs.topic_directory import EARLIEST, TopicDirectory
from kafkapy.pipeline.pipeline_errors import PipelineError
from kafkapy.testing import EmbeddedBroker
from tests.compat.outcome import run_ours

_FILE = """
[pipeline]
name = "p"
checkpoint = "c"
bootstrap_servers = "{servers}"

[[source]]
name = "orders"
type = "topic"
{topics}

[[sink]]
name = "out"
from = "orders"
type = "topic"
topic = "{out}"
value = "value"

[dead_letters]
type = "topic"
topic = "dead"
"""
_TLS = """{ kafka.security.protocol = "SSL", kafka.ssl.truststore.type = "PEM", \
kafka.ssl.truststore.location = "/nowhere.pem" }"""


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        for topic in ("orders", "more-orders", "out", "dead"):
            broker.create_topic(topic, partitions=2)
        yield broker


@pytest.fixture
def closed_port() -> Iterator[int]:
    """Nobody listens at it, and nobody can come to."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def _config(
    path: Path, servers: str, *, topics: str = "topics = 'orders'", out: str = "out"
) -> PipelineConfig:
    path.write_text(_FILE.format(servers=servers, topics=topics, out=out))
    return PipelineFile(path, {}).load()


def _source(config: PipelineConfig) -> TopicSource:
    (source,) = config.topic_sources()
    return source


def test_topics_that_are_there_are_not_talked_about(broker: EmbeddedBroker, tmp_path: Path) -> None:
    TopicDirectory(_config(tmp_path / "p.toml", broker.bootstrap_servers)).check()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"topics": "topics = ['orders', 'odrers']"},
            "[[source]] orders topics: there is no topic 'odrers' at ",
        ),
        ({"out": "nowhere"}, "[[sink]] out topic: there is no topic 'nowhere' at "),
        (
            {"topics": "topic_pattern = '*'"},
            "[[source]] orders topic_pattern: no regular expression: ",
        ),
        (
            {"topics": "topics = 'orders'\noptions = { 'kafka.fetch.mini.bytes' = 1 }"},
            "[[source]] orders options.kafka.fetch.mini.bytes: Kafka's clients have no setting",
        ),
        (
            {"topics": f"topics = 'orders'\noptions = {_TLS}"},
            "[[source]] orders options.kafka.ssl.truststore.location: Invalid value /nowhere.pem: ",
        ),
    ],
)
def test_what_is_not_there_is_one_line(
    broker: EmbeddedBroker, tmp_path: Path, changed: dict[str, str], said: str
) -> None:
    file = tmp_path / "p.toml"
    _config(file, broker.bootstrap_servers, **changed)

    outcome = run_ours("kafka-pipeline", "run", str(file), "--validate")

    assert (outcome.code, outcome.stdout) == (1, "")
    (line,) = outcome.stderr.splitlines()
    assert line.startswith(f"{file}: {said}")


def test_broker_that_does_not_answer_is_named_in_time(closed_port: int, tmp_path: Path) -> None:
    servers = f"127.0.0.1:{closed_port}"
    directory = TopicDirectory(_config(tmp_path / "p.toml", servers), timeout_ms=500)
    begun = time.monotonic()

    with pytest.raises(PipelineError, match=rf"bootstrap_servers: no answer from {servers}: "):
        directory.check()

    assert time.monotonic() - begun < 10


def test_new_partitions_start_at_their_beginning(broker: EmbeddedBroker, tmp_path: Path) -> None:
    pattern = "topic_pattern = '.*orders'"
    config = _config(tmp_path / "p.toml", broker.bootstrap_servers, topics=pattern)
    directory = TopicDirectory(config)

    latest = directory.latest_offsets(_source(config))
    later = directory.with_new_partitions(
        replace(_source(config)), {"orders": {"0": 5}, "gone": {"0": 1}}
    )

    assert latest == {"orders": {"0": 0, "1": 0}, "more-orders": {"0": 0, "1": 0}}
    assert later == {
        "orders": {"0": 5, "1": EARLIEST},
        "more-orders": {"0": EARLIEST, "1": EARLIEST},
    }


def test_latest_is_before_open_transactions_for_a_source_of_committed_records(
    broker: EmbeddedBroker, tmp_path: Path
) -> None:
    broker.create_topic("opened")
    servers = broker.bootstrap_servers
    plain = _config(tmp_path / "p.toml", servers, topics="topics = 'opened'")
    options = "options.kafka.isolation.level = 'read_committed'"
    committed = _config(tmp_path / "c.toml", servers, topics=f"topics = 'opened'\n{options}")

    with KafkaProducer(bootstrap_servers=servers, transactional_id="opened") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("opened", b"not committed yet")
        producer.flush()
        everything = TopicDirectory(plain).latest_offsets(_source(plain))
        stable = TopicDirectory(committed).latest_offsets(_source(committed))
        producer.abort_transaction()

    assert (everything, stable) == ({"opened": {"0": 1}}, {"opened": {"0": 0}})
