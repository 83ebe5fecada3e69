import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record import SimpleRecord
from kafkapy.common.types import TopicPartition
from kafkapy.coordinator.group.group_metadata_records import (
    GroupKey,
    OffsetKey,
    UnknownKey,
    offset_commit_value,
    read_group_value,
    read_key,
    read_offset_value,
)
from kafkapy.coordinator.group.offset_and_metadata import OffsetAndMetadata
from kafkapy.storage.append_origin import AppendOrigin
from kafkapy.utils.java_hash import java_partition_for
from tests.helpers.mock_time import MockTime
from tests.unit.coordinator.group.harness import (
    GROUP,
    INITIAL_DELAY_MS,
    OFFSETS_PARTITION,
    RANGE,
    SESSION_MS,
    TP,
    GroupHarness,
)


def test_stable_group_goes_on_after_a_restart(groups: GroupHarness) -> None:
    members, generation = groups.stable_group(2)
    groups.commit(5, member_id=members[0], generation_id=generation)

    groups.restart()

    assert groups.state() == "Stable"
    assert groups.offsets() == {TP: 5}
    for member_id in members:
        assert groups.heartbeat(member_id, generation) is Errors.NONE
        assert groups.sync(member_id, generation)[0].assignment == b"of " + member_id.encode()


def test_members_that_do_not_come_back_after_a_restart_time_out(groups: GroupHarness) -> None:
    groups.stable_group(2)
    groups.restart()

    groups.pass_ms(SESSION_MS)

    assert groups.state() == "Empty"


def test_generation_goes_on_after_a_restart(groups: GroupHarness) -> None:
    members, generation = groups.stable_group()
    groups.leave(members[0])

    groups.restart()

    assert groups.state() == "Empty"
    answers = groups.join()
    groups.pass_ms(INITIAL_DELAY_MS)
    assert answers[0].generation_id > generation + 1


def test_group_that_is_too_large_after_a_restart_rebalances(groups: GroupHarness) -> None:
    members, _ = groups.stable_group(3)

    groups.restart({"group.max.size": "2"})

    assert groups.state() == "PreparingRebalance"
    answers = [groups.join(member_id) for member_id in members]
    assert [a[0].error for a in answers] == [
        Errors.NONE,
        Errors.NONE,
        Errors.GROUP_MAX_SIZE_REACHED,
    ]


def test_everything_is_refused_while_groups_are_loaded(groups: GroupHarness) -> None:
    members, generation = groups.stable_group()
    coordinator = groups.coordinator
    seen = {}

    def look(topic_partition: TopicPartition):
        seen["join"] = groups.join()[0].error
        seen["sync"] = groups.sync(members[0], generation)[0].error
        seen["heartbeat"] = groups.heartbeat(members[0], generation)
        seen["leave"] = groups.leave(members[0]).error
        seen["commit"] = groups.commit(5)[TP]
        seen["fetch"] = coordinator.handle_fetch_offsets(GROUP, None, require_stable=False)[0]
        seen["describe"] = coordinator.handle_describe_group(GROUP)[0]
        seen["delete"] = coordinator.handle_delete_groups([GROUP])[GROUP]
        seen["list"] = coordinator.handle_list_groups()[0]
        return get_log(topic_partition)

    get_log = groups.replicas.replica_manager.get_log
    coordinator.on_resignation(0, 1)
    groups.replicas.replica_manager.get_log = look
    coordinator.on_election(0, 2)

    loading = Errors.COORDINATOR_LOAD_IN_PROGRESS
    assert seen.pop("heartbeat") is Errors.NONE
    assert seen.pop("sync") is Errors.REBALANCE_IN_PROGRESS
    assert set(seen.values()) == {loading}
    assert groups.heartbeat(members[0], generation) is Errors.NONE


def test_resignation_turns_everybody_away(groups: GroupHarness) -> None:
    (leader, follower), generation = groups.stable_group(2)
    waiting = groups.join(leader)

    groups.coordinator.on_resignation(0, 1)

    assert waiting[0].error is Errors.NOT_COORDINATOR
    assert groups.heartbeat(follower, generation) is Errors.NOT_COORDINATOR
    assert groups.commit(5) == {TP: Errors.NOT_COORDINATOR}
    assert groups.coordinator.handle_list_groups() == (Errors.NONE, [])
    assert groups.replicas.metric("NumGroups") == 0


def test_resignation_answers_members_that_wait_for_assignments(groups: GroupHarness) -> None:
    joins = [groups.join(), groups.join()]
    groups.pass_ms(INITIAL_DELAY_MS * 2)
    waiting = groups.sync(joins[1][0].member_id, 1)

    groups.coordinator.on_resignation(0, 1)

    assert waiting[0].error is Errors.NOT_COORDINATOR


@pytest.mark.parametrize("epoch", [4, None])
def test_old_resignation_and_election_come_too_late(
    groups: GroupHarness, epoch: int | None
) -> None:
    groups.coordinator.on_resignation(0, 3)
    groups.coordinator.on_election(0, 2)
    assert groups.commit(5) == {TP: Errors.NOT_COORDINATOR}
    groups.coordinator.on_election(0, 4)
    groups.coordinator.on_resignation(0, 3)
    assert groups.commit(5) == {TP: Errors.NONE}

    groups.coordinator.on_resignation(0, epoch)

    assert groups.commit(5) == {TP: Errors.NOT_COORDINATOR}


def test_partition_that_was_deleted_begins_anew(groups: GroupHarness) -> None:
    groups.coordinator.on_election(0, 4)
    groups.coordinator.on_resignation(0, None)

    groups.coordinator.on_election(0, 0)

    assert groups.commit(5) == {TP: Errors.NONE}


def test_coordinator_that_is_shut_down_is_not_available(groups: GroupHarness) -> None:
    groups.coordinator.shutdown()

    assert groups.join()[0].error is Errors.COORDINATOR_NOT_AVAILABLE
    assert groups.coordinator.handle_list_groups()[0] is Errors.COORDINATOR_NOT_AVAILABLE


def test_records_have_kafkas_keys_and_versions(groups: GroupHarness, time: MockTime) -> None:
    groups.commit({TopicPartition("topic", 7): 42}, group_id="g", metadata="m")
    members, _ = groups.stable_group()

    offset, group = (record for record in groups.stored_records() if record.value is not None)

    assert offset.key == b"\x00\x01\x00\x01g\x00\x05topic\x00\x00\x00\x07"
    assert offset.value is not None and offset.value[:2] == b"\x00\x03"
    assert read_key(offset.key) == OffsetKey("g", TopicPartition("topic", 7))
    stored = read_offset_value(offset.value)
    assert (stored.offset, stored.metadata, stored.expire_timestamp) == (42, "m", None)
    assert group.key == b"\x00\x02\x00\x05group"
    assert group.value is not None and group.value[:2] == b"\x00\x03"
    assert read_key(group.key) == GroupKey("group")
    loaded = read_group_value("group", group.value, time)
    assert (loaded.generation_id, loaded.protocol_name) == (1, "range")
    member = loaded.get(members[0])
    assert member.metadata("range") == RANGE[1]
    assert (member.client_id, member.client_host) == ("client", "/127.0.0.1")


def test_offset_that_expires_has_the_version_that_can_say_so() -> None:
    offset = OffsetAndMetadata(1, None, "", 5, 9)

    value = offset_commit_value(offset)

    assert value[:2] == b"\x00\x01"
    assert read_offset_value(value) == offset


def test_record_of_a_newer_broker_is_skipped(groups: GroupHarness) -> None:
    key = b"\x00\x09whatever"
    assert read_key(key) == UnknownKey(9)
    partition = groups.replicas.replica_manager.get_partition_or_raise(OFFSETS_PARTITION)
    partition.append_records_to_leader(
        MemoryRecords.with_records(SimpleRecord(0, key, b"x")), AppendOrigin.COORDINATOR, 1
    )
    groups.commit(5)

    groups.restart()

    assert groups.offsets() == {TP: 5}


@pytest.mark.parametrize(
    ("group_id", "partition"),
    [
        ("", 0),
        ("group", 47),
        # Java's hash of this is its smallest number.
        ("polygenelubricants", 0),
    ],
)
def test_group_belongs_to_kafkas_partition(group_id: str, partition: int) -> None:
    assert java_partition_for(group_id, 50) == partition
