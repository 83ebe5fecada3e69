from __future__ import annotations

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnResponse
from kafkapy.coordinator.transaction.add_partitions_to_txn_manager import (
    AddPartitionsToTxnManager,
)
from kafkapy.coordinator.transaction.transaction_result import TransactionResult
from tests.unit.coordinator.transaction.harness import (
    LOG,
    TXN_ID,
    A,
    B,
    FakeSender,
    TransactionHarness,
)
from tests.unit.replication.harness import LISTENER

Unverified = list[dict]


class Verifier:
    def __init__(self, txn: TransactionHarness) -> None:
        self.senders: list[FakeSender] = []
        self.manager = AddPartitionsToTxnManager(
            txn.coordinator,
            txn.broker.metadata_cache,
            broker_id=1,
            time=txn.time,
            metrics=txn.broker.metrics,
            inter_broker_listener_name=LISTENER,
            new_sender=self._new_sender,
            try_complete_actions=lambda: None,
        )

    def _new_sender(self, node, generate_request) -> FakeSender:
        self.senders.append(FakeSender(node, generate_request))
        return self.senders[-1]

    def verify(self, *partitions, producer=(1000, 0), name=TXN_ID, new_client=True) -> Unverified:
        answers: Unverified = []
        self.manager.verify_transaction(
            name,
            producer_id=producer[0],
            producer_epoch=producer[1],
            topic_partitions=partitions,
            supports_abortable_error=new_client,
            callback=answers.append,
        )
        return answers

    def answer(self, response: AddPartitionsToTxnResponse | None):
        """What was sent, after it was answered."""
        (sender,) = self.senders
        outgoing = sender.generate_request()
        assert outgoing is not None
        outgoing.handler(response)
        return outgoing


@pytest.fixture
def verifier(txn: TransactionHarness) -> Verifier:
    return Verifier(txn)


@pytest.fixture
def remote(txn: TransactionHarness, verifier: Verifier) -> Verifier:
    """Broker 2 is the coordinator."""
    txn.broker.update_metadata(LOG, leader=2, replicas=(1, 2))
    return verifier


def results(errors: dict, name: str = TXN_ID, *, error: Errors = Errors.NONE):
    response = AddPartitionsToTxnResponse
    return response(
        error_code=error.code,
        results_by_transaction=[
            response.AddPartitionsToTxnResult(
                transactional_id=name,
                topic_results=[
                    response.AddPartitionsToTxnTopicResult(
                        name=partition.topic,
                        results_by_partition=[
                            response.AddPartitionsToTxnPartitionResult(
                                partition_index=partition.partition,
                                partition_error_code=found.code,
                            )
                        ],
                    )
                    for partition, found in errors.items()
                ],
            )
        ],
    )


class TestThisBrokerCoordinates:
    def test_partitions_that_are_not_in_the_transaction_are_named_at_once(
        self, txn: TransactionHarness, verifier: Verifier
    ) -> None:
        producer = txn.started(A)

        assert verifier.verify(A, producer=producer) == [{}]
        assert verifier.verify(A, B, producer=producer) == [{B: Errors.TRANSACTION_ABORTABLE}]
        assert verifier.senders == []

    def test_older_clients_are_told_what_they_know(
        self, txn: TransactionHarness, verifier: Verifier
    ) -> None:
        producer = txn.started(A)

        assert verifier.verify(B, producer=producer, new_client=False) == [
            {B: Errors.INVALID_TXN_STATE}
        ]

    def test_fenced_producer_has_an_invalid_epoch(
        self, txn: TransactionHarness, verifier: Verifier
    ) -> None:
        producer_id, epoch = txn.started(A)

        assert verifier.verify(A, producer=(producer_id, epoch + 1)) == [
            {A: Errors.INVALID_PRODUCER_EPOCH}
        ]

    def test_ended_transaction_takes_no_more(
        self, txn: TransactionHarness, verifier: Verifier
    ) -> None:
        producer = txn.started(A)
        txn.end(TransactionResult.COMMIT, producer=producer)

        assert verifier.verify(A, producer=producer) == [{A: Errors.CONCURRENT_TRANSACTIONS}]
        assert txn.broker.metric("VerificationFailureRate") == 1


class TestAnotherBrokerCoordinates:
    def test_it_is_asked_without_adding_anything(self, remote: Verifier) -> None:
        answers = remote.verify(A, B)

        outgoing = remote.answer(results({A: Errors.NONE, B: Errors.TRANSACTION_ABORTABLE}))

        (transaction,) = outgoing.request.transactions
        assert (transaction.transactional_id, transaction.verify_only) == (TXN_ID, True)
        assert (transaction.producer_id, transaction.producer_epoch) == (1000, 0)
        assert transaction.topics[0].partitions == [0, 1]
        assert answers == [{B: Errors.TRANSACTION_ABORTABLE}]

    def test_several_transactions_go_in_one_request(self, remote: Verifier) -> None:
        remote.verify(A)
        remote.verify(A, name="other")

        outgoing = remote.answer(None)

        assert [t.transactional_id for t in outgoing.request.transactions] == [TXN_ID, "other"]

    @pytest.mark.parametrize(
        ("response", "error"),
        [
            (None, Errors.NETWORK_EXCEPTION),
            (results({}, error=Errors.CLUSTER_AUTHORIZATION_FAILED), Errors.INVALID_TXN_STATE),
            (results({}, error=Errors.NOT_COORDINATOR), Errors.NOT_COORDINATOR),
            (results({A: Errors.PRODUCER_FENCED}), Errors.INVALID_PRODUCER_EPOCH),
            (results({}), Errors.UNKNOWN_SERVER_ERROR),
        ],
    )
    def test_failures(self, remote: Verifier, response, error: Errors) -> None:
        answers = remote.verify(A)

        remote.answer(response)

        assert answers == [{A: error}]

    @pytest.mark.parametrize(
        ("epochs", "first", "second"),
        [
            ((1, 1), [{A: Errors.NETWORK_EXCEPTION}], []),
            ((1, 2), [{A: Errors.INVALID_PRODUCER_EPOCH}], []),
            ((2, 1), [], [{A: Errors.INVALID_PRODUCER_EPOCH}]),
        ],
    )
    def test_one_of_two_under_one_id_is_sent_back(
        self, remote: Verifier, epochs: tuple[int, int], first: list, second: list
    ) -> None:
        answers = [remote.verify(A, producer=(1000, epoch)) for epoch in epochs]

        assert answers == [first, second]

    def test_there_may_be_no_coordinator(self, txn: TransactionHarness, remote: Verifier) -> None:
        txn.broker.update_metadata(LOG, leader=9, replicas=(9,))

        assert remote.verify(A) == [{A: Errors.COORDINATOR_NOT_AVAILABLE}]

    def test_shutdown_ends_the_senders(self, remote: Verifier) -> None:
        remote.verify(A)

        remote.manager.shutdown()

        assert [sender.is_shut_down for sender in remote.senders] == [True]
