"""Zstandard decompression with a known upper bound.

The library decompresses a whole input at once, so the size of the result has to be known before:
a frame declares it, or it follows from the frame's blocks (each holds at most 128 KiB; raw and
run-length blocks say exactly how much).

    magic 0xFD2FB528 LE | descriptor | [window] | [dictionary id] | [content size] | { block }…
    | [checksum 4]; block: 3 bytes LE (last 1 bit, type 2 bits, size 21 bits) | body
"""

import mmap
from collections.abc import Iterator

import cramjam

from kafkapy.common.errors import CorruptRecordError, RecordTooLargeError
from kafkapy.utils.varint import BytesLike

_FRAME_MAGIC = 0xFD2FB528
_SKIPPABLE_MAGIC = 0x184D2A50
_MAX_BLOCK_BYTES = 128 * 1024
_RAW, _RUN_LENGTH, _COMPRESSED = 0, 1, 2

# Up to here memory is taken at once; above, pages are taken only as they are written.
_SMALL_BYTES = 1024 * 1024


def decompress(data: BytesLike, limit: int) -> Iterator[bytes]:
    """The content in pieces of at most 1 MiB; RecordTooLargeError when there is more than limit."""
    bound = _content_bound(data, limit)
    if bound <= _SMALL_BYTES:
        try:
            yield bytes(cramjam.zstd.decompress(data))
        except cramjam.DecompressionError as error:
            raise CorruptRecordError(f"zstd data cannot be decompressed: {error}") from error
        return
    # One byte more than allowed tells "too large" from "exactly the limit".
    capacity = min(bound, limit + 1)
    with mmap.mmap(-1, capacity) as pages, memoryview(pages) as output:
        try:
            size = cramjam.zstd.decompress_into(data, output)
        except cramjam.DecompressionError as error:
            # The library does not say in a typed way that the output was full.
            if capacity > limit and "write whole buffer" in str(error):
                raise _too_large(limit) from error
            raise CorruptRecordError(f"zstd data cannot be decompressed: {error}") from error
        if size > limit:
            raise _too_large(limit)
        for start in range(0, size, _SMALL_BYTES):
            yield bytes(output[start : min(start + _SMALL_BYTES, size)])


def _too_large(limit: int) -> RecordTooLargeError:
    return RecordTooLargeError(f"zstd data decompresses to more than {limit} bytes")


def _content_bound(data: BytesLike, limit: int) -> int:
    """The most that all frames of data can hold; refuses frames that declare more than limit."""
    view = memoryview(data)
    if not view:
        raise CorruptRecordError("zstd data is empty")
    total = 0
    position = 0
    while position < len(view):
        frame_bound, position = _frame_bound(view, position, limit)
        total += frame_bound
    return total


def _frame_bound(view: memoryview, position: int, limit: int) -> tuple[int, int]:
    """The frame's bound and the position after the frame."""
    magic = _little_endian(view, position, 4)
    if magic & 0xFFFFFFF0 == _SKIPPABLE_MAGIC:
        end = position + 8 + _little_endian(view, position + 4, 4)
        if end > len(view):
            raise CorruptRecordError("zstd data ends inside a skippable frame")
        return 0, end
    if magic != _FRAME_MAGIC:
        raise CorruptRecordError("zstd frame does not start with its magic number")
    descriptor = _little_endian(view, position + 4, 1)
    position += 5
    single_segment = bool(descriptor & 0x20)
    has_checksum = bool(descriptor & 0x04)
    if not single_segment:
        position += 1
    position += (0, 1, 2, 4)[descriptor & 0x03]
    size_bytes = (1 if single_segment else 0, 2, 4, 8)[descriptor >> 6]
    declared = -1
    if size_bytes:
        declared = _little_endian(view, position, size_bytes) + (256 if size_bytes == 2 else 0)
        position += size_bytes
    bound, position = _blocks_bound(view, position)
    if has_checksum:
        position += 4
    if position > len(view):
        raise CorruptRecordError("zstd data ends inside a frame")
    if min(bound, declared) > limit:
        raise _too_large(limit)
    # A size larger than the blocks can hold is a lie and must not be allocated.
    return (bound if declared < 0 else min(bound, declared)), position


def _blocks_bound(view: memoryview, position: int) -> tuple[int, int]:
    bound = 0
    last = False
    while not last:
        header = _little_endian(view, position, 3)
        position += 3
        last = bool(header & 1)
        kind = (header >> 1) & 3
        size = header >> 3
        if kind == _RAW:
            bound += size
            position += size
        elif kind == _RUN_LENGTH:
            bound += size
            position += 1
        elif kind == _COMPRESSED:
            bound += _MAX_BLOCK_BYTES
            position += size
        else:
            raise CorruptRecordError("zstd block has a reserved type")
    return bound, position


def _little_endian(view: memoryview, position: int, size: int) -> int:
    field = view[position : position + size]
    if len(field) < size:
        raise CorruptRecordError("zstd data ends inside a frame")
    return int.from_bytes(field, "little")
