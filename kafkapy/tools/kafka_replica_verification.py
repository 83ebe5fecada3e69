"""bin/kafka-replica-verification: whether the replicas of partitions hold the same."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from typing import Protocol

from kafkapy.clients.admin.admin_client import AdminClient
from kafkapy.clients.blocking_node_client import BlockingNodeClient
from kafkapy.clients.consumer.kafka_consumer import KafkaConsumer
from kafkapy.common.command_line import CommandParser, fail, run_command
from kafkapy.common.errors import KafkaError
from kafkapy.common.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.common.protocol.schema import Message
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record_batch import RecordBatch
from kafkapy.common.types import TopicPartition, partitions_by_topic
from kafkapy.metadata.broker import Node
from kafkapy.storage.fetch_params import DEBUGGING_REPLICA_ID
from kafkapy.tools.termination import DeferredTermination
from kafkapy.utils.time import SystemTime, Time

_CLIENT_ID = "ReplicaVerification"
# The last version with names: followers need no more.
_FETCH_VERSION = 12
_LATEST, _EARLIEST = -1, -2
_REQUEST_TIMEOUT_MS = 30_000


def parser() -> CommandParser:
    command = CommandParser(
        "kafka-replica-verification",
        "Read all replicas of partitions side by side, until stopped, and tell where they differ"
        " and how far the slowest is behind.",
    )
    command.add_argument(
        "--broker-list", metavar="HOST:PORT", required=True, help="the brokers to connect to"
    )
    command.add_argument(
        "--topics-include",
        metavar="REGEX",
        help="the topics to verify, by an expression for their names (default .*)",
    )
    command.add_argument(
        "--topic-white-list", metavar="REGEX", help="an old name of --topics-include, which wins"
    )
    command.add_argument(
        "--time",
        metavar="MS",
        type=int,
        default=_LATEST,
        help="where to begin: a time, -1 for the end, -2 for the beginning (default %(default)s)",
    )
    command.add_argument(
        "--fetch-size",
        metavar="BYTES",
        type=int,
        default=1024 * 1024,
        help="how much of a partition to fetch at once (default %(default)s)",
    )
    command.add_argument(
        "--max-wait-ms",
        metavar="MS",
        type=int,
        default=1000,
        help="how long a broker waits for records (default %(default)s)",
    )
    command.add_argument(
        "--report-interval-ms",
        metavar="MS",
        type=int,
        default=30_000,
        help="how often to tell of the greatest lag (default %(default)s)",
    )
    return command


def run(arguments: Sequence[str]) -> int:
    parsed = parser().parse_args(arguments)
    include = parsed.topics_include or parsed.topic_white_list or ".*"
    try:
        pattern = re.compile(include.replace(",", "|"))
    except re.error as e:
        fail(f"{include} is an invalid regex: {e}")
    replicas = _replicas(parsed.broker_list, pattern)
    if not replicas:
        fail(f"There are no topics to verify: no name matches {include}")
    offsets = _initial_offsets(parsed.broker_list, list(replicas), parsed.time)
    time = SystemTime()
    with DeferredTermination() as termination, ExitStack() as closing:
        clients = {
            node: _client(parsed, node, time) for nodes in replicas.values() for node in nodes
        }
        for client in clients.values():
            closing.callback(client.disconnect)
        verification = ReplicaVerification(
            parsed, replicas, offsets=offsets, clients=clients, time=time
        )
        print(f"{_now(time)}: verification process is started", flush=True)
        while verification.verify_once():
            verification.maybe_report()
            termination.raise_if_asked()
    return 1


def main(arguments: Sequence[str] | None = None) -> int:
    return run_command(run, arguments)


class NodeClient(Protocol):
    """Sends requests to one broker."""

    def send_and_receive(self, request: Message, version: int) -> Message: ...


class ReplicaVerification:
    """Fetches the same offsets of all replicas, compares, and goes on behind them. For one thread.

    Ports: org.apache.kafka.tools.ReplicaVerificationTool
    """

    def __init__(
        self,
        parsed: argparse.Namespace,
        replicas: Mapping[TopicPartition, Sequence[Node]],
        *,
        offsets: Mapping[TopicPartition, int],
        clients: Mapping[Node, NodeClient],
        time: Time,
    ) -> None:
        # constant after construction
        self._parsed = parsed
        self._replicas = replicas
        self._time = time
        self._clients = clients
        self._offsets = dict(offsets)
        self._lags: dict[TopicPartition, int] = {}
        self._reported_ms = time.hi_res_clock_ms()

    def verify_once(self) -> bool:
        """Whether it can go on: replicas with different offsets cannot be compared any more."""
        fetched: dict[TopicPartition, dict[int, FetchResponse.PartitionData]] = {}
        for node, client in self._clients.items():
            for partition, data in self._fetch(node, client):
                fetched.setdefault(partition, {})[node.id] = data
        self._lags = {}
        for partition, by_replica in fetched.items():
            if len(by_replica) == len(self._replicas[partition]) and not self._verify(
                partition, by_replica
            ):
                return False
        return True

    def _fetch(
        self, node: Node, client: NodeClient
    ) -> Iterator[tuple[TopicPartition, FetchResponse.PartitionData]]:
        wanted = [partition for partition, nodes in self._replicas.items() if node in nodes]
        request = FetchRequest(
            replica_id=DEBUGGING_REPLICA_ID,
            max_wait_ms=self._parsed.max_wait_ms,
            min_bytes=1,
            topics=[
                FetchRequest.FetchTopic(
                    topic=topic,
                    partitions=[
                        FetchRequest.FetchPartition(
                            partition=partition,
                            fetch_offset=self._offsets[TopicPartition(topic, partition)],
                            partition_max_bytes=self._parsed.fetch_size,
                        )
                        for partition in partitions
                    ],
                )
                for topic, partitions in partitions_by_topic(wanted).items()
            ],
        )
        try:
            response = client.send_and_receive(request, _FETCH_VERSION)
        except KafkaError as e:
            print(f"Replica {node.id} cannot be read: {e}", file=sys.stderr)
            return
        assert isinstance(response, FetchResponse)
        for topic in response.responses:
            for data in topic.partitions:
                yield TopicPartition(topic.topic, data.partition_index), data

    def _verify(
        self, partition: TopicPartition, fetched: Mapping[int, FetchResponse.PartitionData]
    ) -> bool:
        batches = {replica: _batches(data) for replica, data in fetched.items()}
        # Up to the end of the replica that has least.
        for together in zip(*batches.values(), strict=False):
            (first_replica, first), *others = zip(batches, together, strict=True)
            for replica, batch in others:
                if batch.last_offset != first.last_offset:
                    print(
                        f"{_now(self._time)}: partition {partition}: replica {first_replica}'s"
                        f" offset {first.last_offset} doesn't match replica {replica}'s offset"
                        f" {batch.last_offset}"
                    )
                    return False
                if batch.crc != first.crc:
                    print(
                        f"{_now(self._time)}: partition {partition} has unmatched checksum at"
                        f" offset {first.last_offset}; replica {first_replica}'s checksum"
                        f" {first.crc}; replica {replica}'s checksum {batch.crc}",
                        flush=True,
                    )
            self._offsets[partition] = first.next_offset
        high_watermark = max(data.high_watermark for data in fetched.values())
        self._lags[partition] = high_watermark - self._offsets[partition]
        return True

    def maybe_report(self) -> None:
        now_ms = self._time.hi_res_clock_ms()
        if now_ms - self._reported_ms <= self._parsed.report_interval_ms or not self._lags:
            return
        self._reported_ms = now_ms
        partition = max(self._lags, key=lambda each: self._lags[each])
        print(
            f"{_now(self._time)}: max lag is {self._lags[partition]} for partition {partition} at"
            f" offset {self._offsets[partition]} among {len(self._replicas)} partitions",
            flush=True,
        )


def _client(parsed: argparse.Namespace, node: Node, time: Time) -> BlockingNodeClient:
    return BlockingNodeClient(
        node,
        client_id=_CLIENT_ID,
        time=time,
        request_timeout_ms=_REQUEST_TIMEOUT_MS + parsed.max_wait_ms,
    )


def _batches(data: FetchResponse.PartitionData) -> Iterable[RecordBatch]:
    if data.error_code != 0 or data.records is None:
        return ()
    assert isinstance(data.records, bytes | bytearray | memoryview), "records that were received"
    return MemoryRecords(data.records).batches()


def _replicas(servers: str, pattern: re.Pattern[str]) -> dict[TopicPartition, tuple[Node, ...]]:
    with AdminClient(bootstrap_servers=servers, client_id=_CLIENT_ID) as admin:
        topics = [topic for topic in admin.list_topics() if pattern.fullmatch(topic)]
        described = admin.describe_topics(topics) if topics else {}
        return {
            TopicPartition(topic.name, partition.partition): partition.replicas
            for topic in described.values()
            for partition in topic.partitions
        }


def _initial_offsets(
    servers: str, partitions: Sequence[TopicPartition], time_ms: int
) -> dict[TopicPartition, int]:
    with KafkaConsumer(bootstrap_servers=servers, client_id=_CLIENT_ID) as consumer:
        if time_ms == _EARLIEST:
            return dict(consumer.beginning_offsets(partitions))
        ends = dict(consumer.end_offsets(partitions))
        if time_ms == _LATEST:
            return ends
        found = consumer.offsets_for_times(dict.fromkeys(partitions, time_ms))
        return ends | {
            partition: offset.offset for partition, offset in found.items() if offset is not None
        }


def _now(time: Time) -> str:
    now_ms = time.milliseconds()
    moment = datetime.fromtimestamp(now_ms / 1000)
    return f"{moment:%Y-%m-%d %H:%M:%S},{now_ms % 1000:03d}"


if __name__ == "__main__":
    sys.exit(main())
