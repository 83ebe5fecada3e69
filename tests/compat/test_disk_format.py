"""Apache Kafka's kafka-dump-log reads our log directory."""

import re
from pathlib import Path

import pytest

from tests.compat.apache_tools import KafkaTool
from tests.compat.brokers import start_broker
from tests.compat.cases import CODECS, EVERYTHING, Message, numbered, samples
from tests.compat.confluent_client import ConfluentAdmin, ConfluentClient

# Several segments and several index entries from a few hundred records.
_SMALL_SEGMENTS = {"segment.bytes": "20000", "index.interval.bytes": "1000"}
_COMPLAINTS = re.compile(
    r"mismatch|non-consecutive|out of order|isvalid: false|corrupt|invalid|exception|fail", re.I
)


def _write_topics(bootstrap: str) -> dict[str, list[Message]]:
    """A topic per codec, in batches of one and of many, and what each must give back."""
    admin = ConfluentAdmin(bootstrap)
    singly = ConfluentClient(bootstrap, **{"batch.num.messages": "1"})
    together = ConfluentClient(bootstrap, **{"batch.num.messages": "100"})
    written = {}
    for codec in CODECS:
        topic = f"disk-{codec}"
        admin.create_topic(topic, 1, _SMALL_SEGMENTS)
        messages = [*samples(EVERYTHING), *numbered(500), *numbered(300, first=500)]
        together.produce(topic, messages[:-300], codec=codec, idempotent=True)
        singly.produce(topic, messages[-300:], codec=codec)
        written[topic] = messages
    return written


def _partition_files(log_dir: Path, suffix: str) -> str:
    found = sorted(log_dir.glob(f"disk-*/*{suffix}"))
    assert found, f"no {suffix} file in {log_dir}"
    return ",".join(map(str, found))


class TestOurFilesReadByKafkasDumpLog:
    @pytest.fixture(scope="module")
    @staticmethod
    def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[Message]]]:
        """A stopped broker's log dir, and what was written to it."""
        broker = start_broker(tmp_path_factory.mktemp("ours"))
        try:
            topics = _write_topics(broker.bootstrap)
        finally:
            broker.stop()
        assert broker.log_dir is not None
        return broker.log_dir, topics

    def test_dump_log_finds_every_record_and_no_fault(
        self, written: tuple[Path, dict[str, list[Message]]], kafka_tool: KafkaTool
    ) -> None:
        log_dir, topics = written

        dumped = kafka_tool(
            "kafka-dump-log",
            *("--deep-iteration", "--print-data-log", "--files", _partition_files(log_dir, ".log")),
        )

        assert _COMPLAINTS.findall(dumped) == []
        records = [line for line in dumped.splitlines() if line.startswith("| offset:")]
        assert len(records) == sum(map(len, topics.values()))
        assert dumped.count("Dumping ") > 2 * len(topics)

    def test_dump_log_finds_the_indexes_sane(
        self, written: tuple[Path, dict[str, list[Message]]], kafka_tool: KafkaTool
    ) -> None:
        log_dir, _ = written
        files = _partition_files(log_dir, "index")

        sanity = kafka_tool("kafka-dump-log", "--index-sanity-check", "--files", files)
        verified = kafka_tool("kafka-dump-log", "--verify-index-only", "--files", files)

        assert sanity.count("passed sanity check") == len(files.split(","))
        assert _COMPLAINTS.findall(verified) == []

    def test_dump_log_reads_index_entries_and_producer_snapshots(
        self, written: tuple[Path, dict[str, list[Message]]], kafka_tool: KafkaTool
    ) -> None:
        log_dir, topics = written
        files = f"{_partition_files(log_dir, 'index')},{_partition_files(log_dir, '.snapshot')}"

        dumped = kafka_tool("kafka-dump-log", "--files", files)

        assert _COMPLAINTS.findall(dumped) == []
        assert len(re.findall(r"offset: \d+ position: \d+", dumped)) > len(topics)
        assert len(re.findall(r"timestamp: \d+ offset: \d+", dumped)) > len(topics)
        assert len(set(re.findall(r"producerId: (\d+)", dumped))) == len(topics)
