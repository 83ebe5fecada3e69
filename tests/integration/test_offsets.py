"""ListOffsets, OffsetForLeaderEpoch and DeleteRecords."""

from typing import Any

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.delete_records import DeleteRecordsRequest
from kafkapy.common.protocol.messages.list_offsets import ListOffsetsRequest
from kafkapy.common.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from kafkapy.common.record.record import SimpleRecord
from tests.helpers import api
from tests.helpers.broker import Client
from tests.helpers.records import TIMESTAMP, records
from tests.integration.conftest import MakeBroker

_MAX_TIMESTAMP = -3
_EARLIEST_LOCAL = -4
_LATEST_TIERED = -5
_HIGH_WATERMARK = -1
_NONE = (0, -1, -1)


@pytest.fixture
def timed_topic(client: Client) -> str:
    """Offsets 0 to 4, two batches; the latest timestamp is that of offset 2."""
    topic = api.create_topic(client)
    for times in ((0, 10, 50), (20, 30)):
        api.produced(
            client, topic, records(*(SimpleRecord(TIMESTAMP + t, None, b"v") for t in times))
        )
    return topic


def _found(answer: Any) -> tuple[int, int, int]:
    """Error, offset and timestamp relative to the first record's."""
    timestamp = answer.timestamp - TIMESTAMP if answer.timestamp > 0 else answer.timestamp
    return answer.error_code, answer.offset, timestamp


# ListOffsets


@pytest.mark.parametrize("version", range(1, 10))
def test_both_ends_of_the_log(client: Client, timed_topic: str, version: int) -> None:
    earliest = api.list_offset(client, timed_topic, api.EARLIEST, version=version)
    latest = api.list_offset(client, timed_topic, api.LATEST, version=version)

    assert _found(earliest) == (0, 0, -1)
    assert _found(latest) == (0, 5, -1)
    if version >= 4:
        assert (earliest.leader_epoch, latest.leader_epoch) == (0, 0)


@pytest.mark.parametrize("version", [1, 4, 7, 9])
@pytest.mark.parametrize(
    ("time", "expected"),
    [
        (-1000, (0, 0, 0)),
        (0, (0, 0, 0)),
        (1, (0, 1, 10)),
        (10, (0, 1, 10)),
        (11, (0, 2, 50)),
        (50, (0, 2, 50)),
        (51, _NONE),
        (10_000, _NONE),
    ],
)
def test_a_time_finds_the_first_record_that_is_not_older(
    client: Client, timed_topic: str, version: int, time: int, expected: tuple[int, int, int]
) -> None:
    answer = api.list_offset(client, timed_topic, TIMESTAMP + time, version=version)

    assert _found(answer) == expected


@pytest.mark.parametrize("version", [7, 8, 9])
def test_the_record_with_the_latest_timestamp(
    client: Client, timed_topic: str, version: int
) -> None:
    answer = api.list_offset(client, timed_topic, _MAX_TIMESTAMP, version=version)

    assert _found(answer) == (0, 2, 50)


@pytest.mark.parametrize("version", [8, 9])
def test_the_earliest_local_offset_is_the_start_without_tiered_storage(
    client: Client, timed_topic: str, version: int
) -> None:
    answer = api.list_offset(client, timed_topic, _EARLIEST_LOCAL, version=version)

    assert _found(answer) == (0, 0, -1)


def test_nothing_is_in_tiered_storage(client: Client, timed_topic: str) -> None:
    answer = api.list_offset(client, timed_topic, _LATEST_TIERED, version=9)

    assert _found(answer) == _NONE


@pytest.mark.parametrize("timestamp", [api.EARLIEST, api.LATEST])
def test_an_empty_log_begins_and_ends_at_zero(client: Client, topic: str, timestamp: int) -> None:
    assert api.list_offset(client, topic, timestamp).offset == 0


@pytest.mark.parametrize("timestamp", [_MAX_TIMESTAMP, TIMESTAMP])
def test_an_empty_log_has_no_record_at_any_time(client: Client, topic: str, timestamp: int) -> None:
    assert _found(api.list_offset(client, topic, timestamp)) == _NONE


@pytest.mark.parametrize("isolation_level", [0, 1])
def test_readers_of_committed_data_see_the_same_end_without_transactions(
    client: Client, timed_topic: str, isolation_level: int
) -> None:
    answer = api.list_offset(client, timed_topic, api.LATEST, isolation_level=isolation_level)

    assert answer.offset == 5


@pytest.mark.parametrize(
    ("timestamp", "expected"), [(api.LATEST, [5, 0]), (api.EARLIEST, [0]), (TIMESTAMP - 1, [])]
)
def test_version_0_lists_segment_offsets_from_the_end(
    client: Client, timed_topic: str, timestamp: int, expected: list[int]
) -> None:
    answer = api.list_offset(client, timed_topic, timestamp, version=0, max_num_offsets=10)

    assert (answer.error_code, answer.old_style_offsets) == (0, expected)


def test_version_0_lists_no_more_than_asked_for(client: Client, timed_topic: str) -> None:
    answer = api.list_offset(client, timed_topic, api.LATEST, version=0, max_num_offsets=1)

    assert answer.old_style_offsets == [5]


@pytest.mark.parametrize("version", [0, 1, 9])
@pytest.mark.parametrize(("name", "partition"), [("no-such-topic", 0), (None, 3)])
def test_an_unknown_partition_has_no_offsets(
    client: Client, topic: str, version: int, name: str | None, partition: int
) -> None:
    answer = api.list_offset(
        client, name or topic, api.LATEST, version=version, partition=partition
    )

    assert answer.error_code == Errors.UNKNOWN_TOPIC_OR_PARTITION.code


@pytest.mark.parametrize(("version", "timestamp"), [(0, -3), (6, -3), (8, -5), (9, -6)])
def test_a_timestamp_without_meaning_is_refused_before_its_topic_is_looked_for(
    client: Client, version: int, timestamp: int
) -> None:
    answer = api.list_offset(client, "no-such-topic", timestamp, version=version)

    assert answer.error_code == Errors.UNSUPPORTED_VERSION.code


@pytest.mark.parametrize("version", [4, 9])
@pytest.mark.parametrize(
    ("epoch", "error"),
    [(0, Errors.FENCED_LEADER_EPOCH), (1, Errors.NONE), (2, Errors.UNKNOWN_LEADER_EPOCH)],
)
def test_list_offsets_checks_the_leader_epoch(
    client: Client, topic: str, version: int, epoch: int, error: Errors
) -> None:
    api.bump_leader_epoch(client, topic, 1)

    answer = api.list_offset(client, topic, api.LATEST, version=version, current_leader_epoch=epoch)

    assert answer.error_code == error.code


def test_the_epoch_of_a_found_record_is_that_in_which_it_was_written(
    client: Client, timed_topic: str
) -> None:
    api.bump_leader_epoch(client, timed_topic, 4)

    by_time = api.list_offset(client, timed_topic, TIMESTAMP)
    latest = api.list_offset(client, timed_topic, api.LATEST)

    assert (by_time.leader_epoch, latest.leader_epoch) == (0, 4)


def test_a_partition_named_twice_is_refused(client: Client, topic: str) -> None:
    partition = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=api.LATEST)

    response = client.request(
        ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[partition, partition])
            ],
        )
    )

    errors = {p.error_code for answered in response.topics for p in answered.partitions}
    assert errors == {Errors.INVALID_REQUEST.code}


# OffsetForLeaderEpoch


def _epoch_end(
    client: Client, topic: str, epoch: int, *, current: int = -1, partition: int = 0
) -> tuple[int, int, int]:
    response = client.request(
        OffsetForLeaderEpochRequest(
            replica_id=-1,
            topics=[
                OffsetForLeaderEpochRequest.OffsetForLeaderTopic(
                    topic=topic,
                    partitions=[
                        OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
                            partition=partition, current_leader_epoch=current, leader_epoch=epoch
                        )
                    ],
                )
            ],
        )
    )
    (answer,) = response.topics[0].partitions
    return answer.error_code, answer.leader_epoch, answer.end_offset


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [(0, (0, 0, 2)), (1, (0, 0, 2)), (2, (0, 0, 2)), (3, (0, 3, 5)), (4, (0, -1, -1))],
)
def test_an_epoch_ends_where_the_next_begins(
    client: Client, topic: str, epoch: int, expected: tuple[int, int, int]
) -> None:
    api.produced(client, topic, records("a", "b"))
    api.bump_leader_epoch(client, topic, 3)
    api.produced(client, topic, records("c", "d", "e"))

    assert _epoch_end(client, topic, epoch) == expected


@pytest.mark.parametrize(
    ("current", "error"),
    [(0, Errors.FENCED_LEADER_EPOCH), (3, Errors.NONE), (9, Errors.UNKNOWN_LEADER_EPOCH)],
)
def test_offset_for_leader_epoch_checks_the_current_epoch(
    client: Client, topic: str, current: int, error: Errors
) -> None:
    api.bump_leader_epoch(client, topic, 3)

    assert _epoch_end(client, topic, 0, current=current)[0] == error.code


def test_an_unknown_partition_has_no_epochs(client: Client, topic: str) -> None:
    error, _, _ = _epoch_end(client, topic, 0, partition=5)

    assert error == Errors.UNKNOWN_TOPIC_OR_PARTITION.code


def test_epochs_are_kept_over_a_restart(make_broker: MakeBroker) -> None:
    broker = make_broker()
    with broker.client() as client:
        topic = api.create_topic(client)
        api.produced(client, topic, records("a", "b"))

    broker.restart()

    with broker.client() as client:
        assert _epoch_end(client, topic, 0) == (0, 0, 2)


# DeleteRecords


def _delete(client: Client, topic: str, offset: int, *, partition: int = 0) -> tuple[int, int]:
    """Error and low watermark."""
    response = client.request(
        DeleteRecordsRequest(
            topics=[
                DeleteRecordsRequest.DeleteRecordsTopic(
                    name=topic,
                    partitions=[
                        DeleteRecordsRequest.DeleteRecordsPartition(
                            partition_index=partition, offset=offset
                        )
                    ],
                )
            ],
            timeout_ms=10_000,
        )
    )
    (answer,) = response.topics[0].partitions
    return answer.error_code, answer.low_watermark


@pytest.mark.parametrize(
    ("offset", "low_watermark"), [(0, 0), (1, 1), (4, 4), (5, 5), (_HIGH_WATERMARK, 5)]
)
def test_records_below_the_offset_are_gone(
    client: Client, timed_topic: str, offset: int, low_watermark: int
) -> None:
    assert _delete(client, timed_topic, offset) == (0, low_watermark)

    assert api.list_offset(client, timed_topic, api.EARLIEST).offset == low_watermark
    assert api.fetch(client, timed_topic, low_watermark).log_start_offset == low_watermark
    if low_watermark > 0:
        gone = api.fetch(client, timed_topic, low_watermark - 1)
        assert gone.error_code == Errors.OFFSET_OUT_OF_RANGE.code


def test_produce_tells_the_new_log_start(client: Client, timed_topic: str) -> None:
    _delete(client, timed_topic, 3)

    assert api.produce(client, timed_topic, records("a")).log_start_offset == 3


def test_the_log_start_never_moves_back(client: Client, timed_topic: str) -> None:
    _delete(client, timed_topic, 3)

    assert _delete(client, timed_topic, 1) == (0, 3)


@pytest.mark.parametrize("offset", [6, -2])
def test_an_offset_beyond_the_high_watermark_is_refused(
    client: Client, timed_topic: str, offset: int
) -> None:
    assert _delete(client, timed_topic, offset) == (Errors.OFFSET_OUT_OF_RANGE.code, -1)


def test_a_compacted_topic_keeps_its_records(client: Client) -> None:
    topic = api.create_topic(client, configs={"cleanup.policy": "compact"})
    api.produced(client, topic, records("a", key="k"))

    assert _delete(client, topic, 1) == (Errors.POLICY_VIOLATION.code, -1)


def test_a_topic_that_is_compacted_and_deleted_from_loses_records(client: Client) -> None:
    topic = api.create_topic(client, configs={"cleanup.policy": "compact,delete"})
    api.produced(client, topic, records("a", key="k"))

    assert _delete(client, topic, 1) == (0, 1)


def test_records_of_an_unknown_partition_cannot_be_deleted(client: Client, topic: str) -> None:
    error, low_watermark = _delete(client, topic, 0, partition=9)

    assert (error, low_watermark) == (Errors.UNKNOWN_TOPIC_OR_PARTITION.code, -1)


def test_deleted_records_stay_deleted_over_a_restart(make_broker: MakeBroker) -> None:
    broker = make_broker()
    with broker.client() as client:
        topic = api.create_topic(client)
        api.produced(client, topic, records("a", "b", "c"))
        _delete(client, topic, 2)

    broker.restart()

    with broker.client() as client:
        assert api.list_offset(client, topic, api.EARLIEST).offset == 2
        assert api.list_offset(client, topic, api.LATEST).offset == 3
