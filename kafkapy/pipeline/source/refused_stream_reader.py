"""A stream that cannot be read as it was asked for."""

from __future__ import annotations

from typing import Any, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from kafkapy.pipeline.pipeline_errors import PipelineError


class RefusedStreamReader(DataSourceStreamReader):
    """Raises what is wrong as soon as Spark asks for an offset. For one thread.

    Were it raised earlier, when Spark makes the reader, the query would end with another exception:
    Spark closes the reader then, which it has not got.
    """

    def __init__(self, error: PipelineError) -> None:
        self._error = error  # constant after construction

    def initialOffset(self) -> NoReturn:
        raise self._error

    # The form without arguments is the one that every Spark calls.
    def latestOffset(self) -> NoReturn:  # type: ignore[override]
        raise self._error

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> NoReturn:
        raise self._error

    def read(self, partition: InputPartition) -> NoReturn:
        raise self._error
