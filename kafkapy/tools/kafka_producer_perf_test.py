"""bin/kafka-producer-perf-test: how many records a second a producer writes."""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from kafkapy.clients.producer.kafka_producer import KafkaProducer
from kafkapy.clients.producer.producer_config import ProducerConfig
from kafkapy.clients.producer.record_metadata import RecordMetadata
from kafkapy.common.command_line import CommandParser, fail, parse_key_values, run_command
from kafkapy.common.errors import KafkaError
from kafkapy.tools.client_arguments import known_settings, load_property_file
from kafkapy.tools.client_metrics import print_metrics
from kafkapy.tools.termination import DeferredTermination
from kafkapy.tools.throughput_throttler import ThroughputThrottler
from kafkapy.utils.time import SystemTime, Time

_DEFAULT_TRANSACTIONAL_ID = "performance-producer-default-transactional-id"
_CLIENT_ID = "perf-producer-client"
_REPORTING_INTERVAL_MS = 5000
_MAX_LATENCIES = 500_000
_MIB = 1024 * 1024
_LETTERS = bytes(range(ord("A"), ord("Z") + 1))
# Values are cut out of so many random letters: a value of its own for each record would measure
# the making of random numbers.
_LETTERS_POOL = 64 * 1024


def parser() -> CommandParser:
    command = CommandParser(
        "kafka-producer-perf-test", "Write records and tell how fast they were written."
    )
    command.add_argument("--topic", metavar="TOPIC", required=True, help="the topic to write to")
    command.add_argument(
        "--num-records", metavar="N", required=True, type=int, help="how many records to write"
    )
    command.add_argument(
        "--throughput",
        metavar="N",
        required=True,
        type=float,
        help="about how many records a second to write at most; -1: no limit",
    )
    payload = command.add_mutually_exclusive_group(required=True)
    payload.add_argument(
        "--record-size", metavar="BYTES", type=int, help="the size of values, of random letters"
    )
    payload.add_argument(
        "--payload-file", metavar="FILE", help="a file of which values are taken at random"
    )
    payload.add_argument(
        "--payload-monotonic", action="store_true", help="values are the numbers 0, 1, 2, ..."
    )
    command.add_argument(
        "--payload-delimiter",
        metavar="TEXT",
        default="\\n",
        help="a regular expression for what separates values in --payload-file (default"
        " %(default)s)",
    )
    command.add_argument(
        "--producer-props",
        metavar="KEY=VALUE",
        nargs="+",
        default=[],
        help="settings of the producer, bootstrap.servers among them",
    )
    command.add_argument(
        "--producer.config", dest="producer_config", metavar="FILE", help="a file of such settings"
    )
    command.add_argument(
        "--print-metrics", action="store_true", help="show the producer's metrics at the end"
    )
    command.add_argument(
        "--transactional-id",
        metavar="ID",
        default=_DEFAULT_TRANSACTIONAL_ID,
        help="the transactional id if --transaction-duration-ms is set (default %(default)s)",
    )
    command.add_argument(
        "--transaction-duration-ms",
        metavar="MS",
        type=int,
        default=0,
        help="write in transactions that last so long",
    )
    return command


def run(arguments: Sequence[str]) -> int:
    command = parser()
    parsed = command.parse_args(arguments)
    if not parsed.producer_props and parsed.producer_config is None:
        command.error("Either --producer-props or --producer.config must be specified")
    if parsed.record_size is not None and parsed.record_size < 0:
        command.error("--record-size must not be negative")
    payload = _payload(parsed)
    settings = known_settings(ProducerConfig, _producer_properties(parsed))
    time = SystemTime()
    with DeferredTermination() as termination, KafkaProducer(properties=settings) as producer:
        stats = ProducerStats(parsed.num_records, time, termination)
        _write(parsed, producer, payload, stats=stats, time=time, termination=termination)
        if parsed.print_metrics:
            producer.flush()
            stats.print_total()
            print_metrics(producer.metrics(), settings["client.id"])
    if not parsed.print_metrics:
        stats.print_total()
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    return run_command(run, arguments)


class ProducerStats:
    """Latencies and counts, over a window and in total.

    `record` is called by the sender's thread alone, `print_total` when that has no more to do.

    Ports: org.apache.kafka.tools.ProducerPerformance.Stats
    """

    def __init__(self, num_records: int, time: Time, termination: DeferredTermination) -> None:
        # constant after construction
        self._termination = termination
        self._time = time
        self._sampling = max(1, num_records // _MAX_LATENCIES)
        self._started_ms = time.hi_res_clock_ms()
        # written by the sender's thread
        self._count = 0
        self._bytes = 0
        self._latency_ms = 0
        self._max_latency_ms = 0
        self._latencies: list[int] = []
        self._start_window(self._started_ms)

    def _start_window(self, now_ms: int) -> None:
        self._window_started_ms = now_ms
        self._window_count = 0
        self._window_bytes = 0
        self._window_latency_ms = 0
        self._window_max_latency_ms = 0

    def next_completion(
        self, size: int
    ) -> Callable[[RecordMetadata | None, KafkaError | None], None]:
        """What a record that is sent now calls when it is written."""
        started_ms = self._time.hi_res_clock_ms()

        def on_completion(metadata: RecordMetadata | None, error: KafkaError | None) -> None:
            if error is not None:
                print(f"A record could not be sent: {error}", file=sys.stderr)
                return
            now_ms = self._time.hi_res_clock_ms()
            self.record(now_ms - started_ms, size, now_ms)

        return on_completion

    def record(self, latency_ms: int, size: int, now_ms: int) -> None:
        if self._count % self._sampling == 0:
            self._latencies.append(latency_ms)
        self._count += 1
        self._bytes += size
        self._latency_ms += latency_ms
        self._max_latency_ms = max(self._max_latency_ms, latency_ms)
        self._window_count += 1
        self._window_bytes += size
        self._window_latency_ms += latency_ms
        self._window_max_latency_ms = max(self._window_max_latency_ms, latency_ms)
        if now_ms - self._window_started_ms >= _REPORTING_INTERVAL_MS:
            try:
                self._print_window(now_ms)
            except OSError as e:
                self._termination.ask(e)
            self._start_window(now_ms)

    def _print_window(self, now_ms: int) -> None:
        seconds = (now_ms - self._window_started_ms) / 1000
        print(
            f"{self._window_count} records sent, {self._window_count / seconds:.1f} records/sec"
            f" ({self._window_bytes / seconds / _MIB:.2f} MB/sec),"
            f" {self._window_latency_ms / self._window_count:.1f} ms avg latency,"
            f" {float(self._window_max_latency_ms):.1f} ms max latency.",
            flush=True,
        )

    def print_total(self) -> None:
        seconds = max(1, self._time.hi_res_clock_ms() - self._started_ms) / 1000
        latencies = sorted(self._latencies) or [0]
        percentiles = ", ".join(
            f"{latencies[min(int(part * len(latencies)), len(latencies) - 1)]} ms {name}"
            for part, name in ((0.5, "50th"), (0.95, "95th"), (0.99, "99th"), (0.999, "99.9th"))
        )
        print(
            f"{self._count} records sent, {self._count / seconds:f} records/sec"
            f" ({self._bytes / seconds / _MIB:.2f} MB/sec),"
            f" {self._latency_ms / max(1, self._count):.2f} ms avg latency,"
            f" {float(self._max_latency_ms):.2f} ms max latency, {percentiles}."
        )


def _write(
    parsed: argparse.Namespace,
    producer: KafkaProducer,
    payload: Callable[[int], bytes],
    *,
    stats: ProducerStats,
    time: Time,
    termination: DeferredTermination,
) -> None:
    transaction_ms = parsed.transaction_duration_ms
    if transaction_ms > 0:
        producer.init_transactions()
    throttler = ThroughputThrottler(parsed.throughput, time)
    transaction_started_ms = None
    for number in range(parsed.num_records):
        value = payload(number)
        if transaction_ms > 0 and transaction_started_ms is None:
            producer.begin_transaction()
            transaction_started_ms = time.hi_res_clock_ms()
        producer.send(parsed.topic, value, callback=stats.next_completion(len(value)))
        with termination.interruptible():
            throttler.throttle(number + 1)
        if (
            transaction_started_ms is not None
            and time.hi_res_clock_ms() - transaction_started_ms >= transaction_ms
        ):
            producer.commit_transaction()
            transaction_started_ms = None
    if transaction_started_ms is not None:
        producer.commit_transaction()


def _payload(parsed: argparse.Namespace) -> Callable[[int], bytes]:
    if parsed.payload_monotonic:
        return lambda number: str(number).encode()
    chance = random.Random(0)
    if parsed.payload_file is not None:
        values = _payloads(parsed.payload_file, parsed.payload_delimiter)
        return lambda number: chance.choice(values)
    size = parsed.record_size
    letters = bytes(chance.choices(_LETTERS, k=_LETTERS_POOL + size))

    def cut(number: int) -> bytes:
        at = chance.randrange(_LETTERS_POOL)
        return letters[at : at + size]

    return cut


def _payloads(file: str, delimiter: str) -> list[bytes]:
    print(f"Reading payloads from: {file}")
    try:
        content = Path(file).read_bytes()
    except OSError as e:
        fail(f"Cannot read {file}: {e.strerror}")
    if not content:
        fail(f"{file} is empty")
    values = re.split(delimiter.encode(), content)
    while len(values) > 1 and not values[-1]:
        values.pop()
    print(f"Number of messages read: {len(values)}")
    return values


def _producer_properties(parsed: argparse.Namespace) -> dict[str, str]:
    properties = {
        "client.id": _CLIENT_ID,
        **load_property_file(parsed.producer_config),
        **parse_key_values(parsed.producer_props, "--producer-props"),
    }
    if parsed.transaction_duration_ms > 0:
        properties["transactional.id"] = parsed.transactional_id
    return properties


if __name__ == "__main__":
    sys.exit(main())
