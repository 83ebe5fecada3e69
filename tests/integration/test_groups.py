"""Consumer groups over the wire, in every version."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.messages.delete_groups import DeleteGroupsRequest
from kafkapy.common.protocol.messages.delete_topics import DeleteTopicsRequest
from kafkapy.common.protocol.messages.describe_groups import DescribeGroupsRequest
from kafkapy.common.protocol.messages.find_coordinator import FindCoordinatorRequest
from kafkapy.common.protocol.messages.heartbeat import HeartbeatRequest
from kafkapy.common.protocol.messages.join_group import JoinGroupRequest
from kafkapy.common.protocol.messages.leave_group import LeaveGroupRequest
from kafkapy.common.protocol.messages.list_groups import ListGroupsRequest
from kafkapy.common.protocol.messages.offset_commit import OffsetCommitRequest
from kafkapy.common.protocol.messages.offset_delete import OffsetDeleteRequest
from kafkapy.common.protocol.messages.offset_fetch import OffsetFetchRequest
from kafkapy.common.protocol.messages.sync_group import SyncGroupRequest
from tests.helpers.api import create_topic
from tests.helpers.broker import Broker, Client, running_broker
from tests.helpers.waiting import wait_until

NONE = Errors.NONE.code
_numbers = itertools.count()


def versions(api_key: ApiKeys) -> range:
    return range(api_key.min_version, api_key.max_version + 1)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with running_broker(
        tmp_path_factory.mktemp("groups"), {"group.initial.rebalance.delay.ms": "0"}
    ) as started:
        yield started


@pytest.fixture
def client(broker: Broker) -> Iterator[Client]:
    with broker.client() as connected:
        yield connected


@pytest.fixture
def group(client: Client) -> str:
    """A group whose coordinator is ready."""
    name = f"group-{next(_numbers)}"
    await_coordinator(client, name)
    return name


def await_coordinator(client: Client, group: str) -> None:
    def ready() -> bool:
        found = client.request(FindCoordinatorRequest(key_type=0, coordinator_keys=[group]))
        if found.coordinators[0].error_code != NONE:
            return False
        fetched = client.request(
            OffsetFetchRequest(
                groups=[OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None)]
            )
        )
        return fetched.groups[0].error_code == NONE

    wait_until(ready)


def join(
    client: Client, group: str, *, version: int = 9, member_id: str = "", **fields: Any
) -> Any:
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000 if version >= 1 else -1,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"\0" * 10)],
        **fields,
    )
    response = client.request(request, version)
    if response.error_code == Errors.MEMBER_ID_REQUIRED.code:
        assert version >= 4
        request.member_id = response.member_id
        response = client.request(request, version)
    return response


def sync(
    client: Client, group: str, member_id: str, *, version: int = 5, generation: int = 1
) -> Any:
    return client.request(
        SyncGroupRequest(
            group_id=group,
            generation_id=generation,
            member_id=member_id,
            protocol_type="consumer" if version >= 5 else None,
            protocol_name="range" if version >= 5 else None,
            assignments=[
                SyncGroupRequest.SyncGroupRequestAssignment(member_id=member_id, assignment=b"mine")
            ],
        ),
        version,
    )


def stable_group(client: Client, group: str) -> str:
    joined = join(client, group)
    assert sync(client, group, joined.member_id).error_code == NONE
    return joined.member_id


def leave(client: Client, group: str, member_id: str, *, version: int = 5) -> Any:
    request = (
        LeaveGroupRequest(
            group_id=group, members=[LeaveGroupRequest.MemberIdentity(member_id=member_id)]
        )
        if version >= 3
        else LeaveGroupRequest(group_id=group, member_id=member_id)
    )
    return client.request(request, version)


def commit(
    client: Client, group: str, topic: str, offset: int, *, version: int = 9, **fields: Any
) -> int:
    response = client.request(
        OffsetCommitRequest(
            group_id=group,
            topics=[
                OffsetCommitRequest.OffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        OffsetCommitRequest.OffsetCommitRequestPartition(
                            partition_index=0, committed_offset=offset, committed_metadata="note"
                        )
                    ],
                )
            ],
            **fields,
        ),
        version,
    )
    return response.topics[0].partitions[0].error_code


def fetch(client: Client, group: str, topic: str | None, *, version: int = 9) -> Any:
    """The partitions of the answer: of one topic, or (None) of whatever has an offset."""
    if version >= 8:
        wanted = OffsetFetchRequest.OffsetFetchRequestTopics(
            name=topic or "", partition_indexes=[0]
        )
        response = client.request(
            OffsetFetchRequest(
                groups=[
                    OffsetFetchRequest.OffsetFetchRequestGroup(
                        group_id=group, topics=[wanted] if topic else None
                    )
                ]
            ),
            version,
        )
        assert response.groups[0].error_code == NONE
        return [p for t in response.groups[0].topics for p in t.partitions]
    single = OffsetFetchRequest.OffsetFetchRequestTopic(name=topic or "", partition_indexes=[0])
    response = client.request(
        OffsetFetchRequest(group_id=group, topics=[single] if topic else None), version
    )
    assert response.error_code == NONE
    return [p for t in response.topics for p in t.partitions]


@pytest.mark.parametrize("version", versions(ApiKeys.JOIN_GROUP))
def test_member_joins_in_every_version(client: Client, group: str, version: int) -> None:
    joined = join(client, group, version=version)

    assert (joined.error_code, joined.generation_id) == (NONE, 1)
    assert joined.leader == joined.member_id == joined.members[0].member_id
    assert joined.protocol_name == "range"
    assert joined.protocol_type == ("consumer" if version >= 7 else None)


@pytest.mark.parametrize("version", versions(ApiKeys.JOIN_GROUP))
def test_refused_join_is_encoded_in_every_version(client: Client, version: int) -> None:
    response = join(client, "", version=version)

    assert response.error_code == Errors.INVALID_GROUP_ID.code
    assert response.protocol_name == (None if version >= 7 else "")


@pytest.mark.parametrize("version", versions(ApiKeys.SYNC_GROUP))
def test_member_syncs_in_every_version(client: Client, group: str, version: int) -> None:
    member_id = join(client, group).member_id

    synced = sync(client, group, member_id, version=version)

    assert (synced.error_code, synced.assignment) == (NONE, b"mine")


def test_sync_must_name_its_protocol_from_version_5(client: Client, group: str) -> None:
    member_id = join(client, group).member_id

    response = client.request(
        SyncGroupRequest(group_id=group, generation_id=1, member_id=member_id), 5
    )

    assert response.error_code == Errors.INCONSISTENT_GROUP_PROTOCOL.code


@pytest.mark.parametrize("version", versions(ApiKeys.HEARTBEAT))
def test_heartbeat_in_every_version(client: Client, group: str, version: int) -> None:
    member_id = stable_group(client, group)

    def heartbeat(generation: int) -> int:
        request = HeartbeatRequest(group_id=group, generation_id=generation, member_id=member_id)
        return client.request(request, version).error_code

    assert heartbeat(1) == NONE
    assert heartbeat(2) == Errors.ILLEGAL_GENERATION.code


@pytest.mark.parametrize("version", versions(ApiKeys.LEAVE_GROUP))
def test_member_leaves_in_every_version(client: Client, group: str, version: int) -> None:
    member_id = stable_group(client, group)

    first = leave(client, group, member_id, version=version)
    again = leave(client, group, member_id, version=version)

    unknown = Errors.UNKNOWN_MEMBER_ID.code
    if version >= 3:
        assert (first.error_code, first.members[0].error_code) == (NONE, NONE)
        assert (again.error_code, again.members[0].error_code) == (NONE, unknown)
    else:
        assert (first.error_code, again.error_code) == (NONE, unknown)


@pytest.mark.parametrize("version", versions(ApiKeys.OFFSET_COMMIT))
def test_offset_is_committed_in_every_version(client: Client, group: str, version: int) -> None:
    topic = create_topic(client)

    assert commit(client, group, topic, 42, version=version) == NONE

    (partition,) = fetch(client, group, topic)
    assert (partition.committed_offset, partition.metadata) == (42, "note")


@pytest.mark.parametrize("version", versions(ApiKeys.OFFSET_FETCH))
def test_offset_is_fetched_in_every_version(client: Client, group: str, version: int) -> None:
    topic, other = create_topic(client), create_topic(client)
    commit(client, group, topic, 42)

    (found,) = fetch(client, group, topic, version=version)
    (missing,) = fetch(client, group, other, version=version)

    assert (found.committed_offset, found.metadata, found.error_code) == (42, "note", NONE)
    assert (missing.committed_offset, missing.metadata, missing.error_code) == (-1, "", NONE)
    if version >= 2:
        assert fetch(client, group, None, version=version) == [found]


def test_offset_of_unknown_topic_is_refused(client: Client, group: str) -> None:
    assert commit(client, group, "no-such-topic", 1) == Errors.UNKNOWN_TOPIC_OR_PARTITION.code


def test_offsets_of_a_deleted_topic_go_with_it(client: Client, group: str) -> None:
    topic, kept = create_topic(client), create_topic(client)
    commit(client, group, topic, 1)
    commit(client, group, kept, 2)

    client.request(DeleteTopicsRequest(topic_names=[topic], timeout_ms=10_000), 5)

    wait_until(lambda: [p.committed_offset for p in fetch(client, group, None)] == [2])


def test_offset_is_deleted(client: Client, group: str) -> None:
    topic = create_topic(client)
    commit(client, group, topic, 1)
    partition = OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=0)

    response = client.request(
        OffsetDeleteRequest(
            group_id=group,
            topics=[
                OffsetDeleteRequest.OffsetDeleteRequestTopic(name=name, partitions=[partition])
                for name in (topic, "no-such-topic")
            ],
        )
    )

    assert response.error_code == NONE
    assert [t.partitions[0].error_code for t in response.topics] == [
        NONE,
        Errors.UNKNOWN_TOPIC_OR_PARTITION.code,
    ]
    assert fetch(client, group, None) == []


@pytest.mark.parametrize("version", versions(ApiKeys.DESCRIBE_GROUPS))
def test_group_is_described_in_every_version(client: Client, group: str, version: int) -> None:
    member_id = stable_group(client, group)

    response = client.request(DescribeGroupsRequest(groups=[group, "no-such-group"]), version)

    described, missing = response.groups
    assert (described.error_code, described.group_state) == (NONE, "Stable")
    assert (described.protocol_type, described.protocol_data) == ("consumer", "range")
    (member,) = described.members
    assert (member.member_id, member.client_id) == (member_id, "test")
    assert (member.client_host, member.member_assignment) == ("/127.0.0.1", b"mine")
    assert (missing.error_code, missing.group_state) == (NONE, "Dead")


def test_authorized_operations_are_described_when_asked_for(client: Client, group: str) -> None:
    request = DescribeGroupsRequest(groups=[group], include_authorized_operations=True)

    (described,) = client.request(request).groups

    assert described.authorized_operations == (1 << 3) + (1 << 6) + (1 << 8)


@pytest.mark.parametrize("version", versions(ApiKeys.LIST_GROUPS))
def test_groups_are_listed_in_every_version(client: Client, group: str, version: int) -> None:
    stable_group(client, group)

    listed = {g.group_id: g for g in client.request(ListGroupsRequest(), version).groups}

    assert listed[group].protocol_type == "consumer"
    assert listed[group].group_state == ("Stable" if version >= 4 else "")
    assert listed[group].group_type == ("classic" if version >= 5 else "")


def test_groups_are_listed_by_state_and_type(client: Client, group: str) -> None:
    stable_group(client, group)

    def listed(**filters: list[str]) -> bool:
        found = client.request(ListGroupsRequest(**filters))
        return group in {g.group_id for g in found.groups}

    assert listed(states_filter=["stable"], types_filter=["Classic"])
    assert not listed(states_filter=["Empty"])
    assert not listed(types_filter=["consumer"])


@pytest.mark.parametrize("version", versions(ApiKeys.DELETE_GROUPS))
def test_group_is_deleted_in_every_version(client: Client, group: str, version: int) -> None:
    member_id = stable_group(client, group)
    request = DeleteGroupsRequest(groups_names=[group])
    in_use = client.request(request, version).results[0].error_code

    leave(client, group, member_id)
    deleted = client.request(request, version).results[0].error_code
    missing = client.request(request, version).results[0].error_code

    assert in_use == Errors.NON_EMPTY_GROUP.code
    assert deleted == NONE
    assert missing == Errors.GROUP_ID_NOT_FOUND.code


def test_groups_and_offsets_survive_a_restart(tmp_path) -> None:
    with running_broker(tmp_path, {"group.initial.rebalance.delay.ms": "0"}) as own:
        with own.client() as client:
            await_coordinator(client, "g")
            topic = create_topic(client)
            member_id = stable_group(client, "g")
            fields = {"member_id": member_id, "generation_id_or_member_epoch": 1}
            assert commit(client, "g", topic, 42, **fields) == NONE

        own.restart()

        with own.client() as client:
            await_coordinator(client, "g")
            assert [p.committed_offset for p in fetch(client, "g", topic)] == [42]
            heartbeat = HeartbeatRequest(group_id="g", generation_id=1, member_id=member_id)
            assert client.request(heartbeat).error_code == NONE
            assert sync(client, "g", member_id).assignment == b"mine"
