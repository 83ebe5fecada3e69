"""Rows from payloads, and what is wrong with the payloads that give none.

A record is bad, and a dead letter, when

    its payload is not UTF-8 (JSON, CSV), not one JSON object, or an empty CSV line,
    a field is there but not of the schema's type, or a CSV line has too few or too many,
    a field that the schema calls NOT NULL is missing or null, inside structs too,
    its bytes are no Avro datum of the schema, or go on after it.

Other fields may be missing, and are null then; fields that the schema does not name are left out. A
record without a payload gives a row of nulls, and is bad only if the schema has NOT NULL fields.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BooleanType, StringType, StructField, StructType

from kafkapy.pipeline.jobs import avro_decoder
from kafkapy.pipeline.jobs.avro_decoder import AvroDecoder
from kafkapy.pipeline.jobs.pipeline_config import AvroPayload, TextPayload
from kafkapy.pipeline.pipeline_errors import SchemaError

# Of the frame that decode() gives, beside the records' own columns.
ROW = "__row"
ERROR = "__error"
_CORRUPT = "__corrupt"
_END = "__end"
_JSON = "json"


class PayloadDecoder:
    """Decodes the column `value` of records by one schema. For one thread; needs a session."""

    def __init__(self, payload: TextPayload | AvroPayload) -> None:
        """Whatever Spark or fastavro says of the schema is raised here."""
        # constant after construction
        self._payload = payload
        if isinstance(payload, AvroPayload):
            self._avro = AvroDecoder(
                payload.schema, has_confluent_header=payload.has_confluent_header
            )
            self.row_type = self._avro.row_type
        else:
            self.row_type = struct_of(payload.schema)

    def decode(self, records: DataFrame) -> DataFrame:
        """The records with ROW, a struct of the schema, and ERROR, null for a good one."""
        payload = self._payload
        if isinstance(payload, AvroPayload):
            result = "__decoded"
            decoded = records.withColumn(result, self._avro.decoded(F.col("value")))
            row = F.col(result)[avro_decoder.ROW]
            error = F.coalesce(F.col(result)[avro_decoder.ERROR], self._missing_fields(row))
            return decoded.withColumn(ROW, row).withColumn(ERROR, error).drop(result)
        text = F.col("value").cast("string")
        if payload.format == _JSON:
            return self._decode_json(payload, records, text)
        return self._decode_csv(payload, records, text)

    def _decode_json(self, payload: TextPayload, records: DataFrame, text: Column) -> DataFrame:
        # Inside an array of ours: of several objects in a payload, or of one with something
        # behind it, Spark would take the first and lose the rest without a word. A payload that
        # closes what it has not opened leaves out the end.
        wrapped = F.concat(F.lit(f'{{"{ROW}":['), text, F.lit(f'],"{_END}":true}}'))
        fields = [
            StructField(ROW, ArrayType(self.row_type)),
            StructField(_END, BooleanType()),
            StructField(_CORRUPT, StringType()),
        ]
        parsed = records.withColumn(
            "__parsed", F.from_json(wrapped, StructType(fields), self._spark_options(payload))
        )
        rows, corrupt = F.col("__parsed")[ROW], F.col("__parsed")[_CORRUPT]
        is_one = F.coalesce((F.size(rows) == 1) & F.col("__parsed")[_END], F.lit(False))
        row = F.when(is_one, F.get(rows, F.lit(0)))
        error = (
            _not_utf8(text)
            .when(text.isNotNull() & row.isNull() & F.try_parse_json(text).isNull(), "not JSON")
            .when(text.isNotNull() & row.isNull(), "not one JSON object")
            .when(corrupt.isNotNull(), self._misfits(text, row))
            .otherwise(self._missing_fields(row))
        )
        return parsed.withColumn(ROW, row).withColumn(ERROR, error).drop("__parsed")

    def _decode_csv(self, payload: TextPayload, records: DataFrame, text: Column) -> DataFrame:
        schema = StructType([*self.row_type.fields, StructField(_CORRUPT, StringType())])
        parsed = records.withColumn(
            "__parsed", F.from_csv(text, _ddl(schema), self._spark_options(payload))
        )
        fields = [F.col("__parsed")[name].alias(name) for name in self.row_type.names]
        row = F.when(text.isNotNull(), F.struct(*fields))
        error = (
            _not_utf8(text)
            .when(F.trim(text) == "", "an empty line")
            .when(F.col("__parsed")[_CORRUPT].isNotNull(), "not CSV of the schema")
            .otherwise(self._missing_fields(row))
        )
        return parsed.withColumn(ROW, row).withColumn(ERROR, error).drop("__parsed")

    def _spark_options(self, payload: TextPayload) -> dict[str, str]:
        return {
            **payload.options,
            "mode": "PERMISSIVE",
            "columnNameOfCorruptRecord": _CORRUPT,
        }

    def _misfits(self, text: Column, row: Column) -> Column:
        """Names the fields that are there and could not be taken."""
        names = [
            F.when(
                row[name].isNull() & F.get_json_object(text, f"$['{name}']").isNotNull(),
                F.lit(name),
            )
            for name in self.row_type.names
            if "'" not in name
        ]
        found = F.concat_ws(", ", *names)
        return F.when(found == "", "a field inside is not of the schema's type").otherwise(
            F.concat(F.lit("not of the schema's type: "), found)
        )

    def _missing_fields(self, row: Column) -> Column:
        missing = [
            F.when(is_missing, F.lit(name)) for name, is_missing in _required(self.row_type, row)
        ]
        if not missing:
            return F.lit(None).cast("string")
        found = F.concat_ws(", ", *missing)
        return F.when(found != "", F.concat(F.lit("NOT NULL but missing or null: "), found))


def struct_of(ddl: str) -> StructType:
    """Spark reads a bare type as well as columns; SchemaError for that."""
    type_ = StructType.fromDDL(ddl)
    if not isinstance(type_, StructType):
        raise SchemaError(f"{ddl!r} is one type, not columns with names and types")
    return type_


def _required(
    schema: StructType, row: Column, prefix: str = "", is_there: Column | None = None
) -> Iterator[tuple[str, Column]]:
    """Each NOT NULL field with the condition that it lacks; one in a struct that is itself null
    lacks nothing.
    """
    for field in schema.fields:
        column = row[field.name]
        lacks = column.isNull() if is_there is None else is_there & column.isNull()
        if not field.nullable:
            yield f"{prefix}{field.name}", lacks
        if isinstance(field.dataType, StructType):
            inner = column.isNotNull()
            yield from _required(field.dataType, column, f"{prefix}{field.name}.", inner)


def _not_utf8(text: Column) -> Column:
    return F.when(~F.is_valid_utf8(text), "not UTF-8")


def _ddl(schema: StructType) -> str:
    """from_csv takes a schema as text alone."""
    return ", ".join(
        f"`{field.name.replace('`', '``')}` {field.dataType.simpleString()}"
        for field in schema.fields
    )
