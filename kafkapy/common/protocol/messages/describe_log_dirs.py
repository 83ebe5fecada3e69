"""DescribeLogDirs: show the replicas in each log directory, with their sizes."""

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


class DescribeLogDirsRequest(
    Message, api_key=ApiKeys.DESCRIBE_LOG_DIRS, versions="0-4", flexible="2+", deprecated="0"
):
    """Ports: org.apache.kafka.common.message.DescribeLogDirsRequestData"""

    class DescribableLogDirTopic(Struct):
        topic: str = string("0+")
        partitions: list[int] = array(int32, "0+")

    topics: list[DescribableLogDirTopic] | None = array(
        "DescribableLogDirTopic", "0+", nullable="0+"
    )


class DescribeLogDirsResponse(
    Message, api_key=ApiKeys.DESCRIBE_LOG_DIRS, versions="0-4", flexible="2+"
):
    """Ports: org.apache.kafka.common.message.DescribeLogDirsResponseData"""

    class DescribeLogDirsPartition(Struct):
        partition_index: int = int32("0+")
        partition_size: int = int64("0+")
        offset_lag: int = int64("0+")
        is_future_key: bool = bool_("0+")

    class DescribeLogDirsTopic(Struct):
        name: str = string("0+")
        partitions: list[DescribeLogDirsResponse.DescribeLogDirsPartition] = array(
            "DescribeLogDirsPartition", "0+"
        )

    class DescribeLogDirsResult(Struct):
        error_code: int = int16("0+")
        log_dir: str = string("0+")
        topics: list[DescribeLogDirsResponse.DescribeLogDirsTopic] = array(
            "DescribeLogDirsTopic", "0+"
        )
        total_bytes: int = int64("4+", default=-1, ignorable=True)
        usable_bytes: int = int64("4+", default=-1, ignorable=True)

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("3+", ignorable=True)
    results: list[DescribeLogDirsResult] = array("DescribeLogDirsResult", "0+")
