"""UpdateMetadata: the controller sends brokers the state of the cluster."""

from __future__ import annotations

from uuid import UUID

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import (
    Message,
    Struct,
    array,
    bool_,
    int8,
    int16,
    int32,
    int64,
    string,
    uuid,
)


class UpdateMetadataRequest(
    Message, api_key=ApiKeys.UPDATE_METADATA, versions="0-8", flexible="6+"
):
    """Ports: org.apache.kafka.common.message.UpdateMetadataRequestData"""

    class UpdateMetadataPartitionState(Struct):
        topic_name: str = string("0-4", ignorable=True)
        partition_index: int = int32("0+")
        controller_epoch: int = int32("0+")
        leader: int = int32("0+")
        leader_epoch: int = int32("0+")
        isr: list[int] = array(int32, "0+")
        zk_version: int = int32("0+")
        replicas: list[int] = array(int32, "0+")
        offline_replicas: list[int] = array(int32, "4+", ignorable=True)

    class UpdateMetadataTopicState(Struct):
        topic_name: str = string("5+")
        topic_id: UUID = uuid("7+", ignorable=True)
        partition_states: list[UpdateMetadataRequest.UpdateMetadataPartitionState] = array(
            "UpdateMetadataPartitionState", "5+"
        )

    class UpdateMetadataEndpoint(Struct):
        port: int = int32("1+")
        host: str = string("1+")
        listener: str = string("3+", ignorable=True)
        security_protocol: int = int16("1+")

    class UpdateMetadataBroker(Struct):
        id: int = int32("0+")
        v0_host: str = string("0", ignorable=True)
        v0_port: int = int32("0", ignorable=True)
        endpoints: list[UpdateMetadataRequest.UpdateMetadataEndpoint] = array(
            "UpdateMetadataEndpoint", "1+", ignorable=True
        )
        rack: str | None = string("2+", nullable="0+", ignorable=True)

    controller_id: int = int32("0+")
    is_kraft_controller: bool = bool_("8+")
    type: int = int8("8+", tag=0)
    controller_epoch: int = int32("0+")
    broker_epoch: int = int64("5+", default=-1, ignorable=True)
    ungrouped_partition_states: list[UpdateMetadataPartitionState] = array(
        "UpdateMetadataPartitionState", "0-4"
    )
    topic_states: list[UpdateMetadataTopicState] = array("UpdateMetadataTopicState", "5+")
    live_brokers: list[UpdateMetadataBroker] = array("UpdateMetadataBroker", "0+")


class UpdateMetadataResponse(
    Message, api_key=ApiKeys.UPDATE_METADATA, versions="0-8", flexible="6+"
):
    """Ports: org.apache.kafka.common.message.UpdateMetadataResponseData"""

    error_code: int = int16("0+")
