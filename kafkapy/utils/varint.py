"""Variable-length integers: base-128 groups, low group first, zig-zag for signed values.

Readers take a buffer and a position and return the value with the position after it. A buffer
that ends inside the number raises IndexError; a number with too many groups raises ValueError. Bits
beyond the type's width in the last allowed group are dropped, as Java's shifts drop them.
"""

from typing import Final, TypeAlias

BytesLike: TypeAlias = bytes | bytearray | memoryview

_MASK_32: Final = 0xFFFFFFFF
_MASK_64: Final = 0xFFFFFFFFFFFFFFFF


def read_unsigned_varint(data: BytesLike, position: int) -> tuple[int, int]:
    """A 32-bit unsigned number of at most five groups."""
    byte = data[position]
    position += 1
    if byte < 0x80:
        return byte, position
    value = byte & 0x7F
    shift = 7
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _MASK_32, position
        shift += 7
        if shift > 28:
            raise ValueError("varint is longer than five bytes")


def read_varint(data: BytesLike, position: int) -> tuple[int, int]:
    """A 32-bit signed number."""
    value, position = read_unsigned_varint(data, position)
    return (value >> 1) ^ -(value & 1), position


def read_varlong(data: BytesLike, position: int) -> tuple[int, int]:
    """A 64-bit signed number of at most ten groups."""
    value = 0
    shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= _MASK_64
            return (value >> 1) ^ -(value & 1), position
        shift += 7
        if shift > 63:
            raise ValueError("varlong is longer than ten bytes")


def write_unsigned_varint(out: bytearray, value: int) -> None:
    """Appends a 32-bit unsigned number."""
    value &= _MASK_32
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)


def write_varint(out: bytearray, value: int) -> None:
    """Appends a 32-bit signed number."""
    write_unsigned_varint(out, (value << 1) ^ (value >> 31))


def write_varlong(out: bytearray, value: int) -> None:
    """Appends a 64-bit signed number."""
    raw = ((value << 1) ^ (value >> 63)) & _MASK_64
    while raw > 0x7F:
        out.append((raw & 0x7F) | 0x80)
        raw >>= 7
    out.append(raw)


def size_of_unsigned_varint(value: int) -> int:
    """How many bytes write_unsigned_varint appends."""
    return max(1, ((value & _MASK_32).bit_length() + 6) // 7)


def size_of_varint(value: int) -> int:
    """How many bytes write_varint appends."""
    return size_of_unsigned_varint((value << 1) ^ (value >> 31))


def size_of_varlong(value: int) -> int:
    """How many bytes write_varlong appends."""
    raw = ((value << 1) ^ (value >> 63)) & _MASK_64
    return max(1, (raw.bit_length() + 6) // 7)
