"""Avro payloads, without the jar that Spark's own reader of them is in."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import fastavro
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import StringType, StructField, StructType

from kafkapy.pipeline.columnar.arrow_types import arrow_schema
from kafkapy.pipeline.jobs.avro_schema import SINGLE_COLUMN, AvroSchema

ROW = "row"
ERROR = "error"
# In front of what Confluent's serializers write: a zero byte and the id of a schema.
_CONFLUENT_MAGIC = b"\0"
_CONFLUENT_HEADER_BYTES = 5


class AvroDecoder:
    """Payloads as rows, each with an error instead if it is no datum of the schema. Picklable;
    runs in Spark's Python workers.
    """

    def __init__(self, schema: str, *, has_confluent_header: bool) -> None:
        # constant after construction
        self._schema = schema
        self._has_confluent_header = has_confluent_header
        self.row_type = AvroSchema(schema).row_type

    def decoded(self, payload: Column) -> Column:
        """A struct of `row` and `error`, one of which is null unless the payload is."""
        decode = self.decode

        def decode_batch(payloads: pa.Array) -> pa.Array:
            return decode(payloads)

        # Spark's stubs know only the way that Spark warns of.
        udf = arrow_udf(decode_batch, self._result_type())  # type: ignore[call-overload]
        # Spark would else put the same work into a filter and again behind it.
        result: Column = udf.asNondeterministic()(payload)
        return result

    def decode(self, payloads: pa.Array) -> pa.Array:
        schema = AvroSchema(self._schema)
        row_type, error_type = arrow_schema(self._result_type()).types
        rows: list[Mapping[str, object] | None] = []
        errors: list[str | None] = []
        for payload in payloads.to_pylist():
            row, error = None, None
            if payload is not None:
                try:
                    row = self._row(schema, payload)
                # Whatever a wrong schema makes of bytes: an index, a size, a text, a date.
                except Exception as e:
                    error = _not_of_the_schema(e)
            rows.append(row)
            errors.append(error)
        try:
            decoded = pa.array(rows, row_type)
        except (ValueError, TypeError):
            _refuse_misfits(rows, errors, row_type)
            decoded = pa.array(rows, row_type)
        return pa.StructArray.from_arrays([decoded, pa.array(errors, error_type)], [ROW, ERROR])

    def _row(self, schema: AvroSchema, payload: bytes) -> Mapping[str, object]:
        data = io.BytesIO(payload)
        if self._has_confluent_header:
            if len(payload) < _CONFLUENT_HEADER_BYTES or data.read(1) != _CONFLUENT_MAGIC:
                raise ValueError("no Confluent header in front")
            data.seek(_CONFLUENT_HEADER_BYTES)
        datum: Any = fastavro.schemaless_reader(data, schema.parsed, None)
        if rest := len(payload) - data.tell():
            raise ValueError(f"{rest} bytes are left over")
        row: Mapping[str, object] = datum if schema.is_record else {SINGLE_COLUMN: datum}
        return row

    def _result_type(self) -> StructType:
        return StructType([StructField(ROW, self.row_type), StructField(ERROR, StringType())])


def _refuse_misfits(
    rows: list[Mapping[str, object] | None], errors: list[str | None], row_type: pa.DataType
) -> None:
    """Numbers with more bits or digits than the schema's type has, which fastavro lets through."""
    for index, row in enumerate(rows):
        try:
            pa.array([row], row_type)
        except (ValueError, TypeError) as e:
            rows[index], errors[index] = None, _not_of_the_schema(e)


def _not_of_the_schema(error: Exception) -> str:
    return f"not Avro of the schema: {str(error) or type(error).__name__}"
