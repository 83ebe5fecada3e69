"""The offsets of one group."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping

from kafkapy.common.types import TopicPartition
from kafkapy.coordinator.group.group_state import IllegalGroupStateError
from kafkapy.coordinator.group.offset_and_metadata import (
    CommitRecordMetadataAndOffset,
    OffsetAndMetadata,
)

Commits = Mapping[TopicPartition, OffsetAndMetadata]


class GroupOffsets:
    """Committed offsets, and commits under way. Guarded by its group's lock.

    A commit is pending from the moment it is handed to the log until the log has it. A
    transaction's commit stays pending after that, until the transaction ends. Which of two commits
    wins is decided by their places in the log: what a restart would find is what counts now.

    Ports: kafka.coordinator.group.GroupMetadata (its offsets)
    """

    def __init__(self) -> None:
        self._committed: dict[TopicPartition, CommitRecordMetadataAndOffset] = {}
        self._pending: dict[TopicPartition, OffsetAndMetadata] = {}
        self._pending_transactional: dict[
            int, dict[TopicPartition, CommitRecordMetadataAndOffset]
        ] = {}
        self.received_transactional_commits = False
        self.received_consumer_commits = False

    def initialize(
        self,
        committed: Mapping[TopicPartition, CommitRecordMetadataAndOffset],
        pending_transactional: Mapping[int, Mapping[TopicPartition, CommitRecordMetadataAndOffset]],
    ) -> None:
        self._committed = dict(committed)
        self._pending_transactional = {
            producer_id: dict(pending) for producer_id, pending in pending_transactional.items()
        }

    # Reading

    def __len__(self) -> int:
        return len(self._committed)

    @property
    def has_any(self) -> bool:
        return bool(self._committed or self._pending or self._pending_transactional)

    def partitions(self) -> list[TopicPartition]:
        return list(self._committed)

    def get(self, topic_partition: TopicPartition) -> OffsetAndMetadata | None:
        committed = self._committed.get(topic_partition)
        return committed.offset_and_metadata if committed is not None else None

    def has_pending(self, topic_partition: TopicPartition) -> bool:
        return topic_partition in self._pending or any(
            topic_partition in pending for pending in self._pending_transactional.values()
        )

    def has_pending_from_producer(self, producer_id: int) -> bool:
        return producer_id in self._pending_transactional

    @property
    def has_received_consistent_commits(self) -> bool:
        return not (self.received_consumer_commits and self.received_transactional_commits)

    def forget_kinds_of_commits(self) -> None:
        """A new generation may commit in its own way."""
        self.received_transactional_commits = False
        self.received_consumer_commits = False

    # Commits

    def prepare_commit(self, commits: Commits) -> None:
        self.received_consumer_commits = True
        self._pending.update(commits)

    def on_commit_append(
        self, topic_partition: TopicPartition, commit: CommitRecordMetadataAndOffset
    ) -> None:
        # Not pending any more: the offsets were removed meanwhile, as of a deleted topic.
        pending = self._pending.get(topic_partition)
        if pending is None:
            return
        self._keep_newer(topic_partition, commit)
        # A later commit of the same partition may be on its way already.
        if pending == commit.offset_and_metadata:
            del self._pending[topic_partition]

    def fail_pending_commit(
        self, topic_partition: TopicPartition, offset: OffsetAndMetadata
    ) -> None:
        if self._pending.get(topic_partition) == offset:
            del self._pending[topic_partition]

    # Commits of transactions

    def prepare_transactional_commit(self, producer_id: int, commits: Commits) -> None:
        self.received_transactional_commits = True
        self._pending_transactional.setdefault(producer_id, {}).update(
            (topic_partition, CommitRecordMetadataAndOffset(None, offset))
            for topic_partition, offset in commits.items()
        )

    def on_transactional_commit_append(
        self,
        producer_id: int,
        topic_partition: TopicPartition,
        commit: CommitRecordMetadataAndOffset,
    ) -> None:
        pending = self._pending_transactional.get(producer_id, {})
        staged = pending.get(topic_partition)
        if staged is not None and staged.offset_and_metadata == commit.offset_and_metadata:
            pending[topic_partition] = commit

    def fail_pending_transactional_commit(
        self, producer_id: int, topic_partition: TopicPartition
    ) -> None:
        pending = self._pending_transactional.get(producer_id)
        if pending is not None:
            pending.pop(topic_partition, None)
            if not pending:
                del self._pending_transactional[producer_id]

    def complete_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """Take over, or forget, what a transaction has committed."""
        pending = self._pending_transactional.pop(producer_id, {})
        if is_commit:
            for topic_partition, commit in pending.items():
                if commit.appended_batch_offset is None:
                    raise IllegalGroupStateError(
                        f"the transaction of producer {producer_id} has ended before its commit "
                        f"for {topic_partition} was appended"
                    )
                self._keep_newer(topic_partition, commit)

    # Removal

    def remove(
        self, topic_partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Commits of open transactions go too: all that is told needs a tombstone."""
        removed = {}
        for topic_partition in topic_partitions:
            self._pending.pop(topic_partition, None)
            for commits in (*self._pending_transactional.values(), self._committed):
                commit = commits.pop(topic_partition, None)
                if commit is not None:
                    removed[topic_partition] = commit.offset_and_metadata
        return removed

    def remove_all(self) -> dict[TopicPartition, OffsetAndMetadata]:
        return self.remove(
            {*self._committed, *itertools.chain(*self._pending_transactional.values())}
        )

    def remove_expired(
        self,
        now_ms: int,
        retention_ms: int,
        *,
        base_timestamp: Callable[[OffsetAndMetadata], int],
        subscribed_topics: Collection[str] = (),
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What is neither in use nor pending and older than its retention."""
        expired = {}
        for topic_partition, committed in self._committed.items():
            offset = committed.offset_and_metadata
            # The tombstone would take the commit of an open transaction with it.
            if topic_partition.topic in subscribed_topics or self.has_pending(topic_partition):
                continue
            if (
                now_ms >= offset.expire_timestamp
                if offset.expire_timestamp is not None
                else now_ms - base_timestamp(offset) >= retention_ms
            ):
                expired[topic_partition] = offset
        for topic_partition in expired:
            del self._committed[topic_partition]
        return expired

    def _keep_newer(
        self, topic_partition: TopicPartition, commit: CommitRecordMetadataAndOffset
    ) -> None:
        current = self._committed.get(topic_partition)
        if current is None or current.older_than(commit):
            self._committed[topic_partition] = commit
