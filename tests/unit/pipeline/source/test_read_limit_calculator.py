import pytest

from kafkapy.common.types import TopicPartition
from kafkapy.pipeline.source.read_limit_calculator import ReadLimitCalculator
from tests.helpers.mock_time import MockTime


def offsets(*numbers: int) -> dict[TopicPartition, int]:
    return {TopicPartition("t", index): number for index, number in enumerate(numbers)}


def calculator(
    time: MockTime, *, most: int | None = None, least: int | None = None, delay_ms: int = 1_000
) -> ReadLimitCalculator:
    return ReadLimitCalculator(
        time, max_offsets=most, min_offsets=least, max_trigger_delay_ms=delay_ms
    )


@pytest.mark.parametrize(
    ("most", "start", "latest", "end"),
    [
        (None, (0, 0), (5, 7), (5, 7)),
        (10, (0, 0), (100, 100), (5, 5)),
        (10, (0, 0), (90, 10), (9, 1)),
        # One with little takes at least one.
        (10, (0, 0), (1_000_000, 1), (9, 1)),
        (1, (0, 0, 0), (5, 5, 5), (1, 1, 1)),
        # Rounded down, so that together they do not take more.
        (5, (0, 0), (20, 20), (2, 2)),
        # More is allowed than there is.
        (100, (3, 4), (5, 4), (5, 4)),
        (10, (7, 7), (7, 7), (7, 7)),
        # One whose log ends before what was read does not count.
        (10, (5, 0), (3, 20), (3, 10)),
        (2**63 - 1, (0,), (2**63 - 1,), (2**63 - 1,)),
    ],
)
def test_what_a_batch_takes_is_shared_out_by_what_there_is(
    most: int | None, start: tuple[int, ...], latest: tuple[int, ...], end: tuple[int, ...]
) -> None:
    limits = calculator(MockTime(), most=most)

    assert limits.rate_limit(offsets(*start), offsets(*latest)) == offsets(*end)


def test_a_batch_waits_for_its_least_but_not_longer_than_the_delay() -> None:
    time = MockTime()
    limits = calculator(time, least=10, delay_ms=1_000)

    assert not limits.is_too_little(offsets(0), offsets(1)), "the first batch waits for nothing"
    assert limits.is_too_little(offsets(1), offsets(10))
    assert not limits.is_too_little(offsets(1), offsets(11))
    time.sleep(999)
    assert limits.is_too_little(offsets(11), offsets(12))
    time.sleep(1)
    assert not limits.is_too_little(offsets(11), offsets(12))
    assert limits.is_too_little(offsets(12), offsets(13)), "the delay starts over"


def test_without_a_least_nothing_is_waited_for() -> None:
    assert not calculator(MockTime()).is_too_little(offsets(0), offsets(0))
