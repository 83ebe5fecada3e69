"""The tables of a pipeline in Spark: its sources, decoded, and its steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType, TimestampNTZType, TimestampType

from kafkapy.pipeline.columnar.record_schema import spark_schema
from kafkapy.pipeline.jobs.failure_cause import failure_cause
from kafkapy.pipeline.jobs.payload_decoder import ERROR, ROW, PayloadDecoder, struct_of
from kafkapy.pipeline.jobs.pipeline_config import (
    Decoding,
    MetaColumn,
    ParquetSource,
    PipelineConfig,
    RawPayload,
    SegmentsSource,
    Source,
    Step,
    TopicSource,
    TriggerKind,
    Watermark,
)
from kafkapy.pipeline.jobs.topic_directory import source_options
from kafkapy.pipeline.pipeline_errors import SchemaError

TOPIC_FORMAT = "kafkapy"
SEGMENTS_FORMAT = "kafkapy-segments"
_VALUE = "value"
# What is kept of a record that does not decode.
_DEAD_LETTER_COLUMNS = ("topic", "partition", "offset", "timestamp", "key", _VALUE)
# What a message about one names.
_PLACE_COLUMNS = ("topic", "partition", "offset")


@dataclass(frozen=True, slots=True)
class _Records:
    """A source's records and how its payloads are taken, if they are."""

    frame: DataFrame
    decoder: PayloadDecoder | None


class PipelineFrames:
    """Builds the tables, in the file's order, as temporary views of a session: nothing is read
    yet. For one thread.

    Errors name the file, the table and the key.
    """

    def __init__(
        self,
        spark: SparkSession,
        config: PipelineConfig,
        starting_offsets: Mapping[str, str],
    ) -> None:
        """`starting_offsets` go before those of the file, by the names of sources."""
        # constant after construction
        self._spark = spark
        self._config = config
        self._starting_offsets = starting_offsets
        self._tables: dict[str, DataFrame] = {}

    def build(self) -> dict[str, DataFrame]:
        """All tables by name."""
        for source in self._config.sources:
            self._add("source", source, self._rows_of(source))
        for step in self._config.steps:
            self._add("step", step, self._query(step))
        return dict(self._tables)

    def dead_letters(self, source: TopicSource | SegmentsSource) -> DataFrame:
        """The records of a decoded source that are none of its schema, as they are."""
        assert source.decoding is not None
        records = self._records(source, source.decoding, _DEAD_LETTER_COLUMNS)
        assert records.decoder is not None
        return (
            records.decoder.decode(records.frame)
            .filter(F.col(ERROR).isNotNull())
            .select(
                F.lit(source.name).alias("source"),
                *_DEAD_LETTER_COLUMNS,
                F.col(ERROR).alias("error"),
            )
        )

    def _add(self, kind: str, table: Source | Step, frame: DataFrame) -> None:
        if table.watermark is not None:
            frame = self._with_watermark(kind, table.name, frame, table.watermark)
        frame.createOrReplaceTempView(table.name)
        self._tables[table.name] = frame

    def _rows_of(self, source: Source) -> DataFrame:
        if isinstance(source, ParquetSource):
            return self._parquet(source)
        if source.decoding is None:
            assert isinstance(source, SegmentsSource)
            return self._load_segments(source, None)
        return self._decoded(source, source.decoding)

    def _decoded(self, source: TopicSource | SegmentsSource, decoding: Decoding) -> DataFrame:
        meta = [column.value for column in decoding.meta]
        is_checked = self._config.dead_letters is None
        places = _PLACE_COLUMNS if is_checked else ()
        records = self._records(source, decoding, (_VALUE, *meta, *places))
        meta_columns = [
            F.col(name).alias(f"{decoding.meta_prefix}{name}") if decoding.meta_prefix else name
            for name in meta
        ]
        if records.decoder is None:
            return records.frame.select(_VALUE, *meta_columns)
        row_type = records.decoder.row_type
        for name in (f"{decoding.meta_prefix}{name}" for name in meta):
            if name.lower() in (field.lower() for field in row_type.names):
                reason = f"the payload has a field {name!r} too: set meta_prefix"
                raise self._config.error("source", source.name, "meta", reason)
        decoded = records.decoder.decode(records.frame)
        is_good = F.col(ERROR).isNull()
        good = decoded.filter(_or_fail(is_good, source.name) if is_checked else is_good)
        fields = [F.col(ROW)[name].alias(name) for name in row_type.names]
        return good.select(*fields, *meta_columns)

    def _records(
        self,
        source: TopicSource | SegmentsSource,
        decoding: Decoding,
        columns: tuple[str, ...],
    ) -> _Records:
        schema = _records_schema(columns)
        decoder = None
        if not isinstance(decoding.payload, RawPayload):
            try:
                decoder = PayloadDecoder(decoding.payload)
            except (PySparkException, SchemaError) as e:
                raise self._error("source", source.name, "schema", e) from e
        if isinstance(source, SegmentsSource):
            return _Records(self._load_segments(source, schema), decoder)
        options = source_options(source)
        options["startingOffsets"] = self._starting_offsets.get(
            source.name, source.starting_offsets
        )
        if source.topic_pattern is not None:
            options["subscribePattern"] = source.topic_pattern
        else:
            options["subscribe"] = ",".join(source.topics)
        if MetaColumn.HEADERS.value in columns:
            options["includeHeaders"] = "true"
        try:
            reader = self._spark.readStream.format(TOPIC_FORMAT).options(**options)
            return _Records(reader.schema(schema).load(), decoder)
        except PySparkException as e:
            raise self._error("source", source.name, "options", e) from e

    def _load_segments(self, source: SegmentsSource, schema: StructType | None) -> DataFrame:
        options = {**source.options, "view": source.view.value}
        if schema is not None and MetaColumn.HEADERS.value in schema.names:
            options["includeHeaders"] = "true"
        try:
            reader = self._spark.read.format(SEGMENTS_FORMAT).options(**options)
            if schema is not None:
                reader = reader.schema(schema)
            return reader.load(source.path)
        except PySparkException as e:
            raise self._error("source", source.name, "path", e) from e

    def _parquet(self, source: ParquetSource) -> DataFrame:
        schema = None
        if source.schema is not None:
            try:
                schema = struct_of(source.schema)
            except (PySparkException, SchemaError) as e:
                raise self._error("source", source.name, "schema", e) from e
        try:
            batch = self._spark.read.options(**source.options)
            frame = (batch if schema is None else batch.schema(schema)).parquet(source.path)
            if self._config.trigger.kind is TriggerKind.ONCE:
                return frame
            stream = self._spark.readStream.options(**source.options)
            return stream.schema(frame.schema).parquet(source.path)
        except PySparkException as e:
            raise self._error("source", source.name, "path", e) from e

    def _query(self, step: Step) -> DataFrame:
        try:
            # spark.sql() would carry out a command, such as DROP TABLE, at once.
            parser = self._spark._jsparkSession.sessionState().sqlParser()
            parser.parseQuery(step.sql)
            return self._spark.sql(step.sql)
        except PySparkException as e:
            raise self._error("step", step.name, "sql", e) from e

    def _with_watermark(
        self, kind: str, name: str, frame: DataFrame, watermark: Watermark
    ) -> DataFrame:
        column = watermark.column
        if column not in frame.columns:
            reason = f"there is no column {column!r}; there are {', '.join(frame.columns)}"
            raise self._config.error(kind, name, "watermark column", reason)
        type_ = frame.schema[column].dataType
        if not isinstance(type_, TimestampType | TimestampNTZType):
            reason = f"{column} is of type {type_.simpleString()}, not timestamp"
            raise self._config.error(kind, name, "watermark column", reason)
        # A batch has no use for one: all its rows are there.
        if not frame.isStreaming:
            return frame
        try:
            return frame.withWatermark(quoted(column), watermark.delay)
        except PySparkException as e:
            raise self._error(kind, name, "watermark column", e) from e

    def _error(self, kind: str, name: str, key: str, e: Exception) -> Exception:
        return self._config.error(kind, name, key, failure_cause(e))


def quoted(column: str) -> str:
    """As a name with dots and all: Spark would look for fields inside of a column."""
    return f"`{column.replace('`', '``')}`"


def _records_schema(columns: tuple[str, ...]) -> StructType:
    """Only these, so that nothing else is decoded."""
    known = spark_schema(include_headers=True)
    fields: list[StructField] = [field for field in known.fields if field.name in columns]
    return StructType(fields)


def _or_fail(is_good: Column, source: str) -> Column:
    """Without a place for dead letters a bad record ends the query, and is not passed over."""
    message = F.concat(
        F.lit(f"source {source}: record "),
        F.col("topic"),
        F.lit("-"),
        F.col("partition").cast("string"),
        F.lit(" at offset "),
        F.col("offset").cast("string"),
        F.lit(" cannot be decoded: "),
        F.col(ERROR),
        F.lit(" (a [dead_letters] table would keep it and go on)"),
    )
    return F.when(is_good, F.lit(True)).otherwise(F.raise_error(message).cast("boolean"))
