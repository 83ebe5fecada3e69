"""Requests that wait for their node, are completed, fail, expire; wakeups."""

import pytest

from kafkapy.clients.client_errors import DisconnectError, WakeupError
from kafkapy.clients.client_request import ClientResponse, VersionedRequest
from kafkapy.clients.consumer.request_future import RequestFuture
from kafkapy.common.errors import (
    Errors,
    RequestTimeoutError,
    TopicAuthorizationError,
    UnsupportedVersionError,
)
from kafkapy.common.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tests.unit.clients.consumer.parts import NODE, REQUEST_TIMEOUT_MS, Parts, metadata_response


@pytest.fixture
def parts() -> Parts:
    parts = Parts()
    parts.update_metadata({})
    return parts


def send(parts: Parts) -> RequestFuture[ClientResponse]:
    return parts.client.send(NODE, VersionedRequest(HeartbeatRequest(group_id="g")))


def test_a_request_is_sent_and_completed_by_polling(parts: Parts) -> None:
    parts.mock.prepare_response(HeartbeatResponse())
    future = send(parts)
    assert not future.is_done
    assert parts.client.pending_request_count(NODE) == 1

    assert parts.client.poll_future(future, parts.deadline())

    assert isinstance(future.value.message, HeartbeatResponse)
    assert not parts.client.has_pending_requests()


def test_a_lost_connection_fails_the_request(parts: Parts) -> None:
    parts.mock.prepare_response(None, disconnected=True)
    future = send(parts)

    parts.client.poll_future(future, parts.deadline())

    assert isinstance(future.error, DisconnectError)
    assert future.is_retriable


def test_a_version_the_broker_does_not_have_fails_the_request(parts: Parts) -> None:
    parts.mock.prepare_response(None, version_mismatch=True)
    future = send(parts)

    parts.client.poll_future(future, parts.deadline())

    assert isinstance(future.error, UnsupportedVersionError)
    assert not future.is_retriable


def test_a_request_to_a_node_that_cannot_be_reached_fails_at_once(parts: Parts) -> None:
    parts.mock.back_off(NODE, 1_000)
    future = send(parts)

    parts.poll()

    assert isinstance(future.error, DisconnectError)
    assert parts.client.is_unavailable(NODE)


def test_a_request_that_is_never_sent_expires(parts: Parts) -> None:
    parts.mock.throttle(NODE, 10 * REQUEST_TIMEOUT_MS)
    future = send(parts)
    parts.poll()
    assert not future.is_done

    parts.time.sleep(REQUEST_TIMEOUT_MS + 1)
    parts.poll()

    assert isinstance(future.error, DisconnectError)


def test_disconnecting_fails_what_is_queued_and_what_is_in_flight(parts: Parts) -> None:
    in_flight = send(parts)
    parts.poll()
    parts.mock.throttle(NODE, 1_000)
    queued = send(parts)

    parts.client.disconnect_async(NODE)
    parts.poll()
    parts.poll()

    assert isinstance(in_flight.error, DisconnectError)
    assert isinstance(queued.error, DisconnectError)


def test_a_wakeup_raises_once_and_loses_no_answer(parts: Parts) -> None:
    future = send(parts)
    parts.poll()
    parts.mock.respond(HeartbeatResponse())
    parts.client.wakeup()

    with pytest.raises(WakeupError):
        parts.poll()
    parts.poll()

    assert future.succeeded


def test_the_heartbeat_thread_takes_no_wakeup(parts: Parts) -> None:
    parts.client.wakeup()

    parts.client.poll_no_wakeup()

    with pytest.raises(WakeupError):
        parts.poll()


def test_closing_is_not_woken_up(parts: Parts) -> None:
    parts.client.wakeup()
    parts.client.disable_wakeups()

    parts.poll()


def test_a_deadline_ends_the_wait_for_an_answer(parts: Parts) -> None:
    started_ms = parts.time.hi_res_clock_ms()
    future = send(parts)

    assert not parts.client.poll_future(future, parts.deadline(500))
    assert 500 <= parts.time.hi_res_clock_ms() - started_ms < 600


def test_errors_of_the_metadata_are_raised_by_polling(parts: Parts) -> None:
    parts.subscriptions.subscribe(["secret"], None)
    parts.update_metadata({}, errors={"secret": Errors.TOPIC_AUTHORIZATION_FAILED})

    with pytest.raises(TopicAuthorizationError, match="secret"):
        parts.poll()
    parts.poll()


def test_waiting_for_metadata_ends_with_an_update_or_the_deadline(parts: Parts) -> None:
    assert not parts.client.await_metadata_update(parts.deadline(50))
    parts.mock.prepare_metadata_update(metadata_response())
    assert parts.client.await_metadata_update(parts.deadline(50))
    assert parts.client.ensure_fresh_metadata(parts.deadline(0))


def test_a_time_out_names_the_brokers_that_are_not_reached(parts: Parts) -> None:
    error = parts.client.timeout_error("it was done", parts.deadline(70))

    assert isinstance(error, RequestTimeoutError)
    assert "Timeout of 70 ms" in str(error)
    assert "localhost:1969" in str(error)
