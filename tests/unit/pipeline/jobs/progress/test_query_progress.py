import json
from typing import Any

import pytest

from kafkapy.pipeline.jobs.progress.query_progress import (
    PartitionProgress,
    QueryProgress,
    QueryRun,
)
from tests.helpers.query_progress import BEGAN_MS, partition, progress, source, spark_json


def test_a_batch_is_read_from_sparks_report() -> None:
    assert QueryProgress.of_spark(spark_json()) == QueryProgress(
        query=QueryRun(
            "archive",
            "4daefcfe-1f81-4474-a684-f36317c34b49",
            "143e5ca0-afd3-4ee2-8026-d294e5c6a648",
        ),
        batch_id=1,
        timestamp_ms=BEGAN_MS,
        duration_ms=769,
        phases_ms={
            "addBatch": 600,
            "commitOffsets": 68,
            "getBatch": 0,
            "latestOffset": 1,
            "queryPlanning": 31,
            "walCommit": 62,
        },
        rows_in=50,
        rows_out=None,
        input_rows_per_second=5.0,
        processed_rows_per_second=65.0,
        partitions=(
            PartitionProgress("orders", 0, 50, 100, 1000),
            PartitionProgress("orders", 1, 5, 5, 7),
        ),
    )


def test_the_lag_is_what_lies_between_the_batch_and_the_end_of_the_partition() -> None:
    batch = QueryProgress.of_spark(spark_json())

    assert [p.lag for p in batch.partitions] == [900, 2]
    assert batch.lag == 902


def test_an_end_that_was_asked_for_before_the_batch_gives_no_negative_lag() -> None:
    behind = source(end={"0": 100}, latest={"0": 60})

    assert QueryProgress.of_spark(spark_json(sources=[behind])).lag == 0


def test_offsets_of_sparks_own_connector_are_understood() -> None:
    said = source() | {
        "startOffset": {"orders": {"0": 10}},
        "endOffset": {"orders": {"0": 20}, "refunds": {"1": 3}},
        "latestOffset": {"orders": {"0": 25}, "refunds": {"1": 3}},
    }

    assert QueryProgress.of_spark(spark_json(sources=[said])).partitions == (
        PartitionProgress("orders", 0, 10, 20, 25),
        PartitionProgress("refunds", 1, None, 3, 3),
    )


@pytest.mark.parametrize("topic", ["topics", "offsets"])
def test_a_topic_may_have_the_name_of_a_key(topic: str) -> None:
    said = source() | {"startOffset": None, "endOffset": {topic: {"0": 20}}, "latestOffset": None}

    assert QueryProgress.of_spark(spark_json(sources=[said])).partitions == (
        PartitionProgress(topic, 0, None, 20, None),
    )


@pytest.mark.parametrize("offset", [None, {"logOffset": 3}, 12, "12", {"x": {"y": 1}}])
def test_a_source_of_another_kind_has_no_partitions(offset: Any) -> None:
    said = source() | {"startOffset": None, "endOffset": offset, "latestOffset": offset}
    batch = QueryProgress.of_spark(spark_json(sources=[said]))

    assert batch.partitions == ()
    assert batch.lag is None


def test_the_first_batch_has_no_start_and_a_source_may_not_know_the_end() -> None:
    first = source() | {"startOffset": None, "latestOffset": None}
    batch = QueryProgress.of_spark(spark_json(sources=[first]))

    assert batch.partitions[0] == PartitionProgress("orders", 0, None, 100, None)
    assert batch.lag is None


def test_a_partition_read_twice_counts_once_by_the_reader_that_is_behind() -> None:
    ahead, behind = source(end={"0": 90}), source(end={"0": 40})

    assert QueryProgress.of_spark(spark_json(sources=[ahead, behind])).partitions == (
        PartitionProgress("orders", 0, 50, 40, 1000),
    )


@pytest.mark.parametrize(
    ("sink_rows", "observed", "expected"),
    [
        (-1, {}, None),
        (7, {}, 7),
        (0, {}, 0),
        (-1, {"archive": {"rows_out": 5}}, 5),
        (9, {"a": {"rows_out": 5}, "b": {"rows_out": 2}, "c": {"other": 1}}, 7),
        (3, {"a": {"rows_out": None}}, 3),
    ],
)
def test_rows_out_are_those_that_the_query_counts_or_else_the_sink(
    sink_rows: int, observed: dict[str, Any], expected: int | None
) -> None:
    report = spark_json(
        sink={"description": "sink", "numOutputRows": sink_rows}, observedMetrics=observed
    )

    assert QueryProgress.of_spark(report).rows_out == expected


def test_dead_letters_state_and_watermark_are_read() -> None:
    state = {"operatorName": "stateStoreSave", "numRowsTotal": 40, "numRowsDroppedByWatermark": 3}
    batch = QueryProgress.of_spark(
        spark_json(
            stateOperators=[state, state],
            eventTime={"watermark": "2026-11-16T09:21:52.757Z"},
            observedMetrics={"decode": {"dead_letters": 4}},
        )
    )

    assert (batch.state_rows, batch.late_rows, batch.dead_letters) == (80, 6, 4)
    assert batch.watermark_ms == BEGAN_MS


def test_a_watermark_that_was_never_set_is_none() -> None:
    report = spark_json(eventTime={"watermark": "1970-01-01T00:00:00.000Z"})

    assert QueryProgress.of_spark(report).watermark_ms is None


def test_what_spark_leaves_out_is_nothing() -> None:
    report = json.loads(spark_json())
    for absent in ("name", "batchDuration", "inputRowsPerSecond", "processedRowsPerSecond"):
        del report[absent]
    batch = QueryProgress.of_spark(report)

    assert batch.query.name == "4daefcfe"
    assert batch.duration_ms == 769
    assert (batch.input_rows_per_second, batch.processed_rows_per_second) == (0.0, 0.0)


@pytest.mark.parametrize(
    "batch",
    [
        progress(),
        progress(7, rows_out=None, partitions=(partition(3, None),), watermark_ms=5, late_rows=2),
        QueryProgress.of_spark(spark_json()),
    ],
)
def test_fields_survive_json(batch: QueryProgress) -> None:
    assert QueryProgress.of_fields(json.loads(json.dumps(batch.fields()))) == batch
