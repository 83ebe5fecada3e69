"""JSON files that commands take: {"partitions": [{"topic": …, "partition": …, …}]}."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from kafkapy.common.command_line import fail
from kafkapy.common.types import TopicPartition

JsonObject = dict[str, object]


def read_json_object(path: str) -> JsonObject:
    try:
        content = json.loads(Path(path).read_text())
    except OSError as e:
        fail(f"Cannot read {path}: {e.strerror}")
    except ValueError as e:
        fail(f"{path} is not JSON: {e}")
    if not isinstance(content, dict):
        fail(f"{path}: expected a JSON object")
    return content


def objects_of(content: JsonObject, name: str, path: str) -> list[JsonObject]:
    """The list of objects under a name."""
    entries = content.get(name)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        fail(f'{path}: expected {{"{name}": [{{…}}]}}')
    return entries


def partition_of(entry: JsonObject, path: str) -> TopicPartition:
    topic = entry.get("topic")
    if not isinstance(topic, str):
        fail(f'{path}: an entry has no "topic": {json.dumps(entry)}')
    return TopicPartition(topic, int_of(entry, "partition", path))


def int_of(entry: JsonObject, name: str, path: str) -> int:
    value = entry.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        fail(f'{path}: an entry has no number "{name}": {json.dumps(entry)}')
    return value


def refuse_duplicates(partitions: Iterable[TopicPartition], path: str) -> None:
    seen = set()
    for partition in partitions:
        if partition in seen:
            fail(f"{path} has {partition} twice")
        seen.add(partition)
