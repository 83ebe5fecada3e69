"""The time-out of a member."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from kafkapy.coordinator.group.group_metadata import GroupMetadata
from kafkapy.purgatory.delayed_operation import DelayedOperation


class MemberKey(NamedTuple):
    """What a heartbeat completes.

    Ports: kafka.server.MemberKey
    """

    group_id: str
    member_id: str


class HeartbeatObserver(Protocol):
    """Decides what a heartbeat means."""

    def has_heartbeat(self, group: GroupMetadata, member_id: str, *, is_pending: bool) -> bool: ...

    def on_expire_heartbeat(
        self, group: GroupMetadata, member_id: str, *, is_pending: bool
    ) -> None: ...

    def on_expiration_done(self) -> None: ...


class DelayedHeartbeat(DelayedOperation):
    """Completed by the member's next heartbeat; if none comes, the member is removed.

    A pending member has its id and is expected to join with it.

    Ports: kafka.coordinator.group.DelayedHeartbeat
    """

    def __init__(
        self,
        observer: HeartbeatObserver,
        group: GroupMetadata,
        member_id: str,
        *,
        is_pending: bool,
        timeout_ms: int,
    ) -> None:
        super().__init__(timeout_ms)
        # One lock for both: whoever completes operations of a group may hold the group's.
        self.lock = group.lock
        self._observer = observer
        self._group = group
        self._member_id = member_id
        self._is_pending = is_pending

    def run(self) -> None:
        # Nothing may come between: a heartbeat that was answered keeps the member.
        with self.lock:
            if not self.force_complete():
                return
            self.on_expiration()
        self._observer.on_expiration_done()

    def try_complete(self) -> bool:
        if self._observer.has_heartbeat(self._group, self._member_id, is_pending=self._is_pending):
            return self.force_complete()
        return False

    def on_expiration(self) -> None:
        self._observer.on_expire_heartbeat(
            self._group, self._member_id, is_pending=self._is_pending
        )

    def on_complete(self) -> None:
        """Nothing is to be done for a member that is alive."""
