"""Settings of logs: those of one topic, and those of the manager of all logs."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from kafkapy.common.compression import NO_COMPRESSION, Compression, CompressionType
from kafkapy.common.config_def import (
    ConfigKey,
    ConfigType,
    Importance,
    Synonym,
    at_least,
    between,
    config,
    config_keys,
    each_of,
    one_of,
    parse,
)
from kafkapy.common.errors import InvalidConfigurationError

LONG_MAX = (1 << 63) - 1
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
WEEK_MS = 7 * DAY_MS

COMPACT = "compact"
DELETE = "delete"
LOG_APPEND_TIME = "LogAppendTime"
# local.retention.*: take the value of retention.*
SAME_AS_RETENTION = -2


def _gzip_level(value: int) -> str | None:
    return None if value == -1 or 1 <= value <= 9 else "must be -1 or between 1 and 9"


def _throttled_replicas(value: tuple[str, ...]) -> str | None:
    """`*`, or a list of partition:broker."""
    if value == ("*",):
        return None
    for item in value:
        partition, colon, broker = item.partition(":")
        if not (colon and partition.strip().isdigit() and broker.strip().isdigit()):
            return "must be the literal '*' or a list of partition:broker"
    return None


@dataclass(frozen=True, slots=True)
class LogConfig:
    """The settings of one topic: the broker's defaults with the topic's own values on top.

    Ports: org.apache.kafka.storage.internals.log.LogConfig
    """

    segment_bytes: int = config(
        "segment.bytes",
        1 << 30,
        at_least(14),
        synonyms=("log.segment.bytes",),
        importance=Importance.HIGH,
        doc="The size at which a segment file is closed and a new one begun. Retention and "
        "compaction work on whole segments.",
    )
    segment_ms: int = config(
        "segment.ms",
        WEEK_MS,
        at_least(1),
        type=ConfigType.LONG,
        synonyms=("log.roll.ms", Synonym("log.roll.hours", HOUR_MS)),
        doc="The age, by the time of its first batch, at which a segment is closed even if it is "
        "not full.",
    )
    segment_jitter_ms: int = config(
        "segment.jitter.ms",
        0,
        at_least(0),
        type=ConfigType.LONG,
        synonyms=("log.roll.jitter.ms", Synonym("log.roll.jitter.hours", HOUR_MS)),
        doc="At most this much is taken off segment.ms, at random, so that many segments do not "
        "roll at once.",
    )
    segment_index_bytes: int = config(
        "segment.index.bytes",
        10 << 20,
        at_least(4),
        synonyms=("log.index.size.max.bytes",),
        doc="The size of an active segment's index files. They are sparse and shrink to what they "
        "hold when the segment is closed.",
    )
    flush_messages: int = config(
        "flush.messages",
        LONG_MAX,
        at_least(1),
        type=ConfigType.LONG,
        synonyms=("log.flush.interval.messages",),
        doc="Force data to disk after this many records. The default leaves it to the operating "
        "system; replication protects better.",
    )
    flush_ms: int = config(
        "flush.ms",
        LONG_MAX,
        at_least(0),
        type=ConfigType.LONG,
        synonyms=("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
        doc="Force data to disk when it is this old.",
    )
    retention_bytes: int = config(
        "retention.bytes",
        -1,
        type=ConfigType.LONG,
        synonyms=("log.retention.bytes",),
        importance=Importance.HIGH,
        doc="The size of a partition above which its oldest segments are deleted; -1 for no limit.",
    )
    retention_ms: int = config(
        "retention.ms",
        WEEK_MS,
        at_least(-1),
        type=ConfigType.LONG,
        synonyms=(
            "log.retention.ms",
            Synonym("log.retention.minutes", MINUTE_MS),
            Synonym("log.retention.hours", HOUR_MS),
        ),
        importance=Importance.HIGH,
        doc="The age above which segments are deleted; -1 for no limit.",
    )
    remote_storage_enable: bool = config(
        "remote.storage.enable", False, doc="Tiered storage; not available, must stay false."
    )
    local_retention_ms: int = config(
        "local.retention.ms",
        SAME_AS_RETENTION,
        at_least(-2),
        type=ConfigType.LONG,
        synonyms=("log.local.retention.ms",),
        doc="The age at which local segments of a tiered topic go; -2 for retention.ms.",
    )
    local_retention_bytes: int = config(
        "local.retention.bytes",
        SAME_AS_RETENTION,
        at_least(-2),
        type=ConfigType.LONG,
        synonyms=("log.local.retention.bytes",),
        doc="The size at which local segments of a tiered topic go; -2 for retention.bytes.",
    )
    remote_log_copy_disable: bool = config(
        "remote.log.copy.disable", False, doc="Stop copying segments to tiered storage."
    )
    remote_log_delete_on_disable: bool = config(
        "remote.log.delete.on.disable",
        False,
        doc="Delete what tiered storage holds when it is turned off.",
    )
    max_message_bytes: int = config(
        "max.message.bytes",
        1_048_588,
        at_least(0),
        synonyms=("message.max.bytes",),
        importance=Importance.HIGH,
        doc="The largest batch of records that is accepted, after compression.",
    )
    index_interval_bytes: int = config(
        "index.interval.bytes",
        4096,
        at_least(0),
        synonyms=("log.index.interval.bytes",),
        doc="Bytes of log between two entries of the offset index.",
    )
    file_delete_delay_ms: int = config(
        "file.delete.delay.ms",
        MINUTE_MS,
        at_least(0),
        type=ConfigType.LONG,
        synonyms=("log.segment.delete.delay.ms",),
        doc="How long a file that is no longer in use stays on disk.",
    )
    delete_retention_ms: int = config(
        "delete.retention.ms",
        DAY_MS,
        at_least(0),
        type=ConfigType.LONG,
        synonyms=("log.cleaner.delete.retention.ms",),
        doc="How long compaction keeps tombstones.",
    )
    min_compaction_lag_ms: int = config(
        "min.compaction.lag.ms",
        0,
        at_least(0),
        type=ConfigType.LONG,
        synonyms=("log.cleaner.min.compaction.lag.ms",),
        doc="The least age at which a record may be compacted.",
    )
    max_compaction_lag_ms: int = config(
        "max.compaction.lag.ms",
        LONG_MAX,
        at_least(1),
        type=ConfigType.LONG,
        synonyms=("log.cleaner.max.compaction.lag.ms",),
        doc="The age at which a record must be compacted.",
    )
    min_cleanable_dirty_ratio: float = config(
        "min.cleanable.dirty.ratio",
        0.5,
        between(0, 1),
        synonyms=("log.cleaner.min.cleanable.ratio",),
        doc="The share of a log that must be new before it is compacted.",
    )
    cleanup_policy: tuple[str, ...] = config(
        "cleanup.policy",
        (DELETE,),
        each_of(COMPACT, DELETE, or_none=True),
        synonyms=("log.cleanup.policy",),
        doc="What happens to old segments: delete, compact, or both; they stay if it is empty.",
    )
    unclean_leader_election_enable: bool = config(
        "unclean.leader.election.enable",
        False,
        synonyms=("unclean.leader.election.enable",),
        doc="Whether a replica that is not in sync may become leader, losing records.",
    )
    min_insync_replicas: int = config(
        "min.insync.replicas",
        1,
        at_least(1),
        synonyms=("min.insync.replicas",),
        importance=Importance.HIGH,
        doc="With acks=all, the replicas that must have a write for it to succeed.",
    )
    compression_type: str = config(
        "compression.type",
        "producer",
        one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        synonyms=("compression.type",),
        doc="The codec in which records are kept; 'producer' keeps what the producer chose.",
    )
    compression_gzip_level: int = config(
        "compression.gzip.level",
        -1,
        _gzip_level,
        synonyms=("compression.gzip.level",),
        doc="The level used when compression.type is gzip.",
    )
    compression_lz4_level: int = config(
        "compression.lz4.level",
        9,
        between(1, 17),
        synonyms=("compression.lz4.level",),
        doc="The level used when compression.type is lz4.",
    )
    compression_zstd_level: int = config(
        "compression.zstd.level",
        3,
        between(-131_072, 22),
        synonyms=("compression.zstd.level",),
        doc="The level used when compression.type is zstd.",
    )
    preallocate: bool = config(
        "preallocate",
        False,
        synonyms=("log.preallocate",),
        doc="Give a new segment file its full size at once.",
    )
    message_format_version: str = config(
        "message.format.version",
        "3.0-IV1",
        synonyms=("log.message.format.version",),
        doc="Accepted and ignored: records are kept in the v2 format.",
    )
    message_timestamp_type: str = config(
        "message.timestamp.type",
        "CreateTime",
        one_of("CreateTime", LOG_APPEND_TIME),
        synonyms=("log.message.timestamp.type",),
        doc="Whose clock a record's timestamp is: the producer's or the broker's.",
    )
    message_timestamp_difference_max_ms: int = config(
        "message.timestamp.difference.max.ms",
        LONG_MAX,
        at_least(0),
        type=ConfigType.LONG,
        synonyms=("log.message.timestamp.difference.max.ms",),
        doc="Older name of message.timestamp.before.max.ms and after.max.ms together.",
    )
    message_timestamp_before_max_ms: int = config(
        "message.timestamp.before.max.ms",
        LONG_MAX,
        at_least(0),
        type=ConfigType.LONG,
        synonyms=("log.message.timestamp.before.max.ms",),
        doc="How far before the broker's clock a CreateTime may lie.",
    )
    message_timestamp_after_max_ms: int = config(
        "message.timestamp.after.max.ms",
        LONG_MAX,
        at_least(0),
        type=ConfigType.LONG,
        synonyms=("log.message.timestamp.after.max.ms",),
        doc="How far after the broker's clock a CreateTime may lie.",
    )
    leader_replication_throttled_replicas: tuple[str, ...] = config(
        "leader.replication.throttled.replicas",
        (),
        _throttled_replicas,
        doc="Replicas whose replication is throttled on the leader's side: * or partition:broker,…",
    )
    follower_replication_throttled_replicas: tuple[str, ...] = config(
        "follower.replication.throttled.replicas",
        (),
        _throttled_replicas,
        doc="Replicas whose replication is throttled on the follower's side: * or "
        "partition:broker,…",
    )
    message_downconversion_enable: bool = config(
        "message.downconversion.enable",
        True,
        synonyms=("log.message.downconversion.enable",),
        doc="Whether records are converted for clients that fetch with versions 0 to 3.",
    )
    # The topic's own settings, by name; everything else is the broker's default.
    overridden_configs: frozenset[str] = field(default=frozenset(), compare=False)

    @classmethod
    def from_overrides(cls, defaults: LogConfig, overrides: Mapping[str, str]) -> LogConfig:
        """The broker's defaults with a topic's own values on top; unknown names are ignored."""
        parsed = parse(cls, overrides, use_synonyms=False)
        changed = {
            key.field_name: getattr(parsed, key.field_name)
            for key in config_keys(cls)
            if key.name in overrides
        }
        return dataclasses.replace(
            defaults, **changed, overridden_configs=frozenset(overrides.keys() & topic_keys())
        )

    @property
    def compact(self) -> bool:
        return COMPACT in self.cleanup_policy

    @property
    def delete(self) -> bool:
        return DELETE in self.cleanup_policy

    @property
    def max_segment_ms(self) -> int:
        """The active segment is never compacted, so it must not outlive max.compaction.lag.ms."""
        if self.compact:
            return min(self.segment_ms, self.max_compaction_lag_ms)
        return self.segment_ms

    @property
    def init_file_size(self) -> int:
        return self.segment_bytes if self.preallocate else 0

    @property
    def is_log_append_time(self) -> bool:
        return self.message_timestamp_type == LOG_APPEND_TIME

    @property
    def effective_timestamp_before_max_ms(self) -> int:
        """The older joint setting counts where the newer one is not set."""
        if self.message_timestamp_before_max_ms != LONG_MAX:
            return self.message_timestamp_before_max_ms
        return self.message_timestamp_difference_max_ms

    @property
    def effective_timestamp_after_max_ms(self) -> int:
        if self.message_timestamp_after_max_ms != LONG_MAX:
            return self.message_timestamp_after_max_ms
        return self.message_timestamp_difference_max_ms

    @property
    def compression(self) -> Compression | None:
        """What records are stored as; None for what the producer chose."""
        match self.compression_type:
            case "producer":
                return None
            case "uncompressed":
                return NO_COMPRESSION
            case "gzip":
                return Compression(CompressionType.GZIP, self.compression_gzip_level)
            case "lz4":
                return Compression(CompressionType.LZ4, self.compression_lz4_level)
            case "zstd":
                return Compression(CompressionType.ZSTD, self.compression_zstd_level)
            case codec:
                return Compression(CompressionType.for_name(codec))

    def random_segment_jitter(self, rng: random.Random) -> int:
        if self.segment_jitter_ms == 0:
            return 0
        return rng.randrange(min(self.segment_jitter_ms, self.max_segment_ms))


def topic_keys() -> dict[str, ConfigKey]:
    """Every setting that a topic may have, by name."""
    return {key.name: key for key in config_keys(LogConfig)}


# How many -IV0, -IV1 and so on there are of each release.
_INTERIM_VERSIONS = {
    **dict.fromkeys(("0.8.0", "0.8.1", "0.8.2", "0.9.0"), 0),
    **{"0.10.0": 2, "0.10.1": 3, "0.10.2": 1, "0.11.0": 3, "1.0": 1, "1.1": 1},
    **{"2.0": 2, "2.1": 3, "2.2": 2, "2.3": 2, "2.4": 2, "2.5": 1, "2.6": 1, "2.7": 3, "2.8": 2},
    **{"3.0": 2, "3.1": 1, "3.2": 1, "3.3": 4, "3.4": 1, "3.5": 3, "3.6": 3, "3.7": 5},
    **{"3.8": 1, "3.9": 1},
}


def validate_topic_config(
    overrides: Mapping[str, str], defaults: LogConfig | None = None
) -> LogConfig:
    """The config that `overrides` give; raises InvalidConfigurationError as topic creation must.

    Ports: org.apache.kafka.storage.internals.log.LogConfig.validate
    """
    known = topic_keys()
    for name in overrides:
        if name not in known:
            raise InvalidConfigurationError(f"Unknown topic config name: {name}")
    log_config = LogConfig.from_overrides(defaults or LogConfig(), overrides)
    validate_values(log_config)
    return log_config


def validate_values(log_config: LogConfig) -> None:
    """What no single setting can tell."""
    if log_config.min_compaction_lag_ms > log_config.max_compaction_lag_ms:
        raise InvalidConfigurationError(
            f"min.compaction.lag.ms ({log_config.min_compaction_lag_ms}) must not be above "
            f"max.compaction.lag.ms ({log_config.max_compaction_lag_ms})"
        )
    for name, is_set in (
        ("remote.storage.enable", log_config.remote_storage_enable),
        ("remote.log.copy.disable", log_config.remote_log_copy_disable),
        ("remote.log.delete.on.disable", log_config.remote_log_delete_on_disable),
    ):
        if is_set:
            raise InvalidConfigurationError(
                f"{name} must be false: this broker has no tiered storage"
            )
    if not _is_release(log_config.message_format_version):
        raise InvalidConfigurationError(
            f"message.format.version: there is no version {log_config.message_format_version}"
        )


def _is_release(version: str) -> bool:
    """Whether Kafka 3.9 knows it: its brokers do not start with a topic that says another."""
    parts = 3 if version.startswith("0.") else 2
    release, interim, number = ".".join(version.split(".")[:parts]).partition("-IV")
    numbers = _INTERIM_VERSIONS.get(release)
    return numbers is not None and (not interim or number in map(str, range(numbers)))


@dataclass(frozen=True, slots=True)
class LogManagerConfig:
    """The settings of LogManager.

    Ports: kafka.server.KafkaConfig
    """

    log_dirs: tuple[str, ...] = config(
        "log.dirs",
        ("/tmp/kafka-logs",),
        lambda value: None if value else "must name at least one directory",
        synonyms=("log.dir",),
        importance=Importance.HIGH,
        doc="The directories that hold the logs, comma-separated. A new partition goes to the one "
        "with the fewest.",
    )
    num_recovery_threads_per_data_dir: int = config(
        "num.recovery.threads.per.data.dir",
        1,
        at_least(1),
        importance=Importance.HIGH,
        doc="Threads per directory that load logs at start-up and flush them at shutdown.",
    )
    log_flush_scheduler_interval_ms: int = config(
        "log.flush.scheduler.interval.ms",
        LONG_MAX,
        type=ConfigType.LONG,
        importance=Importance.HIGH,
        doc="How often to look for logs that flush.ms says to force to disk.",
    )
    log_flush_offset_checkpoint_interval_ms: int = config(
        "log.flush.offset.checkpoint.interval.ms",
        MINUTE_MS,
        at_least(0),
        importance=Importance.HIGH,
        doc="How often the point up to which each log is on disk is saved.",
    )
    log_flush_start_offset_checkpoint_interval_ms: int = config(
        "log.flush.start.offset.checkpoint.interval.ms",
        MINUTE_MS,
        at_least(0),
        importance=Importance.HIGH,
        doc="How often the log start offsets are saved.",
    )
    log_retention_check_interval_ms: int = config(
        "log.retention.check.interval.ms",
        5 * MINUTE_MS,
        at_least(1),
        type=ConfigType.LONG,
        doc="How often to look for segments that retention says to delete.",
    )
    log_initial_task_delay_ms: int = config(
        "log.initial.task.delay.ms",
        30_000,
        at_least(0),
        type=ConfigType.LONG,
        importance=Importance.LOW,
        doc="How long after start-up the periodic tasks of the log manager begin.",
    )
    producer_id_expiration_ms: int = config(
        "producer.id.expiration.ms",
        DAY_MS,
        at_least(1),
        importance=Importance.LOW,
        dynamic=True,
        doc="How long a partition remembers an idempotent producer that no longer writes.",
    )
    producer_id_expiration_check_interval_ms: int = config(
        "producer.id.expiration.check.interval.ms",
        10 * MINUTE_MS,
        at_least(1),
        importance=Importance.LOW,
        doc="How often to look for producer ids that have expired.",
    )
    transaction_partition_verification_enable: bool = config(
        "transaction.partition.verification.enable",
        True,
        importance=Importance.LOW,
        dynamic=True,
        doc="Whether the first append of a transaction to a partition is checked with the "
        "transaction's coordinator, so that no transaction is left hanging.",
    )
