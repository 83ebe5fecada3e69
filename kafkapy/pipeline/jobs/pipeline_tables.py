"""The tables of a pipeline's file that are neither sources nor sinks."""

from __future__ import annotations

import re
from enum import Enum

from kafkapy.pipeline.jobs.pipeline_config import (
    DeadLetters,
    DeadLetterTable,
    DeadLetterTopic,
    SparkSettings,
    Step,
    Trigger,
    TriggerKind,
    Watermark,
)
from kafkapy.pipeline.jobs.toml_table import TomlTable

# Options of a topic that is written to, for which there are keys.
TOPIC_KEYS = {
    "topic": "topic",
    "exactlyonce": "exactly_once",
    "kafka.bootstrap.servers": "bootstrap_servers",
    "checkpointlocation": "checkpoint of [pipeline]",
}
_INTERVAL = re.compile(r"\d+ +(millisecond|second|minute|hour|day)s?")
_INTERVAL_EXAMPLE = '"10 seconds"'


class DeadLetterType(Enum):
    TOPIC = "topic"
    PARQUET = "parquet"


def trigger_of(table: TomlTable) -> Trigger:
    text = table.optional_text("trigger") or TriggerKind.CONTINUOUS.value
    if _INTERVAL.fullmatch(text):
        return Trigger(TriggerKind.INTERVAL, text)
    for kind in (TriggerKind.CONTINUOUS, TriggerKind.AVAILABLE_NOW, TriggerKind.ONCE):
        if text == kind.value:
            return Trigger(kind)
    reason = f"{text!r} is none of continuous, available-now, once and a time, {_INTERVAL_EXAMPLE}"
    raise table.error("trigger", reason)


def spark_of(table: TomlTable | None) -> SparkSettings:
    if table is None:
        return SparkSettings(None, {})
    settings = SparkSettings(table.optional_text("master"), table.options("conf"))
    table.refuse_others()
    return settings


def step_of(table: TomlTable) -> Step:
    step = Step(table.text("name"), table.text("sql"), watermark_of(table))
    table.refuse_others()
    return step


def watermark_of(table: TomlTable) -> Watermark | None:
    inner = table.table("watermark")
    if inner is None:
        return None
    watermark = Watermark(inner.text("column"), inner.text("delay"))
    if not _INTERVAL.fullmatch(watermark.delay):
        reason = f"{watermark.delay!r} is no time, such as {_INTERVAL_EXAMPLE}"
        raise inner.error("delay", reason)
    inner.refuse_others()
    return watermark


def bootstrap_servers_of(table: TomlTable, default: str | None) -> str:
    servers = table.optional_text("bootstrap_servers") or default
    if servers is None:
        raise table.error("bootstrap_servers", "is missing, here and in [pipeline]")
    return servers


def dead_letters_of(
    table: TomlTable | None, *, bootstrap_servers: str | None
) -> DeadLetters | None:
    if table is None:
        return None
    target: DeadLetters
    match table.choice("type", DeadLetterType):
        case DeadLetterType.TOPIC:
            target = DeadLetterTopic(
                bootstrap_servers=bootstrap_servers_of(table, bootstrap_servers),
                topic=table.text("topic"),
                exactly_once=table.flag("exactly_once", default=False),
                options=table.options("options", instead=TOPIC_KEYS),
            )
        case DeadLetterType.PARQUET:
            target = DeadLetterTable(table.text("path").rstrip("/"))
    table.refuse_others()
    return target
