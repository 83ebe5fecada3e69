"""bin/kafka-console-producer: lines of standard input become records."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Iterator, Sequence

from kafkapy.clients.producer.kafka_producer import KafkaProducer
from kafkapy.clients.producer.producer_config import ProducerConfig
from kafkapy.clients.producer.record_metadata import RecordMetadata
from kafkapy.common.command_line import CommandParser, fail, parse_key_values, run_command
from kafkapy.common.errors import KafkaError
from kafkapy.tools.client_arguments import known_settings, load_property_file
from kafkapy.tools.line_message_reader import ENCODING_ERRORS, LineMessageReader
from kafkapy.tools.termination import DeferredTermination

_LINE_READER = "kafka.tools.ConsoleProducer$LineMessageReader"
_COMPRESSION_WITHOUT_NAME = "gzip"
# option, setting, default, meaning: the option wins over a property, and a property over the
# option's default.
_SETTINGS = (
    ("--timeout", "linger.ms", 1000, "how long a batch that is not full waits for more, in ms"),
    ("--request-required-acks", "acks", -1, "who must have a record: 0, 1, or all (-1) in sync"),
    ("--request-timeout-ms", "request.timeout.ms", 1500, "how long to wait for an answer, in ms"),
    ("--message-send-max-retries", "retries", 3, "how often a batch that failed is sent again"),
    ("--retry-backoff-ms", "retry.backoff.ms", 100, "the wait before that, in ms"),
    ("--socket-buffer-size", "send.buffer.bytes", 102400, "the send buffer of connections"),
    ("--max-memory-bytes", "buffer.memory", 33554432, "the memory for records not sent yet"),
    ("--batch-size", "batch.size", 16384, "up to which size the batches of a partition are filled"),
    ("--max-partition-memory-bytes", "batch.size", 16384, "the same; wins over --batch-size"),
    ("--metadata-expiry-ms", "metadata.max.age.ms", 300000, "how often to refresh metadata, in ms"),
    ("--max-block-ms", "max.block.ms", 60000, "how long a send may wait for memory or metadata"),
)


def parser() -> CommandParser:
    command = CommandParser(
        "kafka-console-producer", "Send each line of standard input to a topic as a record."
    )
    command.add_argument("--topic", metavar="TOPIC", required=True, help="the topic to write to")
    command.add_argument(
        "--bootstrap-server",
        metavar="HOST:PORT",
        help="the brokers to connect to, as host:port[,host:port]",
    )
    command.add_argument(
        "--broker-list", metavar="HOST:PORT", help="an old name of --bootstrap-server, which wins"
    )
    command.add_argument(
        "--sync", action="store_true", help="wait for each record to be written before the next"
    )
    command.add_argument(
        "--compression-codec",
        metavar="CODEC",
        nargs="?",
        const=_COMPRESSION_WITHOUT_NAME,
        help="none, gzip, snappy, lz4 or zstd; gzip if the option has no value",
    )
    for option, setting, default, meaning in _SETTINGS:
        command.add_argument(
            option,
            metavar="N",
            type=str if setting == "acks" else int,
            help=f"{meaning} ({setting}; default {default})",
        )
    command.add_argument(
        "--property",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="how lines are taken apart: parse.key, parse.headers, ignore.error (true or false),"
        " key.separator, headers.delimiter (a tab), headers.separator (,), headers.key.separator"
        " (:), and null.marker, which stands for null. With keys and headers a line is"
        " h1:v1,h2:v2<tab>key<tab>value",
    )
    command.add_argument("--reader-config", metavar="FILE", help="a file of such properties")
    command.add_argument(
        "--line-reader",
        metavar="CLASS",
        default=_LINE_READER,
        help="who takes lines apart; only %(default)s is there",
    )
    command.add_argument(
        "--producer-property",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a setting of the producer (may be repeated)",
    )
    command.add_argument(
        "--producer.config", dest="producer_config", metavar="FILE", help="a file of such settings"
    )
    return command


def run(arguments: Sequence[str]) -> int:
    command = parser()
    parsed = command.parse_args(arguments)
    servers = parsed.bootstrap_server or parsed.broker_list
    if servers is None:
        command.error("Missing required argument --bootstrap-server")
    if parsed.line_reader.rpartition(".")[2].rpartition("$")[2] != "LineMessageReader":
        fail(f"--line-reader {parsed.line_reader}: only {_LINE_READER} is there")
    reader = LineMessageReader.of(
        load_property_file(parsed.reader_config, keep_blanks=True)
        | parse_key_values(parsed.property, "--property")
    )
    settings = known_settings(ProducerConfig, _producer_properties(parsed, servers))
    with DeferredTermination() as termination, KafkaProducer(properties=settings) as producer:
        for line in reader.lines(_prompted_lines(termination)):
            future = producer.send(
                parsed.topic, line.value, key=line.key, headers=line.headers, callback=_report
            )
            if parsed.sync:
                future.get()
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    return run_command(run, arguments)


def _producer_properties(parsed: argparse.Namespace, servers: str) -> dict[str, str]:
    properties = {
        "client.id": "console-producer",
        **load_property_file(parsed.producer_config),
        **parse_key_values(parsed.producer_property, "--producer-property"),
        "bootstrap.servers": servers,
    }
    if parsed.compression_codec is not None:
        properties["compression.type"] = parsed.compression_codec
    for option, setting, default, _ in _SETTINGS:
        given = getattr(parsed, option[2:].replace("-", "_"))
        if given is not None:
            properties[setting] = str(given)
        else:
            properties.setdefault(setting, str(default))
    return properties


def _prompted_lines(termination: DeferredTermination) -> Iterator[str]:
    """Of standard input, with a prompt if it is a terminal; bytes that are no UTF-8 unharmed."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors=ENCODING_ERRORS)
    is_prompted = sys.stdin.isatty()
    while True:
        with termination.interruptible():
            if is_prompted:
                print(">", end="", flush=True)
            line = sys.stdin.readline()
        if not line:
            return
        yield line


def _report(metadata: RecordMetadata | None, error: KafkaError | None) -> None:
    """A record that could not be sent is told of, and the next ones are sent all the same."""
    if error is not None:
        print(f"A record could not be sent: {error or type(error).__name__}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
