from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReplicaAssignment:
    """The replicas of a partition, preferred leader first, and those on their way in or out.

    While a reassignment runs, `replicas` holds both the old and the new ones. Immutable.

    Ports: kafka.controller.ReplicaAssignment
    """

    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()

    @staticmethod
    def of(replicas: Sequence[int]) -> ReplicaAssignment:
        return ReplicaAssignment(tuple(replicas))

    @property
    def origin_replicas(self) -> tuple[int, ...]:
        return tuple(r for r in self.replicas if r not in self.adding_replicas)

    @property
    def target_replicas(self) -> tuple[int, ...]:
        return tuple(r for r in self.replicas if r not in self.removing_replicas)

    @property
    def is_being_reassigned(self) -> bool:
        return bool(self.adding_replicas or self.removing_replicas)

    def reassign_to(self, target: Sequence[int]) -> ReplicaAssignment:
        """The assignment with which a move to `target` begins, target replicas first."""
        origin = self.origin_replicas
        union = dict.fromkeys((*target, *origin))
        return ReplicaAssignment(
            replicas=tuple(union),
            adding_replicas=tuple(r for r in union if r not in origin),
            removing_replicas=tuple(r for r in union if r not in target),
        )

    def remove_replica(self, replica: int) -> ReplicaAssignment:
        return ReplicaAssignment(
            replicas=tuple(r for r in self.replicas if r != replica),
            adding_replicas=tuple(r for r in self.adding_replicas if r != replica),
            removing_replicas=tuple(r for r in self.removing_replicas if r != replica),
        )
