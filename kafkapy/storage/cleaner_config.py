"""Settings of log compaction."""

from dataclasses import dataclass

from kafkapy.common.config_def import ConfigType, InvalidValueError, at_least, config

UNLIMITED_RATE = 1.7976931348623157e308
_MIN_DEDUPE_BYTES_PER_THREAD = 1 << 20


@dataclass(frozen=True, slots=True)
class CleanerConfig:
    """The settings of LogCleaner that are not a topic's.

    Ports: org.apache.kafka.storage.internals.log.CleanerConfig
    """

    num_threads: int = config(
        "log.cleaner.threads",
        1,
        at_least(0),
        dynamic=True,
        doc="Threads that compact logs.",
    )
    max_io_bytes_per_second: float = config(
        "log.cleaner.io.max.bytes.per.second",
        UNLIMITED_RATE,
        lambda rate: None if rate > 0 else "must be above 0",
        dynamic=True,
        doc="What all compaction threads together may read and write in a second.",
    )
    dedupe_buffer_size: int = config(
        "log.cleaner.dedupe.buffer.size",
        128 << 20,
        type=ConfigType.LONG,
        dynamic=True,
        doc="The most memory for the keys of the log that is being compacted, of all threads "
        "together: 24 bytes a key. It is taken as needed and given back.",
    )
    io_buffer_size: int = config(
        "log.cleaner.io.buffer.size",
        512 << 10,
        at_least(0),
        dynamic=True,
        doc="Memory for reading and writing logs, of all compaction threads together.",
    )
    dedupe_buffer_load_factor: float = config(
        "log.cleaner.io.buffer.load.factor",
        0.9,
        lambda factor: None if 0 < factor <= 1 else "must be above 0 and at most 1",
        dynamic=True,
        doc="How full the memory for keys may get. More keys are compacted at once, but finding "
        "them takes longer.",
    )
    backoff_ms: int = config(
        "log.cleaner.backoff.ms",
        15_000,
        at_least(0),
        type=ConfigType.LONG,
        dynamic=True,
        doc="How long to wait when there is nothing to compact.",
    )
    enable_cleaner: bool = config(
        "log.cleaner.enable",
        True,
        doc="Whether logs with cleanup.policy=compact are compacted at all. The internal topics "
        "are such, and grow for ever without it.",
    )

    def validate(self) -> None:
        """What no single setting can tell; raises InvalidValueError.

        Ports: kafka.server.KafkaConfig.validateValues
        """
        threads = max(self.num_threads, 1)
        if self.dedupe_buffer_size // threads <= _MIN_DEDUPE_BYTES_PER_THREAD:
            raise InvalidValueError(
                "log.cleaner.dedupe.buffer.size",
                str(self.dedupe_buffer_size),
                f"must be more than 1 MiB for each of log.cleaner.threads ({threads})",
            )

    def validate_change_to(self, new: "CleanerConfig") -> None:
        """Raises InvalidValueError if a running cleaner cannot take a change.

        Ports: kafka.log.LogCleaner.validateReconfiguration
        """
        before, after = self.num_threads, new.num_threads
        if after != before and (after < 1 or not before // 2 <= after <= before * 2):
            raise InvalidValueError(
                "log.cleaner.threads",
                str(after),
                f"must be at least 1, and between half and twice the present {before}",
            )
