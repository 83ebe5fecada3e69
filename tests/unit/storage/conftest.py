"""Fixtures for the storage layer."""

from pathlib import Path

import pytest

from tests.helpers.mock_time import MockTime
from tests.unit.storage.harness import StorageHarness


@pytest.fixture
def storage(tmp_path: Path, time: MockTime) -> StorageHarness:
    return StorageHarness(tmp_path, time=time)
