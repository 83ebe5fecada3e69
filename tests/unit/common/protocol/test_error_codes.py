from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.api_versions import ApiVersionsResponse
from kafkapy.common.protocol.messages.describe_log_dirs import DescribeLogDirsResponse
from kafkapy.common.protocol.messages.metadata import MetadataResponse
from kafkapy.common.protocol.messages.produce import ProduceRequest, ProduceResponse

Partition = ProduceResponse.PartitionProduceResponse
Topic = ProduceResponse.TopicProduceResponse


def test_the_codes_of_all_partitions_are_found() -> None:
    response = ProduceResponse(
        responses=[
            Topic(name="a", partition_responses=[Partition(), Partition(error_code=3)]),
            Topic(name="b", partition_responses=[Partition(error_code=10)]),
        ]
    )

    assert response.error_codes() == [0, 3, 10]


def test_codes_on_several_levels_are_found() -> None:
    results = [DescribeLogDirsResponse.DescribeLogDirsResult(error_code=56)]
    metadata = MetadataResponse(
        topics=[
            MetadataResponse.MetadataResponseTopic(
                error_code=Errors.LEADER_NOT_AVAILABLE.code,
                partitions=[MetadataResponse.MetadataResponsePartition(error_code=9)],
            )
        ]
    )

    assert DescribeLogDirsResponse(error_code=1, results=results).error_codes() == [1, 56]
    assert metadata.error_codes() == [5, 9]


def test_a_message_with_one_code_and_one_without_any() -> None:
    assert ApiVersionsResponse(error_code=35).error_codes() == [35]
    assert ProduceRequest().error_codes() == []
