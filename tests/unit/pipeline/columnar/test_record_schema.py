"""The columns of records: the official connector's, any of them in any order."""

import pickle

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from kafkapy.pipeline.columnar.record_schema import Column, RecordSchema, spark_schema
from kafkapy.pipeline.pipeline_errors import SchemaError


def test_the_official_connector_s_columns() -> None:
    assert spark_schema(include_headers=True).simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,"
        "timestamp:timestamp,timestampType:int,headers:array<struct<key:string,value:binary>>>"
    )
    assert spark_schema(include_headers=False).names == [
        *("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
    ]


def test_a_schema_keeps_the_order_given_and_survives_pickling() -> None:
    wanted = StructType(
        [StructField("offset", LongType(), False), StructField("key", BinaryType())]
    )

    schema = pickle.loads(pickle.dumps(RecordSchema.of_spark(wanted)))

    assert schema.ordered == (Column.OFFSET, Column.KEY)
    assert schema.columns == frozenset({Column.KEY, Column.OFFSET})
    assert schema.arrow == pa.schema(
        [pa.field("offset", pa.int64(), nullable=False), pa.field("key", pa.binary())]
    )


def strict_headers() -> ArrayType:
    entry = StructType(
        [StructField("key", StringType()), StructField("value", BinaryType(), False)]
    )
    return ArrayType(entry)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ([("Value", BinaryType(), True)], "column Value: there is no such column; there are key"),
        ([("value", StringType(), True)], "column value: its type is binary, not string"),
        ([("offset", IntegerType(), True)], "column offset: its type is bigint, not int"),
        ([("headers", strict_headers(), True)], "column headers: .* with nulls allowed inside"),
        ([("key", BinaryType(), False)], "column key: it may be null, so it must be nullable"),
        ([("key", BinaryType(), True)] * 2, "column key: it is named twice"),
        ([], "a schema has at least one column"),
    ],
)
def test_a_column_that_records_do_not_have_is_named(
    fields: list[tuple[str, DataType, bool]], message: str
) -> None:
    with pytest.raises(SchemaError, match=message):
        RecordSchema.of_spark(StructType([StructField(*field) for field in fields]))
