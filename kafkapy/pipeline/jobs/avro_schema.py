"""Avro's schemas as Spark's types, with the mapping that Spark's own Avro reader has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import fastavro
from fastavro.schema import SchemaParseException
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from kafkapy.pipeline.pipeline_errors import SchemaError

# A datum that is no record becomes a row with this one column.
SINGLE_COLUMN = "value"

_PRIMITIVES: Mapping[str, type[DataType]] = {
    "boolean": BooleanType,
    "int": IntegerType,
    "long": LongType,
    "float": FloatType,
    "double": DoubleType,
    "bytes": BinaryType,
    "string": StringType,
}
_LOGICAL: Mapping[tuple[str, str], type[DataType]] = {
    ("int", "date"): DateType,
    ("long", "timestamp-millis"): TimestampType,
    ("long", "timestamp-micros"): TimestampType,
    ("long", "local-timestamp-millis"): TimestampNTZType,
    ("long", "local-timestamp-micros"): TimestampNTZType,
}
_WIDER = {frozenset({"int", "long"}): "long", frozenset({"float", "double"}): "double"}
_MAX_DECIMAL_PRECISION = 38


class AvroSchema:
    """One schema: what its data are in Spark, and how fastavro is told to read them. Immutable.

    Ports: org.apache.spark.sql.avro.SchemaConverters
    """

    def __init__(self, text: str) -> None:
        """SchemaError if it is no schema, or has something that no column can hold."""
        try:
            self.parsed: Any = fastavro.parse_schema(_plain(json.loads(text)))
        except (SchemaParseException, ValueError, TypeError, KeyError) as e:
            raise SchemaError(f"not an Avro schema: {e}") from e
        self._named: dict[str, Any] = {}
        self._open: list[str] = []
        type_, is_nullable = self._type_of(self.parsed, "")
        self.is_record = isinstance(type_, StructType)
        self.row_type = (
            type_
            if isinstance(type_, StructType)
            else StructType([StructField(SINGLE_COLUMN, type_, is_nullable)])
        )

    def _type_of(self, schema: Any, path: str) -> tuple[DataType, bool]:
        """The type, and whether it may be null."""
        if isinstance(schema, list):
            return self._union(schema, path)
        if isinstance(schema, str):
            if schema in _PRIMITIVES:
                return _PRIMITIVES[schema](), False
            if schema in self._open:
                raise SchemaError(f"{path or schema}: {schema} contains itself")
            if schema not in self._named:
                raise SchemaError(f"{path or schema}: no column can be of Avro's type {schema}")
            return self._type_of(self._named[schema], path)
        kind = schema["type"]
        match kind:
            case "record" | "error":
                return self._record(schema, path), False
            case "enum":
                self._named[schema["name"]] = "string"
                return StringType(), False
            case "fixed":
                self._named[schema["name"]] = schema
                return self._logical(schema, "fixed") or BinaryType(), False
            case "array":
                element, is_nullable = self._type_of(schema["items"], f"{path}[]")
                return ArrayType(element, is_nullable), False
            case "map":
                value, is_nullable = self._type_of(schema["values"], f"{path}{{}}")
                return MapType(StringType(), value, is_nullable), False
            case str():
                return self._logical(schema, kind) or self._type_of(kind, path)[0], False
        return self._type_of(kind, path)

    def _record(self, schema: Mapping[str, Any], path: str) -> StructType:
        name = schema["name"]
        self._named[name] = schema
        self._open.append(name)
        fields = []
        for field in schema["fields"]:
            inner = f"{path}.{field['name']}" if path else field["name"]
            type_, is_nullable = self._type_of(field["type"], inner)
            fields.append(StructField(field["name"], type_, is_nullable))
        self._open.pop()
        return StructType(fields)

    def _union(self, branches: list[Any], path: str) -> tuple[DataType, bool]:
        others = [branch for branch in branches if branch != "null"]
        is_nullable = len(others) < len(branches)
        if len(others) == 1:
            return self._type_of(others[0], path)[0], is_nullable
        names = frozenset(branch for branch in others if isinstance(branch, str))
        if len(names) == len(others) and names in _WIDER:
            return _PRIMITIVES[_WIDER[names]](), is_nullable
        raise SchemaError(f"{path or 'the schema'}: a union of several types is no column")

    def _logical(self, schema: Mapping[str, Any], kind: str) -> DataType | None:
        logical = schema.get("logicalType")
        if logical == "decimal" and kind in ("bytes", "fixed"):
            if schema["precision"] > _MAX_DECIMAL_PRECISION:
                raise SchemaError(f"a decimal of {schema['precision']} digits is no column")
            return DecimalType(schema["precision"], schema.get("scale", 0))
        found = _LOGICAL.get((kind, str(logical)))
        return None if found is None else found()


def _plain(schema: Any) -> Any:
    """Without the logical types for which Spark has none: their values stay what they are based
    on, where fastavro would make objects of Python's.
    """
    if isinstance(schema, list):
        return [_plain(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {
        key: _plain(value) if key in ("type", "items", "values", "fields") else value
        for key, value in schema.items()
    }
    logical = kept.get("logicalType")
    # Avro ignores a logical type that is not complete.
    is_decimal = logical == "decimal" and kept.get("precision")
    if not is_decimal and (str(kept.get("type")), str(logical)) not in _LOGICAL:
        kept.pop("logicalType", None)
    return kept
