"""Streams of format("kafkapy"), with the limits that Spark takes from 4.2 on."""

from __future__ import annotations

from typing import Any

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from kafkapy.pipeline.source.kafka_offset_reader import KafkaOffsetReader
from kafkapy.pipeline.source.kafka_source_offset import KafkaSourceOffset
from kafkapy.pipeline.source.kafka_source_options import SourceOptions
from kafkapy.pipeline.source.micro_batch_reader import MicroBatchReader
from kafkapy.pipeline.source.read_limit_calculator import ReadLimitCalculator
from kafkapy.utils.time import Time


class KafkaStreamReader(MicroBatchReader, SupportsTriggerAvailableNow):
    """Plans micro-batches that take no more than their limit. For one thread.

    Ports: org.apache.spark.sql.kafka010.KafkaMicroBatchStream
    """

    def __init__(
        self,
        options: SourceOptions,
        schema: StructType,
        *,
        time: Time | None = None,
        offset_reader: KafkaOffsetReader | None = None,
    ) -> None:
        super().__init__(options, schema, time=time, offset_reader=offset_reader)
        # constant after construction
        self._limits = ReadLimitCalculator(
            self._time,
            max_offsets=options.max_offsets_per_trigger,
            min_offsets=options.min_offsets_per_trigger,
            max_trigger_delay_ms=options.max_trigger_delay_ms,
        )

        self._latest: KafkaSourceOffset | None = None
        self._final: KafkaSourceOffset | None = None  # with Trigger.AvailableNow

    def initialOffset(self) -> dict[str, Any]:
        initial = self._planner.initial_offset()
        if self._final is not None:
            # That is older: a query that starts at the latest offset must not start after its end.
            initial = initial.at_most(self._final)
        return initial.to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Says only that there is a limit: Spark takes no least together with a most."""
        if (most := self._options.max_offsets_per_trigger) is not None:
            return ReadMaxRows(most)
        if (least := self._options.min_offsets_per_trigger) is not None:
            return ReadMinRows(least)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """What comes from now on is left for the next run."""
        self._final = self._planner.latest_offset(KafkaSourceOffset({}, {}))

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        begin = KafkaSourceOffset.from_json(start)
        # What is before it has been processed, which Spark says of the last batch of a run only
        # by this.
        self._show_group(begin)
        if self._final is None:
            self._wait_while_idle()
        self._latest = latest = self._final or self._planner.latest_offset(begin)
        starts = self._planner.starts(begin, latest)
        end = latest
        if not isinstance(limit, ReadAllAvailable):
            # The last batch of Trigger.AvailableNow would wait for more that does not come.
            if self._final is None and self._limits.is_too_little(starts, latest.offsets):
                self._note_idle(is_idle=True)
                return start
            limited = self._limits.rate_limit(starts, latest.offsets)
            end = KafkaSourceOffset(limited, latest.topic_ids)
        found = end.to_json()
        self._note_idle(is_idle=found == start)
        return found

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """What Spark shows beside the offsets of a batch: the ends of the logs when it was made."""
        return None if self._latest is None else self._latest.to_json()
