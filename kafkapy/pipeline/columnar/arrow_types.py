"""Spark's types as Arrow's."""

from __future__ import annotations

from inspect import signature

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

# Spark 4.1 means UTC by itself, and cannot be told.
_IS_TOLD_TIMEZONE = "timezone" in signature(to_arrow_schema).parameters


def arrow_schema(schema: StructType) -> pa.Schema:
    """Timestamps are in UTC, as Spark wants them of a data source."""
    if _IS_TOLD_TIMEZONE:
        return to_arrow_schema(schema, timezone="UTC")
    return to_arrow_schema(schema)
