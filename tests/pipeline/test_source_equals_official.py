"""Spark's own connector and ours, side by side on the same topics."""

import json
from collections import Counter
from functools import partial, reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

from kafkapy.testing.broker_process import BrokerProcess
from tests.helpers.spark import needs_limits
from tests.pipeline.conftest import MakeTopic
from tests.pipeline.topics import KEPT, mixed_records

ORDER = ("case", "topic", "partition", "offset")
COMMITTED = {"kafka.isolation.level": "read_committed"}


def test_batches_are_the_same(
    spark: SparkSession, spark_broker: BrokerProcess, make_topic: MakeTopic, official_format: str
) -> None:
    topic, other = make_topic(2, configs=KEPT), make_topic(1)
    mixed_records(spark_broker, topic)

    def offsets(first: int, second: int) -> str:
        return json.dumps({topic: {"0": first, "1": second}})

    cases: list[dict[str, str]] = [
        {"subscribe": f"{topic},{other}", "includeHeaders": "true"},
        {"subscribe": topic, "includeHeaders": "true", **COMMITTED},
        {"subscribePattern": f"{topic[:-2]}.*", "minPartitions": "7", **COMMITTED},
        {"assign": json.dumps({topic: [1]}), "maxRecordsPerPartition": "4"},
        {"subscribe": topic, "startingOffsets": offsets(17, -2), "endingOffsets": offsets(83, -1)},
        {"subscribe": topic, "startingOffsets": offsets(5, 5), "endingOffsets": offsets(5, 9)},
        {
            "subscribe": topic,
            "startingTimestamp": "1700000002000",
            "endingTimestamp": "1700000003000",
        },
        {
            "subscribe": topic,
            "startingOffsetsByTimestamp": offsets(1_700_000_003_990, 9_999_999_999_999),
            "startingOffsetsByTimestampStrategy": "latest",
        },
        {"subscribe": topic, "endingOffsetsByTimestamp": offsets(1_700_000_001_000, 11)},
    ]
    servers = {"kafka.bootstrap.servers": spark_broker.bootstrap_servers}
    schemas: dict[str, list[str]] = {}
    found: dict[str, list[tuple[object, ...]]] = {}
    for name in (official_format, "kafkapy"):
        frames = [spark.read.format(name).options(**servers | case).load() for case in cases]
        schemas[name] = [frame.schema.json() for frame in frames]
        # One query for all of them: each has a price of its own.
        numbered = [frame.withColumn("case", lit(i)) for i, frame in enumerate(frames)]
        whole = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), numbered)
        found[name] = _rows(whole)

    assert schemas["kafkapy"] == schemas[official_format]
    assert found["kafkapy"] == found[official_format]
    counts = Counter(row[-1] for row in found["kafkapy"])
    assert [counts[number] for number in range(len(cases))] == [
        123, 113, 113, 23, 89, 4, 30, 20, 21
    ]  # fmt: skip


@needs_limits
def test_streams_are_the_same_batch_for_batch(
    spark: SparkSession,
    spark_broker: BrokerProcess,
    make_topic: MakeTopic,
    official_format: str,
    tmp_path: Path,
) -> None:
    topic = make_topic(2, configs=KEPT)
    mixed_records(spark_broker, topic)
    options = {
        "kafka.bootstrap.servers": spark_broker.bootstrap_servers,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "50",
        **COMMITTED,
    }
    seen: dict[str, list[list[tuple[object, ...]]]] = {}
    for name in (official_format, "kafkapy"):
        batches = seen[name] = []
        query = (
            spark.readStream.format(name)
            .options(**options)
            .load()
            .writeStream.foreachBatch(partial(_append, batches))
            .option("checkpointLocation", str(tmp_path / name))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(90)

    assert seen["kafkapy"] == seen[official_format]
    assert len(seen["kafkapy"]) == 3


def _rows(frame: DataFrame) -> list[tuple[object, ...]]:
    # Sorted here: Spark would read everything once more to learn where to divide it.
    rows = sorted(frame.collect(), key=lambda row: [row[name] for name in ORDER if name in row])
    return [tuple(_plain(value) for value in row) for row in rows]


def _append(batches: list[list[tuple[object, ...]]], frame: DataFrame, _: int) -> None:
    batches.append(_rows(frame))


def _plain(value: object) -> object:
    if isinstance(value, list):
        return [tuple(map(_plain, header)) for header in value]
    return bytes(value) if isinstance(value, bytearray) else value
