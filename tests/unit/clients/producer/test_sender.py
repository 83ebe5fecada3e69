"""A producer without idempotence: what is sent, tried again, failed."""

from __future__ import annotations

import threading

import pytest

from kafkapy.clients.client_errors import IllegalStateError
from kafkapy.common.errors import (
    Errors,
    InvalidRecordError,
    KafkaError,
    NetworkError,
    NotEnoughReplicasError,
    RecordTooLargeError,
    RequestTimeoutError,
    TopicAuthorizationError,
    UnsupportedVersionError,
)
from kafkapy.common.protocol.messages.produce import ProduceRequest, ProduceResponse
from kafkapy.metadata.broker import Node
from tests.helpers.mock_time import MockTime
from tests.unit.clients.metadata_responses import metadata_response, node
from tests.unit.clients.producer.harness import (
    DELIVERY_TIMEOUT_MS,
    REQUEST_TIMEOUT_MS,
    T0,
    T1,
    Harness,
    produce_response,
)

LARGE = b"x" * 200  # fills a batch


@pytest.fixture
def harness(time: MockTime) -> Harness:
    return Harness(time, idempotent=False)


def test_batch_is_sent_and_its_records_get_their_offsets(harness: Harness) -> None:
    future = harness.append(b"v")

    harness.run()

    assert harness.client.request_count == 1
    harness.client.respond(produce_response(offset=500))
    harness.run()
    assert future.get(0).offset == 500
    assert not harness.accumulator.has_incomplete
    assert harness.pool.available_bytes == harness.pool.total_bytes


def test_batches_of_several_partitions_share_a_request(harness: Harness) -> None:
    futures = [harness.append(b"v", T0), harness.append(b"v", T1)]

    harness.run()

    assert len(harness.sent(ProduceRequest)) == 1
    response = produce_response(offset=5, partition=T0)
    response.responses[0].partition_responses += (
        produce_response(offset=7, partition=T1).responses[0].partition_responses
    )
    harness.client.respond(response)
    harness.run()
    assert [future.get(0).offset for future in futures] == [5, 7]


def test_request_without_acks_ends_when_it_is_sent(time: MockTime) -> None:
    harness = Harness(time, idempotent=False, acks=0)
    harness.client.prepare_response(None)
    future = harness.append()

    harness.run()

    assert not harness.client.sent
    assert not future.get(0).has_offset


@pytest.mark.parametrize(
    "error", [Errors.NOT_LEADER_OR_FOLLOWER, Errors.NOT_ENOUGH_REPLICAS, Errors.REQUEST_TIMED_OUT]
)
def test_retriable_error_is_tried_again_after_its_backoff(harness: Harness, error: Errors) -> None:
    future = harness.append()
    harness.client.prepare_response(produce_response(error))
    harness.run()
    harness.run()
    assert harness.client.request_count == 0 and not future.is_done

    harness.time.sleep(60)
    harness.client.prepare_response(produce_response(offset=3))
    harness.run(2)

    assert future.get(0).offset == 3
    assert harness.metrics.record_retries == 1


def test_lost_connection_is_tried_again(harness: Harness) -> None:
    future = harness.append()
    harness.client.prepare_response(None, disconnected=True)
    harness.run()
    harness.time.sleep(60)

    harness.client.prepare_response(produce_response())
    harness.run(2)

    assert future.succeeded()


def test_retries_come_to_an_end(time: MockTime) -> None:
    harness = Harness(time, idempotent=False, retries=2)
    future = harness.append()
    for _ in range(3):
        harness.client.prepare_response(produce_response(Errors.NOT_ENOUGH_REPLICAS))
        harness.run()
        harness.time.sleep(60)

    with pytest.raises(NotEnoughReplicasError):
        future.get(0)
    assert len(harness.sent(ProduceRequest)) == 3
    assert harness.metrics.record_errors == 1


def test_error_that_stays_is_not_tried_again(harness: Harness) -> None:
    future = harness.append()
    harness.client.prepare_response(produce_response(Errors.TOPIC_AUTHORIZATION_FAILED))
    harness.run()

    with pytest.raises(TopicAuthorizationError, match="topic t"):
        future.get(0)
    assert harness.pool.available_bytes == harness.pool.total_bytes


def test_refused_records_are_told_from_those_beside_them(time: MockTime) -> None:
    harness = Harness(time, idempotent=False, batch_size=1000)
    futures = [harness.append() for _ in range(3)]
    harness.client.prepare_response(
        produce_response(
            Errors.INVALID_RECORD,
            error_message="the batch",
            record_errors=[
                ProduceResponse.BatchIndexAndErrorMessage(
                    batch_index=1, batch_index_error_message="no key"
                )
            ],
        )
    )

    harness.run()

    with pytest.raises(InvalidRecordError, match="no key"):
        futures[1].get(0)
    for index in (0, 2):
        with pytest.raises(KafkaError, match="another of its batch"):
            futures[index].get(0)


def test_error_of_metadata_asks_for_metadata(harness: Harness) -> None:
    harness.append()
    harness.client.prepare_response(produce_response(Errors.NOT_LEADER_OR_FOLLOWER))
    assert not harness.metadata.update_requested

    harness.run()

    assert harness.metadata.update_requested


def test_leader_named_in_the_response_is_asked_at_once(harness: Harness) -> None:
    future = harness.append()
    response = produce_response(
        Errors.NOT_LEADER_OR_FOLLOWER,
        current_leader=ProduceResponse.LeaderIdAndEpoch(leader_id=9, leader_epoch=1),
    )
    response.node_endpoints = [ProduceResponse.NodeEndpoint(node_id=9, host="127.0.0.1", port=9)]
    harness.client.prepare_response(response)
    harness.run()

    harness.client.prepare_response(produce_response(), node=Node(9, "127.0.0.1", 9))
    harness.run(2)

    assert future.succeeded()


def test_batch_expires_where_it_waits(harness: Harness) -> None:
    harness.client.set_unreachable(node(0), 10 * DELIVERY_TIMEOUT_MS)
    future = harness.append()
    harness.run()
    harness.time.sleep(DELIVERY_TIMEOUT_MS)

    harness.run()

    with pytest.raises(RequestTimeoutError, match=r"1 records for t-0 .* 30000 ms"):
        future.get(0)
    assert harness.pool.available_bytes == harness.pool.total_bytes


def test_batch_expires_in_flight_and_a_late_answer_is_ignored(harness: Harness) -> None:
    future = harness.append()
    # The request times out, is tried again, and again, until the delivery time-out.
    for _ in range(20):
        harness.run()
        harness.time.sleep(REQUEST_TIMEOUT_MS // 2)

    assert isinstance(future.exception, RequestTimeoutError)
    assert len(harness.sent(ProduceRequest)) > 2
    if harness.client.sent:
        harness.client.respond(produce_response())
    harness.run()
    assert isinstance(future.exception, RequestTimeoutError)
    assert harness.pool.available_bytes == harness.pool.total_bytes


def test_one_request_in_flight_keeps_the_order_by_muting(time: MockTime) -> None:
    harness = Harness(time, idempotent=False, guarantee_message_order=True)
    first, second = harness.append(LARGE), harness.append(LARGE + b"2")
    harness.run(3)
    assert len(harness.sent(ProduceRequest)) == 1

    harness.client.respond(produce_response(Errors.NOT_ENOUGH_REPLICAS))
    harness.run(2)
    assert len(harness.sent(ProduceRequest)) == 1  # the backoff
    harness.time.sleep(60)
    harness.run(2)
    harness.client.respond(produce_response(offset=0))
    harness.run(2)
    harness.client.respond(produce_response(offset=1))
    harness.run()

    assert (first.get(0).offset, second.get(0).offset) == (0, 1)
    values = [record.value for _, batch in harness.produced() for record in batch.records()]
    assert values == [LARGE, LARGE, LARGE + b"2"]


def test_batch_too_large_is_split(time: MockTime) -> None:
    harness = Harness(time, idempotent=False, batch_size=1000)
    futures = [harness.append(b"x" * 100) for _ in range(8)]
    harness.client.prepare_response(produce_response(Errors.MESSAGE_TOO_LARGE))
    harness.run()
    # Half the size at the second refusal, as it is of the batch size already.
    harness.client.prepare_response(produce_response(Errors.MESSAGE_TOO_LARGE))
    harness.run()
    harness.run(8)
    offset = 0
    for _, part in harness.produced()[2:]:
        harness.client.respond(produce_response(offset=offset))
        offset += part.count or 0
    harness.run()

    assert [future.get(0).offset for future in futures] == list(range(8))
    assert harness.metrics.batch_splits == 2
    assert harness.pool.available_bytes == harness.pool.total_bytes


def test_single_record_too_large_fails(harness: Harness) -> None:
    future = harness.append(LARGE)
    harness.client.prepare_response(produce_response(Errors.MESSAGE_TOO_LARGE))

    harness.run()

    with pytest.raises(RecordTooLargeError):
        future.get(0)


def test_broker_too_old_fails_the_batch(harness: Harness) -> None:
    future = harness.append()
    harness.client.prepare_response(None, version_mismatch=True)

    harness.run()

    with pytest.raises(UnsupportedVersionError):
        future.get(0)


def test_partition_without_a_leader_asks_for_metadata(harness: Harness) -> None:
    response = metadata_response({"t": 2})
    response.topics[0].partitions[0].leader_id = -1
    harness.client.update_metadata(response)
    future = harness.append()
    harness.client.prepare_metadata_update(metadata_response({"t": 2}, leader_epoch=1))

    harness.run()
    assert not harness.sent(ProduceRequest)
    harness.client.prepare_response(produce_response())
    harness.run(2)

    assert future.succeeded()


def test_network_error_is_named_when_there_are_no_retries(time: MockTime) -> None:
    harness = Harness(time, idempotent=False, retries=0)
    future = harness.append()
    harness.client.prepare_response(None, disconnected=True)

    harness.run()

    with pytest.raises(NetworkError, match="Node 0: disconnected"):
        future.get(0)


def test_closing_sends_what_there_is_and_ends(harness: Harness) -> None:
    future = harness.append()
    harness.client.prepare_response(produce_response())
    harness.sender.initiate_close()

    harness.sender.run()

    assert future.succeeded()
    assert harness.client.is_closed
    with pytest.raises(IllegalStateError):
        harness.append()


def test_closing_by_force_fails_what_there_is(harness: Harness) -> None:
    future = harness.append()
    harness.run()
    harness.sender.force_close()

    harness.sender.run()

    assert isinstance(future.exception, IllegalStateError)
    assert harness.client.is_closed
    assert harness.pool.available_bytes == harness.pool.total_bytes


def test_round_that_fails_does_not_end_the_thread(harness: Harness, caplog) -> None:
    future = harness.append()
    failures = iter([RuntimeError("unforeseen")])
    poll = harness.client.poll

    def failing_poll(timeout_ms: int, now_ms: int):
        for failure in failures:
            raise failure
        return poll(timeout_ms, now_ms)

    harness.client.poll = failing_poll
    harness.client.prepare_response(produce_response())
    thread = threading.Thread(target=harness.sender.run)
    thread.start()
    try:
        assert future.get(10).offset == 0
    finally:
        harness.sender.initiate_close()
        thread.join(10)

    assert not thread.is_alive()
    assert "unforeseen" in caplog.text
