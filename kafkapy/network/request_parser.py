"""Received bytes turned into requests."""

from __future__ import annotations

import re

from kafkapy.common.errors import InvalidRequestError
from kafkapy.common.network.kafka_channel import ClientInformation
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.codec import Decoder
from kafkapy.common.protocol.headers import RequestHeader, parse_request_header
from kafkapy.common.protocol.message_registry import request_class
from kafkapy.common.protocol.messages.api_versions import ApiVersionsRequest
from kafkapy.common.protocol.schema import Message
from kafkapy.network.api_version_manager import ApiVersionManager

_SOFTWARE_NAME_OR_VERSION = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


class RequestParser:
    """Parses what this listener takes. Thread-safe.

    Ports: org.apache.kafka.common.requests.RequestContext.parseRequest
    """

    def __init__(self, api_versions: ApiVersionManager) -> None:
        self._api_versions = api_versions  # constant after construction
        # Of the APIs and versions that have been asked for and are served.
        self._body_decoders: dict[tuple[ApiKeys, int], Decoder[Message]] = {}

    def parse(self, payload: bytearray) -> tuple[RequestHeader, Message | None]:
        """The header and the body; no body for ApiVersions in a version that is not supported,
        because that is answered whatever it holds.

        Raises InvalidRequestError (ProtocolError is one) for anything else that is not a request
        this broker takes.
        """
        # The body's records are slices of this view, not copies.
        buffer = memoryview(payload)
        header, position = parse_request_header(buffer)
        api_key, version = header.api_key, header.api_version
        decode_body = self._body_decoders.get((api_key, version))
        if decode_body is None:
            if not self._api_versions.is_api_enabled(api_key, version):
                if api_key is ApiKeys.API_VERSIONS:
                    return header, None
                raise InvalidRequestError(
                    f"{api_key.api_name} version {version} is not served by this listener"
                )
            decode_body = request_class(api_key).decoder(version)
            self._body_decoders[api_key, version] = decode_body
        return header, decode_body(buffer, position)[0]


def client_information(body: Message | None) -> ClientInformation | None:
    """What an ApiVersions request says about its client, if that is well-formed."""
    if not isinstance(body, ApiVersionsRequest):
        return None
    name, version = body.client_software_name, body.client_software_version
    if not _SOFTWARE_NAME_OR_VERSION.fullmatch(name):
        return None
    if not _SOFTWARE_NAME_OR_VERSION.fullmatch(version):
        return None
    return ClientInformation(name, version)
