"""Messages as Kafka's tools print them in JSON."""

from __future__ import annotations

import base64
import json
from typing import Any
from uuid import UUID

from kafkapy.common.protocol.schema import Field, Message, Struct
from kafkapy.common.types import uuid_to_base64


def message_to_json(message: Message, version: int) -> dict[str, Any]:
    """The fields that a version has, under Kafka's names; bytes in base64.

    Ports: org.apache.kafka.message.JsonConverterGenerator
    """
    return _struct(message, version)


def json_line(value: Any) -> str:
    """JSON on one line without blanks, as Jackson writes it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _struct(struct: Struct, version: int) -> dict[str, Any]:
    return {
        camel_case(field.name): _value(getattr(struct, field.name), version)
        for field in struct.FIELDS
        if field.present_in(version) and not _is_left_out(field, struct)
    }


def _is_left_out(field: Field, struct: Struct) -> bool:
    """A tagged field is only there if it is not its default."""
    if field.tag is None:
        return False
    value = getattr(struct, field.name)
    return value == field.default or (field.made_on_demand and value == type(value)())


def _value(value: Any, version: int) -> Any:
    match value:
        case Struct():
            return _struct(value, version)
        case list():
            return [_value(element, version) for element in value]
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(value).decode()
        case UUID():
            return uuid_to_base64(value)
        case _:
            return value
