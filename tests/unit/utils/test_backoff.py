from random import Random

import pytest

from kafkapy.utils.backoff import ExponentialBackoff


@pytest.mark.parametrize(
    ("attempts", "expected_ms"), [(0, 100), (1, 200), (2, 400), (3, 800), (4, 1000), (5000, 1000)]
)
def test_wait_doubles_up_to_the_bound(attempts: int, expected_ms: int) -> None:
    backoff = ExponentialBackoff(100, 2, 1000, jitter=0)

    assert backoff.backoff_ms(attempts) == expected_ms


def test_jitter_spreads_the_wait_but_never_past_the_bound() -> None:
    backoff = ExponentialBackoff(100, 2, 1000, jitter=0.2, random=Random(1))

    first = {backoff.backoff_ms(0) for _ in range(200)}
    last = {backoff.backoff_ms(20) for _ in range(200)}

    assert len(first) > 10
    assert min(first) >= 80
    assert max(first) <= 120
    assert max(last) == 1000


def test_initial_wait_above_the_bound_is_cut() -> None:
    assert ExponentialBackoff(500, 2, 50, jitter=0).backoff_ms(0) == 50
