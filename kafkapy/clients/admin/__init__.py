"""Managing a cluster: `from kafkapy.clients.admin import AdminClient`."""

from kafkapy.clients.admin.admin_client import AdminClient
from kafkapy.clients.admin.admin_client_config import AdminClientConfig
from kafkapy.clients.admin.client_quota import (
    ClientQuotaAlteration,
    ClientQuotaEntity,
    ClientQuotaFilter,
    ClientQuotaFilterComponent,
    ClientQuotaMatch,
)
from kafkapy.clients.admin.cluster_description import (
    ClusterDescription,
    FeatureMetadata,
    FeatureUpdate,
    LogDirDescription,
    ReplicaInfo,
    ReplicaLogDirInfo,
    TopicPartitionReplica,
    UpgradeType,
    VersionRange,
)
from kafkapy.clients.admin.config_entry import (
    AlterConfigOp,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    ConfigSynonym,
)
from kafkapy.clients.admin.consumer_group_description import (
    ConsumerGroupDescription,
    ConsumerGroupListing,
    ConsumerGroupState,
    GroupType,
    MemberDescription,
    MemberToRemove,
)
from kafkapy.clients.admin.delegation_token import DelegationToken
from kafkapy.clients.admin.new_topic import NewPartitions, NewTopic
from kafkapy.clients.admin.offset_spec import (
    IsolationLevel,
    ListOffsetsResultInfo,
    OffsetSpec,
)
from kafkapy.clients.admin.partition_reassignment import PartitionReassignment
from kafkapy.clients.admin.results import Results
from kafkapy.clients.admin.topic_description import (
    TopicDescription,
    TopicListing,
    TopicMetadataAndConfig,
    TopicPartitionInfo,
)
from kafkapy.clients.admin.transaction_description import (
    AbortTransactionSpec,
    ProducerIdAndEpoch,
    ProducerState,
    TransactionDescription,
    TransactionListing,
    TransactionState,
)
from kafkapy.clients.admin.user_scram_credential import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kafkapy.common.config_resource import (
    AlterOperation,
    ConfigSource,
)
from kafkapy.common.election_type import (
    ElectionType,
)
from kafkapy.common.security.acl import (
    AccessControlEntry,
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kafkapy.common.security.kafka_principal import (
    KafkaPrincipal,
)

__all__ = [
    "AbortTransactionSpec",
    "AccessControlEntry",
    "AccessControlEntryFilter",
    "AclBinding",
    "AclBindingFilter",
    "AclOperation",
    "AclPermissionType",
    "AdminClient",
    "AdminClientConfig",
    "AlterConfigOp",
    "AlterOperation",
    "ClientQuotaAlteration",
    "ClientQuotaEntity",
    "ClientQuotaFilter",
    "ClientQuotaFilterComponent",
    "ClientQuotaMatch",
    "ClusterDescription",
    "ConfigEntry",
    "ConfigResource",
    "ConfigResourceType",
    "ConfigSource",
    "ConfigSynonym",
    "ConsumerGroupDescription",
    "ConsumerGroupListing",
    "ConsumerGroupState",
    "DelegationToken",
    "ElectionType",
    "FeatureMetadata",
    "FeatureUpdate",
    "GroupType",
    "IsolationLevel",
    "KafkaPrincipal",
    "ListOffsetsResultInfo",
    "LogDirDescription",
    "MemberDescription",
    "MemberToRemove",
    "NewPartitions",
    "NewTopic",
    "OffsetSpec",
    "PartitionReassignment",
    "PatternType",
    "ProducerIdAndEpoch",
    "ProducerState",
    "ReplicaInfo",
    "ReplicaLogDirInfo",
    "ResourcePattern",
    "ResourcePatternFilter",
    "ResourceType",
    "Results",
    "ScramCredentialInfo",
    "ScramMechanism",
    "TopicDescription",
    "TopicListing",
    "TopicMetadataAndConfig",
    "TopicPartitionInfo",
    "TopicPartitionReplica",
    "TransactionDescription",
    "TransactionListing",
    "TransactionState",
    "UpgradeType",
    "UserScramCredentialDeletion",
    "UserScramCredentialUpsertion",
    "VersionRange",
]
