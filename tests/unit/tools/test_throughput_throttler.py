import pytest

from kafkapy.tools.throughput_throttler import ThroughputThrottler
from tests.helpers.mock_time import MockTime


def test_a_sender_ahead_of_its_target_waits(time: MockTime) -> None:
    throttler = ThroughputThrottler(100, time)
    begun = time.hi_res_clock_ms()

    for sent in range(1, 51):
        throttler.throttle(sent)

    assert time.hi_res_clock_ms() - begun == 500


@pytest.mark.parametrize("target", [-1, 0])
def test_without_a_target_nobody_waits(time: MockTime, target: int) -> None:
    throttler = ThroughputThrottler(target, time)
    begun = time.hi_res_clock_ms()

    throttler.throttle(1_000_000)

    assert time.hi_res_clock_ms() == begun


def test_a_sender_that_is_late_does_not_wait(time: MockTime) -> None:
    throttler = ThroughputThrottler(100, time)
    time.sleep(1000)
    begun = time.hi_res_clock_ms()

    throttler.throttle(50)

    assert time.hi_res_clock_ms() == begun
