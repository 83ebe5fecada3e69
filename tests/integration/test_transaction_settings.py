"""Settings of transactions and producers that are altered while the broker runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.describe_producers import DescribeProducersRequest
from tests.helpers import api
from tests.helpers.broker import Broker, Client, running_broker
from tests.helpers.records import records
from tests.helpers.transactions import TransactionalProducer
from tests.helpers.waiting import wait_until

_VERIFICATION = "transaction.partition.verification.enable"
_EXPIRATION = "producer.id.expiration.ms"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    properties = {"producer.id.expiration.check.interval.ms": "20"}
    with running_broker(tmp_path, properties) as broker:
        yield broker


def alter(client: Client, name: str, value: str) -> None:
    result = api.alter_configs(client, api.BROKER_RESOURCE, "", (name, api.SET, value))
    assert result.error_code == Errors.NONE.code


def producer_ids(client: Client, topic: str) -> list[int]:
    request = DescribeProducersRequest
    response = client.request(
        request(topics=[request.TopicRequest(name=topic, partition_indexes=[0])])
    )
    return [p.producer_id for p in response.topics[0].partitions[0].active_producers]


def test_verification_is_turned_off_and_stays_off_after_a_restart(broker: Broker) -> None:
    with broker.client() as client:
        topic = api.create_topic(client)
        producer = TransactionalProducer(client, "txn").start()
        assert producer.send(topic, "a") is Errors.TRANSACTION_ABORTABLE

        alter(client, _VERIFICATION, "false")
        wait_until(lambda: producer.send(topic, "a") is Errors.NONE)

    broker.restart()

    with broker.client() as client:
        other = api.create_topic(client)
        producer.use(client)
        assert producer.send(other, "a") is Errors.NONE
        alter(client, _VERIFICATION, "true")

        def refused() -> bool:
            return producer.send(api.create_topic(client), "a") is Errors.TRANSACTION_ABORTABLE

        wait_until(refused)


def test_idle_producers_are_forgotten_after_another_time(broker: Broker) -> None:
    with broker.client() as client:
        topic = api.create_topic(client, configs={"message.timestamp.type": "LogAppendTime"})
        api.produced(client, topic, records("a", producer_id=7, producer_epoch=0, sequence=0))
        assert producer_ids(client, topic) == [7]

        alter(client, _EXPIRATION, "1")

        wait_until(lambda: producer_ids(client, topic) == [])
