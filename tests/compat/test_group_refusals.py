"""Requests to groups that are wrong in one way each: the codes are those of Apache Kafka.

KAFKAPY_COMPAT_BROKER=apache asks Apache Kafka itself.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.delete_groups import DeleteGroupsRequest
from kafkapy.common.protocol.messages.find_coordinator import FindCoordinatorRequest
from kafkapy.common.protocol.messages.heartbeat import HeartbeatRequest
from kafkapy.common.protocol.messages.join_group import JoinGroupRequest
from kafkapy.common.protocol.messages.leave_group import LeaveGroupRequest
from kafkapy.common.protocol.messages.offset_commit import OffsetCommitRequest
from kafkapy.common.protocol.messages.offset_delete import OffsetDeleteRequest
from kafkapy.common.protocol.messages.offset_fetch import OffsetFetchRequest
from kafkapy.common.protocol.messages.sync_group import SyncGroupRequest
from kafkapy.common.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.compat.brokers import Broker
from tests.helpers.broker import Client
from tests.helpers.transactions import TransactionalProducer, until_settled
from tests.helpers.waiting import wait_until

INSTANCE = "instance"
SESSION_TIMEOUT_MS = 60_000
UNKNOWN = Errors.UNKNOWN_MEMBER_ID
FENCED = Errors.FENCED_INSTANCE_ID
ILLEGAL = Errors.ILLEGAL_GENERATION
REBALANCING = Errors.REBALANCE_IN_PROGRESS
INCONSISTENT = Errors.INCONSISTENT_GROUP_PROTOCOL
INVALID_GROUP = Errors.INVALID_GROUP_ID
NOT_FOUND = Errors.GROUP_ID_NOT_FOUND


@dataclass(frozen=True, slots=True)
class Who:
    """What a request says of its sender."""

    group_id: str
    member_id: str = ""
    generation_id: int = -1
    instance_id: str | None = None
    protocol_type: str = "consumer"
    protocol: str = "range"
    session_timeout_ms: int = SESSION_TIMEOUT_MS


class Groups:
    """One connection and the requests, each answered by an error. Not thread-safe."""

    def __init__(self, client: Client, topic: str) -> None:
        self.client = client
        self.producer: TransactionalProducer | None = None
        self._topic = topic

    def join_request(self, who: Who) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=who.group_id,
            session_timeout_ms=who.session_timeout_ms,
            rebalance_timeout_ms=SESSION_TIMEOUT_MS,
            member_id=who.member_id,
            group_instance_id=who.instance_id,
            protocol_type=who.protocol_type,
            protocols=[
                JoinGroupRequest.JoinGroupRequestProtocol(name=who.protocol, metadata=bytes(10))
            ],
        )

    def join(self, who: Who) -> Errors:
        return _error(self.client.request(self.join_request(who), 9))

    def sync(self, who: Who, assignments: Mapping[str, bytes] | None = None) -> Errors:
        return _error(
            self.client.request(
                SyncGroupRequest(
                    group_id=who.group_id,
                    generation_id=who.generation_id,
                    member_id=who.member_id,
                    group_instance_id=who.instance_id,
                    protocol_type=who.protocol_type,
                    protocol_name=who.protocol,
                    assignments=[
                        SyncGroupRequest.SyncGroupRequestAssignment(member_id=m, assignment=a)
                        for m, a in (assignments or {}).items()
                    ],
                ),
                5,
            )
        )

    def heartbeat(self, who: Who) -> Errors:
        return _error(
            self.client.request(
                HeartbeatRequest(
                    group_id=who.group_id,
                    generation_id=who.generation_id,
                    member_id=who.member_id,
                    group_instance_id=who.instance_id,
                ),
                4,
            )
        )

    def leave(self, who: Who) -> Errors:
        identity = LeaveGroupRequest.MemberIdentity(
            member_id=who.member_id, group_instance_id=who.instance_id
        )
        response = self.client.request(
            LeaveGroupRequest(group_id=who.group_id, members=[identity]), 5
        )
        return _error(response.members[0] if response.members else response)

    def commit(self, who: Who) -> Errors:
        partition = OffsetCommitRequest.OffsetCommitRequestPartition(
            partition_index=0, committed_offset=9, committed_metadata=""
        )
        topic = OffsetCommitRequest.OffsetCommitRequestTopic(
            name=self._topic, partitions=[partition]
        )
        response = self.client.request(
            OffsetCommitRequest(
                group_id=who.group_id,
                generation_id_or_member_epoch=who.generation_id,
                member_id=who.member_id,
                group_instance_id=who.instance_id,
                topics=[topic],
            ),
            8,
        )
        return _error(response.topics[0].partitions[0])

    def txn_commit(self, who: Who) -> Errors:
        partition = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=9, committed_metadata=""
        )
        topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
            name=self._topic, partitions=[partition]
        )
        assert self.producer is not None
        response = self.client.request(
            TxnOffsetCommitRequest(
                transactional_id=self.producer.transactional_id,
                group_id=who.group_id,
                producer_id=self.producer.producer_id,
                producer_epoch=self.producer.epoch,
                generation_id=who.generation_id,
                member_id=who.member_id,
                group_instance_id=who.instance_id,
                topics=[topic],
            ),
            3,
        )
        return _error(response.topics[0].partitions[0])

    def delete_offsets(self, who: Who) -> Errors:
        partition = OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=0)
        topic = OffsetDeleteRequest.OffsetDeleteRequestTopic(
            name=self._topic, partitions=[partition]
        )
        return _error(
            self.client.request(OffsetDeleteRequest(group_id=who.group_id, topics=[topic]), 0)
        )

    def delete(self, who: Who) -> Errors:
        response = self.client.request(DeleteGroupsRequest(groups_names=[who.group_id]), 2)
        return _error(response.results[0])

    def offsets(self, group_id: str) -> Any:
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group_id, topics=None)]
        )
        return self.client.request(request, 8).groups[0]


def _error(response: Any) -> Errors:
    return Errors.for_code(response.error_code)


@pytest.fixture
def connect(broker: Broker, make_topic: Callable[..., str]) -> Iterator[Callable[[], Groups]]:
    """As many connections as members wait at once."""
    topic = make_topic()
    clients: list[Client] = []

    def connect() -> Groups:
        clients.append(Client(broker.address))
        return Groups(clients[-1], topic)

    yield connect
    for client in clients:
        client.close()


def begin_transaction(groups: Groups, *group_ids: str) -> TransactionalProducer:
    """One that may commit offsets of these groups."""
    producer = TransactionalProducer(groups.client, f"refusals-{uuid.uuid4().hex}").start()
    for group_id in group_ids:
        assert until_settled(partial(producer.add_offsets, group_id)) is Errors.NONE
    return producer


def new_group(groups: Groups) -> str:
    """Whose coordinator is ready."""
    group_id = f"refusals-{uuid.uuid4().hex}"
    find = FindCoordinatorRequest(key_type=0, coordinator_keys=[group_id])
    wait_until(lambda: _error(groups.client.request(find, 4).coordinators[0]) is Errors.NONE)
    wait_until(lambda: _error(groups.offsets(group_id)) is Errors.NONE)
    return group_id


def stable_group(connect: Callable[[], Groups]) -> tuple[Groups, Who, Who]:
    """A dynamic leader and an instance, in generation 2."""
    groups, other = connect(), connect()
    group_id = new_group(groups)
    who = Who(group_id)
    first = groups.client.request(groups.join_request(who), 9)
    assert _error(first) is Errors.MEMBER_ID_REQUIRED
    dynamic = replace(who, member_id=first.member_id, generation_id=1)
    assert groups.join(dynamic) is Errors.NONE
    assert groups.sync(dynamic, {dynamic.member_id: b"1"}) is Errors.NONE
    other.client.send(other.join_request(replace(who, instance_id=INSTANCE)), 9)
    wait_until(lambda: groups.heartbeat(dynamic) is REBALANCING)
    assert groups.join(dynamic) is Errors.NONE
    joined = other.client.receive()
    dynamic = replace(dynamic, generation_id=2)
    static = replace(dynamic, member_id=joined.member_id, instance_id=INSTANCE, generation_id=2)
    assert groups.sync(dynamic, {dynamic.member_id: b"1", static.member_id: b"2"}) is Errors.NONE
    assert other.sync(static) is Errors.NONE
    return groups, dynamic, static


def test_wrong_senders_get_kafkas_errors(connect: Callable[[], Groups]) -> None:
    groups, dynamic, static = stable_group(connect)
    assert groups.join(replace(static, member_id="")) is Errors.NONE  # it has come back
    of_members = (
        groups.join, groups.sync, groups.heartbeat, groups.leave, groups.commit, groups.txn_commit
    )  # fmt: skip
    with_generation = (groups.sync, groups.heartbeat, groups.commit, groups.txn_commit)
    nobody = replace(dynamic, member_id="nobody")
    elsewhere = replace(dynamic, group_id=f"unknown-{uuid.uuid4().hex}")
    nameless = replace(dynamic, group_id="")
    groups.producer = begin_transaction(
        groups, dynamic.group_id, elsewhere.group_id, nameless.group_id
    )
    expected = [
        *((api, nobody, UNKNOWN) for api in of_members),
        *((api, replace(dynamic, member_id=""), UNKNOWN) for api in of_members[1:]),
        *((api, replace(dynamic, instance_id="other"), UNKNOWN) for api in of_members),
        *((api, static, FENCED) for api in of_members),
        *((api, replace(dynamic, instance_id=INSTANCE), FENCED) for api in of_members),
        *(
            (api, replace(dynamic, generation_id=generation), ILLEGAL)
            for api in with_generation
            for generation in (1, 3, -1)
        ),
        (groups.commit, elsewhere, ILLEGAL),
        *((api, elsewhere, UNKNOWN) for api in of_members if api != groups.commit),
        *((api, nameless, INVALID_GROUP) for api in of_members if api != groups.commit),
        (groups.commit, nameless, ILLEGAL),
        (groups.join, replace(dynamic, session_timeout_ms=1), Errors.INVALID_SESSION_TIMEOUT),
        (groups.join, replace(dynamic, protocol_type="connect"), INCONSISTENT),
        (groups.join, replace(dynamic, protocol="sticky"), INCONSISTENT),
        (groups.sync, replace(dynamic, protocol_type="connect"), INCONSISTENT),
        (groups.sync, replace(dynamic, protocol="sticky"), INCONSISTENT),
        (groups.delete_offsets, nameless, INVALID_GROUP),
        (groups.delete_offsets, Who(f"unknown-{uuid.uuid4().hex}"), NOT_FOUND),
        (groups.delete, nameless, NOT_FOUND),
        (groups.delete, Who(f"unknown-{uuid.uuid4().hex}"), NOT_FOUND),
        (groups.delete, dynamic, Errors.NON_EMPTY_GROUP),
    ]

    answers = [(api.__name__, who, api(who)) for api, who, _ in expected]

    assert answers == [(api.__name__, who, error) for api, who, error in expected]
    assert groups.heartbeat(dynamic) is Errors.NONE
    assert groups.offsets(dynamic.group_id).topics == []
    groups.producer.abort()


def test_states_of_a_group_get_kafkas_errors(connect: Callable[[], Groups]) -> None:
    groups, dynamic, static = stable_group(connect)
    waiting = connect()
    waiting.client.send(waiting.join_request(dynamic), 9)
    wait_until(lambda: groups.heartbeat(static) is REBALANCING)

    preparing = [groups.sync(static), groups.commit(static), groups.delete(static)]
    assert groups.join(static) is Errors.NONE
    assert _error(waiting.client.receive()) is Errors.NONE
    dynamic, static = replace(dynamic, generation_id=3), replace(static, generation_id=3)
    completing = [groups.heartbeat(static), groups.commit(static), groups.delete(static)]
    gone = [groups.leave(dynamic), groups.leave(static)]
    empty = [
        api(dynamic)
        for api in (groups.join, groups.sync, groups.heartbeat, groups.leave, groups.commit)
    ]
    deleted = [groups.delete(dynamic), groups.delete(dynamic)]

    assert preparing == [REBALANCING, Errors.NONE, Errors.NON_EMPTY_GROUP]
    assert completing == [Errors.NONE, REBALANCING, Errors.NON_EMPTY_GROUP]
    assert gone == [Errors.NONE, Errors.NONE]
    assert empty == [UNKNOWN] * 5
    assert deleted == [Errors.NONE, NOT_FOUND]


def test_commit_of_a_member_that_has_left_is_refused(connect: Callable[[], Groups]) -> None:
    """In the order in which librdkafka sends both when it is closed during a rebalance."""
    groups, dynamic, static = stable_group(connect)
    assert groups.leave(dynamic) is Errors.NONE

    assert groups.commit(dynamic) is UNKNOWN
    assert groups.commit(replace(dynamic, member_id="")) is UNKNOWN
    assert groups.leave(static) is Errors.NONE
    assert groups.commit(replace(static, member_id="", instance_id=None)) is UNKNOWN
    assert groups.offsets(dynamic.group_id).topics == []
