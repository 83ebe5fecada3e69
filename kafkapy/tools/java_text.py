"""Values in the words in which Kafka's tools print them."""

import math
import struct
from decimal import Decimal

from kafkapy.common.record.record import TimestampType

_TIMESTAMP_TYPES = {
    TimestampType.NO_TIMESTAMP_TYPE: "NoTimestampType",
    TimestampType.CREATE_TIME: "CreateTime",
    TimestampType.LOG_APPEND_TIME: "LogAppendTime",
}

_MAX_PLAIN_DOUBLE = 1e7
_MIN_PLAIN_DOUBLE = 1e-3
_FLOAT = struct.Struct(">f")
_FLOAT_DIGITS = 9  # so many tell any two of them apart


def timestamp_type(value: TimestampType) -> str:
    return _TIMESTAMP_TYPES[value]


def boolean(value: bool) -> str:
    return "true" if value else "false"


def is_true(text: str) -> bool:
    """Everything else is false."""
    return text.strip().lower() == "true"


def optional_long(value: int | None) -> str:
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


def double(value: float) -> str:
    """1024.0, 1.0E7, Infinity."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or _MIN_PLAIN_DOUBLE <= abs(value) < _MAX_PLAIN_DOUBLE:
        return repr(float(value))
    mantissa, _, exponent = f"{Decimal(repr(value)).normalize():E}".partition("E")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"


def single(value: float) -> str:
    """A number of 32 bits, with as many digits as tell it from the next: 0.1."""
    if not math.isfinite(value):
        return double(value)
    shortened = (float(f"{value:.{digits}g}") for digits in range(1, _FLOAT_DIGITS + 1))
    return double(next(short for short in shortened if _as_single(short) == value))


def _as_single(value: float) -> float | None:
    try:
        number: float = _FLOAT.unpack(_FLOAT.pack(value))[0]
    except OverflowError:
        return None
    return number
