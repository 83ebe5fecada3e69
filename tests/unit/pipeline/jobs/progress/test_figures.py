import pytest

from kafkapy.pipeline.jobs.progress.figures import duration, grouped, short


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0, "0"),
        (0.25, "0.25"),
        (12.34, "12.3"),
        (999, "999"),
        (999.6, "1k"),
        (1234, "1.23k"),
        (999_499, "999k"),
        (999_600, "1M"),
        (12_000_000, "12M"),
        (3_210_000_000, "3.21G"),
        (-1500, "-1.5k"),
    ],
)
def test_short_numbers_have_three_digits_at_most(number: float, expected: str) -> None:
    assert short(number) == expected


def test_counts_are_exact() -> None:
    assert grouped(1_234_567) == "1,234,567"


@pytest.mark.parametrize(
    ("ms", "expected"),
    [
        (0, "0 s"),
        (340, "340 ms"),
        (999.6, "1 s"),
        (1500, "1.5 s"),
        (59_960, "1 min"),
        (125_000, "2 min 5 s"),
        (3_599_600, "1 h"),
        (12_000_000, "3 h 20 min"),
        (190_800_000, "2 d 5 h"),
        (172_800_000, "2 d"),
    ],
)
def test_durations_have_two_units_at_most(ms: float, expected: str) -> None:
    assert duration(ms) == expected
