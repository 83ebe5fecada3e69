"""ElectLeaders: elect the preferred, or any available, leader of partitions."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, Struct, array, int8, int16, int32, string


class ElectLeadersRequest(Message, api_key=ApiKeys.ELECT_LEADERS, versions="0-2", flexible="2+"):
    """Ports: org.apache.kafka.common.message.ElectLeadersRequestData"""

    class TopicPartitions(Struct):
        topic: str = string("0+")
        partitions: list[int] = array(int32, "0+")

    election_type: int = int8("1+")
    topic_partitions: list[TopicPartitions] | None = array("TopicPartitions", "0+", nullable="0+")
    timeout_ms: int = int32("0+", default=60000)


class ElectLeadersResponse(Message, api_key=ApiKeys.ELECT_LEADERS, versions="0-2", flexible="2+"):
    """Ports: org.apache.kafka.common.message.ElectLeadersResponseData"""

    class PartitionResult(Struct):
        partition_id: int = int32("0+")
        error_code: int = int16("0+")
        error_message: str | None = string("0+", nullable="0+")

    class ReplicaElectionResult(Struct):
        topic: str = string("0+")
        partition_result: list[ElectLeadersResponse.PartitionResult] = array(
            "PartitionResult", "0+"
        )

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("1+")
    replica_election_results: list[ReplicaElectionResult] = array("ReplicaElectionResult", "0+")
