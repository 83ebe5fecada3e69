"""CreateTopics: create topics."""

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
    string,
    uuid,
)


class CreateTopicsRequest(
    Message, api_key=ApiKeys.CREATE_TOPICS, versions="0-7", flexible="5+", deprecated="0-1"
):
    """Ports: org.apache.kafka.common.message.CreateTopicsRequestData"""

    class CreatableReplicaAssignment(Struct):
        partition_index: int = int32("0+")
        broker_ids: list[int] = array(int32, "0+")

    class CreatableTopicConfig(Struct):
        name: str = string("0+")
        value: str | None = string("0+", nullable="0+")

    class CreatableTopic(Struct):
        name: str = string("0+")
        num_partitions: int = int32("0+")
        replication_factor: int = int16("0+")
        assignments: list[CreateTopicsRequest.CreatableReplicaAssignment] = array(
            "CreatableReplicaAssignment", "0+"
        )
        configs: list[CreateTopicsRequest.CreatableTopicConfig] = array(
            "CreatableTopicConfig", "0+"
        )

    topics: list[CreatableTopic] = array("CreatableTopic", "0+")
    timeout_ms: int = int32("0+", default=60000)
    validate_only: bool = bool_("1+")


class CreateTopicsResponse(Message, api_key=ApiKeys.CREATE_TOPICS, versions="0-7", flexible="5+"):
    """Ports: org.apache.kafka.common.message.CreateTopicsResponseData"""

    class CreatableTopicConfigs(Struct):
        name: str = string("5+")
        value: str | None = string("5+", nullable="5+")
        read_only: bool = bool_("5+")
        config_source: int = int8("5+", default=-1, ignorable=True)
        is_sensitive: bool = bool_("5+")

    class CreatableTopicResult(Struct):
        name: str = string("0+")
        topic_id: UUID = uuid("7+", ignorable=True)
        error_code: int = int16("0+")
        error_message: str | None = string("1+", nullable="0+", ignorable=True)
        topic_config_error_code: int = int16("5+", tag=0, ignorable=True)
        num_partitions: int = int32("5+", default=-1, ignorable=True)
        replication_factor: int = int16("5+", default=-1, ignorable=True)
        configs: list[CreateTopicsResponse.CreatableTopicConfigs] | None = array(
            "CreatableTopicConfigs", "5+", nullable="5+", ignorable=True
        )

    throttle_time_ms: int = int32("2+", ignorable=True)
    topics: list[CreatableTopicResult] = array("CreatableTopicResult", "0+")
