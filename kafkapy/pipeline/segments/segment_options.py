"""What the user of the segment source asks for."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final
from urllib.parse import unquote, urlsplit

from kafkapy.common.types import TopicPartition
from kafkapy.pipeline.pipeline_errors import OptionError
from kafkapy.pipeline.source.partition_json import parse_partition_numbers

_EARLIEST: Final = -2
_LATEST: Final = -1
_OPTIONS: Final = (
    "path",
    "paths",
    "topic",
    "topicPattern",
    "partitions",
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "isolationLevel",
    "checkCrcs",
    "includeHeaders",
    "splitBytes",
    "failOnCorruption",
    "respectHighWatermark",
    "view",
)


class View(Enum):
    """What a row is."""

    RECORDS = "records"
    BATCHES = "batches"


@dataclass(frozen=True, slots=True)
class OffsetBound:
    """A start or an end of reading, where it is not that of the log itself.

    A timestamp comes before offsets: the first record that is not older. Partitions without an
    offset are read from their start, or to their end.
    """

    offsets: Mapping[TopicPartition, int]
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class SegmentOptions:
    """The options of format("kafkapy-segments"); immutable and picklable."""

    paths: tuple[str, ...]
    topics: frozenset[str] | None
    topic_pattern: str | None
    partitions: frozenset[int] | None
    start: OffsetBound
    end: OffsetBound
    read_committed: bool = False
    check_crcs: bool = True
    include_headers: bool = False
    split_bytes: int = 64 * 1024 * 1024
    fail_on_corruption: bool = True
    respect_high_watermark: bool = True
    view: View = View.RECORDS

    @staticmethod
    def of(options: Mapping[str, str]) -> SegmentOptions:
        """Raises OptionError, naming the option, for one that is unknown or has a bad value."""
        given = _by_known_name(options)
        topic, pattern = given.get("topic"), given.get("topicPattern")
        if topic is not None and pattern is not None:
            raise OptionError("topicPattern", "it cannot be given together with topic")
        return SegmentOptions(
            paths=_paths(given),
            topics=None if topic is None else frozenset(_listed(topic)),
            topic_pattern=None if pattern is None else _pattern(pattern),
            partitions=_partitions(given.get("partitions")),
            start=_bound(given, "startingOffsets", "startingTimestamp", "earliest", _EARLIEST),
            end=_bound(given, "endingOffsets", "endingTimestamp", "latest", _LATEST),
            read_committed=_one_of(given, "isolationLevel", ("read_uncommitted", "read_committed"))
            == "read_committed",
            check_crcs=_flag(given, "checkCrcs", default=True),
            include_headers=_flag(given, "includeHeaders", default=False),
            split_bytes=_positive(given, "splitBytes", default=64 * 1024 * 1024),
            fail_on_corruption=_flag(given, "failOnCorruption", default=True),
            respect_high_watermark=_flag(given, "respectHighWatermark", default=True),
            view=View(_one_of(given, "view", tuple(view.value for view in View))),
        )

    def wants(self, topic_partition: TopicPartition) -> bool:
        """Whether the filters let a partition through."""
        topic, partition = topic_partition
        if self.partitions is not None and partition not in self.partitions:
            return False
        if self.topics is not None:
            return topic in self.topics
        return self.topic_pattern is None or re.fullmatch(self.topic_pattern, topic) is not None

    @property
    def only_partition(self) -> TopicPartition | None:
        """If one topic and one partition are asked for: what a file of unknown origin holds."""
        match sorted(self.topics or ()), sorted(self.partitions or ()):
            case [topic], [partition]:
                return TopicPartition(topic, partition)
            case _:
                return None


def _by_known_name(options: Mapping[str, str]) -> dict[str, str]:
    names = {name.lower(): name for name in _OPTIONS}
    unknown = sorted(key for key in options if key.lower() not in names)
    if unknown:
        raise OptionError(unknown[0], f"there is no such option; there are {', '.join(_OPTIONS)}")
    return {names[key.lower()]: options[key] for key in options}


def _paths(given: Mapping[str, str]) -> tuple[str, ...]:
    found = _listed(given.get("path", ""))
    if "paths" in given:  # how Spark hands over a list
        try:
            found += [str(path) for path in json.loads(given["paths"])]
        except (ValueError, TypeError) as error:
            raise OptionError("paths", f"it is not a JSON list: {error}") from error
    if not found:
        raise OptionError("path", "give load() a log directory, a partition's or a segment file")
    return tuple(_local(path) for path in found)


def _local(path: str) -> str:
    parts = urlsplit(path)
    if parts.scheme == "file":
        return unquote(parts.path)
    if "://" in path:
        raise OptionError("path", f"{path} is not on a local disk")
    return path


def _listed(text: str) -> list[str]:
    return [part for each in text.split(",") if (part := each.strip())]


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise OptionError("topicPattern", f"{text!r} is not a pattern: {error}") from error
    return text


def _partitions(text: str | None) -> frozenset[int] | None:
    if text is None:
        return None
    found = _listed(text)
    for part in found:
        if not (part.isascii() and part.isdigit()):
            raise OptionError("partitions", f"{part!r} is not a partition's number")
    return frozenset(int(part) for part in found)


def _bound(
    given: Mapping[str, str], offsets: str, timestamp: str, name: str, sentinel: int
) -> OffsetBound:
    """A start or an end; `name`, as a number `sentinel`, is the one of the log itself."""
    by_partition: dict[TopicPartition, int] = {}
    text = given.get(offsets, name).strip()
    if text in ("earliest", "latest"):
        if text != name:
            raise OptionError(offsets, f"it cannot be {text}")
    else:
        by_partition = parse_partition_numbers(offsets, text, at_least=min(_EARLIEST, _LATEST))
    for topic_partition, offset in by_partition.items():
        if offset < 0 and offset != sentinel:
            raise OptionError(offsets, f"{topic_partition}: it cannot be {offset}")
    when = given.get(timestamp)
    if when is not None and not (when.isascii() and when.isdigit()):
        raise OptionError(timestamp, f"{when!r} is not a time in milliseconds since the epoch")
    return OffsetBound(
        {key: offset for key, offset in by_partition.items() if offset != sentinel},
        None if when is None else int(when),
    )


def _one_of(given: Mapping[str, str], option: str, values: tuple[str, ...]) -> str:
    """The first value is the default."""
    value = given.get(option, values[0]).strip().lower()
    if value not in values:
        raise OptionError(option, f"{given[option]!r} is none of {', '.join(values)}")
    return value


def _flag(given: Mapping[str, str], option: str, *, default: bool) -> bool:
    value = given.get(option, str(default)).strip().lower()
    if value not in ("true", "false"):
        raise OptionError(option, f"{given[option]!r} is neither true nor false")
    return value == "true"


def _positive(given: Mapping[str, str], option: str, *, default: int) -> int:
    text = given.get(option, str(default)).strip()
    if not (text.isascii() and text.isdigit()) or int(text) == 0:
        raise OptionError(option, f"{given[option]!r} is not a number of bytes above 0")
    return int(text)
