import gzip
import os
import resource
import struct
import zlib

import aiokafka.codec
import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy.common.compression import Compression, CompressionType, target_compression
from kafkapy.common.errors import (
    CorruptRecordError,
    KafkaError,
    RecordTooLargeError,
    UnsupportedCompressionTypeError,
)
from kafkapy.common.record import kafka_lz4_block

GZIP, SNAPPY, LZ4, ZSTD = (
    CompressionType.GZIP,
    CompressionType.SNAPPY,
    CompressionType.LZ4,
    CompressionType.ZSTD,
)
CODECS = [GZIP, SNAPPY, LZ4, ZSTD]
MIB = 1024 * 1024


def text(size: int) -> bytes:
    """Compressible, but not trivially."""
    block = b"".join(struct.pack(">IQ", i % 97, i * i) for i in range(500))
    return (block * (size // len(block) + 1))[:size]


def lz4_header(flags: int, block_descriptor: int) -> bytes:
    descriptor = bytes((flags, block_descriptor))
    return (
        b"\x04\x22\x4d\x18"
        + descriptor
        + bytes((kafka_lz4_block._descriptor_checksum(descriptor),))
    )


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.sampled_from(list(CompressionType)), st.integers(0, 2), st.binary(max_size=2000))
def test_any_content_survives_every_codec(
    codec: CompressionType, magic: int, content: bytes
) -> None:
    assert codec.decompress(codec.compress(content, magic), magic) == content


@pytest.mark.parametrize("codec", list(CompressionType))
@pytest.mark.parametrize("size", [0, 1, 32 * 1024, 64 * 1024 + 1, 3 * MIB])
def test_content_of_many_blocks_survives(codec: CompressionType, size: int) -> None:
    content = text(size)

    compressed = codec.compress(content)

    assert codec.decompress(compressed) == content
    assert codec.decompress(memoryview(compressed)) == content
    assert b"".join(codec.decompress_pieces(compressed)) == content


@pytest.mark.parametrize("codec", CODECS)
def test_incompressible_content_survives(codec: CompressionType) -> None:
    content = os.urandom(200_000)

    assert codec.decompress(codec.compress(content)) == content


@pytest.mark.parametrize("size", [1, 1000, 300_000])
@pytest.mark.parametrize(
    ("codec", "encode", "decode"),
    [
        (GZIP, aiokafka.codec.gzip_encode, aiokafka.codec.gzip_decode),
        (SNAPPY, aiokafka.codec.snappy_encode, aiokafka.codec.snappy_decode),
        (LZ4, aiokafka.codec.lz4_encode, aiokafka.codec.lz4_decode),
        (ZSTD, aiokafka.codec.zstd_encode, aiokafka.codec.zstd_decode),
    ],
)
def test_aiokafka_and_ours_read_each_other(codec, encode, decode, size: int) -> None:  # type: ignore[no-untyped-def]
    content = text(size)

    assert codec.decompress(encode(content)) == content
    assert decode(codec.compress(content)) == content


@pytest.mark.parametrize(
    ("codec", "level"), [(GZIP, 1), (GZIP, 9), (LZ4, 1), (LZ4, 17), (ZSTD, -5), (ZSTD, 19)]
)
def test_levels_change_the_size_only(codec: CompressionType, level: int) -> None:
    content = text(100_000)

    compressed = Compression(codec, level).compress(content)

    assert codec.decompress(compressed) == content


@pytest.mark.parametrize(
    ("codec", "level"), [(GZIP, 0), (GZIP, 10), (LZ4, 0), (LZ4, 18), (ZSTD, 23), (SNAPPY, 3)]
)
def test_level_a_codec_does_not_have_is_refused(codec: CompressionType, level: int) -> None:
    with pytest.raises(ValueError, match="level"):
        Compression(codec, level)


def test_codecs_are_found_by_id_and_name() -> None:
    assert [CompressionType.for_id(codec) for codec in range(5)] == list(CompressionType)
    assert [CompressionType.for_name(codec.codec_name) for codec in CODECS] == CODECS
    with pytest.raises(UnsupportedCompressionTypeError):
        CompressionType.for_id(5)
    with pytest.raises(ValueError, match="brotli"):
        CompressionType.for_name("brotli")


def test_target_is_the_producers_codec_unless_one_is_configured() -> None:
    assert target_compression(None, LZ4) == Compression(LZ4)
    assert target_compression(Compression(ZSTD, 7), LZ4) == Compression(ZSTD, 7)


def test_snappy_is_written_in_blocks_of_the_xerial_stream() -> None:
    compressed = SNAPPY.compress(text(70_000))

    assert compressed[:16] == b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
    sizes = []
    position = 16
    while position < len(compressed):
        (size,) = struct.unpack_from(">i", compressed, position)
        block = compressed[position + 4 : position + 4 + size]
        sizes.append(cramjam.snappy.decompress_raw_len(block))
        position += 4 + size
    assert sizes == [32768, 32768, 70_000 - 2 * 32768]


def test_raw_snappy_is_read() -> None:
    content = text(100_000)

    assert SNAPPY.decompress(bytes(cramjam.snappy.compress_raw(content))) == content


def test_concatenated_xerial_streams_with_odd_versions_are_read() -> None:
    one, two = SNAPPY.compress(b"one"), bytearray(SNAPPY.compress(b"two"))
    two[8:16] = b"\x01\x00\x00\x00\x01\x00\x00\x00"

    assert SNAPPY.decompress(one + two) == b"onetwo"


def test_concatenated_gzip_members_are_read_and_trailing_bytes_ignored() -> None:
    data = gzip.compress(b"one") + gzip.compress(text(50_000)) + b"trailing"

    assert GZIP.decompress(data) == b"one" + text(50_000)


def test_lz4_of_magic_0_has_the_descriptor_checksum_of_old_clients() -> None:
    right, old = LZ4.compress(b"x", 1), LZ4.compress(b"x", 0)

    assert right[:7] == bytes.fromhex("04224d18604082")
    assert old[:6] == right[:6]
    assert old[6] != right[6]
    assert LZ4.decompress(old, 0) == b"x"
    assert LZ4.decompress(right, 0) == b"x"
    with pytest.raises(CorruptRecordError, match="checksum"):
        LZ4.decompress(old, 1)


def test_lz4_frame_with_content_size_and_checksums_is_read() -> None:
    content = text(200_000)
    compressor = cramjam.lz4.Compressor(level=3, content_checksum=True, block_linked=False)
    compressor.compress(content)

    assert LZ4.decompress(bytes(compressor.finish())) == content


def test_lz4_block_that_does_not_match_its_checksum_is_refused() -> None:
    frame = bytearray(aiokafka.codec.lz4_encode(os.urandom(1000)))
    frame[500] ^= 1

    with pytest.raises(CorruptRecordError):
        LZ4.decompress(frame)


def test_lz4_frame_with_dependent_blocks_is_refused() -> None:
    with pytest.raises(CorruptRecordError, match="dependent"):
        LZ4.decompress(bytes(cramjam.lz4.compress(text(200_000))))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x04\x22\x4d\x18\x60",
        lz4_header(0x20, 0x40),
        lz4_header(0x61, 0x40),
        lz4_header(0x60, 0x41),
        lz4_header(0x60, 0x30),
        lz4_header(0x60, 0x40)[:-1] + b"\x00" + bytes(4),
        lz4_header(0x60, 0x40),
        lz4_header(0x60, 0x40) + struct.pack("<I", 10) + b"abc",
        lz4_header(0x60, 0x40) + struct.pack("<I", 70_000) + bytes(70_000),
        lz4_header(0x60, 0x40) + struct.pack("<I", 3) + b"\xff\xff\xff" + bytes(4),
        lz4_header(0x60, 0x40) + struct.pack("<I", 0x80000003) + b"abc",
        lz4_header(0x64, 0x40) + struct.pack("<I", 0x80000003) + b"abc" + bytes(4 + 3),
    ],
)
def test_broken_lz4_frame_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptRecordError):
        LZ4.decompress(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x28\xb5\x2f",
        b"garbage garbage",
        b"\x28\xb5\x2f\xfd",
        b"\x28\xb5\x2f\xfd\x20\x05",
        b"\x28\xb5\x2f\xfd\x20\x05\x07\x00\x00",
        b"\x28\xb5\x2f\xfd\x20\x05\x29\x00\x00ab",
        b"\x50\x2a\x4d\x18\xff\xff\x00\x00ab",
    ],
)
def test_broken_zstd_frame_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptRecordError):
        ZSTD.decompress(data)


def test_zstd_frames_and_skippable_frames_may_follow_each_other() -> None:
    frame = ZSTD.compress(text(5000))
    skippable = b"\x53\x2a\x4d\x18" + struct.pack("<I", 3) + b"abc"

    assert ZSTD.decompress(frame + skippable + frame) == text(5000) * 2


@pytest.mark.parametrize("codec", CODECS)
def test_every_truncation_raises_corrupt_record(codec: CompressionType) -> None:
    content = os.urandom(60)
    compressed = codec.compress(content)

    for size in range(len(compressed)):
        try:
            found = codec.decompress(compressed[:size])
        except CorruptRecordError:
            continue
        # A xerial stream has no end mark: what was whole is read.
        assert codec is SNAPPY
        assert found == b""


@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.sampled_from(CODECS), st.integers(0, 10_000), st.integers(0, 255))
def test_any_damaged_byte_raises_kafkas_error_or_none(
    codec: CompressionType, position: int, value: int
) -> None:
    compressed = bytearray(codec.compress(text(3000)))
    compressed[position % len(compressed)] = value

    try:
        codec.decompress(compressed)
    except KafkaError as error:
        assert isinstance(error, CorruptRecordError | RecordTooLargeError)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.sampled_from(CODECS), st.binary(max_size=200))
def test_garbage_raises_kafkas_error_or_none(codec: CompressionType, garbage: bytes) -> None:
    try:
        codec.decompress(garbage)
    except KafkaError as error:
        assert isinstance(error, CorruptRecordError | RecordTooLargeError)


def bomb(codec: CompressionType) -> bytes:
    """Far more zeros than the limit allows, in little space."""
    if codec is GZIP:
        packer = zlib.compressobj(6, zlib.DEFLATED, 31)
        return b"".join(packer.compress(bytes(MIB)) for _ in range(128)) + packer.flush()
    if codec is LZ4:
        block = bytes(cramjam.lz4.compress_block(bytes(4 * MIB), store_size=False))
        return lz4_header(0x60, 0x70) + (struct.pack("<I", len(block)) + block) * 64 + bytes(4)
    # Run-length blocks of 128 KiB, with no size in the frame's header.
    run = (131072 << 3 | 1 << 1).to_bytes(3, "little") + b"\0"
    last = (131072 << 3 | 1 << 1 | 1).to_bytes(3, "little") + b"\0"
    return b"\x28\xb5\x2f\xfd\x00\x58" + run * 8191 + last


@pytest.mark.parametrize("codec", [GZIP, LZ4, ZSTD])
def test_decompression_bomb_is_refused_in_bounded_memory(codec: CompressionType) -> None:
    data = bomb(codec)
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    with pytest.raises(RecordTooLargeError):
        for _ in codec.decompress_pieces(data):
            pass

    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib
    assert grown_kib < 100 * 1024


def test_zstd_frame_that_declares_too_much_is_refused_at_once() -> None:
    data = bytearray(bomb(ZSTD))
    data[4:6] = b"\x80\x58" + struct.pack("<I", 2**30)

    with pytest.raises(RecordTooLargeError):
        next(ZSTD.decompress_pieces(data))


def test_snappy_block_that_claims_too_much_is_refused_before_allocating() -> None:
    with pytest.raises(CorruptRecordError, match="claims"):
        SNAPPY.decompress(b"\xff\xff\xff\xff\x0f" + bytes(1000))


@pytest.mark.parametrize("codec", CODECS)
def test_pieces_of_a_large_content_are_small(codec: CompressionType) -> None:
    pieces = [len(piece) for piece in codec.decompress_pieces(codec.compress(bytes(20 * MIB)))]

    assert sum(pieces) == 20 * MIB
    assert max(pieces) <= 4 * MIB
