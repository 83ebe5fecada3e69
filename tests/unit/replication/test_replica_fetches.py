from uuid import UUID

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.types import ZERO_UUID, TopicPartition
from kafkapy.storage.fetch_isolation import FetchIsolation
from kafkapy.storage.fetch_params import ClientMetadata
from tests.helpers.records import records
from tests.unit.replication.harness import LISTENER, TP

OTHER = TopicPartition("t", 1)


def only(answers):
    ((_, result),) = answers[0]
    return result


def values(result):
    return [
        record.value if isinstance(record.value, bytes) else bytes(record.value)
        for batch in result.records.batches()
        for record in batch.records()
    ]


@pytest.fixture
def partition(broker):
    return broker.lead()


# Answered at once


def test_enough_data_is_answered_at_once(broker, partition):
    broker.produce(records("a", "b"))

    result = only(broker.fetch(0))

    assert result.error is Errors.NONE
    assert values(result) == [b"a", b"b"]
    assert (result.high_watermark, result.log_start_offset, result.last_stable_offset) == (2, 0, 2)


def test_fetch_that_does_not_want_to_wait_is_answered_at_once(broker, partition):
    assert only(broker.fetch(0, max_wait_ms=0)).records.size_in_bytes == 0


def test_fetch_of_nothing_is_answered_at_once(broker):
    assert broker.fetch() == [[]]


def test_fetch_without_minimum_is_answered_at_once(broker, partition):
    assert only(broker.fetch(0, min_bytes=0)).records.size_in_bytes == 0


def test_error_in_one_partition_answers_the_whole_fetch_at_once(broker, partition):
    (results,) = broker.fetch(0, (TopicPartition("unknown", 0), 0))

    assert [result.error for _, result in results] == [
        Errors.NONE,
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert results[1][1].high_watermark == -1


def test_diverging_epoch_is_answered_at_once(broker):
    broker.lead(replicas=(1, 2))
    broker.produce(records("a", "b"))
    broker.leader_and_isr(leader_epoch=5, partition_epoch=1, replicas=(1, 2))
    broker.produce("c")

    result = only(
        broker.fetch(10, replica_id=2, current_leader_epoch=5, last_fetched_epoch=3, min_bytes=1)
    )

    assert result.error is Errors.NONE
    assert result.diverging_epoch == (0, 2)
    assert result.records.size_in_bytes == 0


class FixedSelector:
    def __init__(self, broker_id: int | None) -> None:
        self.broker_id = broker_id
        self.seen = []

    def select(self, topic_partition, client, partition):
        self.seen.append(partition)
        return next((r for r in partition.replicas if r.endpoint.id == self.broker_id), None)


CLIENT = ClientMetadata("rack2", "client", "127.0.0.1", LISTENER)


def in_sync_follower(make_broker, selector):
    broker = make_broker(replica_selector=selector)
    partition = broker.lead(replicas=(1, 2))
    broker.produce("a")
    broker.fetch(1, replica_id=2, max_wait_ms=0)
    return broker, partition


def test_preferred_read_replica_is_answered_at_once_without_data(make_broker):
    selector = FixedSelector(2)
    broker, _ = in_sync_follower(make_broker, selector)

    result = only(broker.fetch(0, client_metadata=CLIENT))

    assert result.preferred_read_replica == 2
    assert result.records.size_in_bytes == 0
    assert result.high_watermark == 1
    assert {replica.endpoint.id for replica in selector.seen[0].replicas} == {1, 2}
    assert selector.seen[0].leader.endpoint.rack == "rack1"


@pytest.mark.parametrize("chosen", [1, None], ids=["the leader itself", "nobody"])
def test_leader_serves_what_the_selector_does_not_send_away(make_broker, chosen):
    broker, _ = in_sync_follower(make_broker, FixedSelector(chosen))

    result = only(broker.fetch(0, client_metadata=CLIENT))

    assert result.preferred_read_replica is None
    assert values(result) == [b"a"]


def test_selector_sees_only_in_sync_replicas_that_have_the_offset(make_broker):
    selector = FixedSelector(None)
    broker, _ = in_sync_follower(make_broker, selector)
    broker.produce("b")

    broker.fetch(2, client_metadata=CLIENT, max_wait_ms=0)

    assert [replica.endpoint.id for replica in selector.seen[0].replicas] == [1]


def test_client_without_metadata_is_never_sent_away(make_broker):
    broker, _ = in_sync_follower(make_broker, FixedSelector(2))

    assert only(broker.fetch(0)).preferred_read_replica is None


# Waiting


def test_fetch_waits_for_data_and_gets_it(broker, partition):
    waiting = broker.fetch(0, min_bytes=1)
    assert waiting == []
    assert broker.delayed_operations.fetch.num_delayed == 1

    broker.produce("a")

    assert values(only(waiting)) == [b"a"]
    assert broker.delayed_operations.fetch.num_delayed == 0


def test_fetch_waits_until_its_minimum_is_reached(broker, partition):
    size = records("a").size_in_bytes
    waiting = broker.fetch(0, min_bytes=2 * size)

    broker.produce("a")
    assert waiting == []
    broker.produce("b")

    assert values(only(waiting)) == [b"a", b"b"]


def test_bytes_of_all_partitions_count_towards_the_minimum(broker, partition):
    broker.lead(OTHER)
    size = records("a").size_in_bytes
    waiting = broker.fetch((TP, 0), (OTHER, 0), min_bytes=2 * size)

    broker.produce({TP: records("a")})
    assert waiting == []
    broker.produce({OTHER: records("b")})

    assert [values(result) for _, result in waiting[0]] == [[b"a"], [b"b"]]


def test_partition_limit_caps_what_counts_towards_the_minimum(broker, partition):
    size = records("a").size_in_bytes
    waiting = broker.fetch(0, min_bytes=2 * size, partition_max_bytes=size)

    broker.produce("a")
    broker.produce("b")

    assert waiting == []


def test_fetch_is_answered_with_what_there_is_when_its_time_is_up(broker, partition):
    waiting = broker.fetch(0, min_bytes=10_000, max_wait_ms=100)
    broker.produce("a")

    broker.expire(99)
    assert waiting == []
    broker.expire(1)

    assert values(only(waiting)) == [b"a"]
    assert broker.metric("ExpiresPerSec", fetcherType="consumer") == 1


def test_waiting_fetch_ends_when_leadership_is_lost(broker):
    broker.lead(replicas=(1, 2))
    waiting = broker.fetch(0)

    broker.leader_and_isr(leader=2, leader_epoch=1, partition_epoch=1, replicas=(1, 2))

    assert only(waiting).error is Errors.NOT_LEADER_OR_FOLLOWER


def test_waiting_fetch_from_a_follower_replica_goes_on_when_leadership_is_lost(broker):
    broker.lead(replicas=(1, 2))
    waiting = broker.fetch(0, client_metadata=CLIENT)

    broker.leader_and_isr(leader=2, leader_epoch=1, partition_epoch=1, replicas=(1, 2))

    assert waiting == []


def test_waiting_fetch_ends_when_the_partition_is_gone(broker, partition):
    waiting = broker.fetch(0)
    broker.update_metadata(leader=-2)

    broker.stop(delete=True, leader_epoch=-2)

    assert only(waiting).error is Errors.UNKNOWN_TOPIC_OR_PARTITION


def test_waiting_fetch_ends_when_its_log_dir_fails(make_broker):
    broker = make_broker(log_dirs=2)
    partition = broker.lead()
    waiting = broker.fetch(0)

    broker.replica_manager.handle_log_dir_failure(partition.log.parent_dir)

    assert only(waiting).error is Errors.KAFKA_STORAGE_ERROR


def test_waiting_fetch_ends_when_its_leader_epoch_is_fenced(broker, partition):
    waiting = broker.fetch(0, current_leader_epoch=0)

    broker.leader_and_isr(leader_epoch=1, partition_epoch=1)

    assert only(waiting).error is Errors.FENCED_LEADER_EPOCH


def test_waiting_fetch_ends_when_the_log_is_truncated_below_it(broker, partition):
    broker.produce(records("a", "b", "c"))
    waiting = broker.fetch(3)

    partition.log.truncate_to(1)
    broker.delayed_operations.fetch.check_and_complete(TP)

    assert only(waiting).error is Errors.OFFSET_OUT_OF_RANGE


def test_waiting_fetch_ends_when_data_comes_on_a_new_segment(broker, partition):
    broker.produce("a")
    waiting = broker.fetch(0, min_bytes=10_000)
    assert waiting == []

    partition.log.roll()
    broker.produce("b")

    assert values(only(waiting)) == [b"a"]


def test_roll_without_data_does_not_end_a_fetch_at_the_end(broker, partition):
    broker.produce("a")
    waiting = broker.fetch(1)

    partition.log.roll()
    broker.delayed_operations.fetch.check_and_complete(TP)

    assert waiting == []


def test_waiting_fetch_ends_when_its_epoch_turns_out_to_diverge(broker):
    partition = broker.lead(replicas=(1, 2), leader_epoch=3)
    broker.produce(records("a", "b"))
    waiting = broker.fetch(2, replica_id=2, last_fetched_epoch=3)
    assert waiting == []

    partition.log.leader_epoch_cache.truncate_from_end_async_flush(0)
    broker.delayed_operations.fetch.check_and_complete(TP)

    assert only(waiting).error is Errors.OFFSET_OUT_OF_RANGE


def test_waiting_fetch_ends_when_its_epoch_turns_out_to_be_unknown_to_the_leader(broker):
    partition = broker.lead(replicas=(1, 2), leader_epoch=3)
    broker.produce(records("a", "b"))
    waiting = broker.fetch(2, replica_id=2, last_fetched_epoch=3)
    assert waiting == []

    epochs = partition.log.leader_epoch_cache
    epochs.clear()
    epochs.assign(2, 0)
    epochs.assign(5, 2)
    broker.delayed_operations.fetch.check_and_complete(TP)

    assert only(waiting).diverging_epoch == (2, 2)


def test_fetch_that_has_waited_does_not_renew_what_it_told_of_the_follower(broker, time):
    partition = broker.lead(replicas=(1, 2))
    waiting = broker.fetch(0, replica_id=2)
    told = partition.remote_replicas[2].state

    time.sleep(100)
    broker.produce("a")

    assert len(waiting) == 1
    assert partition.remote_replicas[2].state == told


def test_fetch_below_the_log_start_is_out_of_range_even_if_epochs_diverge(broker):
    partition = broker.lead(replicas=(1, 2), isr=(1,))
    partition.remote_replicas = {}
    broker.produce(records("a", "b", "c"))
    broker.leader_and_isr(leader_epoch=5, partition_epoch=1, replicas=(1, 2), isr=(1,))
    partition.delete_records_on_leader(2)

    result = only(broker.fetch(1, replica_id=2, last_fetched_epoch=3))

    assert result.error is Errors.OFFSET_OUT_OF_RANGE


def test_follower_waiting_at_the_log_end_is_answered_by_an_uncommitted_append(broker):
    broker.lead(replicas=(1, 2))
    waiting = broker.fetch(0, replica_id=2)

    broker.produce("a", acks=1)

    assert values(only(waiting)) == [b"a"]


# What may be read


def test_consumer_reads_up_to_the_high_watermark_and_follower_to_the_end(broker):
    broker.lead(replicas=(1, 2))
    broker.produce("a")
    broker.fetch(1, replica_id=2, max_wait_ms=0)
    broker.produce("b")

    consumed = only(broker.fetch(0, max_wait_ms=0))
    copied = only(broker.fetch(0, replica_id=2, max_wait_ms=0))

    assert values(consumed) == [b"a"]
    assert values(copied) == [b"a", b"b"]


def test_read_committed_stops_at_the_last_stable_offset(broker, partition):
    broker.produce("a")
    broker.produce(records("open", producer_id=5, producer_epoch=0, sequence=0, transactional=True))

    result = only(broker.fetch(0, isolation=FetchIsolation.TXN_COMMITTED))

    assert values(result) == [b"a"]
    assert (result.last_stable_offset, result.high_watermark) == (1, 2)
    assert result.aborted_transactions == ()


def test_first_batch_is_returned_whole_however_small_the_limit(broker, partition):
    broker.lead(OTHER)
    broker.produce({TP: records("a" * 100), OTHER: records("b" * 100)})

    (results,) = broker.fetch((TP, 0), (OTHER, 0), max_bytes=1, partition_max_bytes=1)

    assert [values(result) for _, result in results] == [[b"a" * 100], []]


def test_one_batch_rule_goes_to_the_first_partition_with_data(broker, partition):
    broker.lead(OTHER)
    broker.produce({OTHER: records("b" * 100)})

    (results,) = broker.fetch((TP, 0), (OTHER, 0), max_bytes=1, partition_max_bytes=1)

    assert [values(result) for _, result in results] == [[], [b"b" * 100]]


def test_fetch_before_v3_gets_a_piece_of_a_batch_that_is_too_large(broker, partition):
    broker.produce("a" * 100)

    result = only(broker.fetch(0, version=2, partition_max_bytes=50))

    assert result.records.size_in_bytes == 50


def test_request_limit_is_shared_by_its_partitions(broker, partition):
    broker.lead(OTHER)
    size = records("a" * 100).size_in_bytes
    broker.produce({TP: records("a" * 100), OTHER: records("b" * 100)})

    (exact,) = broker.fetch((TP, 0), (OTHER, 0), max_bytes=2 * size)
    (short,) = broker.fetch((TP, 0), (OTHER, 0), max_bytes=2 * size - 1)

    assert [result.records.size_in_bytes for _, result in exact] == [size, size]
    assert [result.records.size_in_bytes for _, result in short] == [size, 0]


# Errors


@pytest.mark.parametrize("offset", [-1, 2])
def test_offset_outside_the_log_is_out_of_range(broker, partition, offset):
    broker.produce("a")

    result = only(broker.fetch(offset))

    assert result.error is Errors.OFFSET_OUT_OF_RANGE
    assert broker.metric("FailedFetchRequestsPerSec") == 0


@pytest.mark.parametrize(
    ("epoch", "error"),
    [(4, Errors.FENCED_LEADER_EPOCH), (5, Errors.NONE), (6, Errors.UNKNOWN_LEADER_EPOCH)],
)
def test_clients_leader_epoch_must_be_the_current_one(broker, epoch, error):
    broker.lead(leader_epoch=5)

    assert only(broker.fetch(0, current_leader_epoch=epoch, max_wait_ms=0)).error is error


@pytest.mark.parametrize(
    ("topic_id", "error"),
    [
        (UUID(int=42), Errors.NONE),
        (ZERO_UUID, Errors.NONE),
        (UUID(int=43), Errors.INCONSISTENT_TOPIC_ID),
    ],
)
def test_topic_id_must_be_that_of_the_log(broker, partition, topic_id, error):
    assert only(broker.fetch(0, topic_id=topic_id, max_wait_ms=0)).error is error


def test_follower_that_is_no_replica_is_refused_by_what_it_knows(broker):
    broker.lead(replicas=(1, 2))

    without_epoch = only(broker.fetch(0, replica_id=3))
    with_epoch = only(broker.fetch(0, replica_id=3, current_leader_epoch=0))

    assert without_epoch.error is Errors.NOT_LEADER_OR_FOLLOWER
    assert with_epoch.error is Errors.UNKNOWN_LEADER_EPOCH


def test_unexpected_error_is_answered_logged_and_counted(broker, partition, caplog):
    broker.produce(records("a", "b"))
    broker.file_system.surprise = ZeroDivisionError("surprise")

    assert only(broker.fetch(1)).error is Errors.UNKNOWN_SERVER_ERROR
    assert "surprise" in caplog.text
    assert broker.metric("FailedFetchRequestsPerSec", topic="t") == 1
    assert broker.metric("TotalFetchRequestsPerSec", topic="t") == 1


def test_fetch_of_a_replica_being_added_is_marked_as_reassignment(broker):
    broker.lead(replicas=(1, 2, 3), isr=(1, 2), adding=(3,))

    assert only(broker.fetch(0, replica_id=3, max_wait_ms=0)).is_reassignment_fetch
    assert not only(broker.fetch(0, replica_id=2, max_wait_ms=0)).is_reassignment_fetch
