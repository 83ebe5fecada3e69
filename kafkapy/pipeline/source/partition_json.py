"""Partitions, offsets and times as JSON in options: {"orders": [0, 1]}, {"orders": {"0": 23}}.

Ports: org.apache.spark.sql.kafka010.JsonUtils
"""

from __future__ import annotations

import json
from typing import Any

from kafkapy.clients.client_arguments import MAX_INT64
from kafkapy.common.types import TopicPartition
from kafkapy.pipeline.pipeline_errors import OptionError

_PARTITIONS_EXAMPLE = '{"topic": [0, 1]}'
_NUMBERS_EXAMPLE = '{"topic": {"0": 23, "1": -2}}'


def parse_partitions(option: str, text: str) -> frozenset[TopicPartition]:
    """Of {"orders": [0, 1]}; OptionError for anything else."""
    found: set[TopicPartition] = set()
    for topic, partitions in _topics(option, text, _PARTITIONS_EXAMPLE).items():
        if not isinstance(partitions, list):
            raise OptionError(option, f"{topic}: expected a list of partitions, not {partitions!r}")
        for partition in partitions:
            if not _is_number(partition) or partition < 0:
                raise OptionError(option, f"{topic}: {partition!r} is no partition")
            found.add(TopicPartition(topic, partition))
    return frozenset(found)


def parse_partition_numbers(option: str, text: str, *, at_least: int) -> dict[TopicPartition, int]:
    """Of {"orders": {"0": 23}}, offsets or times; OptionError for anything else."""
    found: dict[TopicPartition, int] = {}
    for topic, numbers in _topics(option, text, _NUMBERS_EXAMPLE).items():
        if not isinstance(numbers, dict):
            raise OptionError(
                option, f"{topic}: expected a number for each partition, not {numbers!r}"
            )
        for partition, number in numbers.items():
            if not partition.isdecimal():
                raise OptionError(option, f"{topic}: {partition!r} is no partition")
            if not _is_number(number) or number < at_least:
                raise OptionError(
                    option,
                    f"{topic}-{partition}: expected a whole number from {at_least} on, "
                    f"not {number!r}",
                )
            if number > MAX_INT64:
                raise OptionError(option, f"{topic}-{partition}: {number} takes more than 64 bits")
            found[TopicPartition(topic, int(partition))] = number
    return found


def _topics(option: str, text: str, example: str) -> dict[str, Any]:
    try:
        parsed = json.loads(text)
    except ValueError as error:
        raise OptionError(option, f"expected JSON like {example}: {error}: {text!r}") from error
    if not isinstance(parsed, dict):
        raise OptionError(option, f"expected JSON like {example}, not {text!r}")
    return parsed


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
