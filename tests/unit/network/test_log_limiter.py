import logging

import pytest

from kafkapy.network.log_limiter import LogLimiter
from tests.helpers.mock_time import MockTime


def test_lines_over_the_limit_are_counted_and_told_later(
    time: MockTime, caplog: pytest.LogCaptureFixture
) -> None:
    limiter = LogLimiter(logging.getLogger("limited"), time, lines_per_second=2)

    for number in range(5):
        limiter.warning("line %d", number)
    time.sleep(1000)
    limiter.warning("line %d", 5)

    assert [record.getMessage() for record in caplog.records] == [
        "line 0",
        "line 1",
        "3 more lines like the last were left out",
        "line 5",
    ]


def test_each_second_has_its_own_lines(time: MockTime, caplog: pytest.LogCaptureFixture) -> None:
    limiter = LogLimiter(logging.getLogger("limited"), time, lines_per_second=1)

    for _ in range(3):
        limiter.warning("line")
        time.sleep(1000)

    assert len(caplog.records) == 3
