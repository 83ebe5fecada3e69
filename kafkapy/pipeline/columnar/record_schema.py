"""The columns that a record has in Spark: the official connector's, by name and type."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kafkapy.pipeline.columnar.arrow_types import arrow_schema
from kafkapy.pipeline.pipeline_errors import SchemaError

_HEADERS = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", BinaryType())])
)


class Column(Enum):
    """A column, with its type in Spark and whether a record may lack it."""

    KEY = ("key", BinaryType(), True)
    VALUE = ("value", BinaryType(), True)
    TOPIC = ("topic", StringType(), False)
    PARTITION = ("partition", IntegerType(), False)
    OFFSET = ("offset", LongType(), False)
    TIMESTAMP = ("timestamp", TimestampType(), False)
    TIMESTAMP_TYPE = ("timestampType", IntegerType(), False)
    HEADERS = ("headers", _HEADERS, True)

    def __init__(self, column_name: str, data_type: DataType, may_be_null: bool) -> None:
        self.column_name = column_name
        self.data_type = data_type
        self.may_be_null = may_be_null


def spark_schema(*, include_headers: bool) -> StructType:
    """What a data source has unless its user names the columns."""
    return StructType(
        [
            StructField(column.column_name, column.data_type)
            for column in Column
            if include_headers or column is not Column.HEADERS
        ]
    )


@dataclass(frozen=True, slots=True)
class RecordSchema:
    """The columns that are wanted, in the order wanted; immutable and picklable."""

    arrow: pa.Schema
    ordered: tuple[Column, ...]  # a column of `arrow` each

    @staticmethod
    def of_spark(schema: StructType) -> RecordSchema:
        """Raises SchemaError, naming the column, for one that records do not have."""
        by_name = {column.column_name: column for column in Column}
        ordered: list[Column] = []
        if not schema.fields:
            raise SchemaError("a schema has at least one column")
        for field in schema.fields:
            column = by_name.get(field.name)
            if column is None:
                raise SchemaError(
                    f"column {field.name}: there is no such column; there are {', '.join(by_name)}"
                )
            if column in ordered:
                raise SchemaError(f"column {field.name}: it is named twice")
            if field.dataType != column.data_type:
                raise SchemaError(
                    f"column {field.name}: its type is {column.data_type.simpleString()} with "
                    f"nulls allowed inside, not {field.dataType.simpleString()}"
                    if column is Column.HEADERS
                    else f"column {field.name}: its type is {column.data_type.simpleString()}, "
                    f"not {field.dataType.simpleString()}"
                )
            if column.may_be_null and not field.nullable:
                raise SchemaError(f"column {field.name}: it may be null, so it must be nullable")
            ordered.append(column)
        return RecordSchema(arrow_schema(schema), tuple(ordered))

    @property
    def columns(self) -> frozenset[Column]:
        """As a set: what has to be decoded."""
        return frozenset(self.ordered)
