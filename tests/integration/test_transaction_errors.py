"""What is not allowed in a transaction gets Kafka's error code and changes nothing."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.describe_producers import DescribeProducersRequest
from kafkapy.common.protocol.messages.describe_transactions import DescribeTransactionsRequest
from kafkapy.common.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from kafkapy.common.types import CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from tests.helpers import api
from tests.helpers.broker import Broker, Client, running_broker
from tests.helpers.records import records
from tests.helpers.transactions import (
    GROUP_KEY,
    TransactionalProducer,
    find_coordinator,
    until_settled,
)

FENCED = Errors.PRODUCER_FENCED
INVALID_EPOCH = Errors.INVALID_PRODUCER_EPOCH
UNMAPPED = Errors.INVALID_PRODUCER_ID_MAPPING
ILLEGAL = Errors.INVALID_TXN_STATE


@dataclass(frozen=True)
class World:
    """A producer at epoch 2 that has written a record and an offset in a transaction."""

    client: Client
    topic: str
    group: str
    producer: TransactionalProducer

    def other(
        self, *, name: str | None = None, id_delta: int = 0, epoch_delta: int = 0
    ) -> TransactionalProducer:
        """One that is not quite the same."""
        other = copy.copy(self.producer)
        other.producer_id += id_delta
        other.epoch += epoch_delta
        if name is not None:
            other.transactional_id = name
        return other

    @property
    def stale(self) -> TransactionalProducer:
        # One epoch earlier it might repeat the request that raised it.
        return self.other(epoch_delta=-2)

    @property
    def early(self) -> TransactionalProducer:
        return self.other(epoch_delta=1)

    @property
    def foreign(self) -> TransactionalProducer:
        return self.other(id_delta=1)

    @property
    def unknown(self) -> TransactionalProducer:
        return self.other(name=api.unique_name("unknown"))

    @property
    def nameless(self) -> TransactionalProducer:
        return self.other(name="")

    def commit_offset(
        self, producer: TransactionalProducer, *, group: str | None = None, version: int = 4
    ) -> Errors:
        return producer.commit_offset(group or self.group, self.topic, 9, version=version)

    def produce(self, *, sequence: int, transactional: bool) -> Errors:
        batch = records(
            "x",
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.epoch,
            sequence=sequence,
            transactional=transactional,
        )
        request = api.produce_request(
            self.topic, batch, transactional_id=self.producer.transactional_id
        )
        response = self.client.request(request)
        return Errors.for_code(response.responses[0].partition_responses[0].error_code)

    def write_marker(self, *, epoch_delta: int = 0) -> Errors:
        request = WriteTxnMarkersRequest
        marker = request.WritableTxnMarker(
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.epoch + epoch_delta,
            transaction_result=True,
            coordinator_epoch=0,
            topics=[request.WritableTxnMarkerTopic(name=self.topic, partition_indexes=[0])],
        )
        response = self.client.request(request(markers=[marker]))
        return Errors.for_code(response.markers[0].topics[0].partitions[0].error_code)

    def snapshot(self) -> object:
        """All there is to see of the transaction, and what has been written."""
        named = DescribeTransactionsRequest(transactional_ids=[self.producer.transactional_id])
        topics = [DescribeProducersRequest.TopicRequest(name=self.topic, partition_indexes=[0])]
        return (
            self.client.request(named),
            self.client.request(DescribeProducersRequest(topics=topics)),
            [
                api.list_offset(self.client, self.topic, api.LATEST, isolation_level=level).offset
                for level in (0, 1)
            ],
        )


Case = tuple[Callable[[World], Errors], Errors]

# In an open transaction.
OPEN: dict[str, Case] = {
    "init, foreign producer": (lambda w: w.foreign.init(continues=True), FENCED),
    "init, no name": (lambda w: w.nameless.init(), Errors.INVALID_REQUEST),
    "add, stale epoch": (lambda w: w.stale.add(w.topic, 1), FENCED),
    "add, stale epoch, old client": (lambda w: w.stale.add(w.topic, 1, version=1), INVALID_EPOCH),
    "add, early epoch": (lambda w: w.early.add(w.topic, 1), FENCED),
    "add, foreign producer": (lambda w: w.foreign.add(w.topic, 1), UNMAPPED),
    "add, unknown name": (lambda w: w.unknown.add(w.topic, 1), UNMAPPED),
    "add, no name": (lambda w: w.nameless.add(w.topic, 1), Errors.INVALID_REQUEST),
    "add, unknown partition": (
        lambda w: w.producer.add(w.topic, 99),
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
    ),
    "add, internal topic": (
        lambda w: w.producer.add(CONSUMER_OFFSETS_TOPIC, 0),
        Errors.TOPIC_AUTHORIZATION_FAILED,
    ),
    "add, internal topic, unknown partition": (
        lambda w: w.producer.add(TRANSACTION_STATE_TOPIC, 99),
        Errors.TOPIC_AUTHORIZATION_FAILED,
    ),
    "add offsets, stale epoch": (lambda w: w.stale.add_offsets("other"), FENCED),
    "add offsets, foreign producer": (lambda w: w.foreign.add_offsets("other"), UNMAPPED),
    "add offsets, unknown name": (lambda w: w.unknown.add_offsets("other"), UNMAPPED),
    "commit, stale epoch": (lambda w: w.stale.end(commit=True), FENCED),
    "commit, stale epoch, old client": (
        lambda w: w.stale.end(commit=True, version=1),
        INVALID_EPOCH,
    ),
    "commit, early epoch": (lambda w: w.early.end(commit=True), FENCED),
    "abort, stale epoch": (lambda w: w.stale.end(commit=False), FENCED),
    "abort, foreign producer": (lambda w: w.foreign.end(commit=False), UNMAPPED),
    "abort, unknown name": (lambda w: w.unknown.end(commit=False), UNMAPPED),
    "abort, no name": (lambda w: w.nameless.end(commit=False), Errors.INVALID_REQUEST),
    "produce, stale epoch": (lambda w: w.stale.send(w.topic, "x"), INVALID_EPOCH),
    # Kafka 3.9 does not ask the coordinator about these two, as the transaction is open here: later
    # releases do.
    "produce, early epoch": (lambda w: w.early.send(w.topic, "x"), INVALID_EPOCH),
    "offsets, early epoch": (lambda w: w.commit_offset(w.early), INVALID_EPOCH),
    "produce, gap in the sequence": (
        lambda w: w.produce(sequence=7, transactional=True),
        Errors.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ),
    "produce, outside the transaction": (
        lambda w: w.produce(sequence=1, transactional=False),
        ILLEGAL,
    ),
    "produce, partition not added": (
        lambda w: w.producer.send(w.topic, "x", partition=1),
        Errors.TRANSACTION_ABORTABLE,
    ),
    "produce, partition not added, old client": (
        lambda w: w.producer.send(w.topic, "x", partition=1, version=10),
        ILLEGAL,
    ),
    "offsets, stale epoch": (lambda w: w.commit_offset(w.stale), INVALID_EPOCH),
    "offsets, foreign producer": (lambda w: w.commit_offset(w.foreign), UNMAPPED),
    "marker, stale epoch": (lambda w: w.write_marker(epoch_delta=-1), INVALID_EPOCH),
}

# After a commit, then after an abort.
ENDED: dict[str, tuple[Callable[[World], Errors], Errors, Errors]] = {
    "init, stale epoch": (lambda w: w.stale.init(continues=True), FENCED, FENCED),
    "init, stale epoch, old client": (
        lambda w: w.stale.init(continues=True, version=3),
        INVALID_EPOCH,
        INVALID_EPOCH,
    ),
    "init, foreign producer": (lambda w: w.foreign.init(continues=True), FENCED, FENCED),
    "commit": (lambda w: w.producer.end(commit=True), Errors.NONE, ILLEGAL),
    "abort": (lambda w: w.producer.end(commit=False), ILLEGAL, Errors.NONE),
    "commit, stale epoch": (lambda w: w.stale.end(commit=True), FENCED, FENCED),
    "add, stale epoch": (lambda w: w.stale.add(w.topic, 1), FENCED, FENCED),
    "produce": (
        lambda w: w.producer.send(w.topic, "x"),
        Errors.TRANSACTION_ABORTABLE,
        Errors.TRANSACTION_ABORTABLE,
    ),
    "offsets": (
        lambda w: w.commit_offset(w.producer),
        Errors.TRANSACTION_ABORTABLE,
        Errors.TRANSACTION_ABORTABLE,
    ),
    "offsets, old client": (lambda w: w.commit_offset(w.producer, version=3), ILLEGAL, ILLEGAL),
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    properties = {
        "transaction.state.log.num.partitions": "1",
        "offsets.topic.num.partitions": "1",
    }
    with running_broker(tmp_path_factory.mktemp("logs"), properties) as broker:
        yield broker


def make_world(client: Client) -> World:
    group, topic = api.unique_name("group"), api.create_topic(client, partitions=2)
    find_coordinator(client, group, GROUP_KEY)
    producer = TransactionalProducer(client, api.unique_name("txn")).start()
    for _ in range(2):
        assert until_settled(lambda: producer.init(continues=True)) is Errors.NONE
    producer.write(topic, "a")
    assert until_settled(lambda: producer.add_offsets(group)) is Errors.NONE
    assert until_settled(lambda: producer.commit_offset(group, topic, 5)) is Errors.NONE
    return World(client, topic, group, producer)


@pytest.fixture(scope="module")
def open_world(broker: Broker) -> Iterator[World]:
    """Shared, since nothing that is done to it may change it."""
    with broker.client() as client:
        yield make_world(client)


@pytest.fixture(scope="module", params=[True, False], ids=["committed", "aborted"])
def ended_world(request: pytest.FixtureRequest, broker: Broker) -> Iterator[tuple[World, bool]]:
    with broker.client() as client:
        yield make_ended_world(client, commit=request.param), request.param


def make_ended_world(client: Client, *, commit: bool) -> World:
    world = make_world(client)
    # The second answer comes when its markers are written.
    assert until_settled(lambda: world.producer.end(commit=commit)) is Errors.NONE
    assert until_settled(lambda: world.producer.end(commit=commit)) is Errors.NONE
    return world


@pytest.mark.parametrize("name", OPEN)
def test_open_transaction_is_not_touched(open_world: World, name: str) -> None:
    act, error = OPEN[name]
    before = open_world.snapshot()

    assert act(open_world) is error

    assert open_world.snapshot() == before


@pytest.mark.parametrize("name", ENDED)
def test_ended_transaction_stays_as_it_ended(ended_world: tuple[World, bool], name: str) -> None:
    world, was_committed = ended_world
    act, after_commit, after_abort = ENDED[name]
    before = world.snapshot()

    assert act(world) is (after_commit if was_committed else after_abort)

    assert world.snapshot() == before
