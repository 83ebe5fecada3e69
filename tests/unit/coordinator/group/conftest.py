from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.helpers.mock_time import MockTime
from tests.unit.coordinator.group.harness import GroupHarness

MakeGroups = Callable[..., GroupHarness]


@pytest.fixture
def make_groups(tmp_path, time: MockTime) -> Iterator[MakeGroups]:
    made: list[GroupHarness] = []

    def make(**properties: str) -> GroupHarness:
        harness = GroupHarness(
            tmp_path / f"broker-{len(made)}",
            time,
            {name.replace("_", "."): str(value) for name, value in properties.items()},
        )
        made.append(harness)
        return harness

    yield make
    for harness in made:
        harness.close()


@pytest.fixture
def groups(make_groups: MakeGroups) -> GroupHarness:
    return make_groups()
