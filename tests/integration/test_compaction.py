"""A running broker compacts: its users' topics and its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.offset_commit import OffsetCommitRequest
from kafkapy.common.record.record import Record
from kafkapy.common.types import TopicPartition
from tests.helpers import api
from tests.helpers.broker import BROKER_ID, Broker, Client, running_broker
from tests.helpers.records import record, records
from tests.helpers.transactions import (
    GROUP_KEY,
    TransactionalProducer,
    committed,
    find_coordinator,
    until_settled,
)
from tests.helpers.waiting import wait_until
from tests.integration.test_transactional_offsets import fetched

EAGER = {
    "log.cleaner.backoff.ms": "20",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "offsets.topic.segment.bytes": "2000",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.segment.bytes": "1000",
    "transaction.state.log.num.partitions": "1",
}
COMPACTED = {"cleanup.policy": "compact", "segment.bytes": "2000"}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with running_broker(tmp_path, EAGER) as broker:
        yield broker


def read_all(client: Client, topic: str) -> list[Record]:
    found: list[Record] = []
    offset = 0
    while True:
        batches = api.fetched_batches(api.fetch(client, topic, offset))
        if not batches:
            return found
        found += [r for batch in batches for r in batch.records() if r.offset >= offset]
        offset = batches[-1].next_offset


def compacted_up_to(broker: Broker, topic: str) -> int:
    """From which offset on a log is dirty, as the cleaner's checkpoint says."""
    path = broker.log_dir / "cleaner-offset-checkpoint"
    lines = path.read_text().splitlines()[2:] if path.exists() else []
    return next((int(line.split()[2]) for line in lines if line.split()[0] == topic), 0)


def log_size(broker: Broker, topic: str) -> int:
    assert broker.server.log_manager is not None
    log = broker.server.log_manager.get_log(TopicPartition(topic, 0))
    assert log is not None
    return log.size


def test_a_compacted_topic_keeps_the_last_value_of_each_key(broker: Broker) -> None:
    with broker.client() as client:
        topic = api.create_topic(client, configs=COMPACTED)
        for i in range(200):
            value = None if i >= 190 and i % 2 else f"v{i}"
            api.produced(client, topic, records(record(value, key=f"k{i % 20}")))

        wait_until(lambda: compacted_up_to(broker, topic) > 150)
        found = read_all(client, topic)

        assert len(found) < 100
        offsets = [r.offset for r in found]
        assert offsets == sorted(set(offsets))
        expected = {
            f"k{i % 20}": None if i >= 190 and i % 2 else f"v{i}".encode() for i in range(180, 200)
        }
        assert {(r.key or b"").decode(): r.value for r in found} == expected
        assert api.list_offset(client, topic, api.LATEST).offset == 200

    broker.restart()
    with broker.client() as client:
        assert {(r.key or b"").decode(): r.value for r in read_all(client, topic)} == expected
        assert api.produced(client, topic, records("next", key="k")) == 200


def commit(client: Client, group: str, topic: str, offset: int) -> Errors:
    request = OffsetCommitRequest
    partition = request.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    response = client.request(
        request(
            group_id=group,
            topics=[request.OffsetCommitRequestTopic(name=topic, partitions=[partition])],
        )
    )
    return Errors.for_code(response.topics[0].partitions[0].error_code)


def test_offsets_are_right_after_compaction_and_restart(broker: Broker) -> None:
    groups = [f"group-{i}" for i in range(3)]
    with broker.client() as client:
        topic = api.create_topic(client)
        for group in groups:
            find_coordinator(client, group, GROUP_KEY)
        assert until_settled(lambda: commit(client, groups[0], topic, 0)) is Errors.NONE
        producer = TransactionalProducer(client, "txn").start()
        for offset in range(100):
            for group in groups[:2]:
                assert commit(client, group, topic, offset) is Errors.NONE
            if offset % 10 == 0:
                assert until_settled(lambda: producer.add_offsets(groups[2])) is Errors.NONE
                assert producer.commit_offset(groups[2], topic, offset) is Errors.NONE
                assert producer.end(commit=offset % 20 == 0) is Errors.NONE
        end = api.list_offset(client, "__consumer_offsets", api.LATEST).offset
        assert end >= 200

        wait_until(lambda: compacted_up_to(broker, "__consumer_offsets") > end - 60)
        wait_until(lambda: log_size(broker, "__consumer_offsets") < 10_000)

    broker.restart()
    with broker.client() as client:
        wait_until(lambda: fetched(client, groups[0], topic)[0] is Errors.NONE)
        assert [fetched(client, group, topic) for group in groups] == [
            (Errors.NONE, 99),
            (Errors.NONE, 99),
            (Errors.NONE, 80),
        ]


def test_transactions_go_on_after_compaction_and_restart(broker: Broker) -> None:
    with broker.client() as client:
        topic = api.create_topic(client)
        producers = [TransactionalProducer(client, f"txn-{i}").start() for i in range(2)]
        for i in range(20):
            for producer in producers:
                # The transaction before may not be over yet.
                assert until_settled(lambda p=producer: p.add(topic, 0)) is Errors.NONE
                assert producer.send(topic, f"{producer.transactional_id}:{i}") is Errors.NONE
                assert producer.end(commit=i % 2 == 0) is Errors.NONE

        wait_until(lambda: compacted_up_to(broker, "__transaction_state") > 50)
        wait_until(lambda: log_size(broker, "__transaction_state") < 6_000)

    broker.restart()
    with broker.client() as client:
        for producer in producers:
            producer.use(client)
            epoch, producer_id = producer.epoch, producer.producer_id
            producer.start()
            assert (producer.producer_id, producer.epoch) == (producer_id, epoch + 1)
            producer.write(topic, f"{producer.transactional_id}:last")
            producer.commit()
        expected = [f"txn-{n}:{i}" for i in range(0, 20, 2) for n in range(2)]
        expected += [f"txn-{n}:last" for n in range(2)]
        wait_until(lambda: committed(client, topic) == expected)


def test_compaction_can_be_set_while_the_broker_runs(broker: Broker) -> None:
    with broker.client() as client:

        def alter(name: str, value: str) -> Errors:
            result = api.alter_configs(
                client, api.BROKER_RESOURCE, str(BROKER_ID), (name, api.SET, value)
            )
            return Errors.for_code(result.error_code)

        assert alter("log.cleaner.threads", "3") is Errors.INVALID_REQUEST
        assert alter("log.cleaner.dedupe.buffer.size", "1000") is Errors.INVALID_REQUEST
        assert alter("log.cleaner.enable", "false") is Errors.INVALID_REQUEST
        assert alter("log.cleaner.threads", "2") is Errors.NONE
        assert alter("log.cleaner.io.max.bytes.per.second", "1000000") is Errors.NONE

        topic = api.create_topic(client, configs=COMPACTED)
        for i in range(50):
            api.produced(client, topic, records("x" * 100, key=f"k{i % 2}"))
        wait_until(lambda: len(read_all(client, topic)) < 30)
