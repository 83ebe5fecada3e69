"""Members of many groups, each with a connection of its own, played by one thread."""

import heapq
import random
import selectors
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from tests.benchmarks.broker_client import BenchmarkError
from tests.benchmarks.group_member import GroupMember, Step
from tests.faults.hostile_clients import allow_open_files

_SIZE = struct.Struct(">i")
_FILES_BESIDES_MEMBERS = 100
_LOOK_S = 0.01
_ANSWER_TIMEOUT_S = 20
_REBALANCE_TIMEOUT_MS = 60_000


@dataclass(slots=True)
class _Connection:
    member: GroupMember
    socket: socket.socket
    received: bytearray = field(default_factory=bytearray)
    sent_at: float = 0.0
    is_heartbeat: bool = False


class GroupSwarm:
    """Joins, heartbeats, commits and leaves as consumers do, and rejoins whenever it is told to.

    Not thread-safe. Every method keeps all members alive while it runs; in between nobody does.
    """

    def __init__(
        self,
        address: tuple[str, int],
        *,
        name: str,
        topic: str,
        groups: int,
        members_per_group: int,
        session_timeout_ms: int,
        heartbeat_interval_s: float,
    ) -> None:
        self._heartbeat_interval_s = heartbeat_interval_s
        self._random = random.Random(1)
        self._selector = selectors.DefaultSelector()
        self._latencies: list[float] = []
        self._is_committing = False
        self._connections: list[_Connection] = []
        self._heartbeats: list[tuple[float, int]] = []  # when, and of which connection: a heap
        self._groups: dict[str, list[GroupMember]] = {}
        allow_open_files(groups * members_per_group + _FILES_BESIDES_MEMBERS)
        try:
            for group in range(groups):
                members = self._groups.setdefault(f"{name}-{group}", [])
                for partition in range(members_per_group):
                    member = GroupMember(
                        f"{name}-{group}",
                        topic=topic,
                        partition=partition,
                        session_timeout_ms=session_timeout_ms,
                        rebalance_timeout_ms=_REBALANCE_TIMEOUT_MS,
                    )
                    members.append(member)
                    self._connect(address, member)
        except OSError as e:
            self.close()
            raise BenchmarkError(f"connection {len(self._connections)}: {e}") from e

    def _connect(self, address: tuple[str, int], member: GroupMember) -> None:
        connected = socket.create_connection(address, timeout=_ANSWER_TIMEOUT_S)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.setblocking(False)
        connection = _Connection(member, connected)
        self._connections.append(connection)
        self._selector.register(connected, selectors.EVENT_READ, connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._selector.close()
        for connection in self._connections:
            connection.socket.close()

    @property
    def group_ids(self) -> list[str]:
        return list(self._groups)

    @property
    def expelled(self) -> int:
        """How often a member was dropped though it did all it should."""
        return sum(connection.member.expelled for connection in self._connections)

    # What a swarm does

    def join_all(self, timeout_s: float) -> float:
        """Everybody joins at once; seconds until every group is stable with all its members."""
        begun = time.monotonic()
        for index, connection in enumerate(self._connections):
            self._send(connection, connection.member.join())
            first = begun + self._random.uniform(0, self._heartbeat_interval_s)
            heapq.heappush(self._heartbeats, (first, index))
        return self._run_until_stable(begun, timeout_s)

    def leave_one_of_each(self, timeout_s: float) -> float:
        """One member of each group leaves; seconds until every group is stable again."""
        self._finish_requests()
        leaving = {
            id(next(member for member in members if member.step is Step.STABLE))
            for members in self._groups.values()
        }
        begun = time.monotonic()
        for connection in self._connections:
            if id(connection.member) in leaving:
                self._send(connection, connection.member.leave())
        return self._run_until_stable(begun, timeout_s)

    def heartbeat_for(self, seconds: float) -> list[float]:
        """How long each heartbeat took, in seconds."""
        self._latencies.clear()
        self._run(_never, seconds)
        return list(self._latencies)

    def commit_for(self, seconds: float) -> float:
        """Everybody commits as fast as it is answered; commits per second."""
        self._finish_requests()
        before = self._commits()
        self._is_committing = True
        begun = time.monotonic()
        for connection in self._connections:
            if connection.member.step is Step.STABLE:
                self._send(connection, connection.member.commit())
        self._run(_never, seconds)
        rate = (self._commits() - before) / (time.monotonic() - begun)
        self._is_committing = False
        return rate

    def _commits(self) -> int:
        return sum(connection.member.commits for connection in self._connections)

    # The loop

    def _run_until_stable(self, begun: float, timeout_s: float) -> float:
        if not self._run(self._is_stable, timeout_s):
            stable = sum(map(_is_stable, self._groups.values()))
            raise BenchmarkError(
                f"after {timeout_s:g} s only {stable} of {len(self._groups)} groups are stable"
            )
        return time.monotonic() - begun

    def _finish_requests(self) -> None:
        """So that the next thing may be asked of everybody."""
        idle = self._run(
            lambda: all(c.member.is_idle for c in self._connections), _ANSWER_TIMEOUT_S, beats=False
        )
        if not idle:
            raise BenchmarkError(f"a request was not answered within {_ANSWER_TIMEOUT_S} s")

    def _is_stable(self) -> bool:
        return all(map(_is_stable, self._groups.values()))

    def _run(self, done: Callable[[], bool], timeout_s: float, *, beats: bool = True) -> bool:
        """Serves everybody until it is done or the time is over; whether it is done."""
        deadline = time.monotonic() + timeout_s
        look_at = 0.0
        while (now := time.monotonic()) < deadline:
            if now >= look_at:
                if done():
                    return True
                look_at = now + _LOOK_S
            for key, _ in self._selector.select(_LOOK_S):
                self._receive(key.data)
            if beats:
                self._send_due_heartbeats()
        return done()

    def _send_due_heartbeats(self) -> None:
        now = time.monotonic()
        while self._heartbeats and self._heartbeats[0][0] <= now:
            due, index = heapq.heappop(self._heartbeats)
            connection = self._connections[index]
            member = connection.member
            if member.step is Step.GONE:
                continue
            if member.step is Step.STABLE and member.is_idle:
                self._send(connection, member.heartbeat())
                connection.is_heartbeat = True
            heapq.heappush(
                self._heartbeats, (max(due, now - _LOOK_S) + self._heartbeat_interval_s, index)
            )

    def _send(self, connection: _Connection, frame: bytes) -> None:
        connection.is_heartbeat = False
        connection.sent_at = time.monotonic()
        if connection.socket.send(frame) != len(frame):
            raise BenchmarkError("a request did not fit into an empty socket buffer")

    def _receive(self, connection: _Connection) -> None:
        try:
            piece = connection.socket.recv(65536)
        except OSError as e:
            raise BenchmarkError(f"a member of {connection.member.group_id}: {e}") from e
        if not piece:
            raise BenchmarkError(f"a member of {connection.member.group_id} was disconnected")
        received = connection.received
        received += piece
        if len(received) < _SIZE.size:
            return
        end = _SIZE.size + _SIZE.unpack_from(received)[0]
        if len(received) < end:
            return
        payload = bytes(received[_SIZE.size : end])
        del received[:end]
        if connection.is_heartbeat:
            self._latencies.append(time.monotonic() - connection.sent_at)
        member = connection.member
        following = member.answered(payload)
        if following is None and self._is_committing and member.step is Step.STABLE:
            following = member.commit()
        if following is not None:
            self._send(connection, following)


def _is_stable(members: list[GroupMember]) -> bool:
    """Whether all who have not left are in one generation, which has nobody else."""
    present = [member for member in members if member.step is not Step.GONE]
    return (
        all(member.step is Step.STABLE for member in present)
        and len({member.generation_id for member in present}) == 1
        and max(member.group_size for member in present) == len(present)
    )


def _never() -> bool:
    return False
