from __future__ import annotations

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.types import TopicPartition
from kafkapy.coordinator.transaction.transaction_result import TransactionResult
from kafkapy.coordinator.transaction.transaction_state import TransactionState
from tests.unit.coordinator.transaction.harness import (
    LOG,
    A,
    B,
    TransactionHarness,
    partitions_of,
)

S = TransactionState


def committing(txn: TransactionHarness, *partitions: TopicPartition) -> tuple[int, int]:
    producer = txn.started(*partitions)
    assert txn.end(TransactionResult.COMMIT, producer=producer) is Errors.NONE
    return producer


def test_markers_of_several_transactions_go_in_one_request(txn: TransactionHarness) -> None:
    committing(txn, A)
    other = txn.init("other")
    producer = other.producer_id, other.producer_epoch
    txn.add(B, producer=producer, name="other")
    txn.end(TransactionResult.ABORT, producer=producer, name="other")

    (request,) = txn.deliver()

    assert [m.transaction_result for m in request.markers] == [True, False]
    assert (txn.metadata().state, txn.metadata("other").state) == (
        S.COMPLETE_COMMIT,
        S.COMPLETE_ABORT,
    )


def test_each_leader_gets_the_markers_of_its_partitions(txn: TransactionHarness) -> None:
    producer = txn.started(A, B)
    txn.broker.update_metadata(B, leader=2, replicas=(1, 2))

    txn.end(TransactionResult.COMMIT, producer=producer)

    sent = {sender.node.id: sender.generate_request() for sender in txn.senders}
    assert partitions_of(sent[1].request) == [A]
    assert partitions_of(sent[2].request) == [B]


@pytest.mark.parametrize(
    "error",
    [
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
        Errors.NOT_LEADER_OR_FOLLOWER,
        Errors.NOT_ENOUGH_REPLICAS,
        Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        Errors.REQUEST_TIMED_OUT,
        Errors.KAFKA_STORAGE_ERROR,
        Errors.UNKNOWN_SERVER_ERROR,
    ],
)
def test_partition_that_failed_is_tried_again_alone(txn: TransactionHarness, error: Errors) -> None:
    committing(txn, A, B)

    txn.deliver({B: error})
    assert (txn.metadata().state, txn.metadata().topic_partitions) == (S.PREPARE_COMMIT, {B})
    assert txn.deliver() == []
    txn.back_off()
    (again,) = txn.deliver()

    assert partitions_of(again) == [B]
    assert txn.metadata().state is S.COMPLETE_COMMIT


def test_unanswered_request_is_sent_again_to_whoever_leads_then(txn: TransactionHarness) -> None:
    committing(txn, A)
    txn.deliver(answered=False)
    txn.broker.update_metadata(A, leader=3, replicas=(1, 3))

    txn.back_off()
    (request,) = txn.deliver()

    assert [s.node.id for s in txn.senders] == [1, 3]
    assert partitions_of(request) == [A]
    assert txn.metadata().state is S.COMPLETE_COMMIT


@pytest.mark.parametrize(
    "error", [Errors.INVALID_PRODUCER_EPOCH, Errors.TRANSACTION_COORDINATOR_FENCED]
)
def test_fenced_markers_are_given_up(txn: TransactionHarness, error: Errors) -> None:
    committing(txn, A)
    records = txn.logged()

    txn.deliver({A: error})
    txn.back_off()

    assert txn.deliver() == []
    assert txn.logged() == records


@pytest.mark.parametrize(
    "error", [Errors.UNSUPPORTED_FOR_MESSAGE_FORMAT, Errors.UNSUPPORTED_VERSION]
)
def test_partition_too_old_for_markers_is_left_out(txn: TransactionHarness, error: Errors) -> None:
    committing(txn, A)

    txn.deliver({A: error})

    assert txn.metadata().state is S.COMPLETE_COMMIT


class TestUnknownLeader:
    MISSING = TopicPartition("missing", 0)

    def committing(self, txn: TransactionHarness) -> None:
        txn.existing_partitions.add(self.MISSING)
        committing(txn, A, self.MISSING)

    def test_marker_waits_until_the_partition_is_known(self, txn: TransactionHarness) -> None:
        self.committing(txn)

        txn.deliver()
        txn.back_off()
        assert txn.metadata().topic_partitions == {self.MISSING}
        assert txn.broker.metric("UnknownDestinationQueueSize") == 1
        txn.broker.update_metadata(self.MISSING)
        txn.back_off()
        txn.deliver()

        assert txn.metadata().state is S.COMPLETE_COMMIT
        assert txn.broker.metric("UnknownDestinationQueueSize") == 0

    def test_partition_that_was_deleted_needs_none(self, txn: TransactionHarness) -> None:
        self.committing(txn)
        txn.deliver()
        txn.existing_partitions.remove(self.MISSING)

        txn.back_off()

        assert txn.metadata().state is S.COMPLETE_COMMIT

    def test_marker_waits_for_a_leader_to_come_back(self, txn: TransactionHarness) -> None:
        producer = txn.started(A)
        txn.broker.update_metadata(A, leader=9, replicas=(9,))
        txn.end(TransactionResult.ABORT, producer=producer)

        txn.back_off()
        assert txn.deliver() == []
        txn.broker.update_metadata(A)
        txn.back_off()
        txn.deliver()

        assert txn.metadata().state is S.COMPLETE_ABORT


class TestCompletion:
    def test_transaction_without_partitions_is_complete_at_once(
        self, txn: TransactionHarness
    ) -> None:
        producer = txn.started(A)
        txn.metadata().topic_partitions.clear()

        assert txn.end(TransactionResult.COMMIT, producer=producer) is Errors.NONE
        assert txn.metadata().state is S.COMPLETE_COMMIT

    def test_it_is_written_again_until_the_log_takes_it(self, txn: TransactionHarness) -> None:
        txn.lead(LOG, replicas=(1, 2), isr=(1,), leader_epoch=1, partition_epoch=1)
        committing(txn, A)
        txn.broker.log_manager.update_topic_config(LOG.topic, {"min.insync.replicas": "2"})

        txn.deliver()

        assert (txn.metadata().state, txn.metadata().pending_state) == (
            S.PREPARE_COMMIT,
            S.COMPLETE_COMMIT,
        )
        assert txn.broker.metric("LogAppendRetryQueueSize") == 1
        txn.broker.log_manager.update_topic_config(LOG.topic, {"min.insync.replicas": "1"})
        txn.back_off()
        assert txn.metadata().state is S.COMPLETE_COMMIT
        assert txn.broker.metric("LogAppendRetryQueueSize") == 0

    def test_lost_log_leaves_it_to_the_next_coordinator(self, txn: TransactionHarness) -> None:
        committing(txn, A)
        txn.follow(LOG)

        txn.deliver()
        txn.back_off()

        assert txn.metadata().state is S.PREPARE_COMMIT
        assert txn.broker.metric("LogAppendRetryQueueSize") == 0


def test_broker_under_another_address_gets_what_waits_for_it(txn: TransactionHarness) -> None:
    committing(txn, A)
    node = txn.senders[0].node
    moved = type(node)(node.id, "elsewhere", node.port, node.rack)

    other = txn.init("other")
    producer = other.producer_id, other.producer_epoch
    txn.add(B, producer=producer, name="other")
    txn.markers._metadata_cache = _At(moved)
    txn.end(TransactionResult.COMMIT, producer=producer, name="other")

    first, second = txn.senders
    assert (first.is_shut_down, second.is_shut_down) == (True, False)
    assert partitions_of(second.generate_request().request) == [A, B]


class _At:
    def __init__(self, node) -> None:
        self._node = node

    def get_partition_leader_endpoint(self, topic, partition, listener):
        return self._node


def test_shutdown_ends_the_senders_and_keeps_the_decision(txn: TransactionHarness) -> None:
    committing(txn, A)

    txn.coordinator.shutdown()

    assert [sender.is_shut_down for sender in txn.senders] == [True]
    assert txn.logged()[-1][1] is S.PREPARE_COMMIT
