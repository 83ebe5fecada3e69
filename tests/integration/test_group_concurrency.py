"""Many threads at one group coordinator, in real time: joins, syncs, commits, crashes, removals.

Each thread plays one member after another. Whatever happens in between, every request gets just
one answer, and all who are told of a generation are told the same.
"""

import random
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

import pytest

from kafkapy.common.config_def import parse
from kafkapy.common.errors import Errors
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.types import TopicPartition
from kafkapy.coordinator.group.group_coordinator import GroupCoordinator
from kafkapy.coordinator.group.group_coordinator_config import GroupCoordinatorConfig
from kafkapy.coordinator.group.group_joins import JoinGroup
from kafkapy.coordinator.group.group_results import (
    JoinGroupResult,
    MemberIdentity,
    SyncGroupResult,
)
from kafkapy.coordinator.group.offset_and_metadata import OffsetAndMetadata
from kafkapy.replication.transaction_verification import TransactionVerification
from kafkapy.utils.time import SystemTime
from tests.helpers.mock_time import MockTime
from tests.helpers.waiting import wait_until
from tests.unit.coordinator.group.harness import OFFSETS_PARTITION, RANGE
from tests.unit.replication.fake_verifier import FakeVerifier
from tests.unit.replication.harness import ReplicaHarness

THREADS = 8
LIVES = 25
DYNAMIC_GROUPS = ("dynamic-0", "dynamic-1")
STATIC_GROUP = "static"
SESSION_MS = 20_000
SHORT_SESSION_MS = 50  # of those who will vanish
ANSWER_TIMEOUT_S = 15
# What a member may be told at any time, because others join, leave, and remove it.
INTERRUPTED = (Errors.REBALANCE_IN_PROGRESS, Errors.UNKNOWN_MEMBER_ID, Errors.ILLEGAL_GENERATION)

Result = TypeVar("Result")


class Answer(Generic[Result]):
    """Where a callback puts its answer, and how many it has brought."""

    def __init__(self) -> None:
        self.results: list[Result] = []
        self._arrived = threading.Event()

    def __call__(self, result: Result) -> None:
        self.results.append(result)
        self._arrived.set()

    def wait(self) -> Result:
        assert self._arrived.wait(ANSWER_TIMEOUT_S), "a request is not answered"
        return self.results[0]


@dataclass(slots=True)
class Seen:
    """What members were told. Appended to by all threads."""

    answers: list[Answer] = field(default_factory=list)
    joins: list[tuple[str, JoinGroupResult]] = field(default_factory=list)
    acknowledged: dict[tuple[str, TopicPartition], int] = field(default_factory=dict)
    failures: list[BaseException] = field(default_factory=list)


class Stage:
    """The coordinator and its log."""

    def __init__(self, directory: Path, time: MockTime) -> None:
        self.replicas = ReplicaHarness(directory, time)
        config = parse(
            GroupCoordinatorConfig,
            {
                "offsets.topic.num.partitions": "1",
                "group.initial.rebalance.delay.ms": "0",
                "group.min.session.timeout.ms": str(SHORT_SESSION_MS),
            },
        )
        self.coordinator = GroupCoordinator(
            config,
            broker_id=1,
            replica_manager=self.replicas.replica_manager,
            transaction_verification=TransactionVerification(
                self.replicas.replica_manager, FakeVerifier(), lambda: True
            ),
            time=SystemTime(),
            metrics=self.replicas.metrics,
        )
        self.coordinator.startup(1)
        self.replicas.lead(OFFSETS_PARTITION)
        self.coordinator.on_election(0, 0)
        wait_until(lambda: self.coordinator.validate_group_status("g", ApiKeys.HEARTBEAT) is None)

    def close(self) -> None:
        self.coordinator.shutdown()
        self.replicas.close()


@pytest.fixture
def stage(tmp_path: Path, time: MockTime) -> Iterator[Stage]:
    created = Stage(tmp_path, time)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # threads take turns in the middle of everything
    yield created
    sys.setswitchinterval(interval)
    created.close()


class Player:
    """One thread and the members that it plays, one after the other."""

    def __init__(self, stage: Stage, seen: Seen, number: int) -> None:
        self._coordinator = stage.coordinator
        self._replica_manager = stage.replicas.replica_manager
        self._seen = seen
        self._random = random.Random(number)
        self._partition = TopicPartition("t", number)
        self._committed = 0
        self._instance_id: str | None = None

    def run(self) -> None:
        try:
            for _ in range(LIVES):
                self._instance_id = None
                self._live(self._random.choice(DYNAMIC_GROUPS))
                self._instance_id = f"instance-{self._partition.partition}"
                self._live(STATIC_GROUP)
        except BaseException as e:
            self._seen.failures.append(e)

    def _live(self, group: str) -> None:
        vanishes = self._random.random() < 0.15
        session_ms = SHORT_SESSION_MS if vanishes else SESSION_MS
        member_id = ""
        for _ in range(self._random.randint(1, 4)):
            joined = self._join(group, member_id, session_ms)
            if joined.error is Errors.MEMBER_ID_REQUIRED:
                if vanishes:
                    return
                joined = self._join(group, joined.member_id, session_ms)
            if joined.error is not Errors.NONE:
                assert joined.error in (*INTERRUPTED, Errors.FENCED_INSTANCE_ID), joined
                member_id = ""
                continue
            member_id = joined.member_id
            if self._sync(group, joined) and not vanishes:
                self._work(group, joined)
        if vanishes:
            return
        leaving = MemberIdentity(member_id, self._instance_id)
        result = self._call(lambda: self._coordinator.handle_leave_group(group, [leaving]))
        assert result.error is Errors.NONE
        assert {error for _, error in result.members} <= {Errors.NONE, Errors.UNKNOWN_MEMBER_ID}

    def _join(self, group: str, member_id: str, session_ms: int) -> JoinGroupResult:
        answer: Answer[JoinGroupResult] = Answer()
        self._seen.answers.append(answer)
        self._call(
            lambda: self._coordinator.handle_join_group(
                JoinGroup(
                    group_id=group,
                    member_id=member_id,
                    group_instance_id=self._instance_id,
                    client_id="client",
                    client_host="/127.0.0.1",
                    rebalance_timeout_ms=SESSION_MS,
                    session_timeout_ms=session_ms,
                    protocol_type="consumer",
                    protocols=[RANGE],
                    require_known_member_id=self._instance_id is None,
                ),
                answer,
            )
        )
        result = answer.wait()
        if result.error is Errors.NONE:
            self._seen.joins.append((group, result))
        return result

    def _sync(self, group: str, joined: JoinGroupResult) -> bool:
        """Whether the member has its assignment, which must be the one of its generation."""
        answer: Answer[SyncGroupResult] = Answer()
        self._seen.answers.append(answer)
        generation = joined.generation_id
        self._call(
            lambda: self._coordinator.handle_sync_group(
                group,
                generation_id=generation,
                member_id=joined.member_id,
                protocol_type="consumer",
                protocol_name=joined.protocol_name,
                group_instance_id=self._instance_id,
                assignments={
                    m.member_id: f"{generation} {m.member_id}".encode() for m in joined.members
                },
                callback=answer,
            )
        )
        result = answer.wait()
        if result.error is not Errors.NONE:
            assert result.error in INTERRUPTED, result
            return False
        if self._instance_id is None:
            assert result.assignment == f"{generation} {joined.member_id}".encode()
        return True

    def _work(self, group: str, joined: JoinGroupResult) -> None:
        for _ in range(self._random.randint(0, 3)):
            error = self._commit(group, joined)
            if error is Errors.NONE:
                error = self._call(
                    lambda: self._coordinator.handle_heartbeat(
                        group,
                        member_id=joined.member_id,
                        group_instance_id=self._instance_id,
                        generation_id=joined.generation_id,
                    )
                )
            if error is not Errors.NONE:
                assert error in INTERRUPTED, error
                return

    def _commit(self, group: str, joined: JoinGroupResult) -> Errors:
        answer: Answer[dict[TopicPartition, Errors]] = Answer()
        self._seen.answers.append(answer)
        self._committed += 1
        offset = self._committed
        self._call(
            lambda: self._coordinator.handle_commit_offsets(
                group,
                member_id=joined.member_id,
                group_instance_id=self._instance_id,
                generation_id=joined.generation_id,
                offsets={self._partition: OffsetAndMetadata(offset)},
                callback=answer,
            )
        )
        error = answer.wait()[self._partition]
        if error is Errors.NONE:
            self._seen.acknowledged[group, self._partition] = offset
        return error

    def _call(self, request: Callable[[], Result]) -> Result:
        result = request()
        self._replica_manager.try_complete_actions()  # as a request handler does
        return result


def remove_members(coordinator: GroupCoordinator, stopped: threading.Event) -> None:
    """An administrator who throws members out, whatever they are doing."""
    chooser = random.Random(99)
    while not stopped.wait(0.005):
        group = chooser.choice((*DYNAMIC_GROUPS, STATIC_GROUP))
        _, summary = coordinator.handle_describe_group(group)
        if summary.members:
            member_id = chooser.choice(summary.members).member_id
            coordinator.handle_leave_group(group, [MemberIdentity(member_id)])


def test_every_request_is_answered_once_and_generations_are_consistent(stage: Stage) -> None:
    seen = Seen()
    stopped = threading.Event()
    players = [
        threading.Thread(target=Player(stage, seen, number).run, name=f"player-{number}")
        for number in range(THREADS)
    ]
    administrator = threading.Thread(target=remove_members, args=(stage.coordinator, stopped))

    administrator.start()
    for player in players:
        player.start()
    for player in players:
        player.join()
    stopped.set()
    administrator.join()

    assert seen.failures == []
    assert Counter(len(answer.results) for answer in seen.answers) == {1: len(seen.answers)}
    check_generations(seen)
    for (group, partition), offset in seen.acknowledged.items():
        _, fetched = stage.coordinator.handle_fetch_offsets(group, [partition], require_stable=True)
        error, stored = fetched[partition]
        assert error is Errors.NONE and stored is not None and stored.offset == offset
    for group in (*DYNAMIC_GROUPS, STATIC_GROUP):
        # Those who vanished are noticed by and by.
        wait_until(lambda group=group: _state(stage.coordinator, group) == "Empty", message=group)


def check_generations(seen: Seen) -> None:
    """One leader for each, who was told of everybody."""
    generations: dict[tuple[str, int], list[JoinGroupResult]] = defaultdict(list)
    last: dict[str, int] = {}
    for group, joined in seen.joins:
        if group != STATIC_GROUP:  # there a member that returns joins a generation that is there
            generations[group, joined.generation_id].append(joined)
        assert joined.generation_id >= last.get(joined.member_id, 0)
        last[joined.member_id] = joined.generation_id
    assert len(generations) > THREADS
    for joins in generations.values():
        (leader_id,) = {joined.leader_id for joined in joins}
        listed = {
            frozenset(member.member_id for member in joined.members)
            for joined in joins
            if joined.members
        }
        assert all(joined.member_id == leader_id for joined in joins if joined.members)
        assert len(listed) <= 1
        for members in listed:
            assert {joined.member_id for joined in joins} <= members


def _state(coordinator: GroupCoordinator, group: str) -> str:
    return coordinator.handle_describe_group(group)[1].state
