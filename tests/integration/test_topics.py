"""CreateTopics, DeleteTopics and CreatePartitions."""

import contextlib
from typing import Any

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.create_partitions import CreatePartitionsRequest
from kafkapy.common.protocol.messages.create_topics import CreateTopicsRequest
from kafkapy.common.protocol.messages.delete_topics import DeleteTopicsRequest
from kafkapy.common.types import ZERO_UUID, random_topic_id
from kafkapy.utils.time import SystemTime
from kafkapy.zk.kafka_zk_client import KafkaZkClient
from tests.helpers import api
from tests.helpers.broker import BROKER_ID, Broker, Client
from tests.helpers.records import records
from tests.helpers.waiting import wait_until
from tests.integration.conftest import MakeBroker

_USE_DEFAULT = -1
_DYNAMIC_TOPIC_CONFIG = 1
_DEFAULT_CONFIG = 5


def _create(
    client: Client,
    *topics: CreateTopicsRequest.CreatableTopic,
    version: int | None = None,
    validate_only: bool = False,
    timeout_ms: int = 15_000,
) -> dict[str, Any]:
    response = client.request(
        CreateTopicsRequest(
            topics=list(topics), timeout_ms=timeout_ms, validate_only=validate_only
        ),
        version,
    )
    assert len({topic.name for topic in response.topics}) == len(response.topics)
    return {topic.name: topic for topic in response.topics}


def _create_one(client: Client, topic: CreateTopicsRequest.CreatableTopic, **options: Any) -> Any:
    return _create(client, topic, **options)[topic.name]


def _answer(client: Client) -> Any:
    return client.receive()


def _exists(client: Client, name: str) -> bool:
    return api.topic_metadata(client, name).error_code == 0


# CreateTopics


def test_a_new_topic_is_told_with_its_id_its_size_and_its_settings(client: Client) -> None:
    name = api.unique_name()

    created = _create_one(
        client, api.creatable(name, partitions=3, configs={"retention.ms": "1234"})
    )

    assert (created.error_code, created.error_message) == (0, None)
    assert created.topic_id == api.topic_id(client, name) != ZERO_UUID
    assert (created.num_partitions, created.replication_factor) == (3, 1)
    configs = {config.name: config for config in created.configs}
    assert configs["retention.ms"].value == "1234"
    assert configs["retention.ms"].config_source == _DYNAMIC_TOPIC_CONFIG
    assert configs["cleanup.policy"].value == "delete"
    assert configs["cleanup.policy"].config_source == _DEFAULT_CONFIG


@pytest.mark.parametrize("version", [4, 5, 7])
def test_minus_one_means_the_brokers_defaults(make_broker: MakeBroker, version: int) -> None:
    with make_broker({"num.partitions": "3"}).client() as client:
        created = _create_one(
            client,
            api.creatable("t", partitions=_USE_DEFAULT, replication_factor=_USE_DEFAULT),
            version=version,
        )

        assert created.error_code == 0
        assert len(api.topic_metadata(client, "t").partitions) == 3


def test_replicas_can_be_assigned(client: Client) -> None:
    name = api.unique_name()

    created = _create_one(
        client,
        api.creatable(
            name,
            partitions=_USE_DEFAULT,
            replication_factor=_USE_DEFAULT,
            assignments={0: [BROKER_ID], 1: [BROKER_ID]},
        ),
    )

    assert (created.error_code, created.num_partitions) == (0, 2)
    assert [p.replica_nodes for p in api.topic_metadata(client, name).partitions] == [[0], [0]]


@pytest.mark.parametrize(
    "assignments",
    [
        pytest.param({0: [99]}, id="no such broker"),
        pytest.param({0: [0, 0]}, id="a broker twice"),
        pytest.param({1: [0]}, id="not from partition 0"),
        pytest.param({0: [0], 2: [0]}, id="a gap"),
        pytest.param({0: []}, id="no replica"),
    ],
)
def test_an_assignment_must_make_sense(client: Client, assignments: dict[int, list[int]]) -> None:
    name = api.unique_name()

    created = _create_one(
        client,
        api.creatable(
            name,
            partitions=_USE_DEFAULT,
            replication_factor=_USE_DEFAULT,
            assignments=assignments,
        ),
    )

    assert created.error_code == Errors.INVALID_REPLICA_ASSIGNMENT.code
    assert not _exists(client, name)


def test_an_assignment_and_numbers_exclude_each_other(client: Client) -> None:
    created = _create_one(
        client, api.creatable(api.unique_name(), partitions=1, assignments={0: [BROKER_ID]})
    )

    assert created.error_code == Errors.INVALID_REQUEST.code


@pytest.mark.parametrize("version", range(1, 8))
def test_validate_only_creates_nothing(client: Client, version: int) -> None:
    name = api.unique_name()

    created = _create_one(client, api.creatable(name), version=version, validate_only=True)
    refused = _create_one(
        client, api.creatable(name, partitions=0), version=version, validate_only=True
    )

    assert (created.error_code, created.topic_id) == (0, ZERO_UUID)
    assert refused.error_code == Errors.INVALID_PARTITIONS.code
    assert not _exists(client, name)


@pytest.mark.parametrize("version", [0, 1, 5, 7])
def test_an_existing_topic_is_not_created_again(client: Client, topic: str, version: int) -> None:
    created = _create_one(client, api.creatable(topic), version=version)

    assert created.error_code == Errors.TOPIC_ALREADY_EXISTS.code
    assert bool(created.error_message) == (version >= 1)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a b", "a/b", "a\0b", "schön", "x" * 250], ids=repr
)
def test_an_illegal_name_is_refused(client: Client, name: str) -> None:
    created = _create_one(client, api.creatable(name))

    assert created.error_code == Errors.INVALID_TOPIC_EXCEPTION.code


@pytest.mark.parametrize("validate_only", [True, False])
def test_the_name_of_the_quorums_log_is_reserved(client: Client, validate_only: bool) -> None:
    name = "__cluster_metadata"

    created = _create_one(client, api.creatable(name), validate_only=validate_only)

    assert created.error_code == Errors.INVALID_REQUEST.code
    assert not _exists(client, name)


def test_the_longest_legal_name_is_usable(client: Client) -> None:
    name = "x" * 249

    assert _create_one(client, api.creatable(name)).error_code == 0
    assert api.produced(client, name, records("a")) == 0


@pytest.mark.parametrize(("first", "second"), [("c.d.e", "c_d.e"), ("f_g", "f.g")])
def test_names_that_differ_in_dots_and_underscores_only_collide(
    client: Client, first: str, second: str
) -> None:
    api.create_topic(client, first)

    created = _create_one(client, api.creatable(second))

    assert created.error_code == Errors.INVALID_TOPIC_EXCEPTION.code


@pytest.mark.parametrize("count", [0, -2])
def test_a_topic_needs_partitions(client: Client, count: int) -> None:
    created = _create_one(client, api.creatable(api.unique_name(), partitions=count))

    assert created.error_code == Errors.INVALID_PARTITIONS.code


@pytest.mark.parametrize("counts", [[10_001], [2**31 - 1], [5_000, 5_001], [2**31 - 1, -(2**31)]])
def test_more_partitions_than_one_request_may_make_are_refused_together(
    client: Client, counts: list[int]
) -> None:
    topics = [api.creatable(api.unique_name(), partitions=count) for count in counts]

    response = client.request(CreateTopicsRequest(topics=topics, timeout_ms=15_000))

    assert {t.error_code for t in response.topics} == {Errors.POLICY_VIOLATION.code}


@pytest.mark.parametrize("factor", [0, -2, 2, 3])
def test_there_cannot_be_more_replicas_than_brokers(client: Client, factor: int) -> None:
    created = _create_one(client, api.creatable(api.unique_name(), replication_factor=factor))

    assert created.error_code == Errors.INVALID_REPLICATION_FACTOR.code


@pytest.mark.parametrize(
    ("config", "value"),
    [
        ("no.such.config", "1"),
        ("retention.ms", "a lot"),
        ("retention.ms", "-2"),
        ("cleanup.policy", "shred"),
        ("compression.type", "rar"),
        ("segment.bytes", "1"),
        ("min.insync.replicas", "0"),
        ("message.timestamp.type", "Yesterday"),
        ("unclean.leader.election.enable", "maybe"),
    ],
)
def test_a_setting_must_exist_and_be_legal(client: Client, config: str, value: str) -> None:
    name = api.unique_name()

    created = _create_one(client, api.creatable(name, configs={config: value}))

    assert created.error_code == Errors.INVALID_CONFIG.code
    assert created.error_message
    assert not _exists(client, name)


def test_a_setting_without_a_value_is_refused(client: Client) -> None:
    created = _create_one(client, api.creatable(api.unique_name(), configs={"retention.ms": None}))

    assert created.error_code == Errors.INVALID_CONFIG.code


def test_a_topic_named_twice_is_refused_and_the_others_are_created(client: Client) -> None:
    once, twice = api.unique_name(), api.unique_name()

    created = _create(client, api.creatable(twice), api.creatable(once), api.creatable(twice))

    assert created[once].error_code == 0
    assert created[twice].error_code == Errors.INVALID_REQUEST.code
    assert not _exists(client, twice)


def test_each_topic_succeeds_or_fails_alone(client: Client) -> None:
    good, bad = api.unique_name(), api.unique_name()

    created = _create(client, api.creatable(good), api.creatable(bad, partitions=0))

    assert created[good].error_code == 0
    assert created[bad].error_code == Errors.INVALID_PARTITIONS.code


def test_no_topics_are_created_at_once(client: Client) -> None:
    assert _create(client) == {}


def test_without_time_the_client_is_told_to_look_again(client: Client) -> None:
    name = api.unique_name()

    created = _create_one(client, api.creatable(name), timeout_ms=0)

    assert created.error_code in (0, Errors.REQUEST_TIMED_OUT.code)
    wait_until(lambda: _exists(client, name))


def test_many_clients_create_one_topic_once(broker: Broker) -> None:
    name = api.unique_name()
    clients = [broker.client() for _ in range(8)]
    try:
        for client in clients:
            client.send(CreateTopicsRequest(topics=[api.creatable(name)], timeout_ms=15_000))
        errors = [client.receive().topics[0].error_code for client in clients]
    finally:
        for client in clients:
            client.close()

    assert sorted(errors) == [0] + [Errors.TOPIC_ALREADY_EXISTS.code] * 7


def test_topic_that_several_create_has_the_settings_of_the_one_that_succeeds(
    broker: Broker,
) -> None:
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(broker.client()) for _ in range(4)]
        for _ in range(10):
            name = api.unique_name()
            for retention_ms, client in enumerate(clients, 10**9):
                configs = {"retention.ms": str(retention_ms)}
                topics = [api.creatable(name, configs=configs)]
                client.send(CreateTopicsRequest(topics=topics, timeout_ms=15_000))
            errors = [_answer(client).topics[0].error_code for client in clients]

            winner = 10**9 + errors.index(0)
            entry = api.config_entry(clients[0], api.TOPIC_RESOURCE, name, "retention.ms")
            assert int(entry.value) == winner


# DeleteTopics


def _delete(client: Client, *topics: Any, version: int = 6) -> dict[Any, int]:
    """Errors by (name, id); topics are names or ids."""
    request = DeleteTopicsRequest(timeout_ms=15_000)
    if version < 6:
        request.topic_names = list(topics)
    else:
        request.topics = [
            DeleteTopicsRequest.DeleteTopicState(name=topic)
            if isinstance(topic, str)
            else DeleteTopicsRequest.DeleteTopicState(name=None, topic_id=topic)
            for topic in topics
        ]
    response = client.request(request, version)
    return {(topic.name, topic.topic_id): topic.error_code for topic in response.responses}


@pytest.mark.parametrize("version", range(7))
def test_a_deleted_topic_is_gone(client: Client, topic: str, version: int) -> None:
    assert _delete(client, topic, version=version) == {(topic, ZERO_UUID): 0}

    assert not _exists(client, topic)
    refused = api.produce(client, topic, records("a"))
    assert refused.error_code == Errors.UNKNOWN_TOPIC_OR_PARTITION.code


def test_a_topic_can_be_deleted_by_id(client: Client, topic: str) -> None:
    id = api.topic_id(client, topic)

    assert _delete(client, id) == {(topic, id): 0}
    assert not _exists(client, topic)


@pytest.mark.parametrize("version", range(7))
def test_an_unknown_name_cannot_be_deleted(client: Client, version: int) -> None:
    assert _delete(client, "no-such-topic", version=version) == {
        ("no-such-topic", ZERO_UUID): Errors.UNKNOWN_TOPIC_OR_PARTITION.code
    }


def test_an_unknown_id_cannot_be_deleted(client: Client) -> None:
    unknown = random_topic_id()

    assert _delete(client, unknown) == {(None, unknown): Errors.UNKNOWN_TOPIC_ID.code}


@pytest.mark.parametrize("version", [0, 5, 6])
def test_a_topic_named_twice_is_deleted(client: Client, topic: str, version: int) -> None:
    names = [topic, topic]
    request = DeleteTopicsRequest(timeout_ms=15_000)
    if version < 6:
        request.topic_names = names
    else:
        request.topics = [DeleteTopicsRequest.DeleteTopicState(name=name) for name in names]

    response = client.request(request, version)

    assert [(t.name, t.error_code) for t in response.responses] == [(topic, 0)] * 2
    assert not _exists(client, topic)


def test_a_topic_named_by_name_and_again_by_id_is_deleted(client: Client, topic: str) -> None:
    id = api.topic_id(client, topic)

    assert _delete(client, topic, id) == {(topic, ZERO_UUID): 0, (topic, id): 0}
    assert not _exists(client, topic)


def test_a_topic_given_by_name_and_by_id_is_refused(client: Client, topic: str) -> None:
    response = client.request(
        DeleteTopicsRequest(
            topics=[
                DeleteTopicsRequest.DeleteTopicState(
                    name=topic, topic_id=api.topic_id(client, topic)
                )
            ],
            timeout_ms=15_000,
        )
    )

    assert response.responses[0].error_code == Errors.INVALID_REQUEST.code
    assert _exists(client, topic)


def test_a_topic_created_again_is_another_and_empty(broker: Broker, client: Client) -> None:
    topic = api.create_topic(client)
    api.produced(client, topic, records("old"))
    old_id = api.topic_id(client, topic)

    api.recreate_topic(client, topic)

    assert api.topic_id(client, topic) not in (old_id, ZERO_UUID)
    assert api.fetch(client, topic).high_watermark == 0
    assert api.produced(client, topic, records("new")) == 0
    assert api.fetched_values(api.fetch(client, topic)) == [b"new"]


def test_the_files_of_a_deleted_topic_go(make_broker: MakeBroker) -> None:
    broker = make_broker({"log.segment.delete.delay.ms": "0"})
    with broker.client() as client:
        topic = api.create_topic(client, partitions=2)
        api.produced(client, topic, records("a"))
        assert len(list(broker.log_dir.glob(f"{topic}-*"))) == 2

        api.delete_topic(client, topic)

        wait_until(lambda: not list(broker.log_dir.glob(f"{topic}*")))


@pytest.mark.parametrize(
    ("version", "error"),
    [(0, Errors.INVALID_REQUEST), (3, Errors.TOPIC_DELETION_DISABLED), (6, None)],
)
def test_deletion_can_be_turned_off(
    make_broker: MakeBroker, version: int, error: Errors | None
) -> None:
    with make_broker({"delete.topic.enable": "false"}).client() as client:
        topic = api.create_topic(client)

        answers = _delete(client, topic, version=version)

        assert answers == {(topic, ZERO_UUID): (error or Errors.TOPIC_DELETION_DISABLED).code}
        assert _exists(client, topic)


# CreatePartitions


def _grow(
    client: Client,
    name: str,
    count: int,
    *,
    assignments: list[list[int]] | None = None,
    validate_only: bool = False,
) -> int:
    """The error of the one topic."""
    response = client.request(
        CreatePartitionsRequest(
            topics=[
                CreatePartitionsRequest.CreatePartitionsTopic(
                    name=name,
                    count=count,
                    assignments=None
                    if assignments is None
                    else [
                        CreatePartitionsRequest.CreatePartitionsAssignment(broker_ids=brokers)
                        for brokers in assignments
                    ],
                )
            ],
            timeout_ms=15_000,
            validate_only=validate_only,
        )
    )
    (result,) = response.results
    assert result.name == name
    return result.error_code


def test_new_partitions_are_usable_and_old_ones_keep_their_records(
    client: Client, topic: str
) -> None:
    api.produced(client, topic, records("a"))

    assert _grow(client, topic, 3) == 0

    assert api.produced(client, topic, records("b"), partition=2) == 0
    assert api.fetched_values(api.fetch(client, topic)) == [b"a"]


def test_replicas_of_new_partitions_can_be_assigned(client: Client, topic: str) -> None:
    assert _grow(client, topic, 3, assignments=[[BROKER_ID], [BROKER_ID]]) == 0
    assert len(api.topic_metadata(client, topic).partitions) == 3


@pytest.mark.parametrize("assignments", [[[0]], [[0], [0], [0]], [[99], [0]], [[0], []]])
def test_an_assignment_must_fit_the_new_partitions(
    client: Client, topic: str, assignments: list[list[int]]
) -> None:
    assert _grow(client, topic, 3, assignments=assignments) == (
        Errors.INVALID_REPLICA_ASSIGNMENT.code
    )
    assert len(api.topic_metadata(client, topic).partitions) == 1


@pytest.mark.parametrize("count", [1, 2, 0, -1])
def test_partitions_can_only_become_more(client: Client, count: int) -> None:
    topic = api.create_topic(client, partitions=2)

    assert _grow(client, topic, count) == Errors.INVALID_PARTITIONS.code


@pytest.mark.parametrize("count", [10_002, 2**31 - 1])
def test_a_topic_cannot_grow_beyond_what_one_request_may_make(
    client: Client, topic: str, count: int
) -> None:
    assert _grow(client, topic, count) == Errors.POLICY_VIOLATION.code


def test_an_unknown_topic_cannot_grow(client: Client) -> None:
    assert _grow(client, "no-such-topic", 3) == Errors.UNKNOWN_TOPIC_OR_PARTITION.code


def test_topic_that_several_grow_at_once_never_shrinks(broker: Broker) -> None:
    session = broker.new_session()
    with contextlib.ExitStack() as stack:
        stack.callback(session.close)
        stored = KafkaZkClient(session, SystemTime())
        clients = [stack.enter_context(broker.client()) for _ in range(4)]
        for _ in range(30):
            topic = api.create_topic(clients[0])
            for count, client in zip((5, 2, 3, 4), clients, strict=True):
                grown = CreatePartitionsRequest.CreatePartitionsTopic(
                    name=topic, count=count, assignments=None
                )
                client.send(CreatePartitionsRequest(topics=[grown], timeout_ms=15_000))
            errors = [_answer(client).results[0].error_code for client in clients]

            assert errors[0] == 0
            assert set(errors) <= {0, Errors.INVALID_PARTITIONS.code}
            assert len(stored.get_full_replica_assignment_for_topics([topic])) == 5


def test_growth_can_be_validated_only(client: Client, topic: str) -> None:
    assert _grow(client, topic, 3, validate_only=True) == 0
    assert len(api.topic_metadata(client, topic).partitions) == 1
