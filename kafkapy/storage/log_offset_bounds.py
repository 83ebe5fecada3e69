"""How far the readers of a log may see."""

import logging
import threading
from typing import NamedTuple

from kafkapy.common.errors import OffsetOutOfRangeError
from kafkapy.storage.local_log import LocalLog
from kafkapy.storage.log_offset_metadata import LogOffsetMetadata
from kafkapy.storage.producer_state_manager import ProducerStateManager

logger = logging.getLogger(__name__)


class LogOffsetSnapshot(NamedTuple):
    """All bounds of a log, read together.

    Ports: org.apache.kafka.storage.internals.log.LogOffsetSnapshot
    """

    log_start_offset: int
    log_end_offset: LogOffsetMetadata
    high_watermark: LogOffsetMetadata
    last_stable_offset: LogOffsetMetadata


class LogOffsetBounds:
    """The log start offset, high watermark and last stable offset of a log. Thread-safe.

    log start offset <= last stable offset <= high watermark <= log end offset. Changes take the
    log's lock; reading does not, except to look up a place on disk for the first time.

    Ports: kafka.log.UnifiedLog
    """

    def __init__(
        self,
        local_log: LocalLog,
        producer_state_manager: ProducerStateManager,
        lock: threading.RLock,
        log_start_offset: int,
    ) -> None:
        # constant after construction
        self._local_log = local_log
        self._producer_state_manager = producer_state_manager
        self._lock = lock
        # written under self._lock, read by anyone
        self.log_start_offset = log_start_offset
        self._high_watermark = LogOffsetMetadata(log_start_offset)
        self._first_unstable_offset: LogOffsetMetadata | None = None

    @property
    def high_watermark(self) -> int:
        return self._high_watermark.message_offset

    @property
    def last_stable_offset(self) -> int:
        unstable = self._first_unstable_offset
        high_watermark = self._high_watermark.message_offset
        if unstable is not None and unstable.message_offset < high_watermark:
            return unstable.message_offset
        return high_watermark

    def snapshot(self) -> LogOffsetSnapshot:
        with self._lock:
            return LogOffsetSnapshot(
                self.log_start_offset,
                self._local_log.log_end_offset_metadata,
                self.fetch_high_watermark_metadata(),
                self.fetch_last_stable_offset_metadata(),
            )

    def check_log_start_offset(self, offset: int) -> None:
        if offset < self.log_start_offset:
            raise OffsetOutOfRangeError(
                f"Offset {offset} of {self._local_log.topic_partition} was asked for, but the log "
                f"begins at {self.log_start_offset}"
            )

    def convert_to_offset_metadata_or_raise(self, offset: int) -> LogOffsetMetadata:
        self.check_log_start_offset(offset)
        return self._local_log.convert_to_offset_metadata_or_raise(offset)

    def fetch_high_watermark_metadata(self) -> LogOffsetMetadata:
        metadata = self._high_watermark
        if metadata.segment_base_offset >= 0:
            return metadata
        with self._lock:
            full = self._maybe_convert_to_offset_metadata(self.high_watermark)
            self._set_high_watermark(full)
            return full

    def fetch_last_stable_offset_metadata(self) -> LogOffsetMetadata:
        unstable = self._first_unstable_offset
        if unstable is None or unstable.message_offset >= self.high_watermark:
            return self.fetch_high_watermark_metadata()
        if unstable.segment_base_offset >= 0:
            return unstable
        with self._lock:
            full = self._maybe_convert_to_offset_metadata(unstable.message_offset)
            if self._first_unstable_offset == unstable:
                self._first_unstable_offset = full
            return full

    def update_high_watermark(self, metadata: LogOffsetMetadata) -> int:
        """Sets it, within the log; returns what it is then. May go back."""
        with self._lock:
            end = self._local_log.log_end_offset_metadata
            if metadata.message_offset < self.log_start_offset:
                metadata = LogOffsetMetadata(self.log_start_offset)
            elif metadata.message_offset >= end.message_offset:
                metadata = end
            self._set_high_watermark(metadata)
            return metadata.message_offset

    def maybe_increment_high_watermark(self, new: LogOffsetMetadata) -> LogOffsetMetadata | None:
        """Never goes back. The old value if it moved on, or onto a newer segment."""
        if new.message_offset > self._local_log.log_end_offset:
            raise ValueError(
                f"{self._local_log.topic_partition}: the high watermark {new.message_offset} would "
                f"be beyond the log end {self._local_log.log_end_offset}"
            )
        with self._lock:
            old = self.fetch_high_watermark_metadata()
            if old.message_offset < new.message_offset or (
                old.message_offset == new.message_offset and old.on_older_segment(new)
            ):
                self._set_high_watermark(new)
                return old
            return None

    def update_high_watermark_with_log_end_offset(self) -> None:
        """Gives it its new place when it is the log end."""
        if self.high_watermark >= self._local_log.log_end_offset:
            self._set_high_watermark(self._local_log.log_end_offset_metadata)

    def update_first_unstable_offset(self) -> None:
        """After the producers' transactions or the log start offset have changed."""
        with self._lock:
            unstable = self._producer_state_manager.first_unstable_offset
            if unstable is not None and (
                unstable.message_offset_only or unstable.message_offset < self.log_start_offset
            ):
                unstable = self._maybe_convert_to_offset_metadata(
                    max(unstable.message_offset, self.log_start_offset)
                )
            self._first_unstable_offset = unstable

    def on_append(self) -> None:
        if self._producer_state_manager.has_transactions or self._first_unstable_offset is not None:
            self.update_first_unstable_offset()

    def _set_high_watermark(self, metadata: LogOffsetMetadata) -> None:
        if metadata.message_offset < 0:
            raise ValueError(f"the high watermark {metadata} is negative")
        with self._lock:
            if metadata.message_offset < self.high_watermark:
                logger.warning(
                    "%s: the high watermark goes back from %d to %d",
                    self._local_log.topic_partition,
                    self.high_watermark,
                    metadata.message_offset,
                )
            self._high_watermark = metadata
            manager = self._producer_state_manager
            if manager.has_transactions or self._first_unstable_offset is not None:
                manager.on_high_watermark_updated(metadata.message_offset)
                self.update_first_unstable_offset()

    def _maybe_convert_to_offset_metadata(self, offset: int) -> LogOffsetMetadata:
        try:
            return self.convert_to_offset_metadata_or_raise(offset)
        except OffsetOutOfRangeError:
            return LogOffsetMetadata(offset)
