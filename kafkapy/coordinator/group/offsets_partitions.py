"""Which partitions of __consumer_offsets are coordinated here."""

from __future__ import annotations

import threading


class OffsetsPartitions:
    """The partitions that are owned or being loaded, each with the epoch it was told. Thread-safe.

    A partition is loaded for an epoch and given up for one; whoever comes with an older epoch than
    the last is too late and is refused.

    Ports: kafka.coordinator.group.GroupMetadataManager (its partitions)
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        # guarded by self.lock
        self._loading: set[int] = set()
        self._owned: set[int] = set()
        self._epochs: dict[int, int] = {}

    def is_owned(self, partition: int) -> bool:
        with self.lock:
            return partition in self._owned

    def is_loading(self, partition: int) -> bool:
        with self.lock:
            return partition in self._loading

    @property
    def is_loading_any(self) -> bool:
        with self.lock:
            return bool(self._loading)

    def start_loading(self, partition: int, epoch: int) -> bool:
        with self.lock:
            if not self._update_epoch_locked(partition, epoch):
                return False
            if partition in self._owned or partition in self._loading:
                return False
            self._loading.add(partition)
            return True

    def finish_loading(self, partition: int) -> None:
        """It is owned now, unless it was given up in the meantime."""
        with self.lock:
            if partition in self._loading:
                self._loading.remove(partition)
                self._owned.add(partition)

    def give_up(self, partition: int, epoch: int | None) -> bool:
        """None is for a partition that is gone, whatever its epoch: its successor begins anew."""
        with self.lock:
            if epoch is None:
                self._epochs.pop(partition, None)
            elif not self._update_epoch_locked(partition, epoch):
                return False
            self._owned.discard(partition)
            self._loading.discard(partition)
            return True

    def _update_epoch_locked(self, partition: int, epoch: int) -> bool:
        current = self._epochs.get(partition)
        if current is not None and epoch < current:
            return False
        self._epochs[partition] = epoch
        return True
