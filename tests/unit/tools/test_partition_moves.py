"""What only a cluster of several brokers would show, with a cluster that is made up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast
from uuid import uuid4

import pytest

from kafkapy.clients.admin import (
    AdminClient,
    AlterConfigOp,
    AlterOperation,
    ClusterDescription,
    ConfigResource,
    PartitionReassignment,
    Results,
    TopicDescription,
    TopicPartitionInfo,
)
from kafkapy.common.types import TopicPartition
from kafkapy.metadata.broker import Node
from kafkapy.tools.partition_moves import PartitionMoves

_NODES = tuple(Node(number, "host", 9092) for number in range(4))
_FIRST, _SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


class FakeAdmin:
    """Topic t with two partitions on brokers 0 and 1; the second may be on its way to 1 and 2."""

    def __init__(self, *, is_moving: bool = False) -> None:
        self.under_way: dict[TopicPartition, PartitionReassignment] = {}
        if is_moving:
            self.under_way[_SECOND] = PartitionReassignment((0, 1, 2), (2,), (0,))
        self.asked: dict[TopicPartition, list[int] | None] = {}
        self.settings: dict[tuple[str, str], str] = {}

    def describe_cluster(self) -> ClusterDescription:
        return ClusterDescription("c", _NODES, _NODES[0])

    def describe_topics(self, topics: Iterable[str]) -> dict[str, TopicDescription]:
        partitions = tuple(
            TopicPartitionInfo(number, _NODES[0], _NODES[:2], _NODES[:2]) for number in range(2)
        )
        return {topic: TopicDescription(topic, uuid4(), False, partitions) for topic in topics}

    def list_topics(self, *, list_internal: bool) -> dict[str, None]:
        return {"t": None}

    def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, PartitionReassignment]:
        wanted = self.under_way if partitions is None else tuple(partitions)
        return {tp: move for tp, move in self.under_way.items() if tp in wanted}

    def alter_partition_reassignments(
        self, moves: Mapping[TopicPartition, list[int] | None], *, raise_errors: bool = True
    ) -> Results[TopicPartition, None]:
        self.asked.update(moves)
        return Results(tuple(moves), dict.fromkeys(moves), {})

    def incremental_alter_configs(
        self, changes: Mapping[ConfigResource, Iterable[AlterConfigOp]]
    ) -> None:
        for resource, ops in changes.items():
            for op in ops:
                if op.op_type is AlterOperation.DELETE:
                    self.settings.pop((resource.name, op.name), None)
                else:
                    self.settings[resource.name, op.name] = op.value or ""


def _moves(admin: FakeAdmin) -> PartitionMoves:
    return PartitionMoves(cast(AdminClient, admin))


def test_moves_under_way_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    _moves(FakeAdmin(is_moving=True)).list()

    assert capsys.readouterr().out.splitlines() == [
        "Current partition reassignments:",
        "t-1: replicas: 0,1,2. adding: 2. removing: 0.",
    ]


def test_replicas_are_throttled_where_they_are_and_where_they_go() -> None:
    admin = FakeAdmin()

    _moves(admin).execute({_FIRST: [1, 3]}, additional=False, throttle=500)

    assert admin.asked == {_FIRST: [1, 3]}
    assert admin.settings == {
        ("t", "leader.replication.throttled.replicas"): "0:0,0:1",
        ("t", "follower.replication.throttled.replicas"): "0:3",
        **{
            (broker, f"{role}.replication.throttled.rate"): "500"
            for broker in ("0", "1", "3")
            for role in ("leader", "follower")
        },
    }


def test_moves_under_way_are_throttled_with_additional_ones() -> None:
    admin = FakeAdmin(is_moving=True)

    _moves(admin).execute({_FIRST: [1, 3]}, additional=True, throttle=500)

    assert admin.settings["t", "leader.replication.throttled.replicas"] == "0:0,0:1,1:0,1:1"
    assert admin.settings["t", "follower.replication.throttled.replicas"] == "0:3,1:2"


def test_nothing_is_added_to_moves_under_way_unless_asked_for() -> None:
    admin = FakeAdmin(is_moving=True)

    with pytest.raises(SystemExit):
        _moves(admin).execute({_FIRST: [1, 3]}, additional=False, throttle=-1)

    assert admin.asked == {}


def test_a_broker_that_does_not_exist_is_refused() -> None:
    admin = FakeAdmin()

    with pytest.raises(SystemExit):
        _moves(admin).execute({_FIRST: [1, 9]}, additional=False, throttle=-1)

    assert admin.asked == {}


def test_throttles_stay_while_something_moves(capsys: pytest.CaptureFixture[str]) -> None:
    admin = FakeAdmin(is_moving=True)
    admin.settings["t", "leader.replication.throttled.replicas"] = "1:0"

    _moves(admin).verify({_FIRST: [0, 2], _SECOND: [1, 2]}, preserve_throttles=False)

    assert capsys.readouterr().out.splitlines() == [
        "Status of partition reassignment:",
        "There is no active reassignment of partition t-0, but replica set is 0,1 rather than 0,2.",
        "Reassignment of partition t-1 is still in progress.",
        "",
    ]
    assert admin.settings


def test_moves_are_cancelled_and_throttles_removed(capsys: pytest.CaptureFixture[str]) -> None:
    admin = FakeAdmin(is_moving=True)
    admin.settings["t", "leader.replication.throttled.replicas"] = "1:0"
    admin.settings["2", "leader.replication.throttled.rate"] = "500"

    _moves(admin).cancel({_FIRST: [0, 2], _SECOND: [1, 2]}, preserve_throttles=False)

    assert admin.asked == {_SECOND: None}
    assert admin.settings == {}
    assert capsys.readouterr().out.splitlines()[0] == (
        "Successfully cancelled partition reassignment for: t-1"
    )
