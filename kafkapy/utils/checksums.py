"""The two checksums of the record formats: CRC-32C for magic 2, CRC-32 for magic 0 and 1."""

import zlib

from crc32c import crc32c as _crc32c

from kafkapy.utils.varint import BytesLike

__all__ = ["crc32", "crc32c"]


def crc32c(data: BytesLike, value: int = 0) -> int:
    """The CRC-32C (Castagnoli) of data, continuing from value; unsigned."""
    result: int = _crc32c(data, value)
    return result


def crc32(data: BytesLike) -> int:
    """The CRC-32 (zlib's) of data; unsigned."""
    return zlib.crc32(data)
