import pytest

from kafkapy.network.idle_ratio import IdleRatio
from tests.helpers.mock_time import MockTime

MS = 1_000_000


class Waited:
    total_ns = 0


@pytest.fixture
def waited() -> Waited:
    return Waited()


@pytest.fixture
def ratio(time: MockTime, waited: Waited) -> IdleRatio:
    return IdleRatio(time, lambda: waited.total_ns)


def test_ratio_is_the_share_of_time_waited(
    ratio: IdleRatio, waited: Waited, time: MockTime
) -> None:
    waited.total_ns += 250 * MS
    time.sleep(1000)

    assert ratio.value() == 0.25


def test_nothing_has_been_done_when_no_time_has_passed(ratio: IdleRatio) -> None:
    assert ratio.value() == 1.0


def test_old_times_are_forgotten(ratio: IdleRatio, waited: Waited, time: MockTime) -> None:
    for _ in range(30):
        time.sleep(5_000)
        ratio.value()

    for _ in range(14):
        waited.total_ns += 5_000 * MS
        time.sleep(5_000)
        ratio.value()

    assert ratio.value() == pytest.approx(1.0)


def test_readers_do_not_disturb_each_other(
    ratio: IdleRatio, waited: Waited, time: MockTime
) -> None:
    waited.total_ns += 500 * MS
    time.sleep(1000)

    assert [ratio.value() for _ in range(3)] == [0.5, 0.5, 0.5]


def test_ratio_never_exceeds_one(ratio: IdleRatio, waited: Waited, time: MockTime) -> None:
    waited.total_ns += 5000 * MS
    time.sleep(1000)

    assert ratio.value() == 1.0
