"""Idempotent producers whose answers get lost: a batch that is sent again is stored once."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.common.errors import Errors
from tests.faults.faulty_broker import read_all
from tests.faults.lost_answers import LostAnswers
from tests.helpers.api import create_topic, init_producer_id
from tests.helpers.broker import Broker, running_broker

_BATCHES = 2000
_PER_RESTART = 500
_PARTITIONS = 2


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with running_broker(tmp_path) as broker:
        yield broker


def test_batch_whose_answer_was_lost_is_stored_once(broker: Broker) -> None:
    with broker.client() as client:
        topic = create_topic(client, partitions=_PARTITIONS)
        producer_id = init_producer_id(client)
    lost_answers = LostAnswers(topic, _PARTITIONS, producer_id, random.Random(5))

    for count in range(0, _BATCHES, _PER_RESTART):
        if count:
            broker.restart()
        lost_answers.send(broker.address(), _PER_RESTART)

    with broker.client() as client:
        stored = [read_all(client, topic, partition) for partition in range(_PARTITIONS)]
    assert stored == lost_answers.sent
    assert sum(map(len, stored)) >= _BATCHES
    assert set(lost_answers.codes) == {Errors.NONE.code}
