from __future__ import annotations

from collections.abc import Callable

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.types import TopicPartition
from kafkapy.controller.controller_events import ApiResult, ElectionResults, ElectionType
from kafkapy.purgatory.delayed_operation_purgatory import DelayedOperationPurgatory
from kafkapy.server.delayed_elect_leader import DelayedElectLeader
from kafkapy.server.leader_elections import LeaderElections
from kafkapy.utils.timer import TimerTask
from tests.helpers.mock_time import MockTime
from tests.helpers.mock_timer import MockTimer

A, B, C = (TopicPartition("t", index) for index in range(3))
TIMEOUT_MS = 1_000
REFUSED = ApiResult(Errors.ELECTION_NOT_NEEDED, "no")


class FakeState:
    def __init__(self, leader: int) -> None:
        self.leader = leader


class FakeMetadataCache:
    """Leaders as this broker was told of them."""

    def __init__(self) -> None:
        self.leaders: dict[TopicPartition, int] = {}

    def get_partition_info(self, topic: str, partition: int) -> FakeState | None:
        leader = self.leaders.get(TopicPartition(topic, partition))
        return None if leader is None else FakeState(leader)


class FakeController:
    """Answers when the test says so."""

    def __init__(self) -> None:
        self.callbacks: list[Callable[[ElectionResults], None]] = []

    def elect_leaders(self, partitions, election_type, callback) -> None:
        self.callbacks.append(callback)


class Elections:
    def __init__(self, time: MockTime) -> None:
        self.controller = FakeController()
        self.cache = FakeMetadataCache()
        self.timer = MockTimer(time)
        self.time = time
        purgatory: DelayedOperationPurgatory[DelayedElectLeader] = DelayedOperationPurgatory(
            "ElectLeader", self.timer, 0, reaper_enabled=False
        )
        self.elections = LeaderElections(self.controller, self.cache, purgatory, time)
        self.answers: list[dict[TopicPartition, ApiResult]] = []

    def elect(self, outcomes: ElectionResults, *, decided_after_ms: int = 0) -> None:
        self.elections.elect_leaders(
            outcomes.keys(),
            ElectionType.PREFERRED,
            timeout_ms=TIMEOUT_MS,
            callback=self.answers.append,
        )
        self.time.sleep(decided_after_ms)
        self.controller.callbacks.pop()(outcomes)

    def hear_of(self, partition: TopicPartition, leader: int) -> None:
        self.cache.leaders[partition] = leader
        self.elections.try_complete([partition])


@pytest.fixture
def elections(time: MockTime) -> Elections:
    return Elections(time)


def test_refusals_are_answered_at_once(elections: Elections) -> None:
    elections.elect({A: REFUSED})

    assert elections.answers == [{A: REFUSED}]


def test_leaders_that_are_known_already_are_answered_at_once(elections: Elections) -> None:
    elections.cache.leaders[A] = 1

    elections.elect({A: 1, B: REFUSED})

    assert elections.answers == [{A: ApiResult(), B: REFUSED}]


def test_answer_waits_until_this_broker_knows_all_new_leaders(elections: Elections) -> None:
    elections.cache.leaders[A] = 0
    elections.elect({A: 1, B: 2, C: REFUSED})

    elections.hear_of(A, 1)
    assert elections.answers == []
    elections.hear_of(A, 0)  # it has moved on; the election was good all the same
    elections.hear_of(B, 2)

    assert elections.answers == [{A: ApiResult(), B: ApiResult(), C: REFUSED}]


def test_leader_heard_of_just_before_the_time_out_is_set_is_not_missed(
    elections: Elections, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = elections.timer.add

    def add_after_news(task: TimerTask) -> None:
        elections.hear_of(A, 1)
        add(task)

    monkeypatch.setattr(elections.timer, "add", add_after_news)

    elections.elect({A: 1})

    assert elections.answers == [{A: ApiResult()}]


def test_leader_not_heard_of_in_time_is_told_as_such(elections: Elections) -> None:
    elections.elect({A: 1, B: 2}, decided_after_ms=600)
    elections.hear_of(A, 1)

    elections.timer.advance_clock(TIMEOUT_MS - 600 - 1)
    assert elections.answers == []
    elections.timer.advance_clock(1)

    assert elections.answers == [{A: ApiResult(), B: ApiResult(Errors.REQUEST_TIMED_OUT)}]
