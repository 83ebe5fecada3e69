"""Apache Kafka and kafkapy compact the same log to the same records, and read each other's."""

import random
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer

from kafkapy.common.record.file_records import FileRecords
from kafkapy.common.record.record import Record
from kafkapy.common.record.record_batch import CONTROL_FLAG_MASK
from kafkapy.storage.file_system import OsFileSystem
from kafkapy.storage.transaction_index import AbortedTxn, TransactionIndex
from tests.compat.apache_tools import KafkaTool
from tests.compat.brokers import start_apache, start_kafkapy
from tests.compat.cases import CODECS
from tests.compat.confluent_client import ConfluentAdmin, ConfluentClient
from tests.compat.foreign_logs import serving
from tests.helpers.ended_transactions import await_ended_transactions
from tests.helpers.waiting import wait_until

_TOPIC = "compacted"
_EAGER_CLEANER = {"log.cleaner.backoff.ms": "100"}
_NEVER = ("min.cleanable.dirty.ratio", "1.0")
_ALWAYS = ("min.cleanable.dirty.ratio", "0.001")
_CONFIG = {"cleanup.policy": "compact", "segment.bytes": "20000", "index.interval.bytes": "1000"}
_KEYS = 40
_WAIT_S = 20
# A gap between offsets, which the tool points out, is what compaction is about.
_COMPLAINTS = re.compile(r"mismatch|out of order|isvalid: false|corrupt|exception|fail", re.I)
_DUMPED = {".log", ".index", ".timeindex", ".txnindex"}


@dataclass(frozen=True, slots=True)
class CompactedLogs:
    """The same log: as written by Apache Kafka, and as compacted by either broker."""

    written: Path
    by_apache: Path
    by_us: Path


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> CompactedLogs:
    work_dir = tmp_path_factory.mktemp("compaction")
    written = work_dir / "written"
    apache = start_apache(work_dir / "apache", overrides=_EAGER_CLEANER)
    assert apache.log_dir is not None
    try:
        admin = ConfluentAdmin(apache.bootstrap)
        admin.create_topic(_TOPIC, 1, {**_CONFIG, _NEVER[0]: _NEVER[1]})
        _write(apache.bootstrap)
        await_ended_transactions(apache.bootstrap)
        shutil.copytree(apache.log_dir / f"{_TOPIC}-0", written / f"{_TOPIC}-0")
        admin.set_topic_config(_TOPIC, *_ALWAYS)
        wait_until(_is_compacted(apache.log_dir), _WAIT_S)
    finally:
        apache.stop()
    start = partial(start_kafkapy, overrides=_EAGER_CLEANER)
    config = {**_CONFIG, _ALWAYS[0]: _ALWAYS[1]}
    with serving(start, work_dir / "ours", written, [_TOPIC], config) as broker:
        assert broker.log_dir is not None
        wait_until(_is_compacted(broker.log_dir), _WAIT_S)
    return CompactedLogs(written, apache.log_dir, broker.log_dir)


def _is_compacted(log_dir: Path) -> Callable[[], bool]:
    path = log_dir / "cleaner-offset-checkpoint"
    return lambda: path.exists() and re.search(rf"{_TOPIC} 0 [1-9]", path.read_text()) is not None


def _write(bootstrap: str) -> None:
    """Batches of every codec and size, tombstones, and transactions of either end."""
    rng = random.Random(7)
    for _ in range(2):
        for codec in CODECS:
            producer = Producer(
                {
                    "bootstrap.servers": bootstrap,
                    "compression.type": codec,
                    "enable.idempotence": True,
                    "transactional.id": codec,
                    "linger.ms": 20,
                }
            )
            producer.init_transactions(_WAIT_S)
            for commit in (True, False, True):
                producer.begin_transaction()
                for _ in range(rng.randint(1, 60)):
                    key = b"key-%d" % rng.randrange(_KEYS)
                    value = None if rng.random() < 0.1 else b"v" * rng.randint(1, 200)
                    producer.produce(_TOPIC, value, key, partition=0, headers=[("h", b"1")])
                producer.flush(_WAIT_S)
                if commit:
                    producer.commit_transaction(_WAIT_S)
                else:
                    producer.abort_transaction(_WAIT_S)


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """A batch but for the time at which it was compacted."""

    base_offset: int
    last_offset: int
    max_timestamp: int
    attributes: int
    producer: tuple[int, int, int]
    records: tuple[Record, ...]


def _batches(log_dir: Path) -> list[StoredBatch]:
    found = []
    for path in sorted((log_dir / f"{_TOPIC}-0").glob("*.log")):
        channel = OsFileSystem().open(str(path), read_only=True)
        for batch in FileRecords(channel).batches():
            assert batch.is_valid
            found.append(
                StoredBatch(
                    batch.base_offset,
                    batch.last_offset,
                    batch.max_timestamp,
                    batch.attributes,
                    (batch.producer_id, batch.producer_epoch, batch.base_sequence),
                    # Not the size: a delete horizon makes timestamps longer.
                    tuple(record._replace(size_in_bytes=0) for record in batch.records()),
                )
            )
        channel.close()
    return found


def _aborted_txns(log_dir: Path) -> list[AbortedTxn]:
    found = []
    for path in sorted((log_dir / f"{_TOPIC}-0").glob("*.txnindex")):
        found += TransactionIndex(0, str(path), OsFileSystem()).all_aborted_txns()
    return found


def test_both_keep_the_same_batches(logs: CompactedLogs) -> None:
    written, by_apache, by_us = map(_batches, (logs.written, logs.by_apache, logs.by_us))

    assert by_us == by_apache
    assert 0 < sum(len(b.records) for b in by_us) < sum(len(b.records) for b in written) / 2


def test_both_keep_the_same_aborted_transactions(logs: CompactedLogs) -> None:
    assert _aborted_txns(logs.by_us) == _aborted_txns(logs.by_apache) != []


def test_dump_log_finds_no_fault(logs: CompactedLogs, kafka_tool: KafkaTool) -> None:
    directory = logs.by_us / f"{_TOPIC}-0"
    files = [path for path in directory.iterdir() if path.suffix in _DUMPED]
    assert {path.suffix for path in files} == _DUMPED

    dumped = kafka_tool(
        "kafka-dump-log",
        *("--deep-iteration", "--files", ",".join(map(str, sorted(files)))),
    )

    assert _COMPLAINTS.findall(dumped) == []
    records = [line for line in dumped.splitlines() if line.startswith("| offset:")]
    assert len(records) == sum(len(batch.records) for batch in _batches(logs.by_us))


def test_what_apache_kafka_compacted_is_served(logs: CompactedLogs, tmp_path: Path) -> None:
    aborted = _aborted_txns(logs.written)
    expected = {r.key: r.value for r in _committed(_batches(logs.written), aborted)}
    count = len(_committed(_batches(logs.by_apache), aborted))

    with serving(start_kafkapy, tmp_path, logs.by_apache, [_TOPIC], _CONFIG) as broker:
        client = ConfluentClient(broker.bootstrap, **{"isolation.level": "read_committed"})
        got = client.consume(_TOPIC, 0, count)

    assert {message.key: message.value for message in got} == expected


def _committed(batches: list[StoredBatch], aborted: list[AbortedTxn]) -> list[Record]:
    return [
        record
        for batch in batches
        if not batch.attributes & CONTROL_FLAG_MASK
        and not any(
            txn.producer_id == batch.producer[0]
            and txn.first_offset <= batch.base_offset < txn.last_offset
            for txn in aborted
        )
        for record in batch.records
    ]
