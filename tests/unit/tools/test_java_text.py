import struct

import pytest

from kafkapy.tools.java_text import double, single


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (1024, "1024.0"),
        (50.5, "50.5"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (123456789.0, "1.23456789E8"),
        (1e30, "1.0E30"),
        (0.001, "0.001"),
        (0.00012, "1.2E-4"),
        (-2.5e8, "-2.5E8"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_numbers_are_written_as_java_does(value: float, text: str) -> None:
    assert double(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (-0.0, "-0.0"),
        (0.1, "0.1"),
        (16777216.0, "1.6777216E7"),
        (1.00000012, "1.0000001"),
        (3.4028235e38, "3.4028235E38"),
        (float("inf"), "Infinity"),
    ],
)
def test_numbers_of_32_bits_have_no_digits_too_many(value: float, text: str) -> None:
    assert single(struct.unpack(">f", struct.pack(">f", value))[0]) == text
