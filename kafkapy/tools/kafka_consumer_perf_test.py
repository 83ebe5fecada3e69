"""bin/kafka-consumer-perf-test: how many records a second a consumer reads."""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Collection, Sequence
from datetime import datetime

from kafkapy.clients.consumer.consumer_config import ConsumerConfig
from kafkapy.clients.consumer.consumer_rebalance_listener import ConsumerRebalanceListener
from kafkapy.clients.consumer.kafka_consumer import KafkaConsumer
from kafkapy.common.command_line import CommandParser, run_command
from kafkapy.common.types import TopicPartition
from kafkapy.tools.client_arguments import known_settings, load_property_file
from kafkapy.tools.client_metrics import print_metrics
from kafkapy.tools.progress import Progress
from kafkapy.tools.termination import DeferredTermination
from kafkapy.utils.time import SystemTime, Time

_CLIENT_ID = "perf-consumer-client"
_MIB = 1024 * 1024
_POLL_MS = 100
_NO_THREAD = 0
_COLUMNS = (
    "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms,"
    " fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)
# The letters of Java's SimpleDateFormat that times are made of.
_DATE_FIELDS = {
    "yyyy": "%Y",
    "yy": "%y",
    "MM": "%m",
    "dd": "%d",
    "HH": "%H",
    "mm": "%M",
    "ss": "%S",
    "SSS": "",  # milliseconds, which strftime does not have
}
_DATE_FIELD = re.compile("|".join(sorted(_DATE_FIELDS, key=len, reverse=True)))


def parser() -> CommandParser:
    command = CommandParser(
        "kafka-consumer-perf-test", "Read records and tell how fast they were read."
    )
    command.add_argument(
        "--bootstrap-server",
        metavar="HOST:PORT",
        help="the brokers to connect to, as host:port[,host:port]",
    )
    command.add_argument(
        "--broker-list", metavar="HOST:PORT", help="an old name of --bootstrap-server, which wins"
    )
    command.add_argument("--topic", metavar="TOPIC", required=True, help="the topic to read")
    command.add_argument(
        "--messages", metavar="N", required=True, type=int, help="how many records to read"
    )
    command.add_argument(
        "--group", metavar="GROUP", help="the group to be a member of (default: a new one)"
    )
    command.add_argument(
        "--fetch-size",
        metavar="BYTES",
        type=int,
        default=_MIB,
        help="how much of a partition to fetch at once (default %(default)s)",
    )
    command.add_argument(
        "--from-latest",
        action="store_true",
        help="begin with the newest record, not the oldest, where the group has no offset yet",
    )
    command.add_argument(
        "--socket-buffer-size",
        metavar="BYTES",
        type=int,
        default=2 * _MIB,
        help="the receive buffer of connections (default %(default)s)",
    )
    command.add_argument(
        "--timeout",
        metavar="MS",
        type=int,
        default=10_000,
        help="end when there is no record for so long (default %(default)s)",
    )
    command.add_argument(
        "--reporting-interval",
        metavar="MS",
        type=int,
        default=5_000,
        help="how often --show-detailed-stats prints a line (default %(default)s)",
    )
    command.add_argument(
        "--show-detailed-stats", action="store_true", help="a line for each reporting interval"
    )
    command.add_argument("--hide-header", action="store_true", help="leave out the header")
    command.add_argument(
        "--date-format",
        metavar="FORMAT",
        default="yyyy-MM-dd HH:mm:ss:SSS",
        help="how times are shown, in Java's letters (default yyyy-MM-dd HH:mm:ss:SSS)",
    )
    command.add_argument(
        "--print-metrics", action="store_true", help="show the consumer's metrics at the end"
    )
    command.add_argument(
        "--consumer.config", dest="consumer_config", metavar="FILE", help="settings of the consumer"
    )
    for ignored in ("--threads", "--num-fetch-threads"):
        command.add_argument(ignored, metavar="N", type=int, help="ignored, as in Kafka")
    return command


def run(arguments: Sequence[str]) -> int:
    command = parser()
    parsed = command.parse_args(arguments)
    servers = parsed.bootstrap_server or parsed.broker_list
    if servers is None:
        command.error("Missing required argument --bootstrap-server")
    settings = known_settings(ConsumerConfig, _consumer_properties(parsed, servers))
    with DeferredTermination() as termination, KafkaConsumer(properties=settings) as consumer:
        performance = ConsumerPerformance(parsed, SystemTime(), termination)
        if not parsed.hide_header:
            start = "time, threadId" if parsed.show_detailed_stats else "start.time, end.time"
            print(f"{start}, {_COLUMNS}")
        with Progress("records read", parsed.messages) as progress:
            performance.consume(consumer, progress)
        metrics = consumer.metrics()
    if not parsed.show_detailed_stats:
        performance.print_total()
    if parsed.print_metrics:
        print_metrics(metrics, settings["client.id"])
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    return run_command(run, arguments)


class ConsumerPerformance(ConsumerRebalanceListener):
    """Counts what a consumer reads, and how long it was without partitions. For one thread.

    Ports: org.apache.kafka.tools.ConsumerPerformance
    """

    def __init__(
        self, parsed: argparse.Namespace, time: Time, termination: DeferredTermination
    ) -> None:
        # constant after construction
        self._termination = termination
        self._parsed = parsed
        self._time = time
        self._messages = 0
        self._bytes = 0
        self._join_ms = 0
        self._join_ms_in_window = 0
        self._join_started_ms = 0
        self._started_ms = 0
        self._ended_ms = 0

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        self._join_started_ms = self._time.milliseconds()

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        took_ms = self._time.milliseconds() - self._join_started_ms
        self._join_ms += took_ms
        self._join_ms_in_window += took_ms

    def consume(self, consumer: KafkaConsumer, progress: Progress) -> None:
        parsed, time = self._parsed, self._time
        self._started_ms = self._join_started_ms = time.milliseconds()
        consumer.subscribe([parsed.topic], listener=self)
        last_consumed_ms = reported_ms = now_ms = self._started_ms
        reported = (0, 0)
        while self._messages < parsed.messages and now_ms - last_consumed_ms <= parsed.timeout:
            self._termination.raise_if_asked()
            polled = consumer.poll(_POLL_MS)
            now_ms = time.milliseconds()
            if polled:
                last_consumed_ms = now_ms
            for records in polled.values():
                self._messages += len(records)
                self._bytes += sum(
                    max(0, record.serialized_key_size) + max(0, record.serialized_value_size)
                    for record in records
                )
            progress.update(self._messages)
            if polled and now_ms - reported_ms >= parsed.reporting_interval:
                if parsed.show_detailed_stats:
                    self._print_window(reported, reported_ms, now_ms)
                self._join_ms_in_window = 0
                reported_ms = now_ms
                reported = (self._messages, self._bytes)
        self._ended_ms = time.milliseconds()
        if self._messages < parsed.messages:
            print(
                "WARNING: Exiting before consuming the expected number of messages: timeout"
                f" ({parsed.timeout} ms) exceeded. You can use the --timeout option to increase"
                " the timeout."
            )

    def _print_window(self, reported: tuple[int, int], since_ms: int, now_ms: int) -> None:
        elapsed_ms = now_ms - since_ms
        messages = self._messages - reported[0]
        size = (self._bytes - reported[1]) / _MIB
        fetch_ms = elapsed_ms - self._join_ms_in_window
        print(
            f"{self._date(now_ms)}, {_NO_THREAD}, {self._bytes / _MIB:.4f},"
            f" {_per_second(size, elapsed_ms):.4f}, {self._messages},"
            f" {_per_second(messages, elapsed_ms):.4f}, {self._join_ms_in_window}, {fetch_ms},"
            f" {_per_second(size, fetch_ms):.4f}, {_per_second(messages, fetch_ms):.4f}",
            flush=True,
        )

    def print_total(self) -> None:
        elapsed_ms = self._ended_ms - self._started_ms
        size = self._bytes / _MIB
        fetch_ms = elapsed_ms - self._join_ms
        print(
            f"{self._date(self._started_ms)}, {self._date(self._ended_ms)}, {size:.4f},"
            f" {_per_second(size, elapsed_ms):.4f}, {self._messages},"
            f" {_per_second(self._messages, elapsed_ms):.4f}, {self._join_ms}, {fetch_ms},"
            f" {_per_second(size, fetch_ms):.4f}, {_per_second(self._messages, fetch_ms):.4f}"
        )

    def _date(self, ms: int) -> str:
        moment = datetime.fromtimestamp(ms / 1000)

        def show(field: re.Match[str]) -> str:
            form = _DATE_FIELDS[field[0]]
            return moment.strftime(form) if form else f"{ms % 1000:03d}"

        return _DATE_FIELD.sub(show, self._parsed.date_format)


def _per_second(amount: float, ms: int) -> float:
    return 1000 * amount / ms if ms else 0.0


def _consumer_properties(parsed: argparse.Namespace, servers: str) -> dict[str, str]:
    properties = load_property_file(parsed.consumer_config)
    return {
        **properties,
        "client.id": properties.get("client.id", _CLIENT_ID),
        "bootstrap.servers": servers,
        "group.id": parsed.group or f"perf-consumer-{random.randrange(100_000)}",
        "receive.buffer.bytes": str(parsed.socket_buffer_size),
        "max.partition.fetch.bytes": str(parsed.fetch_size),
        "auto.offset.reset": "latest" if parsed.from_latest else "earliest",
        "check.crcs": "false",
    }


if __name__ == "__main__":
    sys.exit(main())
