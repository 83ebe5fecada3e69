"""WriteTxnMarkers: the transaction coordinator writes commit or abort markers to partitions."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import (
    Message,
    Struct,
    array,
    bool_,
    int16,
    int32,
    int64,
    string,
)


class WriteTxnMarkersRequest(
    Message, api_key=ApiKeys.WRITE_TXN_MARKERS, versions="0-1", flexible="1+"
):
    """Ports: org.apache.kafka.common.message.WriteTxnMarkersRequestData"""

    class WritableTxnMarkerTopic(Struct):
        name: str = string("0+")
        partition_indexes: list[int] = array(int32, "0+")

    class WritableTxnMarker(Struct):
        producer_id: int = int64("0+")
        producer_epoch: int = int16("0+")
        transaction_result: bool = bool_("0+")
        topics: list[WriteTxnMarkersRequest.WritableTxnMarkerTopic] = array(
            "WritableTxnMarkerTopic", "0+"
        )
        coordinator_epoch: int = int32("0+")

    markers: list[WritableTxnMarker] = array("WritableTxnMarker", "0+")


class WriteTxnMarkersResponse(
    Message, api_key=ApiKeys.WRITE_TXN_MARKERS, versions="0-1", flexible="1+"
):
    """Ports: org.apache.kafka.common.message.WriteTxnMarkersResponseData"""

    class WritableTxnMarkerPartitionResult(Struct):
        partition_index: int = int32("0+")
        error_code: int = int16("0+")

    class WritableTxnMarkerTopicResult(Struct):
        name: str = string("0+")
        partitions: list[WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult] = array(
            "WritableTxnMarkerPartitionResult", "0+"
        )

    class WritableTxnMarkerResult(Struct):
        producer_id: int = int64("0+")
        topics: list[WriteTxnMarkersResponse.WritableTxnMarkerTopicResult] = array(
            "WritableTxnMarkerTopicResult", "0+"
        )

    markers: list[WritableTxnMarkerResult] = array("WritableTxnMarkerResult", "0+")
