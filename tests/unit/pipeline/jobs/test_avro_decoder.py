import io
import json
import pickle
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DecimalType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)

from kafkapy.pipeline.jobs.avro_decoder import AvroDecoder
from kafkapy.pipeline.jobs.avro_schema import AvroSchema
from kafkapy.pipeline.pipeline_errors import SchemaError

_ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {
            "name": "price",
            "type": [
                "null",
                {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2},
            ],
        },
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["NEW", "OLD"]}},
        {"name": "before", "type": ["null", "Kind"], "default": None},
        {"name": "tags", "type": {"type": "array", "items": ["null", "string"]}},
        {"name": "counts", "type": {"type": "map", "values": "int"}},
        {"name": "ref", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "time", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {
            "name": "where",
            "type": {
                "type": "record",
                "name": "Place",
                "fields": [{"name": "x", "type": ["int", "long"]}],
            },
        },
    ],
}
_DATUM = {
    "id": 7,
    "at": datetime(2026, 3, 1, 12, tzinfo=UTC),
    "price": Decimal("12.50"),
    "kind": "NEW",
    "before": None,
    "tags": ["a", None],
    "counts": {"a": 1},
    "ref": "6b2e7f3c-0000-4000-8000-000000000000",
    "time": 3_720_000,
    "day": date(2026, 3, 1),
    "where": {"x": 2**40},
}


def _encoded(schema: Any, datum: Any) -> bytes:
    plain = json.loads(json.dumps(schema))
    if isinstance(plain, dict) and "fields" in plain:
        for field in plain["fields"]:
            if field["name"] == "time":
                field["type"] = "int"
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(plain), datum)
    return buffer.getvalue()


def test_types_are_those_of_sparks_own_reader() -> None:
    types = {field.name: field.dataType for field in AvroSchema(json.dumps(_ORDER)).row_type}

    assert types["at"] == TimestampType()
    assert types["price"] == DecimalType(6, 2)
    assert types["before"] == StringType()
    assert types["tags"] == ArrayType(StringType(), containsNull=True)
    assert types["counts"] == MapType(StringType(), IntegerType(), valueContainsNull=False)
    assert types["time"] == IntegerType()
    assert isinstance(types["where"], StructType)
    assert types["where"]["x"].dataType == LongType()


@pytest.mark.parametrize("precision", [{}, {"precision": 0}])
def test_decimal_of_no_digits_stays_what_it_is_based_on(precision: dict[str, int]) -> None:
    schema = {"type": "bytes", "logicalType": "decimal", **precision}

    assert AvroSchema(json.dumps(schema)).row_type["value"].dataType == BinaryType()


def test_only_unions_with_null_may_be_null() -> None:
    row_type = AvroSchema(json.dumps(_ORDER)).row_type

    assert [field.name for field in row_type if field.nullable] == ["price", "before"]


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "record"}, "not an Avro schema: "),
        ("nothing", "not an Avro schema: "),
        ({"type": "array", "items": ["int", "string"]}, "[]: a union of several types"),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 50},
            "a decimal of 50 digits is no column",
        ),
        (
            {
                "type": "record",
                "name": "Node",
                "fields": [{"name": "next", "type": ["null", "Node"]}],
            },
            "next: Node contains itself",
        ),
    ],
)
def test_schema_that_gives_no_columns_is_refused(schema: object, said: str) -> None:
    with pytest.raises(SchemaError) as refusal:
        AvroSchema(json.dumps(schema))

    assert said in str(refusal.value)


def test_payloads_become_rows_or_errors() -> None:
    decoder = AvroDecoder(json.dumps(_ORDER), has_confluent_header=False)
    payload = _encoded(_ORDER, _DATUM)
    payloads = pa.array([payload, payload + b"x", payload[:-1], b"", None], pa.binary())

    decoded = pickle.loads(pickle.dumps(decoder)).decode(payloads).to_pylist()

    row = decoded[0]["row"]
    assert {**row, "counts": dict(row["counts"])} == _DATUM
    sound, longer, shorter, empty, none = (entry["error"] for entry in decoded)
    assert (sound, none) == (None, None)
    assert longer == "not Avro of the schema: 1 bytes are left over"
    assert shorter.startswith("not Avro of the schema: ")
    assert empty.startswith("not Avro of the schema: ")
    assert [entry["row"] for entry in decoded[1:]] == [None] * 4


@pytest.mark.parametrize(
    ("declared", "written", "good", "bad"),
    [
        ("int", "long", 1, 2**40),
        ({"type": "array", "items": "int"}, {"type": "array", "items": "long"}, [1], [2**40]),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 0},
            "bytes",
            b"\1",
            b"\x7f\xff",
        ),
    ],
)
def test_number_that_the_type_cannot_hold_is_an_error_of_its_record_alone(
    declared: object, written: object, good: object, bad: object
) -> None:
    decoder = AvroDecoder(json.dumps(declared), has_confluent_header=False)
    payloads = [_encoded(written, good), _encoded(written, bad), None]

    rows = decoder.decode(pa.array(payloads, pa.binary())).to_pylist()

    assert [row["row"] is not None for row in rows] == [True, False, False]
    assert [row["error"] is not None for row in rows] == [False, True, False]
    assert rows[1]["error"].startswith("not Avro of the schema: ")


def test_confluent_header_is_skipped_and_required() -> None:
    decoder = AvroDecoder('"string"', has_confluent_header=True)
    payload = _encoded("string", "hello")
    payloads = pa.array([b"\0\0\0\0\x2a" + payload, payload, b"\0"], pa.binary())

    decoded = decoder.decode(payloads).to_pylist()

    assert decoded[0] == {"row": {"value": "hello"}, "error": None}
    error = "not Avro of the schema: no Confluent header in front"
    assert [entry["error"] for entry in decoded[1:]] == [error, error]
