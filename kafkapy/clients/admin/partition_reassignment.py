from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PartitionReassignment:
    """A partition on its way to other brokers.

    Ports: org.apache.kafka.clients.admin.PartitionReassignment
    """

    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]
