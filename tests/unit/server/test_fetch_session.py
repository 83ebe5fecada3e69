import random
from uuid import UUID, uuid4

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.protocol.messages.fetch import FetchResponse
from kafkapy.common.types import ZERO_UUID, TopicIdPartition, TopicPartition
from kafkapy.server.fetch_session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    INVALID_SESSION_ID,
    MIN_EVICTION_MS,
    FetchContext,
    FetchManager,
    FetchMetadata,
    FetchSessionCache,
    FullFetchContext,
    IncrementalFetchContext,
    SessionErrorContext,
    SessionlessFetchContext,
)
from kafkapy.storage.fetch_params import FetchPartitionData
from tests.helpers.mock_time import MockTime


def partition(name: str, index: int = 0, topic_id: UUID = ZERO_UUID) -> TopicIdPartition:
    return TopicIdPartition(topic_id, TopicPartition(name, index))


def wanted(offset: int = 0, topic_id: UUID = ZERO_UUID) -> FetchPartitionData:
    return FetchPartitionData(
        topic_id=topic_id, fetch_offset=offset, log_start_offset=-1, max_bytes=1000
    )


def result(
    index: int = 0, high_watermark: int = 10, **fields: object
) -> FetchResponse.PartitionData:
    return FetchResponse.PartitionData(
        partition_index=index, high_watermark=high_watermark, log_start_offset=0, **fields
    )


class Sessions:
    """A FetchManager with few slots and a clock."""

    def __init__(self, slots: int = 2) -> None:
        self.time = MockTime()
        self.cache = FetchSessionCache(slots, MetricsRegistry(), random.Random(1))
        self.manager = FetchManager(self.time, self.cache)

    def context(
        self,
        session_id: int,
        epoch: int,
        fetch_data: dict[TopicIdPartition, FetchPartitionData] | None = None,
        *,
        to_forget: list[TopicIdPartition] | None = None,
        is_follower: bool = False,
        topic_names: dict[UUID, str] | None = None,
    ) -> FetchContext:
        return self.manager.new_context(
            FetchMetadata(session_id, epoch),
            fetch_data or {},
            to_forget=to_forget or [],
            is_follower=is_follower,
            uses_topic_ids=topic_names is not None,
            topic_names=topic_names or {},
        )

    def open(self, *partitions: TopicIdPartition, is_follower: bool = False) -> int:
        context = self.context(
            0, INITIAL_EPOCH, {p: wanted() for p in partitions}, is_follower=is_follower
        )
        return context.response(
            [(p, result(p.topic_partition.partition)) for p in partitions]
        ).session_id


A, B = partition("a"), partition("b")


def test_a_request_without_a_session_gets_none() -> None:
    context = Sessions().context(INVALID_SESSION_ID, FINAL_EPOCH, {A: wanted()})

    response = context.response([(A, result())])

    assert isinstance(context, SessionlessFetchContext)
    assert response.session_id == INVALID_SESSION_ID
    assert [topic.topic for topic in response.responses] == ["a"]


def test_a_full_request_opens_a_session_and_is_answered_in_full() -> None:
    sessions = Sessions()
    context = sessions.context(0, INITIAL_EPOCH, {A: wanted(), B: wanted()})

    response = context.response([(A, result()), (B, result())])

    assert isinstance(context, FullFetchContext)
    assert response.session_id != INVALID_SESSION_ID
    assert [topic.topic for topic in response.responses] == ["a", "b"]


def test_a_session_is_as_old_as_its_first_answer() -> None:
    sessions = Sessions(slots=1)
    context = sessions.context(0, INITIAL_EPOCH, {A: wanted()})

    sessions.time.sleep(MIN_EVICTION_MS + 1)
    session_id = context.response([(A, result())]).session_id

    assert sessions.open(A, B) == INVALID_SESSION_ID
    assert isinstance(sessions.context(session_id, 1), IncrementalFetchContext)


def test_an_incremental_request_reads_all_partitions_of_the_session() -> None:
    sessions = Sessions()
    session_id = sessions.open(A, B)

    context = sessions.context(session_id, 1)

    assert isinstance(context, IncrementalFetchContext)
    assert [p for p, _ in context.partitions()] == [A, B]


def test_an_incremental_response_leaves_out_partitions_without_news() -> None:
    sessions = Sessions()
    session_id = sessions.open(A, B)
    context = sessions.context(session_id, 1)

    response = context.response([(A, result(high_watermark=10)), (B, result(high_watermark=11))])

    assert [topic.topic for topic in response.responses] == ["b"]


@pytest.mark.parametrize(
    "news",
    [
        {"records": b"x"},
        {"preferred_read_replica": 2},
        {"error_code": Errors.NOT_LEADER_OR_FOLLOWER.code},
        {"diverging_epoch": FetchResponse.EpochEndOffset(epoch=1, end_offset=5)},
    ],
)
def test_what_a_client_must_know_is_news(news: dict[str, object]) -> None:
    sessions = Sessions()
    context = sessions.context(sessions.open(A), 1)

    response = context.response([(A, result(**news))])

    assert len(response.responses) == 1


def test_a_partition_is_told_of_again_once_its_error_has_gone() -> None:
    sessions = Sessions()
    session_id = sessions.open(A)
    error = result(error_code=Errors.KAFKA_STORAGE_ERROR.code)
    sessions.context(session_id, 1).response([(A, error)])

    response = sessions.context(session_id, 2).response([(A, result())])

    assert len(response.responses) == 1


def test_a_busy_partition_is_read_last_the_next_time() -> None:
    sessions = Sessions()
    session_id = sessions.open(A, B)
    sessions.context(session_id, 1).response([(A, result(records=b"x")), (B, result())])

    context = sessions.context(session_id, 2)

    assert [p for p, _ in context.partitions()] == [B, A]


def test_partitions_can_be_added_changed_and_forgotten() -> None:
    sessions = Sessions()
    session_id = sessions.open(A, B)
    c = partition("c")

    context = sessions.context(session_id, 1, {A: wanted(7), c: wanted()}, to_forget=[B])

    assert [(p, data.fetch_offset) for p, data in context.partitions()] == [(A, 7), (c, 0)]


def test_a_session_that_forgot_everything_ends() -> None:
    sessions = Sessions()
    session_id = sessions.open(A)

    context = sessions.context(session_id, 1, to_forget=[A])

    assert isinstance(context, SessionlessFetchContext)
    assert sessions.cache.get(session_id) is None


@pytest.mark.parametrize(
    ("session_offset", "epoch", "error"),
    [
        (1, 1, Errors.FETCH_SESSION_ID_NOT_FOUND),
        (0, 2, Errors.INVALID_FETCH_SESSION_EPOCH),
        (0, 5, Errors.INVALID_FETCH_SESSION_EPOCH),
    ],
)
def test_a_wrong_session_or_epoch_is_an_error_and_changes_nothing(
    session_offset: int, epoch: int, error: Errors
) -> None:
    sessions = Sessions()
    session_id = sessions.open(A)

    context = sessions.context(session_id + session_offset, epoch, {B: wanted()})

    assert context.response([]).error_code == error.code
    assert list(context.partitions()) == []
    assert [p for p, _ in sessions.context(session_id, 1).partitions()] == [A]


def test_ids_and_names_do_not_mix_in_one_session() -> None:
    sessions = Sessions()
    session_id = sessions.open(A)

    context = sessions.context(session_id, 1, topic_names={})

    assert isinstance(context, SessionErrorContext)
    assert context.error is Errors.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_final_epoch_closes_the_session() -> None:
    sessions = Sessions()
    session_id = sessions.open(A)

    sessions.context(session_id, FINAL_EPOCH, {A: wanted()})

    assert sessions.cache.get(session_id) is None


def test_a_topic_id_is_resolved_as_soon_as_its_name_is_known() -> None:
    sessions = Sessions()
    topic_id = uuid4()
    unknown = partition("", 0, topic_id)
    opening = sessions.context(0, INITIAL_EPOCH, {unknown: wanted(0, topic_id)}, topic_names={})
    session_id = opening.response([(unknown, result())]).session_id

    context = sessions.context(session_id, 1, topic_names={topic_id: "late"})

    assert [p.topic_partition.topic for p, _ in context.partitions()] == ["late"]


def test_epochs_wrap_around_and_skip_the_initial_one() -> None:
    assert FetchMetadata.next_epoch(INITIAL_EPOCH) == 1
    assert FetchMetadata.next_epoch(0x7FFFFFFF) == 1
    assert FetchMetadata.next_epoch(FINAL_EPOCH) == FINAL_EPOCH


def test_a_full_cache_declines_a_new_session() -> None:
    sessions = Sessions(slots=1)
    first = sessions.open(A)

    assert sessions.open(A, B) == INVALID_SESSION_ID
    assert sessions.cache.get(first) is not None


def test_an_idle_session_makes_room() -> None:
    sessions = Sessions(slots=1)
    first = sessions.open(A, B)
    sessions.time.sleep(MIN_EVICTION_MS + 1)

    assert sessions.open(A) != INVALID_SESSION_ID
    assert sessions.cache.get(first) is None


def test_an_old_but_busy_session_makes_room_only_for_a_larger_one() -> None:
    sessions = Sessions(slots=1)
    first = sessions.open(A, B)
    sessions.time.sleep(MIN_EVICTION_MS + 1)
    sessions.context(first, 1)

    assert sessions.open(A) == INVALID_SESSION_ID
    assert sessions.open(A, B, partition("c")) != INVALID_SESSION_ID


def test_a_consumers_session_makes_room_for_a_follower_at_once() -> None:
    sessions = Sessions(slots=1)
    consumer = sessions.open(A, B)

    assert sessions.open(A, is_follower=True) != INVALID_SESSION_ID
    assert sessions.cache.get(consumer) is None
    assert sessions.open(A, B) == INVALID_SESSION_ID
