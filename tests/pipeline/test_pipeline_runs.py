"""How pipelines start, fail, go on and end."""

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafkapy.pipeline.jobs.checkpoint_directory import CheckpointDirectory
from kafkapy.pipeline.jobs.pipeline_config import DeadLetterTable
from kafkapy.pipeline.pipeline_errors import PipelineError
from kafkapy.testing import BrokerHandle
from tests.helpers.pipelines import load, once, run, send

_FILE = """
[pipeline]
name = "runs"
checkpoint = "${DATA}/checkpoint"
trigger = "once"

[[source]]
name = "orders"
type = "topic"
bootstrap_servers = "${BOOTSTRAP}"
topics = "${TOPIC}"
"""
_JSON = """
format = "json"
schema = "id BIGINT NOT NULL"
meta = ["partition", "offset"]
"""
_SINK = """
[[sink]]
name = "out{number}"
from = "orders"
type = "parquet"
path = "${{DATA}}/out{number}"
"""


def test_bad_record_ends_the_run_unless_there_is_a_place_for_it(
    spark: SparkSession, spark_broker: BrokerHandle, topic: str, tmp_path: Path
) -> None:
    (tmp_path / "p.toml").write_text(_FILE + _JSON + _SINK.format(number=1))
    send(spark_broker, topic, [b'{"id": 1}', b'{"id": 2}', b'{"id": 3}', b"[4]"])
    environment = {"BOOTSTRAP": spark_broker.bootstrap_servers, "TOPIC": topic}
    config = load(tmp_path / "p.toml", DATA=str(tmp_path), **environment)

    with pytest.raises(PipelineError) as failure:
        run(spark, config)
    letters = str(tmp_path / "dead")
    progress = run(spark, replace(config, dead_letters=DeadLetterTable(letters)))

    assert str(failure.value) == (
        f"query out1 failed: source orders: record {topic}-1 at offset 1 cannot be decoded: not one"
        " JSON object (a [dead_letters] table would keep it and go on)"
    )
    rows = spark.read.parquet(str(tmp_path / "out1")).collect()
    assert sorted((r.id, r.partition, r.offset) for r in rows) == [(1, 0, 0), (2, 1, 0), (3, 0, 1)]
    (letter,) = spark.read.parquet(letters).collect()
    assert (letter.source, letter.topic, letter.partition, letter.offset) == ("orders", topic, 1, 1)
    assert (bytes(letter.key), bytes(letter.value)) == (b"k3", b"[4]")
    assert letter.error == "not one JSON object"
    assert sum(batch.dead_letters for batch in progress.batches) == 1


def test_latest_is_one_place_for_all_queries(
    spark: SparkSession, spark_broker: BrokerHandle, topic: str, tmp_path: Path
) -> None:
    latest = _FILE + 'starting_offsets = "Latest"\n' + _SINK.format(number=1)
    environment = {"BOOTSTRAP": spark_broker.bootstrap_servers, "TOPIC": topic}
    environment["DATA"] = str(tmp_path)
    (tmp_path / "p.toml").write_text(latest)
    send(spark_broker, topic, [b"before"])

    run(spark, once(load(tmp_path / "p.toml", **environment)))
    send(spark_broker, topic, [b"after"])
    (tmp_path / "p.toml").write_text(latest + _SINK.format(number=2))
    run(spark, once(load(tmp_path / "p.toml", **environment)))

    for out in ("out1", "out2"):
        rows = spark.read.parquet(str(tmp_path / out)).collect()
        assert [(bytes(row.value), row.offset) for row in rows] == [(b"after", 1)]


def test_a_checkpoint_has_one_run_at_a_time(tmp_path: Path) -> None:
    with (
        CheckpointDirectory(str(tmp_path)),
        pytest.raises(PipelineError, match="another run of the pipeline has it, process"),
        CheckpointDirectory(f"file://{tmp_path}"),
    ):
        pass
    with CheckpointDirectory(str(tmp_path)):
        pass


def test_a_checkpoint_that_cannot_be_read_is_named(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "starting").mkdir()
    (tmp_path / "starting" / "orders.json").write_text("{")

    with pytest.raises(PipelineError, match=r"^checkpoint nowhere://x: No FileSystem for scheme"):
        CheckpointDirectory("nowhere://x").starting_offsets(spark, "orders")
    with pytest.raises(PipelineError, match=r"^checkpoint .*orders\.json: not JSON: "):
        CheckpointDirectory(str(tmp_path)).starting_offsets(spark, "orders")
