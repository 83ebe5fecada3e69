"""The log directories of kafkapy and Apache Kafka are the same: each reads the other's."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.compat.brokers import Broker, start_apache, start_broker
from tests.compat.cases import CODECS, EVERYTHING, Message, assert_received, numbered, samples
from tests.compat.confluent_client import ConfluentAdmin, ConfluentClient
from tests.compat.contract import LATEST
from tests.compat.foreign_logs import serving
from tests.compat.tools import run_kafka_tool

# Several segments and several index entries from a few hundred records.
_SMALL_SEGMENTS = {"segment.bytes": "20000", "index.interval.bytes": "1000"}
_COMPLAINTS = re.compile(
    r"mismatch|non-consecutive|out of order|isvalid: false|corrupt|invalid|exception|fail", re.I
)
_TRANSACTIONS = "transactions"


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


def _write_transactions(bootstrap: str) -> list[Message]:
    """Commits one transaction, aborts the next, commits a third; the committed messages."""
    ConfluentAdmin(bootstrap).create_topic(_TRANSACTIONS, 1, _SMALL_SEGMENTS)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "disk-test"})
    producer.init_transactions(20)
    messages = numbered(300)
    for number, part in enumerate((messages[:100], messages[100:200], messages[200:])):
        producer.begin_transaction()
        for message in part:
            producer.produce(_TRANSACTIONS, message.value, message.key, partition=0)
        if number == 1:
            producer.flush(20)
            producer.abort_transaction(20)
        else:
            producer.commit_transaction(20)
    return messages[:100] + messages[200:]


def _partition_files(log_dir: Path, suffix: str) -> str:
    found = sorted(log_dir.glob(f"disk-*/*{suffix}"))
    assert found, f"no {suffix} file in {log_dir}"
    return ",".join(map(str, found))


class TestOurDirectoryReadByApacheKafka:
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
        self, written: tuple[Path, dict[str, list[Message]]]
    ) -> None:
        log_dir, topics = written

        dumped = run_kafka_tool(
            "kafka.tools.DumpLogSegments",
            *("--deep-iteration", "--print-data-log", "--files", _partition_files(log_dir, ".log")),
        )

        assert _COMPLAINTS.findall(dumped) == []
        records = [line for line in dumped.splitlines() if line.startswith("| offset:")]
        assert len(records) == sum(map(len, topics.values()))
        assert dumped.count("Dumping ") > 2 * len(topics)

    def test_dump_log_finds_the_indexes_sane(
        self, written: tuple[Path, dict[str, list[Message]]]
    ) -> None:
        log_dir, _ = written
        files = _partition_files(log_dir, "index")

        sanity = run_kafka_tool(
            "kafka.tools.DumpLogSegments", "--index-sanity-check", "--files", files
        )
        verified = run_kafka_tool(
            "kafka.tools.DumpLogSegments", "--verify-index-only", "--files", files
        )

        assert sanity.count("passed sanity check") == len(files.split(","))
        assert _COMPLAINTS.findall(verified) == []

    def test_dump_log_reads_index_entries_and_producer_snapshots(
        self, written: tuple[Path, dict[str, list[Message]]]
    ) -> None:
        log_dir, topics = written
        files = f"{_partition_files(log_dir, 'index')},{_partition_files(log_dir, '.snapshot')}"

        dumped = run_kafka_tool("kafka.tools.DumpLogSegments", "--files", files)

        assert _COMPLAINTS.findall(dumped) == []
        assert len(re.findall(r"offset: \d+ position: \d+", dumped)) > len(topics)
        assert len(re.findall(r"timestamp: \d+ offset: \d+", dumped)) > len(topics)
        assert len(set(re.findall(r"producerId: (\d+)", dumped))) == len(topics)

    def test_apache_kafka_serves_the_partitions(
        self, written: tuple[Path, dict[str, list[Message]]], tmp_path: Path
    ) -> None:
        log_dir, topics = written

        with serving(start_apache, tmp_path, log_dir, list(topics), _SMALL_SEGMENTS) as broker:
            _assert_served(broker, topics)


@dataclass(frozen=True, slots=True)
class ApacheWritten:
    log_dir: Path
    topics: dict[str, list[Message]]
    committed: list[Message]


class TestApacheKafkasDirectoryReadByUs:
    @pytest.fixture(scope="module")
    @staticmethod
    def written(tmp_path_factory: pytest.TempPathFactory) -> ApacheWritten:
        broker = start_apache(tmp_path_factory.mktemp("apache"))
        try:
            topics = _write_topics(broker.bootstrap)
            committed = _write_transactions(broker.bootstrap)
        finally:
            broker.stop()
        assert broker.log_dir is not None
        return ApacheWritten(broker.log_dir, topics, committed)

    def test_every_record_is_served(self, written: ApacheWritten, tmp_path: Path) -> None:
        with serving(
            start_broker, tmp_path, written.log_dir, list(written.topics), _SMALL_SEGMENTS
        ) as broker:
            _assert_served(broker, written.topics)

    def test_aborted_records_are_withheld_from_a_committed_reader(
        self, written: ApacheWritten, tmp_path: Path
    ) -> None:
        with serving(
            start_broker, tmp_path, written.log_dir, [_TRANSACTIONS], _SMALL_SEGMENTS
        ) as broker:
            committed = ConfluentClient(
                broker.bootstrap, **{"isolation.level": "read_committed"}
            ).consume(_TRANSACTIONS, 0, 200)
            everything = ConfluentClient(
                broker.bootstrap, **{"isolation.level": "read_uncommitted"}
            ).consume(_TRANSACTIONS, 0, 300)

        assert_received(committed, written.committed)
        assert_received(everything, numbered(300))

    def test_indexes_and_state_left_out_are_built_again(
        self, written: ApacheWritten, tmp_path: Path
    ) -> None:
        stripped = tmp_path / "stripped"
        shutil.copytree(written.log_dir, stripped)
        for file in [*stripped.glob("disk-*/*index"), *stripped.glob("disk-*/*.snapshot")]:
            file.unlink()

        with serving(
            start_broker, tmp_path, stripped, list(written.topics), _SMALL_SEGMENTS
        ) as broker:
            _assert_served(broker, written.topics)


def _assert_served(broker: Broker, topics: dict[str, list[Message]]) -> None:
    admin = ConfluentAdmin(broker.bootstrap)
    client = ConfluentClient(broker.bootstrap)
    for topic, messages in topics.items():
        # First a consumer: unlike the admin client it waits for the leader after a restart.
        assert_received(client.consume(topic, 0, len(messages)), messages)
        assert admin.offset_for(topic, 0, LATEST) == len(messages)
        middle = len(messages) // 2
        tail = client.consume(topic, 0, len(messages) - middle, offset=middle)
        assert_received(tail, messages[middle:])
        client.produce(topic, numbered(3))
        assert admin.offset_for(topic, 0, LATEST) == len(messages) + 3
