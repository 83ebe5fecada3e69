"""What the replica manager asks of those who copy from leaders."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from kafkapy.common.types import TopicPartition
from kafkapy.metadata.broker import Node


@dataclass(frozen=True, slots=True)
class InitialFetchState:
    """Where a follower begins to fetch.

    Ports: kafka.server.InitialFetchState
    """

    topic_id: UUID | None
    leader: Node
    current_leader_epoch: int
    init_offset: int


class FetcherManager(Protocol):
    """Ports: kafka.server.AbstractFetcherManager"""

    def add_fetcher_for_partitions(
        self, partitions: Mapping[TopicPartition, InitialFetchState]
    ) -> None: ...

    def remove_fetcher_for_partitions(self, partitions: Collection[TopicPartition]) -> None: ...

    def shutdown_idle_fetcher_threads(self) -> None: ...

    def shutdown(self) -> None: ...
