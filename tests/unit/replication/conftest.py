from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.helpers.mock_time import MockTime
from tests.unit.replication.harness import ReplicaHarness

MakeBroker = Callable[..., ReplicaHarness]


@pytest.fixture
def make_broker(tmp_path, time: MockTime) -> Iterator[MakeBroker]:
    harnesses: list[ReplicaHarness] = []

    def make(**settings) -> ReplicaHarness:
        harness = ReplicaHarness(tmp_path / f"broker-{len(harnesses)}", time, **settings)
        harnesses.append(harness)
        return harness

    yield make
    for harness in harnesses:
        harness.close()


@pytest.fixture
def broker(make_broker: MakeBroker) -> ReplicaHarness:
    return make_broker()
