"""ControlledShutdown: a broker asks the controller to move leadership away before it stops."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, Struct, array, int16, int32, int64, string


class ControlledShutdownRequest(
    Message, api_key=ApiKeys.CONTROLLED_SHUTDOWN, versions="0-3", flexible="3+"
):
    """Ports: org.apache.kafka.common.message.ControlledShutdownRequestData"""

    broker_id: int = int32("0+")
    broker_epoch: int = int64("2+", default=-1, ignorable=True)


class ControlledShutdownResponse(
    Message, api_key=ApiKeys.CONTROLLED_SHUTDOWN, versions="0-3", flexible="3+"
):
    """Ports: org.apache.kafka.common.message.ControlledShutdownResponseData"""

    class RemainingPartition(Struct):
        topic_name: str = string("0+")
        partition_index: int = int32("0+")

    error_code: int = int16("0+")
    remaining_partitions: list[RemainingPartition] = array("RemainingPartition", "0+")
