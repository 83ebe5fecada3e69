"""Metadata, DescribeTopicPartitions, DescribeCluster and DescribeLogDirs."""

from typing import Any

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.create_topics import CreateTopicsRequest
from kafkapy.common.protocol.messages.describe_cluster import DescribeClusterRequest
from kafkapy.common.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from kafkapy.common.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
)
from kafkapy.common.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kafkapy.common.types import ZERO_UUID, random_topic_id
from kafkapy.server.broker_state import BrokerState
from tests.helpers import api
from tests.helpers.broker import BROKER_ID, Broker, Client
from tests.helpers.records import records
from tests.helpers.waiting import wait_until
from tests.integration.conftest import MakeBroker

Topic = MetadataRequest.MetadataRequestTopic
_VERSIONS = range(13)
_INVALID_NAMES = ["", ".", "..", "a/b", "a b", "ä", "x" * 250]


def _metadata(
    client: Client, topics: list[Topic] | None, version: int = 12, *, may_create: bool = True
) -> MetadataResponse:
    return client.request(
        MetadataRequest(topics=topics, allow_auto_topic_creation=may_create), version
    )


def _names(response: MetadataResponse) -> set[str | None]:
    return {topic.name for topic in response.topics}


# Which topics


@pytest.mark.parametrize("version", range(1, 13))
def test_null_asks_for_all_topics(client: Client, topic: str, version: int) -> None:
    assert topic in _names(_metadata(client, None, version))


@pytest.mark.parametrize("version", range(1, 13))
def test_an_empty_list_asks_for_none(client: Client, topic: str, version: int) -> None:
    response = _metadata(client, [], version)

    assert response.topics == []
    assert [broker.node_id for broker in response.brokers] == [BROKER_ID]


def test_an_empty_list_asks_for_all_in_version_0(client: Client, topic: str) -> None:
    assert topic in _names(_metadata(client, [], 0))


@pytest.mark.parametrize("version", _VERSIONS)
def test_only_the_topics_named_are_told(client: Client, topic: str, version: int) -> None:
    other = api.create_topic(client, partitions=3)

    response = _metadata(client, [Topic(name=other)], version)

    (answer,) = response.topics
    assert (answer.name, answer.error_code, answer.is_internal) == (other, 0, False)
    assert sorted(p.partition_index for p in answer.partitions) == [0, 1, 2]
    for partition in answer.partitions:
        assert (partition.error_code, partition.leader_id) == (0, BROKER_ID)
        assert partition.replica_nodes == partition.isr_nodes == [BROKER_ID]
        assert partition.offline_replicas == []
        assert partition.leader_epoch == (0 if version >= 7 else -1)
    assert (answer.topic_id != ZERO_UUID) == (version >= 10)


def test_a_topic_named_twice_is_told_once(client: Client, topic: str) -> None:
    response = _metadata(client, [Topic(name=topic), Topic(name=topic)])

    assert len(response.topics) == 1


# Topics that do not exist


@pytest.mark.parametrize("version", [0, 1, 3, 4, 9, 12])
def test_asking_for_an_unknown_topic_creates_it(client: Client, version: int) -> None:
    name = api.unique_name("auto")

    (first,) = _metadata(client, [Topic(name=name)], version).topics

    assert first.error_code in (
        Errors.LEADER_NOT_AVAILABLE.code,
        Errors.UNKNOWN_TOPIC_OR_PARTITION.code,
    )
    wait_until(lambda: api.topic_metadata(client, name).error_code == 0)
    assert api.produced(client, name, records("a")) == 0


@pytest.mark.parametrize("version", range(4, 13))
def test_an_unknown_topic_is_not_created_against_the_clients_will(
    client: Client, version: int
) -> None:
    name = api.unique_name("unwanted")

    (answer,) = _metadata(client, [Topic(name=name)], version, may_create=False).topics

    assert (answer.name, answer.error_code) == (name, Errors.UNKNOWN_TOPIC_OR_PARTITION.code)
    assert name not in _names(_metadata(client, None))


@pytest.mark.parametrize("may_create", [True, False])
def test_a_broker_that_is_starting_does_not_deny_a_topic_it_has_yet_to_hear_of(
    make_broker: MakeBroker, may_create: bool
) -> None:
    broker = make_broker()
    with broker.client() as client:
        broker.server.state = BrokerState.RECOVERY
        (early,) = _metadata(client, [Topic(name="t")], may_create=may_create).topics
        (illegal,) = _metadata(client, [Topic(name="not legal")], may_create=may_create).topics
        broker.server.state = BrokerState.RUNNING

        assert early.error_code == Errors.LEADER_NOT_AVAILABLE.code
        assert illegal.error_code == Errors.INVALID_TOPIC_EXCEPTION.code
        assert _names(_metadata(client, None)) == set()


@pytest.mark.parametrize("name", _INVALID_NAMES)
@pytest.mark.parametrize("may_create", [True, False])
def test_an_illegal_name_is_refused(client: Client, name: str, may_create: bool) -> None:
    (answer,) = _metadata(client, [Topic(name=name)], may_create=may_create).topics

    assert (answer.name, answer.error_code) == (name, Errors.INVALID_TOPIC_EXCEPTION.code)


def test_a_name_that_meets_another_in_metrics_is_not_created(client: Client) -> None:
    api.create_topic(client, "auto.collides")

    (answer,) = _metadata(client, [Topic(name="auto_collides")]).topics

    assert answer.error_code == Errors.INVALID_TOPIC_EXCEPTION.code


def test_internal_topics_are_marked(client: Client) -> None:
    client.request(
        CreateTopicsRequest(topics=[api.creatable("__transaction_state")], timeout_ms=15_000)
    )

    assert api.topic_metadata(client, "__transaction_state").is_internal


def test_auto_creation_uses_the_brokers_defaults_and_can_be_turned_off(
    make_broker: MakeBroker,
) -> None:
    broker = make_broker({"num.partitions": "4"})
    with broker.client() as client:
        _metadata(client, [Topic(name="auto")])
        wait_until(lambda: api.topic_metadata(client, "auto").error_code == 0)
        assert len(api.topic_metadata(client, "auto").partitions) == 4

    broker.restart({"auto.create.topics.enable": "false"})
    with broker.client() as client:
        (answer,) = _metadata(client, [Topic(name="not-auto")]).topics
        assert answer.error_code == Errors.UNKNOWN_TOPIC_OR_PARTITION.code
        assert _names(_metadata(client, None)) == {"auto"}


# Topic ids


def test_a_topic_can_be_asked_for_by_id(client: Client, topic: str) -> None:
    id = api.topic_id(client, topic)

    (answer,) = _metadata(client, [Topic(name=None, topic_id=id)]).topics

    assert (answer.name, answer.topic_id, answer.error_code) == (topic, id, 0)


def test_an_unknown_id_is_told_as_such(client: Client) -> None:
    unknown = random_topic_id()

    (answer,) = _metadata(client, [Topic(name=None, topic_id=unknown)]).topics

    assert (answer.name, answer.topic_id) == (None, unknown)
    assert answer.error_code == Errors.UNKNOWN_TOPIC_ID.code


@pytest.mark.parametrize("version", [10, 11])
def test_ids_cannot_be_asked_for_below_version_12(client: Client, topic: str, version: int) -> None:
    id = api.topic_id(client, topic)

    for wanted in (Topic(name=topic, topic_id=id), Topic(name=None)):
        (answer,) = _metadata(client, [wanted], version).topics
        assert answer.error_code == Errors.INVALID_REQUEST.code


# The cluster


@pytest.mark.parametrize("version", range(1, 13))
def test_the_controller_is_a_living_broker(client: Client, version: int) -> None:
    response = _metadata(client, [], version)

    assert response.controller_id in {broker.node_id for broker in response.brokers}


@pytest.mark.parametrize("version", range(2, 13))
def test_the_cluster_has_an_id(broker: Broker, client: Client, version: int) -> None:
    cluster_id = _metadata(client, [], version).cluster_id

    assert cluster_id == broker.server.cluster_id
    assert len(cluster_id) == 22


def test_the_rack_is_told(make_broker: MakeBroker) -> None:
    with make_broker({"broker.rack": "r1"}).client() as client:
        assert _metadata(client, []).brokers[0].rack == "r1"
        assert client.request(DescribeClusterRequest()).brokers[0].rack == "r1"


@pytest.mark.parametrize(
    ("endpoint_type", "error"),
    [
        (0, Errors.UNSUPPORTED_ENDPOINT_TYPE),
        (2, Errors.MISMATCHED_ENDPOINT_TYPE),
        (3, Errors.UNSUPPORTED_ENDPOINT_TYPE),
    ],
)
def test_describe_cluster_serves_brokers_only(
    client: Client, endpoint_type: int, error: Errors
) -> None:
    response = client.request(DescribeClusterRequest(endpoint_type=endpoint_type), 1)

    assert response.error_code == error.code


# DescribeTopicPartitions


def _describe(
    client: Client,
    *names: str,
    limit: int = 2000,
    cursor: tuple[str, int] | None = None,
) -> Any:
    return client.request(
        DescribeTopicPartitionsRequest(
            topics=[DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in names],
            response_partition_limit=limit,
            cursor=DescribeTopicPartitionsRequest.Cursor(
                topic_name=cursor[0], partition_index=cursor[1]
            )
            if cursor
            else None,
        )
    )


def _pages(response: Any) -> list[tuple[str, int]]:
    return [
        (topic.name, partition.partition_index)
        for topic in response.topics
        for partition in topic.partitions
    ]


def test_partitions_are_described_page_by_page(client: Client) -> None:
    names = sorted(api.create_topic(client, partitions=count) for count in (3, 1, 4))
    every = _pages(_describe(client, *names))
    assert len(every) == 8

    read: list[tuple[str, int]] = []
    cursor = None
    for _ in range(10):
        response = _describe(client, *names, limit=3, cursor=cursor)
        assert 0 < len(_pages(response)) <= 3
        read += _pages(response)
        if response.next_cursor is None:
            break
        cursor = (response.next_cursor.topic_name, response.next_cursor.partition_index)

    assert read == every


def test_topics_are_described_in_the_order_of_their_names(client: Client) -> None:
    first, second = sorted(api.create_topic(client) for _ in range(2))

    assert _pages(_describe(client, second, first, second)) == [(first, 0), (second, 0)]


def test_no_names_describe_all_topics(client: Client, topic: str) -> None:
    described = {name for name, _ in _pages(_describe(client))}

    assert described == _names(_metadata(client, None))


@pytest.mark.parametrize("limit", [0, -1])
def test_a_page_has_at_least_one_partition(client: Client, topic: str, limit: int) -> None:
    assert _pages(_describe(client, topic, limit=limit)) == [(topic, 0)]


def test_the_brokers_limit_caps_the_clients(make_broker: MakeBroker) -> None:
    with make_broker({"max.request.partition.size.limit": "2"}).client() as client:
        topic = api.create_topic(client, partitions=3)

        response = _describe(client, topic, limit=100)

    assert len(_pages(response)) == 2
    assert (response.next_cursor.topic_name, response.next_cursor.partition_index) == (topic, 2)


def test_an_unknown_topic_is_told_as_such(client: Client, topic: str) -> None:
    response = _describe(client, "no-such-topic", topic, "not legal")

    assert {t.name: t.error_code for t in response.topics} == {
        "no-such-topic": Errors.UNKNOWN_TOPIC_OR_PARTITION.code,
        "not legal": Errors.INVALID_TOPIC_EXCEPTION.code,
        topic: 0,
    }


def test_a_cursor_to_a_topic_that_is_not_asked_for_is_refused(client: Client, topic: str) -> None:
    response = _describe(client, topic, cursor=(f"{topic}-other", 0))

    assert [t.error_code for t in response.topics] == [Errors.INVALID_REQUEST.code]


def test_a_cursor_before_the_first_partition_is_refused(client: Client, topic: str) -> None:
    response = _describe(client, topic, cursor=(topic, -1))

    assert response.topics[0].error_code == Errors.INVALID_REQUEST.code


# DescribeLogDirs


def _log_dirs(client: Client, *wanted: tuple[str, list[int]], every: bool = False) -> Any:
    return client.request(
        DescribeLogDirsRequest(
            topics=None
            if every
            else [
                DescribeLogDirsRequest.DescribableLogDirTopic(topic=topic, partitions=partitions)
                for topic, partitions in wanted
            ]
        )
    )


def test_null_describes_every_replica(broker: Broker, client: Client) -> None:
    topic = api.create_topic(client, partitions=2)
    api.produced(client, topic, records("a" * 100), partition=1)

    (log_dir,) = _log_dirs(client, every=True).results

    (answer,) = [answer for answer in log_dir.topics if answer.name == topic]
    sizes = {p.partition_index: p.partition_size for p in answer.partitions}
    assert log_dir.log_dir == str(broker.log_dir)
    assert sizes[0] == 0
    assert sizes[1] > 100
    assert all(not p.is_future_key and p.offset_lag == 0 for p in answer.partitions)


def test_only_the_replicas_named_are_described(client: Client) -> None:
    topic = api.create_topic(client, partitions=3)

    (log_dir,) = _log_dirs(client, (topic, [1]), ("no-such-topic", [0])).results

    assert [(t.name, [p.partition_index for p in t.partitions]) for t in log_dir.topics] == [
        (topic, [1])
    ]


def test_every_directory_is_described(make_broker: MakeBroker, tmp_path: Any) -> None:
    dirs = [str(tmp_path / name) for name in ("one", "two")]
    broker = make_broker({"log.dirs": ",".join(dirs)})
    with broker.client() as client:
        topic = api.create_topic(client, partitions=4)

        response = _log_dirs(client, (topic, [0, 1, 2, 3]))

    assert sorted(result.log_dir for result in response.results) == dirs
    counts = [len(t.partitions) for result in response.results for t in result.topics]
    assert counts == [2, 2]


# What may be done: everything, where there are no access rules

_TOPIC_OPERATIONS = 0b1101_1111_1000
_CLUSTER_OPERATIONS = 0b1_1111_1010_0000
_NOT_ASKED = -(2**31)


@pytest.mark.parametrize("version", range(8, 13))
def test_operations_on_topics_are_told_when_asked_for(
    client: Client, topic: str, version: int
) -> None:
    def operations(*, wanted: bool) -> int:
        request = MetadataRequest(
            topics=[Topic(name=topic)], include_topic_authorized_operations=wanted
        )
        (found,) = client.request(request, version).topics
        return found.topic_authorized_operations

    assert operations(wanted=True) == _TOPIC_OPERATIONS
    assert operations(wanted=False) == _NOT_ASKED


@pytest.mark.parametrize("version", range(8, 11))
def test_operations_on_the_cluster_are_told_when_asked_for(client: Client, version: int) -> None:
    request = MetadataRequest(topics=[], include_cluster_authorized_operations=True)

    assert client.request(request, version).cluster_authorized_operations == _CLUSTER_OPERATIONS
    assert _metadata(client, [], version).cluster_authorized_operations == _NOT_ASKED


@pytest.mark.parametrize("wanted", [True, False])
def test_describing_the_cluster_tells_operations_when_asked_for(
    client: Client, wanted: bool
) -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=wanted)

    found = client.request(request, 1).cluster_authorized_operations

    assert found == (_CLUSTER_OPERATIONS if wanted else _NOT_ASKED)


def test_describing_partitions_always_tells_operations(client: Client, topic: str) -> None:
    request = DescribeTopicPartitionsRequest(
        topics=[DescribeTopicPartitionsRequest.TopicRequest(name=topic)]
    )

    (found,) = client.request(request, 0).topics

    assert found.topic_authorized_operations == _TOPIC_OPERATIONS
