import itertools
from dataclasses import replace

import pytest

from kafkapy.common.errors import ControllerMovedError
from kafkapy.common.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from kafkapy.common.protocol.messages.update_metadata import UpdateMetadataRequest
from kafkapy.common.types import TopicPartition
from kafkapy.controller.election import (
    ControlledShutdownPartitionLeaderElectionStrategy,
    OfflinePartitionLeaderElectionStrategy,
    PreferredReplicaPartitionLeaderElectionStrategy,
)
from kafkapy.controller.partition_state import PartitionState
from kafkapy.controller.partition_state_machine import StateChangeFailedError
from kafkapy.metadata.leader_and_isr import LeaderAndIsr, LeaderRecoveryState
from kafkapy.zk.kafka_zk_client import KafkaZkClient
from kafkapy.zk.zk_data import ConfigType
from tests.unit.controller.builders import Machines, context_of, leadership
from tests.unit.controller.fake_broker import leader_and_isr_states

TP = TopicPartition("t", 0)
NEW, ONLINE, OFFLINE, NON_EXISTENT = (
    PartitionState.NEW,
    PartitionState.ONLINE,
    PartitionState.OFFLINE,
    PartitionState.NON_EXISTENT,
)
LEGAL = {
    (NON_EXISTENT, NEW),
    (NEW, ONLINE),
    (ONLINE, ONLINE),
    (OFFLINE, ONLINE),
    (NEW, OFFLINE),
    (ONLINE, OFFLINE),
    (OFFLINE, OFFLINE),
    (OFFLINE, NON_EXISTENT),
}
OFFLINE_ELECTION = OfflinePartitionLeaderElectionStrategy()


def machines(
    zk_client: KafkaZkClient, *, replicas: tuple[int, ...] = (1, 2), live: tuple[int, ...] = (1, 2)
) -> Machines:
    return Machines(zk_client, context_of({TP: replicas}, live))


@pytest.mark.parametrize(
    ("before", "target"), sorted(itertools.product(PartitionState, PartitionState))
)
def test_only_legal_steps_are_made(
    zk_client: KafkaZkClient, before: PartitionState, target: PartitionState
) -> None:
    given = machines(zk_client)
    if before in (ONLINE, OFFLINE):
        given.write_state(TP, leadership(1, [1, 2]))
    given.context.put_partition_state(TP, before)

    given.partitions.handle_state_changes([TP], target, OFFLINE_ELECTION)

    legal = (before, target) in LEGAL
    assert given.context.partition_state(TP) is (target if legal else before)
    if not legal:
        assert given.sender.sent == []


def test_new_partition_going_online_writes_its_first_state_and_tells_its_replicas(
    zk_client: KafkaZkClient,
) -> None:
    given = machines(zk_client, replicas=(3, 1, 2), live=(1, 2, 5))
    given.partitions.handle_state_changes([TP], NEW)

    given.partitions.handle_state_changes([TP], ONLINE, OFFLINE_ELECTION)

    assert given.stored(TP) == LeaderAndIsr(leader=1, leader_epoch=0, isr=(1, 2))
    told = given.sender.of(LeaderAndIsrRequest)
    assert sorted(broker_id for broker_id, _ in told) == [1, 2]
    for broker_id, request in told:
        assert isinstance(request, LeaderAndIsrRequest)
        state = leader_and_isr_states(request)[TP]
        assert (state.leader, state.isr, state.replicas) == (1, [1, 2], [3, 1, 2])
        assert state.is_new
        assert request.broker_epoch == 100 + broker_id
        assert request.controller_epoch == given.context.epoch
        assert request.topic_states[0].topic_id == given.context.topic_ids["t"]
        assert [leader.broker_id for leader in request.live_leaders] == [1]
    assert sorted(b for b, _ in given.sender.of(UpdateMetadataRequest)) == [1, 2, 5]


def test_new_partition_without_live_replicas_stays_new(zk_client: KafkaZkClient) -> None:
    given = machines(zk_client, live=(5,))
    given.partitions.handle_state_changes([TP], NEW)

    given.partitions.handle_state_changes([TP], ONLINE, OFFLINE_ELECTION)

    assert given.context.partition_state(TP) is NEW
    assert zk_client.get_topic_partition_state(TP) is None


def test_startup_takes_states_from_leaders_and_elects_for_the_rest(
    zk_client: KafkaZkClient,
) -> None:
    led, leaderless, never_led = (TopicPartition("t", p) for p in range(3))
    given = Machines(
        zk_client, context_of({led: (1, 2), leaderless: (3, 2), never_led: (2, 1)}, [1, 2])
    )
    given.write_state(led, leadership(1, [1, 2], leader_epoch=4))
    given.write_state(leaderless, leadership(3, [3, 2], leader_epoch=4))

    given.partitions.startup()

    assert given.context.partitions_in_state(ONLINE) == {led, leaderless, never_led}
    assert given.stored(led).leader_epoch == 4
    assert given.stored(leaderless) == LeaderAndIsr(
        leader=2, leader_epoch=5, isr=(2,), partition_epoch=1
    )
    assert given.stored(never_led).leader == 2


def test_partition_without_live_replica_in_sync_stays_offline(zk_client: KafkaZkClient) -> None:
    given = machines(zk_client, live=(2,))
    given.write_state(TP, leadership(1, [1]))

    given.partitions.startup()

    assert given.context.partition_state(TP) is OFFLINE
    assert given.context.offline_partition_count == 1
    assert given.stored(TP).leader == 1
    assert given.unclean.count == 0


@pytest.mark.parametrize("from_admin", [True, False])
def test_unclean_election_happens_when_topic_or_administrator_allows_it(
    zk_client: KafkaZkClient, from_admin: bool
) -> None:
    given = machines(zk_client, live=(2,))
    given.write_state(TP, leadership(1, [1]))
    given.context.put_partition_state(TP, OFFLINE)
    if not from_admin:
        zk_client.set_or_create_entity_configs(
            ConfigType.TOPIC, "t", {"unclean.leader.election.enable": "true"}
        )

    given.partitions.handle_state_changes(
        [TP], ONLINE, OfflinePartitionLeaderElectionStrategy(allow_unclean=from_admin)
    )

    assert given.context.partition_state(TP) is ONLINE
    elected = given.stored(TP)
    assert (elected.leader, elected.isr) == (2, (2,))
    assert elected.leader_recovery_state is LeaderRecoveryState.RECOVERING
    assert given.unclean.count == 1


def test_election_reads_isr_changes_that_the_controller_has_not_seen(
    zk_client: KafkaZkClient,
) -> None:
    given = machines(zk_client, replicas=(1, 2, 3), live=(2, 3))
    given.write_state(TP, leadership(1, [1, 2, 3]))
    given.context.put_partition_state(TP, OFFLINE)
    shrunk = replace(leadership(1, [1, 3]).leader_and_isr, partition_epoch=0)
    zk_client.update_leader_and_isr({TP: shrunk}, 1, given.context.epoch_zk_version)

    given.partitions.handle_state_changes([TP], ONLINE, OFFLINE_ELECTION)

    assert given.stored(TP) == LeaderAndIsr(leader=3, leader_epoch=1, isr=(3,), partition_epoch=2)
    info = given.context.partition_leadership_info(TP)
    assert info is not None
    assert info.leader_and_isr.partition_epoch == 2


def test_state_written_by_a_later_controller_is_left_alone(zk_client: KafkaZkClient) -> None:
    given = machines(zk_client, live=(2,))
    given.write_state(TP, leadership(1, [1, 2], controller_epoch=given.context.epoch + 1))
    given.context.put_partition_state(TP, OFFLINE)

    outcomes = given.partitions.handle_state_changes([TP], ONLINE, OFFLINE_ELECTION)

    assert isinstance(outcomes[TP], StateChangeFailedError)
    assert given.context.partition_state(TP) is OFFLINE
    assert given.stored(TP).leader == 1


def test_partition_without_state_in_the_store_cannot_be_elected_for(
    zk_client: KafkaZkClient,
) -> None:
    given = machines(zk_client)
    given.context.put_partition_state(TP, OFFLINE)

    outcomes = given.partitions.handle_state_changes([TP], ONLINE, OFFLINE_ELECTION)

    assert isinstance(outcomes[TP], StateChangeFailedError)
    assert given.context.partition_state(TP) is OFFLINE


def test_preferred_election_moves_leadership_back(zk_client: KafkaZkClient) -> None:
    given = machines(zk_client)
    given.write_state(TP, leadership(2, [1, 2]))
    given.context.put_partition_state(TP, ONLINE)

    outcomes = given.partitions.handle_state_changes(
        [TP], ONLINE, PreferredReplicaPartitionLeaderElectionStrategy()
    )

    assert outcomes == {TP: given.stored(TP)}
    assert given.stored(TP).leader == 1


def test_controlled_shutdown_election_takes_leader_out(zk_client: KafkaZkClient) -> None:
    given = machines(zk_client)
    given.write_state(TP, leadership(1, [1, 2]))
    given.context.put_partition_state(TP, ONLINE)
    given.context.shutting_down_broker_ids.add(1)

    given.partitions.handle_state_changes(
        [TP], ONLINE, ControlledShutdownPartitionLeaderElectionStrategy()
    )

    assert given.stored(TP) == LeaderAndIsr(leader=2, leader_epoch=1, isr=(2,), partition_epoch=1)
    assert sorted(b for b, _ in given.sender.of(LeaderAndIsrRequest)) == [1, 2]


def test_topics_queued_for_deletion_are_not_brought_online(zk_client: KafkaZkClient) -> None:
    given = machines(zk_client)
    given.context.put_partition_state(TP, NEW)
    given.context.queue_topic_deletion({"t"})

    given.partitions.trigger_online_partition_state_change()

    assert given.context.partition_state(TP) is NEW


def test_write_with_stale_controller_epoch_raises_and_changes_nothing(
    zk_client: KafkaZkClient,
) -> None:
    given = machines(zk_client)
    given.context.put_partition_state(TP, NEW)
    zk_client.set_controller_epoch_raw(given.context.epoch + 1, given.context.epoch_zk_version)

    with pytest.raises(ControllerMovedError):
        given.partitions.handle_state_changes([TP], ONLINE, OFFLINE_ELECTION)

    assert given.context.partition_state(TP) is NEW
    assert zk_client.get_topic_partition_state(TP) is None
    assert given.sender.sent == []
