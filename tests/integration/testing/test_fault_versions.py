"""An error put in by a test is where a client of each version looks for it."""

from collections.abc import Callable
from uuid import UUID

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.message_registry import request_class
from kafkapy.common.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from kafkapy.common.protocol.messages.create_topics import CreateTopicsRequest
from kafkapy.common.protocol.messages.delete_topics import DeleteTopicsRequest
from kafkapy.common.protocol.messages.fetch import FetchRequest
from kafkapy.common.protocol.messages.find_coordinator import FindCoordinatorRequest
from kafkapy.common.protocol.messages.list_offsets import ListOffsetsRequest
from kafkapy.common.protocol.messages.metadata import MetadataRequest
from kafkapy.common.protocol.messages.offset_commit import OffsetCommitRequest
from kafkapy.common.protocol.messages.offset_fetch import OffsetFetchRequest
from kafkapy.common.protocol.messages.produce import ProduceRequest
from kafkapy.common.protocol.schema import Message
from kafkapy.testing import EmbeddedBroker
from tests.helpers.api import topic_metadata
from tests.helpers.broker import Client

ERROR = Errors.COORDINATOR_NOT_AVAILABLE
TOPIC = "versions"


def produce(version: int, _: UUID) -> Message:
    partition = ProduceRequest.PartitionProduceData(records=b"")
    topic = ProduceRequest.TopicProduceData(name=TOPIC, partition_data=[partition])
    return ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic])


def fetch(version: int, topic_id: UUID) -> Message:
    topic = FetchRequest.FetchTopic(
        partitions=[FetchRequest.FetchPartition(partition_max_bytes=1000)]
    )
    if version >= 13:
        topic.topic_id = topic_id
    else:
        topic.topic = TOPIC
    return FetchRequest(max_wait_ms=0, topics=[topic])


def list_offsets(version: int, _: UUID) -> Message:
    partition = ListOffsetsRequest.ListOffsetsPartition(timestamp=-1)
    topic = ListOffsetsRequest.ListOffsetsTopic(name=TOPIC, partitions=[partition])
    return ListOffsetsRequest(replica_id=-1, topics=[topic])


def metadata(version: int, _: UUID) -> Message:
    return MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=TOPIC)])


def offset_commit(version: int, _: UUID) -> Message:
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(committed_offset=1)
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])
    return OffsetCommitRequest(group_id="g", topics=[topic])


def offset_fetch(version: int, _: UUID) -> Message:
    topic = OffsetFetchRequest.OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])
    if version < 8:
        return OffsetFetchRequest(group_id="g", topics=[topic])
    topics = [OffsetFetchRequest.OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])]
    group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=topics)
    return OffsetFetchRequest(groups=[group])


def find_coordinator(version: int, _: UUID) -> Message:
    if version < 4:
        return FindCoordinatorRequest(key="g")
    return FindCoordinatorRequest(coordinator_keys=["g"])


def create_topics(version: int, _: UUID) -> Message:
    topic = CreateTopicsRequest.CreatableTopic(name="n", num_partitions=1, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=1000)


def delete_topics(version: int, _: UUID) -> Message:
    if version < 6:
        return DeleteTopicsRequest(topic_names=[TOPIC], timeout_ms=1000)
    return DeleteTopicsRequest(
        topics=[DeleteTopicsRequest.DeleteTopicState(name=TOPIC)], timeout_ms=1000
    )


def add_partitions_to_txn(version: int, _: UUID) -> Message:
    topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=TOPIC, partitions=[0])
    if version < 4:
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="t",
            v3_and_below_producer_id=1,
            v3_and_below_topics=[topic],
        )
    transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
        transactional_id="t", producer_id=1, topics=[topic]
    )
    return AddPartitionsToTxnRequest(transactions=[transaction])


def plain(api_key: ApiKeys) -> Callable[[int, UUID], Message]:
    return lambda version, _: request_class(api_key)()


REQUESTS: dict[ApiKeys, Callable[[int, UUID], Message]] = {
    ApiKeys.PRODUCE: produce,
    ApiKeys.FETCH: fetch,
    ApiKeys.LIST_OFFSETS: list_offsets,
    ApiKeys.METADATA: metadata,
    ApiKeys.OFFSET_COMMIT: offset_commit,
    ApiKeys.OFFSET_FETCH: offset_fetch,
    ApiKeys.FIND_COORDINATOR: find_coordinator,
    ApiKeys.CREATE_TOPICS: create_topics,
    ApiKeys.DELETE_TOPICS: delete_topics,
    ApiKeys.ADD_PARTITIONS_TO_TXN: add_partitions_to_txn,
    **{
        api_key: plain(api_key)
        for api_key in (
            ApiKeys.JOIN_GROUP,
            ApiKeys.SYNC_GROUP,
            ApiKeys.HEARTBEAT,
            ApiKeys.LEAVE_GROUP,
            ApiKeys.INIT_PRODUCER_ID,
            ApiKeys.ADD_OFFSETS_TO_TXN,
            ApiKeys.END_TXN,
            ApiKeys.LIST_GROUPS,
        )
    },
}


@pytest.mark.parametrize("api_key", REQUESTS, ids=lambda api_key: api_key.api_name)
def test_every_version_of_an_answer_carries_the_error(
    broker: EmbeddedBroker, api_key: ApiKeys
) -> None:
    if TOPIC not in broker.topics():
        broker.create_topic(TOPIC)
    host, port = broker.bootstrap_servers.split(":")
    fault = broker.faults.on(api_key.api_name).always().error(ERROR.name)
    try:
        with Client((host, int(port)), client_id="test") as client:
            topic_id = UUID(int=0)
            if api_key is ApiKeys.FETCH:
                topic_id = topic_metadata(client, TOPIC).topic_id
            versions = range(api_key.min_version, api_key.max_version + 1)
            for version in versions:
                response = client.request(REQUESTS[api_key](version, topic_id), version)

                assert set(response.error_codes()) - {0} == {ERROR.code}, version
            assert fault.fired == len(versions)
    finally:
        broker.faults.clear()
