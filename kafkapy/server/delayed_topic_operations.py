"""Admin requests that wait until the cluster has done what they asked for."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from kafkapy.metadata.leader_and_isr import NO_LEADER
from kafkapy.metadata.metadata_cache import MetadataCache
from kafkapy.purgatory.delayed_operation import DelayedOperation

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TopicKey:
    """What such operations are watched under.

    Ports: kafka.server.TopicKey
    """

    topic: str


class DelayedCreatePartitions(DelayedOperation):
    """Done when every partition of every topic has a leader that this broker knows of.

    Ports: kafka.server.DelayedCreatePartitions
    """

    def __init__(
        self,
        timeout_ms: int,
        partition_counts: dict[str, int],
        metadata_cache: MetadataCache,
        on_done: Callable[[set[str]], None],
    ) -> None:
        super().__init__(timeout_ms)
        self._partition_counts = partition_counts
        self._metadata_cache = metadata_cache
        self._on_done = on_done  # told which topics are still without some leader

    def try_complete(self) -> bool:
        return not self._unfinished() and self.force_complete()

    def on_complete(self) -> None:
        self._on_done(self._unfinished())

    def on_expiration(self) -> None:
        log.info("Creating partitions of %s took too long", sorted(self._unfinished()))

    def _unfinished(self) -> set[str]:
        return {
            topic
            for topic, count in self._partition_counts.items()
            if any(not self._has_leader(topic, partition) for partition in range(count))
        }

    def _has_leader(self, topic: str, partition: int) -> bool:
        state = self._metadata_cache.get_partition_info(topic, partition)
        return state is not None and state.leader != NO_LEADER


class DelayedDeleteTopics(DelayedOperation):
    """Done when none of the topics is known any more.

    Ports: kafka.server.DelayedDeleteTopics
    """

    def __init__(
        self,
        timeout_ms: int,
        topics: set[str],
        metadata_cache: MetadataCache,
        on_done: Callable[[set[str]], None],
    ) -> None:
        super().__init__(timeout_ms)
        self._topics = topics
        self._metadata_cache = metadata_cache
        self._on_done = on_done  # told which topics are still there

    def try_complete(self) -> bool:
        return not self._unfinished() and self.force_complete()

    def on_complete(self) -> None:
        self._on_done(self._unfinished())

    def on_expiration(self) -> None:
        log.info("Deleting %s took too long", sorted(self._unfinished()))

    def _unfinished(self) -> set[str]:
        return {topic for topic in self._topics if self._metadata_cache.contains_topic(topic)}
