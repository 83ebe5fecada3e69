"""One member of a group."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kafkapy.coordinator.group.group_results import JoinCallback, SyncCallback

# A protocol's name and the member's metadata for it, by preference.
Protocols = Sequence[tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class MemberSummary:
    """Ports: kafka.coordinator.group.MemberSummary"""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@dataclass(slots=True, eq=False, kw_only=True)
class MemberMetadata:
    """A member and what it waits for. Guarded by its group's lock.

    A callback that is set is a request that has not been answered yet. `is_new` holds from the
    first join until the member gets its first generation.

    Ports: kafka.coordinator.group.MemberMetadata
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    supported_protocols: Protocols
    assignment: bytes = b""
    awaiting_join_callback: JoinCallback | None = None
    awaiting_sync_callback: SyncCallback | None = None
    is_new: bool = False
    heartbeat_satisfied: bool = False

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def is_awaiting_join(self) -> bool:
        return self.awaiting_join_callback is not None

    @property
    def is_awaiting_sync(self) -> bool:
        return self.awaiting_sync_callback is not None

    @property
    def has_satisfied_heartbeat(self) -> bool:
        if self.is_new:
            # It cannot send heartbeats yet: it is given up if it does not get its generation.
            return self.heartbeat_satisfied
        # A member that waits for our answer cannot be expected to send heartbeats.
        return self.is_awaiting_join or self.is_awaiting_sync or self.heartbeat_satisfied

    @property
    def protocol_names(self) -> list[str]:
        return [name for name, _ in self.supported_protocols]

    def metadata(self, protocol: str) -> bytes:
        for name, metadata in self.supported_protocols:
            if name == protocol:
                return metadata
        raise ValueError(f"member {self.member_id} does not support the protocol {protocol}")

    def matches(self, protocols: Protocols) -> bool:
        """Whether the member would join just as it did before."""
        return list(self.supported_protocols) == list(protocols)

    def vote(self, candidates: Collection[str]) -> str:
        """The member's favourite among the protocols that all members support."""
        for name, _ in self.supported_protocols:
            if name in candidates:
                return name
        raise ValueError(f"member {self.member_id} supports none of {sorted(candidates)}")

    def summary(self, protocol: str | None) -> MemberSummary:
        return MemberSummary(
            self.member_id,
            self.group_instance_id,
            self.client_id,
            self.client_host,
            self.metadata(protocol) if protocol is not None else b"",
            self.assignment if protocol is not None else b"",
        )
