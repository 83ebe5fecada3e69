import struct

import pytest

from kafkapy.common.errors import InvalidRequestError
from kafkapy.common.network.kafka_channel import ClientInformation
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.codec import ProtocolError
from kafkapy.common.protocol.headers import RequestHeader
from kafkapy.common.protocol.messages.api_versions import ApiVersionsRequest
from kafkapy.common.protocol.messages.metadata import MetadataRequest
from kafkapy.common.protocol.messages.produce import ProduceRequest
from kafkapy.common.protocol.schema import Message
from kafkapy.network.request_parser import RequestParser, client_information


class AllButFetch:
    def is_api_enabled(self, api_key: ApiKeys, version: int) -> bool:
        return api_key is not ApiKeys.FETCH and version in api_key.versions


@pytest.fixture
def parser() -> RequestParser:
    return RequestParser(AllButFetch())


def request_bytes(body: Message, version: int, api_key: ApiKeys) -> bytearray:
    header = RequestHeader(
        api_key=api_key, api_version=version, correlation_id=77, client_id="client"
    )
    return bytearray(header.to_bytes() + body.encode(version))


@pytest.mark.parametrize("version", range(13))
def test_header_and_body_are_parsed(parser: RequestParser, version: int) -> None:
    topics = [MetadataRequest.MetadataRequestTopic(name="topic")]
    sent = MetadataRequest(topics=topics)

    header, body = parser.parse(request_bytes(sent, version, ApiKeys.METADATA))

    assert (header.api_key, header.api_version) == (ApiKeys.METADATA, version)
    assert (header.correlation_id, header.client_id) == (77, "client")
    assert isinstance(body, MetadataRequest)
    assert [topic.name for topic in body.topics or []] == ["topic"]


def test_records_are_a_writable_part_of_what_was_received(parser: RequestParser) -> None:
    data = ProduceRequest.PartitionProduceData(index=0, records=b"r" * 100)
    topic = ProduceRequest.TopicProduceData(name="t", partition_data=[data])
    payload = request_bytes(
        ProduceRequest(acks=1, timeout_ms=1, topic_data=[topic]), 9, ApiKeys.PRODUCE
    )

    _, body = parser.parse(payload)

    assert isinstance(body, ProduceRequest)
    records = body.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    records[0] = ord("R")
    assert b"R" + b"r" * 99 in payload


@pytest.mark.parametrize("version", [5, 6, 100, 32767, -1])
def test_api_versions_of_any_version_is_let_through_without_body(
    parser: RequestParser, version: int
) -> None:
    start = struct.pack(">hhih", ApiKeys.API_VERSIONS, version, 5, 2) + b"id"

    header, body = parser.parse(bytearray(start + b"\0 whatever a newer version holds"))

    assert (header.api_version, header.correlation_id, header.client_id) == (version, 5, "id")
    assert body is None


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\0",
        b"\0\0\0\0",
        struct.pack(">hhih", 9999, 0, 1, -1),
        struct.pack(">hhih", -5, 0, 1, -1),
        struct.pack(">hhih", ApiKeys.METADATA, 0, 1, 500),
        struct.pack(">hhih", ApiKeys.METADATA, 1, 1, -1) + b"\x7f\xff\xff\xff",
    ],
)
def test_garbage_is_a_protocol_error(parser: RequestParser, payload: bytes) -> None:
    with pytest.raises(ProtocolError):
        parser.parse(bytearray(payload))


@pytest.mark.parametrize(
    ("api_key", "version"),
    [(ApiKeys.FETCH, 4), (ApiKeys.METADATA, 99), (ApiKeys.PRODUCE, -1)],
)
def test_request_that_is_not_served_is_refused(
    parser: RequestParser, api_key: ApiKeys, version: int
) -> None:
    payload = struct.pack(">hhih", api_key, version, 5, -1) + bytes(100)

    with pytest.raises(InvalidRequestError, match=api_key.api_name):
        parser.parse(bytearray(payload))


def test_client_says_what_it_is() -> None:
    body = ApiVersionsRequest(client_software_name="librdkafka", client_software_version="2.6.1")

    assert client_information(body) == ClientInformation("librdkafka", "2.6.1")


@pytest.mark.parametrize(
    ("name", "version"), [("", "1.0"), ("a b", "1.0"), ("-a", "1.0"), ("a", ""), ("a", "1.0-")]
)
def test_ill_formed_client_information_is_ignored(name: str, version: str) -> None:
    body = ApiVersionsRequest(client_software_name=name, client_software_version=version)

    assert client_information(body) is None


def test_other_requests_say_nothing_about_the_client() -> None:
    assert client_information(None) is None
    assert client_information(MetadataRequest(topics=None)) is None
