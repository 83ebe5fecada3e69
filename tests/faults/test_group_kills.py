"""SIGKILL of the broker while members of groups commit and rebalance, again and again."""

import random
import socket
import sys
import time
from pathlib import Path

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.compat.brokers import Broker, start_broker
from tests.faults.restless_members import (
    Ledger,
    RestlessMember,
    fetch_offsets,
    heartbeat,
    join_group,
    sync_group,
    until_ready,
)
from tests.helpers.api import create_topic
from tests.helpers.broker import Client
from tests.helpers.waiting import wait_until

_KILLS = 4
_MEMBERS = 3
_PARTITIONS = 4
_TOPIC = "t"
_COMMITS_PER_ROUND = 10
_OVERRIDES = {"offsets.topic.num.partitions": "3", "group.min.session.timeout.ms": "1000"}
# Short: a member that has left, though no record says so yet, holds a rebalance up that long.
_SESSION_TIMEOUT_MS = 1_500
_CALM = "calm"
_CALM_SESSION_TIMEOUT_MS = 60_000


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _start_calm_group(client: Client) -> tuple[str, int]:
    """A group that does nothing: its member and generation are to outlive every kill."""
    # The first who looks for a coordinator makes the topic of the offsets.
    client.request(FindCoordinatorRequest(key_type=0, coordinator_keys=[_CALM]))
    until_ready(lambda: fetch_offsets(client, _CALM))
    joined = join_group(
        client,
        _CALM,
        "",
        session_timeout_ms=_CALM_SESSION_TIMEOUT_MS,
        rebalance_timeout_ms=_CALM_SESSION_TIMEOUT_MS,
    )
    assert sync_group(client, _CALM, joined, {joined.member_id: b"all"}).error_code == 0
    return joined.member_id, joined.generation_id


def _check(broker: Broker, ledgers: list[Ledger], calm: tuple[str, int]) -> None:
    """What was acknowledged is still there, and the calm group goes on as it was."""
    expected = [ledger.snapshot() for ledger in ledgers]
    with Client(broker.address) as client:
        for ledger, acknowledged in zip(ledgers, expected, strict=True):
            stored = until_ready(lambda group=ledger.group: fetch_offsets(client, group))
            for partition, offset in acknowledged.items():
                assert stored.get(partition, -1) >= offset, (ledger.group, partition)
        until_ready(lambda: fetch_offsets(client, _CALM))
        assert heartbeat(client, _CALM, *calm) is Errors.NONE


def _await_commits(members: list[RestlessMember]) -> None:
    """Everybody is back in its group and has partitions, or has failed."""
    goals = [member.commits + _COMMITS_PER_ROUND for member in members]
    wait_until(
        lambda: all(
            member.commits >= goal or member.failure is not None
            for member, goal in zip(members, goals, strict=True)
        ),
        timeout=30,
        message=f"commits: {[member.commits for member in members]}, goals: {goals}",
    )
    assert [member.failure for member in members] == [None] * len(members)


def _stop(members: list[RestlessMember]) -> None:
    for member in members:
        member.stop()
    for member in members:
        if member.ident is not None:
            member.join()


def test_acknowledged_offsets_survive_kill_nine_and_members_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHON", sys.executable)  # the launcher need not look for one each time
    port = _free_port()
    chooser = random.Random(3)
    ledgers = [Ledger("restless-0"), Ledger("restless-1")]
    broker = start_broker(tmp_path, port=port, overrides=_OVERRIDES)
    members = [
        RestlessMember(
            broker.address,
            ledger,
            topic=_TOPIC,
            partitions=_PARTITIONS,
            seed=seed,
            session_timeout_ms=_SESSION_TIMEOUT_MS,
        )
        for ledger in ledgers
        for seed in range(_MEMBERS)
    ]
    try:
        with Client(broker.address) as client:
            create_topic(client, _TOPIC, partitions=_PARTITIONS)
            calm = _start_calm_group(client)
        for member in members:
            member.start()
        for _ in range(_KILLS):
            _await_commits(members)
            time.sleep(chooser.uniform(0, 0.05))  # so that the kill falls anywhere
            broker.kill()
            broker = start_broker(tmp_path, port=port, overrides=_OVERRIDES)
            _check(broker, ledgers, calm)
        _await_commits(members)
        _stop(members)
        _check(broker, ledgers, calm)
        code = broker.stop()
    finally:
        _stop(members)
        broker.kill()

    assert code == broker.clean_exit_code, broker.tail()
    assert [member.failure for member in members] == [None] * len(members)
    assert all(len(ledger.generations) > _KILLS for ledger in ledgers)
