"""Membership and administration of groups."""

from __future__ import annotations

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kafkapy.common.protocol.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kafkapy.common.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkapy.common.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kafkapy.common.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kafkapy.common.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kafkapy.common.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kafkapy.common.security.acl import ResourceType, supported_operations
from kafkapy.coordinator.group.group_coordinator import GroupCoordinator
from kafkapy.coordinator.group.group_joins import JoinGroup
from kafkapy.coordinator.group.group_results import (
    JoinGroupResult,
    LeaveGroupResult,
    MemberIdentity,
    SyncGroupResult,
)
from kafkapy.network.request_channel import Request, RequestChannel

_JOIN_WITH_REBALANCE_TIMEOUT = 1
_JOIN_WITH_KNOWN_MEMBER_ID = 4
_JOIN_WITH_NULLABLE_PROTOCOL = 7
_JOIN_WITH_SKIPPED_ASSIGNMENT = 9
_SYNC_WITH_PROTOCOL = 5
_LEAVE_WITH_SEVERAL_MEMBERS = 3
_ALL_GROUP_OPERATIONS = supported_operations(ResourceType.GROUP)


class GroupsHandler:
    """Ports: kafka.server.KafkaApis.handleJoinGroupRequest"""

    def __init__(
        self, request_channel: RequestChannel, group_coordinator: GroupCoordinator
    ) -> None:
        self._request_channel = request_channel
        self._coordinator = group_coordinator

    # Members

    def handle_join_group(self, request: Request) -> None:
        body = request.body_as(JoinGroupRequest)
        version = request.header.api_version

        def respond(result: JoinGroupResult) -> None:
            protocol_name = result.protocol_name
            if protocol_name is None and version < _JOIN_WITH_NULLABLE_PROTOCOL:
                protocol_name = ""
            self._request_channel.send_response(
                request,
                JoinGroupResponse(
                    error_code=result.error.code,
                    generation_id=result.generation_id,
                    protocol_type=result.protocol_type,
                    protocol_name=protocol_name,
                    leader=result.leader_id,
                    skip_assignment=(
                        result.skip_assignment and version >= _JOIN_WITH_SKIPPED_ASSIGNMENT
                    ),
                    member_id=result.member_id,
                    members=[
                        JoinGroupResponse.JoinGroupResponseMember(
                            member_id=member.member_id,
                            group_instance_id=member.group_instance_id,
                            metadata=member.metadata,
                        )
                        for member in result.members
                    ],
                ),
            )

        self._coordinator.handle_join_group(
            JoinGroup(
                group_id=body.group_id,
                member_id=body.member_id,
                group_instance_id=body.group_instance_id,
                client_id=request.header.client_id,
                client_host=_client_host(request),
                rebalance_timeout_ms=(
                    body.rebalance_timeout_ms
                    if version >= _JOIN_WITH_REBALANCE_TIMEOUT
                    else body.session_timeout_ms
                ),
                session_timeout_ms=body.session_timeout_ms,
                protocol_type=body.protocol_type,
                protocols=[(protocol.name, protocol.metadata) for protocol in body.protocols],
                require_known_member_id=(
                    version >= _JOIN_WITH_KNOWN_MEMBER_ID and body.group_instance_id is None
                ),
                supports_skipping_assignment=version >= _JOIN_WITH_SKIPPED_ASSIGNMENT,
                reason=body.reason,
            ),
            respond,
        )

    def handle_sync_group(self, request: Request) -> None:
        body = request.body_as(SyncGroupRequest)

        def respond(result: SyncGroupResult) -> None:
            self._request_channel.send_response(
                request,
                SyncGroupResponse(
                    error_code=result.error.code,
                    protocol_type=result.protocol_type,
                    protocol_name=result.protocol_name,
                    assignment=result.assignment,
                ),
            )

        if request.header.api_version >= _SYNC_WITH_PROTOCOL and (
            body.protocol_type is None or body.protocol_name is None
        ):
            respond(SyncGroupResult(Errors.INCONSISTENT_GROUP_PROTOCOL))
            return
        self._coordinator.handle_sync_group(
            body.group_id,
            generation_id=body.generation_id,
            member_id=body.member_id,
            protocol_type=body.protocol_type,
            protocol_name=body.protocol_name,
            group_instance_id=body.group_instance_id,
            assignments={a.member_id: a.assignment for a in body.assignments},
            callback=respond,
        )

    def handle_heartbeat(self, request: Request) -> None:
        body = request.body_as(HeartbeatRequest)
        error = self._coordinator.handle_heartbeat(
            body.group_id,
            member_id=body.member_id,
            group_instance_id=body.group_instance_id,
            generation_id=body.generation_id,
        )
        self._request_channel.send_response(request, HeartbeatResponse(error_code=error.code))

    def handle_leave_group(self, request: Request) -> None:
        body = request.body_as(LeaveGroupRequest)
        takes_several = request.header.api_version >= _LEAVE_WITH_SEVERAL_MEMBERS
        result = self._coordinator.handle_leave_group(
            body.group_id,
            [
                MemberIdentity(member.member_id, member.group_instance_id, member.reason)
                for member in body.members
            ]
            if takes_several
            else [MemberIdentity(body.member_id)],
        )
        self._request_channel.send_response(
            request,
            _leave_response(result)
            if takes_several
            else LeaveGroupResponse(error_code=_single_error(result).code),
        )

    # Administration

    def handle_describe_groups(self, request: Request) -> None:
        body = request.body_as(DescribeGroupsRequest)
        groups = []
        for group_id in body.groups:
            error, summary = self._coordinator.handle_describe_group(group_id)
            group = DescribeGroupsResponse.DescribedGroup(
                error_code=error.code,
                group_id=group_id,
                group_state=summary.state,
                protocol_type=summary.protocol_type,
                protocol_data=summary.protocol,
                members=[
                    DescribeGroupsResponse.DescribedGroupMember(
                        member_id=member.member_id,
                        group_instance_id=member.group_instance_id,
                        client_id=member.client_id,
                        client_host=member.client_host,
                        member_metadata=member.metadata,
                        member_assignment=member.assignment,
                    )
                    for member in summary.members
                ],
            )
            if body.include_authorized_operations and error is Errors.NONE:
                group.authorized_operations = _ALL_GROUP_OPERATIONS
            groups.append(group)
        self._request_channel.send_response(request, DescribeGroupsResponse(groups=groups))

    def handle_list_groups(self, request: Request) -> None:
        body = request.body_as(ListGroupsRequest)
        error, groups = self._coordinator.handle_list_groups(body.states_filter, body.types_filter)
        self._request_channel.send_response(
            request,
            ListGroupsResponse(
                error_code=error.code,
                groups=[
                    ListGroupsResponse.ListedGroup(
                        group_id=group.group_id,
                        protocol_type=group.protocol_type,
                        group_state=group.state,
                        group_type=group.group_type,
                    )
                    for group in groups
                ],
            ),
        )

    def handle_delete_groups(self, request: Request) -> None:
        body = request.body_as(DeleteGroupsRequest)
        errors = self._coordinator.handle_delete_groups(body.groups_names)
        self._request_channel.send_response(
            request,
            DeleteGroupsResponse(
                results=[
                    DeleteGroupsResponse.DeletableGroupResult(
                        group_id=group_id, error_code=error.code
                    )
                    for group_id, error in errors.items()
                ]
            ),
        )


def _client_host(request: Request) -> str:
    # As Java prints an address that has no name.
    return f"/{request.context.client_address}"


def _leave_response(result: LeaveGroupResult) -> LeaveGroupResponse:
    return LeaveGroupResponse(
        error_code=result.error.code,
        members=[
            LeaveGroupResponse.MemberResponse(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                error_code=error.code,
            )
            for member, error in result.members
        ],
    )


def _single_error(result: LeaveGroupResult) -> Errors:
    if result.error is not Errors.NONE:
        return result.error
    return result.members[0][1]
