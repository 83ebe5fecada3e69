"""Rewrites the fixtures: `python -m tests.compat.golden.capture`.

Values are drawn from our declarations, handed to the message classes of real clients, and encoded
by those. Nothing of our codec takes part.
"""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import aiokafka
import aiokafka.protocol
import kafka
import kafka.protocol
from aiokafka.protocol import types as aiokafka_types
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.schemas.fields.codecs.types import BitField

from kafkapy.common.protocol.schema import Message, Struct
from tests.compat.golden.fixtures import DIRECTORY, Golden, line_of, to_values
from tests.unit.common.protocol.message_samples import Sampler, all_message_classes

OURS = {cls.__name__: cls for cls in all_message_classes() if cls.API_KEY is not None}
# aiokafka keeps older names of some APIs.
_RENAMED = {
    "ApiVersion": "ApiVersions",
    "Offset": "ListOffsets",
    "SaslHandShake": "SaslHandshake",
}
# aiokafka nests the first two otherwise; the rest it declares wrongly and never sends.
_WRONG = {
    "CreatePartitionsRequest_v0",
    "CreatePartitionsRequest_v1",
    "DescribeAclsRequest_v2",
    "DescribeAclsResponse_v2",
    "OffsetRequest_v4",
    "OffsetRequest_v5",
}


def main() -> None:
    _write("kafka_python", f"kafka-python {kafka.__version__}", _kafka_python())
    _write("aiokafka", f"aiokafka {aiokafka.__version__}", _aiokafka())


def _write(client: str, title: str, goldens: Iterator[Golden]) -> None:
    lines = [f"# Encoded by {title}.", *(line_of(golden) for golden in goldens)]
    (DIRECTORY / f"{client}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _golden(
    client: str, cls: type[Message], version: int, encode: Callable[[Any], bytes]
) -> Golden:
    sampler = Sampler(
        Random(f"{client} {cls.__name__} {version}"),
        counts=(1, 1, 1, 2),
        blobs=(b"", b"abc", bytes(range(130))),
        texts=("t", "topic-1", "名前"),
        unknown_tags=False,
    )
    message = sampler.message(cls, version)
    return Golden(client, cls.__name__, version, encode(message), to_values(message, version))


def _classes(package: Any) -> Iterator[tuple[str, type]]:
    seen = set()
    for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if ".old" in info.name or info.name.endswith("generate_stubs"):
            continue
        for name, cls in sorted(vars(importlib.import_module(info.name)).items()):
            if inspect.isclass(cls) and cls not in seen:
                seen.add(cls)
                yield name, cls


def _kafka_python() -> Iterator[Golden]:
    for name, cls in _classes(kafka.protocol):
        if not issubclass(cls, ApiMessage) or name not in OURS:
            continue
        ours = OURS[name]
        for version in range(ours.VERSIONS.lowest, min(ours.VERSIONS.highest, cls.max_version) + 1):

            def encode(message: Any, cls: Any = cls, version: int = version) -> bytes:
                built = cls(version=version, **_kafka_python_values(cls._struct, message, version))
                return bytes(built.encode(version=version))

            yield _golden("kafka_python", ours, version, encode)


def _kafka_python_values(struct: Any, message: Struct, version: int) -> dict[str, Any]:
    """By position, because names differ in places; tagged fields by tag."""
    present = [field for field in message.FIELDS if field.present_in(version)]
    ours = [field for field in present if field.tag is None]
    pairs = list(zip(struct.untagged_fields(version), ours, strict=True))
    tagged = {field.tag: field for field in struct.tagged_fields(version)._fields}
    # kafka-python also writes tagged fields that were set to their default.
    default = type(message)()
    pairs += [
        (tagged[field.tag], field)
        for field in present
        if field.tag is not None and getattr(message, field.name) != getattr(default, field.name)
    ]
    return {
        other.name: _kafka_python_value(other, getattr(message, field.name), version)
        for other, field in pairs
    }


def _kafka_python_value(field: Any, value: Any, version: int) -> Any:
    if isinstance(value, list) and field.is_struct_array():
        return [_kafka_python_value(field, item, version) for item in value]
    if isinstance(value, Struct):
        values = _kafka_python_values(field, value, version)
        return field.data_class(version=version, **values)
    if getattr(field, "_type", None) is BitField:
        return {bit for bit in range(32) if value >> bit & 1}
    return bytes(value) if isinstance(value, memoryview) else value


def _aiokafka() -> Iterator[Golden]:
    for name, cls in _classes(aiokafka.protocol):
        match = re.fullmatch(r"(\w+)(Request|Response)_v(\d+)", name)
        if match is None or name in _WRONG:
            continue
        api, kind, version = match[1], match[2], int(match[3])
        ours = OURS[_RENAMED.get(api, api) + kind]

        def encode(message: Any, cls: Any = cls, version: int = version) -> bytes:
            return bytes(cls(*_aiokafka_values(cls.SCHEMA, message, version)).encode())

        yield _golden("aiokafka", ours, version, encode)


def _aiokafka_values(schema: Any, message: Struct, version: int) -> tuple[Any, ...]:
    """By position: aiokafka has names of its own for many fields."""
    present = [field for field in message.FIELDS if field.present_in(version)]
    types = [other for other in schema.fields if other is not aiokafka_types.TaggedFields]
    values = [
        _aiokafka_value(other, getattr(message, field.name), version)
        for other, field in zip(types, present, strict=True)
    ]
    if len(types) < len(schema.fields):
        values.append({})
    return tuple(values)


def _aiokafka_value(type_: Any, value: Any, version: int) -> Any:
    if isinstance(value, list):
        return [_aiokafka_value(type_.array_of, item, version) for item in value]
    if isinstance(value, Struct):
        if isinstance(type_, aiokafka_types.Schema):
            return _aiokafka_values(type_, value, version)
        # Where Kafka has a struct of one field, aiokafka has that field.
        (value,) = to_values(value, version).values()
    return bytes(value) if isinstance(value, memoryview) else value


if __name__ == "__main__":
    main()
