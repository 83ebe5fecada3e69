"""ApiVersions: what is offered, and how it is told to clients newer than this broker."""

import struct

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkapy.common.protocol.messages.metadata import MetadataRequest
from kafkapy.server.kafka_apis import ENABLED_APIS
from tests.helpers.broker import Broker, Client

_HEADER = struct.Struct(">hhih")


def _header(api_key: int, version: int, *, correlation_id: int = 9) -> bytes:
    """A request header v1 with client id "c"."""
    return _HEADER.pack(api_key, version, correlation_id, 1) + b"c"


def test_the_table_is_exactly_that_of_the_handlers(client: Client) -> None:
    response = client.request(ApiVersionsRequest(), 0)

    assert {k.api_key: (k.min_version, k.max_version) for k in response.api_keys} == {
        int(api_key): (api_key.min_version, api_key.max_version) for api_key in ENABLED_APIS
    }


def test_old_clients_find_produce_and_fetch_from_version_zero(client: Client) -> None:
    response = client.request(ApiVersionsRequest(), 0)

    lowest = {k.api_key: k.min_version for k in response.api_keys}
    assert lowest[ApiKeys.PRODUCE] == lowest[ApiKeys.FETCH] == 0


@pytest.mark.parametrize("version", [5, 6, 100, 32767, -1])
def test_a_version_from_the_future_is_answered_in_version_zero(
    client: Client, version: int
) -> None:
    client.send_frame(_header(ApiKeys.API_VERSIONS, version) + b"\x00\x04any\x04any\x00")

    frame = client.receive_frame()
    assert frame[:4] == (9).to_bytes(4)
    response, end = ApiVersionsResponse.decode_from(frame, 4, 0)
    assert end == len(frame)
    assert response.error_code == Errors.UNSUPPORTED_VERSION.code
    assert [(k.api_key, k.min_version, k.max_version) for k in response.api_keys] == [
        (int(ApiKeys.API_VERSIONS), 0, 4)
    ]


def test_the_connection_goes_on_after_a_version_from_the_future(client: Client) -> None:
    client.send_frame(_header(ApiKeys.API_VERSIONS, 99) + b"\x00")
    client.receive_frame()

    assert client.request(ApiVersionsRequest(), 0).error_code == 0


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize(
    ("name", "software_version", "error"),
    [
        ("apache-kafka-java", "3.9.0", Errors.NONE),
        ("a", "1", Errors.NONE),
        ("a.b-c", "1-rc.2", Errors.NONE),
        ("", "1.0", Errors.INVALID_REQUEST),
        ("name", "", Errors.INVALID_REQUEST),
        ("-name", "1.0", Errors.INVALID_REQUEST),
        ("name.", "1.0", Errors.INVALID_REQUEST),
        ("na me", "1.0", Errors.INVALID_REQUEST),
        ("name\n", "1.0", Errors.INVALID_REQUEST),
        ("name", "1.0-", Errors.INVALID_REQUEST),
        ("näme", "1.0", Errors.INVALID_REQUEST),
    ],
)
def test_client_software_must_have_a_well_formed_name_and_version(
    client: Client, version: int, name: str, software_version: str, error: Errors
) -> None:
    response = client.request(
        ApiVersionsRequest(client_software_name=name, client_software_version=software_version),
        version,
    )

    assert response.error_code == error.code
    assert bool(response.api_keys) == (error is Errors.NONE)


@pytest.mark.parametrize("version", [0, 3])
def test_features_are_not_offered(client: Client, version: int) -> None:
    response = client.request(
        ApiVersionsRequest(client_software_name="test", client_software_version="1"), version
    )

    assert response.supported_features == response.finalized_features == []


@pytest.mark.parametrize(
    "api_key",
    [api_key for api_key in ApiKeys if api_key not in ENABLED_APIS],
    ids=lambda api_key: api_key.api_name,
)
def test_an_api_that_is_not_offered_closes_the_connection(broker: Broker, api_key: ApiKeys) -> None:
    with broker.client() as client:
        client.send_frame(_header(api_key, api_key.min_version) + b"\x00" * 20)

        assert client.is_closed()


@pytest.mark.parametrize(
    ("api_key", "version"),
    [
        (api_key, version)
        for api_key in sorted(ENABLED_APIS - {ApiKeys.API_VERSIONS})
        for version in (api_key.min_version - 1, api_key.max_version + 1)
    ],
)
def test_a_version_that_is_not_offered_closes_the_connection(
    broker: Broker, api_key: ApiKeys, version: int
) -> None:
    with broker.client() as client:
        client.send_frame(_header(api_key, version) + b"\x00" * 20)

        assert client.is_closed()


def test_an_api_key_that_does_not_exist_closes_the_connection(broker: Broker) -> None:
    with broker.client() as client:
        client.send_frame(_header(9999, 0))

        assert client.is_closed()


def test_a_client_without_a_name_is_served(broker: Broker) -> None:
    with broker.client(client_id=None) as client:
        assert client.request(MetadataRequest(topics=[])).brokers


def test_pipelined_requests_are_answered_in_order(client: Client) -> None:
    for version in (0, 1, 2, 3, 4) * 4:
        client.send(
            ApiVersionsRequest(client_software_name="test", client_software_version="1"), version
        )
        client.send(MetadataRequest(topics=[]), 12)

    for _ in range(20):
        assert client.receive().error_code == 0  # checks the correlation id
        assert client.receive().topics == []
