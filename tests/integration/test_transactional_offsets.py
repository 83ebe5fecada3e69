"""Offsets that a transaction commits: in force with it, gone with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.offset_fetch import OffsetFetchRequest
from tests.helpers.api import create_topic, unique_name
from tests.helpers.broker import Broker, Client, running_broker
from tests.helpers.transactions import (
    GROUP_KEY,
    TransactionalProducer,
    find_coordinator,
    until_settled,
)
from tests.helpers.waiting import wait_until

NOTHING = (Errors.NONE, -1)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with running_broker(tmp_path_factory.mktemp("logs")) as broker:
        yield broker


@pytest.fixture
def client(broker: Broker) -> Iterator[Client]:
    with broker.client() as client:
        yield client


@pytest.fixture
def topic(client: Client) -> str:
    return create_topic(client)


@pytest.fixture
def group(client: Client) -> str:
    return _group(client)


def _group(client: Client) -> str:
    group = unique_name("group")
    find_coordinator(client, group, GROUP_KEY)
    wait_until(lambda: fetched(client, group, "any")[0] is Errors.NONE)
    return group


@pytest.fixture
def producer(client: Client) -> TransactionalProducer:
    return TransactionalProducer(client, unique_name("txn")).start()


def fetched(
    client: Client, group: str, topic: str, *, require_stable: bool = False
) -> tuple[Errors, int]:
    """The error and the offset of partition 0."""
    request = OffsetFetchRequest
    response = client.request(
        request(
            groups=[
                request.OffsetFetchRequestGroup(
                    group_id=group,
                    topics=[request.OffsetFetchRequestTopics(name=topic, partition_indexes=[0])],
                )
            ],
            require_stable=require_stable,
        )
    )
    (answer,) = response.groups
    if answer.error_code:
        return Errors.for_code(answer.error_code), -1
    (partition,) = answer.topics[0].partitions
    return Errors.for_code(partition.error_code), partition.committed_offset


def sent(producer: TransactionalProducer, group: str, topic: str, offset: int) -> None:
    assert until_settled(lambda: producer.add_offsets(group)) is Errors.NONE
    assert producer.commit_offset(group, topic, offset) is Errors.NONE


def test_offsets_are_in_force_with_the_commit(
    client: Client, producer: TransactionalProducer, group: str, topic: str
) -> None:
    sent(producer, group, topic, 5)

    assert fetched(client, group, topic) == NOTHING
    assert fetched(client, group, topic, require_stable=True) == (
        Errors.UNSTABLE_OFFSET_COMMIT,
        -1,
    )

    producer.commit()

    wait_until(lambda: fetched(client, group, topic, require_stable=True) == (Errors.NONE, 5))


def test_next_transaction_begins_with_the_last_offsets_in_force(
    client: Client, producer: TransactionalProducer, group: str, topic: str
) -> None:
    for offset in range(10):
        sent(producer, group, topic, offset)
        producer.commit()
        assert until_settled(lambda: producer.add(topic)) is Errors.NONE

        assert fetched(client, group, topic, require_stable=True) == (Errors.NONE, offset)
        producer.abort()


def test_aborted_offsets_leave_the_last_ones(
    client: Client, producer: TransactionalProducer, group: str, topic: str
) -> None:
    sent(producer, group, topic, 5)
    producer.commit()
    wait_until(lambda: fetched(client, group, topic) == (Errors.NONE, 5))
    sent(producer, group, topic, 9)

    producer.abort()

    wait_until(lambda: fetched(client, group, topic, require_stable=True) == (Errors.NONE, 5))


@pytest.mark.parametrize("version", range(5))
def test_every_version_commits(
    client: Client, producer: TransactionalProducer, group: str, topic: str, version: int
) -> None:
    assert until_settled(lambda: producer.add_offsets(group, version=version)) is Errors.NONE
    assert producer.commit_offset(group, topic, 3, version=version) is Errors.NONE
    producer.commit()

    wait_until(lambda: fetched(client, group, topic) == (Errors.NONE, 3))


@pytest.mark.parametrize(
    ("version", "error"), [(4, Errors.TRANSACTION_ABORTABLE), (3, Errors.INVALID_TXN_STATE)]
)
def test_group_must_be_in_the_transaction(
    client: Client,
    producer: TransactionalProducer,
    group: str,
    topic: str,
    version: int,
    error: Errors,
) -> None:
    assert producer.commit_offset(group, topic, 3, version=version) is error
    assert fetched(client, group, topic, require_stable=True) == NOTHING


def test_fenced_producer_commits_nothing(
    client: Client, producer: TransactionalProducer, group: str, topic: str
) -> None:
    sent(producer, group, topic, 5)
    TransactionalProducer(client, producer.transactional_id).start()

    assert producer.commit_offset(group, topic, 6) is Errors.INVALID_PRODUCER_EPOCH
    wait_until(lambda: fetched(client, group, topic, require_stable=True) == NOTHING)


def test_unknown_topic_is_told_so(
    client: Client, producer: TransactionalProducer, group: str
) -> None:
    error = producer.commit_offset(group, "missing", 5)

    assert error is Errors.UNKNOWN_TOPIC_OR_PARTITION


def test_offsets_of_an_open_transaction_outlive_a_restart(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        with broker.client() as client:
            topic, group = create_topic(client), _group(client)
            producer = TransactionalProducer(client, "txn").start()
            sent(producer, group, topic, 5)

        broker.restart()

        with broker.client() as client:
            producer.use(client)
            unstable = (Errors.UNSTABLE_OFFSET_COMMIT, -1)
            wait_until(lambda: fetched(client, group, topic, require_stable=True) == unstable)
            assert until_settled(lambda: producer.end(commit=True)) is Errors.NONE
            wait_until(
                lambda: fetched(client, group, topic, require_stable=True) == (Errors.NONE, 5)
            )
