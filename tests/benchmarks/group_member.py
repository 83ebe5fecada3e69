"""A member of a consumer group as a state machine: answers in, requests out, no socket."""

import struct
from enum import Enum, auto

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.message_registry import response_class
from kafkapy.common.protocol.messages.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
)
from kafkapy.common.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkapy.common.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kafkapy.common.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kafkapy.common.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
)
from kafkapy.common.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kafkapy.common.protocol.schema import Message
from tests.benchmarks.broker_client import BenchmarkError
from tests.benchmarks.frames import frame, response_header_size

_JOIN_VERSION = 9
_SYNC_VERSION = 5
_HEARTBEAT_VERSION = 4
_LEAVE_VERSION = 5
_COMMIT_VERSION = 8
_PROTOCOL_TYPE = "consumer"
_PROTOCOL = "range"
_ASSIGNMENT = bytes(40)  # about what a few partitions take; nobody reads it
_EXPELLED = (Errors.UNKNOWN_MEMBER_ID, Errors.ILLEGAL_GENERATION)


class Step(Enum):
    """Where a member is."""

    OUTSIDE = auto()
    JOINING = auto()
    SYNCING = auto()
    STABLE = auto()
    LEAVING = auto()
    GONE = auto()


class GroupMember:
    """One request is under way at a time; whoever owns the member sends it. Not thread-safe.

    `group_size` is what the leader was told, 0 for the others. `expelled` counts how often the
    broker no longer knew the member, which only a missed time-out can bring about.
    """

    def __init__(
        self,
        group_id: str,
        *,
        topic: str,
        partition: int,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
    ) -> None:
        # constant after construction
        self.group_id = group_id
        self._topic = topic
        self._partition = partition
        self._session_timeout_ms = session_timeout_ms
        self._rebalance_timeout_ms = rebalance_timeout_ms
        self._subscription = struct.pack(">h", 0) + ConsumerProtocolSubscription(
            topics=[topic]
        ).encode(0)
        self.step = Step.OUTSIDE
        self.member_id = ""
        self.generation_id = -1
        self.group_size = 0
        self.expelled = 0
        self.commits = 0
        self._awaited: tuple[type[Message], int] | None = None

    @property
    def is_idle(self) -> bool:
        return self._awaited is None

    # Requests

    def join(self) -> bytes:
        self.step = Step.JOINING
        self.group_size = 0
        return self._ask(
            JoinGroupRequest(
                group_id=self.group_id,
                session_timeout_ms=self._session_timeout_ms,
                rebalance_timeout_ms=self._rebalance_timeout_ms,
                member_id=self.member_id,
                protocol_type=_PROTOCOL_TYPE,
                protocols=[
                    JoinGroupRequest.JoinGroupRequestProtocol(
                        name=_PROTOCOL, metadata=self._subscription
                    )
                ],
            ),
            _JOIN_VERSION,
        )

    def heartbeat(self) -> bytes:
        return self._ask(
            HeartbeatRequest(
                group_id=self.group_id,
                generation_id=self.generation_id,
                member_id=self.member_id,
            ),
            _HEARTBEAT_VERSION,
        )

    def commit(self) -> bytes:
        partition = OffsetCommitRequest.OffsetCommitRequestPartition(
            partition_index=self._partition, committed_offset=self.commits, committed_metadata=""
        )
        topic = OffsetCommitRequest.OffsetCommitRequestTopic(
            name=self._topic, partitions=[partition]
        )
        return self._ask(
            OffsetCommitRequest(
                group_id=self.group_id,
                generation_id_or_member_epoch=self.generation_id,
                member_id=self.member_id,
                topics=[topic],
            ),
            _COMMIT_VERSION,
        )

    def leave(self) -> bytes:
        self.step = Step.LEAVING
        identity = LeaveGroupRequest.MemberIdentity(member_id=self.member_id)
        return self._ask(
            LeaveGroupRequest(group_id=self.group_id, members=[identity]), _LEAVE_VERSION
        )

    def _sync(self, joined: JoinGroupResponse) -> bytes:
        self.step = Step.SYNCING
        self.generation_id = joined.generation_id
        self.group_size = len(joined.members)
        return self._ask(
            SyncGroupRequest(
                group_id=self.group_id,
                generation_id=joined.generation_id,
                member_id=self.member_id,
                protocol_type=_PROTOCOL_TYPE,
                protocol_name=_PROTOCOL,
                assignments=[
                    SyncGroupRequest.SyncGroupRequestAssignment(
                        member_id=member.member_id, assignment=_ASSIGNMENT
                    )
                    for member in joined.members
                ],
            ),
            _SYNC_VERSION,
        )

    def _ask(self, request: Message, version: int) -> bytes:
        assert self._awaited is None and request.API_KEY is not None
        self._awaited = response_class(request.API_KEY), version
        return frame(request, version)

    # Answers

    def answered(self, payload: bytes) -> bytes | None:
        """Takes an answer in; the request that follows from it, if one does."""
        assert self._awaited is not None
        kind, version = self._awaited
        self._awaited = None
        body = memoryview(payload)[response_header_size(kind, version) :]
        match kind.decode(body, version):
            case JoinGroupResponse() as joined:
                return self._joined(joined)
            case SyncGroupResponse() as synced:
                if synced.error_code == Errors.NONE.code:
                    self.step = Step.STABLE
                    return None
                return self._refused("SyncGroup", synced.error_code)
            case HeartbeatResponse() as beat:
                return self._refused("Heartbeat", beat.error_code)
            case OffsetCommitResponse() as committed:
                code = committed.topics[0].partitions[0].error_code
                self.commits += code == Errors.NONE.code
                return self._refused("OffsetCommit", code)
            case LeaveGroupResponse() as left:
                code = left.error_code or left.members[0].error_code
                if code != Errors.NONE.code:
                    raise self._error("LeaveGroup", code)
                self.step = Step.GONE
                return None
            case answer:
                raise AssertionError(f"an answer to no request: {answer}")

    def _joined(self, joined: JoinGroupResponse) -> bytes | None:
        match Errors.for_code(joined.error_code):
            case Errors.NONE:
                return self._sync(joined)
            case Errors.MEMBER_ID_REQUIRED:
                self.member_id = joined.member_id
                return self.join()
            case _:
                return self._refused("JoinGroup", joined.error_code)

    def _refused(self, api: str, error_code: int) -> bytes | None:
        """None when it was not refused after all."""
        match Errors.for_code(error_code):
            case Errors.NONE:
                return None
            case Errors.REBALANCE_IN_PROGRESS:
                return self.join()
            case error if error in _EXPELLED:
                self.expelled += 1
                self.member_id = ""
                return self.join()
            case _:
                raise self._error(api, error_code)

    def _error(self, api: str, error_code: int) -> BenchmarkError:
        return BenchmarkError(f"{api} of group {self.group_id}: {Errors.for_code(error_code).name}")
