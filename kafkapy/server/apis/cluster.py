"""The cluster's brokers and this broker's disks."""

from __future__ import annotations

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kafkapy.common.protocol.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from kafkapy.common.security.acl import ResourceType, supported_operations
from kafkapy.common.types import TopicPartition
from kafkapy.metadata.metadata_cache import MetadataCache
from kafkapy.network.request_channel import Request, RequestChannel
from kafkapy.replication.replica_manager import ReplicaManager

_BROKERS_END_POINT_TYPE = 1
_CONTROLLERS_END_POINT_TYPE = 2
_NO_CONTROLLER_ID = -1


class ClusterHandler:
    """Ports: kafka.server.KafkaApis.handleDescribeCluster"""

    def __init__(
        self,
        request_channel: RequestChannel,
        replica_manager: ReplicaManager,
        metadata_cache: MetadataCache,
        *,
        cluster_id: str,
    ) -> None:
        self._request_channel = request_channel
        self._replica_manager = replica_manager
        self._metadata_cache = metadata_cache
        self._cluster_id = cluster_id

    def handle_describe_cluster(self, request: Request) -> None:
        body = request.body_as(DescribeClusterRequest)
        if body.endpoint_type != _BROKERS_END_POINT_TYPE:
            # Who looks for controllers is told that this is none.
            error = (
                Errors.MISMATCHED_ENDPOINT_TYPE
                if body.endpoint_type == _CONTROLLERS_END_POINT_TYPE
                else Errors.UNSUPPORTED_ENDPOINT_TYPE
            )
            response = DescribeClusterResponse(
                error_code=error.code,
                error_message=f"End point type {body.endpoint_type} is not served by a broker",
                cluster_id=self._cluster_id,
                endpoint_type=body.endpoint_type,
            )
        else:
            controller_id = self._metadata_cache.controller_id
            response = DescribeClusterResponse(
                cluster_id=self._cluster_id,
                controller_id=controller_id if controller_id is not None else _NO_CONTROLLER_ID,
                brokers=[
                    DescribeClusterResponse.DescribeClusterBroker(
                        broker_id=node.id, host=node.host, port=node.port, rack=node.rack
                    )
                    for node in self._metadata_cache.get_alive_broker_nodes(
                        request.context.listener_name
                    )
                ],
            )
            if body.include_cluster_authorized_operations:
                response.cluster_authorized_operations = supported_operations(ResourceType.CLUSTER)
        self._request_channel.send_response(request, response)

    def handle_describe_log_dirs(self, request: Request) -> None:
        body = request.body_as(DescribeLogDirsRequest)
        partitions = (
            None
            if body.topics is None
            else {
                TopicPartition(topic.topic, index)
                for topic in body.topics
                for index in topic.partitions
            }
        )
        self._request_channel.send_response(
            request,
            DescribeLogDirsResponse(results=self._replica_manager.describe_log_dirs(partitions)),
        )
