"""A crowd of members over real sockets: everybody stays in, and rebalances reach everybody."""

from pathlib import Path

from tests.benchmarks import frames
from tests.benchmarks.broker_client import BrokerClient
from tests.benchmarks.group_swarm import GroupSwarm
from tests.helpers.broker import running_broker

GROUPS = 10
MEMBERS_PER_GROUP = 10
SESSION_TIMEOUT_MS = 4_000
HEARTBEAT_INTERVAL_S = 0.3
TIMEOUT_S = 30


def test_nobody_is_expelled_while_a_hundred_members_heartbeat_rebalance_and_commit(
    tmp_path: Path,
) -> None:
    properties = {
        "group.initial.rebalance.delay.ms": "200",
        "group.min.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    }
    with (
        running_broker(tmp_path, properties) as broker,
        BrokerClient(*broker.address()) as client,
        GroupSwarm(
            broker.address(),
            name="crowd",
            topic="t",
            groups=GROUPS,
            members_per_group=MEMBERS_PER_GROUP,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            heartbeat_interval_s=HEARTBEAT_INTERVAL_S,
        ) as swarm,
    ):
        client.create_topic("t", MEMBERS_PER_GROUP, frames.small_batch(), {})
        client.await_coordinator(swarm.group_ids)

        swarm.join_all(TIMEOUT_S)
        heartbeats = swarm.heartbeat_for(SESSION_TIMEOUT_MS / 1000 + 1)
        swarm.leave_one_of_each(TIMEOUT_S)
        commits_per_second = swarm.commit_for(0.5)
        swarm.leave_one_of_each(TIMEOUT_S)

        assert len(heartbeats) >= GROUPS * MEMBERS_PER_GROUP
        assert commits_per_second > 0
        assert swarm.expelled == 0
