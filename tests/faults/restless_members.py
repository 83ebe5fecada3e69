"""Members of consumer groups that commit, come and go, and find back to a broker that died."""

import random
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.heartbeat import HeartbeatRequest
from kafkapy.common.protocol.messages.join_group import JoinGroupRequest
from kafkapy.common.protocol.messages.leave_group import LeaveGroupRequest
from kafkapy.common.protocol.messages.offset_commit import OffsetCommitRequest
from kafkapy.common.protocol.messages.offset_fetch import OffsetFetchRequest
from kafkapy.common.protocol.messages.sync_group import SyncGroupRequest
from tests.helpers.broker import Client, ConnectionClosed

_RETRY_S = 0.02
_CONNECTION_LOST = (ConnectionClosed, ConnectionError)
_NOT_READY = (
    Errors.COORDINATOR_NOT_AVAILABLE,
    Errors.COORDINATOR_LOAD_IN_PROGRESS,
    Errors.NOT_COORDINATOR,
)


@dataclass(slots=True)
class Ledger:
    """What one group has committed, by partition. Thread-safe.

    Numbers only rise, whoever commits them, so that an acknowledged one may be followed by a
    greater one that was never acknowledged, but never by a smaller one.
    """

    group: str
    acknowledged: dict[int, int] = field(default_factory=dict)
    generations: set[int] = field(default_factory=set)
    _next: dict[int, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def next_offset(self, partition: int) -> int:
        with self._lock:
            self._next[partition] = self._next.get(partition, 0) + 1
            return self._next[partition]

    def acknowledge(self, partition: int, offset: int) -> None:
        with self._lock:
            self.acknowledged[partition] = max(self.acknowledged.get(partition, 0), offset)

    def snapshot(self) -> dict[int, int]:
        with self._lock:
            return dict(self.acknowledged)


def join_group(
    client: Client,
    group: str,
    member_id: str,
    *,
    session_timeout_ms: int,
    rebalance_timeout_ms: int,
) -> Any:
    """The answer; of two if the broker wants the member to know its id first."""
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=rebalance_timeout_ms,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=bytes(10))],
    )
    response = client.request(request)
    if response.error_code == Errors.MEMBER_ID_REQUIRED.code:
        request.member_id = response.member_id
        response = client.request(request)
    return response


def sync_group(client: Client, group: str, joined: Any, assignments: Mapping[str, bytes]) -> Any:
    return client.request(
        SyncGroupRequest(
            group_id=group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[
                SyncGroupRequest.SyncGroupRequestAssignment(member_id=member, assignment=share)
                for member, share in assignments.items()
            ],
        )
    )


def heartbeat(client: Client, group: str, member_id: str, generation: int) -> Errors:
    response = client.request(
        HeartbeatRequest(group_id=group, member_id=member_id, generation_id=generation)
    )
    return Errors.for_code(response.error_code)


def fetch_offsets(client: Client, group: str) -> tuple[Errors, dict[int, int]]:
    """All offsets of a group, whose partitions are of one topic."""
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None)]
    )
    (found,) = client.request(request).groups
    return Errors.for_code(found.error_code), {
        partition.partition_index: partition.committed_offset
        for topic in found.topics
        for partition in topic.partitions
    }


class RestlessMember(threading.Thread):
    """Joins, commits its partitions again and again, sometimes leaves, and joins again.

    A request that is not answered in time, or with an error that no member deserves, ends it and
    is kept in `failure`.
    """

    def __init__(
        self,
        address: tuple[str, int],
        ledger: Ledger,
        *,
        topic: str,
        partitions: int,
        seed: int,
        session_timeout_ms: int,
    ) -> None:
        super().__init__(name=f"{ledger.group}-{seed}")
        self._address = address
        self._ledger = ledger
        self._topic = topic
        self._partitions = partitions
        self._session_timeout_ms = session_timeout_ms
        self._random = random.Random(seed)
        self._member_id = ""
        self._stopping = threading.Event()
        self.failure: BaseException | None = None
        self.commits = 0  # read by others

    def stop(self) -> None:
        self._stopping.set()

    def run(self) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    with Client(self._address) as client:
                        self._take_part(client)
                except _CONNECTION_LOST:
                    self._stopping.wait(_RETRY_S)
        except BaseException as e:
            self.failure = e

    def _take_part(self, client: Client) -> None:
        while not self._stopping.is_set():
            joined = join_group(
                client,
                self._ledger.group,
                self._member_id,
                session_timeout_ms=self._session_timeout_ms,
                rebalance_timeout_ms=self._session_timeout_ms,
            )
            if not self._goes_on(joined.error_code):
                continue
            self._member_id = joined.member_id
            synced = sync_group(client, self._ledger.group, joined, self._assign(joined.members))
            if not self._goes_on(synced.error_code):
                continue
            self._ledger.generations.add(joined.generation_id)
            self._commit_for_a_while(client, joined.generation_id, list(synced.assignment))
            if self._stopping.is_set() or self._random.random() < 0.5:
                self._leave(client)

    def _assign(self, members: Sequence[Any]) -> dict[str, bytes]:
        """Partitions in turn; an assignment is the partitions' numbers, a byte each."""
        return {
            member.member_id: bytes(range(index, self._partitions, len(members)))
            for index, member in enumerate(members)
        }

    def _commit_for_a_while(self, client: Client, generation: int, partitions: list[int]) -> None:
        for _ in range(self._random.randint(5, 25)):
            if self._stopping.is_set():
                return
            error = heartbeat(client, self._ledger.group, self._member_id, generation)
            if not self._goes_on(error.code):
                return
            for partition in partitions:
                offset = self._ledger.next_offset(partition)
                code = self._commit(client, generation, partition, offset)
                if not self._goes_on(code):
                    return
                self._ledger.acknowledge(partition, offset)
                self.commits += 1

    def _commit(self, client: Client, generation: int, partition: int, offset: int) -> int:
        wanted = OffsetCommitRequest.OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata=""
        )
        response = client.request(
            OffsetCommitRequest(
                group_id=self._ledger.group,
                generation_id_or_member_epoch=generation,
                member_id=self._member_id,
                topics=[
                    OffsetCommitRequest.OffsetCommitRequestTopic(
                        name=self._topic, partitions=[wanted]
                    )
                ],
            )
        )
        return response.topics[0].partitions[0].error_code

    def _leave(self, client: Client) -> None:
        identity = LeaveGroupRequest.MemberIdentity(member_id=self._member_id)
        client.request(LeaveGroupRequest(group_id=self._ledger.group, members=[identity]))
        self._member_id = ""

    def _goes_on(self, error_code: int) -> bool:
        """Whether there was no error; after one that may come, the member joins again."""
        match error := Errors.for_code(error_code):
            case Errors.NONE:
                return True
            case Errors.UNKNOWN_MEMBER_ID | Errors.ILLEGAL_GENERATION:
                self._member_id = ""
            case Errors.REBALANCE_IN_PROGRESS:
                pass
            case _ if error in _NOT_READY:
                self._stopping.wait(_RETRY_S)
            case _:
                raise AssertionError(f"{self.name}: {error.name}")
        return False


def until_ready(ask: Callable[[], tuple[Errors, dict[int, int]]]) -> dict[int, int]:
    """Asks until the coordinator has loaded the group."""
    pause = threading.Event()
    for _ in range(round(20 / _RETRY_S)):
        error, found = ask()
        if error is Errors.NONE:
            return found
        assert error in _NOT_READY, error
        pause.wait(_RETRY_S)
    raise AssertionError("the group is not loaded")
