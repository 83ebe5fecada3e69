"""When a client holds itself back because a broker asked for it (KIP-219)."""

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message

# From these versions on the broker answers at once and mutes the connection; before, the answer
# itself was held back, and waiting again would be waiting twice. Others: from their first version.
_FIRST_VERSION = {
    ApiKeys.PRODUCE: 6,
    ApiKeys.FETCH: 8,
    ApiKeys.LIST_OFFSETS: 3,
    ApiKeys.METADATA: 6,
    ApiKeys.OFFSET_COMMIT: 4,
    ApiKeys.OFFSET_FETCH: 4,
    ApiKeys.FIND_COORDINATOR: 2,
    ApiKeys.JOIN_GROUP: 3,
    ApiKeys.HEARTBEAT: 2,
    ApiKeys.LEAVE_GROUP: 2,
    ApiKeys.SYNC_GROUP: 2,
    ApiKeys.DESCRIBE_GROUPS: 2,
    ApiKeys.LIST_GROUPS: 2,
    ApiKeys.API_VERSIONS: 2,
    ApiKeys.CREATE_TOPICS: 3,
    ApiKeys.DELETE_TOPICS: 2,
    ApiKeys.DELETE_RECORDS: 1,
    ApiKeys.INIT_PRODUCER_ID: 1,
    ApiKeys.OFFSET_FOR_LEADER_EPOCH: 2,
    ApiKeys.ADD_PARTITIONS_TO_TXN: 1,
    ApiKeys.ADD_OFFSETS_TO_TXN: 1,
    ApiKeys.END_TXN: 1,
    ApiKeys.TXN_OFFSET_COMMIT: 1,
    ApiKeys.DESCRIBE_ACLS: 1,
    ApiKeys.CREATE_ACLS: 1,
    ApiKeys.DELETE_ACLS: 1,
    ApiKeys.DESCRIBE_CONFIGS: 2,
    ApiKeys.ALTER_CONFIGS: 1,
    ApiKeys.ALTER_REPLICA_LOG_DIRS: 1,
    ApiKeys.DESCRIBE_LOG_DIRS: 1,
    ApiKeys.CREATE_PARTITIONS: 1,
    ApiKeys.CREATE_DELEGATION_TOKEN: 1,
    ApiKeys.RENEW_DELEGATION_TOKEN: 1,
    ApiKeys.EXPIRE_DELEGATION_TOKEN: 1,
    ApiKeys.DESCRIBE_DELEGATION_TOKEN: 1,
    ApiKeys.DELETE_GROUPS: 1,
}


def should_client_throttle(api_key: ApiKeys, version: int) -> bool:
    return version >= _FIRST_VERSION.get(api_key, 0)


def throttle_time_ms(response: Message) -> int:
    """How long the broker wants to be left alone; 0 also for a response without the field."""
    value: int = getattr(response, "throttle_time_ms", 0)
    return value
