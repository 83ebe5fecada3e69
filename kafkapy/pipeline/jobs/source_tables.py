"""`[[source]]` tables of a pipeline's file."""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path

from kafkapy.pipeline.jobs.pipeline_config import (
    AvroPayload,
    Decoding,
    MetaColumn,
    ParquetSource,
    Payload,
    RawPayload,
    SegmentsSource,
    SegmentView,
    Source,
    TextPayload,
    TopicSource,
)
from kafkapy.pipeline.jobs.pipeline_tables import bootstrap_servers_of, watermark_of
from kafkapy.pipeline.jobs.toml_table import TomlTable

_TOPIC_KEYS = {
    "subscribe": "topics",
    "subscribepattern": "topic_pattern",
    "assign": "topics",
    "startingoffsets": "starting_offsets",
    "includeheaders": "meta",
    "kafka.bootstrap.servers": "bootstrap_servers",
}
_SEGMENTS_KEYS = {"path": "path", "view": "view", "includeheaders": "meta"}
_RAW_META = ("key", "topic", "partition", "offset", "timestamp")


class SourceType(Enum):
    TOPIC = "topic"
    SEGMENTS = "segments"
    PARQUET = "parquet"


class PayloadFormat(Enum):
    RAW = "raw"
    JSON = "json"
    CSV = "csv"
    AVRO = "avro"


def source_of(table: TomlTable, *, bootstrap_servers: str | None, folder: Path) -> Source:
    """`folder` is the file's: files that it names are looked for there."""
    source: Source
    match table.choice("type", SourceType):
        case SourceType.TOPIC:
            source = _topic_source(table, bootstrap_servers, folder)
        case SourceType.SEGMENTS:
            source = _segments_source(table, folder)
        case SourceType.PARQUET:
            source = ParquetSource(
                name=table.text("name"),
                path=table.text("path"),
                schema=table.optional_text("schema"),
                watermark=watermark_of(table),
                options=table.options("options"),
            )
    table.refuse_others()
    return source


def _topic_source(table: TomlTable, bootstrap_servers: str | None, folder: Path) -> TopicSource:
    topics, pattern = table.texts("topics"), table.optional_text("topic_pattern")
    if bool(topics) == (pattern is not None):
        raise table.error("topics", "give exactly one of topics and topic_pattern")
    return TopicSource(
        name=table.text("name"),
        bootstrap_servers=bootstrap_servers_of(table, bootstrap_servers),
        topics=topics,
        topic_pattern=pattern,
        starting_offsets=table.optional_text("starting_offsets") or "earliest",
        decoding=_decoding(table, folder),
        watermark=watermark_of(table),
        options=table.options("options", instead=_TOPIC_KEYS),
    )


def _segments_source(table: TomlTable, folder: Path) -> SegmentsSource:
    view = table.choice("view", SegmentView, SegmentView.RECORDS)
    return SegmentsSource(
        name=table.text("name"),
        path=table.text("path"),
        view=view,
        decoding=_decoding(table, folder) if view is SegmentView.RECORDS else None,
        watermark=watermark_of(table),
        options=table.options("options", instead=_SEGMENTS_KEYS),
    )


def _decoding(table: TomlTable, folder: Path) -> Decoding:
    format_ = table.choice("format", PayloadFormat, PayloadFormat.RAW)
    payload: Payload
    match format_:
        case PayloadFormat.RAW:
            payload = RawPayload()
        case PayloadFormat.JSON | PayloadFormat.CSV:
            schema, options = table.text("schema"), table.options("format_options")
            for name in options:
                if name.lower() in ("mode", "columnnameofcorruptrecord"):
                    reason = "is what tells bad records from good ones, and cannot be set"
                    raise table.error(f"format_options.{name}", reason)
            payload = TextPayload(format_.value, schema, options)
        case PayloadFormat.AVRO:
            payload = AvroPayload(
                schema=_avro_schema(table, folder),
                has_confluent_header=table.flag("confluent_header", default=False),
            )
    return Decoding(
        payload=payload,
        meta=_meta(table, _RAW_META if format_ is PayloadFormat.RAW else ()),
        meta_prefix=table.optional_text("meta_prefix") or "",
    )


def _meta(table: TomlTable, default: tuple[str, ...]) -> tuple[MetaColumn, ...]:
    columns = []
    for name in table.texts("meta", default=default):
        try:
            columns.append(MetaColumn(name))
        except ValueError:
            known = ", ".join(column.value for column in MetaColumn)
            raise table.error("meta", f"{name!r} is none of {known}") from None
    if len(set(columns)) < len(columns):
        raise table.error("meta", "names a column twice")
    return tuple(columns)


def _avro_schema(table: TomlTable, folder: Path) -> str:
    text, file = table.optional_text("schema"), table.optional_text("schema_file")
    if (text is None) == (file is None):
        raise table.error("schema", "give exactly one of schema and schema_file")
    if file is not None:
        try:
            text = (folder / file).read_text(encoding="utf-8")
        except OSError as e:
            raise table.error("schema_file", f"{folder / file}: {e.strerror}") from e
    assert text is not None
    # A schema's short form is the bare name of a type, which is not JSON.
    key = "schema" if file is None else "schema_file"
    try:
        json.loads(text)
    except ValueError as e:
        raise table.error(key, f"not JSON: {e}") from e
    return text
