"""Writes `docs/protocol.md` and `docs/errors.md` from the declarations."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from kafkapy.common.errors import Errors, InvalidMetadataError, RetriableError
from kafkapy.common.protocol.api_keys import ApiKeys, ListenerType
from kafkapy.common.protocol.message_registry import request_class, response_class
from kafkapy.common.protocol.schema import Field, Message, Struct

_LISTENERS = (
    (ListenerType.ZK_BROKER, "ZooKeeper broker"),
    (ListenerType.BROKER, "KRaft broker"),
    (ListenerType.CONTROLLER, "KRaft controller"),
)


def errors_markdown() -> str:
    """Every error, in the order of its code."""
    lines = ["# Errors", "", "| code | name | retriable | meaning |", "|---|---|---|---|"]
    for error in Errors:
        meaning = error.message or "No error."
        lines.append(f"| {error.code} | {error.name} | {_retriable(error)} | {meaning} |")
    return "\n".join(lines) + "\n"


def protocol_markdown() -> str:
    """Every API with its versions, then the fields of every request and response."""
    lines = [
        "# Protocol",
        "",
        "Versions are those of Kafka 3.9. A field is on the wire in its versions only; where the"
        " message is flexible, lengths are varints and tagged fields may follow.",
        "",
        "| key | API | versions | flexible | offered by |",
        "|---|---|---|---|---|",
    ]
    for api in ApiKeys:
        listeners = ", ".join(title for listener, title in _LISTENERS if listener in api.listeners)
        flexible = request_class(api).FLEXIBLE_VERSIONS
        unstable = " (latest unstable)" if api.latest_version_unstable else ""
        lines.append(
            f"| {int(api)} | [{api.api_name}](#{api.api_name.lower()}) | {api.versions}{unstable} |"
            f" {flexible} | {listeners} |"
        )
    for api in ApiKeys:
        lines += ["", f"## {api.api_name}", "", _about(api)]
        for cls in (request_class(api), response_class(api)):
            lines += ["", f"### {cls.__name__} {cls.VERSIONS}", "", *_fields_table(cls)]
    return "\n".join(lines) + "\n"


def _retriable(error: Errors) -> str:
    cls = error.exception_class
    if cls is None or not issubclass(cls, RetriableError):
        return "no"
    return "after new metadata" if issubclass(cls, InvalidMetadataError) else "yes"


def _about(api: ApiKeys) -> str:
    """The sentence at the top of the API's module, without the name that starts it."""
    text = sys.modules[request_class(api).__module__].__doc__ or ""
    sentence = text.partition(": ")[2]
    return sentence[:1].upper() + sentence[1:]


def _fields_table(cls: type[Message]) -> Iterator[str]:
    if not cls.FIELDS:
        yield "No fields."
        return
    yield "| field | type | versions | nullable | default | tag |"
    yield "|---|---|---|---|---|---|"
    yield from _rows(cls, "")


def _rows(cls: type[Struct], path: str) -> Iterator[str]:
    for field in cls.FIELDS:
        nullable = "" if field.nullable == "none" else field.nullable
        tag = "" if field.tag is None else str(field.tag)
        yield (
            f"| {path}{field.name} | {_type(field)} | {field.versions} | {nullable} |"
            f" {_default(field)} | {tag} |"
        )
        if field.struct_name is not None:
            inner = f"{path}{field.name}{'[]' if field.kind.name == 'array' else ''}."
            yield from _rows(cls.struct_named(field.struct_name), inner)


def _type(field: Field) -> str:
    if field.kind.name == "array":
        return f"[]{field.struct_name or (field.element.name if field.element else '')}"
    return field.struct_name or field.kind.name


def _default(field: Field) -> str:
    """Only what differs from the usual zero, empty or new value."""
    if field.default is None:
        return "" if field.kind.name == "records" else "null"
    return "" if field.default == field.kind.default else str(field.default).lower()
