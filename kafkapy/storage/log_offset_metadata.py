"""An offset together with where it lies on disk."""

from typing import Final, NamedTuple

UNKNOWN_OFFSET: Final = -1
UNKNOWN_FILE_POSITION: Final = -1


class LogOffsetMetadata(NamedTuple):
    """An offset, its segment and its byte position there. A tuple: one is made per append.

    Without segment and position (`message_offset_only`) it is just a number, as when it comes from
    a checkpoint or another broker.

    Ports: org.apache.kafka.storage.internals.log.LogOffsetMetadata
    """

    message_offset: int
    segment_base_offset: int = UNKNOWN_OFFSET
    relative_position_in_segment: int = UNKNOWN_FILE_POSITION

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
