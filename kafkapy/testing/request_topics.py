"""Which topics and groups a request is about."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from kafkapy.common.protocol.schema import Struct
from kafkapy.common.types import ZERO_UUID

_TOPIC_RESOURCE = 2


def topic_names(message: Struct) -> set[str]:
    """The names in any request; topics given by id only are left out."""
    return {value for value in _topics(message) if isinstance(value, str)}


def topic_ids(message: Struct) -> set[UUID]:
    return {value for value in _topics(message) if isinstance(value, UUID)}


def group_ids(message: Struct) -> set[str]:
    found = set()
    for struct, _ in _structs(message, ""):
        names = {field.name for field in struct.FIELDS}
        if "group_id" in names:
            found.add(getattr(struct, "group_id"))  # noqa: B009 - not every struct has it
    return {group for group in found if group}


def _topics(message: Struct) -> Iterator[str | UUID]:
    for struct, holder in _structs(message, ""):
        values = {field.name: getattr(struct, field.name) for field in struct.FIELDS}
        # The one who is asked about a topic calls it `topic`, or `name` in a list of topics.
        name = values.get("topic", values.get("name") if "topic" in holder else None)
        if isinstance(name, str) and name:
            yield name
        yield from (name for name in values.get("topic_names") or () if isinstance(name, str))
        if values.get("resource_type") == _TOPIC_RESOURCE:
            yield str(values.get("resource_name"))
        topic_id = values.get("topic_id")
        if isinstance(topic_id, UUID) and topic_id != ZERO_UUID:
            yield topic_id


def _structs(struct: Struct, holder: str) -> Iterator[tuple[Struct, str]]:
    """A struct and all inside it, each with the name of the field that holds it."""
    yield struct, holder
    for field in struct.FIELDS:
        value = getattr(struct, field.name)
        if isinstance(value, Struct):
            yield from _structs(value, field.name)
        elif isinstance(value, list):
            for item in value:
                if not isinstance(item, Struct):
                    break
                yield from _structs(item, field.name)
