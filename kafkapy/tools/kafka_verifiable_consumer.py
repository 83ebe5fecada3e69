"""bin/kafka-verifiable-consumer: reads a topic and says what it does, line by line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Mapping, Sequence

from kafkapy.clients.consumer.consumer_config import ConsumerConfig
from kafkapy.clients.consumer.consumer_rebalance_listener import ConsumerRebalanceListener
from kafkapy.clients.consumer.consumer_record import ConsumerRecord
from kafkapy.clients.consumer.kafka_consumer import KafkaConsumer
from kafkapy.common.command_line import CommandParser, run_command
from kafkapy.common.errors import FencedInstanceIdError, KafkaError
from kafkapy.common.types import TopicPartition
from kafkapy.tools.client_arguments import known_settings, load_property_file
from kafkapy.tools.json_events import JsonEvents
from kafkapy.tools.termination import TURN_MS, DeferredTermination
from kafkapy.utils.time import SystemTime, Time

_CLASSIC = "classic"


def parser() -> CommandParser:
    command = CommandParser(
        "kafka-verifiable-consumer",
        "Read a topic as a member of a group. Rebalances, records and commits are lines of JSON on"
        " standard output.",
    )
    command.add_argument("--topic", metavar="TOPIC", required=True, help="the topic to read")
    servers = command.add_mutually_exclusive_group(required=True)
    for option in ("--bootstrap-server", "--broker-list"):
        servers.add_argument(
            option,
            dest="bootstrap_server",
            metavar="HOST:PORT",
            help="the brokers to connect to, as host:port[,host:port]",
        )
    command.add_argument(
        "--group-id", metavar="GROUP", required=True, help="the group to be a member of"
    )
    command.add_argument(
        "--group-instance-id", metavar="ID", help="a name of this member that outlives restarts"
    )
    command.add_argument(
        "--group-protocol",
        metavar="PROTOCOL",
        type=str.lower,
        choices=(_CLASSIC,),
        default=_CLASSIC,
        help="how groups work; only classic is there",
    )
    command.add_argument(
        "--max-messages",
        metavar="N",
        type=int,
        default=-1,
        help="end after so many records; -1: go on until stopped (default %(default)s)",
    )
    command.add_argument(
        "--session-timeout",
        metavar="MS",
        type=int,
        default=30_000,
        help="without a heartbeat for so long a member is dead (default %(default)s)",
    )
    command.add_argument("--verbose", action="store_true", help="a line for each record too")
    command.add_argument(
        "--enable-autocommit",
        action="store_true",
        help="commit from time to time, not after each poll",
    )
    command.add_argument(
        "--reset-policy",
        metavar="POLICY",
        default="earliest",
        help="where to begin without an offset: earliest, latest or none (default %(default)s)",
    )
    command.add_argument(
        "--assignment-strategy",
        metavar="CLASS",
        default="org.apache.kafka.clients.consumer.RangeAssignor",
        help="how the group shares partitions (default %(default)s)",
    )
    command.add_argument(
        "--consumer.config", dest="consumer_config", metavar="FILE", help="settings of the consumer"
    )
    return command


def run(arguments: Sequence[str]) -> int:
    command = parser()
    if not arguments:
        command.print_help()
        return 0
    parsed = command.parse_args(arguments)
    properties = {
        **load_property_file(parsed.consumer_config),
        "bootstrap.servers": parsed.bootstrap_server,
        "group.id": parsed.group_id,
        "enable.auto.commit": str(parsed.enable_autocommit).lower(),
        "auto.offset.reset": parsed.reset_policy,
        "session.timeout.ms": str(parsed.session_timeout),
        "partition.assignment.strategy": parsed.assignment_strategy,
    }
    if parsed.group_instance_id is not None:
        properties["group.instance.id"] = parsed.group_instance_id
    settings = known_settings(ConsumerConfig, properties)
    with DeferredTermination() as termination:
        consumer = VerifiableConsumer(
            KafkaConsumer(properties=settings), parsed, time=SystemTime(), termination=termination
        )
        try:
            consumer.run()
        finally:
            consumer.close()
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    return run_command(run, arguments)


class VerifiableConsumer(ConsumerRebalanceListener):
    """Reads, commits and reports. For one thread.

    Ports: org.apache.kafka.tools.VerifiableConsumer
    """

    def __init__(
        self,
        consumer: KafkaConsumer,
        parsed: argparse.Namespace,
        *,
        time: Time,
        termination: DeferredTermination,
    ) -> None:
        # constant after construction
        self._termination = termination
        self._consumer = consumer
        self._parsed = parsed
        self._events = JsonEvents(time)
        self._consumed = 0

    @property
    def _is_finished(self) -> bool:
        limit: int = self._parsed.max_messages
        return 0 <= limit <= self._consumed

    def run(self) -> None:
        self._events.emit("startup_complete")
        self._consumer.subscribe([self._parsed.topic], listener=self)
        while not self._is_finished:
            offsets = self._receive(self._poll())
            if not self._parsed.enable_autocommit:
                self._commit(offsets)

    def _poll(self) -> Mapping[TopicPartition, list[ConsumerRecord]]:
        """Waits for records as long as it takes."""
        while True:
            self._termination.raise_if_asked()
            if polled := self._consumer.poll(TURN_MS):
                return polled

    def close(self) -> None:
        self._consumer.close()
        self._events.emit("shutdown_complete")

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        self._tell_of("partitions_assigned", assigned)

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        self._tell_of("partitions_revoked", revoked)

    def _tell_of(self, name: str, partitions: Collection[TopicPartition]) -> None:
        try:
            self._events.emit(name, partitions=_partitions(partitions))
        except OSError as e:
            self._termination.ask(e)

    def _receive(
        self, polled: Mapping[TopicPartition, list[ConsumerRecord]]
    ) -> dict[TopicPartition, int]:
        offsets = {}
        summaries = []
        for partition, records in polled.items():
            if self._parsed.max_messages >= 0:
                records = records[: self._parsed.max_messages - self._consumed]
            if not records:
                continue
            offsets[partition] = records[-1].offset + 1
            summaries.append(
                {
                    "topic": partition.topic,
                    "partition": partition.partition,
                    "count": len(records),
                    "minOffset": records[0].offset,
                    "maxOffset": records[-1].offset,
                }
            )
            if self._parsed.verbose:
                for record in records:
                    self._report(record)
            self._consumed += len(records)
        count = sum(map(len, polled.values()))
        self._events.emit("records_consumed", count=count, partitions=summaries)
        return offsets

    def _report(self, record: ConsumerRecord) -> None:
        self._events.emit(
            "record_data",
            key=_text(record.key),
            value=_text(record.value),
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
        )

    def _commit(self, offsets: dict[TopicPartition, int]) -> None:
        failure = {}
        try:
            self._consumer.commit_sync(offsets)
        except FencedInstanceIdError:
            raise
        except KafkaError as e:
            failure = {"error": str(e)}
        shown = [
            {"topic": partition.topic, "partition": partition.partition, "offset": offset}
            for partition, offset in offsets.items()
        ]
        self._events.emit("offsets_committed", offsets=shown, **failure, success=not failure)


def _partitions(partitions: Collection[TopicPartition]) -> list[dict[str, object]]:
    return [{"topic": topic, "partition": partition} for topic, partition in sorted(partitions)]


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")


if __name__ == "__main__":
    sys.exit(main())
