"""Consumer groups: listing, describing and deleting them and their members."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from kafkapy.clients.admin.admin_api_handler import AdminApiHandler, ApiResult
from kafkapy.clients.admin.consumer_group_description import (
    ConsumerGroupDescription,
    ConsumerGroupListing,
    ConsumerGroupState,
    GroupType,
    MemberDescription,
    MemberToRemove,
)
from kafkapy.clients.admin.coordinator_strategy import CoordinatorStrategy, CoordinatorType
from kafkapy.clients.admin.lookup_strategy import at_broker
from kafkapy.clients.client_request import VersionedRequest
from kafkapy.clients.consumer.assignors.consumer_protocol import (
    PROTOCOL_TYPE,
    deserialize_assignment,
)
from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from kafkapy.common.protocol.messages.delete_groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from kafkapy.common.protocol.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kafkapy.common.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kafkapy.common.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kafkapy.common.protocol.schema import Message
from kafkapy.common.security.acl import authorized_operations
from kafkapy.common.types import TopicPartition
from kafkapy.metadata.broker import Node

V = TypeVar("V")
R = TypeVar("R", bound=Message)

_FIRST_LIST_WITH_STATES = 4
_FIRST_LIST_WITH_TYPES = 5
_FIRST_DESCRIBE_WITH_OPERATIONS = 3
_FIRST_BATCHED_LEAVE = 3
# The broker keeps no more of a reason than this.
_MAX_REASON_LENGTH = 255


class GroupCoordinatorHandler(AdminApiHandler[str, V, R]):
    """A call about groups, which goes to their coordinators."""

    retriable = frozenset({Errors.COORDINATOR_LOAD_IN_PROGRESS})
    unmapping = frozenset({Errors.COORDINATOR_NOT_AVAILABLE, Errors.NOT_COORDINATOR})

    def __init__(self, *, is_batched: bool = True) -> None:
        super().__init__(CoordinatorStrategy(CoordinatorType.GROUP), is_batched=is_batched)


class ListConsumerGroupsHandler(
    AdminApiHandler[int, tuple[ConsumerGroupListing, ...], ListGroupsResponse]
):
    """Keyed by broker: each knows the groups that it coordinates."""

    call_name = "list_consumer_groups"
    retriable = frozenset({Errors.COORDINATOR_LOAD_IN_PROGRESS, Errors.COORDINATOR_NOT_AVAILABLE})

    def __init__(
        self, states: Iterable[ConsumerGroupState], group_types: Iterable[GroupType]
    ) -> None:
        super().__init__(at_broker(lambda broker_id: broker_id), is_batched=False)
        self._states = [state.value for state in states]
        self._types = [group_type.value for group_type in group_types]

    def build_request(self, keys: Sequence[int], timeout_ms: int) -> VersionedRequest:
        min_version = None
        if self._types:
            min_version = _FIRST_LIST_WITH_TYPES
        elif self._states:
            min_version = _FIRST_LIST_WITH_STATES
        request = ListGroupsRequest(states_filter=self._states, types_filter=self._types)
        return VersionedRequest(request, min_version=min_version)

    def handle_response(
        self, keys: Sequence[int], response: ListGroupsResponse, node: Node
    ) -> ApiResult[int, tuple[ConsumerGroupListing, ...]]:
        result = self.new_result()
        listings = tuple(
            ConsumerGroupListing(
                group.group_id,
                group.protocol_type == "",
                ConsumerGroupState(group.group_state) if group.group_state else None,
                GroupType(group.group_type) if group.group_type else None,
            )
            for group in response.groups
            if group.protocol_type in ("", PROTOCOL_TYPE)
        )
        result.file(keys[0], response.error_code, listings)
        return result


class DescribeConsumerGroupsHandler(
    GroupCoordinatorHandler[ConsumerGroupDescription, ConsumerGroupDescribeResponse]
):
    """Groups of the newer protocol (KIP-848); the API knows no others.

    Ports: org.apache.kafka.clients.admin.internals.DescribeConsumerGroupsHandler
    """

    call_name = "describe_consumer_groups"

    def __init__(self, *, include_authorized_operations: bool) -> None:
        super().__init__()
        self._include_authorized_operations = include_authorized_operations

    def build_request(self, keys: Sequence[str], timeout_ms: int) -> VersionedRequest:
        return VersionedRequest(
            ConsumerGroupDescribeRequest(
                group_ids=list(keys),
                include_authorized_operations=self._include_authorized_operations,
            )
        )

    def handle_response(
        self, keys: Sequence[str], response: ConsumerGroupDescribeResponse, node: Node
    ) -> ApiResult[str, ConsumerGroupDescription]:
        result = self.new_result()
        for group in response.groups:
            description = ConsumerGroupDescription(
                group.group_id,
                False,
                tuple(_newer_member(member) for member in group.members),
                group.assignor_name,
                ConsumerGroupState(group.group_state),
                node,
                GroupType.CONSUMER,
                authorized_operations(group.authorized_operations),
            )
            result.file(group.group_id, group.error_code, description, group.error_message)
        return result


class DescribeClassicGroupsHandler(
    GroupCoordinatorHandler[ConsumerGroupDescription, DescribeGroupsResponse]
):
    """Groups of the protocol with JoinGroup and SyncGroup."""

    call_name = "describe_consumer_groups"

    def __init__(self, *, include_authorized_operations: bool) -> None:
        super().__init__()
        self._include_authorized_operations = include_authorized_operations

    def build_request(self, keys: Sequence[str], timeout_ms: int) -> VersionedRequest:
        return VersionedRequest(
            DescribeGroupsRequest(
                groups=list(keys),
                include_authorized_operations=self._include_authorized_operations,
            ),
            min_version=(
                _FIRST_DESCRIBE_WITH_OPERATIONS if self._include_authorized_operations else None
            ),
        )

    def handle_response(
        self, keys: Sequence[str], response: DescribeGroupsResponse, node: Node
    ) -> ApiResult[str, ConsumerGroupDescription]:
        result = self.new_result()
        for group in response.groups:
            if group.error_code != Errors.NONE.code:
                result.fail(group.group_id, Errors.for_code(group.error_code))
            elif group.protocol_type not in ("", PROTOCOL_TYPE):
                result.fail(
                    group.group_id,
                    Errors.INVALID_GROUP_ID,
                    f"{group.group_id}: not a consumer group, its protocol type is"
                    f" {group.protocol_type!r}",
                )
            else:
                result.complete(group.group_id, _description(group, node))
        return result


class DeleteConsumerGroupsHandler(GroupCoordinatorHandler[None, DeleteGroupsResponse]):
    """Ports: org.apache.kafka.clients.admin.internals.DeleteConsumerGroupsHandler"""

    call_name = "delete_consumer_groups"

    def build_request(self, keys: Sequence[str], timeout_ms: int) -> VersionedRequest:
        return VersionedRequest(DeleteGroupsRequest(groups_names=list(keys)))

    def handle_response(
        self, keys: Sequence[str], response: DeleteGroupsResponse, node: Node
    ) -> ApiResult[str, None]:
        result = self.new_result()
        for group in response.results:
            result.file(group.group_id, group.error_code, None)
        return result


class RemoveMembersHandler(
    GroupCoordinatorHandler[dict[MemberToRemove, Errors], LeaveGroupResponse]
):
    """The value tells for each member what became of it.

    Ports: org.apache.kafka.clients.admin.internals.RemoveMembersFromConsumerGroupHandler
    """

    call_name = "remove_members_from_consumer_group"

    def __init__(self, members: Sequence[MemberToRemove], *, reason: str) -> None:
        super().__init__(is_batched=False)
        self._members = members
        self._reason = reason[:_MAX_REASON_LENGTH]

    def build_request(self, keys: Sequence[str], timeout_ms: int) -> VersionedRequest:
        return VersionedRequest(
            LeaveGroupRequest(
                group_id=keys[0],
                members=[
                    LeaveGroupRequest.MemberIdentity(
                        member_id=member.member_id,
                        group_instance_id=member.group_instance_id,
                        reason=self._reason,
                    )
                    for member in self._members
                ],
            ),
            min_version=_FIRST_BATCHED_LEAVE,
        )

    def handle_response(
        self, keys: Sequence[str], response: LeaveGroupResponse, node: Node
    ) -> ApiResult[str, dict[MemberToRemove, Errors]]:
        result = self.new_result()
        # The response has the id that the coordinator found, which may not have been asked for.
        codes = {
            member.group_instance_id or member.member_id: member.error_code
            for member in response.members
        }
        removed = {
            member: Errors.for_code(codes.get(member.group_instance_id or member.member_id, -1))
            for member in self._members
        }
        result.file(keys[0], response.error_code, removed)
        return result


def _description(
    group: DescribeGroupsResponse.DescribedGroup, coordinator: Node
) -> ConsumerGroupDescription:
    return ConsumerGroupDescription(
        group.group_id,
        group.protocol_type == "",
        tuple(
            MemberDescription(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                _assignment(member.member_assignment),
            )
            for member in group.members
        ),
        group.protocol_data,
        ConsumerGroupState(group.group_state),
        coordinator,
        GroupType.CLASSIC,
        authorized_operations(group.authorized_operations),
    )


def _newer_member(member: ConsumerGroupDescribeResponse.Member) -> MemberDescription:
    return MemberDescription(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        _partitions(member.assignment),
        _partitions(member.target_assignment),
    )


def _partitions(assignment: ConsumerGroupDescribeResponse.Assignment) -> frozenset[TopicPartition]:
    return frozenset(
        TopicPartition(topic.topic_name, partition)
        for topic in assignment.topic_partitions
        for partition in topic.partitions
    )


def _assignment(data: bytes) -> frozenset[TopicPartition]:
    # A member has none while the group is being rebalanced.
    return frozenset(deserialize_assignment(data).partitions) if len(data) else frozenset()
