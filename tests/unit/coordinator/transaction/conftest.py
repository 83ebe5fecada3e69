from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.helpers.mock_time import MockTime
from tests.unit.coordinator.transaction.harness import TransactionHarness

MakeTransactions = Callable[..., TransactionHarness]


@pytest.fixture
def make_transactions(tmp_path, time: MockTime) -> Iterator[MakeTransactions]:
    made: list[TransactionHarness] = []

    def make(**settings: int) -> TransactionHarness:
        made.append(TransactionHarness(tmp_path / f"broker-{len(made)}", time, **settings))
        return made[-1]

    yield make
    for harness in made:
        harness.close()


@pytest.fixture
def txn(make_transactions: MakeTransactions) -> TransactionHarness:
    return make_transactions()
