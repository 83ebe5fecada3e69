"""The sinks and dead letters of a pipeline, put together and checked before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DateType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from kafkapy.pipeline.jobs.failure_cause import failure_cause
from kafkapy.pipeline.jobs.output import Output
from kafkapy.pipeline.jobs.pipeline_config import (
    DEAD_LETTERS,
    JSON_VALUE,
    ConsoleSink,
    DeadLetterTable,
    DeadLetterTopic,
    OutputMode,
    PartitionUnit,
    PipelineConfig,
    SaveMode,
    Sink,
    TableFormat,
    TableSink,
    TopicSink,
)
from kafkapy.pipeline.jobs.pipeline_frames import TOPIC_FORMAT, PipelineFrames, quoted
from kafkapy.pipeline.jobs.topic_directory import sink_options
from kafkapy.pipeline.pipeline_errors import OptionError

# Headers of a dead letter in a topic; the payload and the key are the record's own.
_HEADERS = ("source", "topic", "partition", "offset", "timestamp", "error")
_HEADER_PREFIX = "pipeline."


class PipelineOutputs:
    """Makes the outputs of a config from its tables. For one thread.

    Each is a query of its own, with its own checkpoint, and reads the whole source by itself: a
    record that decodes reaches every sink, any other one reaches the dead letters, whichever of
    these queries stops first or is started again.
    """

    def __init__(self, spark: SparkSession, config: PipelineConfig) -> None:
        # constant after construction
        self._spark = spark
        self._config = config

    def build(self, frames: PipelineFrames) -> list[Output]:
        """Dead letters first. OptionError for what Spark would not run."""
        tables = frames.build()
        outputs = self._dead_letters(frames)
        for sink in self._config.sinks:
            try:
                output = self._output(sink, tables[sink.source])
            except PySparkException as e:
                # Columns of one name, say.
                raise self._config.error("sink", sink.name, "from", failure_cause(e)) from e
            self._check(sink, output)
            outputs.append(output)
        return outputs

    def _dead_letters(self, frames: PipelineFrames) -> list[Output]:
        target = self._config.dead_letters
        if target is None:
            return []
        outputs = []
        for source in self._config.decoded_sources():
            name, letters = f"{DEAD_LETTERS}_{source.name}", frames.dead_letters(source)
            match target:
                case DeadLetterTopic():
                    headers = F.array(*(_header(letters, column) for column in _HEADERS))
                    frame = letters.select("key", "value", headers.alias("headers"))
                    options = _topic_options(target, target.topic)
                    output = Output(name, frame, TOPIC_FORMAT, options, is_dead_letters=True)
                case DeadLetterTable():
                    # Two streams cannot share a directory; this one is a partition of the table.
                    path = f"{target.path}/source={source.name}"
                    frame = letters.drop("source")
                    output = Output(name, frame, "parquet", {}, path=path, is_dead_letters=True)
            outputs.append(output)
        return outputs

    def _output(self, sink: Sink, frame: DataFrame) -> Output:
        match sink:
            case TopicSink():
                return Output(
                    name=sink.name,
                    frame=self._records(sink, frame),
                    format=TOPIC_FORMAT,
                    options=_topic_options(sink, sink.topic),
                    output_mode=sink.output_mode,
                )
            case ConsoleSink():
                return Output(
                    name=sink.name,
                    frame=frame,
                    format="console",
                    options={"truncate": "false", **sink.options},
                    output_mode=sink.output_mode,
                )
            case TableSink():
                table = sink.table
                if sink.path is not None and sink.format is TableFormat.ICEBERG:
                    table = self._iceberg_table(sink, sink.path)
                return Output(
                    name=sink.name,
                    frame=self._partitioned(sink, frame),
                    format=sink.format.value,
                    options=sink.options,
                    output_mode=sink.output_mode,
                    save_mode=sink.save_mode,
                    partition_by=tuple(column.name for column in sink.partition_by),
                    path=sink.path if table is None else None,
                    table=table,
                )

    def _records(self, sink: TopicSink, frame: DataFrame) -> DataFrame:
        columns: list[Column] = []
        if sink.key is not None:
            columns.append(self._bytes_or_text(sink, frame, "key", sink.key, is_cast=True))
        if sink.value == JSON_VALUE:
            columns.append(F.to_json(F.struct("*")).alias("value"))
        else:
            columns.append(self._bytes_or_text(sink, frame, "value", sink.value, is_cast=False))
        for key, column in (("headers", sink.headers), ("topic_column", sink.topic_column)):
            if column is not None:
                self._type_of(sink, frame, key, column)
                columns.append(
                    F.col(quoted(column)).alias("topic" if key == "topic_column" else key)
                )
        return frame.select(*columns)

    def _bytes_or_text(
        self, sink: TopicSink, frame: DataFrame, key: str, column: str, *, is_cast: bool
    ) -> Column:
        type_ = self._type_of(sink, frame, key, column)
        if isinstance(type_, StringType | BinaryType):
            return F.col(quoted(column)).alias(key)
        if not is_cast:
            reason = f"{column} is of type {type_.simpleString()}, not string or binary"
            raise self._config.error("sink", sink.name, key, reason)
        return F.col(quoted(column)).cast("string").alias(key)

    def _partitioned(self, sink: TableSink, frame: DataFrame) -> DataFrame:
        for column in sink.partition_by:
            type_ = self._type_of(sink, frame, "partition_by", column.column)
            if column.unit is PartitionUnit.VALUE:
                continue
            text = f"{column.unit.value}({column.column})"
            if not isinstance(type_, TimestampType | TimestampNTZType | DateType):
                reason = f"{text}: {column.column} is of type {type_.simpleString()}, no timestamp"
                raise self._config.error("sink", sink.name, "partition_by", reason)
            if column.name in frame.columns:
                reason = f"{text}: there is a column {column.name!r} already"
                raise self._config.error("sink", sink.name, "partition_by", reason)
            value = F.col(quoted(column.column))
            derived = F.to_date(value) if column.unit is PartitionUnit.DATE else F.hour(value)
            frame = frame.withColumn(column.name, derived)
        return frame

    def _iceberg_table(self, sink: TableSink, path: str) -> str:
        """Its name in a catalog whose tables are in the directory around it.

        Spark makes a table only where it has a catalog, and Iceberg's own for paths asks Hive.
        """
        directory, slash, name = path.rpartition("/")
        catalog = f"kafkapy_{self._config.sinks.index(sink)}"
        settings = {
            "": "org.apache.iceberg.spark.SparkCatalog",
            ".type": "hadoop",
            ".warehouse": directory or slash or ".",
        }
        for key, value in settings.items():
            self._spark.conf.set(f"spark.sql.catalog.{catalog}{key}", value)
        return f"{catalog}.`{name}`"

    def _type_of(self, sink: Sink, frame: DataFrame, key: str, column: str) -> DataType:
        if column not in frame.columns:
            there = ", ".join(frame.columns)
            reason = f"{sink.source} has no column {column!r}; it has {there}"
            raise self._config.error("sink", sink.name, key, reason)
        return frame.schema[column].dataType

    def _check(self, sink: Sink, output: Output) -> None:
        """Whatever can be known before the start."""
        if isinstance(sink, TableSink) and sink.format is not TableFormat.PARQUET:
            self._check_format(sink)
        if output.is_streaming:
            self._check_streaming(sink, output)
        elif output.output_mode is not OutputMode.APPEND:
            reason = f"{sink.source} is no stream: all its rows are written once"
            raise self._config.error("sink", sink.name, "output_mode", reason)
        is_saved_table = isinstance(sink, TableSink) and sink.save_mode is not SaveMode.ERROR
        if is_saved_table and output.is_streaming:
            reason = f"{sink.source} is a stream, which adds to what is there"
            raise self._config.error("sink", sink.name, "save_mode", reason)

    def _check_format(self, sink: TableSink) -> None:
        sources = self._jvm().org.apache.spark.sql.execution.datasources.DataSource
        try:
            sources.lookupDataSource(
                sink.format.value, self._spark._jsparkSession.sessionState().conf()
            )
        except (PySparkException, Py4JError) as e:
            reason = (
                f"this Spark has no {sink.format.value}: name its package in"
                ' conf."spark.jars.packages" of [spark], or its jar in "spark.jars"'
            )
            raise self._config.error("sink", sink.name, "type", reason) from e

    def _check_streaming(self, sink: Sink, output: Output) -> None:
        """Spark's own check, which it would make at the start of the query."""
        modes = self._jvm().org.apache.spark.sql.streaming.OutputMode
        mode = {
            OutputMode.APPEND: modes.Append,
            OutputMode.UPDATE: modes.Update,
            OutputMode.COMPLETE: modes.Complete,
        }[output.output_mode]()
        analysis = self._jvm().org.apache.spark.sql.catalyst.analysis
        plan = output.frame._jdf.queryExecution().analyzed()
        try:
            analysis.UnsupportedOperationChecker.checkForStreaming(plan, mode)
        except PySparkException as e:
            raise self._config.error("sink", sink.name, "output_mode", failure_cause(e)) from e

    def _jvm(self) -> Any:
        jvm = self._spark._jvm
        if jvm is None:
            raise OptionError("[spark] master", "pipelines run in a driver with Spark's own JVM")
        return jvm


def _topic_options(sink: TopicSink | DeadLetterTopic, topic: str | None) -> Mapping[str, str]:
    options = sink_options(sink)
    if topic is not None:
        options["topic"] = topic
    if sink.exactly_once:
        options["exactlyOnce"] = "true"
    return options


def _header(letters: DataFrame, column: str) -> Column:
    text = F.col(column)
    if isinstance(letters.schema[column].dataType, TimestampType):
        text = F.unix_millis(text)
    return F.struct(
        F.lit(f"{_HEADER_PREFIX}{column}").alias("key"),
        text.cast("string").cast("binary").alias("value"),
    )
