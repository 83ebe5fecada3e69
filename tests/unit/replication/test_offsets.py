import pytest

from kafkapy.common.errors import (
    Errors,
    FencedLeaderEpochError,
    NotLeaderOrFollowerError,
    OffsetNotAvailableError,
    UnknownLeaderEpochError,
    UnknownTopicOrPartitionError,
)
from kafkapy.common.types import CONSUMER_OFFSETS_TOPIC, TopicPartition
from kafkapy.storage.fetch_isolation import FetchIsolation
from tests.helpers.records import TIMESTAMP, records
from tests.unit.replication.harness import TP

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3


def lookup(broker, timestamp, isolation=FetchIsolation.HIGH_WATERMARK, **arguments):
    return broker.replica_manager.fetch_offset_for_timestamp(
        TP, timestamp=timestamp, isolation=isolation, **arguments
    )


# ListOffsets


@pytest.fixture
def lagging(broker):
    """Three records, of which one is committed."""
    partition = broker.lead(replicas=(1, 2))
    for i, value in enumerate("abc"):
        broker.produce(records(value, timestamp=TIMESTAMP + i))
    broker.fetch(1, replica_id=2, max_wait_ms=0)
    assert partition.log.high_watermark == 1
    return broker


@pytest.mark.parametrize(
    ("isolation", "offset"),
    [(FetchIsolation.HIGH_WATERMARK, 1), (FetchIsolation.TXN_COMMITTED, 1), (None, 3)],
    ids=["consumer", "read_committed consumer", "broker"],
)
def test_latest_offset_depends_on_who_asks(lagging, isolation, offset):
    found = lookup(lagging, LATEST, isolation)

    assert (found.timestamp, found.offset, found.leader_epoch) == (-1, offset, 0)


def test_latest_for_read_committed_is_the_last_stable_offset(broker):
    broker.lead()
    broker.produce("a")
    broker.produce(records("open", producer_id=5, producer_epoch=0, sequence=0, transactional=True))

    assert lookup(broker, LATEST, FetchIsolation.TXN_COMMITTED).offset == 1
    assert lookup(broker, LATEST, FetchIsolation.HIGH_WATERMARK).offset == 2


def test_earliest_offset_is_the_log_start(lagging):
    assert lookup(lagging, EARLIEST).offset == 0


def test_timestamp_finds_the_first_record_not_older(lagging):
    found = lookup(lagging, TIMESTAMP + 1, None)

    assert (found.timestamp, found.offset) == (TIMESTAMP + 1, 1)


def test_timestamp_beyond_the_committed_records_finds_nothing_for_a_consumer(lagging):
    assert lookup(lagging, TIMESTAMP + 1) is None
    assert lookup(lagging, TIMESTAMP).offset == 0


def test_max_timestamp_finds_the_youngest_record(broker):
    broker.lead()
    for timestamp in (TIMESTAMP, TIMESTAMP + 50, TIMESTAMP + 20):
        broker.produce(records("a", timestamp=timestamp))

    found = lookup(broker, MAX_TIMESTAMP)

    assert (found.timestamp, found.offset) == (TIMESTAMP + 50, 1)


def test_new_leader_does_not_tell_clients_an_end_it_is_not_sure_of(lagging):
    lagging.leader_and_isr(leader_epoch=1, partition_epoch=1, replicas=(1, 2))

    with pytest.raises(OffsetNotAvailableError):
        lookup(lagging, LATEST)
    with pytest.raises(OffsetNotAvailableError):
        lookup(lagging, TIMESTAMP + 1)
    assert lookup(lagging, TIMESTAMP).offset == 0
    assert lookup(lagging, EARLIEST).offset == 0
    assert lookup(lagging, LATEST, None).offset == 3
    lagging.fetch(3, replica_id=2, max_wait_ms=0)
    assert lookup(lagging, LATEST).offset == 3


@pytest.mark.parametrize(
    ("epoch", "error"), [(-1, FencedLeaderEpochError), (1, UnknownLeaderEpochError)]
)
def test_lookup_under_another_leader_epoch_is_refused(broker, epoch, error):
    broker.lead()

    assert lookup(broker, LATEST, current_leader_epoch=0).offset == 0
    with pytest.raises(error):
        lookup(broker, LATEST, current_leader_epoch=epoch)


def test_only_the_leader_answers_unless_asked_otherwise(broker):
    with pytest.raises(UnknownTopicOrPartitionError):
        lookup(broker, LATEST)
    broker.update_metadata(replicas=(1, 2), leader=2)
    broker.leader_and_isr(leader=2, replicas=(1, 2))

    with pytest.raises(NotLeaderOrFollowerError):
        lookup(broker, LATEST)
    assert lookup(broker, LATEST, fetch_only_from_leader=False).offset == 0


def test_legacy_lookup_lists_segment_starts_and_hides_what_is_not_committed(broker):
    partition = broker.lead(replicas=(1, 2))
    broker.produce("a")
    partition.log.roll()
    broker.produce("b")
    broker.produce("c")
    broker.fetch(2, replica_id=2, max_wait_ms=0)

    def legacy(timestamp, count=10, *, consumer=True):
        return broker.replica_manager.legacy_fetch_offsets_for_timestamp(
            TP, timestamp=timestamp, max_num_offsets=count, is_from_consumer=consumer
        )

    assert legacy(LATEST) == [2, 1, 0]
    assert legacy(LATEST, consumer=False) == [3, 1, 0]
    assert legacy(LATEST, 1) == [2]
    assert legacy(EARLIEST) == [0]


# OffsetForLeaderEpoch


def test_end_of_an_epoch_is_the_start_of_the_next(broker):
    broker.lead(leader_epoch=2)
    broker.produce("a")
    broker.leader_and_isr(leader_epoch=5, partition_epoch=1)
    broker.produce("b")

    def end(epoch, **arguments):
        return tuple(
            broker.replica_manager.last_offset_for_leader_epoch(TP, leader_epoch=epoch, **arguments)
        )

    assert end(2) == (2, 1)
    assert end(4) == (2, 1)
    assert end(5, current_leader_epoch=5) == (5, 2)
    assert end(6) == (-1, -1)
    with pytest.raises(FencedLeaderEpochError):
        end(2, current_leader_epoch=4)
    with pytest.raises(UnknownLeaderEpochError):
        end(2, current_leader_epoch=6)


# DeleteRecords


def delete(broker, offset, tp=TP, **arguments):
    answers = []
    broker.replica_manager.delete_records(1000, {tp: offset}, answers.append, **arguments)
    return answers


def test_records_are_deleted_up_to_the_offset(broker):
    partition = broker.lead()
    broker.produce(records("a", "b", "c"))

    ((answer,),) = [list(a.values()) for a in delete(broker, 2)]

    assert (answer.error, answer.low_watermark) == (Errors.NONE, 2)
    assert partition.log.log_start_offset == 2


def test_minus_one_deletes_up_to_the_high_watermark(broker):
    partition = broker.lead(replicas=(1, 2), isr=(1,))
    broker.alive_brokers = [1]
    broker.update_metadata(replicas=(1, 2))
    broker.produce(records("a", "b"))

    answer = delete(broker, -1)[0][TP]

    assert (answer.error, answer.low_watermark) == (Errors.NONE, 2)
    assert partition.log.log_start_offset == 2


@pytest.mark.parametrize("offset", [-2, 4])
def test_offset_that_cannot_be_deleted_to_is_out_of_range(broker, offset):
    broker.lead()
    broker.produce(records("a", "b", "c"))

    answer = delete(broker, offset)[0][TP]

    assert (answer.error, answer.low_watermark) == (Errors.OFFSET_OUT_OF_RANGE, -1)


def test_compacted_topic_does_not_allow_deletion(make_broker):
    broker = make_broker(log_defaults={"log.cleanup.policy": "compact"})
    broker.lead()

    assert delete(broker, 0)[0][TP].error is Errors.POLICY_VIOLATION


def test_compacted_topic_that_also_deletes_allows_it(make_broker):
    broker = make_broker(log_defaults={"log.cleanup.policy": "compact,delete"})
    broker.lead()

    assert delete(broker, 0)[0][TP].error is Errors.NONE


def test_internal_topic_is_left_alone_unless_allowed(broker):
    tp = TopicPartition(CONSUMER_OFFSETS_TOPIC, 0)
    broker.lead(tp)

    assert delete(broker, 0, tp)[0][tp].error is Errors.INVALID_TOPIC_EXCEPTION
    assert delete(broker, 0, tp, allow_internal_topics=True)[0][tp].error is Errors.NONE


def test_unknown_partition_and_follower_refuse_to_delete(broker):
    assert delete(broker, 0)[0][TP].error is Errors.UNKNOWN_TOPIC_OR_PARTITION
    broker.update_metadata(replicas=(1, 2), leader=2)
    broker.leader_and_isr(leader=2, replicas=(1, 2))

    assert delete(broker, 0)[0][TP].error is Errors.NOT_LEADER_OR_FOLLOWER


@pytest.fixture
def replicated(broker):
    broker.lead(replicas=(1, 2))
    broker.produce(records("a", "b", "c"))
    broker.fetch(3, replica_id=2, max_wait_ms=0)
    return broker


def test_deletion_waits_until_live_followers_have_deleted_too(replicated):
    waiting = delete(replicated, 2)
    assert waiting == []

    replicated.fetch(3, replica_id=2, max_wait_ms=0, log_start_offset=1)
    assert waiting == []
    replicated.fetch(3, replica_id=2, max_wait_ms=0, log_start_offset=2)

    answer = waiting[0][TP]
    assert (answer.error, answer.low_watermark) == (Errors.NONE, 2)


def test_deletion_that_followers_do_not_follow_times_out(replicated):
    waiting = delete(replicated, 2)

    replicated.expire(1000)

    assert waiting[0][TP].error is Errors.REQUEST_TIMED_OUT
    assert replicated.metric("ExpiresPerSec") == 1


def test_waiting_deletion_ends_when_leadership_is_lost(replicated):
    waiting = delete(replicated, 2)

    replicated.leader_and_isr(leader=2, leader_epoch=1, partition_epoch=1, replicas=(1, 2))

    assert waiting[0][TP].error is Errors.NOT_LEADER_OR_FOLLOWER


def test_waiting_deletion_ends_when_the_partition_is_deleted(replicated):
    waiting = delete(replicated, 2)

    replicated.stop(delete=True, leader_epoch=-2)

    assert waiting[0][TP].error is Errors.UNKNOWN_TOPIC_OR_PARTITION
