"""What an application may do when its partitions change."""

from __future__ import annotations

from collections.abc import Collection

from kafkapy.common.types import TopicPartition


class ConsumerRebalanceListener:
    """Told of partitions that come and go, in the thread that polls. Override what is needed.

    A method that raises makes the poll it runs in raise, once the rebalance is through.

    Ports: org.apache.kafka.clients.consumer.ConsumerRebalanceListener
    """

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """Before the partitions go to other members: the last chance to commit for them."""

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """After the partitions have come; with a cooperative assignor only the new ones."""

    def on_partitions_lost(self, lost: Collection[TopicPartition]) -> None:
        """The partitions are gone already, and others may be reading them."""
        self.on_partitions_revoked(lost)
