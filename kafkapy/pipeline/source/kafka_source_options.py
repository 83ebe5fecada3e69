"""The options of format("kafkapy") for reading."""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from kafkapy.clients.client_arguments import MAX_INT64
from kafkapy.clients.consumer.consumer_config import ConsumerConfig
from kafkapy.pipeline.kafka_client_options import KafkaClientOptions
from kafkapy.pipeline.pipeline_errors import OptionError
from kafkapy.pipeline.source.consumer_strategy import (
    AssignStrategy,
    ConsumerStrategy,
    SubscribePatternStrategy,
    SubscribeStrategy,
)
from kafkapy.pipeline.source.offset_range_limit import (
    GlobalTimestamp,
    LogEnd,
    OffsetRangeLimit,
    SpecificOffsets,
    SpecificTimestamps,
)
from kafkapy.pipeline.source.partition_json import parse_partition_numbers, parse_partitions

logger = logging.getLogger(__name__)

COMMIT_OFFSETS_TO_GROUP = "commitOffsetsToGroup"
_LIMITS = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
# Those that the official connector does not have: nobody else can tell that one is misspelt.
_OWN_OPTIONS = (COMMIT_OFFSETS_TO_GROUP, "pushFilters")
_OFFICIAL_OPTIONS = (
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "startingOffsetsByTimestamp",
    "startingTimestamp",
    "startingOffsetsByTimestampStrategy",
    "endingOffsets",
    "endingOffsetsByTimestamp",
    "endingTimestamp",
    "failOnDataLoss",
    *_LIMITS,
    "minPartitions",
    "maxRecordsPerPartition",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "kafkaConsumer.pollTimeoutMs",
    "groupIdPrefix",
    "includeHeaders",
)
_KNOWN_OPTIONS = frozenset(option.lower() for option in (*_OWN_OPTIONS, *_OFFICIAL_OPTIONS))
_MISSPELT = 0.75  # how like one of ours an unknown option is when it must be meant for it

_UNITS_MS = {
    "us": 0.001,
    "ms": 1,
    "s": 1_000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}
# More than Kafka's 1 MiB: answers are decoded by the thousand, and each costs a request.
_MAX_PARTITION_FETCH_BYTES = 4 * 1024 * 1024


class TimestampStrategy(Enum):
    """Where to start in a partition that has no record at or after the time.

    Ports: org.apache.spark.sql.kafka010.KafkaSourceProvider.StrategyOnNoMatchStartingOffset
    """

    ERROR = "error"
    LATEST = "latest"


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What a reader was told, checked as far as that goes without a broker. Picklable."""

    client: KafkaClientOptions
    strategy: ConsumerStrategy
    starting: OffsetRangeLimit
    ending: OffsetRangeLimit
    timestamp_strategy: TimestampStrategy
    fail_on_data_loss: bool
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay_ms: int
    min_partitions: int | None
    max_records_per_partition: int | None
    fetch_offset_num_retries: int
    fetch_offset_retry_interval_ms: int
    poll_timeout_ms: int
    include_headers: bool
    group_id_prefix: str
    commit_offsets_to_group: str | None
    push_filters: bool

    @staticmethod
    def for_batch(options: Mapping[str, str]) -> SourceOptions:
        """OptionError names the option that is missing, wrong, or makes no sense in a batch."""
        found = _parse(options, default_start=LogEnd.EARLIEST)
        _refuse(found.starting, LogEnd.LATEST, "startingOffsets", "start at the latest offset")
        _refuse(found.ending, LogEnd.EARLIEST, "endingOffsets", "end at the earliest offset")
        return found

    @staticmethod
    def for_stream(options: Mapping[str, str], *, has_limits: bool = True) -> SourceOptions:
        """OptionError names the option that is missing, wrong, or makes no sense in a stream, or in
        one that takes all there is into each micro-batch.
        """
        given = _Options(options)
        for option in ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets"):
            if given.text(option) is not None:
                raise OptionError(option, "a stream has no end; this is for batches")
        for option in _LIMITS:
            if not has_limits and given.text(option) is not None:
                raise OptionError(option, "Spark 4.2 or newer is needed: this one takes no limits")
        return _parse(options, default_start=LogEnd.LATEST)

    def consumer_config(self) -> ConsumerConfig:
        return self.client.config(
            ConsumerConfig, max_partition_fetch_bytes=_MAX_PARTITION_FETCH_BYTES
        )


class _Options:
    """Options by names whose case does not matter."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = {name.lower(): value for name, value in options.items()}

    def text(self, option: str) -> str | None:
        value = self._options.get(option.lower())
        return None if value is None else value.strip()

    def number(self, option: str, *, at_least: int) -> int | None:
        text = self.text(option)
        if text is None:
            return None
        try:
            number = int(text)
        except ValueError:
            number = at_least - 1
        if number < at_least:
            raise OptionError(option, f"expected a whole number from {at_least} on, not {text!r}")
        if number > MAX_INT64:
            raise OptionError(option, f"{text} takes more than 64 bits")
        return number

    def number_or(self, option: str, default: int) -> int:
        number = self.number(option, at_least=0)
        return default if number is None else number

    def flag(self, option: str, *, default: bool) -> bool:
        text = self.text(option)
        if text is None:
            return default
        if text.lower() not in ("true", "false"):
            raise OptionError(option, f"expected true or false, not {text!r}")
        return text.lower() == "true"

    def duration_ms(self, option: str, default: str) -> int:
        """Spark's form of a duration: 30s, 15m, 1h; a bare number counts milliseconds."""
        text = self.text(option) or default
        found = re.fullmatch(r"(\d+)\s*([a-z]*)", text.lower())
        if found is None or (found[2] or "ms") not in _UNITS_MS:
            raise OptionError(option, f"expected a time like 30s, 15m or 1h, not {text!r}")
        return int(int(found[1]) * _UNITS_MS[found[2] or "ms"])

    def check_spelling(self) -> None:
        """As Spark does, what is not known is left alone, unless it must be meant for us."""
        ours = {option.lower(): option for option in _OWN_OPTIONS}
        for option in self._options.keys() - _KNOWN_OPTIONS:
            if near := difflib.get_close_matches(option, ours, n=1, cutoff=_MISSPELT):
                raise OptionError(option, f"there is no such option; is {ours[near[0]]} meant?")


def _parse(options: Mapping[str, str], *, default_start: LogEnd) -> SourceOptions:
    given = _Options(options)
    given.check_spelling()
    client = KafkaClientOptions.for_source(options)
    client.config(ConsumerConfig)
    most = given.number("maxOffsetsPerTrigger", at_least=1)
    least = given.number("minOffsetsPerTrigger", at_least=1)
    if most is not None and least is not None and least > most:
        raise OptionError(
            "minOffsetsPerTrigger", f"{least} is more than maxOffsetsPerTrigger, which is {most}"
        )
    group = given.text(COMMIT_OFFSETS_TO_GROUP)
    if group == "":
        raise OptionError(COMMIT_OFFSETS_TO_GROUP, "expected the name of a consumer group")
    if "group.id" in client.properties:
        logger.warning(
            "kafka.group.id has no effect: no group is joined; see %s", COMMIT_OFFSETS_TO_GROUP
        )
    return SourceOptions(
        client=client,
        strategy=_strategy(given),
        starting=_limit(given, "starting", default_start),
        ending=_limit(given, "ending", LogEnd.LATEST),
        timestamp_strategy=_timestamp_strategy(given),
        fail_on_data_loss=given.flag("failOnDataLoss", default=True),
        max_offsets_per_trigger=most,
        min_offsets_per_trigger=least,
        max_trigger_delay_ms=given.duration_ms("maxTriggerDelay", "15m"),
        min_partitions=given.number("minPartitions", at_least=1),
        max_records_per_partition=given.number("maxRecordsPerPartition", at_least=1),
        fetch_offset_num_retries=given.number_or("fetchOffset.numRetries", 3),
        fetch_offset_retry_interval_ms=given.number_or("fetchOffset.retryIntervalMs", 10),
        poll_timeout_ms=given.number_or("kafkaConsumer.pollTimeoutMs", 120_000),
        include_headers=given.flag("includeHeaders", default=False),
        group_id_prefix=given.text("groupIdPrefix") or "spark-kafka-source",
        commit_offsets_to_group=group,
        push_filters=given.flag("pushFilters", default=False),
    )


def _strategy(given: _Options) -> ConsumerStrategy:
    names = ("subscribe", "subscribePattern", "assign")
    found = [(name, text) for name in names if (text := given.text(name)) is not None]
    if len(found) != 1:
        got = " and ".join(name for name, _ in found) or "none of them"
        raise OptionError("/".join(names), f"exactly one is to be given, not {got}")
    ((name, text),) = found
    if name == "assign":
        partitions = parse_partitions(name, text)
        if not partitions:
            raise OptionError(name, "names no partition")
        return AssignStrategy(partitions)
    if name == "subscribePattern":
        if not text:
            raise OptionError(name, "expected a pattern of topic names")
        return SubscribePatternStrategy(text)
    topics = frozenset(topic.strip() for topic in text.split(",") if topic.strip())
    if not topics:
        raise OptionError(name, "expected topics, separated by commas")
    return SubscribeStrategy(topics)


def _limit(given: _Options, edge: str, default: LogEnd) -> OffsetRangeLimit:
    option = f"{edge}Timestamp"
    if given.text(option) is not None:
        timestamp_ms = given.number(option, at_least=0)
        assert timestamp_ms is not None
        return GlobalTimestamp(option, timestamp_ms)
    option = f"{edge}OffsetsByTimestamp"
    if (text := given.text(option)) is not None:
        return SpecificTimestamps(option, parse_partition_numbers(option, text, at_least=0))
    option = f"{edge}Offsets"
    text = given.text(option)
    if text is None:
        return default
    if text.upper() in LogEnd.__members__:
        return LogEnd[text.upper()]
    return SpecificOffsets(
        option, parse_partition_numbers(option, text, at_least=LogEnd.EARLIEST.value)
    )


def _timestamp_strategy(given: _Options) -> TimestampStrategy:
    option = "startingOffsetsByTimestampStrategy"
    text = given.text(option) or TimestampStrategy.ERROR.value
    try:
        return TimestampStrategy(text.lower())
    except ValueError:
        raise OptionError(option, f"expected error or latest, not {text!r}") from None


def _refuse(limit: OffsetRangeLimit, log_end: LogEnd, option: str, what: str) -> None:
    if limit is log_end:
        raise OptionError(option, f"a batch cannot {what}: it would read nothing")
    if isinstance(limit, SpecificOffsets):
        for partition, offset in sorted(limit.offsets.items()):
            if offset == log_end:
                raise OptionError(option, f"{partition}: a batch cannot {what} ({offset})")
