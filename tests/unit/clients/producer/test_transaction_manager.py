"""Idempotence: sequences, epochs, what may be tried again and in which order."""

from __future__ import annotations

import itertools

import pytest

from kafkapy.clients.client_errors import IllegalStateError
from kafkapy.common.errors import (
    ClusterAuthorizationError,
    Errors,
    KafkaError,
    OutOfOrderSequenceError,
    RequestTimeoutError,
    TopicAuthorizationError,
)
from kafkapy.common.protocol.messages.init_producer_id import InitProducerIdRequest
from kafkapy.common.protocol.messages.produce import ProduceRequest
from tests.helpers.mock_time import MockTime
from tests.unit.clients.metadata_responses import node
from tests.unit.clients.producer.harness import (
    DELIVERY_TIMEOUT_MS,
    PRODUCER_ID,
    T0,
    T1,
    Harness,
    init_response,
    produce_response,
)

LARGE = b"x" * 200  # fills a batch


@pytest.fixture
def harness(time: MockTime) -> Harness:
    harness = Harness(time)
    harness.get_producer_id()
    return harness


def send(harness: Harness, count: int = 1) -> list:
    """That many batches of T0, all in flight."""
    futures = [harness.append(LARGE) for _ in range(count)]
    before = harness.client.request_count
    harness.run_until(lambda: harness.client.request_count == before + count)
    return futures


def test_producer_id_is_asked_for_before_the_first_batch(time: MockTime) -> None:
    harness = Harness(time)
    future = harness.append()
    harness.run(3)
    assert harness.sent(ProduceRequest) == []
    (request,) = harness.sent(InitProducerIdRequest)
    assert request.transactional_id is None

    harness.client.respond(init_response())
    harness.client.prepare_response(produce_response())
    harness.run_until(lambda: future.is_done)

    ((_, batch),) = harness.produced()
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (PRODUCER_ID, 0, 0)


def test_retriable_refusal_of_a_producer_id_is_tried_again(time: MockTime) -> None:
    harness = Harness(time)
    harness.client.prepare_response(None, disconnected=True)
    harness.client.prepare_response(init_response(Errors.COORDINATOR_LOAD_IN_PROGRESS))
    harness.client.prepare_response(init_response())

    harness.run_until(lambda: harness.txn.has_producer_id)


def test_sequences_count_records_by_partition(harness: Harness) -> None:
    for partition, values in ((T0, 2), (T1, 1), (T0, 1)):
        for _ in range(values):
            harness.append(b"v", partition)
        harness.client.prepare_response(produce_response(partition=partition))
        harness.run()

    assert [(tp, batch.base_sequence) for tp, batch in harness.produced()] == [
        (T0, 0),
        (T1, 0),
        (T0, 2),
    ]


def test_failed_batches_are_sent_again_one_by_one_in_their_order(harness: Harness) -> None:
    futures = send(harness, 3)

    harness.client.respond(produce_response(Errors.NOT_LEADER_OR_FOLLOWER))
    harness.client.respond(produce_response(Errors.OUT_OF_ORDER_SEQUENCE_NUMBER))
    harness.client.respond(produce_response(Errors.OUT_OF_ORDER_SEQUENCE_NUMBER))
    harness.run()
    harness.time.sleep(60)
    harness.run(3)

    # Only the first: whether the others may follow depends on it.
    assert harness.sequences()[3:] == [(0, 0)]
    for offset in range(3):
        harness.client.respond(produce_response(offset=offset))
        harness.run(2)
    assert harness.sequences()[3:] == [(0, 0), (0, 1), (0, 2)]
    assert [future.get(0).offset for future in futures] == [0, 1, 2]


def test_new_batches_wait_behind_those_tried_again(harness: Harness) -> None:
    send(harness, 1)
    harness.client.respond(produce_response(Errors.NOT_LEADER_OR_FOLLOWER))
    harness.run()
    harness.append(LARGE)
    harness.run(2)
    assert len(harness.produced()) == 1  # also the new one waits the backoff of the first

    harness.time.sleep(60)
    harness.run(2)

    assert harness.sequences() == [(0, 0), (0, 0), (0, 1)]


def test_batch_written_before_is_a_success(harness: Harness) -> None:
    (future,) = send(harness)

    harness.client.respond(produce_response(Errors.DUPLICATE_SEQUENCE_NUMBER))
    harness.run()

    assert not future.get(0).has_offset


def test_lost_answer_is_asked_for_with_the_same_sequence(harness: Harness) -> None:
    (future,) = send(harness)
    harness.client.disconnect(node(0).id)
    harness.run()
    harness.time.sleep(60)

    harness.client.prepare_response(produce_response())
    harness.run_until(lambda: future.is_done)

    assert harness.sequences() == [(0, 0), (0, 0)]


def test_gap_that_cannot_be_explained_bumps_the_epoch(harness: Harness) -> None:
    first, second = send(harness, 2)
    harness.client.respond(produce_response(Errors.OUT_OF_ORDER_SEQUENCE_NUMBER))
    harness.client.respond(produce_response(Errors.OUT_OF_ORDER_SEQUENCE_NUMBER))
    harness.run()
    harness.time.sleep(60)

    for offset in range(2):
        harness.client.prepare_response(produce_response(offset=offset))
    harness.run_until(lambda: second.is_done)

    assert harness.sequences()[2:] == [(1, 0), (1, 1)]
    assert (first.get(0).offset, second.get(0).offset) == (0, 1)
    assert harness.txn.producer_id_and_epoch == (PRODUCER_ID, 1)


def test_state_lost_by_deletion_starts_the_partition_over(harness: Harness) -> None:
    (first,) = send(harness)
    harness.client.respond(produce_response(offset=10))
    harness.run()
    assert first.succeeded()
    (second,) = send(harness)

    harness.client.respond(produce_response(Errors.UNKNOWN_PRODUCER_ID, log_start_offset=11))
    harness.run()
    harness.time.sleep(60)
    harness.client.prepare_response(produce_response(offset=11))
    harness.run_until(lambda: second.is_done)

    assert second.succeeded()
    assert harness.sequences() == [(0, 0), (0, 1), (1, 0)]


def test_lost_state_without_a_log_start_offset_fails_the_batch(harness: Harness) -> None:
    (future,) = send(harness)

    harness.client.respond(produce_response(Errors.UNKNOWN_PRODUCER_ID))
    harness.run()

    assert future.failed()


def test_batch_that_fails_for_good_leaves_no_gap(harness: Harness) -> None:
    first, second = send(harness, 2)
    harness.client.respond(produce_response(Errors.TOPIC_AUTHORIZATION_FAILED))
    harness.client.respond(produce_response(Errors.OUT_OF_ORDER_SEQUENCE_NUMBER))
    harness.run()
    harness.time.sleep(60)
    harness.client.prepare_response(produce_response())
    harness.run_until(lambda: second.is_done)

    assert isinstance(first.exception, TopicAuthorizationError)
    assert second.succeeded()
    assert harness.sequences()[2:] == [(1, 0)]


def test_new_epoch_does_not_overtake_batches_of_the_old(harness: Harness) -> None:
    harness.append(LARGE, T1)
    (first,) = send(harness)  # one request with both partitions, or two
    in_flight = harness.client.request_count
    harness.txn.handle_failed_batch(
        next(iter(harness.txn._partition_map.get_or_create(T0).in_flight)),
        OutOfOrderSequenceError("gap"),
        adjust_sequence_numbers=False,
    )
    harness.append(LARGE, T1)
    harness.run(3)

    # T1 has a batch of epoch 0 in flight: what comes after it waits, then starts at 0.
    assert harness.txn.producer_id_and_epoch.epoch == 1
    assert harness.client.request_count == in_flight
    assert not first.is_done


def test_expired_batch_that_was_sent_holds_up_its_partition_until_it_is_resolved(
    harness: Harness,
) -> None:
    (first,) = send(harness)
    harness.client.respond(produce_response(Errors.NOT_LEADER_OR_FOLLOWER))
    harness.run()  # it is tried again, and then the broker is gone
    harness.client.set_unreachable(node(0), DELIVERY_TIMEOUT_MS + 1_000)
    harness.time.sleep(DELIVERY_TIMEOUT_MS)
    harness.run()
    assert isinstance(first.exception, RequestTimeoutError)
    assert harness.txn.has_unresolved_sequence(T0)

    harness.time.sleep(2_000)
    second = harness.append(LARGE)
    harness.client.prepare_response(produce_response())
    harness.run_until(lambda: second.is_done)

    # Nobody knows whether the first was written: a new epoch starts over.
    assert harness.sequences()[-1] == (1, 0)
    assert not harness.txn.has_unresolved_sequence(T0)


def test_expired_batch_is_resolved_by_a_later_one_that_succeeds(harness: Harness) -> None:
    first = harness.append(LARGE)
    harness.run_until(lambda: harness.client.request_count == 1)
    batch = next(iter(harness.txn._partition_map.get_or_create(T0).in_flight))
    (second,) = send(harness)
    harness.txn.mark_sequence_unresolved(batch)
    harness.client.respond(produce_response(offset=0))
    harness.client.respond(produce_response(offset=1))

    harness.run(2)

    assert first.succeeded() and second.succeeded()
    assert not harness.txn.has_unresolved_sequence(T0)
    assert harness.txn.producer_id_and_epoch.epoch == 0


def test_exhausted_epochs_get_a_new_producer_id(time: MockTime) -> None:
    harness = Harness(time)
    harness.get_producer_id(epoch=32767)
    (future,) = send(harness)
    harness.client.respond(produce_response(Errors.OUT_OF_ORDER_SEQUENCE_NUMBER))
    harness.client.prepare_response(init_response(producer_id=777, epoch=0))
    harness.run(2)
    harness.time.sleep(60)
    harness.client.prepare_response(produce_response())

    harness.run_until(lambda: future.is_done)

    _, batch = harness.produced()[-1]
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (777, 0, 0)


def test_sequence_wraps_around(harness: Harness) -> None:
    (future,) = send(harness)
    harness.client.respond(produce_response())
    harness.run()
    assert future.succeeded()
    entry = harness.txn._partition_map.get_or_create(T0)
    entry.next_sequence = 2**31 - 1
    entry.last_acked_sequence = 2**31 - 2

    futures = send(harness, 2)
    for offset in range(2):
        harness.client.respond(produce_response(offset=offset))
    harness.run()

    assert [sequence for _, sequence in harness.sequences()[1:]] == [2**31 - 1, 0]
    assert all(future.succeeded() for future in futures)


def test_split_batch_keeps_its_place_in_the_sequence(time: MockTime) -> None:
    harness = Harness(time, batch_size=1000)
    harness.get_producer_id()
    futures = [harness.append(b"x" * 100) for _ in range(8)]
    for _ in range(2):
        harness.client.prepare_response(produce_response(Errors.MESSAGE_TOO_LARGE))
        harness.run()
    for _ in range(8):
        harness.run()
        if harness.client.sent:
            harness.client.respond(produce_response(offset=0))
    harness.run_until(lambda: futures[-1].is_done)

    parts = [batch for _, batch in harness.produced()[2:]]
    assert parts[0].base_sequence == 0
    for before, after in itertools.pairwise(parts):
        assert after.base_sequence == before.last_sequence + 1


def test_refused_cluster_right_fails_what_waits_and_later_sends_work_again(time: MockTime) -> None:
    harness = Harness(time)
    future = harness.append()
    harness.client.prepare_response(init_response(Errors.CLUSTER_AUTHORIZATION_FAILED))

    harness.run_until(lambda: future.is_done)

    assert isinstance(future.exception, ClusterAuthorizationError)
    harness.get_producer_id()
    after = harness.append()
    harness.client.prepare_response(produce_response())
    harness.run_until(lambda: after.is_done)
    assert after.succeeded()


def test_transactions_need_a_transactional_id(harness: Harness) -> None:
    for step in (
        harness.txn.initialize_transactions,
        harness.txn.begin_transaction,
        harness.txn.begin_commit,
        harness.txn.begin_abort,
    ):
        with pytest.raises(IllegalStateError, match=r"transactional\.id"):
            step()


def test_fatal_error_fails_everything_from_then_on(harness: Harness) -> None:
    (future,) = send(harness)

    harness.client.respond(produce_response(Errors.CLUSTER_AUTHORIZATION_FAILED))
    harness.run(2)

    assert future.failed()
    waiting = harness.append()
    harness.run()
    assert isinstance(waiting.exception, ClusterAuthorizationError)
    with pytest.raises(KafkaError, match="error state"):
        harness.txn.ensure_may_send()


def test_record_expires_while_the_producer_id_cannot_be_had(time: MockTime) -> None:
    harness = Harness(time)
    future = harness.append()

    for _ in range(3):
        harness.client.prepare_response(init_response(Errors.COORDINATOR_LOAD_IN_PROGRESS))
        harness.run()
        time.sleep(DELIVERY_TIMEOUT_MS // 2)

    assert isinstance(future.exception, RequestTimeoutError)
    assert not harness.accumulator.has_incomplete
