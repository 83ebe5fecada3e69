"""What compaction has done, for metrics and the log."""

from kafkapy.utils.time import Time


class PreCleanStats:
    """What was found when looking for a log to compact. Written by one thread, read by any.

    Ports: kafka.log.PreCleanStats
    """

    __slots__ = ("cleanable_partitions", "delayed_partitions", "max_compaction_delay_ms")

    def __init__(self) -> None:
        self.max_compaction_delay_ms = 0
        self.delayed_partitions = 0
        self.cleanable_partitions = 0

    def update_max_compaction_delay(self, delay_ms: int) -> None:
        """By how much a log is beyond max.compaction.lag.ms."""
        self.max_compaction_delay_ms = max(self.max_compaction_delay_ms, delay_ms)
        if delay_ms > 0:
            self.delayed_partitions += 1


class CleanerStats:
    """The figures of one compaction. Written by one thread, read by any.

    Ports: kafka.log.CleanerStats
    """

    __slots__ = (
        "_end_ms",
        "_map_complete_ms",
        "_start_ms",
        "_time",
        "buffer_utilization",
        "bytes_read",
        "bytes_written",
        "invalid_messages_read",
        "map_bytes_read",
        "map_messages_read",
        "messages_read",
        "messages_written",
    )

    def __init__(self, time: Time) -> None:
        self._time = time
        self._start_ms = self._map_complete_ms = self._end_ms = time.hi_res_clock_ms()
        self.map_bytes_read = 0
        self.map_messages_read = 0
        self.bytes_read = 0
        self.messages_read = 0
        self.bytes_written = 0
        self.messages_written = 0
        self.invalid_messages_read = 0
        self.buffer_utilization = 0.0

    def index_done(self) -> None:
        self._map_complete_ms = self._time.hi_res_clock_ms()

    def all_done(self) -> None:
        self._end_ms = self._time.hi_res_clock_ms()

    @property
    def elapsed_secs(self) -> float:
        return (self._end_ms - self._start_ms) / 1000

    @property
    def elapsed_index_secs(self) -> float:
        return (self._map_complete_ms - self._start_ms) / 1000

    def __str__(self) -> str:
        return (
            f"{self.map_messages_read} records ({self.map_bytes_read} bytes) mapped in "
            f"{self.elapsed_index_secs:.1f} s, {self.messages_read} records ({self.bytes_read} "
            f"bytes) read, {self.messages_written} ({self.bytes_written} bytes) kept, "
            f"{self.elapsed_secs:.1f} s in all, {self.invalid_messages_read} without a key"
        )
