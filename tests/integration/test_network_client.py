"""The clients' network layer against a real broker."""

from collections.abc import Iterator

import pytest

from kafkapy.clients.client_config import CommonClientConfig, parse_client_config
from kafkapy.clients.client_request import ClientResponse, VersionedRequest
from kafkapy.clients.client_utils import create_network_client, parse_and_validate_addresses
from kafkapy.clients.metadata import Metadata
from kafkapy.clients.network_client import NetworkClient
from kafkapy.common.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.common.protocol.messages.produce import ProduceRequest, ProduceResponse
from kafkapy.common.protocol.schema import Message
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record import SimpleRecord
from kafkapy.common.types import TopicPartition
from kafkapy.metadata.broker import Node
from kafkapy.utils.time import SystemTime
from tests.helpers.broker import BROKER_ID, Broker

TIME = SystemTime()


class Wired:
    """A NetworkClient with metadata of all topics."""

    def __init__(self, bootstrap: str) -> None:
        config = parse_client_config(CommonClientConfig, None, {"bootstrap_servers": bootstrap})
        self.metadata = Metadata(
            refresh_backoff_ms=10, refresh_backoff_max_ms=100, metadata_expire_ms=60_000
        )
        self.metadata.bootstrap(
            parse_and_validate_addresses(config.bootstrap_servers, config.client_dns_lookup)
        )
        self.client: NetworkClient = create_network_client(
            config,
            TIME,
            client_id="test",
            max_in_flight_requests_per_connection=5,
            metadata=self.metadata,
        )

    def poll_until(self, condition, timeout_ms: int = 10_000) -> None:
        deadline_ms = TIME.hi_res_clock_ms() + timeout_ms
        while not condition():
            now_ms = TIME.hi_res_clock_ms()
            assert now_ms < deadline_ms
            self.client.poll(100, now_ms)

    def node(self) -> Node:
        self.poll_until(lambda: self.metadata.fetch().node_by_id(BROKER_ID) is not None)
        node = self.metadata.fetch().node_by_id(BROKER_ID)
        assert node is not None
        self.poll_until(lambda: self.client.ready(node, TIME.hi_res_clock_ms()))
        return node

    def start(self, message: Message, *, expect_response: bool = True) -> list[ClientResponse]:
        """Send without waiting; the list gets the response."""
        answers: list[ClientResponse] = []
        node, now_ms = self.node(), TIME.hi_res_clock_ms()
        request = self.client.new_client_request(
            node.id,
            VersionedRequest(message),
            now_ms,
            expect_response=expect_response,
            callback=answers.append,
        )
        self.client.send(request, now_ms)
        return answers

    def ask(self, message: Message, *, expect_response: bool = True) -> ClientResponse:
        answers = self.start(message, expect_response=expect_response)
        self.poll_until(lambda: answers)
        return answers[0]


@pytest.fixture
def wired(broker: Broker) -> Iterator[Wired]:
    host, port = broker.address()
    wired = Wired(f"{host}:{port}")
    yield wired
    wired.client.close()


def produce(topic: str, value: bytes, acks: int = -1) -> ProduceRequest:
    records = MemoryRecords.with_records(SimpleRecord(1, None, value))
    return ProduceRequest(
        acks=acks,
        timeout_ms=1000,
        topic_data=[
            ProduceRequest.TopicProduceData(
                name=topic,
                partition_data=[
                    ProduceRequest.PartitionProduceData(index=0, records=records.buffer)
                ],
            )
        ],
    )


def fetch(wired: Wired, topic: str) -> list[bytes | None]:
    request = FetchRequest(
        max_wait_ms=1000,
        min_bytes=1,
        topics=[
            FetchRequest.FetchTopic(
                topic_id=wired.metadata.fetch().topic_id(topic),
                partitions=[
                    FetchRequest.FetchPartition(
                        partition=0, fetch_offset=0, partition_max_bytes=1 << 20
                    )
                ],
            )
        ],
    )
    response = wired.ask(request).message
    assert isinstance(response, FetchResponse)
    records = response.responses[0].partitions[0].records
    assert isinstance(records, memoryview)
    return [record.value for record in MemoryRecords(records).records()]


def test_metadata_comes_from_the_bootstrap_broker(wired: Wired, topic: str) -> None:
    node = wired.node()
    wired.metadata.request_update()

    wired.poll_until(lambda: topic in wired.metadata.fetch().topics)

    cluster = wired.metadata.fetch()
    assert cluster.leader_for(TopicPartition(topic, 0)) == node
    assert cluster.controller == node
    assert wired.metadata.current_leader(TopicPartition(topic, 0)).epoch == 0


def test_what_is_produced_is_fetched(wired: Wired, topic: str) -> None:
    wired.poll_until(lambda: topic in wired.metadata.fetch().topics)

    response = wired.ask(produce(topic, b"x" * 200_000)).message

    assert isinstance(response, ProduceResponse)
    assert response.responses[0].partition_responses[0].error_code == 0
    assert fetch(wired, topic) == [b"x" * 200_000]


def test_pipelined_requests_are_answered_in_order(wired: Wired, topic: str) -> None:
    answers = [wired.start(produce(topic, b"%d" % i)) for i in range(5)]

    wired.poll_until(lambda: all(answers))

    offsets = [
        answer[0].message.responses[0].partition_responses[0].base_offset for answer in answers
    ]
    assert offsets == [0, 1, 2, 3, 4]


def test_request_without_a_response_ends_when_it_is_sent(wired: Wired, topic: str) -> None:
    wired.poll_until(lambda: topic in wired.metadata.fetch().topics)

    response = wired.ask(produce(topic, b"a", acks=0), expect_response=False)

    assert not response.has_response and not response.disconnected
    assert wired.client.in_flight_request_count() == 0
    assert fetch(wired, topic) == [b"a"]


def test_restarted_broker_is_connected_to_again(make_broker) -> None:
    broker = make_broker()
    host, port = broker.address()
    wired = Wired(f"{host}:{port}")
    node = wired.node()

    broker.restart({"listeners": f"PLAINTEXT://127.0.0.1:{port}"})
    wired.poll_until(lambda: wired.client.connection_failed(node))

    wired.poll_until(lambda: wired.client.ready(node, TIME.hi_res_clock_ms()))
    wired.client.close()
