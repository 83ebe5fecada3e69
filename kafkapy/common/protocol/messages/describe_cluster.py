"""DescribeCluster: show the brokers or controllers of the cluster."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, Struct, array, bool_, int8, int16, int32, string


class DescribeClusterRequest(
    Message, api_key=ApiKeys.DESCRIBE_CLUSTER, versions="0-1", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.DescribeClusterRequestData"""

    include_cluster_authorized_operations: bool = bool_("0+")
    endpoint_type: int = int8("1+", default=1)


class DescribeClusterResponse(
    Message, api_key=ApiKeys.DESCRIBE_CLUSTER, versions="0-1", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.DescribeClusterResponseData"""

    class DescribeClusterBroker(Struct):
        broker_id: int = int32("0+")
        host: str = string("0+")
        port: int = int32("0+")
        rack: str | None = string("0+", nullable="0+", default=None)

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    endpoint_type: int = int8("1+", default=1)
    cluster_id: str = string("0+")
    controller_id: int = int32("0+", default=-1)
    brokers: list[DescribeClusterBroker] = array("DescribeClusterBroker", "0+")
    cluster_authorized_operations: int = int32("0+", default=-2147483648)
