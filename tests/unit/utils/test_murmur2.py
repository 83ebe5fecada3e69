import pytest

from kafkapy.utils.murmur2 import murmur2


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        # As Java's clients compute them, where the numbers are signed.
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
        (b"", 275646681),
    ],
)
def test_hashes_are_those_of_java(data: bytes, expected: int) -> None:
    assert murmur2(data) == expected & 0xFFFFFFFF
    assert murmur2(bytearray(data)) == murmur2(memoryview(data)) == expected & 0xFFFFFFFF
