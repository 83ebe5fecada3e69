"""Rates, and leaving the interpreter to others."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from kafkapy.utils.cpu_pacer import CpuPacer
from kafkapy.utils.throttler import Throttler
from tests.helpers.mock_time import MockTime


def just_before_a_sleep() -> tuple[MockTime, Throttler]:
    """Whatever is counted next is too much: one a second is allowed."""
    time = MockTime()
    throttler = Throttler(1, time, check_interval_ms=100)
    time.sleep(101)
    return time, throttler


def stop() -> None:
    raise InterruptedError


def test_work_above_the_rate_is_slowed_to_it() -> None:
    time = MockTime()
    throttler = Throttler(1000, time, check_interval_ms=100)
    start_ns = time.nanoseconds()

    for _ in range(10):
        time.sleep(101)
        throttler.maybe_throttle(500)

    assert (time.nanoseconds() - start_ns) / 1e9 == pytest.approx(5, rel=0.01)


def test_work_below_the_rate_is_not_slowed() -> None:
    time = MockTime()
    throttler = Throttler(1000, time, check_interval_ms=100)

    for _ in range(10):
        time.sleep(200)
        before = time.nanoseconds()
        throttler.maybe_throttle(100)
        assert time.nanoseconds() == before


def test_a_burst_within_the_check_interval_is_not_slowed() -> None:
    time = MockTime()
    throttler = Throttler(1, time, check_interval_ms=100)
    before = time.nanoseconds()

    throttler.maybe_throttle(1_000_000)

    assert time.nanoseconds() == before


def test_a_new_rate_counts_from_then_on() -> None:
    time = MockTime()
    throttler = Throttler(1000, time, check_interval_ms=100)
    throttler.update_desired_rate_per_sec(100)
    start_ns = time.nanoseconds()

    time.sleep(101)
    throttler.maybe_throttle(100)

    assert (time.nanoseconds() - start_ns) / 1e9 == pytest.approx(1)


def test_a_sleep_ends_when_the_work_must() -> None:
    time, throttler = just_before_a_sleep()
    before = time.nanoseconds()

    with pytest.raises(InterruptedError):
        throttler.maybe_throttle(1_000_000, check=stop)

    assert time.nanoseconds() - before == 100_000_000


def test_a_new_rate_ends_a_sleep() -> None:
    """Whoever has set too low a rate must not wait for the end of what it has brought about."""
    time, throttler = just_before_a_sleep()
    before = time.nanoseconds()

    with ThreadPoolExecutor(1) as other:

        def set_rate() -> None:
            other.submit(throttler.update_desired_rate_per_sec, 1_000_000).result(timeout=5)

        throttler.maybe_throttle(1_000_000, check=set_rate)

    assert time.nanoseconds() - before == 100_000_000


def test_all_of_a_rate_sleep_and_each_ends_when_its_work_must() -> None:
    time, throttler = just_before_a_sleep()
    before = time.nanoseconds()

    with ThreadPoolExecutor(1) as other:

        def stop_other() -> None:
            sleeper = other.submit(throttler.maybe_throttle, 1, check=stop)
            assert isinstance(sleeper.exception(timeout=5), InterruptedError)
            stop()

        with pytest.raises(InterruptedError):
            throttler.maybe_throttle(1_000_000, check=stop_other)

    assert time.nanoseconds() - before == 200_000_000


def test_a_pacer_rests_after_its_share_of_work() -> None:
    time = MockTime()
    pacer = CpuPacer(time, work_ms=2, rest_ms=5)

    def spent_by_steps(count: int) -> float:
        before = time.nanoseconds()
        for _ in range(count):
            pacer.step()
        return (time.nanoseconds() - before) / 1e6

    assert spent_by_steps(1000) == 0
    time.sleep(2)
    assert spent_by_steps(1000) == 5
    assert spent_by_steps(1000) == 0
