"""AddOffsetsToTxn: add the offsets of a consumer group to a transaction."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, int16, int32, int64, string


class AddOffsetsToTxnRequest(
    Message, api_key=ApiKeys.ADD_OFFSETS_TO_TXN, versions="0-4", flexible="3+"
):
    """Ports: org.apache.kafka.common.message.AddOffsetsToTxnRequestData"""

    transactional_id: str = string("0+")
    producer_id: int = int64("0+")
    producer_epoch: int = int16("0+")
    group_id: str = string("0+")


class AddOffsetsToTxnResponse(
    Message, api_key=ApiKeys.ADD_OFFSETS_TO_TXN, versions="0-4", flexible="3+"
):
    """Ports: org.apache.kafka.common.message.AddOffsetsToTxnResponseData"""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
