"""What a thousand members of a hundred groups cost the broker."""

import os
import statistics
import time
from collections.abc import Callable, Mapping

from tests.benchmarks import frames
from tests.benchmarks.broker_client import BrokerClient
from tests.benchmarks.group_swarm import GroupSwarm
from tests.benchmarks.measures import Bar, Figure, Measure, Subject

_GROUPS = 100
_MEMBERS_PER_GROUP = 10
_SESSION_TIMEOUT_MS = 10_000
_HEARTBEAT_INTERVAL_S = 3.0
_STABLE_TIMEOUT_S = 60
# Long enough for each member's heartbeat to come twice, whatever --seconds says.
_LEAST_HEARTBEATS_S = 2 * _HEARTBEAT_INTERVAL_S

_STABLE = Measure(
    name="groups-stable",
    what="1,000 members join, until 100 groups are stable",
    unit="s",
    limit="",
    bars=(Bar(_SESSION_TIMEOUT_MS / 1000, is_maximum=True),),
)
_HEARTBEAT_P50 = Measure("groups-heartbeat-p50", "their heartbeats, p50", "ms", "")
_HEARTBEAT_P99 = Measure(
    "groups-heartbeat-p99", "the same, p99", "ms", "", bars=(Bar(100, is_maximum=True),)
)
_CPU = Measure("groups-cpu", "processor time of those heartbeats", "% of a core", "")
_REBALANCE = Measure(
    name="groups-rebalance",
    what="one of each group leaves, until all are stable",
    unit="s",
    limit="",
    bars=(Bar(_SESSION_TIMEOUT_MS / 1000, is_maximum=True),),
)
_COMMITS = Measure("groups-commits", "900 members commit, one offset each", "commits/s", "")
_EXPELLED = Measure(
    name="groups-expelled",
    what="members expelled in all this",
    unit="",
    limit="",
    bars=(Bar(0, is_maximum=True),),
)


def measure_groups(
    clients: Mapping[Subject, BrokerClient], cpu_seconds: Callable[[], float], seconds: float
) -> list[Figure]:
    """One round for each broker; `cpu_seconds` tells what ours has used so far."""
    values: dict[Measure, dict[Subject, list[float]]] = {}
    for subject, client in clients.items():
        clock = cpu_seconds if subject is Subject.OURS else None
        for measure, value in _measure(client, clock, seconds).items():
            values.setdefault(measure, {})[subject] = [value]
    return [Figure(measure, rounds) for measure, rounds in values.items()]


def _measure(
    client: BrokerClient, cpu_seconds: Callable[[], float] | None, seconds: float
) -> dict[Measure, float]:
    name = f"bench-groups-{os.getpid()}"
    client.create_topic(name, _MEMBERS_PER_GROUP, frames.small_batch(), {})
    found: dict[Measure, float] = {}
    try:
        with GroupSwarm(
            (client.host, client.port),
            name=name,
            topic=name,
            groups=_GROUPS,
            members_per_group=_MEMBERS_PER_GROUP,
            session_timeout_ms=_SESSION_TIMEOUT_MS,
            heartbeat_interval_s=_HEARTBEAT_INTERVAL_S,
        ) as swarm:
            client.await_coordinator(swarm.group_ids)
            found[_STABLE] = swarm.join_all(_STABLE_TIMEOUT_S)
            used = cpu_seconds() if cpu_seconds is not None else 0
            begun = time.monotonic()
            latencies = swarm.heartbeat_for(max(seconds, _LEAST_HEARTBEATS_S))
            percentiles = statistics.quantiles(latencies, n=100)
            found[_HEARTBEAT_P50] = percentiles[49] * 1000
            found[_HEARTBEAT_P99] = percentiles[98] * 1000
            if cpu_seconds is not None:
                found[_CPU] = (cpu_seconds() - used) / (time.monotonic() - begun) * 100
            found[_REBALANCE] = swarm.leave_one_of_each(_STABLE_TIMEOUT_S)
            found[_COMMITS] = swarm.commit_for(seconds)
            found[_EXPELLED] = swarm.expelled
    finally:
        client.delete_topic(name)
    return found
