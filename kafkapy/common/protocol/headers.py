"""The headers in front of every request and response."""

from __future__ import annotations

import struct

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.codec import Decoder, ProtocolError
from kafkapy.common.protocol.header_versions import (
    request_header_version,
    response_header_version,
)
from kafkapy.common.protocol.schema import Message, int16, int32, string

_API_KEY_AND_VERSION = struct.Struct(">hh")
# Response headers v0 and v1; the latter ends in "no tagged fields".
_RESPONSE_HEADERS = (struct.Struct(">i"), struct.Struct(">ix"))

# By the bytes of an API key and version.
_header_decoders: dict[bytes, tuple[ApiKeys, Decoder[RequestHeader]]] = {}


class RequestHeader(Message, versions="0-2", flexible="2+"):
    """The header of a request. Not thread-safe.

    Ports: org.apache.kafka.common.requests.RequestHeader
    """

    api_key: ApiKeys = int16("0+")
    api_version: int = int16("0+")
    correlation_id: int = int32("0+")
    # Null on the wire means the same as empty.
    client_id: str = string("1+", nullable="1+", ignorable=True, flexible="none")

    @property
    def header_version(self) -> int:
        return request_header_version(self.api_key, self.api_version)

    def to_bytes(self) -> bytes:
        return self.encode(self.header_version)


class ResponseHeader(Message, versions="0-1", flexible="1+"):
    """The header of a response. Not thread-safe.

    Ports: org.apache.kafka.common.requests.ResponseHeader
    """

    correlation_id: int = int32("0+")


def parse_request_header(buffer: bytes | bytearray | memoryview) -> tuple[RequestHeader, int]:
    """The header and the position of the body.

    The version is not checked: the caller must, and answers an ApiVersions request of an unknown
    version at version 0. Raises ProtocolError for an unknown API or malformed bytes.
    """
    kind = bytes(buffer[: _API_KEY_AND_VERSION.size])
    api_key, decode = _header_decoders.get(kind) or _header_decoder(kind)
    header, position = decode(buffer, 0)
    header.api_key = api_key
    header.client_id = header.client_id or ""
    return header, position


def _header_decoder(kind: bytes) -> tuple[ApiKeys, Decoder[RequestHeader]]:
    """That of an API key and version, as a request begins with them."""
    if len(kind) < _API_KEY_AND_VERSION.size:
        raise ProtocolError(f"a request of {len(kind)} bytes has no header")
    key, api_version = _API_KEY_AND_VERSION.unpack(kind)
    api_key = ApiKeys.for_id(key)
    if api_key is None:
        raise ProtocolError(f"unknown API key {key}")
    found = api_key, RequestHeader.decoder(request_header_version(api_key, api_version))
    if api_key.is_version_supported(api_version):
        _header_decoders[kind] = found  # the others are without number
    return found


def encode_response_header(api_key: ApiKeys, api_version: int, correlation_id: int) -> bytes:
    """The same bytes as ResponseHeader encodes, at a fraction of the cost."""
    return _RESPONSE_HEADERS[response_header_version(api_key, api_version)].pack(correlation_id)
