"""ListClientMetricsResources: list the subscriptions to client metrics."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, Struct, array, int16, int32, string


class ListClientMetricsResourcesRequest(
    Message, api_key=ApiKeys.LIST_CLIENT_METRICS_RESOURCES, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.ListClientMetricsResourcesRequestData"""


class ListClientMetricsResourcesResponse(
    Message, api_key=ApiKeys.LIST_CLIENT_METRICS_RESOURCES, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.ListClientMetricsResourcesResponseData"""

    class ClientMetricsResource(Struct):
        name: str = string("0+")

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    client_metrics_resources: list[ClientMetricsResource] = array("ClientMetricsResource", "0+")
