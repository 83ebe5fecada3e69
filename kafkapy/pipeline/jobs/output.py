"""One thing that a pipeline writes: a sink's rows, or a source's dead letters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from kafkapy.pipeline.jobs.pipeline_config import (
    OutputMode,
    SaveMode,
    Trigger,
    TriggerKind,
)
from kafkapy.pipeline.jobs.progress.query_progress import DEAD_LETTERS_COLUMN, ROWS_OUT_COLUMN

_OBSERVED = "pipeline"


@dataclass(frozen=True, slots=True)
class Output:
    """Rows and where they go. A streaming frame becomes a query, any other one is written once."""

    name: str
    frame: DataFrame
    format: str
    options: Mapping[str, str]
    output_mode: OutputMode = OutputMode.APPEND
    save_mode: SaveMode = SaveMode.APPEND
    partition_by: tuple[str, ...] = ()
    path: str | None = None
    table: str | None = None
    is_dead_letters: bool = False

    @property
    def is_streaming(self) -> bool:
        return self.frame.isStreaming

    def start(self, trigger: Trigger, checkpoint: str) -> StreamingQuery:
        counts = [F.count(F.lit(1)).alias(ROWS_OUT_COLUMN)]
        if self.is_dead_letters:
            counts.append(F.count(F.lit(1)).alias(DEAD_LETTERS_COLUMN))
        writer = (
            self.frame.observe(_OBSERVED, *counts)
            .writeStream.queryName(self.name)
            .format(self.format)
            .outputMode(self.output_mode.value)
            .options(**self.options)
            .option("checkpointLocation", checkpoint)
        )
        if self.partition_by:
            writer = writer.partitionBy(*self.partition_by)
        match trigger.kind:
            case TriggerKind.INTERVAL:
                writer = writer.trigger(processingTime=trigger.interval)
            case TriggerKind.AVAILABLE_NOW | TriggerKind.ONCE:
                writer = writer.trigger(availableNow=True)
            case TriggerKind.CONTINUOUS:
                pass
        return writer.toTable(self.table) if self.table is not None else writer.start(self.path)

    def write(self) -> int:
        """How many rows it were."""
        written = Observation()
        frame = self.frame.observe(written, F.count(F.lit(1)).alias(ROWS_OUT_COLUMN))
        writer = frame.write.format(self.format).mode(self.save_mode.value).options(**self.options)
        if self.partition_by:
            writer = writer.partitionBy(*self.partition_by)
        if self.table is not None:
            writer.saveAsTable(self.table)
        else:
            writer.save(self.path)
        rows: int = written.get[ROWS_OUT_COLUMN]
        return rows
