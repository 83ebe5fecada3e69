"""Managing a cluster: `from kafkapy.clients.admin import AdminClient`."""

from kafkapy.clients.admin.admin_client import AdminClient
from kafkapy.clients.admin.admin_client_config import AdminClientConfig
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
from kafkapy.clients.admin.new_topic import NewPartitions, NewTopic
from kafkapy.clients.admin.offset_spec import IsolationLevel, ListOffsetsResultInfo, OffsetSpec
from kafkapy.clients.admin.results import Results
from kafkapy.clients.admin.topic_description import (
    TopicDescription,
    TopicListing,
    TopicMetadataAndConfig,
    TopicPartitionInfo,
)
from kafkapy.common.config_resource import AlterOperation, ConfigSource

__all__ = [
    "AdminClient",
    "AdminClientConfig",
    "AlterConfigOp",
    "AlterOperation",
    "ConfigEntry",
    "ConfigResource",
    "ConfigResourceType",
    "ConfigSource",
    "ConfigSynonym",
    "ConsumerGroupDescription",
    "ConsumerGroupListing",
    "ConsumerGroupState",
    "GroupType",
    "IsolationLevel",
    "ListOffsetsResultInfo",
    "MemberDescription",
    "MemberToRemove",
    "NewPartitions",
    "NewTopic",
    "OffsetSpec",
    "Results",
    "TopicDescription",
    "TopicListing",
    "TopicMetadataAndConfig",
    "TopicPartitionInfo",
]
