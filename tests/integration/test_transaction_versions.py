"""The requests of a transactional producer in every version that is advertised."""

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.api_keys import ApiKeys
from tests.helpers import api
from tests.helpers.broker import Client
from tests.helpers.transactions import (
    TransactionalProducer,
    committed,
    find_coordinator,
    until_settled,
)
from tests.helpers.waiting import wait_until

_GROUP_KEY = 0


@pytest.fixture
def producer(client: Client) -> TransactionalProducer:
    return TransactionalProducer(client, api.unique_name("txn")).start()


def versions(api_key: ApiKeys) -> range:
    return range(api_key.min_version, api_key.max_version + 1)


# From version 4 on brokers ask for each other: see test_transactions.
@pytest.mark.parametrize("version", range(4))
def test_partitions_are_added_in_every_version_of_clients(
    client: Client, topic: str, producer: TransactionalProducer, version: int
) -> None:
    assert until_settled(lambda: producer.add(topic, version=version)) is Errors.NONE
    assert producer.send(topic, "a") is Errors.NONE
    producer.commit()

    # The answer comes when the commit is decided, the markers follow.
    wait_until(lambda: committed(client, topic) == ["a"])


@pytest.mark.parametrize("version", versions(ApiKeys.ADD_OFFSETS_TO_TXN))
def test_a_groups_offsets_are_added_in_every_version(
    client: Client, producer: TransactionalProducer, version: int
) -> None:
    group = api.unique_name("group")
    find_coordinator(client, group, _GROUP_KEY)

    assert until_settled(lambda: producer.add_offsets(group, version=version)) is Errors.NONE
    producer.commit()


@pytest.mark.parametrize("version", versions(ApiKeys.TXN_OFFSET_COMMIT))
def test_offsets_are_committed_in_every_version(
    client: Client, topic: str, producer: TransactionalProducer, version: int
) -> None:
    group = api.unique_name("group")
    find_coordinator(client, group, _GROUP_KEY)
    assert until_settled(lambda: producer.add_offsets(group)) is Errors.NONE

    assert (
        until_settled(lambda: producer.commit_offset(group, topic, 7, version=version))
        is Errors.NONE
    )
    producer.commit()
