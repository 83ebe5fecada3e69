import pytest

from kafkapy.common.types import TopicPartition, random_topic_id
from kafkapy.controller.controller_context import ControllerContext, PartitionAndReplica
from kafkapy.controller.partition_state import PartitionState
from kafkapy.controller.replica_state import ReplicaState
from kafkapy.metadata.replica_assignment import ReplicaAssignment
from tests.unit.controller.builders import broker, context_of, leadership

TP0, TP1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def context() -> ControllerContext:
    return context_of({TP0: (1, 2), TP1: (2, 3)}, live=[1, 2, 3])


def test_replicas_are_found_by_broker_topic_and_partition(context: ControllerContext) -> None:
    assert context.replicas_on_brokers({2}) == {
        PartitionAndReplica(TP0, 2),
        PartitionAndReplica(TP1, 2),
    }
    assert context.partitions_on_broker(1) == {TP0}
    assert len(context.replicas_for_topic("t")) == 4
    assert context.partitions_for_topic("other") == set()
    assert context.partition_replica_assignment(TopicPartition("t", 9)) == ()


def test_replica_is_offline_when_its_broker_or_its_directory_is(
    context: ControllerContext,
) -> None:
    context.replicas_on_offline_dirs[2] = frozenset({TP0})
    context.shutting_down_broker_ids.add(3)

    assert context.is_replica_online(1, TP0)
    assert not context.is_replica_online(2, TP0)
    assert context.is_replica_online(2, TP1)
    assert not context.is_replica_online(3, TP1)
    assert context.is_replica_online(3, TP1, include_shutting_down_brokers=True)
    assert not context.is_replica_online(4, TP1)
    assert context.live_broker_ids == {1, 2}
    assert context.live_or_shutting_down_broker_ids == {1, 2, 3}


def test_bounced_broker_gets_its_new_epoch(context: ControllerContext) -> None:
    context.remove_live_brokers([1])
    context.add_live_brokers({broker(1): 500})

    assert context.live_broker_id_and_epochs[1] == 500


def test_topic_id_cannot_change_or_be_shared(context: ControllerContext) -> None:
    with pytest.raises(ValueError, match="already has the id"):
        context.add_topic_id("t", random_topic_id())
    with pytest.raises(ValueError, match="already belongs to"):
        context.add_topic_id("u", context.topic_ids["t"])


def test_imbalance_counts_partitions_led_by_another_than_the_first_replica(
    context: ControllerContext,
) -> None:
    counts = []
    for step in (
        lambda: context.put_partition_leadership_info(TP0, leadership(1, [1, 2])),
        lambda: context.put_partition_leadership_info(TP1, leadership(3, [3])),
        lambda: context.put_partition_leadership_info(TP0, leadership(2, [2])),
        lambda: context.update_partition_full_replica_assignment(TP0, ReplicaAssignment.of((2, 1))),
        lambda: context.queue_topic_deletion({"t"}),
        lambda: context.queue_topic_deletion({"t"}),
        lambda: context.remove_topic("t"),
    ):
        step()
        counts.append(context.preferred_replica_imbalance_count)

    assert counts == [0, 1, 2, 1, 0, 0, 0]


def test_offline_partitions_are_counted_once(context: ControllerContext) -> None:
    counts = []
    for state in (
        PartitionState.NEW,
        PartitionState.OFFLINE,
        PartitionState.OFFLINE,
        PartitionState.ONLINE,
        PartitionState.OFFLINE,
        PartitionState.NON_EXISTENT,
    ):
        context.put_partition_state(TP0, state)
        counts.append(context.offline_partition_count)

    assert counts == [0, 1, 1, 0, 1, 0]


def test_removed_topic_leaves_nothing_behind(context: ControllerContext) -> None:
    context.put_partition_state(TP0, PartitionState.OFFLINE)
    context.put_replica_state(PartitionAndReplica(TP0, 1), ReplicaState.ONLINE)
    context.put_partition_leadership_info(TP0, leadership(1, [1]))
    context.queue_topic_deletion({"t"})

    context.remove_topic("t")

    assert context.all_topics == set()
    assert context.topic_ids == context.topic_names == {}
    assert context.all_partitions == set()
    assert context.partition_leadership_info(TP0) is None
    assert context.offline_partition_count == 0
    assert not context.is_topic_queued_up_for_deletion("t")
    context.add_topic_id("t", random_topic_id())


def test_partitions_of_queued_topics_count_neither_as_led_nor_as_leaderless(
    context: ControllerContext,
) -> None:
    context.put_partition_leadership_info(TP0, leadership(9, [9]))
    assert context.partitions_with_offline_leader == {TP0}
    assert context.partitions_with_leaders == {TP0}

    context.queue_topic_deletion({"t"})

    assert context.partitions_with_offline_leader == set()
    assert context.partitions_with_leaders == set()


def test_reset_forgets_the_cluster(context: ControllerContext) -> None:
    context.epoch = 5

    context.reset()

    assert context.epoch == 0
    assert context.all_partitions == set()
    assert context.live_or_shutting_down_brokers == ()
