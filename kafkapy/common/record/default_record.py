"""Records of magic 2.

    length varint | attributes int8 | timestamp delta varlong | offset delta varint
    | key length varint (-1: null) | key | value length varint (-1: null) | value
    | header count varint | { key length varint | key | value length varint | value }…

`read_record_fields` decodes; `walk_records` only validates, which is what an append needs of each
record and therefore the hottest loop of the broker: keep both plain.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from kafkapy.common.errors import InvalidRecordError
from kafkapy.common.record.record import Header, Record
from kafkapy.common.record.record_batch import MAGIC_VALUE_V2, NO_SEQUENCE, increment_sequence
from kafkapy.common.record.record_input import RecordInput
from kafkapy.common.record.records_alike import records_alike
from kafkapy.utils.compiled import IS_COMPILED
from kafkapy.utils.varint import (
    BytesLike,
    read_varint,
    read_varlong,
    size_of_varint,
    size_of_varlong,
    write_varint,
    write_varlong,
)

if TYPE_CHECKING:
    # Compiled, a machine word; interpreted, annotations of local variables are not evaluated.
    from mypy_extensions import i64

_MAX_VARINT_BYTES: Final = 5
# Size, attributes, timestamp delta and offset delta at their longest.
MAX_RECORD_OVERHEAD: Final = 5 + 1 + 10 + 5
# Attributes, timestamp delta, offset delta and key length at their longest.
_MAX_RECORD_PREFIX_BYTES: Final = 1 + 10 + 5 + 5
# How far to go on, in the form of offset deltas, before the next look for many that are alike.
_DELTAS_BETWEEN_TRIES: Final = 2 * 32
# A longer record is walked without ever being held whole: few bytes can decompress to very many.
_LARGE_RECORD_BYTES: Final = 1024 * 1024


# offset, timestamp, key, value, headers, size of the record, of its key and of its value (null: -1)
RecordFields: TypeAlias = tuple[
    int, int, bytes | None, bytes | None, tuple[Header, ...], int, int, int
]


# What `walk_records` found: smallest and largest timestamp delta, whether all records have keys and
# whether their offsets are contiguous.
RecordWalk: TypeAlias = tuple[int, int, bool, bool]


class RecordSlice(NamedTuple):
    """A record as stored, decoded as far as compaction must know it.

    It is `data[start:end]`; from `rest` on, behind the timestamp, nothing depends on the batch's
    base timestamp.
    """

    offset_delta: int
    timestamp_delta: int
    key: bytes | None
    has_value: bool
    data: bytes
    start: int
    rest: int
    end: int


def read_records(
    source: RecordInput,
    *,
    count: int,
    base_offset: int,
    base_timestamp: int,
    base_sequence: int,
    log_append_time: int | None,
) -> Iterator[Record]:
    """Decodes exactly count records; InvalidRecordError when the section is not made of them."""
    for fields in read_record_fields(source, count, base_offset, base_timestamp):
        offset, timestamp, key, value, headers, size, _, _ = fields
        yield Record(
            MAGIC_VALUE_V2,
            offset,
            timestamp if log_append_time is None else log_append_time,
            key,
            value,
            headers,
            (
                increment_sequence(base_sequence, offset - base_offset)
                if base_sequence >= 0
                else NO_SEQUENCE
            ),
            size,
        )


def read_record_fields(
    source: RecordInput, count: int, base_offset: int, base_timestamp: int
) -> Iterator[RecordFields]:
    """As read_records, each record as a plain tuple: the hottest loop of a consumer.

    Varints of one and two bytes, which nearly all are, are taken apart in place.
    """
    data = source.data
    position = 0
    end = len(data)
    for _ in range(count):
        if end - position < _MAX_VARINT_BYTES:
            data = source.refill(position, _MAX_VARINT_BYTES)
            position = 0
            end = len(data)
        start = position
        try:
            byte = data[position]
            if byte < 0x80:
                length = (byte >> 1) ^ -(byte & 1)
                position += 1
            elif (second := data[position + 1]) < 0x80:
                length = ((byte & 0x7F | second << 7) >> 1) ^ -(byte & 1)
                position += 2
            else:
                length, position = read_varint(data, position)
            size = position - start + length
            record_end = position + length
            if record_end > end:
                data = source.refill(position, length)
                position = 0
                record_end = length
                end = len(data)
            if length < 0 or record_end > end:
                raise InvalidRecordError(
                    f"record of {length} bytes does not fit the {end - position} bytes left"
                )

            byte = data[position + 1]
            if byte < 0x80:
                timestamp_delta = (byte >> 1) ^ -(byte & 1)
                position += 2
            else:
                timestamp_delta, position = read_varlong(data, position + 1)

            byte = data[position]
            if byte < 0x80:
                offset_delta = (byte >> 1) ^ -(byte & 1)
                position += 1
            elif (second := data[position + 1]) < 0x80:
                offset_delta = ((byte & 0x7F | second << 7) >> 1) ^ -(byte & 1)
                position += 2
            else:
                offset_delta, position = read_varint(data, position)

            byte = data[position]
            if byte < 0x80:
                key_size = (byte >> 1) ^ -(byte & 1)
                position += 1
            else:
                key_size, position = read_varint(data, position)
            if key_size < 0:
                key = None
                key_size = -1
            else:
                key_end = position + key_size
                key = data[position:key_end]
                position = key_end

            byte = data[position]
            if byte < 0x80:
                value_size = (byte >> 1) ^ -(byte & 1)
                position += 1
            elif (second := data[position + 1]) < 0x80:
                value_size = ((byte & 0x7F | second << 7) >> 1) ^ -(byte & 1)
                position += 2
            else:
                value_size, position = read_varint(data, position)
            if value_size < 0:
                value = None
                value_size = -1
            else:
                value_end = position + value_size
                value = data[position:value_end]
                position = value_end

            headers: tuple[Header, ...] = ()
            if data[position] == 0:
                position += 1
            else:
                headers, position = _read_headers(data, position, record_end)
        except (IndexError, ValueError) as error:
            raise InvalidRecordError("record has an invalid structure") from error
        if position != record_end:
            raise InvalidRecordError(f"record of {length} bytes does not end where it says")
        yield (
            base_offset + offset_delta,
            base_timestamp + timestamp_delta,
            key,
            value,
            headers,
            size,
            key_size,
            value_size,
        )
    _ensure_none_remaining(source, position)


def slice_records(source: RecordInput, count: int) -> Iterator[RecordSlice]:
    """Finds count records and their keys, and copies nothing else.

    Raises InvalidRecordError when the section is not made of them; headers are not looked into.
    """
    data = source.data
    position = 0
    end = len(data)
    for _ in range(count):
        if end - position < _MAX_VARINT_BYTES:
            data = source.refill(position, _MAX_VARINT_BYTES)
            position = 0
            end = len(data)
        start = position
        try:
            length, position = read_varint(data, position)
            if length > end - position:
                prefix = position - start
                data = source.refill(start, prefix + length)
                start = 0
                position = prefix
                end = len(data)
            record_end = position + length
            if length < 0 or record_end > end:
                raise InvalidRecordError(
                    f"record of {length} bytes does not fit the {end - position} bytes left"
                )
            byte = data[position + 1]
            if byte < 0x80:
                timestamp_delta = (byte >> 1) ^ -(byte & 1)
                rest = position + 2
            else:
                timestamp_delta, rest = read_varlong(data, position + 1)
            byte = data[rest]
            if byte < 0x80:
                offset_delta = (byte >> 1) ^ -(byte & 1)
                position = rest + 1
            else:
                offset_delta, position = read_varint(data, rest)
            byte = data[position]
            if byte < 0x80 and not byte & 1:
                start_of_key = position + 1
                position = start_of_key + (byte >> 1)
                key: bytes | None = data[start_of_key:position]
            else:
                key, position = _read_bytes(data, position)
            if position >= record_end:
                raise InvalidRecordError(f"record of {length} bytes does not end where it says")
            # The zig-zag form of a size is odd when the size is negative, which stands for null.
            has_value = data[position] & 1 == 0
        except (IndexError, ValueError) as error:
            raise InvalidRecordError("record has an invalid structure") from error
        yield RecordSlice(
            offset_delta, timestamp_delta, key, has_value, data, start, rest, record_end
        )
        position = record_end
    _ensure_none_remaining(source, position)


def walk_records(source: RecordInput, count: int) -> RecordWalk:
    """Checks the structure of count > 0 records without decoding them.

    Raises InvalidRecordError exactly when read_records would.
    """
    data = source.data
    position: i64 = 0
    end: i64 = len(data)
    start: i64
    record_end: i64
    byte: i64
    second: i64
    length: i64
    last_length: i64 = -1
    expected: i64 = 0  # zig-zag form of the offset delta: twice the index
    limit: i64 = 2 * count
    min_delta = 2**63
    max_delta = -(2**63) - 1
    all_have_keys = True
    contiguous = True
    # In the form of `expected`. Compiled, one record after the other is faster.
    not_alike_before: i64 = limit + 1 if IS_COMPILED else 0
    try:
        while expected < limit:
            if end - position < _MAX_VARINT_BYTES:
                data = source.refill(position, _MAX_VARINT_BYTES)
                position = 0
                end = len(data)

            start = position
            byte = data[position]
            if byte < 0x80:
                length = (byte >> 1) ^ -(byte & 1)
                position += 1
            else:
                second = data[position + 1]
                if second < 0x80:
                    length = ((byte & 0x7F | second << 7) >> 1) ^ -(byte & 1)
                    position += 2
                else:
                    length, position = read_varint(data, position)
            record_end = position + length
            if record_end > end:
                if length > _LARGE_RECORD_BYTES:
                    delta, offset_delta, has_key = _walk_large_record(source, position, length)
                    max_delta = max(max_delta, delta)
                    min_delta = min(min_delta, delta)
                    contiguous = contiguous and offset_delta << 1 == expected
                    all_have_keys = all_have_keys and has_key
                    data = source.data
                    position = 0
                    end = len(data)
                    expected += 2
                    continue
                data = source.refill(start, position - start + length)
                position -= start
                record_end = position + length
                start = 0
                end = len(data)
                if record_end > end:
                    raise InvalidRecordError(
                        f"record of {length} bytes does not fit the {end - position} bytes left"
                    )

            byte = data[position + 1]
            if byte < 0x80:
                delta = (byte >> 1) ^ -(byte & 1)
                position += 2
            else:
                delta, position = read_varlong(data, position + 1)
            if delta > max_delta:
                max_delta = delta
            if delta < min_delta:
                min_delta = delta

            byte = data[position]
            if byte < 0x80:
                position += 1
                if byte != expected:
                    contiguous = False
            else:
                second = data[position + 1]
                if second < 0x80:
                    position += 2
                    if (byte & 0x7F | second << 7) != expected:
                        contiguous = False
                else:
                    delta, position = read_varint(data, position)
                    if delta << 1 != expected:
                        contiguous = False

            byte = data[position]
            if byte < 0x80:
                position += 1
                if byte & 1:
                    all_have_keys = False
                else:
                    position += byte >> 1
            else:
                size, position = read_varint(data, position)
                if size < 0:
                    all_have_keys = False
                else:
                    position += size

            byte = data[position]
            if byte < 0x80:
                position += 1
                if not byte & 1:
                    position += byte >> 1
            else:
                second = data[position + 1]
                if second < 0x80:
                    position += 2
                    if not byte & 1:
                        position += (byte & 0x7F | second << 7) >> 1
                else:
                    size, position = read_varint(data, position)
                    if size > 0:
                        position += size

            if data[position] == 0:
                position += 1
            else:
                position = _skip_headers(data, position, record_end)
            if position != record_end:
                raise InvalidRecordError(f"record of {length} bytes does not end where it says")
            expected += 2

            if length == last_length and expected >= not_alike_before:
                alike = records_alike(data, start, record_end, expected >> 1, count)
                if alike is None:
                    not_alike_before = expected + _DELTAS_BETWEEN_TRIES
                else:
                    expected += 2 * alike.number
                    position += alike.number * (record_end - start)
                    min_delta = min(min_delta, alike.min_timestamp_delta)
                    max_delta = max(max_delta, alike.max_timestamp_delta)
            last_length = length
    except (IndexError, ValueError) as error:
        raise InvalidRecordError("record has an invalid structure") from error
    _ensure_none_remaining(source, position)
    return min_delta, max_delta, all_have_keys, contiguous


def _walk_large_record(source: RecordInput, position: int, length: int) -> tuple[int, int, bool]:
    """Timestamp delta, offset delta and whether it has a key; source goes on behind the record."""
    record_end = source.bytes_read - len(source.data) + position + length
    data = source.refill(position, _MAX_RECORD_PREFIX_BYTES)
    timestamp_delta, position = read_varlong(data, 1)
    offset_delta, position = read_varint(data, position)
    key_size, position = _skip_sized(source, position)
    _, position = _skip_sized(source, position)
    data = source.refill(position, _MAX_VARINT_BYTES)
    remaining = record_end - (source.bytes_read - len(data))
    count, position = _read_header_count(data, 0, remaining)
    for _ in range(count):
        size, position = _skip_sized(source, position)
        if size < 0:
            raise InvalidRecordError("record header has no key")
        _, position = _skip_sized(source, position)
    data = source.refill(position, 0)
    if source.bytes_read - len(data) != record_end:
        raise InvalidRecordError(f"record of {length} bytes does not end where it says")
    return timestamp_delta, offset_delta, key_size >= 0


def _skip_sized(source: RecordInput, position: int) -> tuple[int, int]:
    """The size at the position, negative for null, and the position behind the bytes it is of.

    The source moves on only when it has to: each move copies what is in sight, and a record may be
    made of as many headers as bytes.
    """
    data = source.data
    if len(data) - position < _MAX_VARINT_BYTES:
        data = source.refill(position, _MAX_VARINT_BYTES)
        position = 0
    size, position = read_varint(data, position)
    if size <= len(data) - position:
        return size, position + max(size, 0)
    source.skip(position, size)
    return size, 0


def write_with_timestamp(out: bytearray, record: RecordSlice, timestamp_delta: int) -> None:
    """Appends a stored record with another timestamp delta."""
    write_varint(out, 1 + size_of_varlong(timestamp_delta) + record.end - record.rest)
    out.append(0)  # no record attribute is in use
    write_varlong(out, timestamp_delta)
    out += record.data[record.rest : record.end]


def encode_record(
    timestamp_delta: int,
    offset_delta: int,
    key: BytesLike | None,
    value: BytesLike | None,
    headers: Sequence[Header] = (),
) -> bytes:
    """The bytes of one record. Positional and inlined: a producer calls it for every record."""
    timestamp = (
        _VARINTS[timestamp_delta]
        if 0 <= timestamp_delta < _SHORT_VARINTS
        else _varlong(timestamp_delta)
    )
    offset = _VARINTS[offset_delta] if 0 <= offset_delta < _SHORT_VARINTS else _varint(offset_delta)
    if key is None:
        key = b""
        key_size = _NULL
    else:
        size = len(key)
        key_size = _VARINTS[size] if size < _SHORT_VARINTS else _varint(size)
    if value is None:
        value = b""
        value_size = _NULL
    else:
        size = len(value)
        value_size = _VARINTS[size] if size < _SHORT_VARINTS else _varint(size)
    encoded_headers = _encode_headers(headers) if headers else b"\0"
    size = (
        1  # no record attribute is in use
        + len(timestamp)
        + len(offset)
        + len(key_size)
        + len(key)
        + len(value_size)
        + len(value)
        + len(encoded_headers)
    )
    return b"".join(
        (
            _VARINTS[size] if size < _SHORT_VARINTS else _varint(size),
            b"\0",
            timestamp,
            offset,
            key_size,
            key,
            value_size,
            value,
            encoded_headers,
        )
    )


def record_size_upper_bound(
    key: BytesLike | None, value: BytesLike | None, headers: Sequence[Header] = ()
) -> int:
    """At least the size of the record's bytes, whatever the deltas are."""
    size = MAX_RECORD_OVERHEAD + _size_of_bytes(key) + _size_of_bytes(value)
    return size + (len(_encode_headers(headers)) if headers else 1)


def _encode_headers(headers: Sequence[Header]) -> bytes:
    parts = [_varint(len(headers))]
    for key, value in headers:
        encoded_key = key.encode("utf-8")
        parts += (_varint(len(encoded_key)), encoded_key)
        parts += (_NULL,) if value is None else (_varint(len(value)), value)
    return b"".join(parts)


def _varint(value: int) -> bytes:
    out = bytearray()
    write_varint(out, value)
    return bytes(out)


def _varlong(value: int) -> bytes:
    out = bytearray()
    write_varlong(out, value)
    return bytes(out)


# The varints that nearly every record is made of: deltas, and the sizes of small things.
_SHORT_VARINTS: Final = 4096
_VARINTS: Final = tuple(_varint(value) for value in range(_SHORT_VARINTS))
_NULL: Final = _varint(-1)


def _ensure_none_remaining(source: RecordInput, position: int) -> None:
    if len(source.refill(position, 1)) != 0:
        raise InvalidRecordError("batch holds more bytes than its declared records")


def _read_bytes(data: bytes, position: int) -> tuple[bytes | None, int]:
    size, position = read_varint(data, position)
    if size < 0:
        return None, position
    return data[position : position + size], position + size


def _read_headers(data: bytes, position: int, record_end: int) -> tuple[tuple[Header, ...], int]:
    count, position = _read_header_count(data, position, record_end)
    headers: list[Header] = []
    for _ in range(count):
        key, position = _read_bytes(data, position)
        if key is None:
            raise InvalidRecordError("record header has no key")
        value, position = _read_bytes(data, position)
        if position > record_end:
            raise InvalidRecordError("record headers do not fit the record")
        headers.append(Header(key.decode("utf-8", "replace"), value))
    return tuple(headers), position


def _skip_headers(data: bytes, position: int, record_end: int) -> int:
    count, position = _read_header_count(data, position, record_end)
    for _ in range(count):
        size, position = read_varint(data, position)
        if size < 0:
            raise InvalidRecordError("record header has no key")
        size, position = read_varint(data, position + size)
        if size > 0:
            position += size
        if position > record_end:
            raise InvalidRecordError("record headers do not fit the record")
    return position


def _read_header_count(data: bytes, position: int, record_end: int) -> tuple[int, int]:
    count, position = read_varint(data, position)
    if count < 0 or count > record_end - position:
        raise InvalidRecordError(f"record has an invalid number of headers: {count}")
    return count, position


def _size_of_bytes(value: BytesLike | None) -> int:
    return 1 if value is None else size_of_varint(len(value)) + len(value)
