"""The pipelines of etc/pipelines, each run as it stands."""

import json
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafkapy.testing import BrokerHandle, IsolationLevel
from tests.helpers.ended_transactions import await_ended_transactions
from tests.helpers.pipelines import EXAMPLES, load, once, run, send
from tests.helpers.spark import needs_limits
from tests.pipeline.conftest import MakeTopic

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def order_topics(spark_broker: BrokerHandle) -> Iterator[None]:
    """Those that windowed-counts.toml names."""
    topics = ("orders", "orders-per-minute", "orders-dead-letters")
    for topic in topics:
        spark_broker.create_topic(topic, partitions=2)
    yield
    for topic in topics:
        spark_broker.delete_topic(topic)


def _order(number: int, shop: str, at: datetime) -> bytes:
    order = {"order_id": number, "shop": shop, "amount": number / 4, "at": at.isoformat()}
    return json.dumps(order).encode()


def _per_minute(
    orders: list[tuple[int, str, datetime]],
) -> dict[tuple[str, str], tuple[int, float]]:
    """What a batch would compute."""
    sums: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for number, shop, at in orders:
        minute = at.replace(second=0).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        sums[shop, minute].append(number / 4)
    return {key: (len(amounts), round(sum(amounts), 2)) for key, amounts in sums.items()}


@needs_limits
def test_archived_topics_can_be_replayed(
    spark: SparkSession, spark_broker: BrokerHandle, make_topic: MakeTopic, tmp_path: Path
) -> None:
    # Its records are of a day long gone.
    archived, target = make_topic(configs={"retention.ms": "-1"}), make_topic()
    day_ms = int(NOON.timestamp() * 1000)
    send(spark_broker, archived, [b"a", None, b"c"], timestamp_ms=day_ms)
    environment = {
        "BOOTSTRAP": spark_broker.bootstrap_servers,
        "DATA": str(tmp_path),
        "TOPICS": archived,
    }
    archive = once(load(EXAMPLES / "archive.toml", **environment))

    run(spark, archive)
    send(spark_broker, archived, [b"d"], timestamp_ms=day_ms + 24 * 3600 * 1000)
    run(spark, archive)

    files = tmp_path / "archive" / f"topic={archived}"
    assert {path.name for path in files.iterdir()} == {"date=2026-03-01", "date=2026-03-02"}
    rows = spark.read.parquet(str(tmp_path / "archive")).collect()
    read = [(r.partition, r.offset, r.key, r.value) for r in rows]
    stored = spark_broker.records(archived)
    assert sorted(read, key=str) == sorted(
        ((r.partition, r.offset, r.key, r.value) for r in stored), key=str
    )

    replay = load(
        EXAMPLES / "replay.toml",
        **environment,
        TOPIC=archived,
        TARGET=target,
        FROM="2026-03-01",
        UNTIL="2026-03-02",
    )
    run(spark, replay)

    await_ended_transactions(spark_broker.bootstrap_servers)
    replayed = spark_broker.records(target, isolation=IsolationLevel.READ_COMMITTED)
    first_day = [(r.key, r.value) for r in stored if r.timestamp_ms == day_ms]
    assert sorted(((r.key, r.value) for r in replayed), key=str) == sorted(first_day, key=str)


@pytest.mark.usefixtures("order_topics")
def test_windows_over_late_and_disordered_orders_equal_a_batch(
    spark: SparkSession, spark_broker: BrokerHandle, tmp_path: Path
) -> None:
    in_time = [
        (n, "ab"[n % 2], NOON + timedelta(seconds=(n * 37) % 1500)) for n in range(200)
    ]  # over 25 minutes, in no order
    # The watermark is then ten minutes behind the newest, at 12:14 and some.
    too_late = [(n, f"late{n}", NOON + timedelta(minutes=n - 1000)) for n in range(1000, 1005)]
    late = [(n, "a", NOON + timedelta(minutes=16, seconds=n - 2000)) for n in range(2000, 2010)]
    ends_all = (9999, "z", NOON + timedelta(hours=3))
    bad = [b"{", b'{"order_id": 1, "shop": "a"}', b'{"order_id": 1, "shop": "a", "at": "noon"}']
    config = once(
        load(
            EXAMPLES / "windowed-counts.toml",
            BOOTSTRAP=spark_broker.bootstrap_servers,
            DATA=str(tmp_path),
        )
    )

    send(spark_broker, "orders", [_order(*order) for order in in_time])
    run(spark, config)
    send(spark_broker, "orders", [*bad, *(_order(*o) for o in [*too_late, *late, ends_all])])
    progress = run(spark, config)

    counts = {}
    await_ended_transactions(spark_broker.bootstrap_servers)
    committed = spark_broker.records("orders-per-minute", isolation=IsolationLevel.READ_COMMITTED)
    for record in committed:
        row = json.loads(record.value or b"")
        assert record.key == row["shop"].encode()
        key = row["shop"], row["minute"]
        assert key not in counts
        counts[key] = row["orders"], row["amount"]
    assert counts == _per_minute(in_time + late)
    assert sum(batch.late_rows for batch in progress.of("counts")) == len(too_late)
    letters = spark_broker.records("orders-dead-letters", isolation=IsolationLevel.READ_COMMITTED)
    assert {letter.value for letter in letters} == set(bad)
    assert len(letters) == len(bad)
    assert sum(b.dead_letters for b in progress.of("dead_letters_orders")) == len(bad)
    errors = {letter.value: dict(letter.headers)["pipeline.error"] for letter in letters}
    assert errors == {
        bad[0]: b"not JSON",
        bad[1]: b"NOT NULL but missing or null: at",
        bad[2]: b"not of the schema's type: at",
    }


def test_audit_finds_what_is_wrong_with_a_log(
    spark: SparkSession, spark_broker: BrokerHandle, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic(1)
    for value in (b"first", b"second", b"third", b"fourth"):
        send(spark_broker, topic, [value])
    logs = tmp_path / "logs" / f"{topic}-0"
    logs.mkdir(parents=True)
    (written,) = (spark_broker.log_dir / f"{topic}-0").glob("*.log")
    data = written.read_bytes()
    (sound := tmp_path / "logs" / f"{topic}-1").mkdir()
    (sound / written.name).write_bytes(data)
    batches = _split(data)
    damaged = bytearray(batches[2])
    damaged[-1] ^= 1
    # The second is missing, the third does not match its checksum, the fourth is there twice.
    broken = b"".join([batches[0], damaged, batches[3], batches[3]])
    (logs / written.name).write_bytes(broken)

    report = tmp_path / "report"
    config = load(EXAMPLES / "audit.toml", LOG_DIR=str(tmp_path / "logs"), REPORT=str(report))
    run(spark, config)
    run(spark, config)

    rows = spark.read.parquet(str(report / "partitions")).orderBy("partition").collect()
    found = [
        (r.partition, r.batches, r.corruptBatches, r.gaps, r.missingOffsets, r.duplicateBatches)
        for r in rows
    ]
    assert found == [(0, 4, 1, 1, 1, 1), (1, 4, 0, 0, 0, 0)]


def _split(data: bytes) -> list[bytes]:
    """Batches; each begins with its offset and its size without these twelve bytes."""
    batches = []
    while data:
        size = 12 + int.from_bytes(data[8:12], "big")
        batches.append(data[:size])
        data = data[size:]
    return batches
