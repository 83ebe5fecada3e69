import pytest

from kafkapy.common.errors import KafkaError
from kafkapy.tools.offset_reset import parse_datetime_ms, parse_duration_ms

_DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("text", "length_ms"),
    [
        ("P1D", _DAY_MS),
        ("P2DT3H4M5S", 2 * _DAY_MS + 11_045_000),
        ("PT0.5S", 500),
        ("PT-6H", -21_600_000),
        ("-PT6H", -21_600_000),
        ("pt15m", 900_000),
    ],
)
def test_durations_are_those_of_iso_8601(text: str, length_ms: int) -> None:
    assert parse_duration_ms(text) == length_ms


@pytest.mark.parametrize("text", ["", "P", "PT", "P1DT", "1D", "P1H", "P1Y", "PT1.5H", "PT1S2M"])
def test_what_is_no_duration_is_named(text: str) -> None:
    with pytest.raises(KafkaError, match=f"{text} is no duration"):
        parse_duration_ms(text)


@pytest.mark.parametrize(
    ("text", "timestamp_ms"),
    [
        ("1970-01-01T00:00:01.500", 1500),
        ("1970-01-01T00:00:01.500Z", 1500),
        ("1970-01-01T01:00:00.000+01:00", 0),
        ("1970-01-01T00:00:02", 2000),
    ],
)
def test_times_are_utc_unless_they_say_otherwise(text: str, timestamp_ms: int) -> None:
    assert parse_datetime_ms(text) == timestamp_ms


@pytest.mark.parametrize("text", ["", "2024-05-01", "T", "2024-05-01T", "2024-13-01T00:00:00"])
def test_what_is_no_time_is_named(text: str) -> None:
    with pytest.raises(KafkaError, match=f"{text} is no time"):
        parse_datetime_ms(text)
