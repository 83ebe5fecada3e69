"""New offsets of groups, as kafka-consumer-groups --reset-offsets makes them."""

from __future__ import annotations

import argparse
import csv
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from kafkapy.clients.admin import AdminClient, ConsumerGroupState, OffsetSpec
from kafkapy.clients.consumer.offset_and_metadata import OffsetAndMetadata
from kafkapy.common.command_line import fail
from kafkapy.common.errors import KafkaError
from kafkapy.common.types import TopicPartition
from kafkapy.utils.time import SystemTime

RESET_FORMS = (
    "--to-offset",
    "--to-earliest",
    "--to-latest",
    "--to-current",
    "--to-datetime",
    "--by-duration",
    "--shift-by",
    "--from-file",
)

_NO_OFFSET = -1
_DURATION = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<days>[-+]?\d+)D)?"
    r"(?P<time>T(?:(?P<hours>[-+]?\d+)H)?(?:(?P<minutes>[-+]?\d+)M)?"
    r"(?:(?P<seconds>[-+]?\d+(?:\.\d{1,9})?)S)?)?",
    re.IGNORECASE,
)

Offsets = dict[TopicPartition, int]


class OffsetReset:
    """Works out the new offsets of groups, shows them and, if asked to, commits them.

    For one thread.

    Ports: org.apache.kafka.tools.consumer.group.ConsumerGroupCommand.ConsumerGroupService
    """

    def __init__(self, admin: AdminClient, parsed: argparse.Namespace) -> None:
        # constant after construction
        self._admin = admin
        self._options = parsed
        self._timeout_ms: int = parsed.timeout
        self._is_of_one_group = len(parsed.group) == 1

    def run(self, groups: Sequence[str]) -> bool:
        """Whether all groups could be reset; why one could not is told on standard error."""
        if not self._options.execute and not self._options.dry_run:
            print("Nothing is changed without --execute", file=sys.stderr)
        described = self._admin.describe_consumer_groups(groups, timeout_ms=self._timeout_ms)
        new_offsets: dict[str, Offsets] = {}
        for group in groups:
            state = described[group].state
            if state not in (ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD):
                print(
                    f"Error: Group '{group}' has members (its state is {state.value}): its offsets"
                    " can only be reset without",
                    file=sys.stderr,
                )
                continue
            offsets = self._new_offsets(group)
            if offsets is None:
                print(f"Error: The file has no offsets of group '{group}'", file=sys.stderr)
                continue
            if self._options.execute:
                positions = {tp: OffsetAndMetadata(offset) for tp, offset in offsets.items()}
                self._admin.alter_consumer_group_offsets(
                    group, positions, timeout_ms=self._timeout_ms
                )
            new_offsets[group] = offsets
        self._print(new_offsets)
        return len(new_offsets) == len(groups)

    def _print(self, new_offsets: Mapping[str, Offsets]) -> None:
        rows = [
            (group, partition.topic, partition.partition, offset)
            for group, offsets in new_offsets.items()
            for partition, offset in sorted(offsets.items())
        ]
        if self._options.export:
            writer = csv.writer(sys.stdout, lineterminator="\n")
            writer.writerows(row[1:] if self._is_of_one_group else row for row in rows)
            return
        print()
        for cells in (("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"), *rows):
            print("{:<30} {:<30} {:<10} {:<15}".format(*cells))

    def _new_offsets(self, group: str) -> Offsets | None:
        """None: the file does not name the group."""
        options = self._options
        if options.from_file is not None:
            planned = self._planned(group)
            return None if planned is None else self._within_range(planned)
        partitions = self._partitions(group)
        if options.to_offset is not None:
            return self._within_range(dict.fromkeys(partitions, options.to_offset))
        if options.to_earliest:
            return self._offsets(partitions, OffsetSpec.EARLIEST)
        if options.to_latest:
            return self._offsets(partitions, OffsetSpec.LATEST)
        if options.to_datetime is not None:
            return self._offsets_at(partitions, parse_datetime_ms(options.to_datetime))
        if options.by_duration is not None:
            now_ms = SystemTime().milliseconds()
            return self._offsets_at(partitions, now_ms - parse_duration_ms(options.by_duration))
        committed = self._committed(group, partitions)
        missing = [partition for partition in partitions if partition not in committed]
        if options.shift_by is None:
            return {**committed, **self._offsets(missing, OffsetSpec.LATEST)}
        if missing:
            fail(f"{missing[0]} cannot be shifted: group '{group}' has no offset there")
        return self._within_range(
            {partition: offset + options.shift_by for partition, offset in committed.items()}
        )

    def _partitions(self, group: str) -> list[TopicPartition]:
        if self._options.all_topics:
            committed = self._admin.list_consumer_group_offsets(group, timeout_ms=self._timeout_ms)
            return sorted(committed)
        return partitions_named(self._admin, self._options.topic, self._timeout_ms)

    def _committed(self, group: str, partitions: Sequence[TopicPartition]) -> Offsets:
        committed = self._admin.list_consumer_group_offsets(
            group, partitions, timeout_ms=self._timeout_ms
        )
        return {tp: position.offset for tp, position in committed.items() if position is not None}

    def _offsets(self, partitions: Iterable[TopicPartition], spec: int) -> Offsets:
        specs = dict.fromkeys(partitions, spec)
        if not specs:
            return {}
        listed = self._admin.list_offsets(specs, timeout_ms=self._timeout_ms)
        return {partition: info.offset for partition, info in listed.items()}

    def _offsets_at(self, partitions: Sequence[TopicPartition], timestamp_ms: int) -> Offsets:
        found = self._offsets(partitions, timestamp_ms)
        after_all = [partition for partition, offset in found.items() if offset == _NO_OFFSET]
        for partition in after_all:
            print(f"{partition} has no record so late: its end is taken", file=sys.stderr)
        return {**found, **self._offsets(after_all, OffsetSpec.LATEST)}

    def _within_range(self, wanted: Offsets) -> Offsets:
        first = self._offsets(wanted, OffsetSpec.EARLIEST)
        end = self._offsets(wanted, OffsetSpec.LATEST)
        inside = {}
        for partition, offset in wanted.items():
            inside[partition] = min(max(offset, first[partition]), end[partition])
            if inside[partition] != offset:
                print(
                    f"{partition} has offsets {first[partition]} to {end[partition]}:"
                    f" {inside[partition]} is taken instead of {offset}",
                    file=sys.stderr,
                )
        return inside

    def _planned(self, group: str) -> Offsets | None:
        path = self._options.from_file
        try:
            lines = [row for row in csv.reader(Path(path).read_text().splitlines()) if row]
        except (OSError, UnicodeDecodeError, csv.Error) as e:
            fail(f"Cannot read {path}: {getattr(e, 'strerror', None) or e}")
        offsets: Offsets = {}
        for number, row in enumerate(lines, start=1):
            cells = [cell.strip() for cell in row]
            if len(cells) == 3 and self._is_of_one_group:
                cells.insert(0, group)
            try:
                of_group, topic, partition, offset = cells
                if of_group == group:
                    offsets[TopicPartition(topic, int(partition))] = int(offset)
            except ValueError:
                expected = "topic,partition,offset" if self._is_of_one_group else "group,topic,…"
                fail(f"{path}, line {number}: expected {expected}, not {','.join(row)}")
        return offsets or None


def partitions_named(
    admin: AdminClient, words: Iterable[str], timeout_ms: int
) -> list[TopicPartition]:
    """Of `topic`, all partitions there are, of `topic:0,1` these."""
    partitions: list[TopicPartition] = []
    for word in words:
        topic, separator, ids = word.partition(":")
        if not separator:
            described = admin.describe_topics([topic], timeout_ms=timeout_ms)
            partitions += [
                TopicPartition(topic, info.partition) for info in described[topic].partitions
            ]
            continue
        try:
            partitions += [TopicPartition(topic, int(partition)) for partition in ids.split(",")]
        except ValueError:
            fail(f"--topic {word}: expected partitions as {topic}:0,1")
    return partitions


def parse_datetime_ms(text: str) -> int:
    """UTC unless the text has an offset."""
    try:
        if "T" not in text:
            raise ValueError
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise KafkaError(f"{text} is no time: expected the form 2024-05-01T12:00:00.000") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def parse_duration_ms(text: str) -> int:
    """ISO 8601, as P2DT3H4M5.5S."""
    match = _DURATION.fullmatch(text)
    parts = ("days", "hours", "minutes", "seconds")
    if match is None or not any(match[part] for part in parts) or match["time"] in ("T", "t"):
        raise KafkaError(f"{text} is no duration: expected the form P1DT2H3M4S")
    days, hours, minutes, seconds = (float(match[part] or 0) for part in parts)
    length_ms = round((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)
    return -length_ms if match["sign"] == "-" else length_ms
