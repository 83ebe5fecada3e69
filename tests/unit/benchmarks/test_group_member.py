import struct

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.heartbeat import HeartbeatResponse
from kafkapy.common.protocol.messages.join_group import JoinGroupResponse
from kafkapy.common.protocol.messages.sync_group import SyncGroupResponse
from kafkapy.common.protocol.schema import Message
from tests.benchmarks.broker_client import BenchmarkError
from tests.benchmarks.group_member import GroupMember, Step


def _payload(response: Message, version: int) -> bytes:
    """Behind the size: correlation id, no tagged fields, body."""
    return struct.pack(">ib", 0, 0) + response.encode(version)


def _joined(**fields) -> bytes:
    return _payload(
        JoinGroupResponse(generation_id=3, protocol_name="range", leader="m", **fields), 9
    )


@pytest.fixture
def member() -> GroupMember:
    return GroupMember(
        "g", topic="t", partition=0, session_timeout_ms=10_000, rebalance_timeout_ms=60_000
    )


@pytest.fixture
def stable(member: GroupMember) -> GroupMember:
    member.join()
    member.answered(_joined(error_code=Errors.MEMBER_ID_REQUIRED.code, member_id="m"))
    member.answered(_joined(error_code=0, member_id="m"))
    member.answered(_payload(SyncGroupResponse(error_code=0), 5))
    return member


def test_member_joins_again_with_the_id_it_is_given(member: GroupMember) -> None:
    member.join()

    again = member.answered(_joined(error_code=Errors.MEMBER_ID_REQUIRED.code, member_id="m"))

    assert again is not None and b"\x02m" in again
    assert (member.step, member.member_id) == (Step.JOINING, "m")


def test_member_is_stable_when_it_has_its_assignment(stable: GroupMember) -> None:
    assert (stable.step, stable.generation_id, stable.is_idle) == (Step.STABLE, 3, True)


@pytest.mark.parametrize(
    ("error", "expelled", "member_id"),
    [
        (Errors.REBALANCE_IN_PROGRESS, 0, "m"),
        (Errors.UNKNOWN_MEMBER_ID, 1, ""),
        (Errors.ILLEGAL_GENERATION, 1, ""),
    ],
)
def test_member_joins_again_when_a_heartbeat_tells_it_to(
    stable: GroupMember, error: Errors, expelled: int, member_id: str
) -> None:
    stable.heartbeat()

    following = stable.answered(_payload(HeartbeatResponse(error_code=error.code), 4))

    assert following is not None
    assert (stable.step, stable.expelled, stable.member_id) == (Step.JOINING, expelled, member_id)


def test_member_cannot_go_on_after_an_unexpected_error(stable: GroupMember) -> None:
    stable.heartbeat()

    with pytest.raises(BenchmarkError, match="Heartbeat of group g: INVALID_GROUP_ID"):
        stable.answered(_payload(HeartbeatResponse(error_code=Errors.INVALID_GROUP_ID.code), 4))
