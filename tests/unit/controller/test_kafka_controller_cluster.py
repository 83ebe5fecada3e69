"""Several brokers, one of which is the controller."""

from queue import SimpleQueue

from kafkapy.common.errors import BrokerNotAvailableError, Errors, StaleBrokerEpochError
from kafkapy.common.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
)
from kafkapy.common.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from kafkapy.common.protocol.messages.update_metadata import UpdateMetadataRequest
from kafkapy.common.types import TopicPartition
from kafkapy.controller.controller_config import ControllerConfig
from kafkapy.controller.controller_events import (
    ApiResult,
    AutoPreferredReplicaLeaderElection,
    ElectionResults,
    ElectionType,
)
from kafkapy.metadata.leader_and_isr import LeaderAndIsr
from kafkapy.metadata.replica_assignment import ReplicaAssignment
from kafkapy.zk.zk_data import ConfigType
from tests.helpers.waiting import wait_until
from tests.unit.controller.cluster import Cluster, Member
from tests.unit.controller.fake_broker import leader_and_isr_states

TP0 = TopicPartition("t", 0)


def start(cluster: Cluster, *broker_ids: int) -> Member:
    """Waits until the first, the controller, knows them all."""
    members = [cluster.start(broker_id) for broker_id in broker_ids]
    context = members[0].controller.context
    wait_until(lambda: context.live_or_shutting_down_broker_ids == set(broker_ids))
    cluster.wait_until_idle()
    return members[0]


def alter_isr(cluster: Cluster, partition: TopicPartition, isr: list[int]) -> Errors:
    """Ask for an ISR as the partition's leader does, and answer the partition's outcome."""
    state = cluster.state(partition)
    assert state is not None
    controller = cluster.controller
    request = AlterPartitionRequest(
        broker_id=state.leader,
        broker_epoch=cluster.members[state.leader].epoch,
        topics=[
            AlterPartitionRequest.TopicData(
                topic_id=controller.context.topic_ids[partition.topic],
                partitions=[
                    AlterPartitionRequest.PartitionData(
                        partition_index=partition.partition,
                        leader_epoch=state.leader_epoch,
                        new_isr_with_epochs=[
                            AlterPartitionRequest.BrokerState(broker_id=b) for b in isr
                        ],
                        partition_epoch=state.partition_epoch,
                    )
                ],
            )
        ],
    )
    answers: SimpleQueue[AlterPartitionResponse] = SimpleQueue()
    controller.alter_partitions(request, 3, answers.put)
    response = answers.get(timeout=10)
    assert response.error_code == 0
    return Errors.for_code(response.topics[0].partitions[0].error_code)


def elect(cluster: Cluster, partition: TopicPartition, election_type: ElectionType) -> Errors | int:
    """The new leader, or why there is none."""
    answers: SimpleQueue[ElectionResults] = SimpleQueue()
    cluster.controller.elect_leaders([partition], election_type, answers.put)
    outcome = answers.get(timeout=10)[partition]
    return outcome if isinstance(outcome, int) else outcome.error


def reassign(
    cluster: Cluster, partition: TopicPartition, targets: tuple[int, ...] | None
) -> ApiResult:
    answers: SimpleQueue[dict[TopicPartition, ApiResult] | ApiResult] = SimpleQueue()
    cluster.controller.alter_partition_reassignments({partition: targets}, answers.put)
    outcome = answers.get(timeout=10)
    assert isinstance(outcome, dict)
    return outcome[partition]


def reassignments(cluster: Cluster) -> dict[TopicPartition, ReplicaAssignment]:
    answers: SimpleQueue[dict[TopicPartition, ReplicaAssignment] | ApiResult] = SimpleQueue()
    cluster.controller.list_partition_reassignments(None, answers.put)
    outcome = answers.get(timeout=10)
    assert isinstance(outcome, dict)
    return outcome


def test_new_broker_hears_of_everything_and_the_others_of_it(cluster: Cluster) -> None:
    first = start(cluster, 0)
    cluster.create_topic("t", [0, 1])
    first.broker.clear()

    second = cluster.start(1)

    second.broker.wait_for_metadata([TP0])
    assert leader_and_isr_states(second.broker.wait_for(LeaderAndIsrRequest)[0])[TP0].leader == 0
    (request,) = first.broker.wait_for(UpdateMetadataRequest)[:1]
    assert isinstance(request, UpdateMetadataRequest)
    assert {b.id for b in request.live_brokers} == {0, 1}
    assert second.controller.active_controller_id == 0
    assert second.gauge("ActiveControllerCount") == 0


def test_leadership_moves_when_its_broker_dies_and_it_may_follow_when_it_is_back(
    cluster: Cluster,
) -> None:
    controller = start(cluster, 0, 1)
    cluster.create_topic("t", [1, 0])
    controller.broker.clear()

    cluster.stop(1)

    cluster.wait_for_leader(TP0, 0)
    assert cluster.state(TP0) == LeaderAndIsr(leader=0, leader_epoch=1, isr=(0,), partition_epoch=1)
    told = leader_and_isr_states(controller.broker.wait_for(LeaderAndIsrRequest)[0])[TP0]
    assert (told.leader, told.isr) == (0, [0])
    wait_until(lambda: controller.gauge("PreferredReplicaImbalanceCount") == 1)
    assert controller.gauge("ActiveBrokerCount") == 1

    cluster.brokers[1].clear()
    cluster.start(1)

    told = leader_and_isr_states(cluster.brokers[1].wait_for(LeaderAndIsrRequest)[0])[TP0]
    assert (told.leader, told.isr) == (0, [0])


def test_partition_whose_only_replica_in_sync_died_waits_for_it(cluster: Cluster) -> None:
    controller = start(cluster, 0, 1)
    cluster.create_topic("t", [1])

    cluster.stop(1)

    cluster.wait_for_leader(TP0, -1)
    wait_until(lambda: controller.gauge("OfflinePartitionsCount") == 1)

    cluster.start(1)

    cluster.wait_for_leader(TP0, 1)
    wait_until(lambda: controller.gauge("OfflinePartitionsCount") == 0)


def test_unclean_leader_is_elected_as_soon_as_the_topic_allows_it(cluster: Cluster) -> None:
    start(cluster, 0, 1)
    cluster.create_topic("t", [1, 0])
    assert alter_isr(cluster, TP0, [1]) is Errors.NONE
    cluster.stop(1)
    cluster.wait_for_leader(TP0, -1)

    cluster.zk_client.set_or_create_entity_configs(
        ConfigType.TOPIC, "t", {"unclean.leader.election.enable": "true"}
    )
    cluster.controller.enable_topic_unclean_leader_election("t")

    cluster.wait_for_leader(TP0, 0)


def test_unclean_leader_is_elected_as_soon_as_the_default_allows_it(cluster: Cluster) -> None:
    start(cluster, 0, 1)
    cluster.create_topic("t", [1, 0])
    assert alter_isr(cluster, TP0, [1]) is Errors.NONE
    cluster.stop(1)
    cluster.wait_for_leader(TP0, -1)

    cluster.controller.reconfigure(ControllerConfig(unclean_leader_election_enable=True))

    cluster.wait_for_leader(TP0, 0)


def test_another_broker_takes_over_from_a_dead_controller(cluster: Cluster) -> None:
    start(cluster, 0, 1)
    cluster.create_topic("t", [0, 1])

    cluster.stop(0)

    wait_until(lambda: cluster.members[1].controller.is_active)
    cluster.wait_for_leader(TP0, 1)
    requests = cluster.brokers[1].wait_for(LeaderAndIsrRequest)
    wait_until(
        lambda: any(
            r.controller_epoch == 2 and r.controller_id == 1  # type: ignore[attr-defined]
            for r in cluster.brokers[1].received(LeaderAndIsrRequest)
        )
    )
    assert requests


def test_controlled_shutdown_hands_leadership_over_first(cluster: Cluster) -> None:
    start(cluster, 0, 1)
    cluster.create_topic("t", [1, 0], [0, 1], [1])
    answers: SimpleQueue[frozenset[TopicPartition] | Exception] = SimpleQueue()

    cluster.controller.controlled_shutdown(1, cluster.members[1].epoch, answers.put)

    assert answers.get(timeout=10) == frozenset()
    assert cluster.state(TP0) == LeaderAndIsr(leader=0, leader_epoch=1, isr=(0,), partition_epoch=1)
    followed = cluster.state(TopicPartition("t", 1))
    assert followed is not None
    assert (followed.leader, followed.isr) == (0, (0,))
    # Nobody else has the third partition.
    alone = cluster.state(TopicPartition("t", 2))
    assert alone is not None
    assert alone.leader == 1


def test_controlled_shutdown_tells_what_could_not_be_moved(cluster: Cluster) -> None:
    start(cluster, 0, 1)
    cluster.create_topic("t", [1, 0])
    assert alter_isr(cluster, TP0, [1]) is Errors.NONE
    answers: SimpleQueue[frozenset[TopicPartition] | Exception] = SimpleQueue()

    cluster.controller.controlled_shutdown(1, cluster.members[1].epoch, answers.put)

    assert answers.get(timeout=10) == {TP0}


def test_controlled_shutdown_of_an_earlier_life_or_an_unknown_broker_is_refused(
    cluster: Cluster,
) -> None:
    start(cluster, 0, 1)
    answers: SimpleQueue[frozenset[TopicPartition] | Exception] = SimpleQueue()

    cluster.controller.controlled_shutdown(1, cluster.members[1].epoch - 1, answers.put)
    cluster.controller.controlled_shutdown(7, 1, answers.put)

    assert isinstance(answers.get(timeout=10), StaleBrokerEpochError)
    assert isinstance(answers.get(timeout=10), BrokerNotAvailableError)
    assert cluster.controller.is_active


def test_isr_changes_are_written_and_told(cluster: Cluster) -> None:
    start(cluster, 0, 1)
    cluster.create_topic("t", [0, 1])
    cluster.brokers[1].clear()

    assert alter_isr(cluster, TP0, [0]) is Errors.NONE

    assert cluster.state(TP0) == LeaderAndIsr(leader=0, leader_epoch=0, isr=(0,), partition_epoch=1)
    cluster.brokers[1].wait_for_metadata([TP0])
    assert cluster.brokers[1].metadata[TP0].isr == [0]


def test_deletion_waits_for_a_dead_replica(cluster: Cluster) -> None:
    controller = start(cluster, 0, 1)
    cluster.create_topic("t", [0, 1])
    cluster.stop(1)
    wait_until(lambda: controller.gauge("ActiveBrokerCount") == 1)

    cluster.zk_client.create_delete_topic_path("t")
    wait_until(lambda: controller.gauge("TopicsIneligibleToDeleteCount") == 1)
    assert cluster.zk_client.topic_exists("t")
    cluster.start(1)

    wait_until(lambda: not cluster.zk_client.is_topic_marked_for_deletion("t"))
    assert not cluster.zk_client.topic_exists("t")


def test_preferred_election_from_the_admin_client(cluster: Cluster) -> None:
    start(cluster, 0, 1)
    cluster.create_topic("t", [1, 0])
    assert elect(cluster, TP0, ElectionType.PREFERRED) is Errors.ELECTION_NOT_NEEDED
    cluster.stop(1)
    cluster.wait_for_leader(TP0, 0)

    unavailable = elect(cluster, TP0, ElectionType.PREFERRED)
    unknown = elect(cluster, TopicPartition("nowhere", 0), ElectionType.PREFERRED)
    cluster.start(1)
    wait_until(lambda: alter_isr(cluster, TP0, [0, 1]) is Errors.NONE)
    elected = elect(cluster, TP0, ElectionType.PREFERRED)

    assert unavailable is Errors.PREFERRED_LEADER_NOT_AVAILABLE
    assert unknown is Errors.UNKNOWN_TOPIC_OR_PARTITION
    assert elected == 1
    cluster.wait_for_leader(TP0, 1)


def test_preferred_election_from_the_store_is_done_and_removed(cluster: Cluster) -> None:
    start(cluster, 0, 1)
    cluster.create_topic("t", [1, 0])
    cluster.stop(1)
    cluster.wait_for_leader(TP0, 0)
    cluster.start(1)
    wait_until(lambda: alter_isr(cluster, TP0, [0, 1]) is Errors.NONE)

    for _ in range(2):
        cluster.zk_client.create_preferred_replica_election([TP0])
        wait_until(lambda: not cluster.zk_client.get_preferred_replica_election())

    cluster.wait_for_leader(TP0, 1)


def test_unclean_election_from_the_admin_client_needs_no_permission(cluster: Cluster) -> None:
    start(cluster, 0, 1)
    cluster.create_topic("t", [1, 0])
    assert alter_isr(cluster, TP0, [1]) is Errors.NONE
    cluster.stop(1)
    cluster.wait_for_leader(TP0, -1)

    assert elect(cluster, TP0, ElectionType.UNCLEAN) == 0

    cluster.wait_for_leader(TP0, 0)


def test_leadership_is_rebalanced_in_the_background(cluster: Cluster) -> None:
    controller = start(cluster, 0, 1)
    cluster.create_topic("t", [1, 0])
    cluster.stop(1)
    cluster.wait_for_leader(TP0, 0)
    cluster.start(1)
    wait_until(lambda: alter_isr(cluster, TP0, [0, 1]) is Errors.NONE)
    assert len(controller.scheduler.pending("auto-leader-rebalance-task")) == 1

    controller.controller.event_manager.put(AutoPreferredReplicaLeaderElection())

    cluster.wait_for_leader(TP0, 1)
    cluster.wait_until_idle()
    assert len(controller.scheduler.pending("auto-leader-rebalance-task")) == 2


def test_reassignment_adds_waits_and_removes(cluster: Cluster) -> None:
    start(cluster, 0, 1, 2)
    cluster.create_topic("t", [0, 1])

    assert reassign(cluster, TP0, (2, 1)) == ApiResult()

    moving = ReplicaAssignment((2, 1, 0), adding_replicas=(2,), removing_replicas=(0,))
    assert reassignments(cluster) == {TP0: moving}
    stored = cluster.zk_client.get_full_replica_assignment_for_topics(["t"])
    assert stored == {TP0: moving}
    told = leader_and_isr_states(cluster.brokers[2].wait_for(LeaderAndIsrRequest)[-1])[TP0]
    assert told.adding_replicas == [2]

    assert alter_isr(cluster, TP0, [0, 1, 2]) is Errors.NONE

    wait_until(lambda: reassignments(cluster) == {})
    stored = cluster.zk_client.get_full_replica_assignment_for_topics(["t"])
    assert stored == {TP0: ReplicaAssignment((2, 1))}
    state = cluster.state(TP0)
    assert state is not None
    assert (state.leader, set(state.isr)) == (2, {1, 2})
    wait_until(lambda: cluster.brokers[0].deleted_partitions == {TP0})


def test_reassignment_can_be_called_off(cluster: Cluster) -> None:
    start(cluster, 0, 1)
    cluster.create_topic("t", [0])
    assert reassign(cluster, TP0, (1,)) == ApiResult()

    assert reassign(cluster, TP0, None) == ApiResult()

    assert reassignments(cluster) == {}
    stored = cluster.zk_client.get_full_replica_assignment_for_topics(["t"])
    assert stored == {TP0: ReplicaAssignment((0,))}
    wait_until(lambda: cluster.brokers[1].deleted_partitions == {TP0})
    assert reassign(cluster, TP0, None).error is Errors.NO_REASSIGNMENT_IN_PROGRESS


def test_impossible_reassignments_are_refused(cluster: Cluster) -> None:
    start(cluster, 0)
    cluster.create_topic("t", [0])

    for targets in ((), (0, 0), (-1,), (5,)):
        result = reassign(cluster, TP0, targets)
        assert result.error is Errors.INVALID_REPLICA_ASSIGNMENT, targets
    unknown = reassign(cluster, TopicPartition("nowhere", 0), (0,))
    assert unknown.error is Errors.UNKNOWN_TOPIC_OR_PARTITION


def test_reassignment_from_the_store_is_done_and_removed(cluster: Cluster) -> None:
    start(cluster, 0, 1)
    cluster.create_topic("t", [0])

    cluster.zk_client.create_partition_reassignment({TP0: [1]})

    wait_until(lambda: TP0 in reassignments(cluster))
    cluster.wait_until_idle()
    assert alter_isr(cluster, TP0, [0, 1]) is Errors.NONE
    cluster.wait_for_leader(TP0, 1)
    wait_until(lambda: not cluster.zk_client.reassign_partitions_in_progress())


def test_reassignment_survives_a_change_of_controller(cluster: Cluster) -> None:
    start(cluster, 0, 1, 2)
    cluster.create_topic("t", [1])
    assert reassign(cluster, TP0, (2,)) == ApiResult()

    cluster.stop(0)

    wait_until(lambda: any(m.controller.is_active for m in cluster.members.values()))
    wait_until(lambda: TP0 in reassignments(cluster))
    wait_until(lambda: alter_isr(cluster, TP0, [1, 2]) is Errors.NONE)
    cluster.wait_for_leader(TP0, 2)
