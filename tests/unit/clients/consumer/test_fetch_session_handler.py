"""Fetch sessions: full, incremental, renewed after every kind of failure."""

from uuid import UUID

import pytest

from kafkapy.clients.consumer.fetch_session_handler import (
    FINAL_EPOCH,
    FetchMetadata,
    FetchSessionHandler,
    PartitionRequest,
)
from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.fetch import FetchResponse
from kafkapy.common.types import ZERO_UUID, TopicPartition

ID = UUID(int=5)
TP0, TP1, TP2 = (TopicPartition("t", n) for n in range(3))
SESSION = 123
VERSION = 17


def wanted(
    *partitions: TopicPartition, offset: int = 0, topic_id: UUID = ID
) -> dict[TopicPartition, PartitionRequest]:
    return {tp: PartitionRequest(topic_id, offset, 100, 1) for tp in partitions}


def response(
    *partitions: TopicPartition,
    session_id: int = SESSION,
    error: Errors = Errors.NONE,
    topic_id: UUID = ID,
    throttle_ms: int = 0,
) -> FetchResponse:
    topic = FetchResponse.FetchableTopicResponse(
        topic="t",
        topic_id=topic_id,
        partitions=[FetchResponse.PartitionData(partition_index=tp.partition) for tp in partitions],
    )
    return FetchResponse(
        session_id=session_id,
        error_code=error.code,
        responses=[topic] if partitions else [],
        throttle_time_ms=throttle_ms,
    )


@pytest.fixture
def handler() -> FetchSessionHandler:
    """With a session of two partitions."""
    handler = FetchSessionHandler(0)
    assert handler.build(wanted(TP0, TP1)).metadata == FetchMetadata(0, 0)
    assert handler.handle_response(response(TP0, TP1), VERSION)
    return handler


def test_a_session_starts_with_everything_and_goes_on_with_what_changes(
    handler: FetchSessionHandler,
) -> None:
    data = handler.build({**wanted(TP0), **wanted(TP1, offset=7)})

    assert data.metadata == FetchMetadata(SESSION, 1)
    assert data.to_send == wanted(TP1, offset=7)
    assert data.to_forget == {}
    assert data.session_partitions == {**wanted(TP0), **wanted(TP1, offset=7)}
    assert handler.handle_response(response(TP1), VERSION)
    assert handler.build(wanted(TP0, TP1)).metadata == FetchMetadata(SESSION, 2)


def test_partitions_come_and_go(handler: FetchSessionHandler) -> None:
    data = handler.build(wanted(TP1, TP2))

    assert data.to_send == wanted(TP2)
    assert data.to_forget == {TP0: ID}


def test_a_topic_made_anew_is_forgotten_and_asked_for(handler: FetchSessionHandler) -> None:
    new = UUID(int=6)

    data = handler.build({**wanted(TP0), **wanted(TP1, topic_id=new)})

    assert data.to_send == wanted(TP1, topic_id=new)
    assert data.to_forget == {TP1: ID}


def test_names_after_ids_start_another_session(handler: FetchSessionHandler) -> None:
    data = handler.build({**wanted(TP0), **wanted(TP1, topic_id=ZERO_UUID)})

    assert data.metadata == FetchMetadata(SESSION, 0)
    assert not data.can_use_topic_ids
    assert data.to_send.keys() == {TP0, TP1}


def test_a_broker_may_do_without_sessions() -> None:
    handler = FetchSessionHandler(0)
    handler.build(wanted(TP0))

    assert handler.handle_response(response(TP0, session_id=0), VERSION)
    assert handler.build(wanted(TP0)).metadata == FetchMetadata(0, 0)
    assert handler.close_request() is None


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Errors.FETCH_SESSION_ID_NOT_FOUND, FetchMetadata(0, 0)),
        (Errors.INVALID_FETCH_SESSION_EPOCH, FetchMetadata(SESSION, 0)),
        (Errors.FETCH_SESSION_TOPIC_ID_ERROR, FetchMetadata(SESSION, 0)),
    ],
)
def test_an_error_of_the_session_starts_over(
    handler: FetchSessionHandler, error: Errors, expected: FetchMetadata
) -> None:
    handler.build(wanted(TP0, TP1))

    assert not handler.handle_response(response(error=error), VERSION)

    data = handler.build(wanted(TP0, TP1))
    assert data.metadata == expected
    assert data.to_send == wanted(TP0, TP1)


def test_a_lost_connection_starts_over(handler: FetchSessionHandler) -> None:
    handler.build(wanted(TP0, TP1))
    handler.handle_error()

    assert handler.build(wanted(TP0, TP1)).metadata == FetchMetadata(SESSION, 0)


@pytest.mark.parametrize("partitions", [(TP2,), (TP0, TP1, TP2)])
def test_an_answer_about_something_else_is_no_answer(
    handler: FetchSessionHandler, partitions: tuple[TopicPartition, ...]
) -> None:
    handler.build(wanted(TP0, TP1))

    assert not handler.handle_response(response(*partitions), VERSION)
    assert handler.build(wanted(TP0, TP1)).metadata.is_full


def test_a_full_answer_must_be_complete() -> None:
    handler = FetchSessionHandler(0)
    handler.build(wanted(TP0, TP1))

    assert not handler.handle_response(response(TP0), VERSION)
    assert handler.build(wanted(TP0, TP1)).metadata == FetchMetadata(0, 0)


def test_an_unknown_topic_id_is_no_answer(handler: FetchSessionHandler) -> None:
    handler.build(wanted(TP0, TP1))

    assert not handler.handle_response(response(TP0, topic_id=UUID(int=9)), VERSION)
    assert handler.handle_response(response(TP0, TP1, topic_id=UUID(int=9)), 12)


def test_a_throttled_answer_is_empty() -> None:
    handler = FetchSessionHandler(0)
    handler.build(wanted(TP0))

    assert not handler.handle_response(response(throttle_ms=100), VERSION)


def test_the_epoch_wraps_to_one() -> None:
    assert FetchMetadata(1, 2**31 - 1).next_incremental() == FetchMetadata(1, 1)


def test_closing_ends_the_session(handler: FetchSessionHandler) -> None:
    closing = handler.close_request()

    assert closing is not None
    assert closing.metadata == FetchMetadata(SESSION, FINAL_EPOCH)
    assert closing.to_send == {}
