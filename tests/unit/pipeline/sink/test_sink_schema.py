"""Which frames can be written."""

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from kafkapy.pipeline.pipeline_errors import SchemaError
from kafkapy.pipeline.sink.sink_schema import RowError, SinkSchema

HEADERS = ArrayType(StructType().add("key", StringType()).add("value", BinaryType()))
SWAPPED_HEADERS = ArrayType(StructType().add("value", BinaryType()).add("key", StringType()))


def schema(**columns: DataType) -> StructType:
    return StructType([StructField(name, type_) for name, type_ in columns.items()])


@pytest.mark.parametrize(
    "columns",
    [
        {"value": BinaryType()},
        {"value": StringType()},
        {"value": StringType(), "key": StringType()},
        {
            "value": BinaryType(),
            "key": BinaryType(),
            "headers": HEADERS,
            "partition": IntegerType(),
        },
        {"value": BinaryType(), "topic": LongType(), "extra": LongType(), "Key": LongType()},
    ],
)
def test_frame_with_a_value_can_be_written_to_the_topic_of_the_option(
    columns: dict[str, DataType],
) -> None:
    assert SinkSchema.of(schema(**columns), "t").topic == "t"


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"key": BinaryType(), "topic": StringType()}, "column value: required.* has topic, key"),
        ({"value": BinaryType()}, "column topic: required unless option topic"),
        ({"value": LongType()}, "column value: must be string or binary, not bigint"),
        ({"value": ArrayType(BinaryType())}, "column value: .* not array<binary>"),
        ({"value": BinaryType(), "key": IntegerType()}, "column key: must be string or binary"),
        (
            {"value": BinaryType(), "topic": BinaryType()},
            "column topic: must be string, not binary",
        ),
        (
            {"value": BinaryType(), "partition": LongType()},
            "column partition: must be int, not big",
        ),
        ({"value": BinaryType(), "headers": StringType()}, "column headers: must be array<struct"),
        (
            {"value": BinaryType(), "headers": MapType(StringType(), BinaryType())},
            "column headers: must be array<struct<key:string,value:binary>>, not map",
        ),
        ({"value": BinaryType(), "headers": SWAPPED_HEADERS}, "column headers"),
    ],
)
def test_wrong_column_is_named(columns: dict[str, DataType], told: str) -> None:
    columns = {"topic": StringType(), **columns} if "column topic" not in told else columns

    with pytest.raises(SchemaError, match=told):
        SinkSchema.of(schema(**columns), None)


def test_column_that_is_there_twice_is_refused() -> None:
    twice = StructType([StructField("value", StringType()), StructField("value", BinaryType())])

    with pytest.raises(SchemaError, match="column value: there are two"):
        SinkSchema.of(twice, "t")


def test_rows_are_those_of_the_columns_whatever_their_order() -> None:
    columns = schema(
        partition=IntegerType(),
        headers=HEADERS,
        value=StringType(),
        topic=StringType(),
        key=BinaryType(),
    )
    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    batch = pa.RecordBatch.from_pydict(
        {
            "partition": pa.array([1, None], pa.int32()),
            "headers": pa.array([[{"key": "h", "value": None}], None], pa.list_(header)),
            "value": pa.array(["ä", None], pa.large_string()),
            "topic": ["a", "b"],
            "key": pa.array([None, b"k"], pa.binary()),
        }
    )

    rows = SinkSchema.of(columns, None)

    assert list(rows.rows(batch)) == [
        ("a", "ä".encode(), None, [("h", None)], 1),
        ("b", None, b"k", None, None),
    ]
    assert rows.topics(batch) == {"a", "b"}


def test_what_is_not_utf8_in_texts_is_replaced_as_in_java() -> None:
    def texts(*values: bytes | None) -> pa.Array:
        return pa.array(values, pa.binary()).view(pa.string())

    header = pa.StructArray.from_arrays([texts(b"h\xff"), pa.array([b"\xff"])], ["key", "value"])
    headers = pa.ListArray.from_arrays(pa.array([0, 1, 1], pa.int32()), header)
    batch = pa.RecordBatch.from_arrays(
        [texts(b"t\xff", None), texts(b"v\xff", None), headers], ["topic", "value", "headers"]
    )

    rows = SinkSchema.of(schema(topic=StringType(), value=StringType(), headers=HEADERS), None)

    assert list(rows.rows(batch)) == [
        ("t\ufffd", b"v\xff", None, [("h\ufffd", b"\xff")], None),
        (None, None, None, [], None),
    ]
    assert rows.topics(batch) == {"t\ufffd"}


@pytest.mark.parametrize("entry", [None, {"key": None, "value": b"v"}])
def test_header_without_a_key_is_refused(entry: dict[str, bytes | None] | None) -> None:
    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    batch = pa.RecordBatch.from_pydict(
        {"value": ["v"], "headers": pa.array([[entry]], pa.list_(header))}
    )

    with pytest.raises(RowError, match="column headers: a header has no key"):
        list(SinkSchema.of(schema(value=StringType(), headers=HEADERS), "t").rows(batch))
