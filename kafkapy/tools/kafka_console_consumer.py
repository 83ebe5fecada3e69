"""bin/kafka-console-consumer: records on standard output."""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import deque
from collections.abc import Sequence
from typing import BinaryIO

from kafkapy.clients.consumer.consumer_config import (
    READ_COMMITTED,
    READ_UNCOMMITTED,
    ConsumerConfig,
)
from kafkapy.clients.consumer.consumer_record import ConsumerRecord
from kafkapy.clients.consumer.kafka_consumer import KafkaConsumer
from kafkapy.common.command_line import CommandParser, fail, parse_key_values, run_command
from kafkapy.common.errors import KafkaError
from kafkapy.common.types import TopicPartition
from kafkapy.tools.client_arguments import (
    add_bootstrap_server,
    known_settings,
    load_property_file,
)
from kafkapy.tools.message_formatters import FORMATTER_NAMES, MessageFormatter, formatter_named
from kafkapy.tools.termination import TURN_MS, DeferredTermination
from kafkapy.utils.time import SystemTime

_DEFAULT_FORMATTER = "org.apache.kafka.tools.consumer.DefaultMessageFormatter"
_FOREVER_MS = 2**31 - 1
_EARLIEST, _LATEST = "earliest", "latest"
_AUTO_OFFSET_RESET = "auto.offset.reset"
_GROUP_ID = "group.id"


def parser() -> CommandParser:
    command = CommandParser(
        "kafka-console-consumer", "Write the records of topics to standard output."
    )
    add_bootstrap_server(command)
    command.add_argument("--topic", metavar="TOPIC", help="the topic to read")
    command.add_argument(
        "--include", metavar="REGEX", help="read all topics whose names match the expression"
    )
    command.add_argument(
        "--whitelist", metavar="REGEX", help="an old name of --include, which wins"
    )
    command.add_argument("--partition", metavar="N", type=int, help="read only this partition")
    command.add_argument(
        "--offset",
        metavar="OFFSET",
        help="where to begin in the partition: a number, earliest or latest (default latest)",
    )
    command.add_argument(
        "--from-beginning",
        action="store_true",
        help="begin with the oldest record where the group has no offset yet",
    )
    command.add_argument("--group", metavar="GROUP", help="the group to be a member of")
    command.add_argument(
        "--max-messages", metavar="N", type=int, help="end after this many records"
    )
    command.add_argument(
        "--timeout-ms", metavar="MS", type=int, help="end when there is no record for so long"
    )
    command.add_argument(
        "--isolation-level",
        metavar="LEVEL",
        default=READ_UNCOMMITTED,
        choices=(READ_UNCOMMITTED, READ_COMMITTED),
        help="read_committed leaves out open and aborted transactions (default %(default)s)",
    )
    command.add_argument(
        "--skip-message-on-error",
        action="store_true",
        help="leave out a record that cannot be shown, instead of ending",
    )
    command.add_argument(
        "--formatter",
        metavar="CLASS",
        default=_DEFAULT_FORMATTER,
        help=f"how records are shown: {', '.join(FORMATTER_NAMES)}",
    )
    command.add_argument(
        "--property",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="of the formatter: print.timestamp, print.partition, print.offset, print.headers,"
        " print.key, print.value (true or false), key.separator (a tab), line.separator,"
        " headers.separator (,), null.literal (null), key.deserializer, value.deserializer,"
        " headers.deserializer",
    )
    command.add_argument("--formatter-config", metavar="FILE", help="a file of such properties")
    for side in ("key", "value"):
        command.add_argument(
            f"--{side}-deserializer", metavar="CLASS", help=f"the same as {side}.deserializer"
        )
    command.add_argument(
        "--consumer-property",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a setting of the consumer (may be repeated)",
    )
    command.add_argument(
        "--consumer.config", dest="consumer_config", metavar="FILE", help="a file of such settings"
    )
    command.add_argument(
        "--enable-systest-events",
        action="store_true",
        help="also say on standard output when the consumer has ended",
    )
    return command


def run(arguments: Sequence[str]) -> int:
    command = parser()
    parsed = command.parse_args(arguments)
    _check(command, parsed)
    formatter = _formatter(parsed)
    settings = known_settings(ConsumerConfig, _consumer_properties(command, parsed))
    with DeferredTermination() as termination:
        console = ConsoleConsumer(
            KafkaConsumer(properties=settings), formatter, sys.stdout.buffer, termination
        )
        try:
            console.start(parsed)
            console.process(
                max_messages=parsed.max_messages,
                timeout_ms=_FOREVER_MS if parsed.timeout_ms is None else parsed.timeout_ms,
                skips_errors=parsed.skip_message_on_error,
            )
        finally:
            console.close()
            print(f"Processed a total of {console.message_count} messages", file=sys.stderr)
            if parsed.enable_systest_events:
                print("shutdown_complete")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    return run_command(run, arguments)


class ConsoleConsumer:
    """Hands the records of a consumer to a formatter, one by one. For one thread.

    Ports: org.apache.kafka.tools.consumer.ConsoleConsumer
    """

    def __init__(
        self,
        consumer: KafkaConsumer,
        formatter: MessageFormatter,
        output: BinaryIO,
        termination: DeferredTermination,
    ) -> None:
        # constant after construction
        self._termination = termination
        self._consumer = consumer
        self._formatter = formatter
        self._output = output
        self._polled: deque[ConsumerRecord] = deque()
        self.message_count = 0

    def start(self, parsed: argparse.Namespace) -> None:
        include = parsed.include or parsed.whitelist
        if parsed.partition is not None:
            self._assign(TopicPartition(parsed.topic, parsed.partition), parsed)
        elif include is not None:
            self._consumer.subscribe(pattern=_pattern(include))
        else:
            self._consumer.subscribe([parsed.topic])

    def _assign(self, partition: TopicPartition, parsed: argparse.Namespace) -> None:
        self._consumer.assign([partition])
        offset = parsed.offset or (_EARLIEST if parsed.from_beginning else _LATEST)
        if offset == _EARLIEST:
            self._consumer.seek_to_beginning(partition)
        elif offset == _LATEST:
            self._consumer.seek_to_end(partition)
        else:
            self._consumer.seek(partition, int(offset))

    def process(self, *, max_messages: int | None, timeout_ms: int, skips_errors: bool) -> None:
        while max_messages is None or max_messages < 0 or self.message_count < max_messages:
            if not self._polled and not self._poll(timeout_ms):
                print(f"No record for {timeout_ms} ms", file=sys.stderr)
                return
            self._termination.raise_if_asked()
            record = self._polled[0]
            self.message_count += 1
            try:
                self._formatter.write_to(record, self._output)
            except KafkaError as e:
                where = f"{record.topic}-{record.partition}, offset {record.offset}"
                if not skips_errors:
                    raise KafkaError(f"The record at {where} cannot be shown: {e}") from e
                print(f"Left out the record at {where}: {e}", file=sys.stderr)
            self._polled.popleft()

    def _poll(self, timeout_ms: int) -> bool:
        """In short turns, so that a signal is heeded soon."""
        self._output.flush()
        time = SystemTime()
        deadline_ms = time.hi_res_clock_ms() + timeout_ms
        while not self._polled:
            self._termination.raise_if_asked()
            remaining_ms = max(0, deadline_ms - time.hi_res_clock_ms())
            for records in self._consumer.poll(min(remaining_ms, TURN_MS)).values():
                self._polled.extend(records)
            if not remaining_ms:
                break
        return bool(self._polled)

    def close(self) -> None:
        """Only what has been shown counts as consumed."""
        try:
            self._output.flush()
        finally:
            self._close_consumer()

    def _close_consumer(self) -> None:
        first_unconsumed: dict[TopicPartition, int] = {}
        for record in self._polled:
            first_unconsumed.setdefault(
                TopicPartition(record.topic, record.partition), record.offset
            )
        assigned = self._consumer.assignment()
        for partition, offset in first_unconsumed.items():
            if partition in assigned:
                self._consumer.seek(partition, offset)
        self._consumer.close()


def _check(command: CommandParser, parsed: argparse.Namespace) -> None:
    if (parsed.topic is None) == (parsed.include is None and parsed.whitelist is None):
        command.error("Exactly one of --include/--topic is required")
    if "" in (parsed.topic, parsed.include, parsed.whitelist):
        command.error("--include/--topic may not be empty")
    if parsed.partition is None:
        if parsed.offset is not None:
            command.error("The partition is required when offset is specified")
        return
    if parsed.topic is None:
        command.error("The topic is required when partition is specified")
    if parsed.from_beginning and parsed.offset is not None:
        command.error("Options from-beginning and offset cannot be specified together")
    if parsed.offset is not None:
        parsed.offset = parsed.offset.lower()
        if parsed.offset not in (_EARLIEST, _LATEST) and not parsed.offset.isdecimal():
            command.error(
                f"The offset {parsed.offset!r} is none: it is earliest, latest or a number from 0"
            )


def _formatter(parsed: argparse.Namespace) -> MessageFormatter:
    properties = load_property_file(parsed.formatter_config, keep_blanks=True)
    properties |= parse_key_values(parsed.property, "--property")
    for side in ("key", "value"):
        deserializer = getattr(parsed, f"{side}_deserializer")
        if deserializer is not None:
            properties[f"{side}.deserializer"] = deserializer
    return formatter_named(parsed.formatter, properties)


def _consumer_properties(command: CommandParser, parsed: argparse.Namespace) -> dict[str, str]:
    of_file = load_property_file(parsed.consumer_config)
    extra = parse_key_values(parsed.consumer_property, "--consumer-property")
    properties = {"client.id": "console-consumer", **of_file, **extra}
    properties["bootstrap.servers"] = parsed.bootstrap_server
    properties["isolation.level"] = parsed.isolation_level
    properties[_AUTO_OFFSET_RESET] = _offset_reset(properties, from_start=parsed.from_beginning)
    groups = [parsed.group, extra.get(_GROUP_ID), of_file.get(_GROUP_ID)]
    named = {group for group in groups if group is not None}
    if len(named) > 1:
        fail(f"There can be only one group, not {', '.join(sorted(named))}")
    if named and parsed.partition is not None:
        command.error("Options group and partition cannot be specified together")
    if named:
        properties[_GROUP_ID] = named.pop()
    else:
        properties[_GROUP_ID] = f"console-consumer-{random.randrange(100_000)}"
        # Nobody will come back to this group, so its offsets need not be kept.
        properties.setdefault("enable.auto.commit", "false")
    return properties


def _offset_reset(properties: dict[str, str], *, from_start: bool) -> str:
    given = properties.get(_AUTO_OFFSET_RESET)
    if given is None:
        return _EARLIEST if from_start else _LATEST
    if from_start and given != _EARLIEST:
        fail(f"--from-beginning and {_AUTO_OFFSET_RESET}={given} exclude each other: leave out one")
    return given


def _pattern(include: str) -> re.Pattern[str]:
    try:
        return re.compile(include)
    except re.error as e:
        fail(f"{include} is not a regular expression: {e}")


if __name__ == "__main__":
    sys.exit(main())
