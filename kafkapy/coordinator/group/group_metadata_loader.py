"""Reads a partition of __consumer_offsets back into groups and offsets."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from kafkapy.common.record.control_record import ControlRecordType
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record_batch import RecordBatch
from kafkapy.common.types import TopicPartition
from kafkapy.coordinator.group.group_metadata import GroupMetadata
from kafkapy.coordinator.group.group_metadata_records import (
    GroupKey,
    OffsetKey,
    UnknownKey,
    read_group_value,
    read_key,
    read_offset_value,
)
from kafkapy.coordinator.group.offset_and_metadata import CommitRecordMetadataAndOffset
from kafkapy.storage.fetch_isolation import FetchIsolation
from kafkapy.storage.unified_log import UnifiedLog
from kafkapy.utils.time import Time

logger = logging.getLogger(__name__)

_Offsets = dict[OffsetKey, CommitRecordMetadataAndOffset]


@dataclass(slots=True)
class LoadedPartition:
    """What was found: groups with their offsets, and groups whose last record is a tombstone."""

    groups: list[GroupMetadata]
    removed_group_ids: set[str]
    # The groups that have an open transaction's commits, by the producer.
    groups_of_producer: dict[int, set[str]]


@dataclass(slots=True)
class _State:
    offsets: _Offsets = field(default_factory=dict)
    pending: dict[int, _Offsets] = field(default_factory=dict)  # by producer id
    groups: dict[str, GroupMetadata] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)


class GroupMetadataLoader:
    """Replays the log from its start. Confined to the thread that loads.

    Ports: kafka.coordinator.group.GroupMetadataManager.doLoadGroupsAndOffsets
    """

    def __init__(self, time: Time, *, buffer_size: int, is_cancelled: Callable[[], bool]) -> None:
        self._time = time
        self._buffer_size = buffer_size
        self._is_cancelled = is_cancelled

    def load(self, log: UnifiedLog) -> LoadedPartition:
        state = _State()
        offset = log.log_start_offset
        while offset < log.log_end_offset and not self._is_cancelled():
            fetched = log.read(
                offset, self._buffer_size, FetchIsolation.LOG_END, min_one_message=True
            ).records
            records = fetched if isinstance(fetched, MemoryRecords) else fetched.to_memory_records()
            first = offset
            for batch in records.batches():
                self._replay(batch, log.topic_partition, state)
                offset = batch.next_offset
            if offset == first:
                break  # nothing readable is left
        return self._assemble(state)

    def _replay(self, batch: RecordBatch, topic_partition: TopicPartition, state: _State) -> None:
        if batch.is_control_batch:
            for record in batch.records():
                pending = state.pending.pop(batch.producer_id, {})
                if ControlRecordType.parse(record.key) is ControlRecordType.COMMIT:
                    for committed, commit in pending.items():
                        current = state.offsets.get(committed)
                        if current is None or current.older_than(commit):
                            state.offsets[committed] = commit
            return
        base_offset: int | None = None
        for record in batch.records():
            if base_offset is None:
                # Not the batch's own, which compaction keeps when the first records are gone.
                base_offset = record.offset
            if record.key is None:
                logger.warning("%s has a record without key at %d", topic_partition, record.offset)
                continue
            key = read_key(record.key)
            match key:
                case OffsetKey():
                    offsets = (
                        state.pending.setdefault(batch.producer_id, {})
                        if batch.is_transactional
                        else state.offsets
                    )
                    if record.value is None:
                        # Deleted with the commits of transactions that were open then.
                        for pending in () if batch.is_transactional else state.pending.values():
                            pending.pop(key, None)
                        offsets.pop(key, None)
                    else:
                        offsets[key] = CommitRecordMetadataAndOffset(
                            base_offset, read_offset_value(record.value)
                        )
                case GroupKey(group_id):
                    if record.value is None:
                        state.groups.pop(group_id, None)
                        state.removed.add(group_id)
                    else:
                        state.groups[group_id] = read_group_value(
                            group_id, record.value, self._time
                        )
                        state.removed.discard(group_id)
                case UnknownKey(version):
                    logger.warning(
                        "%s has a record of unknown kind %d at %d",
                        topic_partition,
                        version,
                        record.offset,
                    )

    def _assemble(self, state: _State) -> LoadedPartition:
        offsets = _by_group(state.offsets.items())
        pending: dict[str, dict[int, dict[TopicPartition, CommitRecordMetadataAndOffset]]] = {}
        groups_of_producer: dict[int, set[str]] = {}
        for producer_id, commits in state.pending.items():
            for group_id, group_commits in _by_group(commits.items()).items():
                pending.setdefault(group_id, {})[producer_id] = group_commits
                groups_of_producer.setdefault(producer_id, set()).add(group_id)
        # Groups that only store offsets have no record of their own.
        for group_id in [*offsets, *pending]:
            if group_id not in state.groups:
                state.groups[group_id] = GroupMetadata(group_id, self._time)
        for group_id, group in state.groups.items():
            group.offsets.initialize(offsets.get(group_id, {}), pending.get(group_id, {}))
        return LoadedPartition(list(state.groups.values()), state.removed, groups_of_producer)


def _by_group(
    commits: Iterable[tuple[OffsetKey, CommitRecordMetadataAndOffset]],
) -> dict[str, dict[TopicPartition, CommitRecordMetadataAndOffset]]:
    grouped: dict[str, dict[TopicPartition, CommitRecordMetadataAndOffset]] = {}
    for (group_id, topic_partition), commit in commits:
        grouped.setdefault(group_id, {})[topic_partition] = commit
    return grouped
