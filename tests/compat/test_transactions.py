"""Transactions with real clients, and with Kafka's own tools on our transaction log."""

import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kafkapy.common.errors import Errors
from tests.compat.apache_tools import KafkaTool
from tests.compat.brokers import Broker, start_broker
from tests.compat.contract import MakeTopic
from tests.compat.tools import java_command
from tests.compat.transactional_copy import RECORDS_PER_TRANSACTION
from tests.helpers import api
from tests.helpers.broker import Client
from tests.helpers.ended_transactions import await_ended_transactions
from tests.helpers.records import records
from tests.helpers.waiting import wait_until

TRANSACTIONS = "kafka-transactions"
DUMP_LOG = "kafka-dump-log"
WAIT_S = 20
KILLS = 20
MAX_COMMITS = 8
# More than all the killed jobs together can copy.
RECORDS = KILLS * (MAX_COMMITS + 2) * RECORDS_PER_TRANSACTION
LOST_PRODUCER = 4711


def producer_of(broker: Broker, name: str, **settings: object) -> Producer:
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": name, **settings}
    )
    producer.init_transactions(WAIT_S)
    return producer


def read(broker: Broker, topic: str, isolation: str) -> list[bytes]:
    """All there is to read of partition 0 once transactions ended."""
    await_ended_transactions(broker.bootstrap)
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "unused",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        values = []
        while (message := consumer.poll(WAIT_S)) is not None and message.error() is None:
            values.append(message.value())
        assert message is not None, f"no end of {topic} within {WAIT_S} s"
        return values
    finally:
        consumer.close()


def committed_offset(broker: Broker, group: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    try:
        (found,) = consumer.committed([TopicPartition(topic, 0)], WAIT_S)
        return found.offset
    finally:
        consumer.close()


class TestConfluentKafka:
    def test_readers_see_what_they_ask_for(self, broker: Broker, make_topic: MakeTopic) -> None:
        topic = make_topic()
        producer = producer_of(broker, topic)

        for value, commit in [(b"a", True), (b"b", False), (b"c", True)]:
            producer.begin_transaction()
            producer.produce(topic, value, partition=0)
            if commit:
                producer.commit_transaction(WAIT_S)
            else:
                assert producer.flush(WAIT_S) == 0
                producer.abort_transaction(WAIT_S)

        assert read(broker, topic, "read_committed") == [b"a", b"c"]
        assert read(broker, topic, "read_uncommitted") == [b"a", b"b", b"c"]

    def test_predecessor_is_fenced(self, broker: Broker, make_topic: MakeTopic) -> None:
        topic = make_topic()
        old = producer_of(broker, topic)
        old.begin_transaction()
        old.produce(topic, b"old", partition=0)
        assert old.flush(WAIT_S) == 0

        new = producer_of(broker, topic)
        new.begin_transaction()
        new.produce(topic, b"new", partition=0)
        new.commit_transaction(WAIT_S)

        with pytest.raises(KafkaException, match="_FENCED"):
            old.commit_transaction(WAIT_S)
        assert read(broker, topic, "read_committed") == [b"new"]

    @pytest.mark.parametrize("commit", [True, False])
    def test_offsets_go_with_the_transaction(
        self, broker: Broker, make_topic: MakeTopic, commit: bool
    ) -> None:
        topic = make_topic()
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": topic})
        producer = producer_of(broker, topic)

        producer.begin_transaction()
        producer.produce(topic, b"a", partition=0)
        producer.send_offsets_to_transaction(
            [TopicPartition(topic, 0, 7)], consumer.consumer_group_metadata(), WAIT_S
        )
        (producer.commit_transaction if commit else producer.abort_transaction)(WAIT_S)
        consumer.close()

        assert committed_offset(broker, topic, topic) == (7 if commit else -1001)


def _python_copy(bootstrap: str, source: str, target: str) -> list[str]:
    module = "tests.compat.transactional_copy"
    return [sys.executable, "-m", module, bootstrap, source, target]


def _java_copy(bootstrap: str, source: str, target: str) -> list[str]:
    return java_command("TransactionalCopy", bootstrap, source, target)


class TestExactlyOnce:
    @pytest.mark.slow
    @pytest.mark.timeout(300)
    @pytest.mark.parametrize("command", [_python_copy, _java_copy])
    def test_job_killed_again_and_again_copies_each_record_once_and_in_order(
        self, tmp_path: Path, command: Callable[[str, str, str], list[str]]
    ) -> None:
        rng = random.Random(3)
        values = [b"%d" % number for number in range(RECORDS)]
        broker = start_broker(tmp_path)
        try:
            _fill(broker, "source", values)
            arguments = command(broker.bootstrap, "source", "target")
            for _ in range(KILLS):
                _run_and_kill(arguments, tmp_path, rng, commits=rng.randint(0, MAX_COMMITS))
            _run_and_kill(arguments, tmp_path, rng, until=lambda: _is_copied(broker))

            assert read(broker, "target", "read_committed") == values
            with_aborted = read(broker, "target", "read_uncommitted")
            assert len(with_aborted) >= len(values)
            assert set(with_aborted) == set(values)
        finally:
            assert broker.stop() == broker.clean_exit_code, broker.tail()


def _fill(broker: Broker, source: str, values: list[bytes]) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for name in (source, "target"):
        admin.create_topics([NewTopic(name, 1, 1)])[name].result(WAIT_S)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for value in values:
        producer.produce(source, value, partition=0)
    assert producer.flush(WAIT_S) == 0


def _is_copied(broker: Broker) -> bool:
    return committed_offset(broker, "copy", "source") == RECORDS


def _run_and_kill(
    arguments: list[str],
    work_dir: Path,
    rng: random.Random,
    *,
    commits: int = 0,
    until: Callable[[], bool] | None = None,
) -> None:
    """Kills the job after so many commits, at any point of the next transaction."""
    with (work_dir / "job.txt").open("ab") as errors:
        job = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=errors)
    assert job.stdout is not None
    try:
        for _ in range(commits):
            line = job.stdout.readline()
            assert line, (work_dir / "job.txt").read_text()[-4000:]
        if until is None:
            # Before its first commit a job is busy for longer.
            time.sleep(rng.random() * (0.02 if commits else 1))
        else:
            deadline = time.monotonic() + 60
            while not until():
                assert time.monotonic() < deadline, (work_dir / "job.txt").read_text()[-4000:]
                assert job.poll() is None
                time.sleep(0.2)
    finally:
        job.kill()
        job.wait()
        job.stdout.close()


def leave_hanging(broker: Broker, topic: str) -> None:
    """Records of long ago, in a transaction that no coordinator knows of.

    Verified they would be refused, so that is turned off meanwhile.
    """
    verification = "transaction.partition.verification.enable"
    host, port = broker.bootstrap.split(":")
    with Client((host, int(port))) as client:

        def verify(value: str) -> None:
            change = (verification, api.SET, value)
            answer = api.alter_configs(client, api.BROKER_RESOURCE, "", change)
            assert answer.error_code == Errors.NONE.code

        def send() -> bool:
            batch = records(
                "x", producer_id=LOST_PRODUCER, producer_epoch=0, sequence=0, transactional=True
            )
            request = api.produce_request(topic, batch, transactional_id="nobody")
            answer = client.request(request).responses[0].partition_responses[0]
            return bool(answer.error_code == Errors.NONE.code)

        api.create_topic(client, topic)
        verify("false")
        wait_until(send)
        verify("true")


class TestTools:
    @pytest.fixture(scope="class")
    @staticmethod
    def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
        """With one transaction committed, one aborted and one that is open."""
        broker = start_broker(
            tmp_path_factory.mktemp("tools"),
            overrides={"transaction.state.log.num.partitions": "1"},
        )
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic("t", 1, 1)])["t"].result(WAIT_S)
        producers = [producer_of(broker, name) for name in ("commits", "aborts", "stays-open")]
        for producer in producers:
            producer.begin_transaction()
            producer.produce("t", b"x", partition=0)
            assert producer.flush(WAIT_S) == 0
        producers[0].commit_transaction(WAIT_S)
        producers[1].abort_transaction(WAIT_S)
        await_ended_transactions(broker.bootstrap)
        try:
            yield broker
        finally:
            assert broker.stop() == broker.clean_exit_code, broker.tail()
            del producers

    def test_transactions_tool_lists_and_describes(
        self, own_broker: Broker, kafka_tool: KafkaTool
    ) -> None:
        server = ("--bootstrap-server", own_broker.bootstrap)

        listed = kafka_tool(TRANSACTIONS, *server, "list")
        described = kafka_tool(
            TRANSACTIONS, *server, "describe", "--transactional-id", "stays-open"
        )
        producers = kafka_tool(
            TRANSACTIONS, *server, "describe-producers", "--topic", "t", "--partition", "0"
        )

        states = dict(re.findall(r"^(\S+)\s+\d+\s+\d+\s+(\S+)", listed, re.MULTILINE))
        assert states == {
            "commits": "CompleteCommit",
            "aborts": "CompleteAbort",
            "stays-open": "Ongoing",
        }
        assert re.search(r"Ongoing\s.*\bt-0\b", described)
        assert len(re.findall(r"^\d+\s+\d+\s+-?\d+\s+", producers, re.MULTILINE)) == 3

    def test_transactions_tool_finds_and_aborts_a_hanging_transaction(
        self, own_broker: Broker, kafka_tool: KafkaTool
    ) -> None:
        server = ("--bootstrap-server", own_broker.bootstrap)
        partition = ("--topic", "hanging", "--partition", "0")
        leave_hanging(own_broker, "hanging")

        found = kafka_tool(TRANSACTIONS, *server, "find-hanging", *partition)
        kafka_tool(TRANSACTIONS, *server, "abort", *partition, "--start-offset", "0")
        found_again = kafka_tool(TRANSACTIONS, *server, "find-hanging", *partition)

        # Topic, partition, producer id and epoch, coordinator epoch, start offset.
        assert re.search(rf"^hanging\s+0\s+{LOST_PRODUCER}\s+0\s+-1\s+0\s", found, re.MULTILINE)
        assert "hanging" not in found_again

    def test_dump_log_decodes_the_transaction_log(
        self, own_broker: Broker, kafka_tool: KafkaTool
    ) -> None:
        assert own_broker.log_dir is not None
        (log,) = own_broker.log_dir.glob("__transaction_state-0/*.log")

        dumped = kafka_tool(
            DUMP_LOG, "--transaction-log-decoder", "--deep-iteration", "--files", str(log)
        )

        history: dict[str, list[str]] = {}
        for name, state in re.findall(
            r"key: transaction_metadata::transactionalId=(\S+) payload: .*?state=(\w+)", dumped
        ):
            history.setdefault(name, []).append(state)
        assert history == {
            "commits": ["Empty", "Ongoing", "PrepareCommit", "CompleteCommit"],
            "aborts": ["Empty", "Ongoing", "PrepareAbort", "CompleteAbort"],
            "stays-open": ["Empty", "Ongoing"],
        }
        assert "partitions=[t-0]" in dumped
