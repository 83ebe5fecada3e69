"""The hash by which Kafka's clients choose the partition of a key."""

import struct

_SEED = 0x9747B28C
_M = 0x5BD1E995
_R = 24
_MASK = 0xFFFFFFFF


def murmur2(data: bytes | bytearray | memoryview) -> int:
    """The 32-bit murmur2 of the data, unsigned.

    Ports: org.apache.kafka.common.utils.Utils
    """
    length = len(data)
    words = length >> 2
    h = _SEED ^ length
    for k in struct.unpack_from(f"<{words}I", data):
        k = (k * _M) & _MASK
        k = ((k ^ (k >> _R)) * _M) & _MASK
        h = ((h * _M) & _MASK) ^ k
    position = words << 2
    rest = length - position
    if rest:
        if rest == 3:
            h ^= data[position + 2] << 16
        if rest >= 2:
            h ^= data[position + 1] << 8
        h = ((h ^ data[position]) * _M) & _MASK
    h = ((h ^ (h >> 13)) * _M) & _MASK
    return h ^ (h >> 15)
