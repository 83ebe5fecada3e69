"""Which columns of a frame become what of a record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructType,
)

from kafkapy.pipeline.pipeline_errors import SchemaError
from kafkapy.pipeline.sink.kafka_sink_options import TOPIC

Headers: TypeAlias = list[tuple[str, bytes | None]]
# Topic, value, key, headers and partition: in the order of the producer's arguments.
SinkRow: TypeAlias = tuple[str | None, bytes | None, bytes | None, Headers | None, int | None]

_VALUE = "value"
_KEY = "key"
_HEADERS = "headers"
PARTITION = "partition"
_HEADERS_TYPE = "array<struct<key:string,value:binary>>"
_HEADERS_OF_BYTES = pa.list_(pa.struct([("key", pa.large_binary()), ("value", pa.large_binary())]))


class RowError(Exception):
    """A value in a column cannot be written; whoever counts the rows says in which."""

    def __init__(self, column: str, reason: str) -> None:
        super().__init__(f"column {column}: {reason}")


@dataclass(frozen=True, slots=True)
class SinkSchema:
    """The columns that there are; others are left alone. Immutable and picklable.

    Ports: org.apache.spark.sql.kafka010.KafkaWriter
    """

    topic: str | None  # for all rows; None if they have a column for it
    columns: frozenset[str]

    @staticmethod
    def of(schema: StructType, topic: str | None) -> SinkSchema:
        """SchemaError names a column that is missing or has a type that it cannot have."""
        types: dict[str, DataType] = {}
        for field in schema.fields:
            if field.name in types and field.name in (_VALUE, _KEY, _HEADERS, PARTITION, TOPIC):
                raise SchemaError(f"column {field.name}: there are two of that name")
            types[field.name] = field.dataType
        if _VALUE not in types:
            raise SchemaError(f"column {_VALUE}: required, but the frame has {_named(schema)}")
        if topic is None and TOPIC not in types:
            raise SchemaError(
                f"column {TOPIC}: required unless option {TOPIC} names one for all rows, but the"
                f" frame has {_named(schema)}"
            )
        for name in (_VALUE, _KEY):
            _require(types, name, "string or binary", StringType, BinaryType)
        _require(types, PARTITION, "int", IntegerType)
        if topic is None:
            _require(types, TOPIC, "string", StringType)
        if _HEADERS in types and not _is_headers(types[_HEADERS]):
            raise _wrong_type(_HEADERS, types[_HEADERS], _HEADERS_TYPE)
        return SinkSchema(topic, frozenset(types))

    def rows(self, batch: pa.RecordBatch) -> Iterator[SinkRow]:
        """The batch's rows, in order. RowError for one that is none."""
        topics = (
            _texts(batch.column(TOPIC))
            if self.topic is None
            else repeat(self.topic, batch.num_rows)
        )
        return zip(
            topics,
            self._bytes(batch, _VALUE),
            self._bytes(batch, _KEY),
            self._headers(batch),
            self._values(batch, PARTITION),
            strict=True,
        )

    def topics(self, batch: pa.RecordBatch) -> set[str]:
        if self.topic is not None:
            return {self.topic}
        return {topic for topic in _texts(batch.column(TOPIC).unique()) if topic is not None}

    def _bytes(self, batch: pa.RecordBatch, name: str) -> Iterator[bytes | None]:
        if name not in self.columns:
            return repeat(None, batch.num_rows)
        column = batch.column(name)
        if pa.types.is_string(column.type):
            column = column.cast(pa.binary())
        elif pa.types.is_large_string(column.type):
            column = column.cast(pa.large_binary())
        return iter(column.to_pylist())

    def _headers(self, batch: pa.RecordBatch) -> Iterator[Headers | None]:
        if _HEADERS not in self.columns:
            return repeat(None, batch.num_rows)
        column = batch.column(_HEADERS)
        try:
            entries = column.to_pylist()
        except UnicodeDecodeError:
            entries = column.cast(_HEADERS_OF_BYTES).to_pylist()
        return map(_headers, entries)

    def _values(self, batch: pa.RecordBatch, name: str) -> Iterator[Any]:
        if name not in self.columns:
            return repeat(None, batch.num_rows)
        return iter(batch.column(name).to_pylist())


def _texts(column: pa.Array) -> list[str | None]:
    """Spark's strings may be any bytes; what is not UTF-8 is replaced, as in Java."""
    try:
        texts: list[str | None] = column.to_pylist()
    except UnicodeDecodeError:
        found = column.cast(pa.large_binary()).to_pylist()
        texts = [None if text is None else _text(text) for text in found]
    return texts


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _headers(entries: list[dict[str, str | bytes | None] | None] | None) -> Headers | None:
    if entries is None:
        return None
    headers: Headers = []
    for entry in entries:
        key = None if entry is None else entry["key"]
        if isinstance(key, bytes):
            key = _text(key)
        if entry is None or not isinstance(key, str):
            raise RowError(_HEADERS, "a header has no key")
        value = entry["value"]
        assert not isinstance(value, str)
        headers.append((key, value))
    return headers


def _require(types: dict[str, DataType], name: str, wanted: str, *allowed: type[DataType]) -> None:
    if name in types and not isinstance(types[name], allowed):
        raise _wrong_type(name, types[name], wanted)


def _is_headers(type_: DataType) -> bool:
    if not isinstance(type_, ArrayType) or not isinstance(type_.elementType, StructType):
        return False
    fields = type_.elementType.fields
    return [(field.name, type(field.dataType)) for field in fields] == [
        ("key", StringType),
        ("value", BinaryType),
    ]


def _wrong_type(name: str, type_: DataType, wanted: str) -> SchemaError:
    return SchemaError(f"column {name}: must be {wanted}, not {type_.simpleString()}")


def _named(schema: StructType) -> str:
    return ", ".join(schema.names) or "no columns"
