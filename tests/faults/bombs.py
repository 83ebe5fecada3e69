"""Batches that are small on the wire and enormous once decompressed: one record of zeros each."""

import struct
import zlib

import cramjam

from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.utils.varint import write_varint
from tests.compat.wire import legacy_message
from tests.helpers.records import forged_body

_MEBIBYTE = 1 << 20
# No timestamp, offset or key; then the length of the value and the value.
_BEFORE_VALUE_LENGTH = b"\x00\x00\x00\x01"


def _record_head(content_bytes: int) -> bytes:
    """The first bytes of a record that fills `content_bytes` with zeros."""
    for value_bytes in range(content_bytes - 20, content_bytes):
        body = _BEFORE_VALUE_LENGTH + _varint(value_bytes)
        size = len(body) + value_bytes + 1  # no headers
        head = _varint(size) + body
        if len(head) + value_bytes + 1 == content_bytes:
            return head
    raise AssertionError("no record has that size")


def gzip_bomb(content_mebibytes: int) -> MemoryRecords:
    """About a thousandth of its content."""
    head = _record_head(content_mebibytes * _MEBIBYTE)
    return forged_body(_gzip(head, content_mebibytes), codec=1)


def legacy_gzip_bomb(content_mebibytes: int) -> MemoryRecords:
    """A wrapper of magic 1 around an inner message that claims to be as long."""
    head = struct.pack(">qiIbbqi", 0, content_mebibytes * _MEBIBYTE - 12, 0, 1, 0, 0, -1)
    return MemoryRecords(bytearray(legacy_message(1, _gzip(head, content_mebibytes), attributes=1)))


def _gzip(head: bytes, content_mebibytes: int) -> bytes:
    """`head`, then zeros."""
    zeros = bytes(_MEBIBYTE)
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    first = compressor.compress(head + zeros[len(head) :]) + compressor.flush(zlib.Z_FULL_FLUSH)
    # After a full flush the next block needs nothing of those before: one serves for all.
    again = compressor.compress(zeros) + compressor.flush(zlib.Z_FULL_FLUSH)
    header = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
    trailer = b"\x03\x00" + struct.pack("<II", 0, content_mebibytes * _MEBIBYTE & 0xFFFFFFFF)
    return header + first + again * (content_mebibytes - 1) + trailer


def snappy_bomb(content_mebibytes: int) -> MemoryRecords:
    """Snappy does not go past one to twenty-one."""
    content = bytearray(content_mebibytes * _MEBIBYTE)
    head = _record_head(len(content))
    content[: len(head)] = head
    return forged_body(bytes(cramjam.snappy.compress_raw(content)), codec=2)


def lz4_bomb(content_mebibytes: int) -> MemoryRecords:
    """About a 250th of its content, in blocks of 4 MiB."""
    block_bytes = 4 * _MEBIBYTE
    head = _record_head(content_mebibytes * _MEBIBYTE)
    first = cramjam.lz4.compress_block(head + bytes(block_bytes - len(head)), store_size=False)
    again = cramjam.lz4.compress_block(bytes(block_bytes), store_size=False)
    # Magic, then version 1 with independent blocks of up to 4 MiB, then the header's checksum.
    frame = struct.pack("<I", 0x184D2204) + b"\x60\x70\x73"
    blocks = [bytes(first)] + [bytes(again)] * (content_mebibytes // 4 - 1)
    frame += b"".join(struct.pack("<I", len(block)) + block for block in blocks)
    return forged_body(frame + struct.pack("<I", 0), codec=3)


def zstd_bomb(content_mebibytes: int) -> MemoryRecords:
    """Four bytes for each 128 KiB: blocks of one repeated byte."""
    block_bytes = 128 * 1024
    head = _record_head(content_mebibytes * _MEBIBYTE)
    raw = struct.pack("<I", len(head) << 3)[:3] + head
    # Magic, no single segment, no content size, a window of 128 KiB.
    frame = struct.pack("<I", 0xFD2FB528) + b"\x00\x38" + raw
    left = content_mebibytes * _MEBIBYTE - len(head)
    parts = [frame]
    while left > 0:
        size = min(left, block_bytes)
        left -= size
        parts.append(struct.pack("<I", size << 3 | 1 << 1 | (left == 0))[:3] + b"\x00")
    return forged_body(b"".join(parts), codec=4)


def _varint(value: int) -> bytes:
    out = bytearray()
    write_varint(out, value)
    return bytes(out)
