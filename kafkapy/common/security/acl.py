"""Access rules: who may do what to which resources. The numbers are those of the protocol."""

from __future__ import annotations

from dataclasses import dataclass

from kafkapy.common.protocol_enum import ProtocolEnum

WILDCARD_RESOURCE = "*"


class ResourceType(ProtocolEnum):
    """Ports: org.apache.kafka.common.resource.ResourceType"""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(ProtocolEnum):
    """Ports: org.apache.kafka.common.resource.PatternType"""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(ProtocolEnum):
    """Ports: org.apache.kafka.common.acl.AclOperation"""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14


_SUPPORTED_OPERATIONS = {
    ResourceType.TOPIC: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (AclOperation.READ, AclOperation.DELETE, AclOperation.DESCRIBE),
    ResourceType.CLUSTER: (
        AclOperation.CREATE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE,
    ),
}


def supported_operations(resource_type: ResourceType) -> int:
    """What can be done to such a resource, as the bits of responses: where there are no access
    rules, also what may be done."""
    return sum(1 << operation for operation in _SUPPORTED_OPERATIONS[resource_type])


class AclPermissionType(ProtocolEnum):
    """Ports: org.apache.kafka.common.acl.AclPermissionType"""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


@dataclass(frozen=True, slots=True)
class ResourcePattern:
    """The resources that a rule is about.

    Ports: org.apache.kafka.common.resource.ResourcePattern
    """

    resource_type: ResourceType
    name: str
    pattern_type: PatternType = PatternType.LITERAL


@dataclass(frozen=True, slots=True)
class ResourcePatternFilter:
    """Which patterns are meant; a name of None is any.

    Ports: org.apache.kafka.common.resource.ResourcePatternFilter
    """

    resource_type: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern_type: PatternType = PatternType.ANY


@dataclass(frozen=True, slots=True)
class AccessControlEntry:
    """What a rule allows or denies, to whom, from where.

    Ports: org.apache.kafka.common.acl.AccessControlEntry
    """

    principal: str
    host: str
    operation: AclOperation
    permission_type: AclPermissionType


@dataclass(frozen=True, slots=True)
class AccessControlEntryFilter:
    """Which entries are meant; None is any.

    Ports: org.apache.kafka.common.acl.AccessControlEntryFilter
    """

    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission_type: AclPermissionType = AclPermissionType.ANY


@dataclass(frozen=True, slots=True)
class AclBinding:
    """One access rule.

    Ports: org.apache.kafka.common.acl.AclBinding
    """

    pattern: ResourcePattern
    entry: AccessControlEntry


@dataclass(frozen=True, slots=True)
class AclBindingFilter:
    """Which rules are meant; without arguments all.

    Ports: org.apache.kafka.common.acl.AclBindingFilter
    """

    pattern_filter: ResourcePatternFilter = ResourcePatternFilter()
    entry_filter: AccessControlEntryFilter = AccessControlEntryFilter()


# The field of a response that nobody asked to be filled in.
_OPERATIONS_NOT_ASKED_FOR = -(2**31)


def authorized_operations(bits: int) -> frozenset[AclOperation] | None:
    """The operations of a bit field; None when it was not asked for."""
    if bits == _OPERATIONS_NOT_ASKED_FOR:
        return None
    return frozenset(
        operation
        for operation in AclOperation
        if operation > AclOperation.ALL and bits >> operation & 1
    )
