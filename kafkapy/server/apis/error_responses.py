"""The answer to a request that failed as a whole, derived from the declarations of both.

A response that has an error code of its own in the request's version carries the error there. In
others the error is further down: everything that the request names, such as topics and their
partitions, groups or resources, is named again, each with the error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.message_registry import response_class
from kafkapy.common.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.common.protocol.schema import Field, Message, Struct
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.network.request_channel import Request

# Old clients look for the error in the lists, although the response has a code of its own.
_LAST_TOLD_TWICE = {ApiKeys.FETCH: 12, ApiKeys.ELECT_LEADERS: 2}
_ERROR_CODES = ("error_code", "partition_error_code")
# The fields by which responses say what an error is about. Requests have them under the same
# names, or under none, as the elements of a list.
_NAMES = frozenset(
    {
        "group_id",
        "index",
        "key",
        "name",
        "partition",
        "partition_id",
        "partition_index",
        "producer_id",
        "resource_name",
        "resource_type",
        "topic",
        "topic_id",
        "transactional_id",
    }
)
# A few requests name partitions otherwise than their responses.
_SYNONYMS = {"partition_index": "partition"}
# What clients expect for what is not known; the defaults of other fields say so by themselves.
_UNKNOWN: dict[str, Any] = {
    "base_offset": -1,
    "committed_offset": -1,
    "high_watermark": -1,
    "low_watermark": -1,
    "node_id": -1,
    "port": -1,
    "records": MemoryRecords(b""),
}


def error_response(request: Request, error: Errors, message: str) -> Message | None:
    """None where no answer can carry the error: the connection is then closed."""
    if request.body is None:
        return None
    api_key, version = request.header.api_key, request.header.api_version
    response = response_class(api_key)()
    failure = _Failure(error, message, version)
    if not failure.set_error(response) or version <= _LAST_TOLD_TWICE.get(api_key, -1):
        failure.fill_lists(response, request.body)
    if isinstance(response, FetchResponse) and isinstance(request.body, FetchRequest):
        response.session_id = request.body.session_id
    return response


@dataclass(frozen=True, slots=True)
class _Failure:
    error: Errors
    message: str
    version: int

    def set_error(self, answer: Struct) -> bool:
        """Whether there is a place for it."""
        names = {field.name for field in self._fields(type(answer))}
        if names.isdisjoint(_ERROR_CODES):
            return False
        values = {
            **_UNKNOWN,
            **dict.fromkeys(_ERROR_CODES, self.error.code),
            "error_message": self.message,
        }
        for name in names.intersection(values):
            setattr(answer, name, values[name])
        return True

    def fill_lists(self, answer: Struct, asked: Struct) -> None:
        """`asked` is the request, or the part of it that `answer` is the answer to."""
        for results in self._lists(type(answer)):
            result = _element(type(answer), results)
            if result is None or not self._can_carry_error(result):
                continue
            for items in self._lists(type(asked)):
                sources = self._sources(result, items, _element(type(asked), items))
                if sources:
                    made = [
                        self._result(result, sources, item)
                        for item in getattr(asked, items.name) or ()
                    ]
                    setattr(answer, results.name, made)
                    break

    def _result(self, cls: type[Struct], sources: Mapping[str, str | None], item: Any) -> Struct:
        values = {
            name: item if source is None else getattr(item, source)
            for name, source in sources.items()
        }
        # A topic may be asked for by its id alone, yet not every response can leave its name out.
        result = cls(**{name: value for name, value in values.items() if value is not None})
        if not self.set_error(result):
            self.fill_lists(result, item)
        return result

    def _sources(
        self, result: type[Struct], items: Field, item: type[Struct] | None
    ) -> dict[str, str | None]:
        """How items of the request call what names a result; None is the item itself."""
        named = [field for field in self._fields(result) if field.name in _NAMES]
        if item is None:
            return {field.name: None for field in named if field.kind == items.element}
        known = {field.name for field in self._fields(item)}
        candidates = {
            field.name: field.name if field.name in known else _SYNONYMS.get(field.name)
            for field in named
        }
        return {name: source for name, source in candidates.items() if source in known}

    def _can_carry_error(self, cls: type[Struct]) -> bool:
        return any(field.name in _ERROR_CODES for field in self._fields(cls)) or any(
            (element := _element(cls, field)) is not None and self._can_carry_error(element)
            for field in self._lists(cls)
        )

    def _lists(self, cls: type[Struct]) -> Iterator[Field]:
        return (field for field in self._fields(cls) if field.kind.name == "array")

    def _fields(self, cls: type[Struct]) -> Iterator[Field]:
        return (field for field in cls.FIELDS if field.present_in(self.version))


def _element(cls: type[Struct], items: Field) -> type[Struct] | None:
    """None for a list of a simple kind."""
    return None if items.struct_name is None else cls.struct_named(items.struct_name)
