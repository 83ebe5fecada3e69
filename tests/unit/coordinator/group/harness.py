"""A group coordinator over real logs, with a mock clock and the members played by hand."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

from kafkapy.common.config_def import parse
from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
)
from kafkapy.common.record.record import Record
from kafkapy.common.types import CONSUMER_OFFSETS_TOPIC, TopicPartition
from kafkapy.coordinator.group.group_coordinator import GroupCoordinator
from kafkapy.coordinator.group.group_coordinator_config import GroupCoordinatorConfig
from kafkapy.coordinator.group.group_joins import JoinGroup
from kafkapy.coordinator.group.group_results import (
    JoinGroupResult,
    LeaveGroupResult,
    MemberIdentity,
    SyncGroupResult,
)
from kafkapy.coordinator.group.offset_and_metadata import OffsetAndMetadata
from kafkapy.replication.transaction_verification import TransactionVerification
from kafkapy.storage.fetch_isolation import FetchIsolation
from tests.helpers.mock_time import MockTime
from tests.helpers.mock_timer import MockTimer
from tests.unit.replication.fake_verifier import FakeVerifier
from tests.unit.replication.harness import ReplicaHarness

GROUP = "group"
OFFSETS_PARTITION = TopicPartition(CONSUMER_OFFSETS_TOPIC, 0)
TP = TopicPartition("t", 0)
INITIAL_DELAY_MS = 3_000
SESSION_MS = 10_000
REBALANCE_MS = 30_000


def subscription(*topics: str) -> bytes:
    return struct.pack(">h", 0) + ConsumerProtocolSubscription(topics=list(topics)).encode(0)


RANGE = ("range", subscription("t"))
ROUND_ROBIN = ("roundrobin", subscription("t"))


class GroupHarness:
    """__consumer_offsets has one partition, which is led here and loaded."""

    def __init__(
        self, directory: Path, time: MockTime, properties: Mapping[str, str] | None = None
    ) -> None:
        self.time = time
        self.replicas = ReplicaHarness(directory, time, transaction_verification=True)
        self.verifier = FakeVerifier()
        self._timers: list[MockTimer] = []
        self.config = parse(
            GroupCoordinatorConfig,
            {
                "offsets.topic.num.partitions": "1",
                "group.initial.rebalance.delay.ms": str(INITIAL_DELAY_MS),
                **(properties or {}),
            },
        )
        self.coordinator = self._new_coordinator()
        self.replicas.lead(OFFSETS_PARTITION)
        self.coordinator.on_election(0, 0)

    def _new_coordinator(self) -> GroupCoordinator:
        coordinator = GroupCoordinator(
            self.config,
            broker_id=1,
            replica_manager=self.replicas.replica_manager,
            transaction_verification=TransactionVerification(
                self.replicas.replica_manager, self.verifier, lambda: True
            ),
            time=self.time,
            metrics=self.replicas.metrics,
            scheduler=self.time.scheduler,
            timer=self._new_timer,
            reaper_enabled=False,
        )
        coordinator.startup(1)
        return coordinator

    def _new_timer(self, name: str) -> MockTimer:
        timer = MockTimer(self.time)
        self._timers.append(timer)
        return timer

    def restart(self, properties: Mapping[str, str] | None = None) -> None:
        """A new coordinator over the same log."""
        self._timers.clear()
        self.coordinator.shutdown()
        if properties:
            self.config = parse(
                GroupCoordinatorConfig, {"offsets.topic.num.partitions": "1", **properties}
            )
        self.coordinator = self._new_coordinator()
        self.coordinator.on_election(0, 0)

    def close(self) -> None:
        self.coordinator.shutdown()
        self.replicas.close()

    def pass_ms(self, ms: int) -> None:
        """Let time pass, a little at a time: one time-out may lead to the next."""
        while ms > 0:
            step = min(ms, 500)
            self.time.sleep(step)
            for timer in self._timers:
                timer.advance_clock(0)
            ms -= step

    # Members

    def join(
        self,
        member_id: str = "",
        *,
        instance_id: str | None = None,
        group_id: str = GROUP,
        protocol_type: str = "consumer",
        protocols: Sequence[tuple[str, bytes]] = (RANGE,),
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        require_known_member_id: bool = False,
        supports_skipping_assignment: bool = False,
    ) -> list[JoinGroupResult]:
        """What the member was answered so far: nothing while it waits."""
        answers: list[JoinGroupResult] = []
        self.coordinator.handle_join_group(
            JoinGroup(
                group_id=group_id,
                member_id=member_id,
                group_instance_id=instance_id,
                client_id="client",
                client_host="/127.0.0.1",
                rebalance_timeout_ms=rebalance_ms,
                session_timeout_ms=session_ms,
                protocol_type=protocol_type,
                protocols=protocols,
                require_known_member_id=require_known_member_id,
                supports_skipping_assignment=supports_skipping_assignment,
            ),
            answers.append,
        )
        return answers

    def sync(
        self,
        member_id: str,
        generation_id: int,
        *,
        assignments: Mapping[str, bytes] | None = None,
        instance_id: str | None = None,
        group_id: str = GROUP,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
    ) -> list[SyncGroupResult]:
        answers: list[SyncGroupResult] = []
        self.coordinator.handle_sync_group(
            group_id,
            generation_id=generation_id,
            member_id=member_id,
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            group_instance_id=instance_id,
            assignments=assignments or {},
            callback=answers.append,
        )
        return answers

    def heartbeat(
        self,
        member_id: str,
        generation_id: int,
        *,
        instance_id: str | None = None,
        group_id: str = GROUP,
    ) -> Errors:
        return self.coordinator.handle_heartbeat(
            group_id,
            member_id=member_id,
            group_instance_id=instance_id,
            generation_id=generation_id,
        )

    def leave(self, *members: MemberIdentity | str, group_id: str = GROUP) -> LeaveGroupResult:
        return self.coordinator.handle_leave_group(
            group_id, [m if isinstance(m, MemberIdentity) else MemberIdentity(m) for m in members]
        )

    def stable_group(self, size: int = 1, **fields) -> tuple[list[str], int]:
        """A group whose members have their assignments; the first of them leads."""
        joins = [self.join(**fields) for _ in range(size)]
        self.pass_ms(INITIAL_DELAY_MS * 2)
        results = [answers[0] for answers in joins]
        group_id = fields.get("group_id", GROUP)
        return self.sync_all(results, group_id=group_id), results[0].generation_id

    def sync_all(self, results: Sequence[JoinGroupResult], *, group_id: str = GROUP) -> list[str]:
        """The leader last, so that the others wait for it."""
        member_ids = [result.member_id for result in results]
        for result in sorted(results, key=lambda r: r.member_id == r.leader_id):
            self.sync(
                result.member_id,
                result.generation_id,
                assignments={m: b"of " + m.encode() for m in member_ids},
                group_id=group_id,
            )
        return sorted(member_ids, key=lambda m: m != results[0].leader_id)

    def state(self, group_id: str = GROUP) -> str:
        return self.coordinator.handle_describe_group(group_id)[1].state

    def snapshot(self) -> dict[str, tuple[object, ...]]:
        """Everything that is known of the groups, and how much the log has.

        Groups in which nothing ever happened are left out: a refused request may have made one.
        """
        seen: dict[str, tuple[object, ...]] = {"log": (len(self.stored_records()),)}
        for group in self.coordinator._group_manager.current_groups():
            offsets = group.offsets
            if group.generation_id == 0 and not (group.size or offsets.has_any):
                continue
            seen[group.group_id] = (
                group.state,
                group.generation_id,
                group.leader_id,
                group.protocol_type,
                group.protocol_name,
                [
                    (
                        m.summary(None),
                        m.assignment,
                        tuple(m.supported_protocols),
                        m.is_awaiting_join,
                    )
                    for m in group.members
                ],
                group.pending_sync_members,
                {tp: (offsets.get(tp), offsets.has_pending(tp)) for tp in offsets.partitions()},
                offsets.has_any,
            )
        return seen

    # Offsets

    def commit(
        self,
        offsets: Mapping[TopicPartition, int] | int = 1,
        *,
        member_id: str = "",
        generation_id: int = -1,
        instance_id: str | None = None,
        group_id: str = GROUP,
        metadata: str = "",
        expire_timestamp: int | None = None,
    ) -> dict[TopicPartition, Errors]:
        answers: list[dict[TopicPartition, Errors]] = []
        self.coordinator.handle_commit_offsets(
            group_id,
            member_id=member_id,
            group_instance_id=instance_id,
            generation_id=generation_id,
            offsets=self._commits(offsets, metadata, expire_timestamp),
            callback=answers.append,
        )
        return answers[0]

    def txn_commit(
        self, offsets: Mapping[TopicPartition, int] | int = 1, **fields
    ) -> dict[TopicPartition, Errors]:
        (answer,) = self.start_txn_commit(offsets, **fields)
        return answer

    def start_txn_commit(
        self,
        offsets: Mapping[TopicPartition, int] | int = 1,
        *,
        producer_id: int = 7,
        member_id: str = "",
        generation_id: int = -1,
        instance_id: str | None = None,
        group_id: str = GROUP,
    ) -> list[dict[TopicPartition, Errors]]:
        """What was answered so far: nothing while the verifier holds back."""
        answers: list[dict[TopicPartition, Errors]] = []
        self.coordinator.handle_txn_commit_offsets(
            group_id,
            transactional_id="txn",
            producer_id=producer_id,
            producer_epoch=0,
            member_id=member_id,
            group_instance_id=instance_id,
            generation_id=generation_id,
            offsets=self._commits(offsets),
            supports_abortable_error=True,
            callback=answers.append,
        )
        return answers

    def _commits(
        self,
        offsets: Mapping[TopicPartition, int] | int,
        metadata: str = "",
        expire_timestamp: int | None = None,
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        if isinstance(offsets, int):
            offsets = {TP: offsets}
        now_ms = self.time.milliseconds()
        return {
            tp: OffsetAndMetadata(offset, None, metadata, now_ms, expire_timestamp)
            for tp, offset in offsets.items()
        }

    def offsets(self, group_id: str = GROUP, **options) -> dict[TopicPartition, int]:
        """All committed offsets."""
        error, fetched = self.coordinator.handle_fetch_offsets(
            group_id, None, require_stable=options.get("require_stable", False)
        )
        assert error is Errors.NONE
        return {tp: offset.offset for tp, (_, offset) in fetched.items() if offset is not None}

    def stored_records(self) -> list[Record]:
        log = self.replicas.replica_manager.get_log(OFFSETS_PARTITION)
        assert log is not None
        read = log.read(log.log_start_offset, 1 << 24, FetchIsolation.LOG_END, min_one_message=True)
        return list(read.records.records())
