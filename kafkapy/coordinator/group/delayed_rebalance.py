"""Waiting for the members of a group to do their part of a rebalance."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from kafkapy.coordinator.group.group_metadata import GroupMetadata
from kafkapy.coordinator.group.group_state import GroupState
from kafkapy.purgatory.delayed_operation import DelayedOperation


class GroupJoinKey(NamedTuple):
    """Ports: kafka.server.GroupJoinKey"""

    group_id: str


class GroupSyncKey(NamedTuple):
    """Never equal to the GroupJoinKey of the same group.

    Ports: kafka.server.GroupSyncKey
    """

    group_id: str
    is_sync: bool = True


class RebalanceObserver(Protocol):
    """Carries out what the waiting was for."""

    def on_complete_join(self, group: GroupMetadata) -> None: ...

    def on_expire_pending_sync(self, group: GroupMetadata, generation_id: int) -> None: ...

    def on_expiration_done(self) -> None: ...


class DelayedRebalance(DelayedOperation):
    """Shares the group's lock, as whoever completes it may hold that.

    Ports: kafka.coordinator.group.DelayedRebalance
    """

    def __init__(self, observer: RebalanceObserver, group: GroupMetadata, timeout_ms: int) -> None:
        super().__init__(timeout_ms)
        self.lock = group.lock
        self._observer = observer
        self._group = group


class DelayedJoin(DelayedRebalance):
    """Completed when all known members have joined; after the time-out with those who have.

    Ports: kafka.coordinator.group.DelayedJoin
    """

    def try_complete(self) -> bool:
        with self._group.lock:
            return self._group.has_all_members_joined and self.force_complete()

    def on_complete(self) -> None:
        self._observer.on_complete_join(self._group)

    def on_expiration(self) -> None:
        self._observer.on_expiration_done()


class InitialDelayedJoin(DelayedJoin):
    """An empty group's first join: waits a while, and again as long as new members come in.

    Without it the first of many members to start would get all partitions, only to lose most of
    them again at once.

    Ports: kafka.coordinator.group.InitialDelayedJoin
    """

    def __init__(
        self,
        observer: RebalanceObserver,
        group: GroupMetadata,
        watch: Callable[[DelayedJoin, GroupMetadata], None],
        *,
        configured_delay_ms: int,
        delay_ms: int,
        remaining_ms: int,
    ) -> None:
        super().__init__(observer, group, delay_ms)
        self._watch = watch
        self._configured_delay_ms = configured_delay_ms
        self._remaining_ms = remaining_ms

    def try_complete(self) -> bool:
        return False

    def on_complete(self) -> None:
        with self._group.lock:
            if not self._group.new_member_added or self._remaining_ms == 0:
                super().on_complete()
                return
            self._group.new_member_added = False
            self._watch(
                InitialDelayedJoin(
                    self._observer,
                    self._group,
                    self._watch,
                    configured_delay_ms=self._configured_delay_ms,
                    delay_ms=min(self._configured_delay_ms, self._remaining_ms),
                    remaining_ms=max(self._remaining_ms - self.delay_ms, 0),
                ),
                self._group,
            )


class DelayedSync(DelayedRebalance):
    """Completed when all members have asked for their assignments; those who do not are removed.

    Ports: kafka.coordinator.group.DelayedSync
    """

    def __init__(self, observer: RebalanceObserver, group: GroupMetadata, timeout_ms: int) -> None:
        super().__init__(observer, group, timeout_ms)
        self._generation_id = group.generation_id

    def try_complete(self) -> bool:
        group = self._group
        with group.lock:
            waits_on = (
                group.generation_id == self._generation_id
                and group.is_in(GroupState.COMPLETING_REBALANCE, GroupState.STABLE)
                and not group.has_received_sync_from_all_members
            )
            return not waits_on and self.force_complete()

    def on_complete(self) -> None:
        """Nothing is to be done once all members have asked."""

    def on_expiration(self) -> None:
        self._observer.on_expire_pending_sync(self._group, self._generation_id)
