"""Which groups wait for a transaction to end."""

from __future__ import annotations

import threading


class ProducerGroups:
    """The groups that hold commits of a producer's open transaction. Thread-safe.

    Ports: kafka.coordinator.group.GroupMetadataManager.openGroupsForProducer
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: dict[int, set[str]] = {}  # guarded by self._lock

    def groups(self, producer_id: int) -> list[str]:
        with self._lock:
            return list(self._groups.get(producer_id, ()))

    def add(self, producer_id: int, group_id: str) -> None:
        with self._lock:
            self._groups.setdefault(producer_id, set()).add(group_id)

    def remove(self, producer_id: int, group_id: str) -> None:
        with self._lock:
            self._discard_locked(producer_id, group_id)

    def remove_group(self, group_id: str) -> None:
        with self._lock:
            for producer_id in list(self._groups):
                self._discard_locked(producer_id, group_id)

    def _discard_locked(self, producer_id: int, group_id: str) -> None:
        groups = self._groups.get(producer_id)
        if groups is not None:
            groups.discard(group_id)
            if not groups:
                del self._groups[producer_id]
