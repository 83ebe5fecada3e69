"""A client's requests as frames, and frames as its responses."""

from __future__ import annotations

from kafkapy.common.errors import Errors
from kafkapy.common.network.send_receive import SIZE, SIZE_BYTES, NetworkSend
from kafkapy.common.network.transport_layer import Buffer
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.codec import ProtocolError
from kafkapy.common.protocol.header_versions import response_header_version
from kafkapy.common.protocol.headers import RequestHeader, ResponseHeader
from kafkapy.common.protocol.message_registry import response_class
from kafkapy.common.protocol.schema import Message

_ERROR_CODE_BYTES = 2


def frame_request(header: RequestHeader, message: Message) -> NetworkSend:
    prefix = bytes(SIZE_BYTES) + header.to_bytes()
    # A client's records are in memory, so every part is a buffer.
    parts: list[Buffer] = message.encode_parts(header.api_version, prefix)  # type: ignore[assignment]
    size = 0
    for part in parts:
        size += len(part)
    SIZE.pack_into(parts[0], 0, size - SIZE_BYTES)
    return NetworkSend(parts, size)


def parse_response(payload: bytearray, header: RequestHeader) -> Message:
    """The answer to the request of that header; ProtocolError when it is none."""
    api_key = header.api_key
    version = header.api_version
    view = memoryview(payload)
    response_header, position = ResponseHeader.decode_from(
        view, 0, response_header_version(api_key, version)
    )
    if response_header.correlation_id != header.correlation_id:
        raise ProtocolError(
            f"correlation id {response_header.correlation_id} instead of {header.correlation_id}"
        )
    if api_key is ApiKeys.API_VERSIONS:
        error_code = int.from_bytes(view[position : position + _ERROR_CODE_BYTES], "big")
        if error_code == Errors.UNSUPPORTED_VERSION.code:
            version = 0  # a refusal comes in the one version that both are sure to know
    return response_class(api_key).decode_from(view, position, version)[0]
