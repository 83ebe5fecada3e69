from kafkapy.common.metrics.rate import Rate
from tests.helpers.mock_time import MockTime


class Counted:
    total = 0


def test_rate_is_the_growth_since_the_beginning(time: MockTime) -> None:
    counted = Counted()
    rate = Rate(time, lambda: counted.total)

    counted.total = 30
    time.sleep(10_000)

    assert rate.per_second() == 3


def test_without_time_there_is_no_rate(time: MockTime) -> None:
    rate = Rate(time, lambda: 5)

    assert rate.per_nanosecond() is None
    assert rate.per_second() == 0


def test_growth_of_more_than_a_minute_ago_does_not_count(time: MockTime) -> None:
    counted = Counted()
    rate = Rate(time, lambda: counted.total)
    counted.total = 1000
    time.sleep(5_000)
    rate.per_second()

    for _ in range(13):
        time.sleep(5_000)
        latest = rate.per_second()

    assert latest == 0
