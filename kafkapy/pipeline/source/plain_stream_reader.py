"""Streams of format("kafkapy") with Spark 4.1, which knows no limits."""

from __future__ import annotations

from typing import Any

from pyspark.sql.datasource import InputPartition

from kafkapy.pipeline.source.kafka_source_offset import KafkaSourceOffset
from kafkapy.pipeline.source.micro_batch_reader import MicroBatchReader


class PlainStreamReader(MicroBatchReader):
    """Plans micro-batches that take all there is. For one thread.

    Spark asks it where the logs end without a word on how far the query has come. But it runs each
    batch before it asks again, and a query with a checkpoint has an empty batch planned first, at
    the newest offset that is there. Trigger.AvailableNow asks before that, and once.

    Ports: org.apache.spark.sql.kafka010.KafkaMicroBatchStream
    """

    _known: KafkaSourceOffset | None = None  # the end of the newest batch

    def initialOffset(self) -> dict[str, Any]:
        initial = self._planner.initial_offset()
        if self._known is not None:
            # Spark asks for the end of the first batch before its start, which must not be later.
            initial = initial.at_most(self._known)
        return initial.to_json()

    # Spark 4.1 has no arguments here, and later ones take that, too.
    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]
        known = self._known
        if known is not None:
            self._show_group(known)
        self._wait_while_idle()
        latest = self._planner.latest_offset(known or KafkaSourceOffset({}, {}))
        if known is not None:
            # For what it reports as lost: the next batch is not in the checkpoint yet.
            self._planner.starts(known, latest)
        self._note_idle(is_idle=latest == known)
        self._known = latest
        return latest.to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        self._known = KafkaSourceOffset.from_json(end)
        return super().partitions(start, end)
