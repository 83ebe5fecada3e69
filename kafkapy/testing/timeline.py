"""What happened around a topic, for whoever has to find out why a test failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from kafkapy.testing.recorded_request import RecordedRequest
from kafkapy.testing.topic_reader import StoredRecord

_MEMBERSHIP = frozenset({"JoinGroup", "SyncGroup", "LeaveGroup"})
_MAX_LINES = 60
_MAX_RECORDS = 20


@dataclass(frozen=True, slots=True)
class GroupView:
    """A consumer group as the broker describes it."""

    state: str
    members: tuple[str, ...] = ()
    # committed offsets by topic and partition
    offsets: Mapping[tuple[str, int], int] = field(default_factory=dict)


def timeline(
    topic: str,
    *,
    requests: Sequence[RecordedRequest],
    records: Sequence[StoredRecord],
    groups: Mapping[str, GroupView],
) -> str:
    """Requests about the topic and of its groups, its records, and how the groups stand now."""
    concerned = {
        group
        for group, view in groups.items()
        if any(committed_topic == topic for committed_topic, _ in view.offsets)
    }
    concerned |= {g for request in requests if topic in request.topics for g in request.groups}
    lines = [f"requests about {topic}:", *_request_lines(topic, requests, concerned)]
    lines.append(f"records of {topic}: {len(records)}")
    if len(records) > _MAX_RECORDS:
        lines.append(f"  … {len(records) - _MAX_RECORDS} earlier ones")
    lines += [f"  {record}" for record in records[-_MAX_RECORDS:]]
    lines.append("groups:" if groups else "groups: none")
    for name, view in sorted(groups.items()):
        committed = ", ".join(
            f"{t}-{partition}@{offset}" for (t, partition), offset in sorted(view.offsets.items())
        )
        members = ", ".join(view.members) or "none"
        lines.append(f"  {name}: {view.state}; members: {members}; committed: {committed or '-'}")
    return "\n".join(lines)


def _request_lines(topic: str, requests: Sequence[RecordedRequest], groups: set[str]) -> list[str]:
    wanted = [
        request for request in requests if topic in request.topics or _is_of_group(request, groups)
    ]
    if not wanted:
        return ["  none"]
    start_ms = wanted[0].time_ms
    lines = []
    # A waiting consumer asks again and again: one line says so.
    for _, alike in groupby(wanted, key=lambda r: (r.api, r.client_id, r.outcome, r.errors)):
        same = list(alike)
        repeated = f" (and {len(same) - 1} more like it)" if len(same) > 1 else ""
        lines.append(f"  +{(same[0].time_ms - start_ms) / 1000:.3f} s {same[0]}{repeated}")
    if len(lines) > _MAX_LINES:
        lines = [f"  … {len(lines) - _MAX_LINES} earlier ones", *lines[-_MAX_LINES:]]
    return lines


def _is_of_group(request: RecordedRequest, groups: set[str]) -> bool:
    if not request.groups & groups:
        return False
    return request.api in _MEMBERSHIP or bool(request.errors)
