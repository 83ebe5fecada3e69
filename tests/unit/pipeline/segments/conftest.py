"""A log directory with logs that the broker's own storage writes."""

from pathlib import Path

import pytest

from tests.helpers.mock_time import MockTime
from tests.unit.storage.harness import StorageHarness


@pytest.fixture
def storage(tmp_path: Path, time: MockTime) -> StorageHarness:
    log_dir = tmp_path / "logs"
    log_dir.mkdir()
    return StorageHarness(log_dir, time=time)
