"""Topic settings: names, defaults, synonyms, validation."""

import json
import random
import re

import pytest

from kafkapy.common.compression import Compression, CompressionType
from kafkapy.common.config_def import parse
from kafkapy.common.errors import InvalidConfigurationError
from kafkapy.storage.log_config import (
    LONG_MAX,
    LogConfig,
    LogManagerConfig,
    topic_keys,
    validate_topic_config,
)

KAFKA_3_9_TOPIC_SETTINGS = json.loads("""{
 "cleanup.policy": "delete", "compression.type": "producer", "compression.gzip.level": "-1",
 "compression.lz4.level": "9", "compression.zstd.level": "3", "delete.retention.ms": "86400000",
 "file.delete.delay.ms": "60000", "flush.messages": "9223372036854775807",
 "flush.ms": "9223372036854775807", "follower.replication.throttled.replicas": "",
 "index.interval.bytes": "4096", "leader.replication.throttled.replicas": "",
 "local.retention.bytes": "-2", "local.retention.ms": "-2",
 "max.compaction.lag.ms": "9223372036854775807", "max.message.bytes": "1048588",
 "message.downconversion.enable": "true", "message.format.version": "3.0-IV1",
 "message.timestamp.after.max.ms": "9223372036854775807",
 "message.timestamp.before.max.ms": "9223372036854775807",
 "message.timestamp.difference.max.ms": "9223372036854775807",
 "message.timestamp.type": "CreateTime", "min.cleanable.dirty.ratio": "0.5",
 "min.compaction.lag.ms": "0", "min.insync.replicas": "1", "preallocate": "false",
 "remote.log.copy.disable": "false", "remote.log.delete.on.disable": "false",
 "remote.storage.enable": "false", "retention.bytes": "-1", "retention.ms": "604800000",
 "segment.bytes": "1073741824", "segment.index.bytes": "10485760", "segment.jitter.ms": "0",
 "segment.ms": "604800000", "unclean.leader.election.enable": "false"
}""")


def test_every_topic_setting_of_kafka_is_there_with_its_default() -> None:
    keys = topic_keys()

    assert {name: key.format(key.default) for name, key in keys.items()} == KAFKA_3_9_TOPIC_SETTINGS


@pytest.mark.parametrize(
    ("properties", "retention_ms"),
    [
        ({"log.retention.hours": "2"}, 7_200_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.hours": "-1"}, -1),
        ({"retention.ms": "9"}, 604_800_000),
    ],
)
def test_broker_names_are_synonyms_the_finest_unit_first(
    properties: dict[str, str], retention_ms: int
) -> None:
    assert parse(LogConfig, properties, use_name=False).retention_ms == retention_ms


@pytest.mark.parametrize(
    ("name", "value", "field"),
    [
        ("log.roll.hours", "1", ("segment_ms", 3_600_000)),
        ("log.roll.ms", "5", ("segment_ms", 5)),
        ("log.roll.jitter.hours", "1", ("segment_jitter_ms", 3_600_000)),
        ("message.max.bytes", "7", ("max_message_bytes", 7)),
        ("log.flush.interval.messages", "8", ("flush_messages", 8)),
        ("log.flush.scheduler.interval.ms", "9", ("flush_ms", 9)),
        ("log.cleanup.policy", "compact,delete", ("cleanup_policy", ("compact", "delete"))),
        ("min.insync.replicas", "2", ("min_insync_replicas", 2)),
        ("log.segment.delete.delay.ms", "1", ("file_delete_delay_ms", 1)),
    ],
)
def test_broker_settings_set_the_topic_default(
    name: str, value: str, field: tuple[str, object]
) -> None:
    assert getattr(parse(LogConfig, {name: value}, use_name=False), field[0]) == field[1]


def test_a_topic_may_have_no_policy() -> None:
    config = validate_topic_config({"cleanup.policy": ""})

    assert (config.cleanup_policy, config.delete, config.compact) == ((), False, False)


@pytest.mark.parametrize(
    ("overrides", "named"),
    [
        ({"no.such.thing": "1"}, "no.such.thing"),
        ({"segment.bytes": "13"}, "segment.bytes"),
        ({"retention.ms": "-2"}, "retention.ms"),
        ({"retention.ms": "soon"}, "retention.ms"),
        ({"cleanup.policy": "burn"}, "cleanup.policy"),
        ({"min.cleanable.dirty.ratio": "1.5"}, "min.cleanable.dirty.ratio"),
        ({"compression.type": "rar"}, "compression.type"),
        ({"compression.gzip.level": "0"}, "compression.gzip.level"),
        ({"message.timestamp.type": "Whenever"}, "message.timestamp.type"),
        ({"min.insync.replicas": "0"}, "min.insync.replicas"),
        ({"leader.replication.throttled.replicas": "1-2"}, "throttled.replicas"),
        ({"remote.storage.enable": "true"}, "remote.storage.enable"),
        ({"remote.log.copy.disable": "true"}, "remote.log.copy.disable"),
        ({"remote.log.delete.on.disable": "true"}, "remote.log.delete.on.disable"),
        ({"message.format.version": "latest"}, "message.format.version"),
        ({"message.format.version": "0.10"}, "message.format.version"),
        ({"message.format.version": "4.0"}, "message.format.version"),
        ({"message.format.version": "3.0-IV2"}, "message.format.version"),
        ({"message.format.version": "3.0-IV"}, "message.format.version"),
        ({"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"}, "min.compaction.lag.ms"),
        ({"flush.messages": "0"}, "flush.messages"),
        ({"segment.bytes": str(1 << 31)}, "segment.bytes"),
    ],
)
def test_bad_topic_settings_are_refused_by_name(overrides: dict[str, str], named: str) -> None:
    with pytest.raises(InvalidConfigurationError, match=re.escape(named)):
        validate_topic_config(overrides)


@pytest.mark.parametrize(
    "version", ["0.8.0", "0.10.2-IV0", "0.11.0.3", "1.0", "2.8-IV1", "3.9", "3.9.1", "3.9-IV0"]
)
def test_every_version_of_kafka_may_be_the_message_format(version: str) -> None:
    assert validate_topic_config({"message.format.version": version})


@pytest.mark.parametrize("value", ["*", "", "0:1,1:2"])
def test_throttled_replicas(value: str) -> None:
    validate_topic_config({"leader.replication.throttled.replicas": value})


def test_overrides_lie_over_defaults() -> None:
    defaults = LogConfig(retention_ms=1, segment_ms=2)

    config = LogConfig.from_overrides(defaults, {"segment.ms": "3", "log.roll.ms": "99"})

    assert (config.retention_ms, config.segment_ms) == (1, 3)
    assert config.overridden_configs == {"segment.ms"}


def test_older_timestamp_setting_counts_where_the_newer_is_not_set() -> None:
    config = LogConfig(message_timestamp_difference_max_ms=5, message_timestamp_after_max_ms=7)

    assert config.effective_timestamp_before_max_ms == 5
    assert config.effective_timestamp_after_max_ms == 7
    assert LogConfig().effective_timestamp_before_max_ms == LONG_MAX


@pytest.mark.parametrize(
    ("compression_type", "compression"),
    [
        ("producer", None),
        ("uncompressed", Compression(CompressionType.NONE)),
        ("gzip", Compression(CompressionType.GZIP, -1)),
        ("snappy", Compression(CompressionType.SNAPPY)),
        ("lz4", Compression(CompressionType.LZ4, 9)),
        ("zstd", Compression(CompressionType.ZSTD, 3)),
    ],
)
def test_compression(compression_type: str, compression: Compression | None) -> None:
    assert LogConfig(compression_type=compression_type).compression == compression


def test_jitter_is_below_both_bounds() -> None:
    rng = random.Random(1)

    assert LogConfig().random_segment_jitter(rng) == 0
    jitters = {
        LogConfig(segment_ms=10, segment_jitter_ms=50).random_segment_jitter(rng)
        for _ in range(200)
    }
    assert jitters == set(range(10))
    compacted = LogConfig(
        cleanup_policy=("compact",), max_compaction_lag_ms=1, segment_jitter_ms=50
    )
    assert compacted.random_segment_jitter(rng) == 0


def test_log_dir_is_the_single_form_of_log_dirs() -> None:
    assert parse(LogManagerConfig, {"log.dir": "/a"}).log_dirs == ("/a",)
    assert parse(LogManagerConfig, {"log.dir": "/a", "log.dirs": "/b, /c"}).log_dirs == (
        "/b",
        "/c",
    )
    with pytest.raises(InvalidConfigurationError, match=r"log\.dirs"):
        parse(LogManagerConfig, {"log.dirs": " , "})
