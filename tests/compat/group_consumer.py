"""Members of consumer groups, in a program of their own, with one of the Python clients.

    python -m tests.compat.group_consumer CLIENT BOOTSTRAP

A line `join NAME TOPIC GROUP ASSIGNOR` on its standard input starts a member, `leave NAME` has it
leave. It prints `NAME A 0,3,5` when the member's partitions have changed, `NAME R partition offset`
for each record, and `NAME L` when it has left. java/GroupConsumer.java and js/group_consumer.js do
the same.
"""

import asyncio
import sys
import threading
import warnings
from collections.abc import Iterable

SESSION_TIMEOUT_MS = 6_000
HEARTBEAT_INTERVAL_MS = 300


class Reporter:
    """Prints what has changed of one member."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._assignment: list[int] | None = None
        self.stopped = threading.Event()

    def assigned(self, partitions: Iterable[int]) -> None:
        current = sorted(partitions)
        if current != self._assignment:
            self._assignment = current
            self._say("A " + ",".join(map(str, current)))

    def record(self, partition: int, offset: int) -> None:
        self._say(f"R {partition} {offset}")

    def left(self) -> None:
        self._say("L")

    def _say(self, what: str) -> None:
        # In one piece: members print from threads of their own.
        sys.stdout.write(f"{self._name} {what}\n")
        sys.stdout.flush()


def run_kafka_python(
    report: Reporter, bootstrap: str, topic: str, group: str, assignor: str
) -> None:
    from kafka import KafkaConsumer
    from kafka.coordinator.assignors.cooperative_sticky import (
        CooperativeStickyAssignor,
    )
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

    assignors = {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
        "cooperative-sticky": CooperativeStickyAssignor,
    }
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        partition_assignment_strategy=[assignors[assignor]],
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
    )
    while not report.stopped.is_set():
        # Longer than it takes to join, above all the first time: kafka-python 3.0 forgets to take
        # up an assignment that comes between one poll that has timed out and the next.
        for records in consumer.poll(1_000 if consumer.assignment() else 15_000).values():
            for record in records:
                report.record(record.partition, record.offset)
        report.assigned(p.partition for p in consumer.assignment())
    consumer.close()


def run_confluent(report: Reporter, bootstrap: str, topic: str, group: str, assignor: str) -> None:
    from confluent_kafka import Consumer

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": assignor,
            "session.timeout.ms": SESSION_TIMEOUT_MS,
            "heartbeat.interval.ms": HEARTBEAT_INTERVAL_MS,
        }
    )
    consumer.subscribe([topic])
    while not report.stopped.is_set():
        message = consumer.poll(0.1)
        if message is not None:
            if message.error():
                print(message.error(), file=sys.stderr)
            else:
                report.record(message.partition(), message.offset())
        report.assigned(p.partition for p in consumer.assignment())
    consumer.close()


def run_aiokafka(report: Reporter, bootstrap: str, topic: str, group: str, assignor: str) -> None:
    from aiokafka import AIOKafkaConsumer
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

    assignors = {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
    }

    async def consume() -> None:
        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            partition_assignment_strategy=[assignors[assignor]],
            session_timeout_ms=SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
        )
        await consumer.start()
        while not report.stopped.is_set():
            for records in (await consumer.getmany(timeout_ms=100)).values():
                for record in records:
                    report.record(record.partition, record.offset)
            report.assigned(p.partition for p in consumer.assignment())
        await consumer.stop()

    asyncio.run(consume())


def run_kafkapy(report: Reporter, bootstrap: str, topic: str, group: str, assignor: str) -> None:
    from kafkapy.clients.consumer import KafkaConsumer

    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        partition_assignment_strategy=[assignor],
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
    )
    while not report.stopped.is_set():
        for records in consumer.poll(100).values():
            for record in records:
                report.record(record.partition, record.offset)
        report.assigned(p.partition for p in consumer.assignment())
    consumer.close()


CLIENTS = {
    "kafkapy": run_kafkapy,
    "kafka-python": run_kafka_python,
    "confluent-kafka": run_confluent,
    "aiokafka": run_aiokafka,
}


def main(client: str, bootstrap: str) -> None:
    members: dict[str, tuple[Reporter, threading.Thread]] = {}

    def run(report: Reporter, arguments: list[str]) -> None:
        CLIENTS[client](report, bootstrap, *arguments)
        report.left()

    for line in sys.stdin:
        command, name, *arguments = line.split()
        if command == "join":
            report = Reporter(name)
            thread = threading.Thread(target=run, args=(report, arguments))
            members[name] = (report, thread)
            thread.start()
        else:
            members[name][0].stopped.set()
    for report, thread in members.values():
        report.stopped.set()
        thread.join()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(*sys.argv[1:])
