"""A committed offset."""

from __future__ import annotations

from dataclasses import dataclass

NO_METADATA = ""


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """`expire_timestamp` is set only by commits of OffsetCommit v2 to v4 that ask for it.

    Ports: kafka.common.OffsetAndMetadata
    """

    offset: int
    leader_epoch: int | None = None
    metadata: str = NO_METADATA
    commit_timestamp: int = -1
    expire_timestamp: int | None = None


@dataclass(frozen=True, slots=True)
class CommitRecordMetadataAndOffset:
    """A commit and where it is in the log: None until it has been appended.

    Ports: kafka.coordinator.group.CommitRecordMetadataAndOffset
    """

    appended_batch_offset: int | None
    offset_and_metadata: OffsetAndMetadata

    def older_than(self, other: CommitRecordMetadataAndOffset) -> bool:
        if self.appended_batch_offset is None or other.appended_batch_offset is None:
            raise ValueError("only commits that are in the log can be compared")
        return self.appended_batch_offset < other.appended_batch_offset
