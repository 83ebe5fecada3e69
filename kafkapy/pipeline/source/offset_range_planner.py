"""Which offsets a batch or a micro-batch reads."""

from __future__ import annotations

from collections.abc import Mapping

from kafkapy.common.types import TopicPartition
from kafkapy.pipeline.pipeline_errors import OptionError
from kafkapy.pipeline.source.consumer_strategy import AssignedPartitions
from kafkapy.pipeline.source.data_loss_reporter import DataLossReporter
from kafkapy.pipeline.source.kafka_offset_reader import NO_MATCH, KafkaOffsetReader
from kafkapy.pipeline.source.kafka_source_offset import KafkaSourceOffset
from kafkapy.pipeline.source.kafka_source_options import SourceOptions, TimestampStrategy
from kafkapy.pipeline.source.offset_range import OffsetRange
from kafkapy.pipeline.source.offset_range_limit import (
    GlobalTimestamp,
    LogEnd,
    OffsetRangeLimit,
    SpecificOffsets,
    SpecificTimestamps,
)

Offsets = dict[TopicPartition, int]


class OffsetRangePlanner:
    """Turns options and checkpoints into offsets, with what the brokers say. For one thread.

    Ports: org.apache.spark.sql.kafka010.KafkaOffsetReader
    """

    def __init__(self, options: SourceOptions, reader: KafkaOffsetReader) -> None:
        # constant after construction
        self._options = options
        self._reader = reader
        self._data_loss = DataLossReporter(options.fail_on_data_loss)

    # Batches, and where a stream starts

    def batch_ranges(self) -> list[OffsetRange]:
        """What a batch reads; OptionError for limits that the topics do not have."""
        options = self._options
        assigned = self._assigned_or_raise()
        start = self._resolve(options.starting, assigned, is_start=True)
        end = self._resolve(options.ending, assigned, is_start=False)
        self._check_order(start, end)
        return [
            OffsetRange(partition, start[partition], end[partition], assigned.id_of(partition))
            for partition in sorted(assigned.partitions)
        ]

    def initial_offset(self) -> KafkaSourceOffset:
        """Where a new query starts; OptionError for limits that the topics do not have."""
        assigned = self._assigned_or_raise()
        offsets = self._resolve(self._options.starting, assigned, is_start=True)
        return KafkaSourceOffset(offsets, assigned.topic_ids)

    def _assigned_or_raise(self) -> AssignedPartitions:
        assigned = self._reader.assigned_partitions()
        if assigned.missing:
            raise OptionError(
                self._options.strategy.option, f"does not exist: {', '.join(assigned.missing)}"
            )
        return assigned

    def _resolve(
        self, limit: OffsetRangeLimit, assigned: AssignedPartitions, *, is_start: bool
    ) -> Offsets:
        reader = self._reader
        match limit:
            case LogEnd.EARLIEST:
                return reader.earliest(assigned.partitions)
            case LogEnd.LATEST:
                return reader.latest(assigned.partitions)
            case SpecificOffsets(option, offsets):
                _check_all_named(option, offsets, assigned)
                return self._resolve_offsets(option, offsets)
            case SpecificTimestamps(option, timestamps_ms):
                _check_all_named(option, timestamps_ms, assigned)
                return self._resolve_times(option, timestamps_ms, is_start=is_start)
            case GlobalTimestamp(option, timestamp_ms):
                times = dict.fromkeys(assigned.partitions, timestamp_ms)
                return self._resolve_times(option, times, is_start=is_start)

    def _resolve_offsets(self, option: str, offsets: Mapping[TopicPartition, int]) -> Offsets:
        earliest = self._reader.earliest(offsets.keys())
        latest = self._reader.latest(offsets.keys())
        found: Offsets = {}
        for partition, offset in sorted(offsets.items()):
            if offset == LogEnd.EARLIEST:
                found[partition] = earliest[partition]
            elif offset == LogEnd.LATEST:
                found[partition] = latest[partition]
            elif earliest[partition] <= offset <= latest[partition]:
                found[partition] = offset
            else:
                reason = (
                    f"{partition}: offset {offset} is out of range: the log has "
                    f"{earliest[partition]} to {latest[partition]}"
                )
                if self._options.fail_on_data_loss:
                    raise OptionError(option, reason)
                self._data_loss.report(f"{option}: {reason}")
                found[partition] = max(earliest[partition], min(offset, latest[partition]))
        return found

    def _resolve_times(
        self, option: str, timestamps_ms: Mapping[TopicPartition, int], *, is_start: bool
    ) -> Offsets:
        found = self._reader.at_times(timestamps_ms)
        unmatched = sorted(p for p, offset in found.items() if offset == NO_MATCH)
        if unmatched and is_start and self._options.timestamp_strategy is TimestampStrategy.ERROR:
            raise OptionError(
                option,
                f"{unmatched[0]} has no record at or after {timestamps_ms[unmatched[0]]}; with "
                "startingOffsetsByTimestampStrategy=latest it is read from its end",
            )
        return found | self._reader.latest(unmatched)

    def _check_order(self, start: Offsets, end: Offsets) -> None:
        """Between a time and an offset nothing is wrong when nothing lies between them."""
        starting, ending = self._options.starting, self._options.ending
        offsets = isinstance(starting, SpecificOffsets) and isinstance(ending, SpecificOffsets)
        times = isinstance(starting, GlobalTimestamp | SpecificTimestamps) and isinstance(
            ending, GlobalTimestamp | SpecificTimestamps
        )
        if offsets or times:
            assert not isinstance(ending, LogEnd)
            for partition in sorted(start):
                if end[partition] < start[partition]:
                    raise OptionError(
                        ending.option,
                        f"{partition}: it ends at offset {end[partition]}, before it starts at "
                        f"{start[partition]}",
                    )

    # Streams under way

    def latest_offset(self, known: KafkaSourceOffset) -> KafkaSourceOffset:
        """Where the logs end now."""
        assigned = self._reader.assigned_partitions(known.offsets.keys())
        same = {
            partition: offset
            for partition, offset in known.offsets.items()
            if known.topic_id(partition.topic) == assigned.id_of(partition)
        }
        return KafkaSourceOffset(self._reader.latest(assigned.partitions, same), assigned.topic_ids)

    def starts(self, start: KafkaSourceOffset, end: KafkaSourceOffset) -> Offsets:
        """Where each partition of `end` is read from: those that are new from their earliest.

        Reports as lost what partitions or topics had that are gone or made anew.
        """
        anew = sorted(topic for topic in end.topics if start.is_other_topic(topic, end))
        for topic in anew:
            self._data_loss.report(
                f"topic {topic} has been deleted and created anew since the query read it: the "
                "offsets of the checkpoint are those of the old one"
            )
        gone = sorted(start.offsets.keys() - end.offsets.keys())
        if gone := [partition for partition in gone if partition.topic not in anew]:
            self._data_loss.report(f"{_names(gone)} cannot be found any more")
        known = {
            partition: offset
            for partition, offset in start.offsets.items()
            if partition in end.offsets and partition.topic not in anew
        }
        added = end.offsets.keys() - known.keys()
        earliest = self._reader.earliest(added) if added else {}
        for partition, offset in sorted(earliest.items()):
            if offset > 0 and partition.topic not in anew:
                self._data_loss.report(
                    f"{partition} is new, and its first offset is {offset} instead of 0"
                )
        return known | earliest

    def stream_ranges(self, start: KafkaSourceOffset, end: KafkaSourceOffset) -> list[OffsetRange]:
        """What a micro-batch reads."""
        starts = self.starts(start, end)
        for partition, offset in sorted(starts.items()):
            if end.offsets[partition] < offset and partition in start.offsets:
                self._data_loss.report(
                    f"{partition}: offset {offset} was read, and the log ends at "
                    f"{end.offsets[partition]} now"
                )
        return [
            OffsetRange(partition, starts[partition], until, end.topic_id(partition.topic))
            for partition, until in sorted(end.offsets.items())
        ]


def _check_all_named(
    option: str, named: Mapping[TopicPartition, int], assigned: AssignedPartitions
) -> None:
    unknown = sorted(named.keys() - assigned.partitions)
    if unknown:
        raise OptionError(option, f"not among the partitions that are read: {_names(unknown)}")
    missing = sorted(assigned.partitions - named.keys())
    if missing:
        raise OptionError(
            option, f"every partition is to be named, and these are not: {_names(missing)}"
        )


def _names(partitions: list[TopicPartition]) -> str:
    return ", ".join(map(str, partitions))
