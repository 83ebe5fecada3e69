"""CreatePartitions: add partitions to topics."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, Struct, array, bool_, int16, int32, string


class CreatePartitionsRequest(
    Message, api_key=ApiKeys.CREATE_PARTITIONS, versions="0-3", flexible="2+"
):
    """Ports: org.apache.kafka.common.message.CreatePartitionsRequestData"""

    class CreatePartitionsAssignment(Struct):
        broker_ids: list[int] = array(int32, "0+")

    class CreatePartitionsTopic(Struct):
        name: str = string("0+")
        count: int = int32("0+")
        assignments: list[CreatePartitionsRequest.CreatePartitionsAssignment] | None = array(
            "CreatePartitionsAssignment", "0+", nullable="0+"
        )

    topics: list[CreatePartitionsTopic] = array("CreatePartitionsTopic", "0+")
    timeout_ms: int = int32("0+")
    validate_only: bool = bool_("0+")


class CreatePartitionsResponse(
    Message, api_key=ApiKeys.CREATE_PARTITIONS, versions="0-3", flexible="2+"
):
    """Ports: org.apache.kafka.common.message.CreatePartitionsResponseData"""

    class CreatePartitionsTopicResult(Struct):
        name: str = string("0+")
        error_code: int = int16("0+")
        error_message: str | None = string("0+", nullable="0+", default=None)

    throttle_time_ms: int = int32("0+")
    results: list[CreatePartitionsTopicResult] = array("CreatePartitionsTopicResult", "0+")
