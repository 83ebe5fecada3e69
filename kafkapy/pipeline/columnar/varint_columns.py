"""Variable-length integers at many positions of one buffer at once.

The scalar readers are in `kafkapy.utils.varint`, and these agree with them, dropped bits included.
Positions may lie behind the buffer, whose last byte is read there then. Let it be a zero, and
compare positions with ends: whoever calls finds out by that. A number with more bytes than its type
can need raises ValueError.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

ByteColumn: TypeAlias = npt.NDArray[np.uint8]
IntColumn: TypeAlias = npt.NDArray[np.int64]

PADDING: Final = b"\0"  # around a buffer

_MAX_VARINT_BYTES: Final = 5
_MAX_VARLONG_BYTES: Final = 10
_MASK_32: Final = np.uint64(0xFFFFFFFF)
_ONE: Final = np.uint64(1)
_LOW_BITS: Final = np.uint8(0x7F)


def read_varints(data: ByteColumn, positions: IntColumn) -> tuple[IntColumn, IntColumn]:
    """32-bit signed numbers, and the positions after them."""
    raw, after = _read_groups(data, positions, _MAX_VARINT_BYTES)
    return _unzigzag(raw & _MASK_32), after


def read_varlongs(data: ByteColumn, positions: IntColumn) -> tuple[IntColumn, IntColumn]:
    """64-bit signed numbers, and the positions after them."""
    raw, after = _read_groups(data, positions, _MAX_VARLONG_BYTES)
    return _unzigzag(raw), after


def _read_groups(
    data: ByteColumn, positions: IntColumn, max_bytes: int
) -> tuple[npt.NDArray[np.uint64], IntColumn]:
    byte = data.take(positions, mode="clip")
    after = positions + 1
    value = byte.astype(np.uint64)
    goes_on = byte > _LOW_BITS
    if not goes_on.any():
        return value, after
    # Numbers of one and of two bytes, which nearly all are, in steps over whole columns.
    second = data.take(after, mode="clip")
    value &= np.uint64(_LOW_BITS)
    value |= ((second & _LOW_BITS) * goes_on).astype(np.uint64) << np.uint64(7)
    after += goes_on
    rows = np.flatnonzero(goes_on & (second > _LOW_BITS))
    for group in range(2, max_bytes):
        if not rows.size:
            break
        byte = data.take(after[rows], mode="clip")
        value[rows] |= (byte & _LOW_BITS).astype(np.uint64) << np.uint64(7 * group)
        after[rows] += 1
        rows = rows[byte > _LOW_BITS]
    if rows.size:
        raise ValueError(f"a number at byte {positions[rows[0]]} is too long")
    return value, after


def _unzigzag(raw: npt.NDArray[np.uint64]) -> IntColumn:
    return ((raw >> _ONE) ^ (np.uint64(0) - (raw & _ONE))).view(np.int64)
