"""Fixtures that every part of the suite uses."""

import pytest

from tests.helpers.mock_scheduler import MockScheduler
from tests.helpers.mock_time import MockTime


@pytest.fixture
def time() -> MockTime:
    return MockTime()


@pytest.fixture
def scheduler(time: MockTime) -> MockScheduler:
    return time.scheduler
