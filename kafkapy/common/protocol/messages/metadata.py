"""Metadata: describe brokers, topics and partition leaders."""

from __future__ import annotations

from uuid import UUID

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, Struct, array, bool_, int16, int32, string, uuid


class MetadataRequest(
    Message, api_key=ApiKeys.METADATA, versions="0-12", flexible="9+", deprecated="0-3"
):
    """Ports: org.apache.kafka.common.message.MetadataRequestData"""

    class MetadataRequestTopic(Struct):
        topic_id: UUID = uuid("10+", ignorable=True)
        name: str | None = string("0+", nullable="10+")

    topics: list[MetadataRequestTopic] | None = array("MetadataRequestTopic", "0+", nullable="1+")
    allow_auto_topic_creation: bool = bool_("4+", default=True)
    include_cluster_authorized_operations: bool = bool_("8-10")
    include_topic_authorized_operations: bool = bool_("8+")


class MetadataResponse(Message, api_key=ApiKeys.METADATA, versions="0-12", flexible="9+"):
    """Ports: org.apache.kafka.common.message.MetadataResponseData"""

    class MetadataResponseBroker(Struct):
        node_id: int = int32("0+")
        host: str = string("0+")
        port: int = int32("0+")
        rack: str | None = string("1+", nullable="1+", default=None, ignorable=True)

    class MetadataResponsePartition(Struct):
        error_code: int = int16("0+")
        partition_index: int = int32("0+")
        leader_id: int = int32("0+")
        leader_epoch: int = int32("7+", default=-1, ignorable=True)
        replica_nodes: list[int] = array(int32, "0+")
        isr_nodes: list[int] = array(int32, "0+")
        offline_replicas: list[int] = array(int32, "5+", ignorable=True)

    class MetadataResponseTopic(Struct):
        error_code: int = int16("0+")
        name: str | None = string("0+", nullable="12+")
        topic_id: UUID = uuid("10+", ignorable=True)
        is_internal: bool = bool_("1+", ignorable=True)
        partitions: list[MetadataResponse.MetadataResponsePartition] = array(
            "MetadataResponsePartition", "0+"
        )
        topic_authorized_operations: int = int32("8+", default=-2147483648)

    throttle_time_ms: int = int32("3+", ignorable=True)
    brokers: list[MetadataResponseBroker] = array("MetadataResponseBroker", "0+")
    cluster_id: str | None = string("2+", nullable="2+", default=None, ignorable=True)
    controller_id: int = int32("1+", default=-1, ignorable=True)
    topics: list[MetadataResponseTopic] = array("MetadataResponseTopic", "0+")
    cluster_authorized_operations: int = int32("8-10", default=-2147483648)
