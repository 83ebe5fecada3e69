import threading

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.types import TopicPartition
from kafkapy.coordinator.group.group_metadata_records import GroupKey, OffsetKey, read_key
from kafkapy.replication.partition import Partition
from tests.unit.coordinator.group.conftest import MakeGroups
from tests.unit.coordinator.group.harness import (
    GROUP,
    INITIAL_DELAY_MS,
    TP,
    GroupHarness,
    subscription,
)

MINUTE_MS = 60_000
OTHER = TopicPartition("u", 0)


@pytest.fixture
def quick(make_groups: MakeGroups) -> GroupHarness:
    """Offsets are kept for two minutes and looked at every minute."""
    return make_groups(
        **{"offsets.retention.minutes": 2, "offsets.retention.check.interval.ms": MINUTE_MS}
    )


def keep_alive(groups: GroupHarness, member_id: str, generation_id: int, ms: int) -> None:
    for _ in range(ms // 5_000):
        groups.pass_ms(5_000)
        assert groups.heartbeat(member_id, generation_id) is Errors.NONE


# Describing and listing


def test_unknown_group_is_described_as_dead(groups: GroupHarness) -> None:
    error, summary = groups.coordinator.handle_describe_group("other")

    assert (error, summary.state, summary.members) == (Errors.NONE, "Dead", ())


def test_stable_group_is_described_with_its_members(groups: GroupHarness) -> None:
    members, _ = groups.stable_group(2)

    error, summary = groups.coordinator.handle_describe_group(GROUP)

    assert (error, summary.state) == (Errors.NONE, "Stable")
    assert (summary.protocol_type, summary.protocol) == ("consumer", "range")
    described = {m.member_id: m for m in summary.members}
    assert set(described) == set(members)
    assert described[members[0]].assignment == b"of " + members[0].encode()
    assert described[members[0]].client_host == "/127.0.0.1"


@pytest.mark.parametrize(
    ("states", "types", "expected"),
    [
        ([], [], {"empty", "stable"}),
        (["stable"], [], {"stable"}),
        (["Empty", "Dead"], [], {"empty"}),
        ([], ["Classic"], {"empty", "stable"}),
        ([], ["consumer"], set()),
        (["nonsense"], [], set()),
        (["Stable"], ["classic"], {"stable"}),
    ],
)
def test_groups_are_listed_by_state_and_type(
    groups: GroupHarness, states: list, types: list, expected: set
) -> None:
    groups.stable_group(group_id="stable", session_ms=100_000)
    groups.commit(1, group_id="empty")

    error, listed = groups.coordinator.handle_list_groups(states, types)

    assert error is Errors.NONE
    assert {group.group_id for group in listed} == expected
    assert all(group.group_type == "classic" for group in listed)


# Deleting


def test_empty_group_is_deleted_with_its_offsets(groups: GroupHarness) -> None:
    members, generation = groups.stable_group()
    groups.commit(5, member_id=members[0], generation_id=generation)
    groups.leave(members[0])

    errors = groups.coordinator.handle_delete_groups([GROUP])

    assert errors == {GROUP: Errors.NONE}
    assert groups.state() == "Dead"
    assert groups.offsets() == {}
    assert [record.value for record in groups.stored_records()[-2:]] == [None, None]
    groups.restart()
    assert groups.coordinator.handle_list_groups()[1] == []


def test_group_with_members_is_not_deleted(groups: GroupHarness) -> None:
    groups.stable_group()

    errors = groups.coordinator.handle_delete_groups([GROUP, "other"])

    assert errors == {GROUP: Errors.NON_EMPTY_GROUP, "other": Errors.GROUP_ID_NOT_FOUND}
    assert groups.state() == "Stable"


def test_offsets_of_unsubscribed_topics_are_deleted(groups: GroupHarness) -> None:
    members, generation = groups.stable_group()
    groups.commit({TP: 5, OTHER: 6}, member_id=members[0], generation_id=generation)

    error, errors = groups.coordinator.handle_delete_offsets(GROUP, [TP, OTHER])

    assert error is Errors.NONE
    assert errors == {TP: Errors.GROUP_SUBSCRIBED_TO_TOPIC, OTHER: Errors.NONE}
    assert groups.offsets() == {TP: 5}


def test_offsets_of_an_empty_group_are_deleted_and_the_group_with_the_last(
    groups: GroupHarness,
) -> None:
    groups.commit({TP: 5, OTHER: 6})

    assert groups.coordinator.handle_delete_offsets(GROUP, [TP])[0] is Errors.NONE
    assert groups.offsets() == {OTHER: 6}

    groups.coordinator.handle_delete_offsets(GROUP, [OTHER])
    assert groups.state() == "Dead"


def test_nobody_joins_between_the_look_at_a_group_and_the_deletion_of_its_offsets(
    groups: GroupHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups.commit({TP: 5, OTHER: 6})
    manager = groups.coordinator._group_manager
    group = manager.get_or_create_group(GROUP)
    cleanup = manager.cleanup_group_metadata
    joined: list[str] = []

    def join_unless_locked_out() -> None:
        if group.lock.acquire(blocking=False):
            group.lock.release()
            joined.extend(groups.stable_group()[0])

    def cleanup_after_another_client(*args):
        client = threading.Thread(target=join_unless_locked_out)
        client.start()
        client.join()
        return cleanup(*args)

    monkeypatch.setattr(manager, "cleanup_group_metadata", cleanup_after_another_client)
    groups.coordinator.handle_delete_offsets(GROUP, [TP])

    assert joined == []
    assert groups.offsets() == {OTHER: 6}


@pytest.mark.parametrize("is_last", [True, False])
def test_commit_beside_a_deletion_outlives_a_restart(
    groups: GroupHarness, monkeypatch: pytest.MonkeyPatch, is_last: bool
) -> None:
    groups.commit({TP: 5} if is_last else {TP: 5, OTHER: 6})
    group = groups.coordinator._group_manager.get_or_create_group(GROUP)
    append = Partition.append_records_to_leader
    commits: list[dict[TopicPartition, Errors]] = []

    def commit_unless_locked_out() -> None:
        if group.lock.acquire(blocking=False):
            group.lock.release()
            commits.append(groups.commit(7))

    def append_after_another_client(*args, **options):
        monkeypatch.undo()
        client = threading.Thread(target=commit_unless_locked_out)
        client.start()
        client.join()
        return append(*args, **options)

    monkeypatch.setattr(Partition, "append_records_to_leader", append_after_another_client)
    groups.coordinator.handle_delete_offsets(GROUP, [TP])
    if not commits:
        commits.append(groups.commit(7))

    assert commits == [{TP: Errors.NONE}]
    assert groups.offsets()[TP] == 7
    groups.restart()
    assert groups.offsets().get(TP) == 7


def test_offsets_of_other_kinds_of_groups_are_not_deleted_while_in_use(
    groups: GroupHarness,
) -> None:
    groups.stable_group(protocol_type="connect")

    error, errors = groups.coordinator.handle_delete_offsets(GROUP, [TP])

    assert (error, errors) == (Errors.NON_EMPTY_GROUP, {})


def test_offsets_of_an_unknown_group_cannot_be_deleted(groups: GroupHarness) -> None:
    assert groups.coordinator.handle_delete_offsets("other", [TP]) == (
        Errors.GROUP_ID_NOT_FOUND,
        {},
    )


def test_offsets_of_deleted_topics_go(groups: GroupHarness) -> None:
    groups.commit({TP: 5, OTHER: 6})

    groups.coordinator.handle_deleted_partitions([TP])

    assert groups.offsets() == {OTHER: 6}


# Expiry


def test_offsets_of_consumers_without_membership_expire_after_the_commit(
    quick: GroupHarness,
) -> None:
    quick.commit({TP: 5})
    quick.pass_ms(MINUTE_MS)
    quick.commit({OTHER: 6})
    assert quick.offsets() == {TP: 5, OTHER: 6}

    quick.pass_ms(MINUTE_MS)
    assert quick.offsets() == {OTHER: 6}

    quick.pass_ms(MINUTE_MS)
    assert quick.coordinator.handle_list_groups()[1] == []
    assert quick.replicas.metric("offset-expiration-count") == 2


def test_offsets_of_an_empty_group_expire_after_it_became_empty(quick: GroupHarness) -> None:
    members, generation = quick.stable_group()
    quick.commit(5, member_id=members[0], generation_id=generation)
    keep_alive(quick, members[0], generation, 5 * MINUTE_MS)
    assert quick.offsets() == {TP: 5}

    quick.leave(members[0])
    quick.pass_ms(MINUTE_MS)
    assert quick.offsets() == {TP: 5}

    quick.pass_ms(2 * MINUTE_MS)
    assert quick.state() == "Dead"
    quick.restart()
    assert quick.coordinator.handle_list_groups()[1] == []


def test_what_expires_leaves_tombstones(quick: GroupHarness) -> None:
    members, generation = quick.stable_group()
    quick.commit({TP: 5, OTHER: 6}, member_id=members[0], generation_id=generation)
    quick.leave(members[0])
    before = len(quick.stored_records())

    quick.pass_ms(3 * MINUTE_MS)

    tombstones = quick.stored_records()[before:]
    assert [(read_key(record.key), record.value) for record in tombstones] == [
        (OffsetKey(GROUP, TP), None),
        (OffsetKey(GROUP, OTHER), None),
        (GroupKey(GROUP), None),
    ]


def test_retention_of_an_empty_group_goes_on_over_a_restart(quick: GroupHarness) -> None:
    members, generation = quick.stable_group()
    quick.commit(5, member_id=members[0], generation_id=generation)
    quick.leave(members[0])
    quick.pass_ms(MINUTE_MS)

    quick.restart()
    assert quick.offsets() == {TP: 5}
    quick.pass_ms(MINUTE_MS)

    assert quick.coordinator.handle_list_groups()[1] == []


def test_offsets_of_topics_that_are_no_longer_subscribed_expire(quick: GroupHarness) -> None:
    members, generation = quick.stable_group(protocols=(("range", subscription("t")),))
    quick.commit({TP: 5, OTHER: 6}, member_id=members[0], generation_id=generation)

    keep_alive(quick, members[0], generation, 3 * MINUTE_MS)

    assert quick.offsets() == {TP: 5}


def test_offset_with_a_time_of_its_own_expires_then(quick: GroupHarness) -> None:
    quick.commit(5, expire_timestamp=quick.time.milliseconds() + 4 * MINUTE_MS)

    quick.pass_ms(3 * MINUTE_MS)
    assert quick.offsets() == {TP: 5}

    quick.pass_ms(2 * MINUTE_MS)
    assert quick.offsets() == {}


def test_group_without_offsets_goes_with_its_last_member(quick: GroupHarness) -> None:
    joined = quick.join()
    quick.pass_ms(INITIAL_DELAY_MS)
    quick.leave(joined[0].member_id)

    quick.pass_ms(MINUTE_MS)

    assert quick.state() == "Dead"
