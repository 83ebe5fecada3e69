from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy.pipeline.jobs.report.scale import (
    TIME_STEPS_MS,
    LinearScale,
    duration_ticks,
    nice_ticks,
    time_labels,
    time_step,
    time_ticks,
)

# 2026-11-16T09:00:00Z
NINE_MS = 1_794_819_600_000
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def test_a_scale_takes_its_ends_to_its_ends() -> None:
    down = LinearScale(0, 200, 100, 0)

    assert [down(value) for value in (0, 50, 200)] == [100, 75, 0]


@pytest.mark.parametrize(
    ("high", "expected"),
    [
        (0, [0, 1]),
        (-3, [0, 1]),
        (1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0.3, [0, 0.1, 0.2, 0.3]),
        (5, [0, 1, 2, 3, 4, 5]),
        (5.1, [0, 2, 4, 6]),
        (12, [0, 2.5, 5, 7.5, 10, 12.5]),
        (99, [0, 20, 40, 60, 80, 100]),
        (42_000, [0, 10_000, 20_000, 30_000, 40_000, 50_000]),
    ],
)
def test_ticks_are_round_and_reach_the_highest_value(high: float, expected: list[float]) -> None:
    assert nice_ticks(high) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("high", "expected"),
    [
        (0, [0, 1]),
        (1, [0, 1]),
        (2, [0, 1, 2]),
        (12, [0, 5, 10, 15]),
        (120, [0, 25, 50, 75, 100, 125]),
    ],
)
def test_things_that_have_no_halves_get_whole_ticks(high: float, expected: list[float]) -> None:
    assert nice_ticks(high, is_whole=True) == pytest.approx(expected)


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.floats(min_value=1e-6, max_value=1e15), st.booleans())
def test_there_are_a_few_even_ticks_whatever_the_value(high: float, is_whole: bool) -> None:
    ticks = nice_ticks(high, is_whole=is_whole)

    assert 2 <= len(ticks) <= 7
    assert ticks[0] == 0
    assert ticks[-1] >= high * (1 - 1e-6)
    assert ticks[-2] < high
    steps = [after - before for before, after in pairwise(ticks)]
    assert steps == pytest.approx([steps[0]] * len(steps))


@pytest.mark.parametrize(
    ("high_ms", "expected_ms"),
    [
        (0, [0, 1]),
        (800, [0, 200, 400, 600, 800]),
        (4200, [0, 1000, 2000, 3000, 4000, 5000]),
        (10 * 60_000, [0, 120_000, 240_000, 360_000, 480_000, 600_000]),
        (5 * HOUR_MS, [n * HOUR_MS for n in range(6)]),
    ],
)
def test_durations_have_ticks_that_are_round_in_their_unit(
    high_ms: float, expected_ms: list[float]
) -> None:
    assert duration_ticks(high_ms) == pytest.approx(expected_ms)


@pytest.mark.parametrize("span_ms", [1, 999, 60_000, 90_000, HOUR_MS, DAY_MS, 400 * DAY_MS])
def test_times_have_at_most_as_many_ticks_as_fit_all_on_the_clocks_marks(span_ms: int) -> None:
    start_ms = NINE_MS + 123
    ticks = time_ticks(start_ms, start_ms + span_ms)
    step = time_step(span_ms, 8)

    assert len(ticks) <= 9
    assert step in TIME_STEPS_MS
    assert all(tick % step == 0 for tick in ticks)
    assert all(start_ms <= tick <= start_ms + span_ms for tick in ticks)


@pytest.mark.parametrize(
    ("start_ms", "end_ms", "expected"),
    [
        (NINE_MS, NINE_MS + 2 * HOUR_MS, ["09:00", "09:15", "09:30", "09:45"]),
        (NINE_MS, NINE_MS + 40_000, ["09:00:00", "09:00:05", "09:00:10", "09:00:15"]),
        (NINE_MS, NINE_MS + 300, ["09:00:00.000", "09:00:00.050"]),
        (NINE_MS, NINE_MS + DAY_MS, ["09:00", "12:00", "15:00", "18:00", "21:00", "Nov 17"]),
        (NINE_MS, NINE_MS + 8 * DAY_MS, ["Nov 17", "Nov 18"]),
        (NINE_MS + 1, NINE_MS + 1, []),
    ],
)
def test_labels_are_as_fine_as_the_ticks(start_ms: int, end_ms: int, expected: list[str]) -> None:
    assert time_labels(time_ticks(start_ms, end_ms))[: len(expected)] == expected
