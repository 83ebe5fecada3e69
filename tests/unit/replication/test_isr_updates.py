import pytest

from kafkapy.common.errors import (
    InvalidUpdateVersionError,
    NetworkError,
    OperationNotAttemptedError,
)
from kafkapy.metadata.leader_and_isr import LeaderAndIsr
from kafkapy.replication.partition_state import CommittedPartitionState, PendingExpandIsr
from tests.unit.replication.harness import TP, ReplicaHarness

REPLICAS = (1, 2, 3)
LAG_MS = 1000


@pytest.fixture
def manual(make_broker) -> ReplicaHarness:
    """A broker whose ISR changes are answered by the test."""
    return make_broker(accept_isr=False, lag_ms=LAG_MS)


def follow(broker, replica_id, offset):
    broker.fetch(offset, replica_id=replica_id, max_wait_ms=0)


# High watermark


def test_high_watermark_is_the_smallest_end_in_the_isr(broker):
    partition = broker.lead(replicas=REPLICAS)
    broker.produce("a")
    broker.produce("b")

    follow(broker, 2, 2)
    assert partition.log.high_watermark == 0
    follow(broker, 3, 1)
    assert partition.log.high_watermark == 1
    follow(broker, 3, 2)

    assert partition.log.high_watermark == 2


def test_high_watermark_does_not_wait_for_a_lagging_replica_outside_the_isr(broker, time):
    partition = broker.lead(replicas=REPLICAS, isr=(1, 2))
    time.sleep(10 * LAG_MS)
    broker.produce("a")

    follow(broker, 2, 1)

    assert partition.log.high_watermark == 1


def test_high_watermark_waits_for_a_replica_about_to_join_the_isr(manual, time):
    partition = manual.lead(replicas=REPLICAS, isr=(1, 2))
    manual.produce("a")
    follow(manual, 2, 1)
    assert partition.log.high_watermark == 1
    follow(manual, 3, 1)  # proposed for the ISR, not accepted yet
    assert partition.state.is_inflight
    time.sleep(10 * LAG_MS)  # it may be in the ISR for all we know, so its lag does not matter

    manual.produce("b")
    follow(manual, 2, 2)
    assert partition.log.high_watermark == 1
    follow(manual, 3, 2)

    assert partition.log.high_watermark == 2


def test_high_watermark_waits_for_a_caught_up_replica_even_before_it_is_proposed(broker, time):
    partition = broker.lead(replicas=REPLICAS, isr=(1, 2))
    broker.alive_brokers = [1, 2, 3]
    broker.produce("a")
    partition.remote_replicas[3].update_fetch_state(
        partition.log.convert_to_offset_metadata_or_raise(0),
        start_offset=0,
        fetch_time_ms=time.hi_res_clock_ms(),
        leader_end_offset=0,
        broker_epoch=1,
    )

    follow(broker, 2, 1)

    assert partition.log.high_watermark == 0


def test_dead_replica_outside_the_isr_is_not_waited_for(make_broker, time):
    broker = make_broker(alive_brokers=(1, 2))
    partition = broker.lead(replicas=REPLICAS, isr=(1, 2))
    broker.produce("a")
    partition.remote_replicas[3].update_fetch_state(
        partition.log.convert_to_offset_metadata_or_raise(0),
        start_offset=0,
        fetch_time_ms=time.hi_res_clock_ms(),
        leader_end_offset=0,
        broker_epoch=1,
    )

    follow(broker, 2, 1)

    assert partition.log.high_watermark == 1


# Expanding


def test_follower_that_has_caught_up_joins_the_isr(broker):
    partition = broker.lead(replicas=REPLICAS, isr=(1,))
    broker.produce("a")

    follow(broker, 2, 0)
    assert partition.in_sync_replica_ids == {1}
    follow(broker, 2, 1)

    assert partition.in_sync_replica_ids == {1, 2}
    assert partition.partition_epoch == 1
    assert broker.metric("IsrExpandsPerSec") == 1
    (proposed,) = broker.alter_partition_manager.submitted
    assert (proposed.leader, proposed.leader_epoch, proposed.isr) == (1, 0, (1, 2))
    assert proposed.partition_epoch == 0


def test_follower_at_the_high_watermark_but_before_the_epochs_start_stays_out(broker):
    partition = broker.lead(replicas=REPLICAS, isr=(1, 3))
    broker.produce("a")  # not committed: replica 3 has not fetched it
    broker.leader_and_isr(leader_epoch=1, partition_epoch=1, replicas=REPLICAS, isr=(1, 3))

    follow(broker, 2, 0)
    assert partition.log.high_watermark == 0
    assert partition.in_sync_replica_ids == {1, 3}
    follow(broker, 2, 1)

    assert partition.in_sync_replica_ids == {1, 2, 3}


def test_dead_broker_does_not_join(make_broker):
    broker = make_broker(alive_brokers=(1,))
    partition = broker.lead(replicas=(1, 2), isr=(1,))

    follow(broker, 2, 0)

    assert partition.in_sync_replica_ids == {1}
    assert broker.alter_partition_manager.submitted == []


def test_only_one_proposal_at_a_time(manual):
    partition = manual.lead(replicas=REPLICAS, isr=(1,))

    follow(manual, 2, 0)
    follow(manual, 3, 0)

    assert [proposal.isr for proposal in manual.alter_partition_manager.submitted] == [(1, 2)]
    assert isinstance(partition.state, PendingExpandIsr)
    assert partition.state.isr == {1}
    assert partition.state.maximal_isr == {1, 2}


# Shrinking


def test_follower_that_lags_too_long_leaves_and_waiting_produce_completes(broker, time):
    partition = broker.lead(replicas=REPLICAS)
    waiting = broker.produce("a", acks=-1, timeout_ms=60_000)
    time.sleep(LAG_MS - 10)
    follow(broker, 2, 1)

    time.sleep(11)
    broker.replica_manager.maybe_shrink_isr()

    assert partition.in_sync_replica_ids == {1, 2}
    assert partition.log.high_watermark == 1
    assert len(waiting) == 1
    assert broker.metric("IsrShrinksPerSec") == 1


def test_follower_with_everything_stays_however_long_ago_it_fetched(broker, time):
    partition = broker.lead(replicas=REPLICAS)
    broker.produce("a")
    follow(broker, 2, 1)
    follow(broker, 3, 1)

    time.sleep(100 * LAG_MS)
    broker.replica_manager.maybe_shrink_isr()

    assert partition.in_sync_replica_ids == {1, 2, 3}


def test_isr_is_checked_every_half_lag_time(broker, time):
    broker.replica_manager.startup()
    partition = broker.lead(replicas=REPLICAS)
    broker.produce("a")

    time.sleep(LAG_MS)
    assert partition.in_sync_replica_ids == {1, 2, 3}
    time.sleep(LAG_MS // 2)

    assert partition.in_sync_replica_ids == {1}


def test_wall_clock_jump_does_not_shrink_the_isr(broker, time):
    partition = broker.lead(replicas=REPLICAS)
    broker.produce("a")

    time.set_wall_clock_ms(time.milliseconds() + 86_400_000)
    broker.replica_manager.maybe_shrink_isr()

    assert partition.in_sync_replica_ids == {1, 2, 3}


def test_shrink_counts_for_the_high_watermark_only_when_accepted(manual, time):
    partition = manual.lead(replicas=(1, 2))
    manual.produce("a")
    time.sleep(LAG_MS + 1)
    manual.replica_manager.maybe_shrink_isr()
    assert partition.state.is_inflight
    assert partition.log.high_watermark == 0
    manual.produce("b")
    assert partition.log.high_watermark == 0

    manual.alter_partition_manager.answer(LeaderAndIsr(1, 0, (1,), partition_epoch=1))

    assert partition.in_sync_replica_ids == {1}
    assert partition.log.high_watermark == 2


# Answers


@pytest.fixture
def pending(manual):
    partition = manual.lead(replicas=(1, 2), isr=(1,))
    follow(manual, 2, 0)
    assert partition.state.is_inflight
    return partition


def test_refusal_that_changed_nothing_restores_the_old_state(manual, pending):
    manual.alter_partition_manager.answer(OperationNotAttemptedError())

    assert pending.state == CommittedPartitionState(frozenset({1}))
    assert manual.metric("FailedIsrUpdatesPerSec") == 1
    follow(manual, 2, 0)
    assert len(manual.alter_partition_manager.submitted) == 2


def test_refusal_for_being_out_of_date_waits_for_a_new_state(manual, pending):
    manual.alter_partition_manager.answer(InvalidUpdateVersionError())
    follow(manual, 2, 0)

    assert pending.state.is_inflight
    assert len(manual.alter_partition_manager.submitted) == 1
    manual.leader_and_isr(leader_epoch=1, partition_epoch=4, replicas=(1, 2), isr=(1, 2))
    assert pending.in_sync_replica_ids == {1, 2}
    assert not pending.state.is_inflight


def test_passing_failure_is_tried_again(manual, pending):
    manual.alter_partition_manager.answer(NetworkError())
    assert len(manual.alter_partition_manager.submitted) == 2

    manual.alter_partition_manager.answer(LeaderAndIsr(1, 0, (1, 2), partition_epoch=1))

    assert pending.in_sync_replica_ids == {1, 2}


def test_answer_that_comes_after_a_new_leader_epoch_is_left_out(manual, pending):
    manual.leader_and_isr(leader_epoch=1, partition_epoch=1, replicas=(1, 2), isr=(1,))

    manual.alter_partition_manager.answer(LeaderAndIsr(1, 0, (1, 2), partition_epoch=1))

    assert pending.in_sync_replica_ids == {1}
    assert pending.partition_epoch == 1
    assert manual.metric("FailedIsrUpdatesPerSec") == 0


@pytest.mark.parametrize(
    "answer",
    [LeaderAndIsr(1, 9, (1, 2), partition_epoch=1), LeaderAndIsr(1, 0, (1, 2), partition_epoch=-1)],
    ids=["another leader epoch", "an older partition epoch"],
)
def test_answer_for_another_epoch_is_a_failure(manual, pending, answer):
    manual.alter_partition_manager.answer(answer)

    assert pending.in_sync_replica_ids == {1}
    assert manual.metric("FailedIsrUpdatesPerSec") == 1


# Gauges


def test_gauges_tell_of_missing_replicas(make_broker):
    broker = make_broker(log_defaults={"min.insync.replicas": "2"})
    broker.lead(replicas=REPLICAS, isr=(1,))

    def gauges():
        return [
            broker.metric(name)
            for name in (
                "UnderReplicatedPartitions",
                "UnderMinIsrPartitionCount",
                "AtMinIsrPartitionCount",
            )
        ] + [
            broker.metric(name, topic="t", partition=0)
            for name in ("UnderReplicated", "UnderMinIsr", "AtMinIsr", "InSyncReplicasCount")
        ]

    assert gauges() == [1, 1, 0, 1, 1, 0, 1]
    follow(broker, 2, 0)
    assert gauges() == [1, 0, 1, 1, 0, 1, 2]
    follow(broker, 3, 0)
    assert gauges() == [0, 0, 0, 0, 0, 0, 3]
    assert broker.metric("ReplicasCount", topic="t", partition=0) == 3


def test_replicas_being_added_do_not_make_a_partition_under_replicated(broker):
    partition = broker.lead(replicas=REPLICAS, isr=(1, 2), adding=(3,))

    assert not partition.is_under_replicated
    assert partition.is_reassigning
    assert broker.metric("ReassigningPartitions") == 1
    assert broker.replica_manager.get_partition(TP) is partition
