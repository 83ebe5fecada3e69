"""Producer ids, unique in the cluster and over restarts."""

from __future__ import annotations

import threading
from collections.abc import Callable

from kafkapy.zk.zk_data import ProducerIdsBlock


class ProducerIdManager:
    """Hands out ids from a claimed block, claiming the next when it is used up. Thread-safe.

    Ids left in a block when the broker stops are never used: uniqueness needs nothing else.

    Ports: org.apache.kafka.coordinator.transaction.ProducerIdManager
    """

    def __init__(self, allocate_block: Callable[[], ProducerIdsBlock]) -> None:
        self._allocate_block = allocate_block  # constant after construction; claims durably
        self._lock = threading.Lock()
        # guarded by self._lock
        self._block: ProducerIdsBlock | None = None
        self._next_id = 0

    def generate_producer_id(self) -> int:
        with self._lock:
            if self._block is None or self._next_id > self._block.last_producer_id:
                self._block = self._allocate_block()
                self._next_id = self._block.first_producer_id
            producer_id = self._next_id
            self._next_id += 1
            return producer_id
