"""Incremental fetch sessions as a client sees them."""

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.common.types import ZERO_UUID
from tests.helpers import api
from tests.helpers.broker import Broker, Client
from tests.helpers.records import records
from tests.helpers.waiting import wait_until
from tests.integration.conftest import MakeBroker

_BY_NAME = 12
_BY_ID = 17
_VERSIONS = [7, _BY_NAME, _BY_ID]


class Session:
    """A client's side of a fetch session over the partitions of one topic."""

    def __init__(self, client: Client, topic: str, version: int) -> None:
        self._client = client
        self._version = version
        self._topic = topic
        self._id = api.topic_id(client, topic) if version >= 13 else ZERO_UUID
        self.session_id = 0
        self.epoch = 0

    def fetch(
        self,
        offsets: dict[int, int] | None = None,
        *,
        forget: list[int] | None = None,
        epoch: int | None = None,
    ) -> FetchResponse:
        response = self._client.request(
            api.fetch_request(
                *([api.fetch_topic(self._topic, offsets, id=self._id)] if offsets else []),
                session_id=self.session_id,
                session_epoch=self.epoch if epoch is None else epoch,
                forgotten_topics_data=[
                    FetchRequest.ForgottenTopic(
                        topic=self._topic, topic_id=self._id, partitions=forget
                    )
                ]
                if forget
                else [],
            ),
            self._version,
        )
        if response.error_code == 0:
            self.session_id = response.session_id
            self.epoch += 1
        return response


def _answered(response: FetchResponse) -> dict[int, list[bytes | None]]:
    """The partitions in the response, with the values they return."""
    return {
        data.partition_index: api.fetched_values(data)
        for topic in response.responses
        for data in topic.partitions
    }


@pytest.fixture
def wide_topic(client: Client) -> str:
    return api.create_topic(client, partitions=3)


@pytest.mark.parametrize("version", _VERSIONS)
def test_a_full_fetch_opens_a_session_and_names_every_partition(
    client: Client, wide_topic: str, version: int
) -> None:
    session = Session(client, wide_topic, version)

    response = session.fetch({0: 0, 1: 0, 2: 0})

    assert response.session_id > 0
    assert _answered(response) == {0: [], 1: [], 2: []}


@pytest.mark.parametrize("version", _VERSIONS)
def test_an_incremental_fetch_names_only_partitions_with_news(
    client: Client, wide_topic: str, version: int
) -> None:
    session = Session(client, wide_topic, version)
    session.fetch({0: 0, 1: 0, 2: 0})

    assert _answered(session.fetch()) == {}
    api.produced(client, wide_topic, records("a"), partition=1)
    assert _answered(session.fetch()) == {1: [b"a"]}


@pytest.mark.parametrize("version", _VERSIONS)
def test_offsets_move_on_for_the_partitions_that_are_named(
    client: Client, wide_topic: str, version: int
) -> None:
    session = Session(client, wide_topic, version)
    api.produced(client, wide_topic, records("a"), partition=1)
    session.fetch({0: 0, 1: 0})

    assert _answered(session.fetch({1: 1})) == {}
    api.produced(client, wide_topic, records("b"), partition=1)
    assert _answered(session.fetch()) == {1: [b"b"]}


@pytest.mark.parametrize("version", _VERSIONS)
def test_a_partition_can_be_added(client: Client, wide_topic: str, version: int) -> None:
    session = Session(client, wide_topic, version)
    session.fetch({0: 0})

    assert _answered(session.fetch({2: 0})) == {2: []}


@pytest.mark.parametrize("version", _VERSIONS)
def test_a_forgotten_partition_is_not_read_any_more(
    client: Client, wide_topic: str, version: int
) -> None:
    session = Session(client, wide_topic, version)
    session.fetch({0: 0, 1: 0})

    session.fetch(forget=[1])
    for partition in (0, 1):
        api.produced(client, wide_topic, records("a"), partition=partition)

    assert _answered(session.fetch()) == {0: [b"a"]}


@pytest.mark.parametrize("version", _VERSIONS)
def test_a_session_without_partitions_is_closed(
    client: Client, wide_topic: str, version: int
) -> None:
    session = Session(client, wide_topic, version)
    opened = session.fetch({0: 0}).session_id

    response = session.fetch(forget=[0])

    assert (response.error_code, response.session_id) == (0, 0)
    session.session_id = opened
    assert session.fetch().error_code == Errors.FETCH_SESSION_ID_NOT_FOUND.code


@pytest.mark.parametrize("version", _VERSIONS)
def test_the_final_epoch_closes_a_session(client: Client, wide_topic: str, version: int) -> None:
    session = Session(client, wide_topic, version)
    opened = session.fetch({0: 0}).session_id

    last = session.fetch({0: 0}, epoch=-1)

    assert (last.error_code, last.session_id, _answered(last)) == (0, 0, {0: []})
    session.session_id = opened
    assert session.fetch().error_code == Errors.FETCH_SESSION_ID_NOT_FOUND.code


def test_an_unknown_session_is_refused(client: Client, topic: str) -> None:
    session = Session(client, topic, _BY_NAME)
    session.session_id, session.epoch = 123_456, 1

    response = session.fetch()

    assert response.error_code == Errors.FETCH_SESSION_ID_NOT_FOUND.code
    assert (response.session_id, response.responses) == (0, [])


@pytest.mark.parametrize("epoch", [2, 5])
def test_a_session_goes_on_only_from_its_next_epoch(client: Client, topic: str, epoch: int) -> None:
    session = Session(client, topic, _BY_NAME)
    session.fetch({0: 0})

    refused = session.fetch(epoch=epoch)

    assert refused.error_code == Errors.INVALID_FETCH_SESSION_EPOCH.code
    assert session.fetch().error_code == 0


def test_a_new_full_fetch_replaces_the_session(client: Client, topic: str) -> None:
    session = Session(client, topic, _BY_NAME)
    first = session.fetch({0: 0}).session_id

    second = session.fetch({0: 0}, epoch=0).session_id

    assert second not in (0, first)


def test_a_session_by_name_cannot_go_on_by_id(client: Client, topic: str) -> None:
    session = Session(client, topic, _BY_NAME)
    session.fetch({0: 0})
    by_id = Session(client, topic, _BY_ID)
    by_id.session_id, by_id.epoch = session.session_id, session.epoch

    response = by_id.fetch()

    assert response.error_code == Errors.FETCH_SESSION_TOPIC_ID_ERROR.code


def test_an_error_is_told_until_the_client_reacts(client: Client, topic: str) -> None:
    session = Session(client, topic, _BY_NAME)
    session.fetch({0: 99})

    for _ in range(2):
        (answer,) = session.fetch().responses
        assert answer.partitions[0].error_code == Errors.OFFSET_OUT_OF_RANGE.code
    assert _answered(session.fetch({0: 0})) == {0: []}


def test_a_session_by_id_tells_a_deleted_topic_from_one_created_again(
    client: Client, topic: str
) -> None:
    session = Session(client, topic, _BY_ID)
    session.fetch({0: 0})

    api.delete_topic(client, topic)
    (deleted,) = session.fetch().responses
    api.wait_until_created(client, topic)
    wait_until(lambda: api.fetch(client, topic).error_code == Errors.NONE.code)
    (recreated,) = session.fetch().responses

    assert deleted.partitions[0].error_code == Errors.UNKNOWN_TOPIC_OR_PARTITION.code
    assert recreated.partitions[0].error_code == Errors.INCONSISTENT_TOPIC_ID.code
    assert deleted.topic_id == recreated.topic_id != api.topic_id(client, topic)


def test_a_session_outlives_the_connection_it_was_opened_on(broker: Broker, topic: str) -> None:
    with broker.client() as first:
        session = Session(first, topic, _BY_NAME)
        session.fetch({0: 0})

    with broker.client() as second:
        going_on = Session(second, topic, _BY_NAME)
        going_on.session_id, going_on.epoch = session.session_id, session.epoch

        assert going_on.fetch().error_code == 0


def test_without_room_for_sessions_a_fetch_works_without_one(make_broker: MakeBroker) -> None:
    broker = make_broker({"max.incremental.fetch.session.cache.slots": "1"})
    with broker.client() as client:
        topic = api.create_topic(client)
        api.produced(client, topic, records("a"))

        first = Session(client, topic, _BY_NAME).fetch({0: 0})
        second = Session(client, topic, _BY_NAME).fetch({0: 0})

    assert first.session_id > 0
    assert second.session_id == 0
    assert _answered(second) == {0: [b"a"]}


def test_a_busy_partition_does_not_starve_the_others(client: Client, wide_topic: str) -> None:
    for partition in range(3):
        api.produced(client, wide_topic, records("x" * 500), partition=partition)
    topic = api.fetch_topic(wide_topic, {0: 0, 1: 0, 2: 0})
    opened = client.request(api.fetch_request(topic, session_epoch=0, max_bytes=1), _BY_NAME)
    seen = []

    for epoch in (1, 2, 3):
        response = client.request(
            api.fetch_request(session_id=opened.session_id, session_epoch=epoch, max_bytes=1),
            _BY_NAME,
        )
        seen += _with_records(response)

    assert sorted(seen) == [0, 1, 2]


def _with_records(response: FetchResponse) -> list[int]:
    return [partition for partition, values in _answered(response).items() if values]
