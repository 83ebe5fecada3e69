"""How a leader has its ISR changed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Protocol

from kafkapy.common.errors import InvalidUpdateVersionError, KafkaError
from kafkapy.common.types import TopicIdPartition, TopicPartition
from kafkapy.metadata.leader_and_isr import LeaderAndIsr, LeaderIsrAndControllerEpoch
from kafkapy.utils.scheduler import Scheduler
from kafkapy.utils.time import Time
from kafkapy.zk.kafka_zk_client import KafkaZkClient
from kafkapy.zk.zk_data import TopicPartitionStateZNode
from kafkapy.zk.znode_client import ZnodeClient

logger = logging.getLogger(__name__)

ISR_CHANGE_CHECK_INTERVAL_MS = 2_500
ISR_CHANGE_LINGER_MS = 5_000
ISR_CHANGE_MAX_DELAY_MS = 60_000
RETRY_BACKOFF_MS = 1_000

AlterPartitionCallback = Callable[[LeaderAndIsr | KafkaError], None]


class AlterPartitionManager(Protocol):
    """Gets a proposed ISR accepted; the callback gets what was written, or why nothing was.

    Ports: kafka.server.AlterPartitionManager
    """

    def start(self) -> None: ...

    def shutdown(self) -> None: ...

    def submit(
        self,
        topic_id_partition: TopicIdPartition,
        leader_and_isr: LeaderAndIsr,
        controller_epoch: int,
        callback: AlterPartitionCallback,
    ) -> None:
        """Called with no partition lock held: the callback may run before this returns."""
        ...


class ZkAlterPartitionManager:
    """Writes the ISR to the partition's state znode and lets the controller know. Thread-safe.

    Notifications are gathered: they go out when no change has come for a while, or when the last
    ones went out long ago.

    Ports: kafka.server.ZkAlterPartitionManager
    """

    def __init__(self, scheduler: Scheduler, time: Time, zk_client: KafkaZkClient) -> None:
        self._scheduler = scheduler
        self._time = time
        self._zk_client = zk_client
        self._lock = threading.Lock()
        # guarded by self._lock
        self._changed: set[TopicPartition] = set()
        self._last_change_ms = time.hi_res_clock_ms()
        self._last_propagation_ms = time.hi_res_clock_ms()

    def start(self) -> None:
        self._scheduler.schedule(
            "isr-change-propagation",
            self.maybe_propagate_isr_changes,
            period_ms=ISR_CHANGE_CHECK_INTERVAL_MS,
        )

    def shutdown(self) -> None:
        """Nothing of its own to stop: the scheduler ends the propagation."""

    def submit(
        self,
        topic_id_partition: TopicIdPartition,
        leader_and_isr: LeaderAndIsr,
        controller_epoch: int,
        callback: AlterPartitionCallback,
    ) -> None:
        topic_partition = topic_id_partition.topic_partition
        try:
            written, version = self._zk_client.znodes.conditional_update_path(
                TopicPartitionStateZNode.path(topic_partition),
                TopicPartitionStateZNode.encode(
                    LeaderIsrAndControllerEpoch(leader_and_isr, controller_epoch)
                ),
                leader_and_isr.partition_epoch,
                _check_partition_state,
            )
        except KafkaError as error:
            # Nobody knows whether it was written, so the proposal stands until that is known.
            logger.warning("The ISR of %s will be written again: %s", topic_partition, error)
            self._scheduler.schedule_once(
                "isr-update-retry",
                lambda: self.submit(topic_id_partition, leader_and_isr, controller_epoch, callback),
                RETRY_BACKOFF_MS,
            )
            return
        if not written:
            callback(
                InvalidUpdateVersionError(
                    f"the state of {topic_partition} is no longer at version "
                    f"{leader_and_isr.partition_epoch}"
                )
            )
            return
        with self._lock:
            self._changed.add(topic_partition)
            self._last_change_ms = self._time.hi_res_clock_ms()
        callback(leader_and_isr.with_partition_epoch(version))

    def maybe_propagate_isr_changes(self) -> None:
        now_ms = self._time.hi_res_clock_ms()
        with self._lock:
            if not self._changed or not (
                self._last_change_ms + ISR_CHANGE_LINGER_MS < now_ms
                or self._last_propagation_ms + ISR_CHANGE_MAX_DELAY_MS < now_ms
            ):
                return
            changed, self._changed = self._changed, set()
            self._last_propagation_ms = now_ms
        try:
            self._zk_client.propagate_isr_changes(changed)
        except KafkaError:
            with self._lock:
                self._changed |= changed
            raise


def _check_partition_state(znodes: ZnodeClient, path: str, data: bytes) -> tuple[bool, int]:
    """Whether the znode that has moved on holds just what we meant to write: the answer to an
    earlier try of the same write may have been lost."""
    stored, version = znodes.get_data_and_version(path)
    return stored == data, version
