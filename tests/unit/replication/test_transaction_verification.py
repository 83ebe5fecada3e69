from __future__ import annotations

import pytest

from kafkapy.common.errors import Errors, InvalidPidMappingError
from kafkapy.common.types import TopicPartition
from kafkapy.replication.transaction_verification import TransactionVerification
from kafkapy.storage.log_config import LogManagerConfig
from kafkapy.storage.verification_state_entry import VerificationGuard
from tests.helpers.records import records
from tests.unit.replication.conftest import MakeBroker
from tests.unit.replication.fake_verifier import FakeVerifier
from tests.unit.replication.harness import TP, ReplicaHarness

OTHER = TopicPartition("t", 1)
PRODUCER = 7


class Producer:
    def __init__(self, broker: ReplicaHarness) -> None:
        self.broker = broker
        self.verification_enabled = True
        self.verifier = FakeVerifier()
        self.verification = TransactionVerification(
            broker.replica_manager, self.verifier, lambda: self.verification_enabled
        )

    def send(self, entries) -> list[dict]:
        answers: list[dict] = []
        self.verification.handle_produce_append(
            "txn",
            timeout_ms=1000,
            required_acks=1,
            internal_topics_allowed=False,
            entries_per_partition=entries,
            supports_abortable_error=True,
            response_callback=answers.append,
        )
        return answers

    def errors(self, entries) -> dict:
        (answer,) = self.send(entries)
        return {partition: response.error for partition, response in answer.items()}


def batch(sequence: int = 0, *, producer_id: int = PRODUCER, transactional: bool = True):
    return records(
        "a",
        producer_id=producer_id,
        producer_epoch=0,
        sequence=sequence,
        transactional=transactional,
    )


@pytest.fixture
def producer(make_broker: MakeBroker) -> Producer:
    broker = make_broker(transaction_verification=True)
    broker.lead(TP)
    broker.lead(OTHER)
    return Producer(broker)


def test_only_the_first_append_to_a_partition_is_verified(producer: Producer) -> None:
    assert producer.errors({TP: batch(0)}) == {TP: Errors.NONE}
    assert producer.errors({TP: batch(1), OTHER: batch(0)}) == {
        TP: Errors.NONE,
        OTHER: Errors.NONE,
    }

    assert producer.verifier.asked == [[TP], [OTHER]]


def test_partition_outside_the_transaction_is_refused_and_the_others_appended(
    producer: Producer,
) -> None:
    producer.verifier.unverified = {OTHER: Errors.TRANSACTION_ABORTABLE}

    assert producer.errors({TP: batch(), OTHER: batch()}) == {
        TP: Errors.NONE,
        OTHER: Errors.TRANSACTION_ABORTABLE,
    }


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (Errors.CONCURRENT_TRANSACTIONS, Errors.NOT_ENOUGH_REPLICAS),
        (Errors.NETWORK_EXCEPTION, Errors.NOT_ENOUGH_REPLICAS),
        (Errors.COORDINATOR_LOAD_IN_PROGRESS, Errors.NOT_ENOUGH_REPLICAS),
        (Errors.COORDINATOR_NOT_AVAILABLE, Errors.NOT_ENOUGH_REPLICAS),
        (Errors.NOT_COORDINATOR, Errors.NOT_ENOUGH_REPLICAS),
        (Errors.INVALID_TXN_STATE, Errors.INVALID_TXN_STATE),
        (Errors.INVALID_PRODUCER_EPOCH, Errors.INVALID_PRODUCER_EPOCH),
    ],
)
def test_errors_as_producers_are_told(producer: Producer, found: Errors, told: Errors) -> None:
    producer.verifier.unverified = {TP: found}

    assert producer.errors({TP: batch()}) == {TP: told}


def test_append_waits_for_the_answer(producer: Producer) -> None:
    producer.verifier.holds_back = True

    answers = producer.send({TP: batch()})
    assert answers == []
    producer.verifier.callbacks.pop()({})

    assert answers[0][TP].error is Errors.NONE


def test_records_without_a_transaction_are_not_asked_about(producer: Producer) -> None:
    assert producer.errors({TP: batch(transactional=False)}) == {TP: Errors.NONE}
    assert producer.verifier.asked == []


def test_records_of_two_producers_are_refused(producer: Producer) -> None:
    with pytest.raises(InvalidPidMappingError):
        producer.send({TP: batch(), OTHER: batch(producer_id=8)})


def test_partition_that_is_not_led_here_is_not_asked_about(producer: Producer) -> None:
    unknown = TopicPartition("unknown", 0)

    assert producer.errors({unknown: batch()}) == {unknown: Errors.UNKNOWN_TOPIC_OR_PARTITION}
    assert producer.verifier.asked == []


def test_verification_can_be_turned_off_and_on_again(producer: Producer) -> None:
    log_manager = producer.broker.log_manager

    def turn(*, on: bool) -> None:
        producer.verification_enabled = on
        log_manager.reconfigure_producer_state(
            LogManagerConfig(transaction_partition_verification_enable=on)
        )

    turn(on=False)
    assert producer.errors({TP: batch()}) == {TP: Errors.NONE}
    assert producer.verifier.asked == []

    turn(on=True)
    assert producer.errors({OTHER: batch()}) == {OTHER: Errors.NONE}
    assert producer.verifier.asked == [[OTHER]]


def test_records_of_a_coordinator_are_verified_too(producer: Producer) -> None:
    answers: list[tuple[Errors, VerificationGuard]] = []

    def start() -> None:
        producer.verification.maybe_start_for_partition(
            TP,
            "txn",
            producer_id=PRODUCER,
            producer_epoch=0,
            supports_abortable_error=True,
            callback=lambda error, guard: answers.append((error, guard)),
        )

    start()
    producer.verifier.unverified = {TP: Errors.TRANSACTION_ABORTABLE}
    start()

    (first, guard), (second, _) = answers
    assert (first, second) == (Errors.NONE, Errors.TRANSACTION_ABORTABLE)
    assert guard is not VerificationGuard.SENTINEL
