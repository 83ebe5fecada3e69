"""bin/kafka-dump-log: what is in the files of a partition, and whether they fit together."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from kafkapy.common.command_line import CommandParser, fail, is_of_output, run_command
from kafkapy.tools.log_dump import ALL_BYTES, DumpOptions, LogDump
from kafkapy.tools.log_record_decoders import (
    BYTES_DECODERS,
    Decoder,
    data_decoder,
    decode_offsets,
    decode_transaction_log,
)

_DEFAULT_MAX_MESSAGE_SIZE = 5 * 1024 * 1024
_STRING_DECODER = "org.apache.kafka.tools.api.StringDecoder"


def parser() -> CommandParser:
    command = CommandParser(
        "kafka-dump-log",
        "Show what the files of a partition hold: segments, indexes and producer snapshots. Made"
        " for looking into a log that seems damaged.",
    )
    command.add_argument(
        "--files", metavar="FILE", required=True, help="the files to show, separated by commas"
    )
    command.add_argument(
        "--print-data-log",
        action="store_true",
        help="show keys and values; any decoder includes this",
    )
    command.add_argument(
        "--deep-iteration",
        action="store_true",
        help="show each record of a batch; --print-data-log includes this",
    )
    command.add_argument(
        "--verify-index-only",
        action="store_true",
        help="compare indexes with their segment, without showing the entries",
    )
    command.add_argument(
        "--index-sanity-check",
        action="store_true",
        help="only the check of indexes by which a starting broker decides to rebuild them",
    )
    command.add_argument(
        "--max-message-size",
        metavar="BYTES",
        type=int,
        default=_DEFAULT_MAX_MESSAGE_SIZE,
        help="the size of the largest batch (default %(default)s)",
    )
    command.add_argument(
        "--max-bytes",
        metavar="BYTES",
        type=int,
        default=ALL_BYTES,
        help="how much of a segment to read (default: all)",
    )
    command.add_argument(
        "--skip-record-metadata",
        action="store_true",
        help="leave out everything of a record but key and value",
    )
    for side in ("key", "value"):
        command.add_argument(
            f"--{side}-decoder-class",
            metavar="CLASS",
            help=f"what {side}s are: {', '.join(BYTES_DECODERS)} (default {_STRING_DECODER})",
        )
    command.add_argument(
        "--offsets-decoder",
        action="store_true",
        help="show records as those of __consumer_offsets",
    )
    command.add_argument(
        "--transaction-log-decoder",
        action="store_true",
        help="show records as those of __transaction_state",
    )
    return command


def run(arguments: Sequence[str]) -> int:
    command = parser()
    parsed = command.parse_args(arguments)
    dump = LogDump(_options(parsed))
    for file in parsed.files.split(","):
        try:
            dump.dump(file)
        except OSError as e:
            if is_of_output(e):
                raise
            fail(f"Cannot read {file}: {e.strerror}")
    dump.print_findings()
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    return run_command(run, arguments)


def _options(parsed: argparse.Namespace) -> DumpOptions:
    if parsed.offsets_decoder:
        decoder: Decoder = decode_offsets
    elif parsed.transaction_log_decoder:
        decoder = decode_transaction_log
    else:
        names = (parsed.key_decoder_class, parsed.value_decoder_class)
        decoder = data_decoder(*(_bytes_decoder(name or _STRING_DECODER) for name in names))
    prints_data = (
        parsed.print_data_log
        or parsed.offsets_decoder
        or parsed.transaction_log_decoder
        or parsed.key_decoder_class is not None
        or parsed.value_decoder_class is not None
    )
    return DumpOptions(
        max_bytes=parsed.max_bytes,
        max_message_size=parsed.max_message_size,
        is_deep=parsed.deep_iteration or prints_data,
        prints_data=prints_data,
        skips_metadata=parsed.skip_record_metadata,
        only_verifies=parsed.verify_index_only,
        only_checks_sanity=parsed.index_sanity_check,
        decoder=decoder,
    )


def _bytes_decoder(name: str) -> Callable[[bytes], str]:
    decoder = BYTES_DECODERS.get(name.rpartition(".")[2])
    if decoder is None:
        fail(f"There is no decoder {name}; there are {', '.join(BYTES_DECODERS)}")
    return decoder


if __name__ == "__main__":
    sys.exit(main())
