"""Resets, look-ups by time and validation, with their retries."""

import pytest

from kafkapy.clients.api_versions import NodeApiVersions
from kafkapy.clients.consumer.consumer_errors import LogTruncationError
from kafkapy.clients.consumer.offset_and_metadata import OffsetAndMetadata, OffsetAndTimestamp
from kafkapy.clients.consumer.offset_fetcher import OffsetFetcher
from kafkapy.clients.consumer.offset_reset_strategy import OffsetResetStrategy
from kafkapy.common.errors import Errors, RequestTimeoutError, TopicAuthorizationError
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.messages.list_offsets import (
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from kafkapy.common.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from tests.unit.clients.consumer.parts import (
    REQUEST_TIMEOUT_MS,
    RETRY_BACKOFF_MS,
    TOPIC,
    TP0,
    TP1,
    Parts,
    metadata_response,
)


def make(parts: Parts, *, read_committed: bool = False) -> OffsetFetcher:
    return OffsetFetcher(
        client=parts.client,
        metadata=parts.metadata,
        subscriptions=parts.subscriptions,
        time=parts.time,
        retry_backoff_ms=RETRY_BACKOFF_MS,
        request_timeout_ms=REQUEST_TIMEOUT_MS,
        read_committed=read_committed,
    )


def offsets(
    *found: tuple[int, int], timestamp: int = -1, error: Errors = Errors.NONE
) -> ListOffsetsResponse:
    """Of (partition, offset)."""
    return ListOffsetsResponse(
        topics=[
            ListOffsetsResponse.ListOffsetsTopicResponse(
                name=TOPIC,
                partitions=[
                    ListOffsetsResponse.ListOffsetsPartitionResponse(
                        partition_index=partition,
                        offset=offset,
                        timestamp=timestamp,
                        leader_epoch=3,
                        error_code=error.code,
                    )
                    for partition, offset in found
                ],
            )
        ]
    )


def epoch_end(epoch: int, end_offset: int, error: Errors = Errors.NONE) -> object:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(
                topic=TOPIC,
                partitions=[
                    OffsetForLeaderEpochResponse.EpochEndOffset(
                        partition=0,
                        leader_epoch=epoch,
                        end_offset=end_offset,
                        error_code=error.code,
                    )
                ],
            )
        ]
    )


@pytest.fixture
def parts() -> Parts:
    parts = Parts()
    parts.assign(TP0, TP1, offset=None)
    return parts


@pytest.mark.parametrize(
    ("strategy", "timestamp"),
    [(OffsetResetStrategy.EARLIEST, -2), (OffsetResetStrategy.LATEST, -1)],
)
def test_a_reset_asks_for_the_end_and_goes_there(
    parts: Parts, strategy: OffsetResetStrategy, timestamp: int
) -> None:
    parts.subscriptions.request_offset_reset(TP0, strategy)
    parts.mock.prepare_response(offsets((0, 5)))

    make(parts).reset_positions_if_needed()
    parts.poll()
    parts.poll()

    request = parts.mock.requests[-1]
    assert isinstance(request, ListOffsetsRequest)
    assert request.topics[0].partitions[0].timestamp == timestamp
    position = parts.subscriptions.valid_position(TP0)
    assert position is not None and position.offset == 5


def test_a_reset_under_way_is_not_asked_for_again(parts: Parts) -> None:
    parts.subscriptions.request_offset_reset(TP0)
    fetcher = make(parts)

    for _ in range(3):
        fetcher.reset_positions_if_needed()
        parts.poll()

    assert len(parts.mock.requests) == 1


def test_a_reset_is_tried_again_after_the_backoff(parts: Parts) -> None:
    parts.subscriptions.request_offset_reset(TP0)
    fetcher = make(parts)
    parts.mock.prepare_response(offsets((0, -1), error=Errors.NOT_LEADER_OR_FOLLOWER))
    fetcher.reset_positions_if_needed()
    parts.poll()
    parts.poll()
    assert parts.metadata.update_requested

    fetcher.reset_positions_if_needed()
    parts.poll()
    assert len(parts.mock.requests) == 1
    parts.time.sleep(RETRY_BACKOFF_MS)
    parts.mock.prepare_response(offsets((0, 5)))
    fetcher.reset_positions_if_needed()
    parts.poll()
    parts.poll()

    assert parts.subscriptions.has_valid_position(TP0)


def test_a_reset_that_is_forbidden_raises_with_the_next(parts: Parts) -> None:
    parts.subscriptions.request_offset_reset(TP0)
    fetcher = make(parts)
    parts.mock.prepare_response(offsets((0, -1), error=Errors.TOPIC_AUTHORIZATION_FAILED))
    fetcher.reset_positions_if_needed()
    parts.poll()
    parts.poll()

    with pytest.raises(TopicAuthorizationError, match=TOPIC):
        fetcher.reset_positions_if_needed()


def test_ends_of_logs_are_found(parts: Parts) -> None:
    parts.mock.prepare_response(offsets((0, 3), (1, 9)))

    assert make(parts).end_offsets([TP0, TP1], parts.deadline()) == {TP0: 3, TP1: 9}

    request = parts.mock.requests[-1]
    assert isinstance(request, ListOffsetsRequest)
    assert request.isolation_level == 0
    assert [p.current_leader_epoch for p in request.topics[0].partitions] == [0, 0]


def test_with_read_committed_ends_are_stable_ones(parts: Parts) -> None:
    parts.mock.prepare_response(offsets((0, 3)))

    make(parts, read_committed=True).end_offsets([TP0], parts.deadline())

    request = parts.mock.requests[-1]
    assert isinstance(request, ListOffsetsRequest) and request.isolation_level == 1


def test_a_time_after_the_last_record_has_no_offset(parts: Parts) -> None:
    parts.mock.prepare_response(offsets((0, 4), (1, -1), timestamp=77))

    found = make(parts).offsets_for_times({TP0: 70, TP1: 70}, parts.deadline())

    assert found == {TP0: OffsetAndTimestamp(4, 77, 3), TP1: None}


def test_partitions_that_fail_are_asked_for_again(parts: Parts) -> None:
    parts.mock.prepare_response(offsets((0, -1), error=Errors.LEADER_NOT_AVAILABLE))
    parts.mock.prepare_metadata_update(metadata_response())
    parts.mock.prepare_response(offsets((0, 8)))

    assert make(parts).beginning_offsets([TP0], parts.deadline()) == {TP0: 8}


def test_what_is_not_answered_in_time_is_named(parts: Parts) -> None:
    with pytest.raises(RequestTimeoutError, match="topic-0"):
        make(parts).end_offsets([TP0], parts.deadline(200))


def test_a_new_leader_is_asked_whether_the_log_still_has_the_position(parts: Parts) -> None:
    fetcher = make(parts)
    parts.seek(TP0, 10, epoch=0)
    parts.seek(TP1, 10, epoch=None)
    parts.update_metadata(leader=1, leader_epoch=1)

    fetcher.validate_positions_if_needed()
    parts.poll()
    assert not parts.subscriptions.is_fetchable(TP0)
    assert parts.subscriptions.is_fetchable(TP1)
    request = parts.mock.requests[-1]
    assert isinstance(request, OffsetForLeaderEpochRequest)
    (asked,) = request.topics[0].partitions
    assert (asked.partition, asked.leader_epoch, asked.current_leader_epoch) == (0, 0, 1)

    parts.mock.respond(epoch_end(0, 10))  # type: ignore[arg-type]
    parts.poll()
    assert parts.subscriptions.is_fetchable(TP0)


def test_a_truncated_log_moves_the_position_back(parts: Parts) -> None:
    fetcher = make(parts)
    parts.seek(TP0, 10, epoch=0)
    parts.update_metadata(leader=1, leader_epoch=1)
    parts.mock.prepare_response(epoch_end(0, 6))  # type: ignore[arg-type]

    fetcher.validate_positions_if_needed()
    parts.poll()
    parts.poll()

    position = parts.subscriptions.valid_position(TP0)
    assert position is not None and position.offset == 6


def test_a_truncated_log_raises_without_a_policy() -> None:
    parts = Parts(strategy=OffsetResetStrategy.NONE)
    parts.assign(TP0, offset=None)
    fetcher = make(parts)
    parts.seek(TP0, 10, epoch=0)
    parts.update_metadata(leader=1, leader_epoch=1)
    parts.mock.prepare_response(epoch_end(0, 6))  # type: ignore[arg-type]
    fetcher.validate_positions_if_needed()
    parts.poll()
    parts.poll()

    with pytest.raises(LogTruncationError, match="topic-0 at 10") as raised:
        fetcher.validate_positions_if_needed()
    assert raised.value.divergent_offsets == {TP0: OffsetAndMetadata(6, "", 0)}


def test_a_question_about_epochs_is_repeated_after_an_error(parts: Parts) -> None:
    fetcher = make(parts)
    parts.seek(TP0, 10, epoch=0)
    parts.update_metadata(leader=1, leader_epoch=1)
    parts.mock.prepare_response(epoch_end(-1, -1, Errors.FENCED_LEADER_EPOCH))  # type: ignore[arg-type]
    parts.mock.prepare_response(epoch_end(0, 10))  # type: ignore[arg-type]

    fetcher.validate_positions_if_needed()
    parts.poll()
    parts.poll()
    assert not parts.subscriptions.is_fetchable(TP0)
    parts.time.sleep(RETRY_BACKOFF_MS)
    fetcher.validate_positions_if_needed()
    parts.poll()
    parts.poll()

    assert parts.subscriptions.is_fetchable(TP0)


def test_brokers_without_the_question_are_trusted(parts: Parts) -> None:
    old = [(int(api), 0, 2) for api in ApiKeys]
    parts.mock.set_api_versions(NodeApiVersions(old))
    fetcher = make(parts)
    parts.seek(TP0, 10, epoch=0)
    parts.update_metadata(leader=1, leader_epoch=1)

    fetcher.validate_positions_if_needed()

    assert parts.subscriptions.is_fetchable(TP0)
    assert parts.mock.requests == []
