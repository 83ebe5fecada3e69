"""What kafka-consumer-groups shows of groups."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby

from kafkapy.clients.admin import (
    AdminClient,
    ConsumerGroupDescription,
    ConsumerGroupState,
    GroupType,
    MemberDescription,
    OffsetSpec,
)
from kafkapy.clients.consumer.offset_and_metadata import OffsetAndMetadata
from kafkapy.common.types import TopicPartition

_MISSING = "-"
_REBALANCING = frozenset(
    {
        ConsumerGroupState.PREPARING_REBALANCE,
        ConsumerGroupState.COMPLETING_REBALANCE,
        ConsumerGroupState.ASSIGNING,
        ConsumerGroupState.RECONCILING,
    }
)


class ConsumerGroupReport:
    """Tables of groups, one after the other. For one thread.

    A print method returns whether all groups exist; those that do not are named on standard error.

    Ports: org.apache.kafka.tools.consumer.group.ConsumerGroupCommand.ConsumerGroupService
    """

    def __init__(self, admin: AdminClient, timeout_ms: int) -> None:
        # constant after construction
        self._admin = admin
        self._timeout_ms = timeout_ms

    def print_list(
        self,
        states: Collection[ConsumerGroupState],
        types: Collection[GroupType],
        *,
        shows_states: bool,
        shows_types: bool,
    ) -> None:
        groups = self._admin.list_consumer_groups(
            states=states, group_types=types, timeout_ms=self._timeout_ms
        )
        header = ["GROUP", *(["TYPE"] if shows_types else []), *(["STATE"] if shows_states else [])]
        if len(header) == 1:
            for group in groups:
                print(group.group_id)
            return
        rows = [
            [
                group.group_id,
                *([_value(group.group_type)] if shows_types else []),
                *([_value(group.state)] if shows_states else []),
            ]
            for group in groups
        ]
        group_width = max([15, *(len(group.group_id) for group in groups)]) + 10
        _print_columns(header, rows, [group_width, 20, 20][: len(header)])

    def print_offsets(self, groups: Iterable[str]) -> bool:
        all_exist = True
        for group in self._described(groups):
            if not _exists(group):
                all_exist = False
                continue
            rows = self._offset_rows(group)
            _warn_of_state(group)
            if rows:
                header = ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"]
                print()
                _print_columns(
                    [*header, "CONSUMER-ID", "HOST", "CLIENT-ID"],
                    rows,
                    [15, 15, 10, 15, 15, 15, 15, 15, 0],
                )
        return all_exist

    def print_members(self, groups: Iterable[str], *, verbose: bool) -> bool:
        all_exist = True
        for group in self._described(groups):
            if not _exists(group):
                all_exist = False
                continue
            _warn_of_state(group)
            has_instances = any(member.group_instance_id for member in group.members)
            header = ["GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID"]
            header += ["#PARTITIONS", "ASSIGNMENT"]
            widths = [15, 15, 17, 15, 15, 15, 0]
            rows = [
                [
                    group.group_id,
                    member.member_id,
                    member.group_instance_id or "",
                    member.host,
                    member.client_id,
                    len(member.assignment),
                    _assignment(member),
                ]
                for member in _by_assignment(group.members)
            ]
            shown = [
                column
                for column in range(len(header))
                if (column != 2 or has_instances) and (column != 6 or verbose)
            ]
            print()
            _print_columns(
                [header[column] for column in shown],
                [[row[column] for column in shown] for row in rows],
                [widths[column] for column in shown],
            )
        return all_exist

    def print_states(self, groups: Iterable[str]) -> bool:
        all_exist = True
        for group in self._described(groups):
            if not _exists(group):
                all_exist = False
                continue
            _warn_of_state(group)
            node = group.coordinator
            coordinator = f"{node.host}:{node.port}  ({node.id})"
            header = ("GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS")
            row = (
                *(group.group_id, coordinator, group.partition_assignor),
                *(group.state.value, len(group.members)),
            )
            # The other tables grow with what is in them; this one does not in Kafka either.
            width = max(25, len(coordinator))
            print()
            for cells in (header, row):
                print("{:<{width}} {:<25} {:<20} {:<15} {}".format(*cells, width=width))
        return all_exist

    def _described(self, groups: Iterable[str]) -> list[ConsumerGroupDescription]:
        groups = tuple(groups)
        described = self._admin.describe_consumer_groups(groups, timeout_ms=self._timeout_ms)
        return [described[group] for group in groups]

    def _offset_rows(self, group: ConsumerGroupDescription) -> list[list[object]]:
        committed = self._admin.list_consumer_group_offsets(
            group.group_id, timeout_ms=self._timeout_ms
        )
        members = [member for member in _by_assignment(group.members) if member.assignment]
        assigned = {partition for member in members for partition in member.assignment}
        unassigned = sorted(committed.keys() - assigned)
        ends = self._log_end_offsets(sorted(assigned | committed.keys()))
        rows = []
        for member in members:
            who = [member.member_id, member.host, member.client_id]
            for partition in sorted(member.assignment):
                rows.append(_offset_row(group, partition, committed, ends) + who)
        for partition in unassigned:
            rows.append(_offset_row(group, partition, committed, ends) + [_MISSING] * 3)
        return rows

    def _log_end_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Without those of partitions that have no leader to ask."""
        listed = self._admin.list_offsets(
            dict.fromkeys(partitions, OffsetSpec.LATEST),
            timeout_ms=self._timeout_ms,
            raise_errors=False,
        )
        return {partition: info.offset for partition, info in listed.successes.items()}


def _offset_row(
    group: ConsumerGroupDescription,
    partition: TopicPartition,
    committed: dict[TopicPartition, OffsetAndMetadata | None],
    ends: dict[TopicPartition, int],
) -> list[object]:
    position = committed.get(partition)
    end = ends.get(partition)
    return [
        group.group_id,
        partition.topic,
        partition.partition,
        _MISSING if position is None else position.offset,
        _MISSING if end is None else end,
        _MISSING if position is None or end is None else end - position.offset,
    ]


def _by_assignment(members: Iterable[MemberDescription]) -> list[MemberDescription]:
    """Those with most partitions first."""
    return sorted(members, key=lambda member: (-len(member.assignment), member.member_id))


def _assignment(member: MemberDescription) -> str:
    by_topic = groupby(sorted(member.assignment), key=lambda partition: partition.topic)
    texts = [
        f"{topic}({','.join(str(partition.partition) for partition in partitions)})"
        for topic, partitions in by_topic
    ]
    return ", ".join(texts) or _MISSING


def _exists(group: ConsumerGroupDescription) -> bool:
    """A group that does not exist is described as dead."""
    if group.state is not ConsumerGroupState.DEAD:
        return True
    print(f"Error: Consumer group '{group.group_id}' does not exist.", file=sys.stderr)
    return False


def _warn_of_state(group: ConsumerGroupDescription) -> None:
    if group.state is ConsumerGroupState.EMPTY:
        print(f"Consumer group '{group.group_id}' has no active members.", file=sys.stderr)
    elif group.state in _REBALANCING:
        print(f"Warning: Consumer group '{group.group_id}' is rebalancing.", file=sys.stderr)


def _value(member: ConsumerGroupState | GroupType | None) -> str:
    return _MISSING if member is None else member.value


def _print_columns(
    header: Sequence[str], rows: Sequence[Sequence[object]], min_widths: Sequence[int]
) -> None:
    """Columns as wide as their widest cell, and at least so wide; the last one's width 0: free."""
    lines = [list(header), *([str(cell) for cell in row] for row in rows)]
    widths = [
        max(least, *map(len, column)) if least else 0
        for least, column in zip(min_widths, zip(*lines, strict=True), strict=True)
    ]
    for line in lines:
        cells = (f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True))
        print(" ".join(cells))
