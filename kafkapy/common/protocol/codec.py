"""Turns message declarations into Python functions, one per message and version.

A generated function handles one whole message: neighbouring fixed-size fields and the length that
follows them go through a single precompiled Struct, nested arrays are plain loops, and nothing of
the declaration is looked at while a message is read or written.

Input is not trusted. A count of elements is compared with the bytes that are left before anything
is allocated for it. A slice beyond the end comes out short instead of failing, so the position is
compared with the end once, after the last field. Everything that goes wrong becomes ProtocolError.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol, TypeVar
from uuid import UUID, SafeUUID

from kafkapy.common.errors import InvalidRequestError, UnsupportedVersionError
from kafkapy.common.protocol.constructor_source import ConstructorSource
from kafkapy.common.protocol.decoder_source import DecoderSource
from kafkapy.common.protocol.encoder_source import EncoderSource
from kafkapy.common.protocol.error_codes_source import ErrorCodesSource
from kafkapy.common.types import ZERO_UUID

if TYPE_CHECKING:
    from kafkapy.common.protocol.schema import Message, Struct

_MessageT = TypeVar("_MessageT")


class ProtocolError(InvalidRequestError):
    """Bytes that are not the message they claim to be, or values that no bytes can express.

    Ports: org.apache.kafka.common.protocol.types.SchemaException
    """


class SizedRecords(Protocol):
    """Records known by their size: in memory when there is a `buffer`, else in a file."""

    @property
    def size_in_bytes(self) -> int: ...


# What a `records` field may hold when a message is encoded.
RecordsData = bytes | bytearray | memoryview | SizedRecords
# One piece of an encoded message: bytes, or records that stay in their file.
Part = bytes | bytearray | memoryview | SizedRecords

Decoder = Callable[[bytes | bytearray | memoryview, int], tuple[_MessageT, int]]
# Writes to the given buffer, and appends that and whatever follows it to the parts.
Encoder = Callable[[Any, bytearray, list[Part]], None]

# Smaller records are copied into the surrounding bytes: cheaper than one more part to send.
_COPIED_RECORDS_BYTES: Final = 1024
_BYTES_LIKE: Final = frozenset({bytes, bytearray, memoryview})
_MAX_STRING_BYTES: Final = 32767


def compile_constructor(cls: type[Struct]) -> Callable[..., None]:
    """The keyword-only `__init__` of a struct."""
    return ConstructorSource(cls).compile({"ZERO_UUID": ZERO_UUID})


def compile_decoder(cls: type[Message], version: int) -> Decoder[Any]:
    return DecoderSource(cls, version).compile(_DECODER_RUNTIME)


def compile_encoder(cls: type[Message], version: int) -> Encoder:
    return EncoderSource(cls, version).compile(_ENCODER_RUNTIME)


def compile_error_codes(cls: type[Message]) -> Callable[[Any], list[int]]:
    return ErrorCodesSource(cls).compile({})


def read_uvarint(
    buffer: bytes | memoryview, position: int, first: int | None = None
) -> tuple[int, int]:
    """An unsigned varint of at most 32 bits, and the position after it.

    `first` is its first byte when that has been consumed already.
    """
    if first is None:
        first = buffer[position]
        position += 1
    value = first & 0x7F
    shift = 7
    while first & 0x80:
        if shift > 28:
            raise ProtocolError("a varint is longer than 5 bytes")
        first = buffer[position]
        position += 1
        value |= (first & 0x7F) << shift
        shift += 7
    if value > 0xFFFFFFFF:
        raise ProtocolError("a varint does not fit in 32 bits")
    return value, position


def write_uvarint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _read_unknown_tags(
    buffer: bytes | memoryview, position: int, count: int
) -> tuple[dict[int, bytes], int]:
    """The tagged fields of a struct that has none of its own; the first byte of count is read."""
    if count > 0x7F:
        count, position = read_uvarint(buffer, position, count)
    tags: dict[int, bytes] = {}
    for _ in range(count):
        tag, position = read_uvarint(buffer, position)
        size, position = read_uvarint(buffer, position)
        tags[tag] = bytes(buffer[position : position + size])
        position += size
    return tags, position


def _write_tags(out: bytearray, tags: dict[int, bytes | bytearray]) -> None:
    write_uvarint(out, len(tags))
    for tag in sorted(tags):
        value = tags[tag]
        write_uvarint(out, tag)
        write_uvarint(out, len(value))
        out += value


_set_uuid_int = UUID.__dict__["int"].__set__
_set_uuid_safe = UUID.__dict__["is_safe"].__set__


def _uuid_from_bytes(raw: bytes) -> UUID:
    """UUID(bytes=raw) at a quarter of its cost: the checks of its constructor cannot fail here."""
    value = int.from_bytes(raw, "big")
    if value == 0:
        return ZERO_UUID
    result: UUID = object.__new__(UUID)
    _set_uuid_int(result, value)
    _set_uuid_safe(result, SafeUUID.unknown)
    return result


def _write_records(out: bytearray, parts: list[Part], records: Any, size: int) -> bytearray:
    """Adds the records and returns the buffer to go on with."""
    if records.__class__ not in _BYTES_LIKE:
        buffer = getattr(records, "buffer", None)
        if buffer is None:
            parts.append(out)
            parts.append(records)
            return bytearray()
        records = buffer
    if size <= _COPIED_RECORDS_BYTES:
        out += records
        return out
    parts.append(out)
    parts.append(records)
    return bytearray()


def _bad_null(field: str) -> NoReturn:
    raise ProtocolError(f"{field} is null")


def _bad_count(field: str, count: int) -> NoReturn:
    raise ProtocolError(f"{field} has {count} elements, more than the bytes that are left")


def _bad_length(field: str, length: int) -> NoReturn:
    raise ProtocolError(f"{field} has a length of {length}, more than {_MAX_STRING_BYTES} bytes")


def _bad_tag(field: str) -> NoReturn:
    raise ProtocolError(f"{field} does not fill the size of its tag")


def _truncated(message: str) -> NoReturn:
    raise ProtocolError(f"{message} is truncated")


def _undecodable(message: str, error: Exception) -> ProtocolError:
    return ProtocolError(f"{message} cannot be read: {error}")


def _unencodable(message: str, error: Exception) -> ProtocolError:
    return ProtocolError(f"{message} cannot be written: {error}")


def _unsupported(field: str, version: int) -> NoReturn:
    raise UnsupportedVersionError(f"version {version} has no {field}, which is not its default")


_DECODER_RUNTIME: Final[dict[str, Any]] = {
    "DECODE_ERRORS": (struct.error, IndexError, UnicodeDecodeError),
    "ZERO_UUID": ZERO_UUID,
    "bad_count": _bad_count,
    "bad_length": _bad_length,
    "bad_null": _bad_null,
    "bad_tag": _bad_tag,
    "new": object.__new__,
    "read_unknown_tags": _read_unknown_tags,
    "truncated": _truncated,
    "undecodable": _undecodable,
    "unpack_from": struct.unpack_from,
    "uuid_from_bytes": _uuid_from_bytes,
    "uvarint": read_uvarint,
}
_ENCODER_RUNTIME: Final[dict[str, Any]] = {
    "BYTES_LIKE": _BYTES_LIKE,
    "ENCODE_ERRORS": (struct.error, AttributeError, TypeError, ValueError, OverflowError),
    "ZERO_UUID": ZERO_UUID,
    "bad_length": _bad_length,
    "pack": struct.pack,
    "unencodable": _unencodable,
    "unsupported": _unsupported,
    "write_records": _write_records,
    "write_tags": _write_tags,
    "write_uvarint": write_uvarint,
}
