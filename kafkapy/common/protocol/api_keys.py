"""Every API of the Kafka protocol: its key, name, versions and listeners, in one table."""

from __future__ import annotations

from enum import Flag, IntEnum, auto

from kafkapy.common.protocol.versions import Versions

_NEVER = 32768


class ListenerType(Flag):
    """The roles of a server, which decide the APIs it offers.

    Ports: org.apache.kafka.common.message.ApiMessageType.ListenerType
    """

    ZK_BROKER = auto()
    BROKER = auto()
    CONTROLLER = auto()


_ZK = ListenerType.ZK_BROKER
_BROKER = ListenerType.BROKER
_CONTROLLER = ListenerType.CONTROLLER


class ApiKeys(IntEnum):
    """The APIs, each with the versions that Kafka 3.9 advertises.

    A message may be declared for later versions than these; `Message.VERSIONS` tells what the
    codec can do, this table what a broker may offer.

    Ports: org.apache.kafka.common.protocol.ApiKeys
    """

    # key, name, versions, flexible versions, listeners, whether the latest version is unstable
    PRODUCE = (0, "Produce", "0-11", "9+", _ZK | _BROKER)
    FETCH = (1, "Fetch", "0-17", "12+", _ZK | _BROKER | _CONTROLLER)
    LIST_OFFSETS = (2, "ListOffsets", "0-9", "6+", _ZK | _BROKER)
    METADATA = (3, "Metadata", "0-12", "9+", _ZK | _BROKER)
    LEADER_AND_ISR = (4, "LeaderAndIsr", "0-7", "4+", _ZK)
    STOP_REPLICA = (5, "StopReplica", "0-4", "2+", _ZK)
    UPDATE_METADATA = (6, "UpdateMetadata", "0-8", "6+", _ZK)
    CONTROLLED_SHUTDOWN = (7, "ControlledShutdown", "0-3", "3+", _ZK | _CONTROLLER)
    OFFSET_COMMIT = (8, "OffsetCommit", "0-9", "8+", _ZK | _BROKER)
    OFFSET_FETCH = (9, "OffsetFetch", "0-9", "6+", _ZK | _BROKER)
    FIND_COORDINATOR = (10, "FindCoordinator", "0-6", "3+", _ZK | _BROKER)
    JOIN_GROUP = (11, "JoinGroup", "0-9", "6+", _ZK | _BROKER)
    HEARTBEAT = (12, "Heartbeat", "0-4", "4+", _ZK | _BROKER)
    LEAVE_GROUP = (13, "LeaveGroup", "0-5", "4+", _ZK | _BROKER)
    SYNC_GROUP = (14, "SyncGroup", "0-5", "4+", _ZK | _BROKER)
    DESCRIBE_GROUPS = (15, "DescribeGroups", "0-5", "5+", _ZK | _BROKER)
    LIST_GROUPS = (16, "ListGroups", "0-5", "3+", _ZK | _BROKER)
    SASL_HANDSHAKE = (17, "SaslHandshake", "0-1", "none", _ZK | _BROKER | _CONTROLLER)
    API_VERSIONS = (18, "ApiVersions", "0-4", "3+", _ZK | _BROKER | _CONTROLLER)
    CREATE_TOPICS = (19, "CreateTopics", "0-7", "5+", _ZK | _BROKER | _CONTROLLER)
    DELETE_TOPICS = (20, "DeleteTopics", "0-6", "4+", _ZK | _BROKER | _CONTROLLER)
    DELETE_RECORDS = (21, "DeleteRecords", "0-2", "2+", _ZK | _BROKER)
    INIT_PRODUCER_ID = (22, "InitProducerId", "0-5", "2+", _ZK | _BROKER)
    OFFSET_FOR_LEADER_EPOCH = (23, "OffsetForLeaderEpoch", "0-4", "4+", _ZK | _BROKER)
    ADD_PARTITIONS_TO_TXN = (24, "AddPartitionsToTxn", "0-5", "3+", _ZK | _BROKER)
    ADD_OFFSETS_TO_TXN = (25, "AddOffsetsToTxn", "0-4", "3+", _ZK | _BROKER)
    END_TXN = (26, "EndTxn", "0-4", "3+", _ZK | _BROKER)
    WRITE_TXN_MARKERS = (27, "WriteTxnMarkers", "0-1", "1+", _ZK | _BROKER)
    TXN_OFFSET_COMMIT = (28, "TxnOffsetCommit", "0-4", "3+", _ZK | _BROKER)
    DESCRIBE_ACLS = (29, "DescribeAcls", "0-3", "2+", _ZK | _BROKER | _CONTROLLER)
    CREATE_ACLS = (30, "CreateAcls", "0-3", "2+", _ZK | _BROKER | _CONTROLLER)
    DELETE_ACLS = (31, "DeleteAcls", "0-3", "2+", _ZK | _BROKER | _CONTROLLER)
    DESCRIBE_CONFIGS = (32, "DescribeConfigs", "0-4", "4+", _ZK | _BROKER | _CONTROLLER)
    ALTER_CONFIGS = (33, "AlterConfigs", "0-2", "2+", _ZK | _BROKER | _CONTROLLER)
    ALTER_REPLICA_LOG_DIRS = (34, "AlterReplicaLogDirs", "0-2", "2+", _ZK | _BROKER)
    DESCRIBE_LOG_DIRS = (35, "DescribeLogDirs", "0-4", "2+", _ZK | _BROKER)
    SASL_AUTHENTICATE = (36, "SaslAuthenticate", "0-2", "2+", _ZK | _BROKER | _CONTROLLER)
    CREATE_PARTITIONS = (37, "CreatePartitions", "0-3", "2+", _ZK | _BROKER | _CONTROLLER)
    CREATE_DELEGATION_TOKEN = (
        38,
        "CreateDelegationToken",
        "0-3",
        "2+",
        _ZK | _BROKER | _CONTROLLER,
    )
    RENEW_DELEGATION_TOKEN = (39, "RenewDelegationToken", "0-2", "2+", _ZK | _BROKER | _CONTROLLER)
    EXPIRE_DELEGATION_TOKEN = (
        40,
        "ExpireDelegationToken",
        "0-2",
        "2+",
        _ZK | _BROKER | _CONTROLLER,
    )
    DESCRIBE_DELEGATION_TOKEN = (
        41,
        "DescribeDelegationToken",
        "0-3",
        "2+",
        _ZK | _BROKER | _CONTROLLER,
    )
    DELETE_GROUPS = (42, "DeleteGroups", "0-2", "2+", _ZK | _BROKER)
    ELECT_LEADERS = (43, "ElectLeaders", "0-2", "2+", _ZK | _BROKER | _CONTROLLER)
    INCREMENTAL_ALTER_CONFIGS = (
        44,
        "IncrementalAlterConfigs",
        "0-1",
        "1+",
        _ZK | _BROKER | _CONTROLLER,
    )
    ALTER_PARTITION_REASSIGNMENTS = (
        45,
        "AlterPartitionReassignments",
        "0",
        "0+",
        _ZK | _BROKER | _CONTROLLER,
    )
    LIST_PARTITION_REASSIGNMENTS = (
        46,
        "ListPartitionReassignments",
        "0",
        "0+",
        _ZK | _BROKER | _CONTROLLER,
    )
    OFFSET_DELETE = (47, "OffsetDelete", "0", "none", _ZK | _BROKER)
    DESCRIBE_CLIENT_QUOTAS = (48, "DescribeClientQuotas", "0-1", "1+", _ZK | _BROKER)
    ALTER_CLIENT_QUOTAS = (49, "AlterClientQuotas", "0-1", "1+", _ZK | _BROKER | _CONTROLLER)
    DESCRIBE_USER_SCRAM_CREDENTIALS = (
        50,
        "DescribeUserScramCredentials",
        "0",
        "0+",
        _ZK | _BROKER | _CONTROLLER,
    )
    ALTER_USER_SCRAM_CREDENTIALS = (
        51,
        "AlterUserScramCredentials",
        "0",
        "0+",
        _ZK | _BROKER | _CONTROLLER,
    )
    VOTE = (52, "Vote", "0-1", "0+", _CONTROLLER)
    BEGIN_QUORUM_EPOCH = (53, "BeginQuorumEpoch", "0-1", "1+", _CONTROLLER)
    END_QUORUM_EPOCH = (54, "EndQuorumEpoch", "0-1", "1+", _CONTROLLER)
    DESCRIBE_QUORUM = (55, "DescribeQuorum", "0-2", "0+", _BROKER | _CONTROLLER)
    ALTER_PARTITION = (56, "AlterPartition", "0-3", "0+", _ZK | _CONTROLLER)
    UPDATE_FEATURES = (57, "UpdateFeatures", "0-1", "0+", _ZK | _BROKER | _CONTROLLER)
    ENVELOPE = (58, "Envelope", "0", "0+", _ZK | _CONTROLLER)
    FETCH_SNAPSHOT = (59, "FetchSnapshot", "0-1", "0+", _CONTROLLER)
    DESCRIBE_CLUSTER = (60, "DescribeCluster", "0-1", "0+", _ZK | _BROKER | _CONTROLLER)
    DESCRIBE_PRODUCERS = (61, "DescribeProducers", "0", "0+", _ZK | _BROKER)
    BROKER_REGISTRATION = (62, "BrokerRegistration", "0-4", "0+", _CONTROLLER)
    BROKER_HEARTBEAT = (63, "BrokerHeartbeat", "0-1", "0+", _CONTROLLER)
    UNREGISTER_BROKER = (64, "UnregisterBroker", "0", "0+", _BROKER | _CONTROLLER)
    DESCRIBE_TRANSACTIONS = (65, "DescribeTransactions", "0", "0+", _ZK | _BROKER)
    LIST_TRANSACTIONS = (66, "ListTransactions", "0-1", "0+", _ZK | _BROKER)
    ALLOCATE_PRODUCER_IDS = (67, "AllocateProducerIds", "0", "0+", _ZK | _CONTROLLER)
    CONSUMER_GROUP_HEARTBEAT = (68, "ConsumerGroupHeartbeat", "0", "0+", _ZK | _BROKER)
    CONSUMER_GROUP_DESCRIBE = (69, "ConsumerGroupDescribe", "0", "0+", _ZK | _BROKER)
    CONTROLLER_REGISTRATION = (70, "ControllerRegistration", "0", "0+", _CONTROLLER)
    GET_TELEMETRY_SUBSCRIPTIONS = (71, "GetTelemetrySubscriptions", "0", "0+", _BROKER)
    PUSH_TELEMETRY = (72, "PushTelemetry", "0", "0+", _BROKER)
    ASSIGN_REPLICAS_TO_DIRS = (73, "AssignReplicasToDirs", "0", "0+", _CONTROLLER)
    LIST_CLIENT_METRICS_RESOURCES = (74, "ListClientMetricsResources", "0", "0+", _BROKER)
    DESCRIBE_TOPIC_PARTITIONS = (75, "DescribeTopicPartitions", "0", "0+", _BROKER)
    SHARE_GROUP_HEARTBEAT = (76, "ShareGroupHeartbeat", "0", "0+", _BROKER, True)
    SHARE_GROUP_DESCRIBE = (77, "ShareGroupDescribe", "0", "0+", _BROKER, True)
    SHARE_FETCH = (78, "ShareFetch", "0", "0+", _BROKER, True)
    SHARE_ACKNOWLEDGE = (79, "ShareAcknowledge", "0", "0+", _BROKER, True)
    ADD_RAFT_VOTER = (80, "AddRaftVoter", "0", "0+", _BROKER | _CONTROLLER)
    REMOVE_RAFT_VOTER = (81, "RemoveRaftVoter", "0", "0+", _BROKER | _CONTROLLER)
    UPDATE_RAFT_VOTER = (82, "UpdateRaftVoter", "0", "0+", _CONTROLLER)
    INITIALIZE_SHARE_GROUP_STATE = (83, "InitializeShareGroupState", "0", "0+", _BROKER, True)
    READ_SHARE_GROUP_STATE = (84, "ReadShareGroupState", "0", "0+", _BROKER, True)
    WRITE_SHARE_GROUP_STATE = (85, "WriteShareGroupState", "0", "0+", _BROKER, True)
    DELETE_SHARE_GROUP_STATE = (86, "DeleteShareGroupState", "0", "0+", _BROKER, True)
    READ_SHARE_GROUP_STATE_SUMMARY = (87, "ReadShareGroupStateSummary", "0", "0+", _BROKER, True)

    api_name: str
    versions: Versions
    min_version: int
    max_version: int
    first_flexible_version: int  # above every version when there is none
    listeners: ListenerType
    latest_version_unstable: bool

    def __new__(
        cls,
        key: int,
        api_name: str,
        versions: str,
        flexible: str,
        listeners: ListenerType,
        latest_version_unstable: bool = False,
    ) -> ApiKeys:
        api = int.__new__(cls, key)
        api._value_ = key
        api.api_name = api_name
        api.versions = Versions.parse(versions)
        api.min_version = api.versions.lowest
        api.max_version = api.versions.highest
        api.first_flexible_version = (
            _NEVER if flexible == "none" else Versions.parse(flexible).lowest
        )
        api.listeners = listeners
        api.latest_version_unstable = latest_version_unstable
        return api

    @staticmethod
    def for_id(key: int) -> ApiKeys | None:
        return _BY_KEY.get(key)

    @staticmethod
    def apis_for_listener(listener: ListenerType) -> list[ApiKeys]:
        """In the order of their keys."""
        return [api for api in ApiKeys if listener in api.listeners]

    def is_version_supported(self, version: int) -> bool:
        return self.min_version <= version <= self.max_version


_BY_KEY = {int(api): api for api in ApiKeys}
