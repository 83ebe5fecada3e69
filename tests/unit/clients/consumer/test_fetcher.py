"""What is fetched when, and what becomes of the answers."""

import pytest

from kafkapy.clients.consumer.consumer_errors import FetchOffsetOutOfRangeError
from kafkapy.clients.consumer.consumer_record import ConsumerRecord
from kafkapy.clients.consumer.fetch_config import FetchConfig
from kafkapy.clients.consumer.fetcher import Fetcher
from kafkapy.clients.consumer.offset_reset_strategy import OffsetResetStrategy
from kafkapy.common.errors import Errors, KafkaError, TopicAuthorizationError
from kafkapy.common.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.types import TopicPartition
from tests.helpers.records import end_txn_marker, records
from tests.unit.clients.consumer.parts import (
    NODE,
    OTHER_NODE,
    TOPIC_ID,
    TP0,
    TP1,
    Parts,
    metadata_response,
)

SESSION = 77


class Fetching:
    """A fetcher over a MockClient."""

    def __init__(self, parts: Parts, config: FetchConfig | None = None) -> None:
        self.parts = parts
        self.new_leaders: list[TopicPartition] = []
        self.fetcher = Fetcher(
            client=parts.client,
            metadata=parts.metadata,
            subscriptions=parts.subscriptions,
            config=config or FetchConfig(),
            metrics=parts.metrics,
            time=parts.time,
            on_new_leader=self.new_leaders.append,
        )

    def fetch(self, *answers: FetchResponse.PartitionData) -> None:
        """Send what there is to send, and answer it."""
        self.fetcher.send_fetches()
        self.parts.poll()
        self.answer(*answers)

    def answer(self, *answers: FetchResponse.PartitionData, session_id: int = SESSION) -> None:
        topic = FetchResponse.FetchableTopicResponse(topic_id=TOPIC_ID, partitions=list(answers))
        self.parts.mock.respond(
            FetchResponse(session_id=session_id, responses=[topic] if answers else [])
        )
        self.parts.poll()

    def collect(self, max_records: int | None = None) -> dict[TopicPartition, list[ConsumerRecord]]:
        return self.fetcher.collect_fetch(max_records).records

    def last_request(self) -> FetchRequest:
        request = self.parts.mock.requests[-1]
        assert isinstance(request, FetchRequest)
        return request

    def asked_for(self) -> dict[int, int]:
        """Partition and offset of the last request."""
        return {
            partition.partition: partition.fetch_offset
            for topic in self.last_request().topics
            for partition in topic.partitions
        }


@pytest.fixture
def parts() -> Parts:
    return Parts()


@pytest.fixture
def fetching(parts: Parts) -> Fetching:
    parts.assign(TP0, TP1)
    return Fetching(parts)


def data(
    partition: TopicPartition,
    batch: MemoryRecords | None = None,
    *,
    error: Errors = Errors.NONE,
    **more: int,
) -> FetchResponse.PartitionData:
    return FetchResponse.PartitionData(
        partition_index=partition.partition,
        error_code=error.code,
        high_watermark=100,
        log_start_offset=0,
        last_stable_offset=100,
        records=b"" if batch is None else batch.buffer,
        **more,
    )


def values(collected: dict[TopicPartition, list[ConsumerRecord]]) -> dict[int, list[bytes]]:
    return {tp.partition: [r.value for r in got] for tp, got in collected.items()}


def test_records_move_the_position(fetching: Fetching, parts: Parts) -> None:
    fetching.fetch(data(TP0, records("a", "b", leader_epoch=3)), data(TP1))

    assert values(fetching.collect()) == {0: [b"a", b"b"]}

    position = parts.subscriptions.position(TP0)
    assert position is not None and (position.offset, position.offset_epoch) == (2, 3)
    assert parts.subscriptions.partition_lag(TP0, read_committed=False) == 98


def test_a_node_gets_one_request_at_a_time(fetching: Fetching, parts: Parts) -> None:
    assert fetching.fetcher.send_fetches() == 1
    parts.poll()
    assert fetching.fetcher.send_fetches() == 0

    fetching.answer(data(TP0), data(TP1))
    fetching.collect()

    assert fetching.fetcher.send_fetches() == 1


def test_partitions_are_fetched_one_response_ahead(fetching: Fetching) -> None:
    fetching.fetch(data(TP1), data(TP0, records("a", "b", "c")))
    fetching.collect(2)

    fetching.fetch(data(TP0, records("d", "e", offset=3)))

    # Behind what is buffered; the other partition is where the session has it.
    assert fetching.asked_for() == {0: 3}
    assert fetching.last_request().forgotten_topics_data == []
    assert values(fetching.collect(2)) == {0: [b"c", b"d"]}
    assert values(fetching.collect()) == {0: [b"e"]}


def test_a_node_with_enough_buffered_is_left_alone(fetching: Fetching) -> None:
    fetching.fetch(data(TP1), data(TP0, records("a", "b", "c")))
    fetching.collect(1)
    fetching.fetch(data(TP0, records("d", offset=3)))

    assert fetching.fetcher.send_fetches() == 0
    fetching.collect(2)
    assert fetching.fetcher.send_fetches() == 0
    fetching.collect(1)

    assert fetching.fetcher.send_fetches() == 1


def test_what_is_paused_does_not_hold_its_node_up(fetching: Fetching, parts: Parts) -> None:
    fetching.fetch(data(TP1), data(TP0, records("a", "b", "c")))
    fetching.collect(1)
    fetching.fetch(data(TP0, records("d", offset=3)))
    assert fetching.fetcher.send_fetches() == 0

    parts.subscriptions.pause(TP0)

    assert fetching.fetcher.send_fetches() == 1


def test_a_response_fetched_ahead_of_a_seek_is_dropped(fetching: Fetching, parts: Parts) -> None:
    fetching.fetch(data(TP1), data(TP0, records("a", "b", "c")))
    fetching.collect(1)
    fetching.fetch(data(TP0, records("d", offset=3)))

    parts.seek(TP0, 1)

    assert values(fetching.collect()) == {0: [b"b", b"c", b"d"]}
    parts.seek(TP0, 0)
    assert fetching.collect() == {}
    fetching.fetch()
    assert fetching.asked_for()[0] == 0


def test_max_poll_records_is_shared_by_the_partitions(parts: Parts) -> None:
    parts.assign(TP0, TP1)
    fetching = Fetching(parts, FetchConfig(max_poll_records=3))
    fetching.fetch(data(TP0, records("a", "b")), data(TP1, records("c", "d")))

    assert values(fetching.collect()) == {0: [b"a", b"b"], 1: [b"c"]}
    assert values(fetching.collect()) == {1: [b"d"]}


def test_what_is_paused_is_kept_and_does_not_stop_the_others(
    fetching: Fetching, parts: Parts
) -> None:
    fetching.fetch(data(TP0, records("a", "b")), data(TP1, records("c")))
    fetching.collect(1)

    parts.subscriptions.pause(TP0)
    assert values(fetching.collect()) == {1: [b"c"]}
    assert fetching.collect() == {}
    parts.subscriptions.resume(TP0)

    assert values(fetching.collect()) == {0: [b"b"]}


def test_after_a_seek_what_was_fetched_before_is_dropped(fetching: Fetching, parts: Parts) -> None:
    fetching.fetch(data(TP0, records("a", "b", "c")), data(TP1))
    fetching.collect(1)

    parts.seek(TP0, 50)

    assert fetching.collect() == {}
    fetching.fetch()
    assert fetching.asked_for()[0] == 50


def test_what_is_no_longer_assigned_is_dropped(fetching: Fetching, parts: Parts) -> None:
    fetching.fetch(data(TP0, records("a")), data(TP1, records("b")))

    parts.subscriptions.assign_from_user([TP1])
    fetching.fetcher.clear_buffered_data_for_unassigned_partitions(frozenset({TP1}))

    assert values(fetching.collect()) == {1: [b"b"]}


def test_positions_move_past_markers_without_records(fetching: Fetching) -> None:
    fetching.fetch(data(TP0, end_txn_marker()), data(TP1))

    fetch = fetching.fetcher.collect_fetch()

    assert fetch.records == {} and fetch.position_advanced and not fetch.is_empty


@pytest.mark.parametrize(
    "error",
    [
        Errors.NOT_LEADER_OR_FOLLOWER,
        Errors.REPLICA_NOT_AVAILABLE,
        Errors.KAFKA_STORAGE_ERROR,
        Errors.FENCED_LEADER_EPOCH,
        Errors.OFFSET_NOT_AVAILABLE,
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
        Errors.UNKNOWN_TOPIC_ID,
        Errors.INCONSISTENT_TOPIC_ID,
    ],
)
def test_errors_of_leadership_ask_for_new_metadata(
    fetching: Fetching, parts: Parts, error: Errors
) -> None:
    assert not parts.metadata.update_requested
    fetching.fetch(data(TP0, error=error), data(TP1, records("b")))

    assert values(fetching.collect()) == {1: [b"b"]}

    assert parts.metadata.update_requested
    assert parts.subscriptions.has_valid_position(TP0)


@pytest.mark.parametrize("error", [Errors.UNKNOWN_LEADER_EPOCH, Errors.UNKNOWN_SERVER_ERROR])
def test_some_errors_are_only_tried_again(fetching: Fetching, parts: Parts, error: Errors) -> None:
    fetching.fetch(data(TP0, error=error), data(TP1))

    assert fetching.collect() == {}
    assert not parts.metadata.update_requested
    assert parts.subscriptions.is_fetchable(TP0)


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (Errors.TOPIC_AUTHORIZATION_FAILED, TopicAuthorizationError),
        (Errors.CORRUPT_MESSAGE, KafkaError),
        (Errors.INVALID_REQUEST, KafkaError),
    ],
)
def test_errors_the_application_must_see_are_raised_once(
    fetching: Fetching, error: Errors, raised: type[KafkaError]
) -> None:
    fetching.fetch(data(TP0, error=error), data(TP1, records("b")))

    with pytest.raises(raised, match="topic"):
        fetching.collect()
    assert values(fetching.collect()) == {1: [b"b"]}


def test_records_before_an_error_are_returned_first(fetching: Fetching) -> None:
    fetching.fetch(data(TP0, records("a")), data(TP1, error=Errors.TOPIC_AUTHORIZATION_FAILED))

    assert values(fetching.collect()) == {0: [b"a"]}
    with pytest.raises(TopicAuthorizationError):
        fetching.collect()


def test_an_offset_outside_the_log_resets(fetching: Fetching, parts: Parts) -> None:
    fetching.fetch(data(TP0, error=Errors.OFFSET_OUT_OF_RANGE), data(TP1))

    fetching.collect()

    assert parts.subscriptions.is_offset_reset_needed(TP0)


def test_an_offset_outside_the_log_raises_without_a_policy() -> None:
    parts = Parts(strategy=OffsetResetStrategy.NONE)
    parts.assign(TP0, offset=5)
    fetching = Fetching(parts)
    fetching.fetch(data(TP0, error=Errors.OFFSET_OUT_OF_RANGE))

    with pytest.raises(FetchOffsetOutOfRangeError) as raised:
        fetching.collect()
    assert raised.value.positions == {TP0: 5}


def test_an_error_for_an_old_position_is_ignored(fetching: Fetching, parts: Parts) -> None:
    fetching.fetch(data(TP0, error=Errors.OFFSET_OUT_OF_RANGE), data(TP1))
    parts.seek(TP0, 50)

    fetching.collect()

    assert not parts.subscriptions.is_offset_reset_needed(TP0)


def test_a_preferred_replica_is_fetched_from_until_it_fails(
    fetching: Fetching, parts: Parts
) -> None:
    fetching.fetch(data(TP0, preferred_read_replica=1), data(TP1))
    fetching.collect()

    fetching.fetcher.send_fetches()
    parts.poll()
    to_replica = [s for s in parts.mock.sent if s.request.destination == OTHER_NODE.id]
    assert len(to_replica) == 1

    # Behind the leader: the leader is asked before anything is reset.
    parts.mock.respond(
        FetchResponse(
            session_id=SESSION,
            responses=[
                FetchResponse.FetchableTopicResponse(
                    topic_id=TOPIC_ID, partitions=[data(TP0, error=Errors.OFFSET_OUT_OF_RANGE)]
                )
            ],
        ),
        node=OTHER_NODE,
    )
    parts.poll()
    fetching.collect()
    assert not parts.subscriptions.is_offset_reset_needed(TP0)
    assert parts.subscriptions.preferred_read_replica(TP0, parts.time.hi_res_clock_ms()) is None


def test_a_lost_connection_starts_the_session_over(fetching: Fetching, parts: Parts) -> None:
    fetching.fetch(data(TP0), data(TP1))
    fetching.collect()
    fetching.fetcher.send_fetches()
    parts.poll()

    parts.mock.respond(disconnected=True)
    parts.poll()
    fetching.fetcher.send_fetches()
    parts.poll()

    request = fetching.last_request()
    assert (request.session_id, request.session_epoch) == (SESSION, 0)
    assert fetching.asked_for() == {0: 0, 1: 0}


def test_a_leader_named_by_the_answer_is_used_at_once(fetching: Fetching, parts: Parts) -> None:
    leader = FetchResponse.LeaderIdAndEpoch(leader_id=1, leader_epoch=9)
    moved = data(TP0, error=Errors.NOT_LEADER_OR_FOLLOWER)
    moved.current_leader = leader

    fetching.fetch(moved, data(TP1))

    assert parts.metadata.current_leader(TP0).leader == OTHER_NODE
    assert parts.metadata.current_leader(TP0).epoch == 9
    assert fetching.new_leaders == [TP0]


def test_without_a_leader_metadata_is_asked_for(parts: Parts) -> None:
    parts.subscriptions.assign_from_user([TP0])
    parts.mock.update_metadata(metadata_response({}))
    parts.seek(TP0, 0)
    fetching = Fetching(parts)

    assert fetching.fetcher.send_fetches() == 0
    assert parts.metadata.update_requested


def test_a_node_that_cannot_be_reached_is_left_alone(fetching: Fetching, parts: Parts) -> None:
    parts.mock.back_off(NODE, 1_000)

    assert fetching.fetcher.send_fetches() == 0
    parts.time.sleep(1_000)
    assert fetching.fetcher.send_fetches() == 1


def test_closing_ends_the_sessions_at_the_brokers(fetching: Fetching, parts: Parts) -> None:
    fetching.fetch(data(TP0), data(TP1))
    parts.mock.prepare_response(FetchResponse())

    fetching.fetcher.close(parts.deadline())

    request = fetching.last_request()
    assert (request.session_id, request.session_epoch) == (SESSION, -1)
    assert request.topics == []


def test_settings_are_in_the_request(parts: Parts) -> None:
    parts.assign(TP0)
    config = FetchConfig(
        min_bytes=5,
        max_bytes=6,
        max_wait_ms=7,
        fetch_size=8,
        read_committed=True,
        client_rack_id="r",
    )
    fetching = Fetching(parts, config)
    fetching.fetch(data(TP0))

    request = fetching.last_request()

    assert (request.min_bytes, request.max_bytes, request.max_wait_ms) == (5, 6, 7)
    assert (request.isolation_level, request.rack_id) == (1, "r")
    assert request.topics[0].topic_id == TOPIC_ID
    assert request.topics[0].partitions[0].partition_max_bytes == 8
    assert request.topics[0].partitions[0].current_leader_epoch == 0
