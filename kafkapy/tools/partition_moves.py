"""Moves of partitions between brokers, as kafka-reassign-partitions makes them."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence

from kafkapy.clients.admin import (
    AdminClient,
    AlterConfigOp,
    AlterOperation,
    ConfigResource,
    ConfigResourceType,
    PartitionReassignment,
)
from kafkapy.common.command_line import fail
from kafkapy.common.types import TopicPartition
from kafkapy.metadata.broker import BrokerMetadata, Node
from kafkapy.zk.replica_placement import assign_replicas_to_brokers

_BROKER_RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
_LOG_DIRS_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
_LEADER_REPLICAS = "leader.replication.throttled.replicas"
_FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"
ANY_LOG_DIR = "any"

Assignment = dict[TopicPartition, list[int]]


class PartitionMoves:
    """Works through an admin client. For one thread.

    Ports: org.apache.kafka.tools.reassign.ReassignPartitionsCommand
    """

    def __init__(self, admin: AdminClient) -> None:
        self._admin = admin  # constant after construction

    def list(self) -> None:
        moves = self._admin.list_partition_reassignments()
        if not moves:
            print("No partition reassignments found.")
            return
        print("Current partition reassignments:")
        for partition, move in sorted(moves.items()):
            print(f"{partition}: {_described(move)}")

    def generate(self, topics: Sequence[str], brokers: Sequence[int], *, by_racks: bool) -> None:
        current = self._replicas(topics)
        alive = [
            BrokerMetadata(node.id, node.rack if by_racks else None)
            for node in sorted(self._nodes(), key=lambda node: node.id)
            if node.id in brokers
        ]
        proposed: Assignment = {}
        for topic in topics:
            of_topic = {tp: replicas for tp, replicas in current.items() if tp.topic == topic}
            placed = assign_replicas_to_brokers(
                alive,
                len(of_topic),
                len(of_topic[TopicPartition(topic, 0)]),
                rng=random.Random(),
            )
            for number, replicas in placed.items():
                proposed[TopicPartition(topic, number)] = replicas
        print(f"Current partition replica assignment\n{as_json(current)}\n")
        print(f"Proposed partition reassignment configuration\n{as_json(proposed)}")

    def execute(self, target: Assignment, *, additional: bool, throttle: int) -> None:
        """A throttle below 0: none."""
        under_way = self._admin.list_partition_reassignments()
        if under_way and not additional:
            fail("Other reassignments are under way: add to them with --additional, or wait")
        known = {node.id for node in self._nodes()}
        for replicas in target.values():
            for broker in replicas:
                if broker not in known:
                    fail(f"There is no broker {broker}")
        current = self._current(target)
        print(f"Current partition replica assignment\n\n{as_json(current)}\n")
        print("Save this to use as the --reassignment-json-file option during rollback")
        if throttle >= 0:
            print(
                "The throttle stays until --verify finds all moves done: run it until then",
                file=sys.stderr,
            )
            self._throttle(_moves(under_way, current, target), throttle)
            print(f"The inter-broker throttle limit was set to {throttle} B/s")
        started = self._admin.alter_partition_reassignments(target, raise_errors=False)
        if started.errors:
            refused = "; ".join(f"{tp}: {error}" for tp, error in sorted(started.errors.items()))
            fail(f"Not all partitions could be reassigned: {refused}")
        print(f"Successfully started partition reassignment{_list(target)}")

    def verify(self, target: Assignment, *, preserve_throttles: bool) -> None:
        under_way = self._admin.list_partition_reassignments()
        current = self._current(target, may_be_missing=True)
        print("Status of partition reassignment:")
        for partition, replicas in sorted(target.items()):
            found = current.get(partition, [])
            if partition in under_way:
                print(f"Reassignment of partition {partition} is still in progress.")
            elif found == replicas:
                print(f"Reassignment of partition {partition} is completed.")
            else:
                print(
                    f"There is no active reassignment of partition {partition}, but replica set is"
                    f" {_joined(found)} rather than {_joined(replicas)}."
                )
        print()
        if not under_way and not preserve_throttles:
            self._clear_throttles(target)

    def cancel(self, target: Assignment, *, preserve_throttles: bool) -> None:
        under_way = self._admin.list_partition_reassignments(target)
        if under_way:
            self._admin.alter_partition_reassignments(dict.fromkeys(under_way))
            print(f"Successfully cancelled partition reassignment{_list(under_way, ':')}")
        else:
            print("None of the specified partition reassignments are active.")
        print("None of the specified partition moves are active.")
        if not preserve_throttles:
            self._clear_throttles(target)

    def _nodes(self) -> tuple[Node, ...]:
        return self._admin.describe_cluster().nodes

    def _replicas(self, topics: Iterable[str]) -> Assignment:
        return {
            TopicPartition(described.name, info.partition): [node.id for node in info.replicas]
            for described in self._admin.describe_topics(topics).values()
            for info in described.partitions
        }

    def _current(self, target: Assignment, *, may_be_missing: bool = False) -> Assignment:
        topics = {partition.topic for partition in target}
        if may_be_missing:
            topics &= self._admin.list_topics(list_internal=True).keys()
        replicas = self._replicas(sorted(topics))
        missing = [partition for partition in target if partition not in replicas]
        if missing and not may_be_missing:
            fail(f"There is no partition {missing[0]}")
        return {tp: replicas[tp] for tp in target if tp in replicas}

    def _throttle(
        self, moves: Mapping[TopicPartition, tuple[set[int], set[int]]], rate: int
    ) -> None:
        """The moves are from brokers to brokers."""
        leaders: dict[str, list[str]] = {}
        followers: dict[str, list[str]] = {}
        brokers: set[int] = set()
        for partition, (sources, destinations) in sorted(moves.items()):
            at = f"{partition.partition}:"
            leaders.setdefault(partition.topic, []).extend(f"{at}{id_}" for id_ in sorted(sources))
            new = sorted(destinations - sources)
            followers.setdefault(partition.topic, []).extend(f"{at}{id_}" for id_ in new)
            brokers |= sources | destinations
        self._admin.incremental_alter_configs(
            {
                ConfigResource(ConfigResourceType.TOPIC, topic): [
                    AlterConfigOp(_LEADER_REPLICAS, ",".join(leaders[topic])),
                    AlterConfigOp(_FOLLOWER_REPLICAS, ",".join(followers[topic])),
                ]
                for topic in leaders
            }
        )
        self._admin.incremental_alter_configs(
            {
                ConfigResource(ConfigResourceType.BROKER, str(broker)): [
                    AlterConfigOp(name, str(rate)) for name in _BROKER_RATES
                ]
                for broker in sorted(brokers)
            }
        )

    def _clear_throttles(self, target: Assignment) -> None:
        known = {node.id for node in self._nodes()}
        brokers = sorted(known.union(*target.values()))
        topics = sorted({partition.topic for partition in target})
        print(f"Clearing broker-level throttles on broker{_plural(brokers)} {_joined(brokers)}")
        names = [str(broker) for broker in brokers]
        self._delete(ConfigResourceType.BROKER, names, (*_BROKER_RATES, _LOG_DIRS_RATE))
        print(f"Clearing topic-level throttles on topic{_plural(topics)} {','.join(topics)}")
        self._delete(ConfigResourceType.TOPIC, topics, (_LEADER_REPLICAS, _FOLLOWER_REPLICAS))

    def _delete(
        self, kind: ConfigResourceType, names: Iterable[str], settings: Sequence[str]
    ) -> None:
        deletions = [AlterConfigOp(name, None, AlterOperation.DELETE) for name in settings]
        self._admin.incremental_alter_configs(
            {ConfigResource(kind, name): deletions for name in names}
        )


def as_json(assignment: Assignment) -> str:
    content = {
        "version": 1,
        "partitions": [
            {
                "topic": partition.topic,
                "partition": partition.partition,
                "replicas": replicas,
                "log_dirs": [ANY_LOG_DIR] * len(replicas),
            }
            for partition, replicas in sorted(assignment.items())
        ],
    }
    return json.dumps(content, separators=(",", ":"))


def _moves(
    under_way: Mapping[TopicPartition, PartitionReassignment],
    current: Assignment,
    target: Assignment,
) -> dict[TopicPartition, tuple[set[int], set[int]]]:
    """From which brokers to which each partition moves, those under way already included."""
    moves = {
        partition: (
            set(move.replicas) - set(move.adding_replicas),
            set(move.replicas) - set(move.removing_replicas),
        )
        for partition, move in under_way.items()
    }
    for partition, replicas in target.items():
        sources = moves[partition][0] if partition in moves else set(current[partition])
        moves[partition] = (sources, set(replicas))
    return moves


def _described(move: PartitionReassignment) -> str:
    text = f"replicas: {_joined(move.replicas)}."
    if move.adding_replicas:
        text += f" adding: {_joined(move.adding_replicas)}."
    if move.removing_replicas:
        text += f" removing: {_joined(move.removing_replicas)}."
    return text


def _joined(ids: Iterable[int]) -> str:
    return ",".join(map(str, ids))


def _plural(things: Collection[object]) -> str:
    return "" if len(things) == 1 else "s"


def _list(partitions: Collection[TopicPartition], colon: str = "") -> str:
    return f"{_plural(partitions)} for{colon} {','.join(map(str, sorted(partitions)))}"
