"""InitProducerId: obtain a producer id and epoch."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, int16, int32, int64, string


class InitProducerIdRequest(
    Message, api_key=ApiKeys.INIT_PRODUCER_ID, versions="0-5", flexible="2+"
):
    """Ports: org.apache.kafka.common.message.InitProducerIdRequestData"""

    transactional_id: str | None = string("0+", nullable="0+")
    transaction_timeout_ms: int = int32("0+")
    producer_id: int = int64("3+", default=-1)
    producer_epoch: int = int16("3+", default=-1)


class InitProducerIdResponse(
    Message, api_key=ApiKeys.INIT_PRODUCER_ID, versions="0-5", flexible="2+"
):
    """Ports: org.apache.kafka.common.message.InitProducerIdResponseData"""

    throttle_time_ms: int = int32("0+", ignorable=True)
    error_code: int = int16("0+")
    producer_id: int = int64("0+", default=-1)
    producer_epoch: int = int16("0+")
