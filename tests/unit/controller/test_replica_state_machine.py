import itertools

import pytest

from kafkapy.common.errors import ControllerMovedError
from kafkapy.common.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from kafkapy.common.protocol.messages.stop_replica import StopReplicaRequest
from kafkapy.common.types import TopicPartition
from kafkapy.controller.controller_context import PartitionAndReplica
from kafkapy.controller.replica_state import ReplicaState
from kafkapy.metadata.leader_and_isr import EPOCH_DURING_DELETE, NO_LEADER, LeaderAndIsr
from kafkapy.zk.kafka_zk_client import KafkaZkClient
from tests.unit.controller.builders import Machines, context_of, leadership
from tests.unit.controller.fake_broker import leader_and_isr_states

TP = TopicPartition("t", 0)
ON_1, ON_2 = PartitionAndReplica(TP, 1), PartitionAndReplica(TP, 2)

NEW, ONLINE, OFFLINE, STARTED, SUCCESSFUL, INELIGIBLE, NON_EXISTENT = ReplicaState
LIVING = (NEW, ONLINE, OFFLINE, INELIGIBLE)
LEGAL = {
    (NON_EXISTENT, NEW),
    *((before, ONLINE) for before in LIVING),
    *((before, OFFLINE) for before in LIVING),
    (OFFLINE, STARTED),
    (STARTED, SUCCESSFUL),
    (OFFLINE, INELIGIBLE),
    (STARTED, INELIGIBLE),
    (SUCCESSFUL, NON_EXISTENT),
}


def machines(zk_client: KafkaZkClient, *, live: tuple[int, ...] = (1, 2)) -> Machines:
    given = Machines(zk_client, context_of({TP: (1, 2)}, live))
    given.write_state(TP, leadership(2, [1, 2]))
    return given


def stop_replica_states(
    given: Machines,
) -> list[tuple[int, StopReplicaRequest.StopReplicaPartitionState]]:
    return [
        (broker_id, state)
        for broker_id, request in given.sender.of(StopReplicaRequest)
        for topic in request.topic_states  # type: ignore[attr-defined]
        for state in topic.partition_states
    ]


@pytest.mark.parametrize(
    ("before", "target"), sorted(itertools.product(ReplicaState, ReplicaState))
)
def test_only_legal_steps_are_made(
    zk_client: KafkaZkClient, before: ReplicaState, target: ReplicaState
) -> None:
    given = machines(zk_client)
    given.context.put_replica_state(ON_1, before)

    given.replicas.handle_state_changes([ON_1], target)

    if (before, target) not in LEGAL:
        assert given.context.replica_state(ON_1) is before
        assert given.sender.sent == []
    elif target is NON_EXISTENT:
        with pytest.raises(KeyError):
            given.context.replica_state(ON_1)
    else:
        assert given.context.replica_state(ON_1) is target


def test_startup_tells_online_replicas_and_takes_dead_ones_out_of_isr(
    zk_client: KafkaZkClient,
) -> None:
    given = machines(zk_client, live=(2,))

    given.replicas.startup()

    assert given.context.replica_state(ON_2) is ONLINE
    assert given.context.replica_state(ON_1) is OFFLINE
    assert given.stored(TP) == LeaderAndIsr(leader=2, leader_epoch=1, isr=(2,), partition_epoch=1)
    requests = given.sender.of(LeaderAndIsrRequest)
    assert [b for b, _ in requests] == [2, 2]
    assert leader_and_isr_states(requests[-1][1])[TP].isr == [2]


def test_offline_leader_leaves_partition_without_leader(zk_client: KafkaZkClient) -> None:
    given = machines(zk_client, live=(1, 2))
    given.context.put_replica_state(ON_2, ONLINE)

    given.replicas.handle_state_changes([ON_2], OFFLINE)

    stored = given.stored(TP)
    assert (stored.leader, stored.isr) == (NO_LEADER, (1,))
    assert [b for b, _ in given.sender.of(LeaderAndIsrRequest)] == [1]
    ((broker_id, state),) = stop_replica_states(given)
    assert broker_id == 2
    assert not state.delete_partition
    # The epoch from before the election: the request goes out for the state the broker knows.
    assert state.leader_epoch == 0


def test_last_replica_in_sync_stays_in_isr_when_it_goes_offline(zk_client: KafkaZkClient) -> None:
    given = Machines(zk_client, context_of({TP: (1,)}, [1]))
    given.write_state(TP, leadership(1, [1]))
    given.context.put_replica_state(ON_1, ONLINE)

    given.replicas.handle_state_changes([ON_1], OFFLINE)

    stored = given.stored(TP)
    assert (stored.leader, stored.isr) == (NO_LEADER, (1,))


def test_replica_outside_isr_goes_offline_without_a_write(zk_client: KafkaZkClient) -> None:
    given = Machines(zk_client, context_of({TP: (1, 2)}, [1, 2]))
    given.write_state(TP, leadership(2, [2]))
    given.context.put_replica_state(ON_1, ONLINE)

    given.replicas.handle_state_changes([ON_1], OFFLINE)

    assert given.context.replica_state(ON_1) is OFFLINE
    assert given.stored(TP).partition_epoch == 0


def test_leader_cannot_become_a_new_replica(zk_client: KafkaZkClient) -> None:
    given = machines(zk_client)

    given.replicas.handle_state_changes([ON_1, ON_2], NEW)

    assert given.context.replica_state(ON_1) is NEW
    assert given.context.replica_state(ON_2) is NON_EXISTENT
    ((broker_id, request),) = given.sender.of(LeaderAndIsrRequest)
    assert broker_id == 1
    assert leader_and_isr_states(request)[TP].is_new


def test_deletion_is_asked_for_with_the_epoch_that_overrides_all(zk_client: KafkaZkClient) -> None:
    given = machines(zk_client)
    given.context.queue_topic_deletion({"t"})
    given.context.put_replica_state(ON_1, OFFLINE)

    given.replicas.handle_state_changes([ON_1], STARTED)

    ((broker_id, state),) = stop_replica_states(given)
    assert broker_id == 1
    assert state.delete_partition
    assert state.leader_epoch == EPOCH_DURING_DELETE


def test_deleted_replica_leaves_the_assignment(zk_client: KafkaZkClient) -> None:
    given = machines(zk_client)
    given.context.put_replica_state(ON_1, SUCCESSFUL)

    given.replicas.handle_state_changes([ON_1], NON_EXISTENT)

    assert given.context.partition_replica_assignment(TP) == (2,)


def test_stale_controller_epoch_raises_and_changes_nothing(zk_client: KafkaZkClient) -> None:
    given = machines(zk_client)
    given.context.put_replica_state(ON_1, ONLINE)
    zk_client.set_controller_epoch_raw(given.context.epoch + 1, given.context.epoch_zk_version)

    with pytest.raises(ControllerMovedError):
        given.replicas.handle_state_changes([ON_1], OFFLINE)

    assert given.context.replica_state(ON_1) is ONLINE
    assert given.stored(TP).isr == (1, 2)
