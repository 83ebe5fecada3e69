"""Transactions over the wire: what readers see, who is fenced, and what a restart leaves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from kafkapy.common.protocol.messages.describe_producers import DescribeProducersRequest
from kafkapy.common.protocol.messages.describe_transactions import DescribeTransactionsRequest
from kafkapy.common.protocol.messages.fetch import FetchRequest
from kafkapy.common.protocol.messages.find_coordinator import FindCoordinatorRequest
from kafkapy.common.protocol.messages.init_producer_id import InitProducerIdRequest
from kafkapy.common.protocol.messages.list_transactions import ListTransactionsRequest
from kafkapy.common.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from kafkapy.common.types import TRANSACTION_STATE_TOPIC
from tests.helpers.api import (
    LATEST,
    TOPIC_RESOURCE,
    config_entry,
    create_topic,
    delete_topic,
    fetch,
    fetch_request,
    fetch_topic,
    fetched_values,
    list_offset,
    produce,
    produced,
    unique_name,
)
from tests.helpers.broker import Broker, Client, running_broker
from tests.helpers.records import records
from tests.helpers.transactions import (
    READ_COMMITTED,
    TransactionalProducer,
    committed,
    find_coordinator,
    uncommitted,
    until_settled,
)
from tests.helpers.waiting import wait_until

SHORT_TIMEOUT_MS = 300
QUICK_CHECKS = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "50"}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with running_broker(tmp_path_factory.mktemp("logs"), QUICK_CHECKS) as broker:
        yield broker


@pytest.fixture
def client(broker: Broker) -> Iterator[Client]:
    with broker.client() as client:
        yield client


@pytest.fixture
def topic(client: Client) -> str:
    return create_topic(client, partitions=2)


@pytest.fixture
def producer(client: Client) -> TransactionalProducer:
    return TransactionalProducer(client, unique_name("txn")).start()


class TestVisibility:
    def test_records_are_committed_with_their_transaction(
        self, client: Client, topic: str, producer: TransactionalProducer
    ) -> None:
        producer.write(topic, "a", "b")
        producer.write(topic, "c", partition=1)

        assert committed(client, topic) == committed(client, topic, partition=1) == []
        assert uncommitted(client, topic) == ["a", "b"]

        producer.commit()

        wait_until(lambda: committed(client, topic) == ["a", "b"])
        wait_until(lambda: committed(client, topic, partition=1) == ["c"])

    def test_aborted_records_are_seen_only_by_those_who_do_not_mind(
        self, client: Client, topic: str, producer: TransactionalProducer
    ) -> None:
        producer.write(topic, "aborted")
        producer.abort()
        producer.write(topic, "committed")
        producer.commit()

        wait_until(lambda: committed(client, topic) == ["committed"])
        assert uncommitted(client, topic) == ["aborted", "committed"]

    def test_aborted_transactions_are_listed_with_their_first_offsets(
        self, client: Client, topic: str, producer: TransactionalProducer
    ) -> None:
        produced(client, topic, records("before"))
        producer.write(topic, "x", "y")
        producer.abort()
        wait_until(lambda: list_offset(client, topic, LATEST, isolation_level=1).offset == 4)

        data = fetch(client, topic, isolation_level=READ_COMMITTED)

        (aborted,) = data.aborted_transactions
        assert (aborted.producer_id, aborted.first_offset) == (producer.producer_id, 1)
        assert fetch(client, topic).aborted_transactions is None

    def test_records_after_an_open_transaction_wait_for_it(
        self, client: Client, topic: str, producer: TransactionalProducer
    ) -> None:
        produced(client, topic, records("before"))
        producer.write(topic, "open")
        produced(client, topic, records("after"))

        data = fetch(client, topic, isolation_level=READ_COMMITTED)
        assert fetched_values(data) == [b"before"]
        assert (data.last_stable_offset, data.high_watermark) == (1, 3)
        assert list_offset(client, topic, LATEST, isolation_level=1).offset == 1

        producer.commit()

        wait_until(lambda: committed(client, topic) == ["before", "open", "after"])

    def test_waiting_reader_is_woken_up_by_the_commit(
        self, broker: Broker, client: Client, topic: str, producer: TransactionalProducer
    ) -> None:
        producer.write(topic, "a")
        with broker.client() as reader:
            reader.send(_waiting_fetch(topic), 12)
            assert not reader.has_response(0.2)

            producer.commit()

            assert reader.has_response(5)
            (answer,) = reader.receive().responses[0].partitions
            assert fetched_values(answer)[0] == b"a"

    def test_transactions_of_two_producers_end_independently(
        self, client: Client, topic: str, producer: TransactionalProducer
    ) -> None:
        other = TransactionalProducer(client, unique_name("txn")).start()
        producer.write(topic, "first")
        other.write(topic, "second")

        other.commit()
        wait_until(lambda: len(fetch(client, topic).records or b"") > 0)
        assert committed(client, topic) == []
        producer.abort()

        wait_until(lambda: committed(client, topic) == ["second"])


def _waiting_fetch(topic: str) -> FetchRequest:
    return fetch_request(
        fetch_topic(topic, {0: 0}), max_wait_ms=10_000, isolation_level=READ_COMMITTED
    )


class TestFencing:
    def test_successor_aborts_and_fences_its_predecessor(
        self, client: Client, topic: str, producer: TransactionalProducer
    ) -> None:
        producer.write(topic, "zombie")
        successor = TransactionalProducer(client, producer.transactional_id)

        assert successor.init() is Errors.CONCURRENT_TRANSACTIONS
        successor.start()

        assert successor.producer_id == producer.producer_id
        assert successor.epoch > producer.epoch
        assert producer.send(topic, "late") is Errors.INVALID_PRODUCER_EPOCH
        assert producer.add(topic) is Errors.PRODUCER_FENCED
        assert producer.end(commit=True) is Errors.PRODUCER_FENCED
        assert producer.add_offsets("group") is Errors.PRODUCER_FENCED
        assert producer.init(continues=True) is Errors.PRODUCER_FENCED
        successor.write(topic, "fresh")
        successor.commit()
        wait_until(lambda: committed(client, topic) == ["fresh"])

    def test_older_clients_learn_it_as_an_invalid_epoch(
        self, client: Client, topic: str, producer: TransactionalProducer
    ) -> None:
        TransactionalProducer(client, producer.transactional_id).start()

        assert producer.add(topic, version=1) is Errors.INVALID_PRODUCER_EPOCH
        assert producer.end(commit=True, version=1) is Errors.INVALID_PRODUCER_EPOCH
        assert producer.add_offsets("group", version=1) is Errors.INVALID_PRODUCER_EPOCH
        assert producer.init(version=3, continues=True) is Errors.INVALID_PRODUCER_EPOCH

    def test_producer_goes_on_at_its_next_epoch(
        self, client: Client, topic: str, producer: TransactionalProducer
    ) -> None:
        producer_id, epoch = producer.producer_id, producer.epoch

        assert producer.init(continues=True) is Errors.NONE

        assert (producer.producer_id, producer.epoch) == (producer_id, epoch + 1)
        producer.write(topic, "a")
        producer.commit()
        wait_until(lambda: committed(client, topic) == ["a"])


class TestTimeouts:
    def test_abandoned_transaction_is_aborted_and_its_producer_fenced(
        self, client: Client, topic: str
    ) -> None:
        producer = TransactionalProducer(
            client, unique_name("txn"), timeout_ms=SHORT_TIMEOUT_MS
        ).start()
        producer.write(topic, "abandoned")
        produced(client, topic, records("after"))

        wait_until(lambda: committed(client, topic) == ["after"])

        assert producer.end(commit=True) is Errors.PRODUCER_FENCED
        assert producer.send(topic, "late") is Errors.INVALID_PRODUCER_EPOCH

    def test_timeout_has_a_limit(self, client: Client) -> None:
        name = unique_name("txn")
        find_coordinator(client, name)
        producer = TransactionalProducer(client, name, timeout_ms=900_001)

        assert until_settled(producer.init) is Errors.INVALID_TRANSACTION_TIMEOUT


class TestVerification:
    def test_partition_must_be_in_the_transaction(
        self, client: Client, topic: str, producer: TransactionalProducer
    ) -> None:
        producer.write(topic, "a")

        assert producer.send(topic, "x", partition=1) is Errors.TRANSACTION_ABORTABLE
        assert producer.send(topic, "x", partition=1, version=10) is Errors.INVALID_TXN_STATE
        producer.abort()
        assert uncommitted(client, topic, partition=1) == []

    def test_nothing_can_be_sent_outside_a_transaction(
        self, client: Client, topic: str, producer: TransactionalProducer
    ) -> None:
        producer.write(topic, "a")
        producer.commit()
        wait_until(lambda: committed(client, topic) == ["a"])

        assert (
            until_settled_produce(lambda: producer.send(topic, "x")) is Errors.TRANSACTION_ABORTABLE
        )
        produced(client, topic, records("after"))
        assert committed(client, topic) == ["a", "after"]

    def test_transactional_records_need_a_transactional_id(
        self, client: Client, topic: str
    ) -> None:
        batch = records("a", producer_id=1, producer_epoch=0, sequence=0, transactional=True)

        error = produce(client, topic, batch).error_code

        assert error == Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED.code

    @pytest.mark.parametrize("version", [4, 5])
    def test_brokers_may_ask_about_several_transactions(
        self, client: Client, topic: str, producer: TransactionalProducer, version: int
    ) -> None:
        producer.add(topic, 0)
        request = AddPartitionsToTxnRequest

        def asked(name: str, producer_id: int, *partitions: int):
            return request.AddPartitionsToTxnTransaction(
                transactional_id=name,
                producer_id=producer_id,
                producer_epoch=producer.epoch,
                verify_only=True,
                topics=[request.AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
            )

        response = client.request(
            request(
                transactions=[
                    asked(producer.transactional_id, producer.producer_id, 0, 1),
                    asked("unknown", 1, 0),
                ]
            ),
            version,
        )

        assert {
            result.transactional_id: [
                Errors.for_code(partition.partition_error_code)
                for partition in result.topic_results[0].results_by_partition
            ]
            for result in response.results_by_transaction
        } == {
            producer.transactional_id: [Errors.NONE, Errors.TRANSACTION_ABORTABLE],
            "unknown": [Errors.INVALID_PRODUCER_ID_MAPPING],
        }
        assert client.request(request(), version).results_by_transaction == []

    def test_unknown_partition_keeps_all_from_being_added(
        self, client: Client, topic: str, producer: TransactionalProducer
    ) -> None:
        assert producer.add(topic, 0, 9) is Errors.OPERATION_NOT_ATTEMPTED
        assert producer.add("no-such-topic") is Errors.UNKNOWN_TOPIC_OR_PARTITION
        assert producer.end(commit=True) is Errors.INVALID_TXN_STATE


def until_settled_produce(attempt) -> Errors:
    """Produce says NOT_ENOUGH_REPLICAS where the coordinator says to try again."""
    last = [Errors.NONE]

    def settled() -> bool:
        last[0] = attempt()
        return last[0] is not Errors.NOT_ENOUGH_REPLICAS

    wait_until(settled)
    return last[0]


class TestRequests:
    def test_coordinator_is_found_in_every_version(self, broker: Broker, client: Client) -> None:
        find_coordinator(client, "any")
        for version in range(1, 4):
            response = client.request(FindCoordinatorRequest(key="any", key_type=1), version)
            assert (response.error_code, response.port) == (0, broker.address()[1])

    def test_state_topic_is_made_as_kafka_makes_it(self, client: Client) -> None:
        find_coordinator(client, "any")

        def value(key: str) -> str:
            return config_entry(client, TOPIC_RESOURCE, TRANSACTION_STATE_TOPIC, key).value

        assert value("cleanup.policy") == "compact"
        assert value("compression.type") == "uncompressed"
        assert value("min.insync.replicas") == "1"
        assert value("segment.bytes") == "104857600"

    @pytest.mark.parametrize("version", range(6))
    def test_init_producer_id(self, client: Client, version: int) -> None:
        name = unique_name("txn")
        find_coordinator(client, name)
        producer = TransactionalProducer(client, name)

        assert until_settled(lambda: producer.init(version=version)) is Errors.NONE
        assert producer.epoch == 0

    @pytest.mark.parametrize(("producer_id", "epoch"), [(5, -1), (-1, 5)])
    def test_half_an_identity_is_refused(
        self, client: Client, producer_id: int, epoch: int
    ) -> None:
        response = client.request(
            InitProducerIdRequest(
                transactional_id="x", producer_id=producer_id, producer_epoch=epoch
            )
        )

        assert response.error_code == Errors.INVALID_REQUEST.code

    @pytest.mark.parametrize("version", range(5))
    def test_end_txn(
        self, client: Client, topic: str, producer: TransactionalProducer, version: int
    ) -> None:
        producer.write(topic, "a")

        assert producer.end(commit=True, version=version) is Errors.NONE

    @pytest.mark.parametrize("version", range(2))
    def test_write_txn_markers_answers_for_each_partition(
        self, client: Client, topic: str, version: int
    ) -> None:
        request = WriteTxnMarkersRequest
        response = client.request(
            request(
                markers=[
                    request.WritableTxnMarker(
                        producer_id=4711,
                        producer_epoch=0,
                        transaction_result=False,
                        topics=[
                            request.WritableTxnMarkerTopic(name=topic, partition_indexes=[0, 9])
                        ],
                    )
                ]
            ),
            version,
        )

        (marker,) = response.markers
        assert marker.producer_id == 4711
        assert {p.partition_index: p.error_code for p in marker.topics[0].partitions} == {
            0: Errors.NONE.code,
            9: Errors.UNKNOWN_TOPIC_OR_PARTITION.code,
        }
        assert client.request(request(), version).markers == []


class TestAdministration:
    def test_hanging_transaction_is_found_and_aborted(
        self, client: Client, topic: str, producer: TransactionalProducer
    ) -> None:
        """As kafka-transactions does it: by its open offset, with a marker of its own."""
        producer.write(topic, "hangs")

        (state,) = _producers(client, topic)
        assert (state.producer_id, state.current_txn_start_offset) == (producer.producer_id, 0)
        assert (state.producer_epoch, state.last_sequence) == (producer.epoch, 0)
        request = WriteTxnMarkersRequest
        client.request(
            request(
                markers=[
                    request.WritableTxnMarker(
                        producer_id=state.producer_id,
                        producer_epoch=state.producer_epoch,
                        transaction_result=False,
                        coordinator_epoch=state.coordinator_epoch,
                        topics=[request.WritableTxnMarkerTopic(name=topic, partition_indexes=[0])],
                    )
                ]
            )
        )

        (state,) = _producers(client, topic)
        assert state.current_txn_start_offset == -1
        assert list_offset(client, topic, LATEST, isolation_level=1).offset == 2

    def test_describe_producers_of_what_is_not_there(self, client: Client) -> None:
        response = client.request(
            DescribeProducersRequest(
                topics=[
                    DescribeProducersRequest.TopicRequest(name=name, partition_indexes=[0])
                    for name in ("missing", "not a name")
                ]
            )
        )

        assert [t.partitions[0].error_code for t in response.topics] == [
            Errors.UNKNOWN_TOPIC_OR_PARTITION.code,
            Errors.INVALID_TOPIC_EXCEPTION.code,
        ]

    def test_open_transaction_is_described_and_listed(
        self, client: Client, topic: str, producer: TransactionalProducer
    ) -> None:
        producer.write(topic, "a")
        names = [producer.transactional_id, "unknown", ""]

        described = client.request(DescribeTransactionsRequest(transactional_ids=names))

        found, unknown, empty = described.transaction_states
        assert (found.error_code, found.transaction_state) == (0, "Ongoing")
        assert (found.producer_id, found.producer_epoch) == (
            producer.producer_id,
            producer.epoch,
        )
        assert [(t.topic, t.partitions) for t in found.topics] == [(topic, [0])]
        assert unknown.error_code == Errors.TRANSACTIONAL_ID_NOT_FOUND.code
        assert empty.error_code == Errors.INVALID_REQUEST.code
        for version in (0, 1):
            listed = client.request(
                ListTransactionsRequest(
                    state_filters=["Ongoing", "Odd"], producer_id_filters=[producer.producer_id]
                ),
                version,
            )
            assert listed.unknown_state_filters == ["Odd"]
            (state,) = listed.transaction_states
            assert (state.transactional_id, state.transaction_state) == (names[0], "Ongoing")

    @pytest.mark.parametrize(
        ("filters", "expected"),
        [
            ({}, True),
            ({"state_filters": ["Ongoing"]}, True),
            ({"state_filters": ["CompleteCommit"]}, False),
            ({"state_filters": ["Odd"]}, False),
            ({"producer_id_filters": [4711]}, False),
            ({"duration_filter": 0}, True),
            ({"duration_filter": 3_600_000}, False),
        ],
    )
    def test_listing_is_filtered(
        self,
        client: Client,
        topic: str,
        producer: TransactionalProducer,
        filters: dict,
        expected: bool,
    ) -> None:
        producer.write(topic, "a")

        def is_listed() -> bool:
            listed = client.request(ListTransactionsRequest(**filters)).transaction_states
            return producer.transactional_id in {state.transactional_id for state in listed}

        # Not before the clock has moved on is a transaction older than 0 ms.
        wait_until(lambda: is_listed() is expected)


def _producers(client: Client, topic: str):
    response = client.request(
        DescribeProducersRequest(
            topics=[DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=[0])]
        )
    )
    (partition,) = response.topics[0].partitions
    assert partition.error_code == Errors.NONE.code
    return partition.active_producers


def test_other_topic_of_the_same_name_does_not_hold_up_its_old_transaction(
    tmp_path: Path,
) -> None:
    """Its partition is gone, so the transaction completes without a marker there."""
    with running_broker(tmp_path) as broker, broker.client() as client:
        topic = create_topic(client)
        producer = TransactionalProducer(client, "txn").start()
        producer.write(topic, "a")
        delete_topic(client, topic)

        assert producer.end(commit=True) is Errors.NONE

        wait_until(lambda: producer.init() is Errors.NONE)
