from pathlib import Path

import pytest

from kafkapy.pipeline.jobs.pipeline_config import (
    AvroPayload,
    MetaColumn,
    OutputMode,
    PartitionUnit,
    PipelineConfig,
    SegmentsSource,
    TableSink,
    TextPayload,
    TopicSink,
    TopicSource,
    TriggerKind,
)
from kafkapy.pipeline.jobs.pipeline_file import PipelineFile
from kafkapy.pipeline.pipeline_errors import PipelineError

_PIPELINE = """
[pipeline]
name = "orders"
checkpoint = "/data/checkpoints/"
bootstrap_servers = "localhost:9092"
"""
_SOURCE = """
[[source]]
name = "orders"
type = "topic"
topics = "orders"
"""
_SINK = """
[[sink]]
name = "files"
from = "orders"
type = "parquet"
path = "/data/files"
"""


def _load(tmp_path: Path, text: str, **environment: str) -> PipelineConfig:
    path = tmp_path / "p.toml"
    path.write_text(text)
    return PipelineFile(path, environment).load()


def _refused(tmp_path: Path, text: str, **environment: str) -> str:
    """The one line, without the directory."""
    with pytest.raises(PipelineError) as refusal:
        _load(tmp_path, text, **environment)
    return str(refusal.value).removeprefix(f"{tmp_path}/")


def test_little_has_to_be_said(tmp_path: Path) -> None:
    config = _load(tmp_path, _PIPELINE + _SOURCE + _SINK)

    assert config.trigger.kind is TriggerKind.CONTINUOUS
    assert config.checkpoint == "/data/checkpoints"
    assert config.dead_letters is None
    (source,), (sink,) = config.sources, config.sinks
    assert isinstance(source, TopicSource)
    assert source.bootstrap_servers == "localhost:9092"
    assert source.topics == ("orders",)
    assert source.starting_offsets == "earliest"
    assert {column.value for column in source.decoding.meta} == {
        "key",
        "topic",
        "partition",
        "offset",
        "timestamp",
    }
    assert isinstance(sink, TableSink)
    assert sink.output_mode is OutputMode.APPEND
    assert list(config.decoded_sources()) == []


def test_much_can_be_said(tmp_path: Path) -> None:
    (tmp_path / "order.avsc").write_text('{"type": "string"}')
    config = _load(
        tmp_path,
        _PIPELINE
        + """
trigger = "10 seconds"
metrics_port = 0
progress_log = "/data/progress.jsonl"
stop_timeout_seconds = 3

[spark]
master = "spark://host:7077"
conf.spark.sql.shuffle.partitions = 4
conf."spark.speculation" = false

[[source]]
name = "orders"
type = "topic"
topic_pattern = "orders-.*"
bootstrap_servers = "other:9092"
format = "json"
schema = "id BIGINT NOT NULL, at TIMESTAMP"
format_options = { timestampFormat = "yyyy" }
meta = ["key", "offset"]
meta_prefix = "kafka_"
watermark = { column = "at", delay = "1 hour" }
options = { "kafka.sasl.password" = "${PASSWORD}", maxOffsetsPerTrigger = 10 }

[[source]]
name = "old"
type = "segments"
path = "/logs"
format = "avro"
schema_file = "order.avsc"
confluent_header = true

[[step]]
name = "joined"
sql = "SELECT * FROM orders JOIN old USING (id)"

[[sink]]
name = "by-day"
from = "joined"
type = "parquet"
path = "/data/by-day"
partition_by = ["id", "date(at)", "hour(at)"]

[[sink]]
name = "totals"
from = "joined"
type = "topic"
topic = "totals"
key = "id"
exactly_once = true
output_mode = "update"

[dead_letters]
type = "parquet"
path = "/data/dead"
""",
        PASSWORD="hush",
    )

    assert (config.trigger.interval, config.metrics_port) == ("10 seconds", 0)
    assert config.spark.conf == {"spark.sql.shuffle.partitions": "4", "spark.speculation": "false"}
    orders, old = config.sources
    assert isinstance(orders, TopicSource)
    assert orders.decoding.payload == TextPayload(
        "json", "id BIGINT NOT NULL, at TIMESTAMP", {"timestampFormat": "yyyy"}
    )
    assert orders.decoding.meta == (MetaColumn.KEY, MetaColumn.OFFSET)
    assert orders.options == {"kafka.sasl.password": "hush", "maxOffsetsPerTrigger": "10"}
    assert isinstance(old, SegmentsSource)
    assert old.decoding is not None
    assert old.decoding.payload == AvroPayload('{"type": "string"}', has_confluent_header=True)
    assert [source.name for source in config.decoded_sources()] == ["orders", "old"]
    by_day, totals = config.sinks
    assert isinstance(by_day, TableSink)
    assert [(column.name, column.unit) for column in by_day.partition_by] == [
        ("id", PartitionUnit.VALUE),
        ("date", PartitionUnit.DATE),
        ("hour", PartitionUnit.HOUR),
    ]
    assert isinstance(totals, TopicSink)
    assert totals.output_mode is OutputMode.UPDATE
    assert "hush" not in repr(config)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = [", "p.toml: Invalid value (at end of document)"),
        ("", "p.toml: [pipeline]: is missing"),
        ("[pipeline]\nname = 'a'", "p.toml: [pipeline] checkpoint: is missing"),
        (
            _PIPELINE + "chekpoint = 'a'\n" + _SOURCE + _SINK,
            "p.toml: [pipeline] chekpoint: is unknown here; did you mean checkpoint?",
        ),
        (
            _PIPELINE + "trigger = 'sometimes'\n" + _SOURCE + _SINK,
            "p.toml: [pipeline] trigger: 'sometimes' is none of continuous, available-now, once"
            ' and a time, "10 seconds"',
        ),
        (
            _PIPELINE + "metrics_port = '8080'\n" + _SOURCE + _SINK,
            "p.toml: [pipeline] metrics_port: expected a whole number, at least -1, not '8080'",
        ),
        (
            _PIPELINE + "metrics_port = 70000\n" + _SOURCE + _SINK,
            "p.toml: [pipeline] metrics_port: expected a whole number, at most 65535, not 70000",
        ),
        (_PIPELINE + _SINK, "p.toml: [[source]]: there is none"),
        (_PIPELINE + _SOURCE, "p.toml: [[sink]]: there is none"),
        (
            _PIPELINE + "[source]\nname = 'a'",
            "p.toml: [[source]]: expected double brackets: an array of tables",
        ),
        (
            _PIPELINE + "[[source]]\ntype = 'topic'",
            "p.toml: [[source]] number 1 name: is missing",
        ),
        (
            _PIPELINE + "[[source]]\nname = 'my-orders'",
            "p.toml: [[source]] number 1 name: 'my-orders' is no name: letters, digits and _, no"
            " digit first",
        ),
        (
            _PIPELINE + "[[source]]\nname = 'a'\ntype = 'queue'",
            "p.toml: [[source]] a type: 'queue' is none of parquet, segments, topic",
        ),
        (
            _PIPELINE + _SOURCE + "format = 'json'\n" + _SINK,
            "p.toml: [[source]] orders schema: is missing",
        ),
        (
            _PIPELINE + _SOURCE + "format = 'avro'\nschema = 'long'\n" + _SINK,
            "p.toml: [[source]] orders schema: not JSON: Expecting value: line 1 column 1 (char 0)",
        ),
        (
            _PIPELINE + _SOURCE + "topic_pattern = '.*'\n" + _SINK,
            "p.toml: [[source]] orders topics: give exactly one of topics and topic_pattern",
        ),
        (
            _PIPELINE + _SOURCE + "meta = ['time']\n" + _SINK,
            "p.toml: [[source]] orders meta: 'time' is none of key, topic, partition, offset,"
            " timestamp, timestampType, headers",
        ),
        (
            _PIPELINE + _SOURCE + "watermark = { column = 'at', delay = 'long' }\n" + _SINK,
            "p.toml: [[source]] orders watermark delay: 'long' is no time, such as \"10 seconds\"",
        ),
        (
            _PIPELINE + _SOURCE + "options.startingOffsets = 'latest'\n" + _SINK,
            "p.toml: [[source]] orders options.startingOffsets: set starting_offsets instead",
        ),
        (
            _PIPELINE + _SOURCE + _SOURCE + _SINK,
            "p.toml: source, step 'orders' is there 2 times",
        ),
        (
            _PIPELINE + _SOURCE + _SINK.replace('"orders"', '"order"'),
            "p.toml: [[sink]] files from: there is no source or step 'order'; there are orders",
        ),
        (
            _PIPELINE + _SOURCE + _SINK.replace('"files"', '"dead_letters_orders"'),
            "p.toml: [[sink]] dead_letters_orders name: means something else in the checkpoint:"
            " take another",
        ),
        (
            _PIPELINE + _SOURCE + _SINK + "output_mode = 'complete'",
            "p.toml: [[sink]] files output_mode: files can only be appended to",
        ),
        (
            _PIPELINE + _SOURCE + _SINK + "partition_by = 'day(at)'",
            "p.toml: [[sink]] files partition_by: 'day(at)' is no column, date(column) or"
            " hour(column)",
        ),
        (
            _PIPELINE + _SOURCE + _SINK + _SINK.replace('"files"', '"more"'),
            "p.toml: sink path '/data/files' is there 2 times",
        ),
        (
            _PIPELINE + _SOURCE + _SINK + "password = '${SECRET}'",
            "p.toml: sink[0].password: the environment has no variable SECRET (a literal ${ is"
            " $${)",
        ),
        (
            _PIPELINE.replace("bootstrap_servers", "#") + _SOURCE + _SINK,
            "p.toml: [[source]] orders bootstrap_servers: is missing, here and in [pipeline]",
        ),
        (
            _PIPELINE + _SOURCE + _SINK + "[dead_letters]\ntype = 'parquet'",
            "p.toml: [dead_letters] path: is missing",
        ),
    ],
)
def test_what_is_wrong_is_told_with_file_table_and_key(
    tmp_path: Path, text: str, said: str
) -> None:
    assert _refused(tmp_path, text) == said


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"none\.toml: No such file or directory"):
        PipelineFile(tmp_path / "none.toml", {}).load()


def test_two_dollars_are_one_and_no_variable(tmp_path: Path) -> None:
    step = "[[step]]\nname = 's'\nsql = 'SELECT \"$${A} ${B}\" FROM orders'\n"

    config = _load(tmp_path, _PIPELINE + _SOURCE + step + _SINK, A="a", B="b")

    assert config.steps[0].sql == 'SELECT "${A} b" FROM orders'
