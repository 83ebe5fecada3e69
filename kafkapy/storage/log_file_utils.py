"""The names of every file and directory that the storage layer makes.

Ports: org.apache.kafka.storage.internals.log.LogFileUtils
"""

import os
import re
import uuid

from kafkapy.common.errors import KafkaError
from kafkapy.common.types import TopicPartition

# Files of a segment: a 20-digit base offset, then one of these.
LOG_FILE_SUFFIX = ".log"
INDEX_FILE_SUFFIX = ".index"
TIME_INDEX_FILE_SUFFIX = ".timeindex"
TXN_INDEX_FILE_SUFFIX = ".txnindex"
PRODUCER_SNAPSHOT_FILE_SUFFIX = ".snapshot"

# A second suffix says that the file is on its way in or out.
DELETED_FILE_SUFFIX = ".deleted"
CLEANED_FILE_SUFFIX = ".cleaned"
SWAP_FILE_SUFFIX = ".swap"

# Directories of a partition: "topic-partition", with one of these when it is not in normal use.
DELETE_DIR_SUFFIX = "-delete"
FUTURE_DIR_SUFFIX = "-future"
STRAY_DIR_SUFFIX = "-stray"

# Files of a partition.
LEADER_EPOCH_CHECKPOINT_FILE = "leader-epoch-checkpoint"
PARTITION_METADATA_FILE = "partition.metadata"

# Files of a log directory.
RECOVERY_POINT_CHECKPOINT_FILE = "recovery-point-offset-checkpoint"
REPLICATION_OFFSET_CHECKPOINT_FILE = "replication-offset-checkpoint"
LOG_START_OFFSET_CHECKPOINT_FILE = "log-start-offset-checkpoint"
CLEANER_OFFSET_CHECKPOINT_FILE = "cleaner-offset-checkpoint"
META_PROPERTIES_FILE = "meta.properties"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
LOCK_FILE = ".lock"

_MAX_NAME_LENGTH = 255
_UNIQUE_DIR = re.compile(
    r"^(\S+)-(\d+)\.([0-9a-f]{32})(-delete|-future|-stray)$", re.ASCII | re.DOTALL
)


def filename_prefix_from_offset(offset: int) -> str:
    """Zero-padded, so that names sort as offsets do."""
    return f"{offset:020d}"


def log_file(directory: str, base_offset: int, suffix: str = "") -> str:
    return f"{directory}/{base_offset:020d}{LOG_FILE_SUFFIX}{suffix}"


def offset_index_file(directory: str, base_offset: int, suffix: str = "") -> str:
    return f"{directory}/{base_offset:020d}{INDEX_FILE_SUFFIX}{suffix}"


def time_index_file(directory: str, base_offset: int, suffix: str = "") -> str:
    return f"{directory}/{base_offset:020d}{TIME_INDEX_FILE_SUFFIX}{suffix}"


def transaction_index_file(directory: str, base_offset: int, suffix: str = "") -> str:
    return f"{directory}/{base_offset:020d}{TXN_INDEX_FILE_SUFFIX}{suffix}"


def producer_snapshot_file(directory: str, offset: int) -> str:
    return f"{directory}/{offset:020d}{PRODUCER_SNAPSHOT_FILE_SUFFIX}"


def offset_from_file_name(name: str) -> int | None:
    """The offset that a segment or snapshot file is named after, if it is such a file."""
    prefix, dot, _ = os.path.basename(name).partition(".")
    return int(prefix) if dot and prefix.isascii() and prefix.isdigit() else None


def is_log_file(name: str) -> bool:
    return name.endswith(LOG_FILE_SUFFIX)


def is_index_file(name: str) -> bool:
    return name.endswith((INDEX_FILE_SUFFIX, TIME_INDEX_FILE_SUFFIX, TXN_INDEX_FILE_SUFFIX))


def log_dir_name(topic_partition: TopicPartition) -> str:
    return f"{topic_partition.topic}-{topic_partition.partition}"


def log_delete_dir_name(topic_partition: TopicPartition) -> str:
    """Unique, so that a topic can be deleted and made anew while the old files wait."""
    return _unique_dir_name(topic_partition, DELETE_DIR_SUFFIX)


def log_stray_dir_name(topic_partition: TopicPartition) -> str:
    return _unique_dir_name(topic_partition, STRAY_DIR_SUFFIX)


def log_future_dir_name(topic_partition: TopicPartition) -> str:
    unique = uuid.uuid4().hex
    return f"{log_dir_name(topic_partition)}.{unique}{FUTURE_DIR_SUFFIX}"


def _unique_dir_name(topic_partition: TopicPartition, suffix: str) -> str:
    tail = f"-{topic_partition.partition}.{uuid.uuid4().hex}{suffix}"
    return topic_partition.topic[: _MAX_NAME_LENGTH - len(tail)] + tail


def parse_topic_partition_name(directory: str) -> TopicPartition:
    """The partition that a directory belongs to; raises KafkaError if it is not one of ours."""
    name = os.path.basename(directory)
    if name.endswith((DELETE_DIR_SUFFIX, FUTURE_DIR_SUFFIX, STRAY_DIR_SUFFIX)):
        unique = _UNIQUE_DIR.match(name)
        topic, partition = (unique.group(1), unique.group(2)) if unique else ("", "")
    else:
        topic, _, partition = name.rpartition("-")
    if not topic or not (partition.isascii() and partition.isdigit()):
        raise KafkaError(
            f"The directory {directory} is not named like a partition (topic-partition). Kafka's "
            "log directories hold nothing else: move it away"
        )
    return TopicPartition(topic, int(partition))
