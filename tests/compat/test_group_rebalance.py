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
from tests.compat.group_members import GroupMember, wait_for_balance, wait_for_records

PARTITIONS = 12
PER_PARTITION = 10
ROUND = PARTITIONS * PER_PARTITION

ASSIGNORS = [
    ("kafkapy", "cooperative-sticky"),
    ("kafka-python", "range"),
    ("kafka-python", "roundrobin"),
    ("kafka-python", "sticky"),
    ("kafka-python", "cooperative-sticky"),
    ("confluent-kafka", "range"),
    ("confluent-kafka", "roundrobin"),
    ("confluent-kafka", "cooperative-sticky"),
    ("aiokafka", "range"),
    ("aiokafka", "roundrobin"),
    ("aiokafka", "sticky"),
    ("kafkajs", "roundrobin"),
    ("java", "range"),
    ("java", "roundrobin"),
    ("java", "sticky"),
    ("java", "cooperative-sticky"),
]


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


@pytest.fixture
def topic(restartable: RestartableBroker) -> str:
    name = f"groups-{uuid.uuid4().hex}"
    admin = AdminClient({"bootstrap.servers": restartable.bootstrap})
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(10)
    return name


@pytest.fixture
def members() -> Iterator[list[GroupMember]]:
    started: list[GroupMember] = []
    yield started
    for member in started:
        member.kill()


def produce_round(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(ROUND):
        producer.produce(topic, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(20) == 0


@pytest.mark.parametrize(("client", "assignor"), ASSIGNORS)
def test_every_record_is_consumed_once_through_rebalances_and_a_restart(
    restartable: RestartableBroker,
    topic: str,
    members: list[GroupMember],
    client: str,
    assignor: str,
) -> None:
    bootstrap = restartable.bootstrap
    group = f"group-{topic}"

    def start_member() -> None:
        members.append(GroupMember(client, bootstrap, topic, group, assignor))

    produce_round(bootstrap, topic)
    start_member()
    wait_for_balance(members, PARTITIONS)
    wait_for_records(members, ROUND)

    start_member()
    start_member()
    wait_for_balance(members, PARTITIONS)
    produce_round(bootstrap, topic)
    wait_for_records(members, 2 * ROUND)

    members[1].leave()
    wait_for_balance([members[0], members[2]], PARTITIONS)
    produce_round(bootstrap, topic)
    wait_for_records(members, 3 * ROUND)

    # One after the other: librdkafka, told to close while it has yet to hand a revocation to its
    # application, leaves first and commits then, without a member id. Apache Kafka refuses that
    # commit as we do (UNKNOWN_MEMBER_ID), and the records would be read again.
    members[0].leave()
    wait_for_balance([members[2]], PARTITIONS)
    members[2].leave()
    restartable.restart()
    produce_round(bootstrap, topic)
    start_member()
    wait_for_records(members, 4 * ROUND)
    members[3].leave()

    consumed = Counter(record for member in members for record in member.records)
    expected = {(p, o) for p in range(PARTITIONS) for o in range(4 * PER_PARTITION)}
    assert set(consumed) == expected
    assert {record: n for record, n in consumed.items() if n > 1} == {}
