from uuid import UUID

import pytest

from kafkapy.common.errors import ControllerMovedError, Errors
from kafkapy.common.protocol.messages.leader_and_isr import LeaderAndIsrResponse
from kafkapy.common.protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from kafkapy.common.types import ZERO_UUID, TopicPartition
from tests.helpers.records import records
from tests.unit.replication.harness import TOPIC_ID, TP

OTHER = TopicPartition("t", 1)


def error_of(response: LeaderAndIsrResponse | StopReplicaResponse) -> Errors:
    assert response.error_code == 0
    if isinstance(response, LeaderAndIsrResponse) and response.topics:
        (topic,) = response.topics
        (error,) = topic.partition_errors
    else:
        (error,) = response.partition_errors
    return Errors.for_code(error.error_code)


class FakeFetcherManager:
    def __init__(self) -> None:
        self.fetching = {}
        self.events = []

    def add_fetcher_for_partitions(self, partitions) -> None:
        self.fetching.update(partitions)

    def remove_fetcher_for_partitions(self, partitions) -> None:
        for tp in partitions:
            self.fetching.pop(tp, None)

    def shutdown_idle_fetcher_threads(self) -> None:
        self.events.append("idle")

    def shutdown(self) -> None:
        self.events.append("shutdown")


# Becoming leader


@pytest.mark.parametrize("version", [0, 1, 2, 4, 5, 7])
def test_every_version_makes_a_leader_and_is_answered_in_its_form(broker, version):
    response = broker.leader_and_isr(version=version)

    assert error_of(response) is Errors.NONE
    assert bool(response.topics) == (version >= 5)
    assert LeaderAndIsrResponse.decode(response.encode(version), version) is not None
    partition = broker.replica_manager.get_partition(TP)
    assert partition.is_leader
    assert partition.topic_id == (TOPIC_ID if version >= 2 else None)


def test_new_leader_has_a_log_with_its_topic_id_and_epoch(broker):
    partition = broker.lead(leader_epoch=4)

    assert partition.log.topic_id == TOPIC_ID
    assert partition.log.latest_epoch == 4
    assert partition.leader_epoch_start_offset == 0
    assert broker.replica_manager.get_log(TP) is partition.log
    assert broker.replica_manager.get_log_config(TP) is partition.log.config
    assert broker.metric("LeaderCount") == broker.metric("PartitionCount") == 1


def test_leadership_listener_is_told_who_leads_and_who_follows(broker):
    heard = []
    broker.update_metadata()

    def listen(leaders, followers):
        heard.append(([p.topic_partition for p in leaders], [p.topic_partition for p in followers]))

    broker.leader_and_isr(TP, on_leadership_change=listen)
    broker.leader_and_isr(OTHER, leader=2, replicas=(1, 2), on_leadership_change=listen)
    broker.leader_and_isr(TP, leader_epoch=1, partition_epoch=1, on_leadership_change=listen)

    assert heard == [([TP], []), ([], [OTHER]), ([], [])]


def test_request_of_an_old_controller_is_refused_as_a_whole(broker):
    broker.leader_and_isr(controller_epoch=5)

    response = broker.leader_and_isr(OTHER, controller_epoch=4)

    assert Errors.for_code(response.error_code) is Errors.STALE_CONTROLLER_EPOCH
    assert broker.replica_manager.get_partition(OTHER) is None
    stopped = broker.stop(delete=True, controller_epoch=4)
    assert Errors.for_code(stopped.error_code) is Errors.STALE_CONTROLLER_EPOCH
    with pytest.raises(ControllerMovedError):
        broker.update_metadata(controller_epoch=4)


@pytest.mark.parametrize("leader_epoch", [2, 3])
def test_leader_epoch_that_is_not_newer_changes_nothing(broker, leader_epoch):
    partition = broker.lead(leader_epoch=3)

    response = broker.leader_and_isr(leader=2, leader_epoch=leader_epoch, replicas=(1, 2))

    assert error_of(response) is Errors.STALE_CONTROLLER_EPOCH
    assert partition.is_leader


def test_older_partition_epoch_changes_nothing(broker):
    partition = broker.lead(leader_epoch=1, partition_epoch=5)

    response = broker.leader_and_isr(leader_epoch=2, partition_epoch=4)

    assert error_of(response) is Errors.NONE
    assert (partition.leader_epoch, partition.partition_epoch) == (1, 5)


def test_partition_assigned_to_others_is_refused(broker):
    response = broker.leader_and_isr(leader=2, replicas=(2, 3))

    assert error_of(response) is Errors.UNKNOWN_TOPIC_OR_PARTITION


def test_another_topic_of_the_same_name_is_refused(broker):
    partition = broker.lead()

    response = broker.leader_and_isr(leader_epoch=1, topic_id=UUID(int=99))

    assert error_of(response) is Errors.INCONSISTENT_TOPIC_ID
    assert partition.leader_epoch == 0


def test_topic_id_that_comes_later_is_taken_without_a_new_epoch(broker):
    broker.leader_and_isr(topic_id=ZERO_UUID)
    partition = broker.replica_manager.get_partition(TP)
    assert partition.topic_id is None

    response = broker.leader_and_isr(topic_id=TOPIC_ID)

    assert error_of(response) is Errors.NONE
    assert partition.topic_id == TOPIC_ID


def test_topic_id_that_comes_with_a_new_epoch_is_taken(broker):
    broker.leader_and_isr(topic_id=ZERO_UUID)

    broker.leader_and_isr(topic_id=TOPIC_ID, leader_epoch=1, partition_epoch=1)

    assert broker.replica_manager.get_log(TP).topic_id == TOPIC_ID


def test_new_epoch_of_the_same_leader_starts_at_the_log_end(broker):
    partition = broker.lead()
    broker.produce(records("a", "b"))

    broker.leader_and_isr(leader_epoch=3, partition_epoch=1)

    assert partition.leader_epoch_start_offset == 2
    end = broker.replica_manager.last_offset_for_leader_epoch(TP, leader_epoch=0)
    assert (end.leader_epoch, end.end_offset) == (0, 2)


def test_high_watermark_is_restored_from_its_checkpoint(make_broker, time, tmp_path):
    broker = make_broker()
    partition = broker.lead(replicas=(1, 2))
    broker.produce(records("a", "b", "c"))
    broker.fetch(2, replica_id=2, max_wait_ms=0)
    assert partition.log.high_watermark == 2
    broker.close()

    again = type(broker)(tmp_path / "broker-0", time)
    partition = again.lead(replicas=(1, 2), leader_epoch=1, is_new=False)

    assert partition.log.log_end_offset == 3
    assert partition.log.high_watermark == 2
    again.close()


def test_log_on_disk_of_another_topic_of_the_same_name_is_not_taken_over(
    make_broker, time, tmp_path
):
    broker = make_broker()
    broker.lead()
    broker.close()

    again = type(broker)(tmp_path / "broker-0", time)
    response = again.leader_and_isr(leader_epoch=1, topic_id=UUID(int=99))

    assert error_of(response) is Errors.INCONSISTENT_TOPIC_ID
    again.close()


def test_high_watermarks_are_checkpointed_periodically_after_the_first_request(broker, time):
    checkpoint = f"{broker.log_dirs[0]}/replication-offset-checkpoint"
    assert time.scheduler.pending("highwatermark-checkpoint") == []
    broker.lead()
    broker.produce("a")

    time.sleep(5000)

    with open(checkpoint) as file:
        assert file.read().split("\n")[1:] == ["1", "t 0 1", ""]
    assert len(time.scheduler.pending("highwatermark-checkpoint")) == 1


# Becoming follower


def test_follower_keeps_its_log_and_refuses_to_lead(make_broker):
    fetchers = FakeFetcherManager()
    broker = make_broker(fetcher_manager=fetchers)
    partition = broker.lead(replicas=(1, 2))
    broker.produce(records("a", "b"))

    response = broker.leader_and_isr(leader=2, leader_epoch=1, partition_epoch=1, replicas=(1, 2))

    assert error_of(response) is Errors.NONE
    assert not partition.is_leader
    assert partition.log.log_end_offset == 2
    assert partition.in_sync_replica_ids == frozenset()
    state = fetchers.fetching[TP]
    assert (state.leader.id, state.current_leader_epoch, state.init_offset) == (2, 1, 2)
    assert state.topic_id == TOPIC_ID
    broker.leader_and_isr(leader_epoch=2, partition_epoch=2, replicas=(1, 2))
    assert fetchers.fetching == {}


def test_follower_without_epochs_starts_at_its_high_watermark(make_broker):
    fetchers = FakeFetcherManager()
    broker = make_broker(fetcher_manager=fetchers)
    broker.update_metadata(replicas=(1, 2), leader=2)

    broker.leader_and_isr(leader=2, replicas=(1, 2))

    assert fetchers.fetching[TP].init_offset == 0


def test_follower_of_a_dead_leader_only_gets_its_log(make_broker):
    fetchers = FakeFetcherManager()
    broker = make_broker(fetcher_manager=fetchers, alive_brokers=(1,))
    broker.update_metadata(replicas=(1, 2), leader=2)

    broker.leader_and_isr(leader=2, replicas=(1, 2))

    partition = broker.replica_manager.get_partition(TP)
    assert partition.log is not None
    assert partition.leader_replica_id is None
    assert fetchers.fetching == {}


# StopReplica


def test_stopped_replica_keeps_its_log(broker):
    partition = broker.lead()

    assert error_of(broker.stop(delete=False, leader_epoch=0)) is Errors.NONE

    assert broker.replica_manager.get_partition(TP) is partition
    assert broker.replica_manager.get_log(TP) is not None


def test_deleted_replica_is_gone_with_its_log_and_metrics(broker):
    broker.lead()
    broker.produce("a")

    assert error_of(broker.stop(delete=True, leader_epoch=-2)) is Errors.NONE

    assert broker.replica_manager.get_partition(TP) is None
    assert broker.replica_manager.get_log(TP) is None
    assert broker.metric("PartitionCount") == 0
    names = {(s.spec.name, dict(s.labels).get("topic")) for s in broker.metrics.samples()}
    assert ("UnderReplicated", "t") not in names
    assert ("MessagesInPerSec", "t") not in names
    broker.lead(topic_id=UUID(int=77))
    assert broker.replica_manager.get_log(TP).log_end_offset == 0


def test_stop_with_an_older_leader_epoch_is_fenced(broker):
    broker.lead(leader_epoch=3)

    assert error_of(broker.stop(delete=True, leader_epoch=2)) is Errors.FENCED_LEADER_EPOCH

    assert broker.replica_manager.get_partition(TP) is not None


def test_stop_of_an_unknown_replica_is_no_error(broker):
    assert error_of(broker.stop(delete=True)) is Errors.NONE


@pytest.mark.parametrize("version", [0, 1, 2])
def test_old_forms_of_stop_replica_are_understood(broker, version):
    broker.lead()
    request = StopReplicaRequest(controller_id=1, controller_epoch=1, delete_partitions=True)
    if version == 0:
        request.ungrouped_partitions = [
            StopReplicaRequest.StopReplicaPartitionV0(topic_name="t", partition_index=0)
        ]
    else:
        request.topics = [StopReplicaRequest.StopReplicaTopicV1(name="t", partition_indexes=[0])]

    response = broker.replica_manager.stop_replicas(0, request, version)

    assert error_of(response) is Errors.NONE
    assert broker.replica_manager.get_partition(TP) is None


def test_partitions_of_deleted_topics_are_returned_by_a_metadata_update(broker):
    broker.update_metadata()
    assert broker.metadata_cache.contains(TP)

    broker.update_metadata(leader=-2)

    assert not broker.metadata_cache.contains(TP)


# Shutdown


def test_shutdown_writes_checkpoints_once_and_removes_gauges(make_broker):
    fetchers = FakeFetcherManager()
    broker = make_broker(fetcher_manager=fetchers)
    broker.replica_manager.startup()
    broker.lead()
    broker.produce("a")

    broker.replica_manager.shutdown()
    broker.replica_manager.shutdown()

    with open(f"{broker.log_dirs[0]}/replication-offset-checkpoint") as file:
        assert "t 0 1" in file.read()
    assert fetchers.events.count("shutdown") == 1
    assert "LeaderCount" not in {sample.spec.name for sample in broker.metrics.samples()}
