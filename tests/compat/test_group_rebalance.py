"""Consumer groups of real clients: 1, then 3, then 2 members, and a broker that restarts."""

import socket
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.compat.brokers import Broker, start_broker
from tests.compat.group_members import (
    GroupMember,
    MemberProgram,
    leave,
    member_program,
    wait_for_balance,
    wait_for_records,
)

PARTITIONS = 12
PER_PARTITION = 10
ROUND = PARTITIONS * PER_PARTITION

ASSIGNORS = {
    "kafkapy": ["cooperative-sticky"],
    "kafka-python": ["range", "roundrobin", "sticky", "cooperative-sticky"],
    "confluent-kafka": ["range", "roundrobin", "cooperative-sticky"],
    "aiokafka": ["range", "roundrobin", "sticky"],
    "kafkajs": ["roundrobin"],
    "java": ["range", "roundrobin", "sticky", "cooperative-sticky"],
}


class RestartableBroker:
    """A broker that comes back at its address, with its data."""

    def __init__(self, work_dir: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self._work_dir = work_dir
        self._broker = self._start()

    def _start(self) -> Broker:
        return start_broker(
            self._work_dir, port=self._port, overrides={"offsets.topic.num.partitions": "3"}
        )

    @property
    def bootstrap(self) -> str:
        return self._broker.bootstrap

    def restart(self) -> None:
        assert self._broker.stop() == self._broker.clean_exit_code, self._broker.tail()
        self._broker = self._start()

    def stop(self) -> None:
        assert self._broker.stop() == self._broker.clean_exit_code, self._broker.tail()


@pytest.fixture(scope="module")
def restartable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestartableBroker]:
    broker = RestartableBroker(tmp_path_factory.mktemp("groups"))
    try:
        yield broker
    finally:
        broker.stop()


class Group:
    """A group with a topic of its own, to which a round of records is added again and again."""

    def __init__(self, program: MemberProgram, bootstrap: str, assignor: str) -> None:
        self.members: list[GroupMember] = []
        self._program = program
        self._bootstrap = bootstrap
        self._assignor = assignor
        self._topic = f"{assignor}-{uuid.uuid4().hex}"
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic(self._topic, PARTITIONS, 1)])[self._topic].result(10)

    def add_member(self) -> None:
        group = f"group-{self._topic}"
        self.members.append(self._program.join(self._topic, group, self._assignor))

    def produce_round(self) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap})
        for number in range(ROUND):
            producer.produce(self._topic, b"%d" % number, partition=number % PARTITIONS)
        assert producer.flush(20) == 0

    def await_balance(self, *members: int) -> None:
        wait_for_balance([self.members[number] for number in members], PARTITIONS)

    def await_rounds(self, rounds: int) -> None:
        wait_for_records(self.members, rounds * ROUND)

    def check(self) -> None:
        consumed = Counter(record for member in self.members for record in member.records)
        expected = {(p, o) for p in range(PARTITIONS) for o in range(4 * PER_PARTITION)}
        assert set(consumed) == expected, self._assignor
        assert {record: n for record, n in consumed.items() if n > 1} == {}, self._assignor


@pytest.mark.parametrize("client", ASSIGNORS)
def test_every_record_is_consumed_once_through_rebalances_and_a_restart(
    restartable: RestartableBroker, client: str
) -> None:
    """A group for each assignor of the client, side by side."""
    with member_program(client, restartable.bootstrap) as program:
        groups = [Group(program, restartable.bootstrap, each) for each in ASSIGNORS[client]]

        for group in groups:
            group.produce_round()
            group.add_member()
        for group in groups:
            group.await_balance(0)
            group.await_rounds(1)

        for group in groups:
            group.add_member()
            group.add_member()
        for group in groups:
            group.await_balance(0, 1, 2)
            group.produce_round()
        for group in groups:
            group.await_rounds(2)

        leave(*(group.members[1] for group in groups))
        for group in groups:
            group.await_balance(0, 2)
            group.produce_round()
        for group in groups:
            group.await_rounds(3)

        # One after the other: librdkafka, told to close while it has yet to hand a revocation to
        # its application, leaves first and commits then, without a member id. Apache Kafka refuses
        # that commit as we do (UNKNOWN_MEMBER_ID), and the records would be read again.
        leave(*(group.members[0] for group in groups))
        for group in groups:
            group.await_balance(2)
        leave(*(group.members[2] for group in groups))
        restartable.restart()
        for group in groups:
            group.produce_round()
            group.add_member()
        for group in groups:
            group.await_rounds(4)
        leave(*(group.members[3] for group in groups))

        for group in groups:
            group.check()
