"""Transactions: the state table, the requests and their order, what each error leads to."""

from __future__ import annotations

import itertools

import pytest

from kafkapy.clients.client_errors import IllegalStateError
from kafkapy.clients.consumer.consumer_errors import CommitFailedError
from kafkapy.clients.consumer.consumer_group_metadata import ConsumerGroupMetadata
from kafkapy.clients.consumer.offset_and_metadata import OffsetAndMetadata
from kafkapy.clients.producer.sender import TransactionAbortedError
from kafkapy.clients.producer.transaction_state import TransactionState
from kafkapy.common.errors import (
    Errors,
    KafkaError,
    ProducerFencedError,
    RequestTimeoutError,
    SaslAuthenticationError,
    TopicAuthorizationError,
)
from kafkapy.common.protocol.coordinator_type import CoordinatorType
from kafkapy.common.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafkapy.common.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from kafkapy.common.protocol.messages.end_txn import EndTxnRequest
from kafkapy.common.protocol.messages.find_coordinator import FindCoordinatorRequest
from kafkapy.common.protocol.messages.init_producer_id import InitProducerIdRequest
from kafkapy.common.protocol.messages.produce import ProduceRequest
from kafkapy.common.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.helpers.mock_time import MockTime
from tests.unit.clients.producer.harness import (
    DELIVERY_TIMEOUT_MS,
    PRODUCER_ID,
    T0,
    T1,
    Harness,
    coordinator_response,
    end_response,
    init_response,
    is_abort,
    is_commit,
    offset_commit_response,
    offsets_response,
    partitions_response,
    produce_response,
)

_S = TransactionState
LEGAL = {
    (_S.READY, _S.UNINITIALIZED),
    (_S.ABORTABLE_ERROR, _S.UNINITIALIZED),
    (_S.UNINITIALIZED, _S.INITIALIZING),
    (_S.ABORTING_TRANSACTION, _S.INITIALIZING),
    (_S.INITIALIZING, _S.READY),
    (_S.COMMITTING_TRANSACTION, _S.READY),
    (_S.ABORTING_TRANSACTION, _S.READY),
    (_S.READY, _S.IN_TRANSACTION),
    (_S.IN_TRANSACTION, _S.PREPARED_TRANSACTION),
    (_S.PREPARED_TRANSACTION, _S.COMMITTING_TRANSACTION),
    (_S.PREPARED_TRANSACTION, _S.ABORTING_TRANSACTION),
    (_S.IN_TRANSACTION, _S.COMMITTING_TRANSACTION),
    (_S.IN_TRANSACTION, _S.ABORTING_TRANSACTION),
    (_S.ABORTABLE_ERROR, _S.ABORTING_TRANSACTION),
    (_S.IN_TRANSACTION, _S.ABORTABLE_ERROR),
    (_S.COMMITTING_TRANSACTION, _S.ABORTABLE_ERROR),
    (_S.ABORTABLE_ERROR, _S.ABORTABLE_ERROR),
    (_S.INITIALIZING, _S.ABORTABLE_ERROR),
} | {(source, _S.FATAL_ERROR) for source in _S}


@pytest.mark.parametrize(("source", "target"), list(itertools.product(_S, _S)))
def test_transitions_are_those_of_the_table(source: _S, target: _S) -> None:
    assert target.may_follow(source) == ((source, target) in LEGAL)


def test_client_that_its_coordinator_refuses_fails_for_good(time: MockTime) -> None:
    harness = Harness(time, transactional_id="txn")
    result = harness.txn.initialize_transactions()
    harness.client.prepare_response(coordinator_response())
    harness.run_until(lambda: harness.txn.coordinator(CoordinatorType.TRANSACTION))
    (node,) = harness.metadata.fetch().nodes
    harness.client.authentication_failed(node, SaslAuthenticationError("wrong password"), 1_000)

    harness.run()

    with pytest.raises(SaslAuthenticationError, match="wrong password"):
        result.wait(0)
    assert harness.txn.has_fatal_error


@pytest.fixture
def harness(time: MockTime) -> Harness:
    harness = Harness(time, transactional_id="txn")
    harness.init_transactions()
    return harness


def begin_and_send(harness: Harness, *, answered: bool = True):
    """A transaction with one record in T0."""
    harness.txn.begin_transaction()
    future = harness.append()
    harness.client.prepare_response(partitions_response())
    if answered:
        harness.client.prepare_response(produce_response())
        harness.run_until(lambda: future.is_done)
    else:
        harness.run_until(lambda: harness.sent(ProduceRequest))
    return future


def test_coordinator_is_found_before_the_producer_id_is_asked_for(harness: Harness) -> None:
    find, init = harness.client.requests

    assert isinstance(find, FindCoordinatorRequest) and find.coordinator_keys == ["txn"]
    assert isinstance(init, InitProducerIdRequest) and init.transactional_id == "txn"
    assert init.transaction_timeout_ms == 60_000
    assert harness.txn.producer_id_and_epoch == (PRODUCER_ID, 0)
    assert harness.txn.state is _S.READY


def test_partition_is_added_before_its_records_are_sent(harness: Harness) -> None:
    future = begin_and_send(harness)

    add, produce = harness.client.requests[2:]
    assert isinstance(add, AddPartitionsToTxnRequest)
    assert add.v3_and_below_topics[0].partitions == [0]
    assert isinstance(produce, ProduceRequest) and produce.transactional_id == "txn"
    ((_, batch),) = harness.produced()
    assert batch.is_transactional
    assert future.succeeded()


def test_commit_waits_for_the_records(harness: Harness) -> None:
    begin_and_send(harness, answered=False)
    result = harness.txn.begin_commit()
    harness.run(3)
    assert harness.sent(EndTxnRequest) == []

    harness.client.respond(produce_response())
    harness.client.prepare_response(end_response(), matcher=is_commit)
    harness.run_until(lambda: result.is_completed)

    result.wait(0)
    assert harness.txn.state is _S.READY


def test_commit_that_timed_out_is_to_be_called_again(harness: Harness) -> None:
    begin_and_send(harness)
    result = harness.txn.begin_commit()
    with pytest.raises(RequestTimeoutError, match="commit_transaction"):
        result.wait(0)

    assert harness.txn.begin_commit() is result
    for other in (harness.txn.begin_abort, harness.txn.begin_transaction):
        with pytest.raises(IllegalStateError, match="commit_transaction"):
            other()
    harness.client.prepare_response(end_response())
    harness.run_until(lambda: result.is_completed)
    harness.txn.begin_commit().wait(0)
    harness.txn.begin_transaction()


def test_abort_fails_records_that_were_not_sent(harness: Harness) -> None:
    harness.txn.begin_transaction()
    future = harness.append()
    result = harness.txn.begin_abort()

    harness.run_until(lambda: result.is_completed)

    assert isinstance(future.exception, TransactionAbortedError)
    assert harness.sent(AddPartitionsToTxnRequest) == []
    assert harness.sent(EndTxnRequest) == []  # the coordinator knows nothing of it
    assert harness.txn.state is _S.READY


def test_empty_transaction_ends_without_a_request(harness: Harness) -> None:
    for begin_end in (harness.txn.begin_commit, harness.txn.begin_abort):
        harness.txn.begin_transaction()
        result = begin_end()
        harness.run_until(lambda result=result: result.is_completed)
        result.wait(0)

    assert harness.sent(EndTxnRequest) == []


def test_failed_record_fails_the_commit_which_can_be_aborted(harness: Harness) -> None:
    future = begin_and_send(harness, answered=False)
    result = harness.txn.begin_commit()
    harness.client.respond(produce_response(Errors.MESSAGE_TOO_LARGE))
    harness.run_until(lambda: result.is_completed)
    assert future.failed()
    with pytest.raises(KafkaError):
        result.wait(0)
    assert harness.txn.state is _S.ABORTABLE_ERROR
    with pytest.raises(KafkaError, match="error state"):
        harness.txn.ensure_may_send()

    abort = harness.txn.begin_abort()
    harness.client.prepare_response(end_response(), matcher=is_abort)
    harness.run_until(lambda: abort.is_completed)

    assert harness.txn.state is _S.READY
    assert harness.txn.last_error is None


def test_error_within_the_transaction_makes_abort_bump_the_epoch(harness: Harness) -> None:
    begin_and_send(harness, answered=False)
    harness.client.respond(produce_response(Errors.MESSAGE_TOO_LARGE))
    harness.run_until(lambda: harness.txn.has_abortable_error)

    abort = harness.txn.begin_abort()
    harness.client.prepare_response(end_response(), matcher=is_abort)
    harness.client.prepare_response(init_response(epoch=1))
    harness.run_until(lambda: abort.is_completed)

    init = harness.sent(InitProducerIdRequest)[-1]
    assert (init.producer_id, init.producer_epoch) == (PRODUCER_ID, 0)
    assert harness.txn.producer_id_and_epoch == (PRODUCER_ID, 1)
    assert harness.txn.state is _S.READY
    abort.wait(0)
    begin_and_send(harness)
    assert harness.sequences()[-1] == (1, 0)


@pytest.mark.parametrize("error", [Errors.PRODUCER_FENCED, Errors.INVALID_PRODUCER_EPOCH])
@pytest.mark.parametrize("step", ["add", "end"])
def test_fenced_producer_is_finished(harness: Harness, error: Errors, step: str) -> None:
    if step == "add":
        harness.txn.begin_transaction()
        harness.append()
        harness.client.prepare_response(partitions_response(error))
        harness.run_until(lambda: harness.txn.has_fatal_error)
    else:
        begin_and_send(harness)
        result = harness.txn.begin_commit()
        harness.client.prepare_response(end_response(error))
        harness.run_until(lambda: result.is_completed)
        with pytest.raises(ProducerFencedError):
            result.wait(0)

    assert harness.txn.has_fatal_error
    for use in (harness.txn.begin_transaction, harness.txn.ensure_may_send):
        with pytest.raises(ProducerFencedError, match="txn"):
            use()


@pytest.mark.parametrize(
    "error", [Errors.NOT_COORDINATOR, Errors.COORDINATOR_NOT_AVAILABLE], ids=lambda e: e.name
)
def test_moved_coordinator_is_looked_for(harness: Harness, error: Errors) -> None:
    begin_and_send(harness)
    result = harness.txn.begin_commit()
    harness.client.prepare_response(end_response(error))
    harness.client.prepare_response(coordinator_response())
    harness.client.prepare_response(end_response())

    harness.run_until(lambda: result.is_completed)

    result.wait(0)
    assert len(harness.sent(FindCoordinatorRequest)) == 2


@pytest.mark.parametrize(
    "error",
    [Errors.CONCURRENT_TRANSACTIONS, Errors.COORDINATOR_LOAD_IN_PROGRESS],
    ids=lambda e: e.name,
)
def test_transient_error_is_tried_again_at_the_same_coordinator(
    harness: Harness, error: Errors
) -> None:
    harness.txn.begin_transaction()
    future = harness.append()
    harness.client.prepare_response(partitions_response(error))
    harness.client.prepare_response(partitions_response())
    harness.client.prepare_response(produce_response())

    harness.run_until(lambda: future.is_done)

    assert future.succeeded()
    assert len(harness.sent(FindCoordinatorRequest)) == 1


def test_lost_connection_to_the_coordinator_is_survived(harness: Harness) -> None:
    begin_and_send(harness)
    result = harness.txn.begin_commit()
    harness.client.prepare_response(None, disconnected=True)
    harness.client.prepare_response(coordinator_response())
    harness.client.prepare_response(end_response())

    harness.run_until(lambda: result.is_completed)

    result.wait(0)


def test_unauthorized_topic_can_be_aborted(harness: Harness) -> None:
    harness.txn.begin_transaction()
    future = harness.append()
    harness.client.prepare_response(partitions_response(Errors.TOPIC_AUTHORIZATION_FAILED))
    harness.run_until(lambda: future.is_done)
    assert isinstance(future.exception, TopicAuthorizationError)
    assert harness.txn.has_abortable_error

    abort = harness.txn.begin_abort()
    harness.run_until(lambda: abort.is_completed)

    assert harness.txn.state is _S.READY


def test_refused_transactional_id_may_be_tried_again(time: MockTime) -> None:
    harness = Harness(time, transactional_id="txn")
    result = harness.txn.initialize_transactions()
    harness.client.prepare_response(coordinator_response())
    harness.client.prepare_response(init_response(Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    harness.run_until(lambda: harness.txn.state is _S.UNINITIALIZED and result.is_completed)
    with pytest.raises(KafkaError):
        result.wait(0)

    again = harness.txn.initialize_transactions()
    harness.client.prepare_response(init_response())
    harness.run_until(lambda: again.is_completed)

    again.wait(0)
    assert harness.txn.state is _S.READY


def test_lost_producer_id_is_replaced_by_an_abort(harness: Harness) -> None:
    harness.txn.begin_transaction()
    harness.append()
    harness.client.prepare_response(partitions_response(Errors.INVALID_PRODUCER_ID_MAPPING))
    harness.run_until(lambda: harness.txn.has_abortable_error)

    abort = harness.txn.begin_abort()
    harness.client.prepare_response(init_response(producer_id=99, epoch=0))
    harness.run_until(lambda: abort.is_completed)

    assert harness.sent(EndTxnRequest) == []
    assert harness.txn.producer_id_and_epoch == (99, 0)


def test_offsets_go_to_the_coordinator_of_their_group(harness: Harness) -> None:
    harness.txn.begin_transaction()
    result = harness.txn.send_offsets_to_transaction(
        {T0: OffsetAndMetadata(5, "m", 2), T1: OffsetAndMetadata(6)},
        ConsumerGroupMetadata("group", 3, "member", "instance"),
    )
    harness.client.prepare_response(offsets_response())
    harness.client.prepare_response(coordinator_response())
    harness.client.prepare_response(offset_commit_response(Errors.NONE, T0, T1))

    harness.run_until(lambda: result.is_completed)

    result.wait(0)
    add, find, commit = harness.client.requests[2:]
    assert isinstance(add, AddOffsetsToTxnRequest) and add.group_id == "group"
    assert isinstance(find, FindCoordinatorRequest) and find.key_type == 0
    assert isinstance(commit, TxnOffsetCommitRequest)
    assert (commit.generation_id, commit.member_id, commit.group_instance_id) == (
        3,
        "member",
        "instance",
    )
    first, second = commit.topics[0].partitions
    assert (first.committed_offset, first.committed_metadata, first.committed_leader_epoch) == (
        5,
        "m",
        2,
    )
    assert second.committed_leader_epoch == -1
    end = harness.txn.begin_commit()
    harness.client.prepare_response(end_response(), matcher=is_commit)
    harness.run_until(lambda: end.is_completed)


def test_offsets_that_failed_transiently_are_committed_again_alone(harness: Harness) -> None:
    harness.txn.begin_transaction()
    result = harness.txn.send_offsets_to_transaction(
        {T0: OffsetAndMetadata(5), T1: OffsetAndMetadata(6)}, ConsumerGroupMetadata("group")
    )
    harness.client.prepare_response(offsets_response())
    harness.client.prepare_response(coordinator_response())
    mixed = offset_commit_response(Errors.NONE, T0)
    mixed.topics += offset_commit_response(Errors.COORDINATOR_LOAD_IN_PROGRESS, T1).topics
    harness.client.prepare_response(mixed)
    harness.client.prepare_response(offset_commit_response(Errors.NONE, T1))

    harness.run_until(lambda: result.is_completed)

    result.wait(0)
    again = harness.sent(TxnOffsetCommitRequest)[-1]
    assert [p.partition_index for p in again.topics[0].partitions] == [1]


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (Errors.ILLEGAL_GENERATION, CommitFailedError),
        (Errors.UNKNOWN_MEMBER_ID, CommitFailedError),
        (Errors.FENCED_INSTANCE_ID, KafkaError),
        (Errors.GROUP_AUTHORIZATION_FAILED, KafkaError),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_offsets_refused_by_the_group_can_be_aborted(
    harness: Harness, error: Errors, raised: type[KafkaError]
) -> None:
    harness.txn.begin_transaction()
    result = harness.txn.send_offsets_to_transaction(
        {T0: OffsetAndMetadata(5)}, ConsumerGroupMetadata("group")
    )
    harness.client.prepare_response(offsets_response())
    harness.client.prepare_response(coordinator_response())
    harness.client.prepare_response(offset_commit_response(error))

    harness.run_until(lambda: result.is_completed)

    with pytest.raises(raised):
        result.wait(0)
    assert harness.txn.has_abortable_error


def test_steps_out_of_order_are_refused_and_change_nothing(time: MockTime) -> None:
    harness = Harness(time, transactional_id="txn")
    for step in (harness.txn.begin_transaction, harness.txn.begin_commit, harness.txn.begin_abort):
        with pytest.raises(IllegalStateError, match="'txn'"):
            step()
        assert harness.txn.state is _S.UNINITIALIZED
    with pytest.raises(IllegalStateError, match="init_transactions"):
        harness.txn.ensure_may_send()
    harness.init_transactions()
    with pytest.raises(IllegalStateError, match="within a transaction"):
        harness.txn.ensure_may_send()
    with pytest.raises(IllegalStateError, match="within a transaction"):
        harness.txn.send_offsets_to_transaction({}, ConsumerGroupMetadata("g"))


def test_closing_aborts_the_open_transaction(harness: Harness) -> None:
    begin_and_send(harness)
    harness.client.prepare_response(end_response(), matcher=is_abort)
    harness.sender.initiate_close()

    harness.sender.run()

    assert harness.txn.state is _S.READY
    assert harness.client.is_closed


def test_closing_leaves_a_prepared_transaction_open(harness: Harness) -> None:
    begin_and_send(harness)

    prepared = harness.txn.prepare_transaction()
    harness.sender.initiate_close()
    harness.sender.run()

    assert prepared == ("txn", PRODUCER_ID, 0)
    assert harness.sent(EndTxnRequest) == []
    with pytest.raises(IllegalStateError, match="within a transaction"):
        harness.txn.ensure_may_send()


def test_transaction_without_records_cannot_be_prepared(harness: Harness) -> None:
    harness.txn.begin_transaction()

    with pytest.raises(IllegalStateError, match="no transaction with records"):
        harness.txn.prepare_transaction()

    assert harness.txn.state is _S.IN_TRANSACTION


def test_closing_by_force_ends_who_waits(harness: Harness) -> None:
    begin_and_send(harness)
    result = harness.txn.begin_commit()
    harness.sender.force_close()

    harness.sender.run()

    with pytest.raises(IllegalStateError, match="closed by force"):
        result.wait(0)


def test_record_whose_partition_cannot_be_added_fails_after_the_delivery_timeout(
    time: MockTime,
) -> None:
    harness = Harness(time, transactional_id="id")
    harness.init_transactions()
    harness.txn.begin_transaction()
    future = harness.append()

    for _ in range(3):
        harness.client.prepare_response(
            partitions_response(Errors.COORDINATOR_LOAD_IN_PROGRESS, T0)
        )
        harness.run()
        time.sleep(DELIVERY_TIMEOUT_MS // 2)

    assert isinstance(future.exception, RequestTimeoutError)
    assert harness.txn.has_abortable_error


def test_late_answer_for_an_expired_batch_leaves_the_next_transaction_alone(
    time: MockTime,
) -> None:
    harness = Harness(time, transactional_id="id")
    harness.init_transactions()
    harness.txn.begin_transaction()
    expired = harness.append()
    time.sleep(DELIVERY_TIMEOUT_MS - 1_000)
    harness.client.prepare_response(partitions_response())
    harness.run_until(lambda: harness.sent(ProduceRequest))
    late = harness.client.sent[-1]
    time.sleep(1_000)
    harness.run_until(lambda: expired.is_done)
    aborted = harness.txn.begin_abort()
    harness.client.prepare_response(end_response())
    harness.client.prepare_response(init_response(epoch=1))
    harness.run_until(lambda: aborted.is_completed)
    aborted.wait(0)
    harness.txn.begin_transaction()

    assert late in harness.client.sent
    time.sleep(5_000)  # it times out
    harness.run(2)

    assert late not in harness.client.sent
    assert harness.txn.state is TransactionState.IN_TRANSACTION
    assert harness.metrics.record_errors == 1
