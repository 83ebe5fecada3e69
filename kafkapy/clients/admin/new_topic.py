"""What to make: topics and partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

BROKER_DEFAULT = -1


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to be created. Without a number the broker's defaults apply.

    `replica_assignments` gives the brokers of each partition, the preferred leader first, in place
    of both numbers.

    Ports: org.apache.kafka.clients.admin.NewTopic
    """

    name: str
    num_partitions: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    replica_assignments: Mapping[int, Sequence[int]] | None = None
    topic_configs: Mapping[str, str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        numbers = {self.num_partitions, self.replication_factor}
        if self.replica_assignments is not None and numbers != {BROKER_DEFAULT}:
            raise ValueError(
                f"topic {self.name!r}: replica_assignments say how many partitions and replicas"
                " there are; num_partitions and replication_factor cannot be given too"
            )


@dataclass(frozen=True, slots=True)
class NewPartitions:
    """How many partitions a topic is to have, and where the new ones are to be.

    Ports: org.apache.kafka.clients.admin.NewPartitions
    """

    total_count: int
    new_assignments: Sequence[Sequence[int]] | None = None
