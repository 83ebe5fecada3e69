"""The purgatories in which requests about partitions wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkapy.common.types import TopicPartition
from kafkapy.purgatory.delayed_operation_purgatory import DelayedOperationPurgatory

if TYPE_CHECKING:
    from kafkapy.replication.delayed_delete_records import DelayedDeleteRecords
    from kafkapy.replication.delayed_fetch import DelayedFetch
    from kafkapy.replication.delayed_produce import DelayedProduce


class DelayedOperations:
    """Completes what waits for a partition. Thread-safe; never called with a partition lock held.

    Ports: kafka.cluster.DelayedOperations
    """

    def __init__(
        self,
        produce: DelayedOperationPurgatory[DelayedProduce],
        fetch: DelayedOperationPurgatory[DelayedFetch],
        delete_records: DelayedOperationPurgatory[DelayedDeleteRecords],
    ) -> None:
        self.produce = produce
        self.fetch = fetch
        self.delete_records = delete_records

    def check_and_complete_all(self, topic_partition: TopicPartition) -> None:
        """A watermark has moved, or this broker's role has changed."""
        self.fetch.check_and_complete(topic_partition)
        self.produce.check_and_complete(topic_partition)
        self.delete_records.check_and_complete(topic_partition)

    @property
    def num_delayed_delete(self) -> int:
        return self.delete_records.num_delayed

    def shutdown(self) -> None:
        self.fetch.shutdown()
        self.produce.shutdown()
        self.delete_records.shutdown()
