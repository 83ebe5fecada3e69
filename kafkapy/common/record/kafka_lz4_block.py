"""The LZ4 frame as Kafka reads and writes it: independent blocks, one in memory at a time.

    magic 0x184D2204 LE | FLG | BD | [content size 8] | HC | { block }… | 0 | [xxh32 of content]
    block: size 4 LE (top bit: stored as is) | bytes | [xxh32]

HC is the second byte of the xxHash32 of the descriptor (FLG up to HC). Clients of magic 0 hashed
the frame's magic number along with it; what is written for magic 0 repeats that, and the byte is
not looked at when magic 0 is read.
"""

import struct
from collections.abc import Iterator

import cramjam

from kafkapy.common.errors import CorruptRecordError
from kafkapy.utils.varint import BytesLike

_FRAME_MAGIC = b"\x04\x22\x4d\x18"
_INT32 = struct.Struct("<I")
_END_MARK = b"\0\0\0\0"
_UNCOMPRESSED_BIT = 0x80000000

# FLG: version 1, independent blocks. BD: blocks of 64 KiB.
_WRITTEN_DESCRIPTOR = b"\x60\x40"
_WRITTEN_BLOCK_BYTES = 64 * 1024

_FLG_VERSION = 0xC0
_FLG_INDEPENDENT = 0x20
_FLG_BLOCK_CHECKSUM = 0x10
_FLG_CONTENT_SIZE = 0x08
_FLG_CONTENT_CHECKSUM = 0x04
_FLG_RESERVED = 0x03
_BD_RESERVED = 0x8F

DEFAULT_LEVEL = 9


def compress(data: BytesLike, level: int, *, broken_descriptor_checksum: bool) -> bytes:
    """One frame. The default level is the fast compressor; any other is high compression."""
    hashed = _WRITTEN_DESCRIPTOR
    if broken_descriptor_checksum:
        hashed = _FRAME_MAGIC + hashed
    parts: list[bytes] = [_FRAME_MAGIC, _WRITTEN_DESCRIPTOR, bytes((_descriptor_checksum(hashed),))]
    view = memoryview(data)
    for start in range(0, len(view), _WRITTEN_BLOCK_BYTES):
        block = bytes(view[start : start + _WRITTEN_BLOCK_BYTES])
        if level == DEFAULT_LEVEL:
            packed = bytes(cramjam.lz4.compress_block(block, mode="default", store_size=False))
        else:
            packed = bytes(
                cramjam.lz4.compress_block(
                    block, mode="high_compression", compression=level, store_size=False
                )
            )
        if len(packed) >= len(block):
            parts.append(_INT32.pack(len(block) | _UNCOMPRESSED_BIT))
            parts.append(block)
        else:
            parts.append(_INT32.pack(len(packed)))
            parts.append(packed)
    parts.append(_END_MARK)
    return b"".join(parts)


def decompress(data: BytesLike, *, ignore_descriptor_checksum: bool) -> Iterator[bytes]:
    """The frame's blocks. Whatever follows the frame is ignored."""
    view = memoryview(data)
    if len(view) < 7 or view[:4] != _FRAME_MAGIC:
        raise CorruptRecordError("lz4 frame does not start with its magic number")
    flags, block_descriptor = view[4], view[5]
    if flags & _FLG_VERSION != 0x40 or flags & _FLG_RESERVED or block_descriptor & _BD_RESERVED:
        raise CorruptRecordError("lz4 frame descriptor has an unknown version or reserved bits")
    if not flags & _FLG_INDEPENDENT:
        raise CorruptRecordError("lz4 frame with dependent blocks is not supported")
    max_block_bytes = 1 << (2 * (block_descriptor >> 4) + 8)
    if max_block_bytes < 64 * 1024:
        raise CorruptRecordError("lz4 frame has an invalid block size")
    position = 14 if flags & _FLG_CONTENT_SIZE else 6
    if len(view) <= position:
        raise CorruptRecordError("lz4 frame ends inside its descriptor")
    if not ignore_descriptor_checksum and view[position] != _descriptor_checksum(view[4:position]):
        raise CorruptRecordError("lz4 frame descriptor does not match its checksum")
    return _blocks(view, position + 1, flags, block_descriptor, max_block_bytes)


def _blocks(
    view: memoryview, position: int, flags: int, block_descriptor: int, max_block_bytes: int
) -> Iterator[bytes]:
    # Each block is handed to the library as a frame of its own: it then checks the block's checksum
    # and size, and never allocates more than one block.
    descriptor = bytes(
        (flags & (_FLG_VERSION | _FLG_INDEPENDENT | _FLG_BLOCK_CHECKSUM), block_descriptor)
    )
    header = _FRAME_MAGIC + descriptor + bytes((_descriptor_checksum(descriptor),))
    trailer_bytes = 4 if flags & _FLG_BLOCK_CHECKSUM else 0
    total = len(view)
    while True:
        if total - position < 4:
            raise CorruptRecordError("lz4 frame ends before its end mark")
        (size_field,) = _INT32.unpack_from(view, position)
        if size_field == 0:
            # Kafka does not verify the checksum of the content, but its consumers read it.
            if flags & _FLG_CONTENT_CHECKSUM and total - position < 8:
                raise CorruptRecordError("lz4 frame ends before the checksum of its content")
            return
        size = size_field & ~_UNCOMPRESSED_BIT
        if size > max_block_bytes:
            raise CorruptRecordError(f"lz4 block of {size} bytes exceeds {max_block_bytes}")
        end = position + 4 + size + trailer_bytes
        if end > total:
            raise CorruptRecordError("lz4 frame ends inside a block")
        if size_field & _UNCOMPRESSED_BIT and not trailer_bytes:
            yield bytes(view[position + 4 : end])
        else:
            frame = b"".join((header, view[position:end], _END_MARK))
            try:
                yield bytes(cramjam.lz4.decompress(frame))
            except cramjam.DecompressionError as error:
                raise CorruptRecordError(f"lz4 block cannot be decompressed: {error}") from error
        position = end


def _descriptor_checksum(descriptor: BytesLike) -> int:
    return (_xxh32_short(descriptor) >> 8) & 0xFF


def _xxh32_short(data: BytesLike) -> int:
    """xxHash32 with seed 0 of fewer than 16 bytes, which is all a frame descriptor needs."""
    mask = 0xFFFFFFFF
    accumulator = 374761393 + len(data)
    position = 0
    while position + 4 <= len(data):
        (lane,) = _INT32.unpack_from(data, position)
        accumulator = (accumulator + lane * 3266489917) & mask
        accumulator = ((accumulator << 17) | (accumulator >> 15)) & mask
        accumulator = accumulator * 668265263 & mask
        position += 4
    for byte in data[position:]:
        accumulator = (accumulator + byte * 374761393) & mask
        accumulator = ((accumulator << 11) | (accumulator >> 21)) & mask
        accumulator = accumulator * 2654435761 & mask
    accumulator ^= accumulator >> 15
    accumulator = accumulator * 2246822519 & mask
    accumulator ^= accumulator >> 13
    accumulator = accumulator * 3266489917 & mask
    return accumulator ^ (accumulator >> 16)
