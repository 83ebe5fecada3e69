"""What is found out about a pipeline before it runs, and how payloads become rows or dead letters.

Parquet sources where it does not matter: a topic costs a Python process for each look at it.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafkapy.pipeline.jobs.job_runner import JobRunner
from kafkapy.pipeline.jobs.payload_decoder import ERROR, ROW, PayloadDecoder
from kafkapy.pipeline.jobs.pipeline_config import AvroPayload, TextPayload
from kafkapy.pipeline.pipeline_errors import PipelineError
from kafkapy.utils.stop_request import StopRequest
from tests.helpers.pipelines import EXAMPLES, load

_FILE = """
[pipeline]
name = "checked"
checkpoint = "{directory}/checkpoint"
{pipeline}

[[source]]
name = "orders"
type = "parquet"
path = "{directory}/orders"
{source}

[[step]]
name = "counted"
sql = "{sql}"

[[sink]]
name = "out"
from = "counted"
{sink}
"""
_SQL = "SELECT shop, count(*) AS n, max(at) AS at FROM orders GROUP BY shop"
_CONSOLE = "type = 'console'\noutput_mode = 'complete'"


@pytest.fixture(scope="module")
def orders(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with parquet files of orders."""
    directory = tmp_path_factory.mktemp("checked")
    frame = spark.sql("SELECT 1L AS id, 'a' AS shop, TIMESTAMP '2026-03-01 12:00:00' AS at")
    frame.write.parquet(str(directory / "orders"))
    return directory


def _validated(
    spark: SparkSession,
    directory: Path,
    *,
    pipeline: str = "",
    source: str = "",
    sql: str = _SQL,
    sink: str = _CONSOLE,
) -> list[str]:
    file = directory / "p.toml"
    file.write_text(
        _FILE.format(directory=directory, pipeline=pipeline, source=source, sql=sql, sink=sink)
    )
    return JobRunner(load(file), spark, stop=StopRequest()).validate()


def test_what_would_run_is_told(spark: SparkSession, orders: Path) -> None:
    told = _validated(
        spark,
        orders,
        sink=f"type = 'parquet'\npath = '{orders}/out'\npartition_by = ['shop', 'date(at)']",
        pipeline="trigger = 'once'",
    )

    assert told == [
        f"pipeline checked: once, checkpoint {orders}/checkpoint",
        f"source orders: parquet {orders}/orders",
        "step counted",
        f"sink out: counted to parquet {orders}/out by shop, date (batch, exactly once)",
        "  shop string, n bigint, at timestamp, date date",
    ]
    assert not (orders / "out").exists()
    assert not (orders / "checkpoint").exists()


def test_the_file_to_start_from_would_run(spark: SparkSession) -> None:
    told = JobRunner(load(EXAMPLES.parent / "pipeline.toml"), spark, stop=StopRequest()).validate()

    assert told[-2:] == [
        "  order_id bigint, shop string, amount double, at timestamp, partition int, offset bigint,"
        " date date",
        "dead_letters_orders: to parquet /tmp/kafkapy-pipeline/dead-letters (exactly once)",
    ]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"sql": "SELECT * FROM order"}, "[[step]] counted sql: The table or view `order` cannot"),
        ({"sql": "SELECT shup FROM orders"}, "[[step]] counted sql: A column"),
        ({"sql": "DROP TABLE orders"}, "[[step]] counted sql: Syntax error at or near 'DROP'"),
        (
            {"source": "watermark = { column = 'shop', delay = '1 minute' }"},
            "[[source]] orders watermark column: shop is of type string, not timestamp",
        ),
        (
            {"source": "schema = 'id BIGINTEGER'"},
            "[[source]] orders schema: Unsupported data type",
        ),
        (
            {"sink": "type = 'console'"},
            "[[sink]] out output_mode: Invalid streaming output mode: append",
        ),
        (
            {"sink": "type = 'delta'\npath = '/x'\noutput_mode = 'complete'"},
            "[[sink]] out type: this Spark has no delta: name its package",
        ),
        (
            {"pipeline": "trigger = 'once'"},
            "[[sink]] out output_mode: counted is no stream: all its rows are written once",
        ),
        (
            {
                "pipeline": "trigger = 'once'",
                "sink": "type = 'parquet'\npath = '/x'\npartition_by = 'day'",
            },
            "[[sink]] out partition_by: counted has no column 'day'; it has shop, n, at",
        ),
        (
            {
                "pipeline": "trigger = 'once'",
                "sink": "type = 'parquet'\npath = '/x'\npartition_by = 'date(n)'",
            },
            "[[sink]] out partition_by: date(n): n is of type bigint, no timestamp",
        ),
        (
            {
                "sql": "SELECT shop AS id, at AS id FROM orders",
                "sink": "type = 'topic'\nbootstrap_servers = 'x:1'\ntopic = 't'\nkey = 'id'",
            },
            "[[sink]] out from: Reference `id` is ambiguous",
        ),
    ],
)
def test_what_spark_would_not_run_is_one_line(
    spark: SparkSession, orders: Path, changed: dict[str, str], said: str
) -> None:
    with pytest.raises(PipelineError) as refusal:
        _validated(spark, orders, **changed)

    line = str(refusal.value)
    assert line.startswith(f"{orders}/p.toml: {said}"), line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("master = 'nonsense'", "Spark does not start: Java gateway process exited"),
        (
            "conf.'spark.sql.shuffle.partitions' = 'some'",
            "Spark does not start: The value 'some' in the config \"spark.sql.shuffle.partitions\"",
        ),
    ],
)
def test_spark_that_does_not_start_is_one_line(orders: Path, settings: str, said: str) -> None:
    file = orders / "spark.toml"
    text = _FILE.format(directory=orders, pipeline="", source="", sql=_SQL, sink=_CONSOLE)
    file.write_text(f"{text}\n[spark]\n{settings}\n")

    command = [sys.executable, "-m", "kafkapy.pipeline.kafka_pipeline", "run", str(file)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)

    assert ran.returncode == 1
    assert ran.stderr.splitlines()[-1].startswith(said), ran.stderr
    assert "Traceback" not in ran.stderr


def test_names_of_columns_may_have_dots(spark: SparkSession, orders: Path) -> None:
    sql = "SELECT id AS `o.id`, shop AS `o.shop`, at AS `o.at` FROM orders"
    topic = "type = 'topic'\nbootstrap_servers = 'x:1'\ntopic = 't'\n"
    table = f"type = 'parquet'\npath = '{orders}/out'\npartition_by = 'date(o.at)'"
    watermark = "\"\nwatermark = { column = 'o.at', delay = '1 minute' } #"

    records = _validated(spark, orders, sql=sql, sink=f"{topic}key = 'o.id'\nvalue = 'o.shop'")
    rows = _validated(spark, orders, sql=sql + watermark, sink=table)

    assert records[-1] == "  key string, value string"
    assert rows[-1] == "  o.id bigint, o.shop string, o.at timestamp, date date"


def _decoded(
    spark: SparkSession, decoder: PayloadDecoder, payloads: list[bytes | None]
) -> list[tuple[bool, str | None]]:
    """Whether there is a row, and the error."""
    frame = spark.createDataFrame([(payload,) for payload in payloads], "value binary")
    return [(row[ROW] is not None, row[ERROR]) for row in decoder.decode(frame).collect()]


def test_json_is_good_or_says_why_not(spark: SparkSession) -> None:
    schema = "id BIGINT NOT NULL, amount DOUBLE, inner STRUCT<a: INT NOT NULL, b: INT>"
    payloads = {
        b'{"id": 1}': None,
        b'{"id": 1, "amount": 2, "inner": {"a": 1}, "more": []}\n': None,
        None: "NOT NULL but missing or null: id",
        b"": "not JSON",
        b'{"id": 1': "not JSON",
        b"\xff": "not UTF-8",
        b"null": "not one JSON object",
        b"[]": "not one JSON object",
        b'{"id": 1}{"id": 2}': "not one JSON object",
        b'{"id": 1} x': "not one JSON object",
        b'{"id": 1}}': "not one JSON object",
        b'{"id": 1}]}': "not one JSON object",
        b'{"id": 1}}{': "not one JSON object",
        b'{"id": 1}, "x": 2': "not one JSON object",
        b'{"amount": 1}': "NOT NULL but missing or null: id",
        b'{"id": null}': "NOT NULL but missing or null: id",
        b'{"id": 1, "inner": {"b": 1}}': "NOT NULL but missing or null: inner.a",
        b'{"id": "1", "amount": "x"}': "not of the schema's type: id, amount",
        b'{"id": 1, "inner": {"a": "x"}}': "a field inside is not of the schema's type",
    }

    decoder = PayloadDecoder(TextPayload("json", schema, {}))

    found = _decoded(spark, decoder, list(payloads))
    assert [error for _, error in found] == list(payloads.values())


def test_csv_is_good_or_says_why_not(spark: SparkSession) -> None:
    payloads = {
        b'1;"a;b";2.5': None,
        b"1;;": None,
        b";a;1": "NOT NULL but missing or null: id",
        b"x;a;1": "not CSV of the schema",
        b"1;a": "not CSV of the schema",
        b"1;a;1;1": "not CSV of the schema",
        b" ": "an empty line",
        b"\xff;a;1": "not UTF-8",
        None: "NOT NULL but missing or null: id",
    }

    schema = "id INT NOT NULL, name STRING, price DECIMAL(5, 2)"
    decoder = PayloadDecoder(TextPayload("csv", schema, {"sep": ";"}))

    found = _decoded(spark, decoder, list(payloads))
    assert [error for _, error in found] == list(payloads.values())


def test_avro_is_decoded_in_python_workers(spark: SparkSession) -> None:
    fields = [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]}]
    schema = json.dumps({"type": "record", "name": "Order", "fields": fields})
    decoder = PayloadDecoder(AvroPayload(schema, has_confluent_header=False))
    payloads = [b"\x02\x02\x02a", b"\x02\x00", b"\x02", None]

    frame = spark.createDataFrame([(payload,) for payload in payloads], "value binary")
    decoded = decoder.decode(frame)

    rows = decoded.filter(f"{ERROR} IS NULL").select(f"{ROW}.*").collect()
    assert [(row.id, row.name) for row in rows] == [(1, "a"), (1, None)]
    assert [row[ERROR] is None for row in decoded.collect()] == [True, True, False, False]
