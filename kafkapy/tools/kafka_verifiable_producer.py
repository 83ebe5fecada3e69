"""bin/kafka-verifiable-producer: writes numbers, and says of each what became of it."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable, Sequence

from kafkapy.clients.producer.kafka_producer import KafkaProducer
from kafkapy.clients.producer.producer_config import ProducerConfig
from kafkapy.clients.producer.record_metadata import RecordMetadata
from kafkapy.common.command_line import CommandParser, run_command
from kafkapy.common.errors import KafkaError
from kafkapy.tools.client_arguments import known_settings, load_property_file
from kafkapy.tools.json_events import JsonEvents
from kafkapy.tools.termination import DeferredTermination
from kafkapy.tools.throughput_throttler import ThroughputThrottler
from kafkapy.utils.time import SystemTime, Time


def parser() -> CommandParser:
    command = CommandParser(
        "kafka-verifiable-producer",
        "Write increasing numbers to a topic. Each send, and what became of it, is a line of JSON"
        " on standard output, so that a test can tell which records must be there.",
    )
    command.add_argument("--topic", metavar="TOPIC", required=True, help="the topic to write to")
    servers = command.add_mutually_exclusive_group(required=True)
    for option in ("--bootstrap-server", "--broker-list"):
        servers.add_argument(
            option,
            dest="bootstrap_server",
            metavar="HOST:PORT",
            help="the brokers to connect to, as host:port[,host:port]",
        )
    command.add_argument(
        "--max-messages",
        metavar="N",
        type=int,
        default=-1,
        help="end after so many records; -1: go on until stopped (default %(default)s)",
    )
    command.add_argument(
        "--throughput",
        metavar="N",
        type=int,
        default=-1,
        help="about how many records a second to write at most; -1: no limit",
    )
    command.add_argument(
        "--acks",
        metavar="ACKS",
        type=int,
        default=-1,
        help="who must have a record: 0, 1, or -1 for all in sync (default %(default)s)",
    )
    command.add_argument(
        "--producer.config", dest="producer_config", metavar="FILE", help="settings of the producer"
    )
    command.add_argument(
        "--message-create-time",
        metavar="MS",
        type=int,
        default=-1,
        help="the timestamp of the first record, in milliseconds since 1970",
    )
    command.add_argument(
        "--value-prefix", metavar="N", type=int, help="a number and a dot before each value"
    )
    command.add_argument(
        "--repeating-keys",
        metavar="N",
        type=int,
        help="keys that count from 0 to below this, again and again",
    )
    return command


def run(arguments: Sequence[str]) -> int:
    command = parser()
    if not arguments:
        command.print_help()
        return 0
    parsed = command.parse_args(arguments)
    settings = known_settings(
        ProducerConfig,
        {
            **load_property_file(parsed.producer_config),
            "bootstrap.servers": parsed.bootstrap_server,
            "acks": str(parsed.acks),
            "retries": "0",  # so that a failure is seen
        },
    )
    with DeferredTermination() as termination:
        producer = VerifiableProducer(
            KafkaProducer(properties=settings), parsed, time=SystemTime(), termination=termination
        )
        try:
            producer.run()
        finally:
            producer.close()
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    return run_command(run, arguments)


class VerifiableProducer:
    """Sends numbers and reports on them. For one thread; reports come from the sender's.

    Ports: org.apache.kafka.tools.VerifiableProducer
    """

    def __init__(
        self,
        producer: KafkaProducer,
        parsed: argparse.Namespace,
        *,
        time: Time,
        termination: DeferredTermination,
    ) -> None:
        # constant after construction
        self._termination = termination
        self._producer = producer
        self._parsed = parsed
        self._time = time
        self._events = JsonEvents(time)
        self._started_ms = time.milliseconds()
        self._sent = 0
        self._acked = 0  # written by the sender's thread

    def run(self) -> None:
        parsed = self._parsed
        self._events.emit("startup_complete")
        throttler = ThroughputThrottler(parsed.throughput, self._time)
        create_time = parsed.message_create_time
        for number in itertools.count() if parsed.max_messages < 0 else range(parsed.max_messages):
            value = str(number)
            if parsed.value_prefix is not None:
                value = f"{parsed.value_prefix}.{value}"
            key = str(number % parsed.repeating_keys) if parsed.repeating_keys else None
            self._producer.send(
                parsed.topic,
                value.encode(),
                key=None if key is None else key.encode(),
                timestamp_ms=create_time if create_time >= 0 else None,
                callback=self._report(key, value),
            )
            self._sent += 1
            if create_time >= 0:
                create_time += self._time.milliseconds() - self._started_ms
            with self._termination.interruptible():
                throttler.throttle(self._sent)

    def _report(
        self, key: str | None, value: str
    ) -> Callable[[RecordMetadata | None, KafkaError | None], None]:
        def on_completion(metadata: RecordMetadata | None, error: KafkaError | None) -> None:
            if metadata is None:
                self._emit(
                    "producer_send_error",
                    topic=self._parsed.topic,
                    key=key,
                    value=value,
                    exception=type(error).__name__,
                    message=str(error),
                )
                return
            self._acked += 1
            self._emit(
                "producer_send_success",
                key=key,
                value=value,
                offset=metadata.offset,
                topic=metadata.topic,
                partition=metadata.partition,
            )

        return on_completion

    def _emit(self, name: str, **fields: object) -> None:
        """From the sender's thread."""
        try:
            self._events.emit(name, **fields)
        except OSError as e:
            self._termination.ask(e)

    def close(self) -> None:
        """Waits for what is under way."""
        self._producer.close()
        self._events.emit("shutdown_complete")
        elapsed_ms = max(1, self._time.milliseconds() - self._started_ms)
        self._events.emit(
            "tool_data",
            sent=self._sent,
            acked=self._acked,
            target_throughput=self._parsed.throughput,
            avg_throughput=1000 * self._acked / elapsed_ms,
        )


if __name__ == "__main__":
    sys.exit(main())
