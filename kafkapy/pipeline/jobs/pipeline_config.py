"""What a pipeline's file says, as values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from kafkapy.pipeline.pipeline_errors import OptionError

# Directories of a checkpoint, beside those of the sinks.
DEAD_LETTERS = "dead_letters"
STARTING = "starting"


class TriggerKind(Enum):
    """When the next batch is begun, and whether there is a last one."""

    CONTINUOUS = "continuous"  # as soon as the one before it is done
    INTERVAL = "interval"
    AVAILABLE_NOW = "available-now"  # all that is there, in batches, from the checkpoints on
    ONCE = "once"  # the same, but what is not a topic is read as a whole, without checkpoints


@dataclass(frozen=True, slots=True)
class Trigger:
    kind: TriggerKind
    interval: str = ""

    def __str__(self) -> str:
        return f"every {self.interval}" if self.interval else self.kind.value


class MetaColumn(Enum):
    """What a record has beside its payload."""

    KEY = "key"
    TOPIC = "topic"
    PARTITION = "partition"
    OFFSET = "offset"
    TIMESTAMP = "timestamp"
    TIMESTAMP_TYPE = "timestampType"
    HEADERS = "headers"


@dataclass(frozen=True, slots=True)
class RawPayload:
    """The bytes as they are, in a column `value`."""


@dataclass(frozen=True, slots=True)
class TextPayload:
    """JSON or CSV; the schema is Spark's DDL, the options are those of from_json and from_csv."""

    format: str
    schema: str
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AvroPayload:
    """One Avro datum; the schema is Avro's own, as JSON text."""

    schema: str
    has_confluent_header: bool


Payload = RawPayload | TextPayload | AvroPayload


@dataclass(frozen=True, slots=True)
class Decoding:
    """How the rows of a source come from records."""

    payload: Payload
    meta: tuple[MetaColumn, ...]
    meta_prefix: str = ""


@dataclass(frozen=True, slots=True)
class Watermark:
    column: str
    delay: str


@dataclass(frozen=True, slots=True)
class TopicSource:
    name: str
    bootstrap_servers: str
    topics: tuple[str, ...]
    topic_pattern: str | None
    starting_offsets: str
    decoding: Decoding
    watermark: Watermark | None
    # Settings may hold secrets: they are not shown by accident.
    options: Mapping[str, str] = field(repr=False)


class SegmentView(Enum):
    RECORDS = "records"
    BATCHES = "batches"


@dataclass(frozen=True, slots=True)
class SegmentsSource:
    """`decoding` is None for the view of batches, which has no payloads."""

    name: str
    path: str
    view: SegmentView
    decoding: Decoding | None
    watermark: Watermark | None
    options: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class ParquetSource:
    name: str
    path: str
    schema: str | None
    watermark: Watermark | None
    options: Mapping[str, str] = field(repr=False)


Source = TopicSource | SegmentsSource | ParquetSource


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    sql: str
    watermark: Watermark | None


class OutputMode(Enum):
    APPEND = "append"
    UPDATE = "update"
    COMPLETE = "complete"


class SaveMode(Enum):
    """What a batch does with rows that are there already; a stream always adds to them."""

    ERROR = "error"
    APPEND = "append"
    OVERWRITE = "overwrite"


class PartitionUnit(Enum):
    """What a directory is named after: a column, or a part of a timestamp column."""

    VALUE = "value"
    DATE = "date"
    HOUR = "hour"


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    column: str
    unit: PartitionUnit

    @property
    def name(self) -> str:
        return self.column if self.unit is PartitionUnit.VALUE else self.unit.value


class TableFormat(Enum):
    PARQUET = "parquet"
    DELTA = "delta"
    ICEBERG = "iceberg"


@dataclass(frozen=True, slots=True)
class TableSink:
    """Files or a table; `table` is Iceberg's and Delta's name of one in a catalog."""

    name: str
    source: str
    format: TableFormat
    path: str | None
    table: str | None
    partition_by: tuple[PartitionColumn, ...]
    output_mode: OutputMode
    save_mode: SaveMode
    options: Mapping[str, str] = field(repr=False)


# The `value` of a topic's sink that means: all columns, as one JSON object.
JSON_VALUE = "json"


@dataclass(frozen=True, slots=True)
class TopicSink:
    """Column names; `value` may be JSON_VALUE, and a topic is given or comes from a column."""

    name: str
    source: str
    bootstrap_servers: str
    topic: str | None
    topic_column: str | None
    key: str | None
    value: str
    headers: str | None
    exactly_once: bool
    output_mode: OutputMode
    options: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class ConsoleSink:
    name: str
    source: str
    output_mode: OutputMode
    options: Mapping[str, str] = field(repr=False)


Sink = TableSink | TopicSink | ConsoleSink


@dataclass(frozen=True, slots=True)
class DeadLetterTopic:
    bootstrap_servers: str
    topic: str
    exactly_once: bool
    options: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class DeadLetterTable:
    path: str


DeadLetters = DeadLetterTopic | DeadLetterTable


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """`master` is None where the file leaves it to the command or to spark-submit."""

    master: str | None
    conf: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class PipelineConfig:
    """A whole file; names that refer to others do lead somewhere."""

    file: str
    name: str
    checkpoint: str
    trigger: Trigger
    stop_timeout_s: int
    metrics_port: int
    progress_log: str | None
    spark: SparkSettings
    sources: tuple[Source, ...]
    steps: tuple[Step, ...]
    sinks: tuple[Sink, ...]
    dead_letters: DeadLetters | None

    def error(self, table: str, name: str, key: str, reason: str) -> OptionError:
        """What is found wrong with a key of `[[table]] name` once Spark has been asked."""
        return OptionError(f"{self.file}: [[{table}]] {name} {key}".rstrip(), reason)

    def topic_sources(self) -> Iterator[TopicSource]:
        return (source for source in self.sources if isinstance(source, TopicSource))

    def decoded_sources(self) -> Iterator[TopicSource | SegmentsSource]:
        """Those whose records may turn out not to be what the schema says."""
        for source in self.sources:
            if isinstance(source, ParquetSource) or source.decoding is None:
                continue
            if not isinstance(source.decoding.payload, RawPayload):
                yield source
