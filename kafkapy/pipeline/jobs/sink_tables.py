"""`[[sink]]` tables of a pipeline's file."""

from __future__ import annotations

import re
from enum import Enum

from kafkapy.pipeline.jobs.pipeline_config import (
    JSON_VALUE,
    ConsoleSink,
    OutputMode,
    PartitionColumn,
    PartitionUnit,
    SaveMode,
    Sink,
    TableFormat,
    TableSink,
    TopicSink,
)
from kafkapy.pipeline.jobs.pipeline_tables import TOPIC_KEYS, bootstrap_servers_of
from kafkapy.pipeline.jobs.toml_table import TomlTable

_TABLE_KEYS = {"path": "path", "checkpointlocation": "checkpoint of [pipeline]"}
_PARTITION = re.compile(r"(?:(?P<unit>date|hour)\((?P<inner>[^()]+)\)|(?P<column>[^()]+))")


class SinkType(Enum):
    TOPIC = "topic"
    CONSOLE = "console"
    PARQUET = TableFormat.PARQUET.value
    DELTA = TableFormat.DELTA.value
    ICEBERG = TableFormat.ICEBERG.value


def sink_of(table: TomlTable, *, bootstrap_servers: str | None) -> Sink:
    sink: Sink
    match table.choice("type", SinkType):
        case SinkType.TOPIC:
            sink = _topic_sink(table, bootstrap_servers)
        case SinkType.CONSOLE:
            sink = ConsoleSink(
                name=table.text("name"),
                source=table.text("from"),
                output_mode=_output_mode(table),
                options=table.options("options"),
            )
        case SinkType.PARQUET | SinkType.DELTA | SinkType.ICEBERG as kind:
            sink = _table_sink(table, TableFormat(kind.value))
    table.refuse_others()
    return sink


def _topic_sink(table: TomlTable, bootstrap_servers: str | None) -> TopicSink:
    topic, column = table.optional_text("topic"), table.optional_text("topic_column")
    if (topic is None) == (column is None):
        raise table.error("topic", "give exactly one of topic and topic_column")
    return TopicSink(
        name=table.text("name"),
        source=table.text("from"),
        bootstrap_servers=bootstrap_servers_of(table, bootstrap_servers),
        topic=topic,
        topic_column=column,
        key=table.optional_text("key"),
        value=table.optional_text("value") or JSON_VALUE,
        headers=table.optional_text("headers"),
        exactly_once=table.flag("exactly_once", default=False),
        output_mode=_output_mode(table),
        options=table.options("options", instead=TOPIC_KEYS),
    )


def _table_sink(table: TomlTable, format_: TableFormat) -> TableSink:
    path, name = table.optional_text("path"), None
    if format_ is not TableFormat.PARQUET:
        name = table.optional_text("table")
        if (path is None) == (name is None):
            raise table.error("path", "give exactly one of path and table")
    elif path is None:
        raise table.error("path", "is missing")
    output_mode = _output_mode(table)
    if format_ is TableFormat.PARQUET and output_mode is not OutputMode.APPEND:
        raise table.error("output_mode", "files can only be appended to")
    partition_by = tuple(_partition(table, text) for text in table.texts("partition_by"))
    if len({column.name for column in partition_by}) < len(partition_by):
        raise table.error("partition_by", "names a column twice")
    return TableSink(
        name=table.text("name"),
        source=table.text("from"),
        format=format_,
        path=None if path is None else path.rstrip("/"),
        table=name,
        partition_by=partition_by,
        output_mode=output_mode,
        save_mode=table.choice("save_mode", SaveMode, SaveMode.ERROR),
        options=table.options("options", instead=_TABLE_KEYS),
    )


def _output_mode(table: TomlTable) -> OutputMode:
    return table.choice("output_mode", OutputMode, OutputMode.APPEND)


def _partition(table: TomlTable, text: str) -> PartitionColumn:
    match = _PARTITION.fullmatch(text.strip())
    if match is None:
        reason = f"{text!r} is no column, date(column) or hour(column)"
        raise table.error("partition_by", reason)
    if match["column"]:
        return PartitionColumn(match["column"].strip(), PartitionUnit.VALUE)
    return PartitionColumn(match["inner"].strip(), PartitionUnit(match["unit"]))
