"""AdminClient: topics, their records and their settings."""

import uuid
from collections.abc import Callable, Iterator

import pytest

from kafkapy.clients.admin import (
    AdminClient,
    AlterConfigOp,
    AlterOperation,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    IsolationLevel,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)
from kafkapy.common.errors import (
    InvalidConfigurationError,
    InvalidPartitionsError,
    InvalidReplicationFactorError,
    InvalidTopicError,
    OffsetOutOfRangeError,
    RequestTimeoutError,
    TopicExistsError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from kafkapy.common.types import TopicPartition
from tests.clients.admins import admin_client
from tests.compat.brokers import Broker

BROKER = ConfigResource(ConfigResourceType.BROKER, "0")
ALL_BROKERS = ConfigResource(ConfigResourceType.BROKER, "")


@pytest.fixture(scope="module")
def admin(broker: Broker) -> Iterator[AdminClient]:
    with admin_client(broker) as admin:
        yield admin


@pytest.fixture
def name() -> str:
    return f"admin-{uuid.uuid4().hex}"


@pytest.fixture
def topic(admin: AdminClient, name: str) -> str:
    """With two partitions."""
    admin.create_topics([NewTopic(name, num_partitions=2, replication_factor=1)])
    return name


def test_created_topic_has_what_was_asked_for(admin: AdminClient, name: str) -> None:
    new = NewTopic(name, 3, 1, topic_configs={"segment.bytes": "20000", "retention.ms": "5000"})

    created = admin.create_topics([new])[name]

    described = admin.describe_topics([name])[name]
    assert (created.num_partitions, created.replication_factor) == (3, 1)
    assert created.config is not None and created.config["retention.ms"].value == "5000"
    assert described.topic_id == created.topic_id
    assert [info.partition for info in described.partitions] == [0, 1, 2]
    for info in described.partitions:
        assert info.leader is not None and info.leader.id == 0
        assert [node.id for node in info.replicas] == [node.id for node in info.isr] == [0]


def test_topic_may_be_placed_by_hand_or_by_the_brokers_defaults(
    admin: AdminClient, name: str
) -> None:
    admin.create_topics(
        [NewTopic(name, replica_assignments={0: [0], 1: [0]}), NewTopic(f"{name}2")]
    )

    topics = admin.describe_topics([name, f"{name}2"])
    assert [len(topics[key].partitions) for key in topics] == [2, 1]


def test_creation_that_is_only_validated_creates_nothing(admin: AdminClient, name: str) -> None:
    admin.create_topics([NewTopic(name, 3, 1)], validate_only=True)

    assert name not in admin.list_topics()


@pytest.mark.parametrize(
    ("new", "error"),
    [
        (NewTopic("no spaces", 1, 1), InvalidTopicError),
        (NewTopic("admin-none", 0, 1), InvalidPartitionsError),
        (NewTopic("admin-many", 1, 5), InvalidReplicationFactorError),
        (NewTopic("admin-bad", 1, 1, topic_configs={"x": "y"}), InvalidConfigurationError),
    ],
)
def test_wrong_topic_is_refused(admin: AdminClient, new: NewTopic, error: type[Exception]) -> None:
    with pytest.raises(error):
        admin.create_topics([new])

    assert new.name not in admin.list_topics()


def test_errors_are_raised_or_told_per_topic(admin: AdminClient, topic: str, name: str) -> None:
    wanted = [NewTopic(topic, 1, 1), NewTopic(f"{name}-new", 1, 1)]

    results = admin.create_topics(wanted, raise_errors=False)

    assert set(results.errors) == {topic} and set(results.successes) == {f"{name}-new"}
    with pytest.raises(TopicExistsError, match=topic):
        results[topic]
    with pytest.raises(TopicExistsError, match=topic):
        admin.create_topics(wanted)


def test_deletion_by_name_and_by_id(admin: AdminClient, topic: str, name: str) -> None:
    other = admin.create_topics([NewTopic(f"{name}-2", 1, 1)])[f"{name}-2"].topic_id

    results = admin.delete_topics([topic, "admin-no-such"], raise_errors=False)
    by_id = admin.delete_topics([other, uuid.uuid4()], raise_errors=False)

    assert isinstance(results.errors["admin-no-such"], UnknownTopicOrPartitionError)
    assert [type(error) for error in by_id.errors.values()] == [UnknownTopicIdError]
    assert not {topic, f"{name}-2"} & set(admin.list_topics())


def test_topic_is_described_by_its_id(admin: AdminClient, topic: str) -> None:
    topic_id = admin.list_topics()[topic].topic_id

    assert admin.describe_topics([topic_id])[topic_id].name == topic


def test_unknown_topic_cannot_be_described(admin: AdminClient, topic: str) -> None:
    results = admin.describe_topics([topic, "admin-no-such"], raise_errors=False)

    assert set(results.successes) == {topic}
    with pytest.raises(UnknownTopicOrPartitionError, match="admin-no-such"):
        results["admin-no-such"]
    assert "admin-no-such" not in admin.list_topics()


def test_partitions_can_be_added_and_not_taken_away(admin: AdminClient, topic: str) -> None:
    admin.create_partitions({topic: NewPartitions(4, [[0], [0]])})

    assert len(admin.describe_topics([topic])[topic].partitions) == 4
    with pytest.raises(InvalidPartitionsError):
        admin.create_partitions({topic: 3})


def test_offsets_are_found_by_place_and_by_time(
    admin: AdminClient, topic: str, produce: Callable[..., None]
) -> None:
    first = TopicPartition(topic, 0)
    for timestamp in (1_000, 3_000, 2_000):
        produce(topic, "x", timestamp=timestamp)

    def offset(spec: int) -> int:
        return admin.list_offsets({first: spec})[first].offset

    assert offset(OffsetSpec.EARLIEST) == 0
    assert offset(OffsetSpec.LATEST) == 3
    assert offset(OffsetSpec.MAX_TIMESTAMP) == 1
    assert offset(1_500) == 1
    assert offset(9_000) == -1
    found = admin.list_offsets(
        {first: 1_500, TopicPartition(topic, 1): OffsetSpec.LATEST},
        isolation_level=IsolationLevel.READ_COMMITTED,
    )
    assert found[first].timestamp == 3_000 and found[first].leader_epoch == 0
    assert found[TopicPartition(topic, 1)].offset == 0


def test_unknown_partition_is_looked_for_until_the_time_is_over(
    admin: AdminClient, topic: str
) -> None:
    known, unknown = TopicPartition(topic, 0), TopicPartition(topic, 7)

    results = admin.list_offsets(
        {known: OffsetSpec.LATEST, unknown: OffsetSpec.LATEST}, timeout_ms=150, raise_errors=False
    )

    assert results[known].offset == 0
    with pytest.raises(RequestTimeoutError, match=str(unknown)):
        results[unknown]


def test_deleted_records_are_gone(
    admin: AdminClient, topic: str, produce: Callable[..., None]
) -> None:
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    produce(topic, *"abc")
    produce(topic, *"de", partition=1)

    assert admin.delete_records({first: 2, second: -1}) == {first: 2, second: 2}

    assert admin.list_offsets({first: OffsetSpec.EARLIEST})[first].offset == 2
    with pytest.raises(OffsetOutOfRangeError, match=str(first)):
        admin.delete_records({first: 4})


def test_single_settings_are_altered(admin: AdminClient, topic: str) -> None:
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)

    admin.incremental_alter_configs(
        {
            resource: [
                AlterConfigOp("retention.ms", "7000"),
                AlterConfigOp("cleanup.policy", "compact", AlterOperation.APPEND),
            ]
        }
    )
    altered = admin.describe_configs([resource])[resource]
    admin.incremental_alter_configs(
        {resource: [AlterConfigOp("retention.ms", None, AlterOperation.DELETE)]}
    )
    restored = admin.describe_configs([resource])[resource]

    assert altered["retention.ms"].value == "7000"
    assert altered["retention.ms"].source is ConfigSource.DYNAMIC_TOPIC_CONFIG
    assert altered["cleanup.policy"].value == "delete,compact"
    assert restored["retention.ms"].is_default
    assert restored["cleanup.policy"].value == "delete,compact"


def test_all_settings_are_replaced_by_the_older_form(admin: AdminClient, topic: str) -> None:
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    admin.incremental_alter_configs({resource: [AlterConfigOp("retention.ms", "7000")]})

    admin.alter_configs({resource: {"segment.bytes": "30000"}})

    described = admin.describe_configs([resource])[resource]
    assert described["segment.bytes"].value == "30000"
    assert described["retention.ms"].is_default


def test_wrong_setting_is_refused_and_validation_changes_nothing(
    admin: AdminClient, topic: str
) -> None:
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)

    with pytest.raises(InvalidConfigurationError, match="retention"):
        admin.incremental_alter_configs({resource: [AlterConfigOp("retention.ms", "soon")]})
    admin.incremental_alter_configs(
        {resource: [AlterConfigOp("retention.ms", "7000")]}, validate_only=True
    )

    assert admin.describe_configs([resource])[resource]["retention.ms"].is_default


def test_settings_of_brokers_and_topics_in_one_call(admin: AdminClient, topic: str) -> None:
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    unknown = ConfigResource(ConfigResourceType.TOPIC, "admin-no-such")

    results = admin.describe_configs(
        [resource, BROKER, ALL_BROKERS, unknown],
        include_synonyms=True,
        include_documentation=True,
        raise_errors=False,
    )

    assert isinstance(results.errors[unknown], UnknownTopicOrPartitionError)
    entry = results[resource]["segment.bytes"]
    assert entry.synonyms[-1].name == "log.segment.bytes"
    assert entry.documentation and entry.type is not None
    assert results[BROKER]["broker.id"].is_read_only
    assert "log.retention.ms" not in results[ALL_BROKERS]


def test_resource_of_a_broker_is_named_by_a_number() -> None:
    with pytest.raises(ValueError, match="BROKER 'zero'"):
        ConfigResource(ConfigResourceType.BROKER, "zero")
