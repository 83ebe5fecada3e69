from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import cast

import pytest

from kafkapy.clients.admin import (
    AdminClient,
    ProducerState,
    Results,
    TransactionDescription,
    TransactionListing,
    TransactionState,
)
from kafkapy.common.errors import TransactionalIdAuthorizationError, TransactionalIdNotFoundError
from kafkapy.common.types import TopicPartition
from kafkapy.tools.hanging_transactions import HangingTransactions
from tests.helpers.mock_time import MockTime

_PARTITION = TopicPartition("t", 0)
_MINUTE_MS = 60_000


@dataclass
class FakeAdmin:
    """A partition with one producer of id 7, and what the coordinator of that one knows."""

    last_timestamp: int
    start_offset: int | None = 5
    known: dict[str, frozenset[TopicPartition]] = field(default_factory=dict)
    error: type[Exception] | None = None

    def describe_producers(
        self, partitions: Iterable[TopicPartition], *, broker_id: int | None
    ) -> dict[TopicPartition, tuple[ProducerState, ...]]:
        producer = ProducerState(7, 0, 3, self.last_timestamp, 1, self.start_offset)
        return dict.fromkeys(partitions, (producer,))

    def list_transactions(self, *, producer_ids: set[int]) -> list[TransactionListing]:
        assert producer_ids == {7}
        return [TransactionListing(name, 7, TransactionState.ONGOING, 0) for name in self.known]

    def describe_transactions(
        self, ids: Iterable[str], *, raise_errors: bool
    ) -> Results[str, TransactionDescription]:
        assert not raise_errors
        ids = tuple(ids)
        if self.error is not None:
            return Results(ids, {}, {name: self.error(name) for name in ids})  # type: ignore[misc]
        described = {
            name: TransactionDescription(
                0, TransactionState.ONGOING, 7, 0, 1000, 0, self.known[name]
            )
            for name in ids
        }
        return Results(ids, described, {})


def _find(admin: FakeAdmin, time: MockTime) -> list[TopicPartition]:
    search = HangingTransactions(cast(AdminClient, admin), time, max_timeout_minutes=15)
    found = search.find(topic="t", partition=0, broker_id=None)
    return [transaction.topic_partition for transaction in found]


@pytest.fixture
def long_ago(time: MockTime) -> int:
    return time.milliseconds() - 16 * _MINUTE_MS


def test_open_for_long_and_unknown_to_any_coordinator_hangs(time: MockTime, long_ago: int) -> None:
    assert _find(FakeAdmin(long_ago), time) == [_PARTITION]


def test_open_for_long_in_a_partition_its_coordinator_does_not_know_hangs(
    time: MockTime, long_ago: int
) -> None:
    known = {"x": frozenset({TopicPartition("t", 1)})}

    assert _find(FakeAdmin(long_ago, known=known), time) == [_PARTITION]


def test_what_its_coordinator_knows_does_not_hang(time: MockTime, long_ago: int) -> None:
    assert _find(FakeAdmin(long_ago, known={"x": frozenset({_PARTITION})}), time) == []


def test_what_is_not_open_or_not_for_long_does_not_hang(time: MockTime, long_ago: int) -> None:
    assert _find(FakeAdmin(long_ago, start_offset=None), time) == []
    assert _find(FakeAdmin(long_ago + 2 * _MINUTE_MS), time) == []


def test_a_transactional_id_that_has_expired_meanwhile_knows_nothing(
    time: MockTime, long_ago: int
) -> None:
    known = {"x": frozenset({_PARTITION})}
    admin = FakeAdmin(long_ago, known=known, error=TransactionalIdNotFoundError)

    assert _find(admin, time) == [_PARTITION]


def test_another_error_of_a_coordinator_is_raised(time: MockTime, long_ago: int) -> None:
    known = {"x": frozenset({_PARTITION})}
    admin = FakeAdmin(long_ago, known=known, error=TransactionalIdAuthorizationError)

    with pytest.raises(TransactionalIdAuthorizationError):
        _find(admin, time)
