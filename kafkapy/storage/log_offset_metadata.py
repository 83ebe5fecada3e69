"""An offset together with where it lies on disk."""

from typing import Final

UNKNOWN_OFFSET: Final = -1
UNKNOWN_FILE_POSITION: Final = -1


class LogOffsetMetadata:
    """An offset, its segment and its byte position there. Constant after construction.

    Without segment and position (`message_offset_only`) it is just a number, as when it comes from
    a checkpoint or another broker.

    Ports: org.apache.kafka.storage.internals.log.LogOffsetMetadata
    """

    __slots__ = ("message_offset", "relative_position_in_segment", "segment_base_offset")

    def __init__(
        self,
        message_offset: int,
        segment_base_offset: int = UNKNOWN_OFFSET,
        relative_position_in_segment: int = UNKNOWN_FILE_POSITION,
    ) -> None:
        self.message_offset = message_offset
        self.segment_base_offset = segment_base_offset
        self.relative_position_in_segment = relative_position_in_segment

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, LogOffsetMetadata)
            and self.message_offset == other.message_offset
            and self.segment_base_offset == other.segment_base_offset
            and self.relative_position_in_segment == other.relative_position_in_segment
        )

    def __hash__(self) -> int:
        return hash(self.message_offset)

    def __repr__(self) -> str:
        return (
            f"LogOffsetMetadata({self.message_offset}, {self.segment_base_offset}, "
            f"{self.relative_position_in_segment})"
        )

    @property
    def message_offset_only(self) -> bool:
        return (
            self.segment_base_offset == UNKNOWN_OFFSET
            and self.relative_position_in_segment == UNKNOWN_FILE_POSITION
        )

    def on_older_segment(self, that: "LogOffsetMetadata") -> bool:
        if self.message_offset_only or that.message_offset_only:
            return False
        return self.segment_base_offset < that.segment_base_offset

    def on_same_segment(self, that: "LogOffsetMetadata") -> bool:
        return not self.message_offset_only and self.segment_base_offset == that.segment_base_offset

    def position_diff(self, that: "LogOffsetMetadata") -> int:
        """Bytes between two offsets of one segment."""
        if not self.on_same_segment(that):
            raise ValueError(f"{self} cannot be compared with {that}: different segments")
        return self.relative_position_in_segment - that.relative_position_in_segment


UNKNOWN_OFFSET_METADATA: Final = LogOffsetMetadata(UNKNOWN_OFFSET, 0, 0)
