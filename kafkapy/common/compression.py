"""The codecs of record batches.

Decompression is incremental and bounded. It yields pieces of at most a few MiB, so that a reader
holds one piece and one record, and it stops with RecordTooLargeError once the content passes
max(64 MiB, 16 x the compressed size): more than any sensible batch, far less than a bomb.
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

import cramjam

from kafkapy.common.errors import (
    CorruptRecordError,
    RecordTooLargeError,
    UnsupportedCompressionTypeError,
)
from kafkapy.common.record import kafka_lz4_block, zstd_frame
from kafkapy.utils.varint import BytesLike

MIN_DECOMPRESSED_LIMIT = 64 * 1024 * 1024
DECOMPRESSED_LIMIT_RATIO = 16

_GZIP_WINDOW_BITS = 31  # a gzip header around a 32 KiB window
_GZIP_PIECE_BYTES = 256 * 1024
_GZIP_INPUT_BYTES = 16 * 1024

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024
_INT32 = struct.Struct(">i")
# A snappy copy element turns three bytes into at most 64.
_SNAPPY_MAX_RATIO = 22


class CompressionType(IntEnum):
    """A codec by its id in batch attributes.

    Ports: org.apache.kafka.common.record.CompressionType
    """

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @staticmethod
    def for_id(codec_id: int) -> "CompressionType":
        """Raises UnsupportedCompressionTypeError for an id no codec has."""
        if 0 <= codec_id < len(_BY_ID):
            return _BY_ID[codec_id]
        raise UnsupportedCompressionTypeError(f"unknown compression type id {codec_id}")

    @staticmethod
    def for_name(name: str) -> "CompressionType":
        """The codec of a configuration value; raises ValueError for an unknown name."""
        for codec in CompressionType:
            if codec.codec_name == name:
                return codec
        raise ValueError(f"unknown compression type {name!r}")

    @property
    def codec_name(self) -> str:
        """The name used in configurations."""
        return self.name.lower()

    @property
    def default_level(self) -> int:
        return _LEVELS[self].default

    def compress(self, data: BytesLike, magic: int = 2, level: int | None = None) -> bytes:
        """Compresses a records section for a batch of the given magic."""
        if level is None:
            level = self.default_level
        if self is CompressionType.GZIP:
            compressor = zlib.compressobj(level, zlib.DEFLATED, _GZIP_WINDOW_BITS)
            return compressor.compress(data) + compressor.flush()
        if self is CompressionType.SNAPPY:
            return _snappy_compress(data)
        if self is CompressionType.LZ4:
            return kafka_lz4_block.compress(data, level, broken_descriptor_checksum=magic == 0)
        if self is CompressionType.ZSTD:
            return bytes(cramjam.zstd.compress(data, level))
        return bytes(data)

    def decompress(self, data: BytesLike, magic: int = 2) -> bytearray:
        """All of the content at once, still bounded: for callers that need it contiguous."""
        content = bytearray()
        for piece in self.decompress_pieces(data, magic):
            content += piece
        return content

    def decompress_pieces(self, data: BytesLike, magic: int = 2) -> Iterator[bytes]:
        """The content piece by piece.

        Raises CorruptRecordError for data the codec did not write, RecordTooLargeError past the
        limit.
        """
        limit = max(MIN_DECOMPRESSED_LIMIT, DECOMPRESSED_LIMIT_RATIO * len(data))
        if self is CompressionType.ZSTD:
            return zstd_frame.decompress(data, limit)
        if self is CompressionType.GZIP:
            return _limited(_gzip_pieces(data), limit)
        if self is CompressionType.SNAPPY:
            return _limited(_snappy_pieces(memoryview(data), limit), limit)
        if self is CompressionType.LZ4:
            pieces = kafka_lz4_block.decompress(data, ignore_descriptor_checksum=magic == 0)
            return _limited(pieces, limit)
        return iter((bytes(data),))


@dataclass(frozen=True, slots=True)
class _Levels:
    low: int
    high: int
    default: int


_BY_ID = tuple(CompressionType)
_LEVELS = {
    CompressionType.NONE: _Levels(0, 0, 0),
    CompressionType.GZIP: _Levels(1, 9, -1),
    CompressionType.SNAPPY: _Levels(0, 0, 0),
    CompressionType.LZ4: _Levels(1, 17, kafka_lz4_block.DEFAULT_LEVEL),
    CompressionType.ZSTD: _Levels(-131072, 22, 3),
}


@dataclass(frozen=True, slots=True)
class Compression:
    """A codec with the level to write it at.

    Ports: org.apache.kafka.common.compress.Compression
    """

    type: CompressionType
    level: int | None = None

    def __post_init__(self) -> None:
        levels = _LEVELS[self.type]
        if self.level is None or self.level == levels.default:
            return
        if not levels.low <= self.level <= levels.high:
            raise ValueError(f"{self.type.codec_name} has no compression level {self.level}")

    def compress(self, data: BytesLike, magic: int = 2) -> bytes:
        return self.type.compress(data, magic, self.level)


NO_COMPRESSION = Compression(CompressionType.NONE)


def target_compression(configured: Compression | None, source: CompressionType) -> Compression:
    """The codec a topic stores: its own, or (configured is None, "producer") the producer's."""
    return Compression(source) if configured is None else configured


def _limited(pieces: Iterator[bytes], limit: int) -> Iterator[bytes]:
    total = 0
    for piece in pieces:
        total += len(piece)
        if total > limit:
            raise RecordTooLargeError(f"compressed records decompress to more than {limit} bytes")
        yield piece


def _gzip_pieces(data: BytesLike) -> Iterator[bytes]:
    view = memoryview(data)
    position = 0
    while True:
        decompressor = zlib.decompressobj(_GZIP_WINDOW_BITS)
        pending: BytesLike = b""
        while not decompressor.eof:
            if not pending:
                # Small slices: what is not consumed at once is copied at every step.
                pending = view[position : position + _GZIP_INPUT_BYTES]
                position += len(pending)
            try:
                piece = decompressor.decompress(pending, _GZIP_PIECE_BYTES)
            except zlib.error as error:
                raise CorruptRecordError(f"gzip data cannot be decompressed: {error}") from error
            if piece:
                yield piece
            elif not pending and not decompressor.eof:
                raise CorruptRecordError("gzip data ends too early")
            pending = decompressor.unconsumed_tail
        position -= len(decompressor.unused_data)
        # Members may follow each other; anything else after one is ignored, as in Java.
        if bytes(view[position : position + 2]) != b"\x1f\x8b":
            return


def _snappy_compress(data: BytesLike) -> bytes:
    view = memoryview(data)
    parts: list[bytes] = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        parts.append(_INT32.pack(len(block)))
        parts.append(block)
    return b"".join(parts)


def _snappy_pieces(view: memoryview, limit: int) -> Iterator[bytes]:
    if view[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        # librdkafka and others write a single raw block.
        yield _snappy_block(view, limit)
        return
    # The two version numbers are not looked at: some clients write them in the wrong byte order.
    position = len(_XERIAL_HEADER)
    if len(view) < position:
        raise CorruptRecordError("snappy stream ends inside its header")
    while position < len(view):
        if view[position : position + len(_XERIAL_MAGIC)] == _XERIAL_MAGIC:
            position += len(_XERIAL_HEADER)  # streams may be concatenated
            continue
        if len(view) - position < 4:
            raise CorruptRecordError("snappy stream ends inside a block size")
        (size,) = _INT32.unpack_from(view, position)
        position += 4
        if size < 0 or size > len(view) - position:
            raise CorruptRecordError(f"snappy block size {size} does not fit the stream")
        yield _snappy_block(view[position : position + size], limit)
        position += size


def _snappy_block(block: memoryview, limit: int) -> bytes:
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        # Refused before the library allocates what the block merely claims.
        if size > _SNAPPY_MAX_RATIO * len(block):
            raise CorruptRecordError(f"snappy block claims {size} bytes out of {len(block)}")
        if size > limit:
            raise RecordTooLargeError(f"compressed records decompress to more than {limit} bytes")
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise CorruptRecordError(f"snappy block cannot be decompressed: {error}") from error
