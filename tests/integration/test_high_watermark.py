"""What consumers see and producers wait for while a follower lags.

The follower is a client that fetches as replica 1; the broker hears of it as from the controller.
"""

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.delete_records import DeleteRecordsRequest
from kafkapy.common.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.common.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from kafkapy.common.protocol.messages.update_metadata import UpdateMetadataRequest
from kafkapy.common.types import random_topic_id
from tests.helpers import api
from tests.helpers.broker import BROKER_ID, PLAINTEXT, Broker, Client
from tests.helpers.records import records

_FOLLOWER_ID = 1
_LONG_MS = 15_000


def _lead(client: Client, topic: str, *, isr: list[int]) -> None:
    """Makes the broker lead two replicas."""
    response = client.request(
        LeaderAndIsrRequest(
            controller_id=BROKER_ID,
            controller_epoch=1,
            type=1,
            topic_states=[
                LeaderAndIsrRequest.LeaderAndIsrTopicState(
                    topic_name=topic,
                    topic_id=api.topic_id(client, topic),
                    partition_states=[
                        LeaderAndIsrRequest.LeaderAndIsrPartitionState(
                            partition_index=0,
                            controller_epoch=1,
                            leader=BROKER_ID,
                            leader_epoch=1,
                            isr=isr,
                            partition_epoch=1,
                            replicas=[BROKER_ID, _FOLLOWER_ID],
                        )
                    ],
                )
            ],
        )
    )
    assert response.topics[0].partition_errors[0].error_code == 0


@pytest.fixture
def replicated_topic(client: Client) -> str:
    topic = api.create_topic(client)
    _lead(client, topic, isr=[BROKER_ID, _FOLLOWER_ID])
    return topic


def _follow(client: Client, topic: str, offset: int) -> FetchResponse.PartitionData:
    """A fetch by the follower, which thereby has everything below the offset."""
    response = client.request(
        FetchRequest(
            replica_id=_FOLLOWER_ID,
            max_wait_ms=0,
            min_bytes=1,
            topics=[
                FetchRequest.FetchTopic(
                    topic=topic,
                    partitions=[
                        FetchRequest.FetchPartition(
                            partition=0,
                            fetch_offset=offset,
                            log_start_offset=0,
                            partition_max_bytes=1 << 20,
                            current_leader_epoch=1,
                        )
                    ],
                )
            ],
        ),
        12,
    )
    return response.responses[0].partitions[0]


def test_a_record_is_hidden_until_every_replica_in_sync_has_it(
    client: Client, replicated_topic: str
) -> None:
    result = api.produce(client, replicated_topic, records("a", "b"), acks=1)
    assert (result.error_code, result.base_offset) == (0, 0)

    hidden = api.fetch(client, replicated_topic)
    assert (hidden.high_watermark, api.fetched_values(hidden)) == (0, [])
    assert api.list_offset(client, replicated_topic, api.LATEST).offset == 0

    _follow(client, replicated_topic, 2)

    shown = api.fetch(client, replicated_topic)
    assert (shown.high_watermark, api.fetched_values(shown)) == (2, [b"a", b"b"])
    assert api.list_offset(client, replicated_topic, api.LATEST).offset == 2


def test_a_follower_reads_beyond_the_high_watermark(client: Client, replicated_topic: str) -> None:
    api.produce(client, replicated_topic, records("a"), acks=1)

    data = _follow(client, replicated_topic, 0)

    assert api.fetched_values(data) == [b"a"]
    assert data.high_watermark == 0


def test_an_offset_between_high_watermark_and_end_is_not_out_of_range(
    client: Client, replicated_topic: str
) -> None:
    api.produce(client, replicated_topic, records("a", "b", "c"), acks=1)

    data = api.fetch(client, replicated_topic, 2)

    assert (data.error_code, api.fetched_values(data)) == (0, [])


def test_acks_all_waits_until_the_follower_has_the_records(
    broker: Broker, client: Client, replicated_topic: str
) -> None:
    with broker.client() as follower:
        client.send(api.produce_request(replicated_topic, records("a"), timeout_ms=_LONG_MS))
        assert not client.has_response(0.05)
        _follow(follower, replicated_topic, 0)
        assert not client.has_response(0.05)

        _follow(follower, replicated_topic, 1)

        answer = client.receive().responses[0].partition_responses[0]
    assert (answer.error_code, answer.base_offset) == (0, 0)


def test_acks_all_times_out_but_the_records_stay(client: Client, replicated_topic: str) -> None:
    response = client.request(api.produce_request(replicated_topic, records("a"), timeout_ms=100))

    answer = response.responses[0].partition_responses[0]
    assert answer.error_code == Errors.REQUEST_TIMED_OUT.code
    assert api.fetched_values(_follow(client, replicated_topic, 0)) == [b"a"]


def test_a_waiting_consumer_is_woken_when_the_high_watermark_moves(
    broker: Broker, client: Client, replicated_topic: str
) -> None:
    with broker.client() as consumer:
        consumer.send(
            api.fetch_request(api.fetch_topic(replicated_topic, {0: 0}), max_wait_ms=_LONG_MS), 12
        )
        api.produce(client, replicated_topic, records("a"), acks=1)
        assert not consumer.has_response(0.05)

        _follow(client, replicated_topic, 1)

        (answer,) = consumer.receive().responses
    assert api.fetched_values(answer.partitions[0]) == [b"a"]


@pytest.mark.parametrize(("acks", "error"), [(-1, Errors.NOT_ENOUGH_REPLICAS), (1, Errors.NONE)])
def test_acks_all_needs_as_many_replicas_as_configured(
    client: Client, acks: int, error: Errors
) -> None:
    topic = api.create_topic(client, configs={"min.insync.replicas": "2"})
    _lead(client, topic, isr=[BROKER_ID])

    result = api.produce(client, topic, records("a"), acks=acks)

    assert result.error_code == error.code


def test_a_replica_that_is_not_alive_does_not_hold_up_a_deletion(
    client: Client, replicated_topic: str
) -> None:
    api.produce(client, replicated_topic, records("a", "b"), acks=1)
    _follow(client, replicated_topic, 2)

    response = client.request(
        DeleteRecordsRequest(
            topics=[
                DeleteRecordsRequest.DeleteRecordsTopic(
                    name=replicated_topic,
                    partitions=[
                        DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=1)
                    ],
                )
            ],
            timeout_ms=_LONG_MS,
        )
    )

    (answer,) = response.topics[0].partitions
    assert (answer.error_code, answer.low_watermark) == (0, 1)


def test_a_log_of_another_topic_id_is_not_read(broker: Broker, client: Client, topic: str) -> None:
    other_id = random_topic_id()
    host, port = broker.address()
    response = client.request(
        UpdateMetadataRequest(
            controller_id=BROKER_ID,
            controller_epoch=1,
            type=1,
            live_brokers=[
                UpdateMetadataRequest.UpdateMetadataBroker(
                    id=BROKER_ID,
                    endpoints=[
                        UpdateMetadataRequest.UpdateMetadataEndpoint(
                            host=host, port=port, listener=PLAINTEXT, security_protocol=0
                        )
                    ],
                    rack=None,
                )
            ],
            topic_states=[
                UpdateMetadataRequest.UpdateMetadataTopicState(
                    topic_name=topic,
                    topic_id=other_id,
                    partition_states=[
                        UpdateMetadataRequest.UpdateMetadataPartitionState(
                            partition_index=0,
                            controller_epoch=1,
                            leader=BROKER_ID,
                            isr=[BROKER_ID],
                            replicas=[BROKER_ID],
                        )
                    ],
                )
            ],
        )
    )
    assert response.error_code == 0

    fetched = client.request(api.fetch_request(api.fetch_topic("", {0: 0}, id=other_id)), 17)

    (answer,) = fetched.responses
    assert answer.partitions[0].error_code == Errors.INCONSISTENT_TOPIC_ID.code
