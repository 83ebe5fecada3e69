"""Assignors: complete, exclusive, balanced; the sticky ones with as few moves as can be."""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy.clients.consumer.assignors import consumer_protocol
from kafkapy.clients.consumer.assignors.consumer_partition_assignor import (
    Assignment,
    ConsumerPartitionAssignor,
    RebalanceProtocol,
    Subscription,
)
from kafkapy.clients.consumer.assignors.cooperative_sticky_assignor import (
    CooperativeStickyAssignor,
)
from kafkapy.clients.consumer.assignors.range_assignor import RangeAssignor
from kafkapy.clients.consumer.assignors.round_robin_assignor import RoundRobinAssignor
from kafkapy.clients.consumer.assignors.sticky_assignor import StickyAssignor
from kafkapy.common.protocol.codec import ProtocolError
from kafkapy.common.types import TopicPartition

ASSIGNORS = [RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor]
STICKY = [StickyAssignor, CooperativeStickyAssignor]


def tps(*names: str) -> list[TopicPartition]:
    """`tps("a0", "b12")`: partitions of topics with one-letter names."""
    return [TopicPartition(name[0], int(name[1:])) for name in names]


def assign(
    assignor: ConsumerPartitionAssignor,
    counts: Mapping[str, int],
    subscriptions: Mapping[str, Subscription],
) -> dict[str, list[TopicPartition]]:
    return {m: a.partitions for m, a in assignor.assign(counts, subscriptions).items()}


def subscriptions(**topics: str) -> dict[str, Subscription]:
    """`subscriptions(m1="ab")`: member m1 subscribes to topics a and b."""
    return {member: Subscription(tuple(names)) for member, names in topics.items()}


class Group:
    """Members that keep what they get and say so, as consumers do."""

    def __init__(self, assignor: type[ConsumerPartitionAssignor]) -> None:
        self.assignor = assignor
        self.members: dict[str, ConsumerPartitionAssignor] = {}
        self.owned: dict[str, list[TopicPartition]] = {}
        self.generation = 0

    def rebalance(
        self, counts: Mapping[str, int], topics_of: Mapping[str, str]
    ) -> dict[str, list[TopicPartition]]:
        """Until nobody gives anything up, which eager groups do at once."""
        rounds = 0
        while True:
            rounds += 1
            assert rounds <= 3, "a cooperative rebalance takes at most two rounds"
            before = {m: self.owned.get(m, []) for m in topics_of}
            after = self._one_round(counts, topics_of)
            held = [tp for partitions in after.values() for tp in partitions]
            assert len(held) == len(set(held))
            if self.assignor is not CooperativeStickyAssignor:
                return after
            for member, partitions in after.items():
                others = {tp for m, owned in before.items() if m != member for tp in owned}
                assert not others & set(partitions), "handed out while another member owns it"
            if all(set(before[m]) <= set(after[m]) for m in topics_of):
                return after

    def _one_round(
        self, counts: Mapping[str, int], topics_of: Mapping[str, str]
    ) -> dict[str, list[TopicPartition]]:
        sent = {}
        for member, topics in topics_of.items():
            assignor = self.members.setdefault(member, self.assignor())
            cooperative = RebalanceProtocol.COOPERATIVE in assignor.supported_protocols
            sent[member] = consumer_protocol.deserialize_subscription(
                consumer_protocol.serialize_subscription(
                    Subscription(
                        tuple(topics),
                        assignor.subscription_user_data(frozenset(topics)),
                        tuple(self.owned.get(member, ())) if cooperative else (),
                        self.generation if member in self.owned else -1,
                    )
                )
            )
        self.generation += 1
        result = assign(self.assignor(), counts, sent)
        for member, partitions in result.items():
            self.members[member].on_assignment(Assignment(partitions), self.generation)
        self.owned = result
        return result


def assert_covers(
    result: Mapping[str, list[TopicPartition]],
    counts: Mapping[str, int],
    topics_of: Mapping[str, str],
) -> None:
    subscribed = {topic for topics in topics_of.values() for topic in topics}
    wanted = {TopicPartition(t, p) for t in subscribed & counts.keys() for p in range(counts[t])}
    given_out = [tp for partitions in result.values() for tp in partitions]
    assert sorted(given_out) == sorted(wanted)
    for member, partitions in result.items():
        assert {tp.topic for tp in partitions} <= set(topics_of[member])


@pytest.mark.parametrize(
    ("counts", "topics_of", "expected"),
    [
        ({"a": 3}, {"m1": "a"}, {"m1": tps("a0", "a1", "a2")}),
        ({"a": 3}, {"m2": "a", "m1": "a"}, {"m1": tps("a0", "a1"), "m2": tps("a2")}),
        (
            {"a": 3, "b": 3},
            {"m1": "ab", "m2": "ab"},
            {"m1": tps("a0", "a1", "b0", "b1"), "m2": tps("a2", "b2")},
        ),
        (
            {"a": 3, "b": 2},
            {"m1": "a", "m2": "ab", "m3": "a"},
            {"m1": tps("a0"), "m2": tps("a1", "b0", "b1"), "m3": tps("a2")},
        ),
        ({"a": 1}, {"m1": "a", "m2": "a"}, {"m1": tps("a0"), "m2": []}),
        ({}, {"m1": "a"}, {"m1": []}),
    ],
)
def test_range_gives_consecutive_partitions_of_each_topic(
    counts: dict[str, int], topics_of: dict[str, str], expected: dict[str, list[TopicPartition]]
) -> None:
    assert assign(RangeAssignor(), counts, subscriptions(**topics_of)) == expected


@pytest.mark.parametrize(
    ("counts", "topics_of", "expected"),
    [
        (
            {"a": 3, "b": 3},
            {"m1": "ab", "m2": "ab"},
            {"m1": tps("a0", "a2", "b1"), "m2": tps("a1", "b0", "b2")},
        ),
        (
            {"a": 1, "b": 2, "c": 3},
            {"m1": "a", "m2": "ab", "m3": "abc"},
            {"m1": tps("a0"), "m2": tps("b0"), "m3": tps("b1", "c0", "c1", "c2")},
        ),
        ({"a": 2}, {"m1": "b"}, {"m1": []}),
    ],
)
def test_round_robin_goes_round_the_members(
    counts: dict[str, int], topics_of: dict[str, str], expected: dict[str, list[TopicPartition]]
) -> None:
    assert assign(RoundRobinAssignor(), counts, subscriptions(**topics_of)) == expected


@pytest.mark.parametrize("assignor", [RangeAssignor, RoundRobinAssignor])
def test_static_members_are_ordered_by_their_instance_id(
    assignor: type[ConsumerPartitionAssignor],
) -> None:
    members = {
        "m1": Subscription(("a",), group_instance_id="z"),
        "m9": Subscription(("a",), group_instance_id="y"),
        "m0": Subscription(("a",)),
    }

    result = assign(assignor(), {"a": 3}, members)

    assert result == {"m9": tps("a0"), "m1": tps("a1"), "m0": tps("a2")}


topic_counts = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 7), max_size=4)
member_topics = st.dictionaries(
    st.sampled_from(["m1", "m2", "m3", "m4", "m5"]),
    st.sets(st.sampled_from("abcd"), min_size=1).map("".join),
    min_size=1,
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(counts=topic_counts, topics_of=member_topics, kind=st.sampled_from(ASSIGNORS))
def test_every_partition_goes_to_exactly_one_subscriber(
    counts: dict[str, int], topics_of: dict[str, str], kind: type[ConsumerPartitionAssignor]
) -> None:
    result = assign(kind(), counts, subscriptions(**topics_of))

    assert result.keys() == topics_of.keys()
    assert_covers(result, counts, topics_of)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    counts=topic_counts,
    first=st.sets(st.integers(0, 6), min_size=1),
    second=st.sets(st.integers(0, 6), min_size=1),
    kind=st.sampled_from(STICKY),
)
def test_equal_subscriptions_stay_balanced_and_move_the_least(
    counts: dict[str, int],
    first: set[int],
    second: set[int],
    kind: type[ConsumerPartitionAssignor],
) -> None:
    group = Group(kind)
    before = group.rebalance(counts, {f"m{n}": "abcd" for n in first})

    members = {f"m{n}": "abcd" for n in second}
    after = group.rebalance(counts, members)

    assert_covers(after, counts, members)
    loads = sorted(len(partitions) for partitions in after.values())
    assert loads[-1] - loads[0] <= 1
    # A member that stays keeps everything, up to the greatest load balance allows.
    total = sum(counts.values())
    least, larger = divmod(total, len(members))
    stayed = sorted((len(before[m]) for m in members if m in before), reverse=True)
    bound = sum(min(n, least + (i < larger)) for i, n in enumerate(stayed))
    kept = sum(len(set(before.get(m, [])) & set(after[m])) for m in members)
    assert kept >= bound


@settings(max_examples=80, deadline=None, derandomize=True)
@given(counts=topic_counts, first=member_topics, second=member_topics, kind=st.sampled_from(STICKY))
def test_no_single_move_would_improve_a_sticky_assignment(
    counts: dict[str, int],
    first: dict[str, str],
    second: dict[str, str],
    kind: type[ConsumerPartitionAssignor],
) -> None:
    group = Group(kind)
    group.rebalance(counts, first)

    after = group.rebalance(counts, second)

    assert_covers(after, counts, second)
    for owner, partitions in after.items():
        for partition in partitions:
            for member, topics in second.items():
                if partition.topic in topics:
                    assert len(partitions) - len(after[member]) <= 1, (owner, member)


@pytest.mark.parametrize("kind", STICKY)
def test_a_rebalance_without_change_moves_nothing(kind: type[ConsumerPartitionAssignor]) -> None:
    group = Group(kind)
    counts = {"a": 7, "b": 4, "c": 1}
    topics_of = {"m1": "ab", "m2": "abc", "m3": "c", "m4": "b"}
    before = group.rebalance(counts, topics_of)

    after = group.rebalance(counts, topics_of)

    assert {m: set(p) for m, p in after.items()} == {m: set(p) for m, p in before.items()}


def test_a_cooperative_group_hands_over_in_two_rounds() -> None:
    everything = tuple(tps("a0", "a1", "a2", "a3"))
    members = {
        "m1": Subscription(("a",), owned_partitions=everything, generation_id=1),
        "m2": Subscription(("a",)),
    }

    first = assign(CooperativeStickyAssignor(), {"a": 4}, members)
    members["m1"] = Subscription(("a",), owned_partitions=tuple(first["m1"]), generation_id=2)
    second = assign(CooperativeStickyAssignor(), {"a": 4}, members)

    assert first == {"m1": tps("a0", "a1"), "m2": []}
    assert second == {"m1": tps("a0", "a1"), "m2": tps("a2", "a3")}


def test_of_two_claims_the_newer_generation_counts() -> None:
    members = {
        "m1": Subscription(("a",), owned_partitions=tuple(tps("a0", "a1")), generation_id=4),
        "m2": Subscription(("a",), owned_partitions=tuple(tps("a0", "a1")), generation_id=5),
    }

    assert assign(CooperativeStickyAssignor(), {"a": 2}, members)["m2"] == tps("a0")


def test_a_partition_that_two_members_claim_goes_to_neither_at_first() -> None:
    members = {
        "m1": Subscription(("a",), owned_partitions=tuple(tps("a0", "a1")), generation_id=5),
        "m2": Subscription(("a",), owned_partitions=tuple(tps("a0")), generation_id=5),
    }

    assert assign(CooperativeStickyAssignor(), {"a": 2}, members) == {"m1": tps("a1"), "m2": []}


def test_the_generation_is_read_from_old_members_user_data() -> None:
    old = Subscription(("a",), b"\0\0\0\x09", tuple(tps("a0")))

    assert CooperativeStickyAssignor().member_data(old).generation == 9


@pytest.mark.parametrize("user_data", [None, b"", b"\xff", b"\0\0\0\x01\0\x01a"])
def test_user_data_that_cannot_be_read_counts_as_owning_nothing(user_data: bytes | None) -> None:
    assert StickyAssignor().member_data(Subscription(("a",), user_data)).partitions == ()


def test_sticky_user_data_without_generation_is_understood() -> None:
    version_0 = b"\0\0\0\x01" + b"\0\x01a" + b"\0\0\0\x02\0\0\0\0\0\0\0\x03"

    data = StickyAssignor().member_data(Subscription(("a",), version_0))

    assert list(data.partitions) == tps("a0", "a3")
    assert data.generation == -1


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_subscriptions_survive_the_wire_in_every_version(version: int) -> None:
    sent = Subscription(("a", "b"), b"x", tuple(tps("a0", "b1")), 7, "rack")

    got = consumer_protocol.deserialize_subscription(
        consumer_protocol.serialize_subscription(sent, version), group_instance_id="i"
    )

    assert (got.topics, got.user_data, got.group_instance_id) == (("a", "b"), b"x", "i")
    assert got.owned_partitions == (sent.owned_partitions if version >= 1 else ())
    assert got.generation_id == (7 if version >= 2 else -1)
    assert got.rack_id == ("rack" if version >= 3 else None)


def test_a_newer_version_is_read_as_the_newest_known() -> None:
    data = bytearray(consumer_protocol.serialize_assignment(Assignment(tps("a1"), b"u")))
    data[:2] = b"\0\x63"

    assert consumer_protocol.deserialize_assignment(bytes(data) + b"new").partitions == tps("a1")


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff\xff", b"\0\x01\0\0"])
def test_bytes_that_are_no_assignment_are_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        consumer_protocol.deserialize_assignment(data)
