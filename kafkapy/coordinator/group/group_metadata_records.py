"""Groups and offsets as records of __consumer_offsets.

key:   version int16 | OffsetCommitKey (versions 0, 1) or GroupMetadataKey (version 2)
value: version int16 | OffsetCommitValue or GroupMetadataValue; no value means it is gone
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import NamedTuple

from kafkapy.common.errors import KafkaError
from kafkapy.common.protocol.messages.group_metadata_key import GroupMetadataKey
from kafkapy.common.protocol.messages.group_metadata_value import GroupMetadataValue
from kafkapy.common.protocol.messages.offset_commit_key import OffsetCommitKey
from kafkapy.common.protocol.messages.offset_commit_value import OffsetCommitValue
from kafkapy.common.protocol.schema import Message
from kafkapy.common.types import TopicPartition
from kafkapy.coordinator.group.group_metadata import GroupMetadata
from kafkapy.coordinator.group.group_state import GroupState
from kafkapy.coordinator.group.member_metadata import MemberMetadata
from kafkapy.coordinator.group.offset_and_metadata import OffsetAndMetadata
from kafkapy.utils.time import Time

_VERSION = struct.Struct(">h")
_OFFSET_KEY_VERSION = 1
_GROUP_KEY_VERSION = 2
# Version 1 is the only one with a time of expiry.
_OFFSET_VALUE_VERSION = 3
_OFFSET_VALUE_VERSION_WITH_EXPIRY = 1
_GROUP_VALUE_VERSION = 3
_NO_EPOCH = -1
_NO_TIMESTAMP = -1


class OffsetKey(NamedTuple):
    """Ports: kafka.coordinator.group.OffsetKey"""

    group_id: str
    topic_partition: TopicPartition


class GroupKey(NamedTuple):
    """Ports: kafka.coordinator.group.GroupMetadataKey"""

    group_id: str


class UnknownKey(NamedTuple):
    """A kind of record that a newer broker has written.

    Ports: kafka.coordinator.group.UnknownKey
    """

    version: int


def offset_commit_key(group_id: str, topic_partition: TopicPartition) -> bytes:
    topic, partition = topic_partition
    return _versioned(
        OffsetCommitKey(group=group_id, topic=topic, partition=partition), _OFFSET_KEY_VERSION
    )


def offset_commit_value(offset: OffsetAndMetadata) -> bytes:
    expires = offset.expire_timestamp is not None
    return _versioned(
        OffsetCommitValue(
            offset=offset.offset,
            leader_epoch=_NO_EPOCH if offset.leader_epoch is None else offset.leader_epoch,
            metadata=offset.metadata,
            commit_timestamp=offset.commit_timestamp,
            expire_timestamp=(
                _NO_TIMESTAMP if offset.expire_timestamp is None else offset.expire_timestamp
            ),
        ),
        _OFFSET_VALUE_VERSION_WITH_EXPIRY if expires else _OFFSET_VALUE_VERSION,
    )


def group_metadata_key(group_id: str) -> bytes:
    return _versioned(GroupMetadataKey(group=group_id), _GROUP_KEY_VERSION)


def group_metadata_value(group: GroupMetadata, assignments: Mapping[str, bytes]) -> bytes:
    """Needs the group's lock. Every member must have an assignment, be it empty."""
    members = []
    for member in group.members:
        assert group.protocol_name is not None, "a group with members has a protocol"
        members.append(
            GroupMetadataValue.MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(group.protocol_name),
                assignment=assignments[member.member_id],
            )
        )
    timestamp = group.current_state_timestamp
    return _versioned(
        GroupMetadataValue(
            protocol_type=group.protocol_type or "",
            generation=group.generation_id,
            protocol=group.protocol_name,
            leader=group.leader_id,
            current_state_timestamp=_NO_TIMESTAMP if timestamp is None else timestamp,
            members=members,
        ),
        _GROUP_VALUE_VERSION,
    )


def read_key(key: bytes) -> OffsetKey | GroupKey | UnknownKey:
    version = _version(key)
    if 0 <= version <= _OFFSET_KEY_VERSION:
        offset_key, _ = OffsetCommitKey.decode_from(key, _VERSION.size, version)
        return OffsetKey(offset_key.group, TopicPartition(offset_key.topic, offset_key.partition))
    if version == _GROUP_KEY_VERSION:
        group_key, _ = GroupMetadataKey.decode_from(key, _VERSION.size, version)
        return GroupKey(group_key.group)
    return UnknownKey(version)


def read_offset_value(value: bytes) -> OffsetAndMetadata:
    stored, _ = OffsetCommitValue.decode_from(value, _VERSION.size, _version(value))
    return OffsetAndMetadata(
        stored.offset,
        None if stored.leader_epoch == _NO_EPOCH else stored.leader_epoch,
        stored.metadata,
        stored.commit_timestamp,
        None if stored.expire_timestamp == _NO_TIMESTAMP else stored.expire_timestamp,
    )


def read_group_value(group_id: str, value: bytes, time: Time) -> GroupMetadata:
    """The group as it was stored: stable, or empty if it had no members."""
    version = _version(value)
    stored, _ = GroupMetadataValue.decode_from(value, _VERSION.size, version)
    group = GroupMetadata(group_id, time, GroupState.STABLE if stored.members else GroupState.EMPTY)
    group.restore(
        generation_id=stored.generation,
        protocol_type=stored.protocol_type,
        protocol_name=stored.protocol,
        leader_id=stored.leader,
        current_state_timestamp=(
            None
            if stored.current_state_timestamp == _NO_TIMESTAMP
            else stored.current_state_timestamp
        ),
        members=[
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                # Version 0 did not have a rebalance time-out of its own.
                rebalance_timeout_ms=(
                    member.session_timeout if version == 0 else member.rebalance_timeout
                ),
                session_timeout_ms=member.session_timeout,
                protocol_type=stored.protocol_type,
                supported_protocols=[(stored.protocol or "", member.subscription)],
                assignment=member.assignment,
            )
            for member in stored.members
        ],
    )
    return group


def _versioned(message: Message, version: int) -> bytes:
    return _VERSION.pack(version) + message.encode(version)


def _version(data: bytes) -> int:
    if len(data) < _VERSION.size:
        raise KafkaError("a record of __consumer_offsets is too short to have a version")
    version: int = _VERSION.unpack_from(data)[0]
    return version
