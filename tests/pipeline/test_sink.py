"""format("kafkapy") written to by Spark, beside Spark's own connector where that is to be had."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from kafkapy.pipeline.pipeline_errors import SchemaError
from kafkapy.pipeline.sink.sink_schema import SinkSchema
from kafkapy.testing.broker_process import BrokerProcess
from kafkapy.testing.topic_reader import IsolationLevel
from tests.helpers.ended_transactions import await_ended_transactions
from tests.pipeline.conftest import MakeTopic

READ_COMMITTED = IsolationLevel.READ_COMMITTED

# Frames that cannot be written: their columns, and the one that our message names.
REFUSED = {
    "'t' as topic, 'k' as key": "value",
    "'t' as topic, 1 as value": "value",
    "'t' as topic, 'v' as value, 1 as key": "key",
    "'t' as topic, 'v' as value, 1L as partition": "partition",
    "'t' as topic, 'v' as value, 'h' as headers": "headers",
    "binary('t') as topic, 'v' as value": "topic",
    "'v' as value": "topic",
}


def write(frame: DataFrame, broker: BrokerProcess, *, to: str = "kafkapy", **options: str) -> None:
    (
        frame.write.format(to)
        .mode("append")
        .options(**{"kafka.bootstrap.servers": broker.bootstrap_servers, **options})
        .save()
    )


def content(broker: BrokerProcess, topic: str) -> list[tuple]:
    await_ended_transactions(broker.bootstrap_servers)
    records = broker.records(topic, isolation=READ_COMMITTED)
    return sorted(((r.partition, r.key, r.value, r.headers) for r in records), key=repr)


def all_kinds(spark: SparkSession, topic: str) -> DataFrame:
    """Rows with everything that a record can have or lack."""
    return spark.range(0, 300, 1, 3).selectExpr(
        f"'{topic}' as topic",
        "if(id % 3 = 0, cast(id % 2 as int), null) as partition",
        "if(id % 5 = 0, null, cast(id as string)) as key",
        "if(id % 7 = 0, null, cast(repeat(cast(id as string), 20) as binary)) as value",
        "if(id % 2 = 0, array(named_struct('key', 'h', 'value', binary(cast(id as string))),"
        " named_struct('key', 'n', 'value', cast(null as binary))), null) as headers",
        "id as not_written",
    )


@pytest.mark.parametrize("options", [{}, {"exactlyOnce": "true"}], ids=["default", "exactly once"])
def test_batch_is_written_row_for_row(
    spark: SparkSession, spark_broker: BrokerProcess, topic: str, options: Mapping[str, str]
) -> None:
    frame = all_kinds(spark, topic)

    write(frame, spark_broker, **options)

    stored = content(spark_broker, topic)
    rows = frame.collect()
    # A key has a place of its own; the others are checked by it.
    by_key = {key: (partition, value, headers) for partition, key, value, headers in stored if key}
    assert len(stored) == len(rows) == 300
    for row in rows:
        if row.key is None:
            continue
        partition, value, headers = by_key[row.key.encode()]
        assert row.partition in (None, partition)
        assert value == (None if row.value is None else bytes(row.value))
        expected = [(h.key, None if h.value is None else bytes(h.value)) for h in row.headers or []]
        assert list(headers) == expected


def test_official_sink_writes_the_same(
    spark: SparkSession, spark_broker: BrokerProcess, make_topic: MakeTopic, official_format: str
) -> None:
    # Rows without key and partition go where each client likes.
    where = "partition is not null or key is not null"
    ours, official = make_topic(2), make_topic(2)

    write(all_kinds(spark, ours).where(where), spark_broker)
    write(all_kinds(spark, official).where(where), spark_broker, to=official_format)

    assert content(spark_broker, ours) == content(spark_broker, official) != []


def refused_frames(spark: SparkSession) -> list[tuple[DataFrame, str]]:
    return [
        (spark.range(1).selectExpr(*columns.split(", ")), named)
        for columns, named in REFUSED.items()
    ]


def test_wrong_columns_are_refused_by_name_before_a_task_runs(
    spark: SparkSession, spark_broker: BrokerProcess
) -> None:
    for frame, named in refused_frames(spark):
        with pytest.raises(SchemaError, match=f"column {named}: "):
            SinkSchema.of(frame.schema, None)

    with pytest.raises(AnalysisException, match=f"SchemaError: column {named}: "):
        write(frame, spark_broker)


def test_official_sink_refuses_them_too(
    spark: SparkSession, spark_broker: BrokerProcess, official_format: str
) -> None:
    for frame, named in refused_frames(spark):
        with pytest.raises(AnalysisException, match=f"(?i){named}"):
            write(frame, spark_broker, to=official_format)


def test_bad_row_fails_the_job_which_leaves_nothing_behind(
    spark: SparkSession, spark_broker: BrokerProcess, topic: str
) -> None:
    frame = spark.range(0, 100, 1, 2).selectExpr(
        f"if(id = 70, null, '{topic}') as topic", "cast(id as string) as value"
    )

    with pytest.raises(PySparkException, match=r"row 20 of task 1: column topic: is null"):
        write(frame, spark_broker, exactlyOnce="true")

    assert content(spark_broker, topic) == []


def test_overwriting_is_refused(
    spark: SparkSession, spark_broker: BrokerProcess, topic: str
) -> None:
    frame = spark.range(1).selectExpr("cast(id as string) as value")
    writer = frame.write.format("kafkapy").options(
        **{"kafka.bootstrap.servers": spark_broker.bootstrap_servers, "topic": topic}
    )

    with pytest.raises(PySparkException, match="mode: a topic cannot be overwritten"):
        writer.mode("overwrite").save()
    with pytest.raises(PySparkException, match=r"cannot be written in the .*Ignore.* mode"):
        writer.mode("ignore").save()


def test_stream_goes_on_where_it_stopped(
    spark: SparkSession, spark_broker: BrokerProcess, make_topic: MakeTopic, tmp_path: Path
) -> None:
    source, sink = make_topic(2), make_topic(2)
    servers = {"kafka.bootstrap.servers": spark_broker.bootstrap_servers}

    def copy() -> None:
        rows = (
            spark.readStream.format("kafkapy")
            .options(**servers, subscribe=source, startingOffsets="earliest")
            .load()
        )
        query = (
            rows.select("key", "value")
            .writeStream.format("kafkapy")
            .options(**servers, topic=sink, exactlyOnce="true")
            .option("checkpointLocation", str(tmp_path))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    for start in (0, 100):
        numbers = spark.range(start, start + 100).selectExpr(
            "cast(id as string) as key", "cast(id as string) as value"
        )
        write(numbers, spark_broker, topic=source)
        copy()

    copied = sorted(int(value) for _, key, value, _ in content(spark_broker, sink) if key == value)
    assert copied == list(range(200))
    decided = [spark_broker.committed(group, sink) for group in spark_broker.groups()]
    assert [offsets for offsets in decided if offsets] == [{0: 2}]
