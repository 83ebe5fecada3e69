"""kafka-dump-log beside Apache Kafka's, on the files of a broker that has stopped."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kafkapy.common.compression import CompressionType
from tests.compat.apache_tools import ApacheTools
from tests.compat.brokers import start_kafkapy
from tests.compat.outcome import run_ours
from tests.helpers.records import records
from tests.tools.compare.conftest import Compare

_TIMESTAMP = 1_700_000_000_000
_SEGMENT = "00000000000000000000.log"
_SMALL_INDEX_INTERVAL = {"index.interval.bytes": "100"}


@pytest.fixture(scope="module")
def log_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Records of all codecs, with and without keys, headers and values; transactions; a group."""
    work_dir = tmp_path_factory.mktemp("dumped")
    overrides = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
    broker = start_kafkapy(work_dir, overrides=overrides)
    try:
        _fill(broker.bootstrap)
    finally:
        broker.stop()
    assert broker.log_dir is not None
    yield broker.log_dir


def _fill(bootstrap: str) -> None:
    client = {"bootstrap.servers": bootstrap, "log_level": 0}
    topics = [
        NewTopic("plain", 1, 1, config=_SMALL_INDEX_INTERVAL),
        NewTopic("txn", 1, 1),
        NewTopic("appended", 1, 1, config={"message.timestamp.type": "LogAppendTime"}),
    ]
    admin = AdminClient(client)
    for created in admin.create_topics(topics).values():
        created.result(10)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = Producer({**client, "compression.type": codec, "linger.ms": 20})
        for i in range(3):
            headers = [("trace", b"x"), ("empty", None)] if i == 1 else None
            key = f"key-{i}-é" if i else None
            value = None if i == 2 else f"value {i} " * 20
            timestamp = _TIMESTAMP + 10 * i
            producer.produce("plain", value, key, headers=headers, timestamp=timestamp)
        producer.produce("appended", "v", timestamp=_TIMESTAMP)
        producer.flush()
    producer = Producer({**client, "transactional.id": "tx", "linger.ms": 20})
    producer.init_transactions(10)
    for end in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        for i in range(3):
            producer.produce("txn", f"t{i}", timestamp=_TIMESTAMP + i)
        producer.flush()
        end(10)
    consumer = Consumer({**client, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["plain"])
    assert consumer.poll(10) is not None
    consumer.commit(asynchronous=False)
    consumer.close()


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--deep-iteration",),
        ("--print-data-log",),
        ("--print-data-log", "--skip-record-metadata"),
        ("--deep-iteration", "--max-bytes", "200"),
        ("--key-decoder-class", "org.apache.kafka.tools.api.StringDecoder"),
    ],
)
@pytest.mark.parametrize("topic", ["plain", "txn", "appended"])
def test_a_segment_is_shown_as_kafka_shows_it(
    compare: Compare, log_dir: Path, topic: str, options: tuple[str, ...]
) -> None:
    for segment in sorted((log_dir / f"{topic}-0").glob("*.log")):
        compare("kafka-dump-log", "--files", str(segment), *options)


def test_groups_and_offsets_are_decoded(compare: Compare, log_dir: Path) -> None:
    segment = log_dir / "__consumer_offsets-0" / _SEGMENT

    shown = compare("kafka-dump-log", "--files", str(segment), "--offsets-decoder")

    assert '"subscription":{"topics":["plain"]' in shown.stdout
    assert 'key: {"type":"1","data":{"group":"g","topic":"plain","partition":0}}' in shown.stdout


def test_transaction_states_are_decoded(compare: Compare, log_dir: Path) -> None:
    segment = log_dir / "__transaction_state-0" / _SEGMENT

    shown = compare("kafka-dump-log", "--files", str(segment), "--transaction-log-decoder")

    assert "state=CompleteAbort,partitions=[]" in shown.stdout


@pytest.mark.parametrize(
    "options", [(), ("--verify-index-only",), ("--index-sanity-check",)], ids=str
)
@pytest.mark.parametrize("suffix", ["index", "timeindex"])
def test_an_index_is_shown_and_verified(
    compare: Compare, log_dir: Path, suffix: str, options: tuple[str, ...]
) -> None:
    files = ",".join(map(str, sorted(log_dir.glob(f"*-0/*.{suffix}"))))

    shown = compare("kafka-dump-log", "--files", files, *options)

    assert shown.stderr == ""


def test_aborted_transactions_and_producers_are_shown(compare: Compare, log_dir: Path) -> None:
    files = [*log_dir.glob("txn-0/*.txnindex"), *log_dir.glob("txn-0/*.snapshot")]

    shown = compare("kafka-dump-log", "--files", ",".join(map(str, sorted(files))))

    assert "firstOffset: 4 lastOffset: 7" in shown.stdout
    assert "producerId: 0 producerEpoch: 0" in shown.stdout


def test_indexes_that_do_not_fit_are_reported(
    apache: ApacheTools, log_dir: Path, tmp_path: Path
) -> None:
    for file in (log_dir / "plain-0").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    index = tmp_path / "00000000000000000000.index"
    time_index = tmp_path / "00000000000000000000.timeindex"
    index.write_bytes((77).to_bytes(4) + index.read_bytes()[4:])
    time_index.write_bytes((_TIMESTAMP + 5).to_bytes(8) + time_index.read_bytes()[8:])
    arguments = ("--files", f"{index},{time_index}", "--verify-index-only")

    theirs = apache.run("kafka-dump-log", *arguments)
    ours = run_ours("kafka-dump-log", *arguments)

    assert ours == theirs
    assert "Index offset: 77" in ours.stderr


def test_bytes_behind_the_last_batch_are_reported(
    compare: Compare, log_dir: Path, tmp_path: Path
) -> None:
    torn = tmp_path / _SEGMENT
    torn.write_bytes((log_dir / "plain-0" / _SEGMENT).read_bytes()[:-5])

    shown = compare("kafka-dump-log", "--files", str(torn))

    assert "invalid bytes at the end" in shown.lines[-1]


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--print-data-log",),
        ("--files", "/nowhere/00000000000000000009.log"),
        ("--files", "/nowhere/name.log"),
        ("--files", "/nowhere/name"),
        ("--files", "/nowhere/partition.metadata"),
        ("--files", "a.log", "--files", "b.log"),
        ("--files", "a.log", "--no-such-option"),
    ],
    ids=" ".join,
)
def test_bad_use_ends_as_in_kafka(compare: Compare, arguments: tuple[str, ...]) -> None:
    outcome = compare("kafka-dump-log", *arguments)

    assert len(outcome.stderr.splitlines()) == 1


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.GZIP], ids=str)
@pytest.mark.parametrize("magic", [0, 1])
def test_records_of_old_formats_are_shown(
    compare: Compare, tmp_path: Path, magic: int, codec: CompressionType
) -> None:
    segment = tmp_path / _SEGMENT
    segment.write_bytes(bytes(records("a", "b", magic=magic, codec=codec, key="k").buffer))

    compare("kafka-dump-log", "--files", str(segment), "--print-data-log")
