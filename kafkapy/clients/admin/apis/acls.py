"""Access rules: showing, adding and removing them."""

from __future__ import annotations

from collections.abc import Sequence

from kafkapy.clients.admin.admin_api_handler import (
    AdminApiHandler,
    ApiResult,
    SingleHandler,
    raise_for,
)
from kafkapy.clients.admin.lookup_strategy import at_any_broker
from kafkapy.clients.client_request import VersionedRequest
from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from kafkapy.common.protocol.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from kafkapy.common.protocol.messages.describe_acls import (
    DescribeAclsRequest,
    DescribeAclsResponse,
)
from kafkapy.common.security.acl import (
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kafkapy.metadata.broker import Node


class DescribeAclsHandler(SingleHandler[list[AclBinding], DescribeAclsResponse]):
    call_name = "describe_acls"

    def __init__(self, acl_filter: AclBindingFilter) -> None:
        super().__init__(at_any_broker())
        self._filter = acl_filter

    def build(self, timeout_ms: int) -> VersionedRequest:
        pattern, entry = self._filter.pattern_filter, self._filter.entry_filter
        return VersionedRequest(
            DescribeAclsRequest(
                resource_type_filter=pattern.resource_type,
                resource_name_filter=pattern.name,
                pattern_type_filter=pattern.pattern_type,
                principal_filter=entry.principal,
                host_filter=entry.host,
                operation=entry.operation,
                permission_type=entry.permission_type,
            )
        )

    def read(self, response: DescribeAclsResponse) -> list[AclBinding]:
        raise_for(response.error_code, response.error_message)
        return [
            AclBinding(
                ResourcePattern(
                    ResourceType(resource.resource_type),
                    resource.resource_name,
                    PatternType(resource.pattern_type),
                ),
                _entry(acl),
            )
            for resource in response.resources
            for acl in resource.acls
        ]


class CreateAclsHandler(AdminApiHandler[AclBinding, None, CreateAclsResponse]):
    call_name = "create_acls"

    def __init__(self) -> None:
        super().__init__(at_any_broker())

    def build_request(self, keys: Sequence[AclBinding], timeout_ms: int) -> VersionedRequest:
        return VersionedRequest(
            CreateAclsRequest(
                creations=[
                    CreateAclsRequest.AclCreation(
                        resource_type=key.pattern.resource_type,
                        resource_name=key.pattern.name,
                        resource_pattern_type=key.pattern.pattern_type,
                        principal=key.entry.principal,
                        host=key.entry.host,
                        operation=key.entry.operation,
                        permission_type=key.entry.permission_type,
                    )
                    for key in keys
                ]
            )
        )

    def handle_response(
        self, keys: Sequence[AclBinding], response: CreateAclsResponse, node: Node
    ) -> ApiResult[AclBinding, None]:
        result = self.new_result()
        # They come in the order of the request, without a word of which is which.
        for key, created in zip(keys, response.results, strict=False):
            result.file(key, created.error_code, None, created.error_message)
        return result


class DeleteAclsHandler(
    AdminApiHandler[AclBindingFilter, tuple[AclBinding, ...], DeleteAclsResponse]
):
    """The value is what was removed."""

    call_name = "delete_acls"

    def __init__(self) -> None:
        super().__init__(at_any_broker())

    def build_request(self, keys: Sequence[AclBindingFilter], timeout_ms: int) -> VersionedRequest:
        return VersionedRequest(
            DeleteAclsRequest(
                filters=[
                    DeleteAclsRequest.DeleteAclsFilter(
                        resource_type_filter=key.pattern_filter.resource_type,
                        resource_name_filter=key.pattern_filter.name,
                        pattern_type_filter=key.pattern_filter.pattern_type,
                        principal_filter=key.entry_filter.principal,
                        host_filter=key.entry_filter.host,
                        operation=key.entry_filter.operation,
                        permission_type=key.entry_filter.permission_type,
                    )
                    for key in keys
                ]
            )
        )

    def handle_response(
        self, keys: Sequence[AclBindingFilter], response: DeleteAclsResponse, node: Node
    ) -> ApiResult[AclBindingFilter, tuple[AclBinding, ...]]:
        result = self.new_result()
        for key, answer in zip(keys, response.filter_results, strict=False):
            not_removed = [a for a in answer.matching_acls if a.error_code != Errors.NONE.code]
            if answer.error_code == Errors.NONE.code and not_removed:
                first = not_removed[0]
                result.fail(key, Errors.for_code(first.error_code), first.error_message)
                continue
            removed = tuple(
                AclBinding(
                    ResourcePattern(
                        ResourceType(acl.resource_type),
                        acl.resource_name,
                        PatternType(acl.pattern_type),
                    ),
                    _entry(acl),
                )
                for acl in answer.matching_acls
            )
            result.file(key, answer.error_code, removed, answer.error_message)
        return result


def _entry(
    acl: DescribeAclsResponse.AclDescription | DeleteAclsResponse.DeleteAclsMatchingAcl,
) -> AccessControlEntry:
    return AccessControlEntry(
        acl.principal,
        acl.host,
        AclOperation(acl.operation),
        AclPermissionType(acl.permission_type),
    )
