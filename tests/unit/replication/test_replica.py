import pytest

from kafkapy.common.types import TopicPartition
from kafkapy.replication.replica import Replica
from kafkapy.storage.log_offset_metadata import LogOffsetMetadata

MAX_LAG_MS = 1000


@pytest.fixture
def replica() -> Replica:
    replica = Replica(2, TopicPartition("t", 0))
    replica.reset_state(now_ms=0, leader_end_offset=0, is_new_leader=True, is_in_sync=False)
    return replica


def fetch(replica: Replica, offset: int, *, at_ms: int, leader_end: int) -> None:
    replica.update_fetch_state(
        LogOffsetMetadata(offset),
        start_offset=1,
        fetch_time_ms=at_ms,
        leader_end_offset=leader_end,
        broker_epoch=7,
    )


def test_fetch_from_the_leaders_end_is_caught_up_at_that_time(replica):
    fetch(replica, 10, at_ms=5000, leader_end=10)

    assert replica.state.last_caught_up_time_ms == 5000
    assert replica.state.log_end_offset == 10
    assert replica.state.log_start_offset == 1
    assert replica.state.broker_epoch == 7


def test_fetch_from_where_the_leader_was_is_caught_up_at_the_fetch_before(replica):
    fetch(replica, 3, at_ms=5000, leader_end=10)
    fetch(replica, 10, at_ms=6000, leader_end=20)

    assert replica.state.last_caught_up_time_ms == 5000


def test_fetch_that_falls_short_does_not_count_as_caught_up(replica):
    fetch(replica, 3, at_ms=5000, leader_end=10)
    fetch(replica, 9, at_ms=6000, leader_end=20)

    assert replica.state.last_caught_up_time_ms == 0


@pytest.mark.parametrize(
    ("leader_end", "now_ms", "caught_up"),
    [(10, 999_999, True), (11, 6000, True), (11, 6001, False)],
    ids=["same end, whenever", "behind, within the lag", "behind for too long"],
)
def test_caught_up_by_offset_or_by_time(replica, leader_end, now_ms, caught_up):
    fetch(replica, 10, at_ms=5000, leader_end=10)

    state = replica.state

    assert state.is_caught_up(leader_end, now_ms=now_ms, max_lag_ms=MAX_LAG_MS) is caught_up


@pytest.mark.parametrize(("is_in_sync", "since_ms"), [(True, 4000), (False, 0)])
def test_new_leader_knows_nothing_but_who_is_in_sync(replica, is_in_sync, since_ms):
    fetch(replica, 10, at_ms=3000, leader_end=10)

    replica.reset_state(
        now_ms=4000, leader_end_offset=10, is_new_leader=True, is_in_sync=is_in_sync
    )

    assert replica.state.log_end_offset == -1
    assert replica.state.last_caught_up_time_ms == since_ms


def test_same_leader_in_a_new_epoch_keeps_the_offsets(replica):
    fetch(replica, 10, at_ms=3000, leader_end=12)

    replica.reset_state(now_ms=4000, leader_end_offset=15, is_new_leader=False, is_in_sync=True)

    assert replica.state.log_end_offset == 10
    assert replica.state.last_fetch_leader_log_end_offset == 15
    assert replica.state.last_caught_up_time_ms == 4000
