import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy.utils.varint import (
    read_unsigned_varint,
    read_varint,
    read_varlong,
    size_of_unsigned_varint,
    size_of_varint,
    size_of_varlong,
    write_unsigned_varint,
    write_varint,
    write_varlong,
)

int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (63, "7e"),
        (-64, "7f"),
        (64, "8001"),
        (-65, "8101"),
        (8191, "fe7f"),
        (-8192, "ff7f"),
        (8192, "808001"),
        (2**31 - 1, "feffffff0f"),
        (-(2**31), "ffffffff0f"),
    ],
)
def test_varint_has_the_known_encoding(value: int, encoded: str) -> None:
    out = bytearray()

    write_varint(out, value)

    assert out.hex() == encoded
    assert read_varint(out, 0) == (value, len(out))
    assert size_of_varint(value) == len(out)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (-1, "01"),
        (2**63 - 1, "feffffffffffffffff01"),
        (-(2**63), "ffffffffffffffffff01"),
        (1 << 40, "808080808040"),
    ],
)
def test_varlong_has_the_known_encoding(value: int, encoded: str) -> None:
    out = bytearray()

    write_varlong(out, value)

    assert out.hex() == encoded
    assert read_varlong(out, 0) == (value, len(out))
    assert size_of_varlong(value) == len(out)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(int32s, st.binary(max_size=3))
def test_varint_survives_the_round_trip(value: int, prefix: bytes) -> None:
    out = bytearray(prefix)

    write_varint(out, value)

    assert read_varint(out, len(prefix)) == (value, len(out))
    assert read_varint(memoryview(out), len(prefix)) == (value, len(out))
    assert len(out) - len(prefix) == size_of_varint(value)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(int64s)
def test_varlong_survives_the_round_trip(value: int) -> None:
    out = bytearray()

    write_varlong(out, value)

    assert read_varlong(out, 0) == (value, len(out))
    assert len(out) == size_of_varlong(value)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.integers(0, 2**32 - 1))
def test_unsigned_varint_survives_the_round_trip(value: int) -> None:
    out = bytearray()

    write_unsigned_varint(out, value)

    assert read_unsigned_varint(out, 0) == (value, len(out))
    assert len(out) == size_of_unsigned_varint(value)


@pytest.mark.parametrize("read", [read_varint, read_unsigned_varint, read_varlong])
@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff\xff\xff"])
def test_number_cut_short_raises_index_error(read: object, data: bytes) -> None:
    with pytest.raises(IndexError):
        read(data, 0)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("read", "groups"), [(read_varint, 6), (read_unsigned_varint, 6), (read_varlong, 11)]
)
def test_number_with_too_many_groups_raises_value_error(read: object, groups: int) -> None:
    with pytest.raises(ValueError, match="longer than"):
        read(b"\x80" * (groups - 1) + b"\x01", 0)  # type: ignore[operator]


def test_bits_beyond_the_width_are_dropped() -> None:
    assert read_unsigned_varint(b"\xff\xff\xff\xff\x7f", 0) == (2**32 - 1, 5)
    assert read_varlong(b"\xff" * 9 + b"\x7f", 0) == (-(2**63), 10)
