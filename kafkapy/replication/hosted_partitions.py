"""The partitions that this broker has a replica of."""

from __future__ import annotations

import threading
from collections.abc import Callable

from kafkapy.common.errors import Errors, KafkaStorageError
from kafkapy.common.types import TopicPartition
from kafkapy.metadata.metadata_cache import MetadataCache
from kafkapy.replication.partition import Partition


class HostedPartitions:
    """Online partitions by name, and which ones are offline with their log directory. Thread-safe.

    Looking one up takes no lock: it is done for every partition of every produce and fetch.

    Ports: kafka.server.HostedPartition
    """

    def __init__(self, metadata_cache: MetadataCache) -> None:
        self._metadata_cache = metadata_cache
        self._lock = threading.Lock()
        # changed under self._lock
        self._online: dict[TopicPartition, Partition] = {}
        self._offline: set[TopicPartition] = set()

    def get(self, topic_partition: TopicPartition) -> Partition | None:
        """The partition, if it is online here."""
        return self._online.get(topic_partition)

    def get_or_raise(self, topic_partition: TopicPartition) -> Partition:
        partition = self._online.get(topic_partition)
        if partition is not None:
            return partition
        error = self._error_of_missing(topic_partition)
        if error is Errors.KAFKA_STORAGE_ERROR:
            raise KafkaStorageError(f"{topic_partition} is in an offline log directory")
        raise error.exception(f"this broker does not host {topic_partition}")

    def get_or_error(self, topic_partition: TopicPartition) -> Partition | Errors:
        return self._online.get(topic_partition) or self._error_of_missing(topic_partition)

    def _error_of_missing(self, topic_partition: TopicPartition) -> Errors:
        if topic_partition in self._offline:
            return Errors.KAFKA_STORAGE_ERROR
        if self._metadata_cache.contains(topic_partition):
            # It exists, so the client's metadata is out of date, or ours is on its way.
            return Errors.NOT_LEADER_OR_FOLLOWER
        return Errors.UNKNOWN_TOPIC_OR_PARTITION

    def is_offline(self, topic_partition: TopicPartition) -> bool:
        return topic_partition in self._offline

    def get_or_create(
        self, topic_partition: TopicPartition, create: Callable[[TopicPartition], Partition]
    ) -> Partition:
        with self._lock:
            partition = self._online.get(topic_partition)
            if partition is None:
                partition = self._online[topic_partition] = create(topic_partition)
            return partition

    def remove(self, topic_partition: TopicPartition) -> Partition | None:
        """The partition removed, if it was online; an offline one is kept in mind."""
        with self._lock:
            return self._online.pop(topic_partition, None)

    def mark_offline(self, topic_partition: TopicPartition) -> Partition | None:
        """The partition that was online until now."""
        with self._lock:
            self._offline.add(topic_partition)
            return self._online.pop(topic_partition, None)

    def online(self) -> list[Partition]:
        with self._lock:
            return list(self._online.values())

    def leaders(self) -> list[Partition]:
        return [partition for partition in self.online() if partition.is_leader]

    def has_topic(self, topic: str) -> bool:
        with self._lock:
            return any(topic_partition.topic == topic for topic_partition in self._online)

    @property
    def count(self) -> int:
        return len(self._online) + len(self._offline)

    @property
    def offline_count(self) -> int:
        return len(self._offline)
