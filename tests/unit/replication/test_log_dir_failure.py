from pathlib import Path

import pytest

from kafkapy.common.errors import Errors, KafkaStorageError
from kafkapy.common.types import TopicPartition
from tests.helpers.records import records
from tests.helpers.waiting import wait_until

PARTITIONS = [TopicPartition("t", i) for i in range(4)]


@pytest.fixture
def events() -> list[str]:
    return []


@pytest.fixture
def broker(make_broker, events):
    broker = make_broker(
        log_dirs=2,
        on_log_dir_failure=lambda log_dir: events.append(log_dir),
        on_all_log_dirs_failed=lambda: events.append("halt"),
    )
    for tp in PARTITIONS:
        broker.lead(tp)
    return broker


def partitions_by_dir(broker):
    found = {log_dir: [] for log_dir in broker.log_dirs}
    for partition in broker.replica_manager.online_partitions():
        found[partition.log.parent_dir].append(partition.topic_partition)
    return found


def test_partitions_of_a_failed_directory_go_offline_and_the_others_stay(broker, events):
    lost_dir, kept_dir = broker.log_dirs
    by_dir = partitions_by_dir(broker)
    assert all(by_dir.values())

    broker.replica_manager.handle_log_dir_failure(lost_dir)

    (answer,) = broker.produce({tp: records("a") for tp in PARTITIONS})
    for tp in by_dir[lost_dir]:
        assert answer[tp].error is Errors.KAFKA_STORAGE_ERROR
    for tp in by_dir[kept_dir]:
        assert answer[tp].error is Errors.NONE
    assert broker.metric("OfflineReplicaCount") == len(by_dir[lost_dir])
    assert broker.metric("PartitionCount") == len(PARTITIONS)
    assert events == [lost_dir]


def test_second_report_of_the_same_directory_is_left_out(broker, events):
    lost_dir = broker.log_dirs[0]

    broker.replica_manager.handle_log_dir_failure(lost_dir)
    broker.replica_manager.handle_log_dir_failure(lost_dir)

    assert events == [lost_dir]


def test_broker_halts_when_no_directory_is_left(broker, events):
    for log_dir in broker.log_dirs:
        broker.replica_manager.handle_log_dir_failure(log_dir)

    assert events == [broker.log_dirs[0], "halt"]


def test_failure_reported_by_storage_is_handled_by_a_thread_of_its_own(broker, events):
    broker.replica_manager.startup()

    broker.log_dir_failure_channel.maybe_add_offline_log_dir(broker.log_dirs[1], "test")

    wait_until(lambda: events == [broker.log_dirs[1]])


def test_offline_partition_stays_offline_when_asked_to_lead_or_stop(broker):
    lost_dir = broker.log_dirs[0]
    tp = partitions_by_dir(broker)[lost_dir][0]
    broker.replica_manager.handle_log_dir_failure(lost_dir)

    led = broker.leader_and_isr(tp, leader_epoch=1, partition_epoch=1)
    stopped = broker.stop(tp, delete=True, leader_epoch=-2)

    assert led.topics[0].partition_errors[0].error_code == Errors.KAFKA_STORAGE_ERROR.code
    assert stopped.partition_errors[0].error_code == Errors.KAFKA_STORAGE_ERROR.code


def test_partition_whose_log_cannot_be_made_goes_offline(broker, monkeypatch):
    def fail(*args, **kwargs):
        raise KafkaStorageError("disk")

    monkeypatch.setattr(broker.log_manager, "get_or_create_log", fail)
    tp = TopicPartition("new", 0)

    response = broker.leader_and_isr(tp)

    assert response.topics[0].partition_errors[0].error_code == Errors.KAFKA_STORAGE_ERROR.code
    assert broker.replica_manager.get_partition(tp) is None
    (answer,) = broker.produce({tp: records("a")})
    assert answer[tp].error is Errors.KAFKA_STORAGE_ERROR


def test_checkpoints_of_a_failed_directory_are_no_longer_written(broker):
    lost_dir, kept_dir = broker.log_dirs
    lost, kept = (Path(d) / "replication-offset-checkpoint" for d in (lost_dir, kept_dir))
    broker.replica_manager.checkpoint_high_watermarks()
    lost.unlink()
    kept.unlink()

    broker.replica_manager.handle_log_dir_failure(lost_dir)
    broker.replica_manager.checkpoint_high_watermarks()

    assert not lost.exists()
    assert kept.exists()


# DescribeLogDirs


def test_every_directory_is_described_with_its_partitions(broker):
    by_dir = partitions_by_dir(broker)
    broker.produce({tp: records("a") for tp in PARTITIONS})

    results = {result.log_dir: result for result in broker.replica_manager.describe_log_dirs(None)}

    assert set(results) == set(broker.log_dirs)
    for log_dir, result in results.items():
        assert result.error_code == 0
        assert result.total_bytes >= result.usable_bytes > 0
        (topic,) = result.topics
        assert topic.name == "t"
        assert {p.partition_index for p in topic.partitions} == {
            tp.partition for tp in by_dir[log_dir]
        }
        assert all(p.partition_size > 0 and p.offset_lag == 0 for p in topic.partitions)


def test_only_the_partitions_asked_for_are_described(broker):
    results = broker.replica_manager.describe_log_dirs({PARTITIONS[0]})

    described = [
        TopicPartition(topic.name, partition.partition_index)
        for result in results
        for topic in result.topics
        for partition in topic.partitions
    ]
    assert described == [PARTITIONS[0]]
    assert len(results) == 2


def test_failed_directory_is_described_by_its_error(broker):
    lost_dir = broker.log_dirs[0]
    broker.replica_manager.handle_log_dir_failure(lost_dir)

    results = {r.log_dir: r for r in broker.replica_manager.describe_log_dirs(None)}

    assert results[lost_dir].error_code == Errors.KAFKA_STORAGE_ERROR.code
    assert results[lost_dir].topics == []
    assert results[broker.log_dirs[1]].error_code == 0
