import pytest

from kafkapy.common.types import TopicPartition
from kafkapy.coordinator.group.group_offsets import GroupOffsets
from kafkapy.coordinator.group.group_state import IllegalGroupStateError
from kafkapy.coordinator.group.offset_and_metadata import (
    CommitRecordMetadataAndOffset,
    OffsetAndMetadata,
)

TP = TopicPartition("t", 0)
PRODUCER = 7


def at(log_offset: int, offset: int) -> CommitRecordMetadataAndOffset:
    return CommitRecordMetadataAndOffset(log_offset, OffsetAndMetadata(offset))


def committed(log_offset: int = 0, offset: int = 5) -> GroupOffsets:
    offsets = GroupOffsets()
    offsets.initialize({TP: at(log_offset, offset)}, {})
    return offsets


def test_commit_is_pending_until_the_log_has_it() -> None:
    offsets = GroupOffsets()

    offsets.prepare_commit({TP: OffsetAndMetadata(5)})

    assert offsets.has_pending(TP)
    assert offsets.get(TP) is None
    assert offsets.has_any

    offsets.on_commit_append(TP, at(0, 5))

    assert not offsets.has_pending(TP)
    assert offsets.get(TP) == OffsetAndMetadata(5)


def test_failed_commit_leaves_the_old_offset() -> None:
    offsets = committed()
    offsets.prepare_commit({TP: OffsetAndMetadata(9)})

    offsets.fail_pending_commit(TP, OffsetAndMetadata(9))

    assert not offsets.has_pending(TP)
    assert offsets.get(TP) == OffsetAndMetadata(5)


def test_later_commit_stays_pending_when_an_earlier_one_arrives() -> None:
    offsets = GroupOffsets()
    offsets.prepare_commit({TP: OffsetAndMetadata(5)})
    offsets.prepare_commit({TP: OffsetAndMetadata(6)})

    offsets.on_commit_append(TP, at(0, 5))

    assert offsets.has_pending(TP)
    assert offsets.get(TP) == OffsetAndMetadata(5)


def test_place_in_the_log_decides_between_two_commits() -> None:
    offsets = committed(log_offset=10, offset=5)
    offsets.prepare_commit({TP: OffsetAndMetadata(3)})

    offsets.on_commit_append(TP, at(9, 3))

    assert offsets.get(TP) == OffsetAndMetadata(5)


def test_commit_of_removed_partition_is_dropped() -> None:
    offsets = GroupOffsets()
    offsets.prepare_commit({TP: OffsetAndMetadata(5)})
    offsets.remove([TP])

    offsets.on_commit_append(TP, at(0, 5))

    assert offsets.get(TP) is None


@pytest.mark.parametrize(("is_commit", "expected"), [(True, 8), (False, 5)])
def test_transaction_decides_over_its_commits(is_commit: bool, expected: int) -> None:
    offsets = committed()
    offsets.prepare_transactional_commit(PRODUCER, {TP: OffsetAndMetadata(8)})
    offsets.on_transactional_commit_append(PRODUCER, TP, at(1, 8))
    assert offsets.get(TP) == OffsetAndMetadata(5)
    assert offsets.has_pending(TP)

    offsets.complete_transaction(PRODUCER, is_commit=is_commit)

    assert offsets.get(TP) == OffsetAndMetadata(expected)
    assert not offsets.has_pending(TP)


def test_transactional_commit_does_not_undo_a_later_one() -> None:
    offsets = committed(log_offset=10, offset=5)
    offsets.prepare_transactional_commit(PRODUCER, {TP: OffsetAndMetadata(8)})
    offsets.on_transactional_commit_append(PRODUCER, TP, at(9, 8))

    offsets.complete_transaction(PRODUCER, is_commit=True)

    assert offsets.get(TP) == OffsetAndMetadata(5)


def test_transaction_cannot_commit_what_the_log_has_not() -> None:
    offsets = GroupOffsets()
    offsets.prepare_transactional_commit(PRODUCER, {TP: OffsetAndMetadata(8)})

    with pytest.raises(IllegalGroupStateError):
        offsets.complete_transaction(PRODUCER, is_commit=True)

    assert offsets.get(TP) is None


def test_failed_transactional_commit_is_forgotten() -> None:
    offsets = GroupOffsets()
    offsets.prepare_transactional_commit(PRODUCER, {TP: OffsetAndMetadata(8)})

    offsets.fail_pending_transactional_commit(PRODUCER, TP)

    assert not offsets.has_pending_from_producer(PRODUCER)
    assert not offsets.has_any


@pytest.mark.parametrize(
    ("age_ms", "expire_timestamp", "expected"),
    [(99, None, 1), (100, None, 0), (1, 1_001, 0), (200, 5_000, 1)],
)
def test_offset_expires_after_retention_or_at_the_time_it_names(
    age_ms: int, expire_timestamp: int | None, expected: int
) -> None:
    offsets = GroupOffsets()
    offset = OffsetAndMetadata(5, commit_timestamp=1_000, expire_timestamp=expire_timestamp)
    offsets.initialize({TP: CommitRecordMetadataAndOffset(0, offset)}, {})

    removed = offsets.remove_expired(
        1_000 + age_ms, 100, base_timestamp=lambda o: o.commit_timestamp
    )

    assert len(offsets) == expected
    assert len(removed) == 1 - expected


def test_neither_subscribed_nor_pending_offsets_expire() -> None:
    offsets = committed()
    assert not offsets.remove_expired(1_000, 1, base_timestamp=lambda _: 0, subscribed_topics={"t"})

    offsets.prepare_commit({TP: OffsetAndMetadata(6)})

    assert not offsets.remove_expired(1_000, 1, base_timestamp=lambda _: 0)
