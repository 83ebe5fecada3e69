"""bin/kafka-transactions: look at transactions and end those that hang."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from kafkapy.clients.admin import AbortTransactionSpec, AdminClient
from kafkapy.common.command_line import CommandParser, fail, run_command
from kafkapy.common.types import TopicPartition
from kafkapy.tools.admin_connection import connect_admin
from kafkapy.tools.client_arguments import add_bootstrap_server, add_command_config
from kafkapy.tools.hanging_transactions import HangingTransactions
from kafkapy.tools.text_table import print_table
from kafkapy.utils.time import SystemTime

_NONE = "None"
_DEFAULT_MAX_TIMEOUT_MINUTES = 15
_NO_COORDINATOR_EPOCH = -1


def parser() -> CommandParser:
    command = CommandParser(
        "kafka-transactions", "List, describe and abort transactions, and find those that hang."
    )
    add_bootstrap_server(command)
    add_command_config(command)
    actions = command.add_subparsers(
        metavar="COMMAND", dest="action", required=True, help=", ".join(_ACTIONS)
    )
    for name, (text, add_arguments, _) in _ACTIONS.items():
        action = actions.add_parser(name, help=text, description=f"{text.capitalize()}.")
        add_arguments(action)
    return command


def run(arguments: Sequence[str]) -> int:
    parsed = parser().parse_args(arguments)
    _, _, act = _ACTIONS[parsed.action]
    with connect_admin(parsed) as admin:
        act(admin, parsed)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    return run_command(run, arguments)


def _add_list_arguments(action: argparse.ArgumentParser) -> None:
    action.add_argument(
        "--duration-filter",
        metavar="MS",
        type=int,
        default=-1,
        help="only transactions that have run longer than this (default: all)",
    )


def _list(admin: AdminClient, parsed: argparse.Namespace) -> None:
    min_duration_ms = parsed.duration_filter if parsed.duration_filter >= 0 else None
    print_table(
        ["TransactionalId", "Coordinator", "ProducerId", "TransactionState"],
        [
            (
                listing.transactional_id,
                listing.coordinator_id,
                listing.producer_id,
                listing.state.value,
            )
            for listing in admin.list_transactions(min_duration_ms=min_duration_ms)
        ],
    )


def _add_describe_arguments(action: argparse.ArgumentParser) -> None:
    action.add_argument(
        "--transactional-id", metavar="ID", required=True, help="the transactional id"
    )


def _describe(admin: AdminClient, parsed: argparse.Namespace) -> None:
    described = admin.describe_transactions([parsed.transactional_id])[parsed.transactional_id]
    start_ms = described.transaction_start_time_ms
    print_table(
        [
            *("CoordinatorId", "TransactionalId", "ProducerId", "ProducerEpoch"),
            *("TransactionState", "TransactionTimeoutMs", "CurrentTransactionStartTimeMs"),
            *("TransactionDurationMs", "TopicPartitions"),
        ],
        [
            (
                described.coordinator_id,
                parsed.transactional_id,
                described.producer_id,
                described.producer_epoch,
                described.state.value,
                described.transaction_timeout_ms,
                _NONE if start_ms is None else start_ms,
                _NONE if start_ms is None else SystemTime().milliseconds() - start_ms,
                ",".join(map(str, sorted(described.topic_partitions))),
            )
        ],
    )


def _add_partition_arguments(action: argparse.ArgumentParser) -> None:
    action.add_argument("--topic", metavar="TOPIC", required=True, help="the topic")
    action.add_argument(
        "--partition", metavar="N", type=int, required=True, help="the partition of the topic"
    )


def _add_describe_producers_arguments(action: argparse.ArgumentParser) -> None:
    _add_partition_arguments(action)
    action.add_argument(
        "--broker-id",
        metavar="ID",
        type=int,
        help="ask this broker's replica (default: the leader)",
    )


def _describe_producers(admin: AdminClient, parsed: argparse.Namespace) -> None:
    partition = TopicPartition(parsed.topic, parsed.partition)
    producers = admin.describe_producers([partition], broker_id=parsed.broker_id)[partition]
    print_table(
        [
            *("ProducerId", "ProducerEpoch", "LatestCoordinatorEpoch", "LastSequence"),
            *("LastTimestamp", "CurrentTransactionStartOffset"),
        ],
        [
            (
                producer.producer_id,
                producer.producer_epoch,
                _or(producer.coordinator_epoch, _NO_COORDINATOR_EPOCH),
                producer.last_sequence,
                producer.last_timestamp,
                _or(producer.current_transaction_start_offset, _NONE),
            )
            for producer in producers
        ],
    )


def _or(value: int | None, other: object) -> object:
    return other if value is None else value


def _add_abort_arguments(action: argparse.ArgumentParser) -> None:
    _add_partition_arguments(action)
    action.add_argument(
        "--start-offset",
        metavar="OFFSET",
        type=int,
        help="where the transaction begins in the partition",
    )
    for name, text in (
        ("--producer-id", "the producer's id"),
        ("--producer-epoch", "the producer's epoch"),
        ("--coordinator-epoch", "the epoch of its coordinator"),
    ):
        action.add_argument(
            name, metavar="N", type=int, help=f"{text}; all three in place of --start-offset"
        )


def _abort(admin: AdminClient, parsed: argparse.Namespace) -> None:
    partition = TopicPartition(parsed.topic, parsed.partition)
    if parsed.start_offset is not None:
        admin.abort_transaction(_open_transaction(admin, partition, parsed.start_offset))
        return
    if parsed.producer_id is None:
        fail(
            "Say which transaction: by --start-offset or by --producer-id, --producer-epoch and"
            " --coordinator-epoch"
        )
    for name in ("producer_epoch", "coordinator_epoch"):
        if getattr(parsed, name) is None:
            fail(f"Missing required argument --{name.replace('_', '-')}")
    admin.abort_transaction(
        AbortTransactionSpec(
            partition, parsed.producer_id, parsed.producer_epoch, parsed.coordinator_epoch
        )
    )


def _open_transaction(
    admin: AdminClient, partition: TopicPartition, start_offset: int
) -> AbortTransactionSpec:
    for producer in admin.describe_producers([partition])[partition]:
        if producer.current_transaction_start_offset == start_offset:
            # A coordinator that has not written a marker here yet has no epoch: 0 is let through.
            epoch = producer.coordinator_epoch
            return AbortTransactionSpec(
                partition,
                producer.producer_id,
                producer.producer_epoch,
                0 if epoch is None or epoch < 0 else epoch,
            )
    fail(f"No open transaction begins at offset {start_offset} of {partition}")


def _add_find_hanging_arguments(action: argparse.ArgumentParser) -> None:
    action.add_argument("--broker-id", metavar="ID", type=int, help="only replicas of this broker")
    action.add_argument("--topic", metavar="TOPIC", help="only this topic")
    action.add_argument(
        "--partition", metavar="N", type=int, help="only this partition of the topic"
    )
    action.add_argument(
        "--max-transaction-timeout",
        metavar="MINUTES",
        type=int,
        default=_DEFAULT_MAX_TIMEOUT_MINUTES,
        help="how long transactions may take; only longer ones are looked at (default %(default)s)",
    )


def _find_hanging(admin: AdminClient, parsed: argparse.Namespace) -> None:
    if parsed.topic is None and parsed.broker_id is None:
        fail("find-hanging needs --topic or --broker-id")
    if parsed.topic is None and parsed.partition is not None:
        fail("--partition needs --topic")
    search = HangingTransactions(admin, SystemTime(), parsed.max_transaction_timeout)
    hanging = search.find(
        topic=parsed.topic, partition=parsed.partition, broker_id=parsed.broker_id
    )
    print_table(
        [
            *("Topic", "Partition", "ProducerId", "ProducerEpoch", "CoordinatorEpoch"),
            *("StartOffset", "LastTimestamp", "Duration(min)"),
        ],
        [
            (
                found.topic_partition.topic,
                found.topic_partition.partition,
                found.producer.producer_id,
                found.producer.producer_epoch,
                _or(found.producer.coordinator_epoch, _NO_COORDINATOR_EPOCH),
                _or(found.producer.current_transaction_start_offset, _NO_COORDINATOR_EPOCH),
                found.producer.last_timestamp,
                found.minutes,
            )
            for found in hanging
        ],
    )


_Action = tuple[
    str,
    Callable[[argparse.ArgumentParser], None],
    Callable[[AdminClient, argparse.Namespace], None],
]
_ACTIONS: dict[str, _Action] = {
    "list": ("list transactions", _add_list_arguments, _list),
    "describe": ("describe the state of a transactional id", _add_describe_arguments, _describe),
    "describe-producers": (
        "describe the producers of a partition",
        _add_describe_producers_arguments,
        _describe_producers,
    ),
    "abort": (
        "abort a hanging transaction, without asking its coordinator",
        _add_abort_arguments,
        _abort,
    ),
    "find-hanging": (
        "find transactions that nobody will end",
        _add_find_hanging_arguments,
        _find_hanging,
    ),
}


if __name__ == "__main__":
    sys.exit(main())
