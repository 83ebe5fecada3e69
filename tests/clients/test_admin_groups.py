"""AdminClient: consumer groups and their offsets."""

import uuid
from collections.abc import Callable, Iterator

import pytest

from kafkapy.clients.admin import (
    AdminClient,
    ConsumerGroupState,
    GroupType,
    MemberToRemove,
    NewTopic,
)
from kafkapy.clients.consumer import KafkaConsumer, OffsetAndMetadata
from kafkapy.common.errors import (
    GroupIdNotFoundError,
    GroupNotEmptyError,
    GroupSubscribedToTopicError,
    UnknownMemberIdError,
)
from kafkapy.common.types import TopicPartition
from tests.clients.admins import admin_client
from tests.clients.helpers import poll_until
from tests.compat.brokers import Broker

MakeConsumer = Callable[..., KafkaConsumer]


@pytest.fixture(scope="module")
def admin(broker: Broker) -> Iterator[AdminClient]:
    with admin_client(broker) as admin:
        yield admin


@pytest.fixture(scope="module")
def topic(admin: AdminClient) -> str:
    """With two partitions."""
    name = f"admin-{uuid.uuid4().hex}"
    admin.create_topics([NewTopic(name, 2, 1)])
    return name


@pytest.fixture
def group() -> str:
    return f"admin-{uuid.uuid4().hex}"


def join(make_consumer: MakeConsumer, topic: str, group: str, **settings: object) -> KafkaConsumer:
    consumer = make_consumer(topic, group_id=group, **settings)
    poll_until(lambda: consumer.assignment(), consumer)
    return consumer


def test_offsets_of_a_group_are_altered_listed_and_deleted(
    admin: AdminClient, topic: str, group: str
) -> None:
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)

    admin.alter_consumer_group_offsets(
        group, {first: OffsetAndMetadata(3, "note"), second: OffsetAndMetadata(0, "", 0)}
    )
    listed = admin.list_consumer_group_offsets(group)
    admin.delete_consumer_group_offsets(group, [first])

    assert listed == {first: OffsetAndMetadata(3, "note"), second: OffsetAndMetadata(0, "", 0)}
    left = admin.list_consumer_group_offsets(group, [first, second], require_stable=True)
    assert left == {first: None, second: OffsetAndMetadata(0, "", 0)}


def test_offsets_of_several_groups_in_one_call(admin: AdminClient, topic: str, group: str) -> None:
    first = TopicPartition(topic, 0)
    admin.alter_consumer_group_offsets(group, {first: OffsetAndMetadata(5)})
    admin.alter_consumer_group_offsets(f"{group}-2", {first: OffsetAndMetadata(6)})

    listed = admin.list_consumer_groups_offsets(
        {group: None, f"{group}-2": [first], f"{group}-none": None}
    )

    assert listed == {
        group: {first: OffsetAndMetadata(5)},
        f"{group}-2": {first: OffsetAndMetadata(6)},
        f"{group}-none": {},
    }


def test_group_with_members_is_described(
    admin: AdminClient, topic: str, group: str, make_consumer: MakeConsumer
) -> None:
    join(make_consumer, topic, group, client_id="a-client", group_instance_id="one")

    description = admin.describe_consumer_groups([group])[group]

    (member,) = description.members
    assert description.state is ConsumerGroupState.STABLE
    assert description.partition_assignor == "range"
    assert not description.is_simple_consumer_group
    assert description.coordinator.id == 0
    assert member.client_id == "a-client" and member.group_instance_id == "one"
    assert member.host.endswith("127.0.0.1")
    assert member.assignment == {TopicPartition(topic, 0), TopicPartition(topic, 1)}


def test_unknown_group_is_described_as_dead(admin: AdminClient, group: str) -> None:
    assert admin.describe_consumer_groups([group])[group].state is ConsumerGroupState.DEAD


def test_groups_are_listed_by_state_and_type(
    admin: AdminClient, topic: str, group: str, make_consumer: MakeConsumer
) -> None:
    join(make_consumer, topic, group)
    admin.alter_consumer_group_offsets(
        f"{group}-empty", {TopicPartition(topic, 0): OffsetAndMetadata(0)}
    )

    def listed(**filters: object) -> set[str]:
        return {g.group_id for g in admin.list_consumer_groups(**filters)} & {
            group,
            f"{group}-empty",
        }

    assert listed() == {group, f"{group}-empty"}
    assert listed(states=[ConsumerGroupState.EMPTY]) == {f"{group}-empty"}
    assert listed(group_types=[GroupType.CLASSIC]) == {group, f"{group}-empty"}
    assert listed(group_types=[GroupType.CONSUMER]) == set()
    (of_group,) = (g for g in admin.list_consumer_groups() if g.group_id == group)
    assert of_group.state is ConsumerGroupState.STABLE and not of_group.is_simple_consumer_group


def test_group_in_use_keeps_its_offsets_and_its_life(
    admin: AdminClient, topic: str, group: str, make_consumer: MakeConsumer
) -> None:
    consumer = join(make_consumer, topic, group)
    first = TopicPartition(topic, 0)
    consumer.commit_sync({first: OffsetAndMetadata(0)})

    with pytest.raises(UnknownMemberIdError, match=str(first)):
        admin.alter_consumer_group_offsets(group, {first: OffsetAndMetadata(1)})
    with pytest.raises(GroupSubscribedToTopicError, match=str(first)):
        admin.delete_consumer_group_offsets(group, [first])
    with pytest.raises(GroupNotEmptyError, match=group):
        admin.delete_consumer_groups([group])


def test_deleted_group_is_gone(admin: AdminClient, topic: str, group: str) -> None:
    admin.alter_consumer_group_offsets(group, {TopicPartition(topic, 0): OffsetAndMetadata(1)})

    results = admin.delete_consumer_groups([group, f"{group}-none"], raise_errors=False)

    assert results[group] is None
    assert isinstance(results.errors[f"{group}-none"], GroupIdNotFoundError)
    assert admin.list_consumer_group_offsets(group) == {}


def test_members_are_removed_one_by_one_or_all(
    admin: AdminClient, topic: str, group: str, make_consumer: MakeConsumer
) -> None:
    consumer = make_consumer(topic, group_id=group, group_instance_id="one")
    other = make_consumer(topic, group_id=group)
    poll_until(lambda: consumer.assignment() and other.assignment(), consumer, other)
    one, unknown = MemberToRemove("one"), MemberToRemove("two")

    results = admin.remove_members_from_consumer_group(group, [one, unknown], raise_errors=False)
    left = admin.describe_consumer_groups([group])[group].members
    admin.remove_members_from_consumer_group(group)

    assert results[one] is None and isinstance(results.errors[unknown], UnknownMemberIdError)
    assert [member.group_instance_id for member in left] == [None]
    assert admin.describe_consumer_groups([group])[group].members == ()
