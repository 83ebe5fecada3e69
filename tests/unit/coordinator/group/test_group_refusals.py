"""Each request with each wrong input: Kafka's error code, and nothing has changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from kafkapy.common.errors import Errors
from kafkapy.coordinator.group.group_results import MemberIdentity
from kafkapy.coordinator.group.group_state import GroupState
from tests.unit.coordinator.group.harness import (
    GROUP,
    INITIAL_DELAY_MS,
    TP,
    GroupHarness,
    subscription,
)

INSTANCE = "instance"


@dataclass(frozen=True, slots=True)
class Who:
    """What a request says of its sender; as it stands it is a member that may do anything."""

    member_id: str
    generation_id: int
    group_id: str = GROUP
    instance_id: str | None = None


Api = Callable[[GroupHarness, Who], Errors]


def join(groups: GroupHarness, who: Who) -> Errors:
    answers = groups.join(who.member_id, instance_id=who.instance_id, group_id=who.group_id)
    return answers[0].error


def sync(groups: GroupHarness, who: Who) -> Errors:
    answers = groups.sync(
        who.member_id,
        who.generation_id,
        instance_id=who.instance_id,
        group_id=who.group_id,
        assignments={who.member_id: b"wrong"},
    )
    return answers[0].error


def heartbeat(groups: GroupHarness, who: Who) -> Errors:
    return groups.heartbeat(
        who.member_id, who.generation_id, instance_id=who.instance_id, group_id=who.group_id
    )


def leave(groups: GroupHarness, who: Who) -> Errors:
    result = groups.leave(MemberIdentity(who.member_id, who.instance_id), group_id=who.group_id)
    return result.members[0][1] if result.members else result.error


def commit(groups: GroupHarness, who: Who) -> Errors:
    return groups.commit(
        9,
        member_id=who.member_id,
        generation_id=who.generation_id,
        instance_id=who.instance_id,
        group_id=who.group_id,
    )[TP]


def txn_commit(groups: GroupHarness, who: Who) -> Errors:
    return groups.txn_commit(
        9,
        member_id=who.member_id,
        generation_id=who.generation_id,
        instance_id=who.instance_id,
        group_id=who.group_id,
    )[TP]


def fetch(groups: GroupHarness, who: Who) -> Errors:
    return groups.coordinator.handle_fetch_offsets(who.group_id, [TP], require_stable=False)[0]


def delete_offsets(groups: GroupHarness, who: Who) -> Errors:
    return groups.coordinator.handle_delete_offsets(who.group_id, [TP])[0]


def describe(groups: GroupHarness, who: Who) -> Errors:
    return groups.coordinator.handle_describe_group(who.group_id)[0]


def delete(groups: GroupHarness, who: Who) -> Errors:
    return groups.coordinator.handle_delete_groups([who.group_id])[who.group_id]


def list_groups(groups: GroupHarness, who: Who) -> Errors:
    return groups.coordinator.handle_list_groups()[0]


OF_MEMBERS = (join, sync, heartbeat, leave, commit, txn_commit)
WITH_GENERATION = (sync, heartbeat, commit, txn_commit)
OF_ADMINISTRATORS = (fetch, delete_offsets, describe, delete)


@pytest.fixture
def scene(groups: GroupHarness) -> GroupHarness:
    """A stable group in its second generation: a dynamic leader and an instance."""
    leader = groups.join(session_ms=60_000)
    groups.pass_ms(2 * INITIAL_DELAY_MS)
    groups.sync_all([leader[0]])
    instance = groups.join(instance_id=INSTANCE, session_ms=60_000)
    again = groups.join(leader[0].member_id, session_ms=60_000)
    groups.sync_all([again[0], instance[0]])
    groups.commit(3, member_id=leader[0].member_id, generation_id=2)
    assert groups.state() == "Stable"
    return groups


def dynamic(groups: GroupHarness) -> Who:
    _, summary = groups.coordinator.handle_describe_group(GROUP)
    (member_id,) = (m.member_id for m in summary.members if m.group_instance_id is None)
    return Who(member_id, 2)


def static(groups: GroupHarness) -> Who:
    _, summary = groups.coordinator.handle_describe_group(GROUP)
    (member_id,) = (m.member_id for m in summary.members if m.group_instance_id == INSTANCE)
    return Who(member_id, 2, instance_id=INSTANCE)


def fenced(groups: GroupHarness) -> Who:
    """The instance under its old id, after it has come back with another."""
    who = static(groups)
    groups.join(instance_id=INSTANCE, session_ms=60_000)
    return who


# Who is wrong: each case turns a member into somebody else

WRONG_SENDERS: dict[str, Callable[[GroupHarness], Who]] = {
    "nobody": lambda g: replace(dynamic(g), member_id="nobody"),
    "unnamed": lambda g: replace(dynamic(g), member_id=""),
    "unknown instance": lambda g: replace(dynamic(g), instance_id="other"),
    "fenced instance": fenced,
    "instance of another": lambda g: replace(dynamic(g), instance_id=INSTANCE),
    "old generation": lambda g: replace(dynamic(g), generation_id=1),
    "old generation of an instance": lambda g: replace(static(g), generation_id=1),
    "later generation": lambda g: replace(dynamic(g), generation_id=3),
    "no generation": lambda g: replace(dynamic(g), generation_id=-1),
    "unknown group": lambda g: replace(dynamic(g), group_id="other"),
    "group without name": lambda g: replace(dynamic(g), group_id=""),
}

UNKNOWN = Errors.UNKNOWN_MEMBER_ID
FENCED = Errors.FENCED_INSTANCE_ID
ILLEGAL = Errors.ILLEGAL_GENERATION
INVALID = Errors.INVALID_GROUP_ID
NOT_FOUND = Errors.GROUP_ID_NOT_FOUND


def _cases() -> list[tuple[str, Api, Errors]]:
    expected: dict[str, tuple[tuple[Api, ...], Errors]] = {
        "nobody": (OF_MEMBERS, UNKNOWN),
        "unnamed": ((sync, heartbeat, leave, commit, txn_commit), UNKNOWN),  # it may join
        "unknown instance": (OF_MEMBERS, UNKNOWN),
        "fenced instance": (OF_MEMBERS, FENCED),
        "instance of another": (OF_MEMBERS, FENCED),
        "old generation": (WITH_GENERATION, ILLEGAL),
        "old generation of an instance": (WITH_GENERATION, ILLEGAL),
        "later generation": (WITH_GENERATION, ILLEGAL),
        "no generation": (WITH_GENERATION, ILLEGAL),
        "unknown group": ((join, sync, heartbeat, leave, txn_commit), UNKNOWN),
        # Offsets may be stored for a group without name, as very old consumers do.
        "group without name": (
            (join, sync, heartbeat, leave, txn_commit, delete_offsets),
            INVALID,
        ),
    }
    return [
        *((case, api, error) for case, (apis, error) in expected.items() for api in apis),
        ("unknown group", commit, ILLEGAL),
        ("unknown group", delete_offsets, NOT_FOUND),
        ("unknown group", delete, NOT_FOUND),
        ("group without name", commit, ILLEGAL),
        ("group without name", delete, NOT_FOUND),
    ]


@pytest.mark.parametrize(
    ("case", "api", "error"),
    _cases(),
    ids=lambda value: getattr(value, "__name__", None) or getattr(value, "name", None),
)
def test_wrong_sender_is_refused_and_changes_nothing(
    scene: GroupHarness, case: str, api: Api, error: Errors
) -> None:
    who = WRONG_SENDERS[case](scene)
    before = scene.snapshot()

    assert api(scene, who) is error

    assert scene.snapshot() == before


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"session_ms": 5_999}, Errors.INVALID_SESSION_TIMEOUT),
        ({"session_ms": 1_800_001}, Errors.INVALID_SESSION_TIMEOUT),
        ({"protocol_type": "connect"}, Errors.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": ""}, Errors.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": ()}, Errors.INCONSISTENT_GROUP_PROTOCOL),
        (
            {"protocols": (("sticky", subscription("t")),)},
            Errors.INCONSISTENT_GROUP_PROTOCOL,
        ),
    ],
)
@pytest.mark.parametrize("is_member", [True, False])
def test_join_that_does_not_fit_is_refused_and_changes_nothing(
    scene: GroupHarness, fields: dict, error: Errors, is_member: bool
) -> None:
    before = scene.snapshot()
    member_id = dynamic(scene).member_id if is_member else ""

    answers = scene.join(member_id, **fields)

    assert [answer.error for answer in answers] == [error]
    assert scene.snapshot() == before


@pytest.mark.parametrize("fields", [{"protocol_type": "connect"}, {"protocol_name": "roundrobin"}])
def test_sync_with_another_protocol_is_refused_and_changes_nothing(
    scene: GroupHarness, fields: dict
) -> None:
    before = scene.snapshot()
    who = dynamic(scene)

    answers = scene.sync(who.member_id, who.generation_id, **fields)

    assert [answer.error for answer in answers] == [Errors.INCONSISTENT_GROUP_PROTOCOL]
    assert scene.snapshot() == before


# The sender is right, the group is not


def prepare(groups: GroupHarness) -> None:
    """The leader has joined again; the instance has yet to."""
    groups.join(dynamic(groups).member_id)
    assert groups.state() == "PreparingRebalance"


@pytest.mark.parametrize(
    ("api", "error"),
    [
        (sync, Errors.REBALANCE_IN_PROGRESS),
        (heartbeat, Errors.REBALANCE_IN_PROGRESS),
        (delete, Errors.NON_EMPTY_GROUP),
    ],
)
def test_request_while_a_rebalance_is_prepared_changes_nothing(
    scene: GroupHarness, api: Api, error: Errors
) -> None:
    prepare(scene)
    before = scene.snapshot()

    assert api(scene, static(scene)) is error

    assert scene.snapshot() == before


@pytest.mark.parametrize(
    ("api", "error"),
    [(commit, Errors.REBALANCE_IN_PROGRESS), (delete, Errors.NON_EMPTY_GROUP)],
)
def test_request_while_assignments_are_awaited_changes_nothing(
    scene: GroupHarness, api: Api, error: Errors
) -> None:
    prepare(scene)
    who = static(scene)
    scene.join(who.member_id, instance_id=INSTANCE)
    assert scene.state() == "CompletingRebalance"
    before = scene.snapshot()

    assert api(scene, replace(who, generation_id=3)) is error

    assert scene.snapshot() == before


@pytest.mark.parametrize("api", OF_MEMBERS)
def test_member_of_a_group_that_has_become_empty_is_unknown(scene: GroupHarness, api: Api) -> None:
    who = dynamic(scene)
    scene.leave(who.member_id, static(scene).member_id)
    assert scene.state() == "Empty"
    before = scene.snapshot()

    assert api(scene, who) is UNKNOWN

    assert scene.snapshot() == before


@pytest.mark.parametrize(
    ("api", "error"),
    [
        *((api, Errors.COORDINATOR_NOT_AVAILABLE) for api in OF_MEMBERS),
        (delete_offsets, NOT_FOUND),
        (delete, NOT_FOUND),
    ],
)
def test_group_that_is_being_removed_answers_nobody(
    scene: GroupHarness, api: Api, error: Errors
) -> None:
    who = dynamic(scene)
    (group,) = scene.coordinator._group_manager.current_groups()
    group.transition_to(GroupState.DEAD)
    before = scene.snapshot()

    assert api(scene, who) is error

    assert scene.snapshot() == before


@pytest.mark.parametrize("api", [*OF_MEMBERS, *OF_ADMINISTRATORS])
def test_group_of_another_broker_is_not_answered_for(scene: GroupHarness, api: Api) -> None:
    who = dynamic(scene)
    scene.coordinator.on_resignation(0, 1)
    before = scene.snapshot()

    assert api(scene, who) is Errors.NOT_COORDINATOR

    assert scene.snapshot() == before


@pytest.mark.parametrize("api", [*OF_MEMBERS, *OF_ADMINISTRATORS, list_groups])
def test_coordinator_that_is_shut_down_answers_nobody(scene: GroupHarness, api: Api) -> None:
    who = dynamic(scene)
    scene.coordinator.shutdown()
    before = scene.snapshot()

    assert api(scene, who) is Errors.COORDINATOR_NOT_AVAILABLE

    assert scene.snapshot() == before


@pytest.mark.parametrize(
    ("api", "error"),
    [
        # Clients know no other error of these two; the member finds out with its next request.
        (sync, Errors.REBALANCE_IN_PROGRESS),
        (heartbeat, Errors.NONE),
        *(
            (api, Errors.COORDINATOR_LOAD_IN_PROGRESS)
            for api in (join, leave, commit, txn_commit, *OF_ADMINISTRATORS, list_groups)
        ),
    ],
)
def test_group_that_is_being_loaded_cannot_be_changed(
    scene: GroupHarness, api: Api, error: Errors
) -> None:
    who = dynamic(scene)
    before = scene.snapshot()
    answers = []
    get_log = scene.replicas.replica_manager.get_log

    def ask_while_loading(topic_partition):
        answers.append(api(scene, who))
        return get_log(topic_partition)

    scene.coordinator.on_resignation(0, 1)
    scene.replicas.replica_manager.get_log = ask_while_loading
    scene.coordinator.on_election(0, 2)
    scene.replicas.replica_manager.get_log = get_log

    assert answers == [error]
    assert scene.snapshot() == before


def test_offsets_in_use_are_not_deleted_and_nothing_changes(scene: GroupHarness) -> None:
    before = scene.snapshot()

    error, errors = scene.coordinator.handle_delete_offsets(GROUP, [TP])

    assert (error, errors) == (Errors.NONE, {TP: Errors.GROUP_SUBSCRIBED_TO_TOPIC})
    assert scene.snapshot() == before


@pytest.mark.parametrize("sender", [dynamic, static])
def test_the_member_itself_is_let_through(
    scene: GroupHarness, sender: Callable[[GroupHarness], Who]
) -> None:
    """So the cases above are refused for what they change, not for how they are built."""
    who = sender(scene)

    answers = [api(scene, who) for api in (heartbeat, sync, commit, txn_commit, leave)]

    assert answers == [Errors.NONE] * 5
