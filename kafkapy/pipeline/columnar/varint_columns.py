"""Variable-length integers at many positions of one buffer at once.

The scalar readers are in `kafkapy.utils.varint`, and these agree with them, dropped bits included.
Positions may lie anywhere: the buffer ends with PADDING bytes of zero, and a position behind its
content reads a zero there. Whoever calls finds that out by comparing positions with ends.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

ByteColumn: TypeAlias = npt.NDArray[np.uint8]
IntColumn: TypeAlias = npt.NDArray[np.int64]

PADDING: Final = b"\0"

_MAX_VARINT_BYTES: Final = 5
_MAX_VARLONG_BYTES: Final = 10
_MASK_32: Final = np.uint64(0xFFFFFFFF)
_ONE: Final = np.uint64(1)


class VarintTooLongError(ValueError):
    """A number has more bytes than its type can need."""


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
    first = data.take(positions, mode="clip")
    after = positions + 1
    value = first.astype(np.uint64)
    # Only the numbers that go on are looked at again: nearly all have one or two bytes.
    rows = np.flatnonzero(first > 0x7F)
    if rows.size:
        value[rows] &= np.uint64(0x7F)
    for group in range(1, max_bytes):
        if not rows.size:
            break
        byte = data.take(after[rows], mode="clip")
        value[rows] |= (byte & np.uint8(0x7F)).astype(np.uint64) << np.uint64(7 * group)
        after[rows] += 1
        rows = rows[byte > 0x7F]
    if rows.size:
        raise VarintTooLongError(f"a number at byte {positions[rows[0]]} has no end")
    return value, after


def _unzigzag(raw: npt.NDArray[np.uint64]) -> IntColumn:
    return ((raw >> _ONE) ^ (np.uint64(0) - (raw & _ONE))).view(np.int64)
