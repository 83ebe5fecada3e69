"""AllocateProducerIds: a broker obtains a block of producer ids from the controller."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, int16, int32, int64


class AllocateProducerIdsRequest(
    Message, api_key=ApiKeys.ALLOCATE_PRODUCER_IDS, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.AllocateProducerIdsRequestData"""

    broker_id: int = int32("0+")
    broker_epoch: int = int64("0+", default=-1)


class AllocateProducerIdsResponse(
    Message, api_key=ApiKeys.ALLOCATE_PRODUCER_IDS, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.AllocateProducerIdsResponseData"""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    producer_id_start: int = int64("0+")
    producer_id_len: int = int32("0+")
