"""Every API that is advertised works in every version that is advertised."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.messages.alter_configs import AlterConfigsRequest
from kafkapy.common.protocol.messages.alter_partition import AlterPartitionRequest
from kafkapy.common.protocol.messages.api_versions import ApiVersionsRequest
from kafkapy.common.protocol.messages.controlled_shutdown import ControlledShutdownRequest
from kafkapy.common.protocol.messages.create_partitions import CreatePartitionsRequest
from kafkapy.common.protocol.messages.create_topics import CreateTopicsRequest
from kafkapy.common.protocol.messages.delete_records import DeleteRecordsRequest
from kafkapy.common.protocol.messages.delete_topics import DeleteTopicsRequest
from kafkapy.common.protocol.messages.describe_cluster import DescribeClusterRequest
from kafkapy.common.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from kafkapy.common.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
)
from kafkapy.common.protocol.messages.find_coordinator import FindCoordinatorRequest
from kafkapy.common.protocol.messages.init_producer_id import InitProducerIdRequest
from kafkapy.common.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from kafkapy.common.protocol.messages.metadata import MetadataRequest
from kafkapy.common.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from kafkapy.common.protocol.messages.stop_replica import StopReplicaRequest
from kafkapy.common.protocol.messages.update_metadata import UpdateMetadataRequest
from kafkapy.server.kafka_apis import ENABLED_APIS
from tests.helpers import api
from tests.helpers.broker import BROKER_ID, PLAINTEXT, Broker, Client
from tests.helpers.records import records
from tests.helpers.waiting import wait_until
from tests.integration.conftest import MakeBroker

_CONTROLLER_EPOCH = 1
_INCREMENTAL = 1


@dataclass(frozen=True)
class Call:
    """One API in one version, against a topic of its own."""

    broker: Broker
    client: Client
    topic: str
    version: int


def _produce(call: Call) -> None:
    magic = {0: 0, 1: 0, 2: 1}.get(call.version, 2)

    result = api.produce(
        call.client, call.topic, records("a", "b", magic=magic), version=call.version
    )

    assert (result.error_code, result.base_offset) == (0, 0)
    assert api.fetched_values(api.fetch(call.client, call.topic)) == [b"a", b"b"]


def _fetch(call: Call) -> None:
    api.produced(call.client, call.topic, records("a", "b"))

    data = api.fetch(call.client, call.topic, version=call.version)

    assert api.fetched_values(data) == [b"a", b"b"]
    assert data.high_watermark == 2


def _list_offsets(call: Call) -> None:
    api.produced(call.client, call.topic, records("a", "b"))

    answer = api.list_offset(call.client, call.topic, api.LATEST, version=call.version)

    assert answer.error_code == 0
    assert (answer.old_style_offsets if call.version == 0 else answer.offset) in (2, [2])


def _metadata(call: Call) -> None:
    response = call.client.request(
        MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=call.topic)]),
        call.version,
    )

    assert [(b.node_id, b.host, b.port) for b in response.brokers] == [
        (BROKER_ID, *call.broker.address())
    ]
    (topic,) = response.topics
    assert (topic.name, topic.error_code) == (call.topic, 0)
    assert [p.leader_id for p in topic.partitions] == [BROKER_ID]
    if call.version >= 1:
        assert response.controller_id == BROKER_ID
    if call.version >= 2:
        assert response.cluster_id == call.broker.server.cluster_id


def _leader_and_isr(call: Call) -> None:
    state = LeaderAndIsrRequest.LeaderAndIsrPartitionState(
        topic_name=call.topic if call.version < 2 else "",
        partition_index=0,
        controller_epoch=_CONTROLLER_EPOCH,
        leader=BROKER_ID,
        leader_epoch=1,
        isr=[BROKER_ID],
        partition_epoch=1,
        replicas=[BROKER_ID],
    )
    topic_state = LeaderAndIsrRequest.LeaderAndIsrTopicState(
        topic_name=call.topic,
        topic_id=api.topic_id(call.client, call.topic),
        partition_states=[state],
    )

    response = call.client.request(
        LeaderAndIsrRequest(
            controller_id=BROKER_ID,
            controller_epoch=_CONTROLLER_EPOCH,
            type=_INCREMENTAL if call.version >= 5 else 0,
            ungrouped_partition_states=[state] if call.version < 2 else [],
            topic_states=[topic_state] if call.version >= 2 else [],
        ),
        call.version,
    )

    assert response.error_code == 0
    errors = response.partition_errors if call.version < 5 else response.topics[0].partition_errors
    assert [(e.partition_index, e.error_code) for e in errors] == [(0, 0)]
    assert api.fetch(call.client, call.topic, current_leader_epoch=1).error_code == 0


def _stop_replica(call: Call) -> None:
    request = StopReplicaRequest(controller_id=BROKER_ID, controller_epoch=_CONTROLLER_EPOCH)
    if call.version <= 2:
        request.delete_partitions = True
    if call.version == 0:
        request.ungrouped_partitions = [
            StopReplicaRequest.StopReplicaPartitionV0(topic_name=call.topic, partition_index=0)
        ]
    elif call.version <= 2:
        request.topics = [
            StopReplicaRequest.StopReplicaTopicV1(name=call.topic, partition_indexes=[0])
        ]
    else:
        request.topic_states = [
            StopReplicaRequest.StopReplicaTopicState(
                topic_name=call.topic,
                partition_states=[
                    StopReplicaRequest.StopReplicaPartitionState(
                        partition_index=0, leader_epoch=1, delete_partition=True
                    )
                ],
            )
        ]

    response = call.client.request(request, call.version)

    assert response.error_code == 0
    assert [(e.topic_name, e.error_code) for e in response.partition_errors] == [(call.topic, 0)]
    refused = api.fetch(call.client, call.topic)
    assert refused.error_code == Errors.NOT_LEADER_OR_FOLLOWER.code


def _update_metadata(call: Call) -> None:
    host, port = call.broker.address()
    broker = UpdateMetadataRequest.UpdateMetadataBroker(id=BROKER_ID, rack=None)
    if call.version == 0:
        broker.v0_host, broker.v0_port = host, port
    else:
        broker.endpoints = [
            UpdateMetadataRequest.UpdateMetadataEndpoint(
                host=host, port=port, listener=PLAINTEXT, security_protocol=0
            )
        ]
    if call.version >= 2:
        broker.rack = f"rack-of-v{call.version}"
    state = UpdateMetadataRequest.UpdateMetadataPartitionState(
        topic_name=call.topic if call.version < 5 else "",
        partition_index=0,
        controller_epoch=_CONTROLLER_EPOCH,
        leader=BROKER_ID,
        leader_epoch=5,
        isr=[BROKER_ID],
        replicas=[BROKER_ID],
    )
    topic_state = UpdateMetadataRequest.UpdateMetadataTopicState(
        topic_name=call.topic,
        topic_id=api.topic_id(call.client, call.topic),
        partition_states=[state],
    )

    response = call.client.request(
        UpdateMetadataRequest(
            controller_id=BROKER_ID,
            controller_epoch=_CONTROLLER_EPOCH,
            type=_INCREMENTAL if call.version >= 8 else 0,
            live_brokers=[broker],
            ungrouped_partition_states=[state] if call.version < 5 else [],
            topic_states=[topic_state] if call.version >= 5 else [],
        ),
        call.version,
    )

    assert response.error_code == 0
    assert api.topic_metadata(call.client, call.topic).partitions[0].leader_epoch == 5
    (known,) = call.client.request(DescribeClusterRequest()).brokers
    assert (known.host, known.port) == (host, port)
    if call.version >= 2:
        assert known.rack == broker.rack


def _find_coordinator(call: Call) -> None:
    request = FindCoordinatorRequest()
    if call.version < 4:
        request.key = "some-group"
    else:
        request.coordinator_keys = ["some-group"]
    answers = []

    def found() -> bool:
        response = call.client.request(request, call.version)
        answers.append(response if call.version < 4 else response.coordinators[0])
        return answers[-1].error_code != Errors.COORDINATOR_NOT_AVAILABLE.code

    wait_until(found)  # the first question creates the topic that holds groups

    answer = answers[-1]
    assert (answer.error_code, answer.node_id) == (0, BROKER_ID)
    assert (answer.host, answer.port) == call.broker.address()


def _api_versions(call: Call) -> None:
    response = call.client.request(
        ApiVersionsRequest(client_software_name="test", client_software_version="1.0"),
        call.version,
    )

    assert response.error_code == 0
    assert {key.api_key for key in response.api_keys} == {int(api) for api in ENABLED_APIS}


def _create_topics(call: Call) -> None:
    name = api.unique_name("created")

    response = call.client.request(
        CreateTopicsRequest(topics=[api.creatable(name, partitions=2)]), call.version
    )

    assert [(t.name, t.error_code) for t in response.topics] == [(name, 0)]
    assert len(api.topic_metadata(call.client, name).partitions) == 2


def _delete_topics(call: Call) -> None:
    request = DeleteTopicsRequest(timeout_ms=15_000)
    if call.version < 6:
        request.topic_names = [call.topic]
    else:
        request.topics = [DeleteTopicsRequest.DeleteTopicState(name=call.topic)]

    response = call.client.request(request, call.version)

    assert [(t.name, t.error_code) for t in response.responses] == [(call.topic, 0)]
    missing = api.topic_metadata(call.client, call.topic)
    assert missing.error_code == Errors.UNKNOWN_TOPIC_OR_PARTITION.code


def _delete_records(call: Call) -> None:
    api.produced(call.client, call.topic, records("a", "b", "c"))

    response = call.client.request(
        DeleteRecordsRequest(
            topics=[
                DeleteRecordsRequest.DeleteRecordsTopic(
                    name=call.topic,
                    partitions=[
                        DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=2)
                    ],
                )
            ],
            timeout_ms=15_000,
        ),
        call.version,
    )

    (partition,) = response.topics[0].partitions
    assert (partition.error_code, partition.low_watermark) == (0, 2)


def _init_producer_id(call: Call) -> None:
    response = call.client.request(InitProducerIdRequest(transactional_id=None), call.version)

    assert (response.error_code, response.producer_epoch) == (0, 0)
    assert response.producer_id >= 0


def _offset_for_leader_epoch(call: Call) -> None:
    api.produced(call.client, call.topic, records("a", "b"))

    response = call.client.request(
        OffsetForLeaderEpochRequest(
            replica_id=-1 if call.version >= 3 else -2,
            topics=[
                OffsetForLeaderEpochRequest.OffsetForLeaderTopic(
                    topic=call.topic,
                    partitions=[
                        OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
                            partition=0, leader_epoch=0
                        )
                    ],
                )
            ],
        ),
        call.version,
    )

    (partition,) = response.topics[0].partitions
    assert (partition.error_code, partition.end_offset) == (0, 2)
    assert partition.leader_epoch == (0 if call.version >= 1 else -1)


def _describe_configs(call: Call) -> None:
    result = api.describe_configs(
        call.client, api.TOPIC_RESOURCE, call.topic, ["retention.ms"], version=call.version
    )

    assert (result.error_code, result.resource_name) == (0, call.topic)
    assert [(entry.name, entry.value) for entry in result.configs] == [
        ("retention.ms", "604800000")
    ]


def _alter_configs(call: Call) -> None:
    response = call.client.request(
        AlterConfigsRequest(
            resources=[
                AlterConfigsRequest.AlterConfigsResource(
                    resource_type=api.TOPIC_RESOURCE,
                    resource_name=call.topic,
                    configs=[AlterConfigsRequest.AlterableConfig(name="retention.ms", value="1")],
                )
            ]
        ),
        call.version,
    )

    assert [(r.resource_name, r.error_code) for r in response.responses] == [(call.topic, 0)]
    entry = api.config_entry(call.client, api.TOPIC_RESOURCE, call.topic, "retention.ms")
    assert entry.value == "1"


def _incremental_alter_configs(call: Call) -> None:
    result = api.alter_configs(
        call.client,
        api.TOPIC_RESOURCE,
        call.topic,
        ("retention.ms", api.SET, "7"),
        version=call.version,
    )

    assert (result.resource_name, result.error_code) == (call.topic, 0)
    entry = api.config_entry(call.client, api.TOPIC_RESOURCE, call.topic, "retention.ms")
    assert entry.value == "7"


def _describe_log_dirs(call: Call) -> None:
    api.produced(call.client, call.topic, records("a"))

    response = call.client.request(
        DescribeLogDirsRequest(
            topics=[DescribeLogDirsRequest.DescribableLogDirTopic(topic=call.topic, partitions=[0])]
        ),
        call.version,
    )

    (log_dir,) = response.results
    assert (log_dir.error_code, log_dir.log_dir) == (0, str(call.broker.log_dir))
    assert [topic.name for topic in log_dir.topics] == [call.topic]
    assert log_dir.topics[0].partitions[0].partition_size > 0
    if call.version >= 4:
        assert 0 < log_dir.usable_bytes <= log_dir.total_bytes


def _create_partitions(call: Call) -> None:
    response = call.client.request(
        CreatePartitionsRequest(
            topics=[
                CreatePartitionsRequest.CreatePartitionsTopic(
                    name=call.topic, count=3, assignments=None
                )
            ],
            timeout_ms=15_000,
        ),
        call.version,
    )

    assert [(r.name, r.error_code) for r in response.results] == [(call.topic, 0)]
    assert len(api.topic_metadata(call.client, call.topic).partitions) == 3


def _alter_partition(call: Call) -> None:
    partition = AlterPartitionRequest.PartitionData(partition_index=0)
    if call.version >= 3:
        partition.new_isr_with_epochs = [
            AlterPartitionRequest.BrokerState(broker_id=BROKER_ID, broker_epoch=call.broker.epoch)
        ]
    else:
        partition.new_isr = [BROKER_ID]
    topic_id = api.topic_id(call.client, call.topic)

    response = call.client.request(
        AlterPartitionRequest(
            broker_id=BROKER_ID,
            broker_epoch=call.broker.epoch,
            topics=[
                AlterPartitionRequest.TopicData(
                    topic_name=call.topic, topic_id=topic_id, partitions=[partition]
                )
            ],
        ),
        call.version,
    )

    assert response.error_code == 0
    (answer,) = response.topics[0].partitions
    assert (answer.error_code, answer.leader_id, answer.isr) == (0, BROKER_ID, [BROKER_ID])


def _describe_cluster(call: Call) -> None:
    response = call.client.request(DescribeClusterRequest(), call.version)

    assert (response.error_code, response.controller_id) == (0, BROKER_ID)
    assert response.cluster_id == call.broker.server.cluster_id
    assert [(b.broker_id, b.host, b.port) for b in response.brokers] == [
        (BROKER_ID, *call.broker.address())
    ]


def _describe_topic_partitions(call: Call) -> None:
    response = call.client.request(
        DescribeTopicPartitionsRequest(
            topics=[DescribeTopicPartitionsRequest.TopicRequest(name=call.topic)]
        ),
        call.version,
    )

    (topic,) = response.topics
    assert (topic.name, topic.error_code) == (call.topic, 0)
    assert [p.leader_id for p in topic.partitions] == [BROKER_ID]
    assert response.next_cursor is None


_CALLS: dict[ApiKeys, Callable[[Call], None]] = {
    ApiKeys.PRODUCE: _produce,
    ApiKeys.FETCH: _fetch,
    ApiKeys.LIST_OFFSETS: _list_offsets,
    ApiKeys.METADATA: _metadata,
    ApiKeys.LEADER_AND_ISR: _leader_and_isr,
    ApiKeys.STOP_REPLICA: _stop_replica,
    ApiKeys.UPDATE_METADATA: _update_metadata,
    ApiKeys.FIND_COORDINATOR: _find_coordinator,
    ApiKeys.API_VERSIONS: _api_versions,
    ApiKeys.CREATE_TOPICS: _create_topics,
    ApiKeys.DELETE_TOPICS: _delete_topics,
    ApiKeys.DELETE_RECORDS: _delete_records,
    ApiKeys.INIT_PRODUCER_ID: _init_producer_id,
    ApiKeys.OFFSET_FOR_LEADER_EPOCH: _offset_for_leader_epoch,
    ApiKeys.DESCRIBE_CONFIGS: _describe_configs,
    ApiKeys.ALTER_CONFIGS: _alter_configs,
    ApiKeys.DESCRIBE_LOG_DIRS: _describe_log_dirs,
    ApiKeys.CREATE_PARTITIONS: _create_partitions,
    ApiKeys.INCREMENTAL_ALTER_CONFIGS: _incremental_alter_configs,
    ApiKeys.ALTER_PARTITION: _alter_partition,
    ApiKeys.DESCRIBE_CLUSTER: _describe_cluster,
    ApiKeys.DESCRIBE_TOPIC_PARTITIONS: _describe_topic_partitions,
}


@pytest.mark.parametrize(
    ("api_key", "version"),
    [
        pytest.param(api_key, version, id=f"{api_key.api_name}-v{version}")
        for api_key in _CALLS
        for version in range(api_key.min_version, api_key.max_version + 1)
    ],
)
def test_an_advertised_version_does_what_the_api_is_for(
    broker: Broker, client: Client, topic: str, api_key: ApiKeys, version: int
) -> None:
    _CALLS[api_key](Call(broker, client, topic, version))


def test_controlled_shutdown_leaves_nothing_to_move_on_a_single_broker(
    make_broker: MakeBroker,
) -> None:
    broker = make_broker()
    api_key = ApiKeys.CONTROLLED_SHUTDOWN

    with broker.client() as client:
        for version in range(api_key.min_version, api_key.max_version + 1):
            response = client.request(
                ControlledShutdownRequest(broker_id=BROKER_ID, broker_epoch=broker.epoch), version
            )

            assert (response.error_code, response.remaining_partitions) == (0, [])


# Called in every version by test_groups, by test_transactions and test_transaction_versions, and by
# test_reassignments.
_CALLED_ELSEWHERE = {
    ApiKeys.OFFSET_COMMIT,
    ApiKeys.OFFSET_FETCH,
    ApiKeys.JOIN_GROUP,
    ApiKeys.HEARTBEAT,
    ApiKeys.LEAVE_GROUP,
    ApiKeys.SYNC_GROUP,
    ApiKeys.DESCRIBE_GROUPS,
    ApiKeys.LIST_GROUPS,
    ApiKeys.DELETE_GROUPS,
    ApiKeys.OFFSET_DELETE,
    ApiKeys.ADD_PARTITIONS_TO_TXN,
    ApiKeys.ADD_OFFSETS_TO_TXN,
    ApiKeys.END_TXN,
    ApiKeys.WRITE_TXN_MARKERS,
    ApiKeys.TXN_OFFSET_COMMIT,
    ApiKeys.DESCRIBE_PRODUCERS,
    ApiKeys.DESCRIBE_TRANSACTIONS,
    ApiKeys.LIST_TRANSACTIONS,
    ApiKeys.ELECT_LEADERS,
    ApiKeys.ALTER_PARTITION_REASSIGNMENTS,
    ApiKeys.LIST_PARTITION_REASSIGNMENTS,
    ApiKeys.ALLOCATE_PRODUCER_IDS,
}


def test_every_advertised_api_is_called_here_or_there() -> None:
    assert {*_CALLS, ApiKeys.CONTROLLED_SHUTDOWN, *_CALLED_ELSEWHERE} == ENABLED_APIS


def test_a_topic_created_through_the_api_is_led_within_moments(client: Client) -> None:
    name = api.create_topic(client, partitions=20)

    wait_until(lambda: all(p.leader_id == 0 for p in api.topic_metadata(client, name).partitions))
