"""The requests that tests send most, each in one line, in any version."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.create_topics import CreateTopicsRequest
from kafkapy.common.protocol.messages.delete_topics import DeleteTopicsRequest
from kafkapy.common.protocol.messages.describe_configs import DescribeConfigsRequest
from kafkapy.common.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.common.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
)
from kafkapy.common.protocol.messages.init_producer_id import InitProducerIdRequest
from kafkapy.common.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from kafkapy.common.protocol.messages.list_offsets import ListOffsetsRequest
from kafkapy.common.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kafkapy.common.protocol.messages.produce import ProduceRequest, ProduceResponse
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record import Record
from kafkapy.common.record.record_batch import MutableRecordBatch
from kafkapy.common.types import ZERO_UUID
from tests.helpers.broker import BROKER_ID, Client
from tests.helpers.waiting import wait_until

LATEST = -1
EARLIEST = -2
TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
SET, DELETE, APPEND, SUBTRACT = range(4)

_numbers = itertools.count(1)


def unique_name(prefix: str = "topic") -> str:
    """A topic name that no other test uses."""
    return f"{prefix}-{next(_numbers)}"


def create_topic(
    client: Client,
    name: str | None = None,
    *,
    partitions: int = 1,
    configs: Mapping[str, str] | None = None,
) -> str:
    """The name of a topic that exists when this returns."""
    name = name or unique_name()
    response = client.request(
        CreateTopicsRequest(
            topics=[creatable(name, partitions=partitions, configs=configs)], timeout_ms=15_000
        )
    )
    (topic,) = response.topics
    assert topic.error_code == Errors.NONE.code, topic
    return name


def creatable(
    name: str,
    *,
    partitions: int = 1,
    replication_factor: int = 1,
    configs: Mapping[str, str | None] | None = None,
    assignments: Mapping[int, Sequence[int]] | None = None,
) -> CreateTopicsRequest.CreatableTopic:
    return CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=[
            CreateTopicsRequest.CreatableReplicaAssignment(
                partition_index=index, broker_ids=list(brokers)
            )
            for index, brokers in (assignments or {}).items()
        ],
        configs=[
            CreateTopicsRequest.CreatableTopicConfig(name=key, value=value)
            for key, value in (configs or {}).items()
        ],
    )


def recreate_topic(client: Client, name: str) -> None:
    """Deletes a topic and creates another of the same name.

    The answer to DeleteTopics comes when the topic has left the metadata of this broker; until it
    has left the metadata store as well, its name is taken.
    """
    delete_topic(client, name)
    wait_until_created(client, name)


def wait_until_created(client: Client, name: str) -> None:
    """Creates a topic whose name may still be that of one which is being deleted."""
    exists = Errors.TOPIC_ALREADY_EXISTS.code

    def created() -> bool:
        response = client.request(CreateTopicsRequest(topics=[creatable(name)], timeout_ms=15_000))
        error = response.topics[0].error_code
        assert error in (Errors.NONE.code, exists)
        return error != exists

    wait_until(created)


def delete_topic(client: Client, name: str) -> None:
    response = client.request(
        DeleteTopicsRequest(
            topics=[DeleteTopicsRequest.DeleteTopicState(name=name)], timeout_ms=15_000
        )
    )
    assert response.responses[0].error_code == Errors.NONE.code, response


def topic_metadata(client: Client, name: str) -> MetadataResponse.MetadataResponseTopic:
    """What Metadata says of one topic, without creating it."""
    response = client.request(
        MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name=name)],
            allow_auto_topic_creation=False,
        )
    )
    (topic,) = response.topics
    return topic


def topic_id(client: Client, name: str) -> UUID:
    return topic_metadata(client, name).topic_id


def bump_leader_epoch(client: Client, topic: str, epoch: int, *, partition: int = 0) -> None:
    """Makes the broker leader again under a later epoch, as the controller would."""
    state = LeaderAndIsrRequest.LeaderAndIsrPartitionState(
        partition_index=partition,
        controller_epoch=1,
        leader=BROKER_ID,
        leader_epoch=epoch,
        isr=[BROKER_ID],
        partition_epoch=epoch,
        replicas=[BROKER_ID],
    )
    response = client.request(
        LeaderAndIsrRequest(
            controller_id=BROKER_ID,
            controller_epoch=1,
            type=1,
            topic_states=[
                LeaderAndIsrRequest.LeaderAndIsrTopicState(
                    topic_name=topic, topic_id=topic_id(client, topic), partition_states=[state]
                )
            ],
        )
    )
    assert response.topics[0].partition_errors[0].error_code == Errors.NONE.code, response


def produce_request(
    topic: str,
    records: MemoryRecords | bytes | None,
    *,
    partition: int = 0,
    acks: int = -1,
    timeout_ms: int = 15_000,
    transactional_id: str | None = None,
) -> ProduceRequest:
    return ProduceRequest(
        acks=acks,
        timeout_ms=timeout_ms,
        transactional_id=transactional_id,
        topic_data=[
            ProduceRequest.TopicProduceData(
                name=topic,
                partition_data=[
                    ProduceRequest.PartitionProduceData(index=partition, records=records)
                ],
            )
        ],
    )


def produce(
    client: Client,
    topic: str,
    records: MemoryRecords | bytes | None,
    *,
    version: int | None = None,
    partition: int = 0,
    acks: int = -1,
) -> ProduceResponse.PartitionProduceResponse:
    """The answer for the one partition produced to."""
    response = client.request(
        produce_request(topic, records, partition=partition, acks=acks), version
    )
    (answer,) = response.responses
    assert answer.name == topic
    (result,) = answer.partition_responses
    assert result.index == partition
    return result


def produced(client: Client, topic: str, records: MemoryRecords, *, partition: int = 0) -> int:
    """The offset at which the records were written."""
    result = produce(client, topic, records, partition=partition)
    assert result.error_code == Errors.NONE.code, result
    return result.base_offset


def fetch_topic(
    topic: str,
    offsets: Mapping[int, int],
    *,
    id: UUID = ZERO_UUID,
    max_bytes: int = 1 << 20,
    current_leader_epoch: int = -1,
    last_fetched_epoch: int = -1,
) -> FetchRequest.FetchTopic:
    """One topic of a fetch request, with the offset wanted from each partition."""
    return FetchRequest.FetchTopic(
        topic=topic,
        topic_id=id,
        partitions=[
            FetchRequest.FetchPartition(
                partition=partition,
                fetch_offset=offset,
                partition_max_bytes=max_bytes,
                current_leader_epoch=current_leader_epoch,
                last_fetched_epoch=last_fetched_epoch,
            )
            for partition, offset in offsets.items()
        ],
    )


def fetch_request(
    *topics: FetchRequest.FetchTopic,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    **fields: Any,
) -> FetchRequest:
    return FetchRequest(topics=list(topics), max_wait_ms=max_wait_ms, min_bytes=min_bytes, **fields)


def fetch(
    client: Client,
    topic: str,
    offset: int = 0,
    *,
    version: int = 12,
    partition: int = 0,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 20,
    isolation_level: int = 0,
    current_leader_epoch: int = -1,
    last_fetched_epoch: int = -1,
) -> FetchResponse.PartitionData:
    """The answer for the one partition fetched from; versions from 13 ask by id."""
    id = topic_id(client, topic) if version >= 13 else ZERO_UUID
    response = client.request(
        fetch_request(
            fetch_topic(
                topic,
                {partition: offset},
                id=id,
                max_bytes=max_bytes,
                current_leader_epoch=current_leader_epoch,
                last_fetched_epoch=last_fetched_epoch,
            ),
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            isolation_level=isolation_level,
        ),
        version,
    )
    assert response.error_code == Errors.NONE.code
    (answer,) = response.responses
    assert (answer.topic, answer.topic_id) == ("" if version >= 13 else topic, id)
    (data,) = answer.partitions
    assert data.partition_index == partition
    return data


def fetched_batches(data: FetchResponse.PartitionData) -> list[MutableRecordBatch]:
    assert data.error_code == Errors.NONE.code, Errors.for_code(data.error_code)
    return list(MemoryRecords(data.records or b"").batches())


def fetched_records(data: FetchResponse.PartitionData) -> list[Record]:
    return [record for batch in fetched_batches(data) for record in batch.records()]


def fetched_values(data: FetchResponse.PartitionData) -> list[bytes | None]:
    return [record.value for record in fetched_records(data)]


def list_offset(
    client: Client,
    topic: str,
    timestamp: int,
    *,
    version: int | None = None,
    partition: int = 0,
    current_leader_epoch: int = -1,
    isolation_level: int = 0,
    max_num_offsets: int = 1,
) -> Any:
    """The answer of ListOffsets for one partition."""
    response = client.request(
        ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation_level,
            topics=[
                ListOffsetsRequest.ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        ListOffsetsRequest.ListOffsetsPartition(
                            partition_index=partition,
                            timestamp=timestamp,
                            current_leader_epoch=current_leader_epoch,
                            max_num_offsets=max_num_offsets,
                        )
                    ],
                )
            ],
        ),
        version,
    )
    (answer,) = response.topics
    (result,) = answer.partitions
    return result


def init_producer_id(client: Client) -> int:
    response = client.request(InitProducerIdRequest(transactional_id=None))
    assert (response.error_code, response.producer_epoch) == (Errors.NONE.code, 0)
    return response.producer_id


def describe_configs(
    client: Client,
    resource_type: int,
    name: str,
    keys: list[str] | None = None,
    *,
    version: int | None = None,
    include_synonyms: bool = False,
    include_documentation: bool = False,
) -> Any:
    """The result for one resource."""
    response = client.request(
        DescribeConfigsRequest(
            resources=[
                DescribeConfigsRequest.DescribeConfigsResource(
                    resource_type=resource_type, resource_name=name, configuration_keys=keys
                )
            ],
            include_synonyms=include_synonyms,
            include_documentation=include_documentation,
        ),
        version,
    )
    (result,) = response.results
    return result


def config_entry(client: Client, resource_type: int, name: str, key: str) -> Any:
    """One setting with its synonyms."""
    result = describe_configs(client, resource_type, name, [key], include_synonyms=True)
    assert result.error_code == Errors.NONE.code, result
    (entry,) = result.configs
    return entry


def alter_configs(
    client: Client,
    resource_type: int,
    name: str,
    *alterations: tuple[str, int, str | None],
    validate_only: bool = False,
    version: int | None = None,
) -> Any:
    """The answer of IncrementalAlterConfigs for one resource; (name, operation, value) each."""
    response = client.request(
        IncrementalAlterConfigsRequest(
            resources=[
                IncrementalAlterConfigsRequest.AlterConfigsResource(
                    resource_type=resource_type,
                    resource_name=name,
                    configs=[
                        IncrementalAlterConfigsRequest.AlterableConfig(
                            name=key, config_operation=operation, value=value
                        )
                        for key, operation, value in alterations
                    ],
                )
            ],
            validate_only=validate_only,
        ),
        version,
    )
    (result,) = response.responses
    return result
