import pytest

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.codec import ProtocolError
from kafkapy.common.protocol.header_versions import request_header_version, response_header_version
from kafkapy.common.protocol.headers import (
    RequestHeader,
    ResponseHeader,
    encode_response_header,
    parse_request_header,
)


@pytest.mark.parametrize(
    ("api_key", "api_version", "expected"),
    [
        (ApiKeys.CONTROLLED_SHUTDOWN, 0, "0007 0000 00000005"),
        (ApiKeys.CONTROLLED_SHUTDOWN, 1, "0007 0001 00000005 0002 6d65"),
        (ApiKeys.PRODUCE, 8, "0000 0008 00000005 0002 6d65"),
        (ApiKeys.PRODUCE, 9, "0000 0009 00000005 0002 6d65 00"),
        (ApiKeys.SASL_HANDSHAKE, 1, "0011 0001 00000005 0002 6d65"),
    ],
)
def test_request_header_round_trips(api_key: ApiKeys, api_version: int, expected: str) -> None:
    header = RequestHeader(
        api_key=api_key, api_version=api_version, correlation_id=5, client_id="me"
    )

    encoded = header.to_bytes()
    parsed, position = parse_request_header(encoded + b"body")

    assert encoded == bytes.fromhex(expected)
    assert position == len(encoded)
    assert parsed.api_key is api_key
    assert (parsed.api_version, parsed.correlation_id) == (api_version, 5)
    assert parsed.client_id == ("" if header.header_version == 0 else "me")


def test_null_client_id_is_read_as_empty() -> None:
    header, _ = parse_request_header(bytes.fromhex("0000 0003 00000001 ffff"))

    assert header.client_id == ""


def test_tags_of_a_request_header_are_kept() -> None:
    data = bytes.fromhex("0000 0009 00000005 0001 61 01 07 01 ff")

    header, position = parse_request_header(memoryview(data))

    assert header.unknown_tagged_fields == {7: b"\xff"}
    assert position == len(data)


@pytest.mark.parametrize("version", [-1, 5, 1000, 32767])
def test_api_versions_of_any_version_has_a_header(version: int) -> None:
    tail = b"" if version < 0 else b"\x00"
    data = b"\x00\x12" + version.to_bytes(2, "big", signed=True) + b"\x00\x00\x00\x09\x00\x01a"

    header, position = parse_request_header(data + tail + b"anything")

    assert (header.api_key, header.api_version) == (ApiKeys.API_VERSIONS, version)
    assert (header.correlation_id, header.client_id) == (9, "a")
    assert position == len(data + tail)


@pytest.mark.parametrize(
    "data",
    ["", "0000 00", "0000 0003 0000", "0000 0003 00000001 0005 61", "03e7 0000 00000001 0000"],
    ids=["empty", "no version", "no correlation id", "short client id", "unknown API"],
)
def test_bad_header_is_a_protocol_error(data: str) -> None:
    with pytest.raises(ProtocolError):
        parse_request_header(bytes.fromhex(data))


@pytest.mark.parametrize(
    ("api_key", "api_version", "request_version", "response_version"),
    [
        (ApiKeys.PRODUCE, 8, 1, 0),
        (ApiKeys.PRODUCE, 9, 2, 1),
        (ApiKeys.API_VERSIONS, 2, 1, 0),
        (ApiKeys.API_VERSIONS, 3, 2, 0),
        (ApiKeys.CONTROLLED_SHUTDOWN, 0, 0, 0),
        (ApiKeys.CONTROLLED_SHUTDOWN, 3, 2, 1),
        (ApiKeys.OFFSET_DELETE, 0, 1, 0),
        (ApiKeys.DESCRIBE_CLUSTER, 0, 2, 1),
    ],
)
def test_header_versions(
    api_key: ApiKeys, api_version: int, request_version: int, response_version: int
) -> None:
    assert request_header_version(api_key, api_version) == request_version
    assert response_header_version(api_key, api_version) == response_version


@pytest.mark.parametrize(
    ("api_key", "api_version"),
    [(ApiKeys.FETCH, 11), (ApiKeys.FETCH, 12), (ApiKeys.API_VERSIONS, 3)],
)
def test_encoded_response_header_is_that_of_the_declaration(
    api_key: ApiKeys, api_version: int
) -> None:
    declared = ResponseHeader(correlation_id=77)

    encoded = encode_response_header(api_key, api_version, 77)

    assert encoded == declared.encode(response_header_version(api_key, api_version))
