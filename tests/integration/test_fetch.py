"""Fetch: when it is answered, how much it returns and what it refuses."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.common.types import ZERO_UUID, random_topic_id
from tests.helpers import api
from tests.helpers.broker import BROKER_ID, Broker, Client
from tests.helpers.records import records

# A fetch that should not wait is given this long; no test waits for it to pass.
_LONG_MS = 15_000
_SHORT_MS = 150


@contextmanager
def _measured() -> Iterator[list[float]]:
    """The milliseconds that the block took."""
    elapsed: list[float] = []
    start = time.perf_counter()
    yield elapsed
    elapsed.append((time.perf_counter() - start) * 1000)


def _partitions(response: FetchResponse) -> dict[int, FetchResponse.PartitionData]:
    return {p.partition_index: p for topic in response.responses for p in topic.partitions}


def _size(data: FetchResponse.PartitionData) -> int:
    return len(data.records or b"")


# When it is answered


def test_a_fetch_that_does_not_wait_is_answered_at_once_with_nothing(
    client: Client, topic: str
) -> None:
    data = api.fetch(client, topic, max_wait_ms=0, min_bytes=1)

    assert (data.error_code, data.high_watermark, _size(data)) == (0, 0, 0)


def test_a_fetch_of_nothing_is_answered_at_once(client: Client) -> None:
    with _measured() as elapsed:
        response = client.request(api.fetch_request(max_wait_ms=_LONG_MS, min_bytes=1))

    assert (response.error_code, response.responses) == (0, [])
    assert elapsed[0] < _LONG_MS / 2


def test_a_fetch_with_enough_bytes_is_answered_at_once(client: Client, topic: str) -> None:
    api.produced(client, topic, records("a" * 100))

    with _measured() as elapsed:
        data = api.fetch(client, topic, max_wait_ms=_LONG_MS, min_bytes=100)

    assert api.fetched_values(data) == [b"a" * 100]
    assert elapsed[0] < _LONG_MS / 2


@pytest.mark.parametrize("partition", [0, 1], ids=["out-of-range", "unknown-partition"])
def test_a_fetch_that_meets_an_error_is_answered_at_once(
    client: Client, topic: str, partition: int
) -> None:
    with _measured() as elapsed:
        data = api.fetch(client, topic, 5, partition=partition, max_wait_ms=_LONG_MS)

    assert data.error_code != 0
    assert elapsed[0] < _LONG_MS / 2


def test_a_fetch_waits_for_its_minimum_until_its_time_is_up(client: Client, topic: str) -> None:
    api.produced(client, topic, records("a"))

    with _measured() as elapsed:
        data = api.fetch(client, topic, max_wait_ms=_SHORT_MS, min_bytes=10_000)

    assert api.fetched_values(data) == [b"a"]
    assert elapsed[0] >= _SHORT_MS - 5


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_an_append_ends_the_wait(broker: Broker, client: Client, topic: str, acks: int) -> None:
    with broker.client() as consumer, _measured() as elapsed:
        consumer.send(api.fetch_request(api.fetch_topic(topic, {0: 0}), max_wait_ms=_LONG_MS), 12)
        assert not consumer.has_response(0.05)

        client.send(api.produce_request(topic, records("a"), acks=acks), expects_response=acks != 0)

        data = _partitions(consumer.receive())[0]
    assert api.fetched_values(data) == [b"a"]
    assert elapsed[0] < _LONG_MS / 2


def test_the_wait_goes_on_until_appends_add_up_to_the_minimum(
    broker: Broker, client: Client, topic: str
) -> None:
    with broker.client() as consumer, _measured() as elapsed:
        consumer.send(
            api.fetch_request(api.fetch_topic(topic, {0: 0}), max_wait_ms=_LONG_MS, min_bytes=1000),
            12,
        )
        api.produced(client, topic, records("a" * 400))
        assert not consumer.has_response(0.05)

        api.produced(client, topic, records("b" * 600))

        data = _partitions(consumer.receive())[0]
    assert len(api.fetched_values(data)) == 2
    assert elapsed[0] < _LONG_MS / 2


def test_the_minimum_counts_over_all_partitions(broker: Broker, client: Client) -> None:
    topic = api.create_topic(client, partitions=3)
    with broker.client() as consumer, _measured() as elapsed:
        consumer.send(
            api.fetch_request(
                api.fetch_topic(topic, {0: 0, 1: 0, 2: 0}), max_wait_ms=_LONG_MS, min_bytes=1000
            ),
            12,
        )
        for partition in range(3):
            api.produced(client, topic, records("a" * 400), partition=partition)

        assert all(_size(data) for data in _partitions(consumer.receive()).values())
    assert elapsed[0] < _LONG_MS / 2


def test_deleting_the_topic_ends_the_wait(broker: Broker, client: Client, topic: str) -> None:
    with broker.client() as consumer, _measured() as elapsed:
        consumer.send(api.fetch_request(api.fetch_topic(topic, {0: 0}), max_wait_ms=_LONG_MS), 12)
        assert not consumer.has_response(0.05)

        api.delete_topic(client, topic)

        error = _partitions(consumer.receive())[0].error_code
    assert error in (Errors.UNKNOWN_TOPIC_OR_PARTITION.code, Errors.NOT_LEADER_OR_FOLLOWER.code)
    assert elapsed[0] < _LONG_MS / 2


def test_many_waiting_fetches_are_all_woken_by_one_append(
    broker: Broker, client: Client, topic: str
) -> None:
    consumers = [broker.client() for _ in range(20)]
    try:
        for consumer in consumers:
            consumer.send(
                api.fetch_request(api.fetch_topic(topic, {0: 0}), max_wait_ms=_LONG_MS), 12
            )

        api.produced(client, topic, records("a"))

        for consumer in consumers:
            assert api.fetched_values(_partitions(consumer.receive())[0]) == [b"a"]
    finally:
        for consumer in consumers:
            consumer.close()


def test_readers_beside_a_writer_see_every_record_once_and_in_order(
    broker: Broker, client: Client, topic: str
) -> None:
    count = 300
    seen: list[bytes | None] = []

    def read() -> None:
        with broker.client() as consumer:
            while len(seen) < count:
                data = api.fetch(consumer, topic, len(seen), max_wait_ms=2000)
                offsets = [r.offset for r in api.fetched_records(data)]
                fresh = [r for r in api.fetched_records(data) if r.offset >= len(seen)]
                assert offsets == sorted(offsets)
                seen.extend(r.value for r in fresh)

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(count):
        api.produced(client, topic, records(f"{number}"))
    reader.join(timeout=30)

    assert seen == [b"%d" % number for number in range(count)]


# How much it returns


@pytest.mark.parametrize("version", [3, 4, 12, 17])
def test_one_whole_batch_is_returned_even_if_larger_than_any_limit(
    client: Client, topic: str, version: int
) -> None:
    api.produced(client, topic, records("a" * 1000))
    api.produced(client, topic, records("b" * 1000))

    data = api.fetch(client, topic, version=version, max_bytes=10)

    assert api.fetched_values(data) == [b"a" * 1000]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_partition_limit_is_hard_below_version_3(
    client: Client, topic: str, version: int
) -> None:
    api.produced(client, topic, records("a" * 1000))

    data = api.fetch(client, topic, version=version, max_bytes=100)

    assert data.error_code == 0
    assert _size(data) <= 100
    assert api.fetched_values(data) == []


def test_the_request_limit_stops_after_the_partition_that_reaches_it(client: Client) -> None:
    topic = api.create_topic(client, partitions=3)
    for partition in range(3):
        api.produced(client, topic, records("a" * 1000), partition=partition)

    response = client.request(
        api.fetch_request(api.fetch_topic(topic, {0: 0, 1: 0, 2: 0}), max_bytes=1500), 12
    )

    sizes = [_size(data) for data in _partitions(response).values()]
    assert sizes[0] > 1000
    assert sum(sizes) <= 1500
    assert len(_partitions(response)) == 3


def test_the_first_partition_with_data_returns_a_whole_batch_whatever_the_limit(
    client: Client,
) -> None:
    topic = api.create_topic(client, partitions=3)
    for partition in (1, 2):
        api.produced(client, topic, records("a" * 1000), partition=partition)

    response = client.request(
        api.fetch_request(api.fetch_topic(topic, {0: 0, 1: 0, 2: 0}), max_bytes=1), 12
    )

    assert [bool(_size(data)) for data in _partitions(response).values()] == [False, True, False]


def test_a_fetch_from_the_middle_of_a_batch_returns_that_batch(client: Client, topic: str) -> None:
    api.produced(client, topic, records("a", "b", "c"))
    api.produced(client, topic, records("d"))

    batches = api.fetched_batches(api.fetch(client, topic, 1))

    assert [batch.base_offset for batch in batches] == [0, 3]


def test_a_fetch_at_the_end_returns_nothing_and_no_error(client: Client, topic: str) -> None:
    api.produced(client, topic, records("a", "b"))

    data = api.fetch(client, topic, 2)

    assert (data.error_code, data.high_watermark, _size(data)) == (0, 2, 0)


@pytest.mark.parametrize("isolation_level", [0, 1])
def test_offsets_of_the_log_come_with_the_records(
    client: Client, topic: str, isolation_level: int
) -> None:
    api.produced(client, topic, records("a", "b"))

    data = api.fetch(client, topic, isolation_level=isolation_level)

    assert (data.high_watermark, data.last_stable_offset, data.log_start_offset) == (2, 2, 0)
    assert data.aborted_transactions in (([], None) if isolation_level == 0 else ([],))
    assert data.preferred_read_replica == -1


# What it refuses


@pytest.mark.parametrize("offset", [-1, 3, 1 << 40])
@pytest.mark.parametrize("version", [0, 4, 12, 17])
def test_an_offset_outside_the_log_is_refused(
    client: Client, topic: str, offset: int, version: int
) -> None:
    api.produced(client, topic, records("a", "b"))

    data = api.fetch(client, topic, offset, version=version)

    assert data.error_code == Errors.OFFSET_OUT_OF_RANGE.code
    assert data.high_watermark == -1
    assert _size(data) == 0


def test_an_unknown_topic_is_refused_by_name(client: Client) -> None:
    data = api.fetch(client, "no-such-topic")

    assert data.error_code == Errors.UNKNOWN_TOPIC_OR_PARTITION.code


@pytest.mark.parametrize("version", [4, 12, 17])
def test_only_a_failed_read_tells_no_aborted_transactions_at_all(
    client: Client, topic: str, version: int
) -> None:
    id = api.topic_id(client, topic) if version >= 13 else ZERO_UUID

    response = client.request(
        api.fetch_request(api.fetch_topic(topic, {0: 99, 7: 0}, id=id)), version
    )

    answers = _partitions(response)
    assert answers[0].error_code == Errors.OFFSET_OUT_OF_RANGE.code
    assert answers[0].aborted_transactions is None
    assert answers[7].error_code == Errors.UNKNOWN_TOPIC_OR_PARTITION.code
    assert answers[7].aborted_transactions == []


def test_one_bad_partition_does_not_hide_the_others(client: Client, topic: str) -> None:
    api.produced(client, topic, records("a"))

    response = client.request(api.fetch_request(api.fetch_topic(topic, {7: 0, 0: 0})), 12)

    answers = _partitions(response)
    assert answers[7].error_code == Errors.UNKNOWN_TOPIC_OR_PARTITION.code
    assert api.fetched_values(answers[0]) == [b"a"]


@pytest.mark.parametrize("version", [9, 12, 16, 17])
@pytest.mark.parametrize(
    ("epoch", "error"),
    [
        (0, Errors.FENCED_LEADER_EPOCH),
        (2, Errors.NONE),
        (3, Errors.UNKNOWN_LEADER_EPOCH),
        (-1, Errors.NONE),
    ],
)
def test_the_current_leader_epoch_must_be_the_brokers(
    client: Client, topic: str, version: int, epoch: int, error: Errors
) -> None:
    api.bump_leader_epoch(client, topic, 2)

    data = api.fetch(client, topic, version=version, current_leader_epoch=epoch)

    assert data.error_code == error.code


def test_a_fenced_reader_is_told_who_leads_from_version_16(client: Client, topic: str) -> None:
    api.bump_leader_epoch(client, topic, 2)
    id = api.topic_id(client, topic)

    response = client.request(
        api.fetch_request(api.fetch_topic("", {0: 0}, id=id, current_leader_epoch=1)), 16
    )

    leader = _partitions(response)[0].current_leader
    (node,) = response.node_endpoints
    assert leader.leader_id == node.node_id == BROKER_ID


@pytest.mark.parametrize(
    ("last_epoch", "offset", "diverging"),
    [(0, 2, None), (0, 3, (0, 2)), (1, 2, (0, 2)), (1, 4, (0, 2)), (3, 4, None), (3, 5, (3, 4))],
)
def test_a_reader_of_another_history_is_told_where_it_diverged(
    client: Client, topic: str, last_epoch: int, offset: int, diverging: tuple[int, int] | None
) -> None:
    api.produced(client, topic, records("a", "b"))
    api.bump_leader_epoch(client, topic, 3)
    api.produced(client, topic, records("c", "d"))

    data = api.fetch(client, topic, offset, last_fetched_epoch=last_epoch)

    assert data.error_code == 0
    told = (data.diverging_epoch.epoch, data.diverging_epoch.end_offset)
    assert told == (diverging or (-1, -1))
    if diverging is not None:
        assert _size(data) == 0


def test_an_epoch_later_than_any_is_out_of_range(client: Client, topic: str) -> None:
    api.produced(client, topic, records("a", "b"))

    data = api.fetch(client, topic, 1, last_fetched_epoch=7)

    assert data.error_code == Errors.OFFSET_OUT_OF_RANGE.code


def test_a_diverging_epoch_is_answered_at_once(client: Client, topic: str) -> None:
    api.produced(client, topic, records("a", "b"))

    with _measured() as elapsed:
        data = api.fetch(client, topic, 3, last_fetched_epoch=0, max_wait_ms=_LONG_MS)

    assert data.diverging_epoch.end_offset == 2
    assert elapsed[0] < _LONG_MS / 2


# Topic ids


@pytest.mark.parametrize("version", [13, 17])
def test_an_unknown_topic_id_is_refused(client: Client, version: int) -> None:
    unknown = random_topic_id()

    response = client.request(api.fetch_request(api.fetch_topic("", {0: 0}, id=unknown)), version)

    (answer,) = response.responses
    assert (answer.topic_id, answer.partitions[0].error_code) == (
        unknown,
        Errors.UNKNOWN_TOPIC_ID.code,
    )


def test_a_missing_topic_id_is_an_unknown_one(client: Client) -> None:
    response = client.request(api.fetch_request(api.fetch_topic("", {0: 0}, id=ZERO_UUID)), 13)

    assert _partitions(response)[0].error_code == Errors.UNKNOWN_TOPIC_ID.code


def test_the_id_of_a_topic_that_was_created_again_is_no_longer_known(
    client: Client, topic: str
) -> None:
    old_id = api.topic_id(client, topic)
    api.produced(client, topic, records("old"))
    api.recreate_topic(client, topic)

    response = client.request(api.fetch_request(api.fetch_topic(topic, {0: 0}, id=old_id)), 13)

    assert _partitions(response)[0].error_code == Errors.UNKNOWN_TOPIC_ID.code
    assert api.topic_id(client, topic) != old_id
    assert api.fetched_values(api.fetch(client, topic, version=13)) == []


def test_known_and_unknown_ids_in_one_request_are_answered_each(client: Client, topic: str) -> None:
    api.produced(client, topic, records("a"))
    known, unknown = api.topic_id(client, topic), random_topic_id()

    response = client.request(
        api.fetch_request(
            api.fetch_topic("", {0: 0}, id=unknown), api.fetch_topic("", {0: 0}, id=known)
        ),
        13,
    )

    answers = {answer.topic_id: answer.partitions[0] for answer in response.responses}
    assert answers[unknown].error_code == Errors.UNKNOWN_TOPIC_ID.code
    assert api.fetched_values(answers[known]) == [b"a"]


def test_a_follower_that_is_no_replica_is_refused(client: Client, topic: str) -> None:
    response = client.request(
        FetchRequest(
            replica_id=99, max_wait_ms=0, min_bytes=1, topics=[api.fetch_topic(topic, {0: 0})]
        ),
        12,
    )

    assert _partitions(response)[0].error_code != 0
