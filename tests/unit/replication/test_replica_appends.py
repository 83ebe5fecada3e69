import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.types import CONSUMER_OFFSETS_TOPIC, TopicPartition
from tests.helpers.records import records
from tests.unit.replication.harness import TP


def only(answers, tp=TP):
    assert len(answers) == 1
    return answers[0][tp]


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_append_to_a_single_replica_is_answered_at_once(broker, acks):
    broker.lead()

    first = only(broker.produce(records("a", "b"), acks=acks))
    second = only(broker.produce("c", acks=acks))

    assert (first.error, first.base_offset, first.last_offset) == (Errors.NONE, 0, 1)
    assert (second.error, second.base_offset, second.log_start_offset) == (Errors.NONE, 2, 0)
    assert first.log_append_time_ms == -1
    assert broker.delayed_operations.produce.num_delayed == 0
    assert broker.replica_manager.get_partition(TP).log.high_watermark == 3


@pytest.mark.parametrize("acks", [-2, 2, 3])
def test_unknown_acks_are_refused_for_every_partition_and_nothing_is_written(broker, acks):
    partition = broker.lead()
    other = TopicPartition("t", 1)

    (answer,) = broker.produce({TP: records("a"), other: records("b")}, acks=acks)

    assert {tp: r.error for tp, r in answer.items()} == {
        TP: Errors.INVALID_REQUIRED_ACKS,
        other: Errors.INVALID_REQUIRED_ACKS,
    }
    assert partition.log.log_end_offset == 0


def test_internal_topic_is_refused_to_clients_and_open_to_insiders(broker):
    tp = TopicPartition(CONSUMER_OFFSETS_TOPIC, 0)
    broker.lead(tp)

    refused = only(broker.produce({tp: records("a")}), tp)
    accepted = only(broker.produce({tp: records("a")}, internal=True), tp)

    assert refused.error is Errors.INVALID_TOPIC_EXCEPTION
    assert accepted.error is Errors.NONE


def test_unknown_partition_and_one_hosted_elsewhere_have_different_errors(broker):
    elsewhere = TopicPartition("elsewhere", 0)
    broker.update_metadata(elsewhere, leader=2, replicas=(2,))
    unknown = TopicPartition("unknown", 0)

    (answer,) = broker.produce({elsewhere: records("a"), unknown: records("b")})

    assert answer[elsewhere].error is Errors.NOT_LEADER_OR_FOLLOWER
    assert answer[unknown].error is Errors.UNKNOWN_TOPIC_OR_PARTITION


def test_follower_refuses_appends(broker):
    broker.update_metadata(replicas=(1, 2), leader=2)
    broker.leader_and_isr(leader=2, replicas=(1, 2))

    assert only(broker.produce("a")).error is Errors.NOT_LEADER_OR_FOLLOWER


def test_one_failing_partition_does_not_stop_the_others(broker):
    broker.lead()
    unknown = TopicPartition("unknown", 0)

    (answer,) = broker.produce({unknown: records("a"), TP: records("b")}, acks=-1)

    assert answer[unknown].error is Errors.UNKNOWN_TOPIC_OR_PARTITION
    assert (answer[TP].error, answer[TP].base_offset) == (Errors.NONE, 0)


def test_batch_above_max_message_bytes_is_too_large(make_broker):
    broker = make_broker(log_defaults={"message.max.bytes": "200"})
    broker.lead()

    answer = only(broker.produce("x" * 300))

    assert answer.error is Errors.MESSAGE_TOO_LARGE
    assert broker.metric("FailedProduceRequestsPerSec") == 0


def test_corrupt_batch_is_refused_and_not_counted_as_a_failure(broker):
    broker.lead()
    buffer = bytearray(records("value").buffer)
    buffer[-1] ^= 0xFF

    answer = only(broker.produce(MemoryRecords(buffer)))

    assert answer.error is Errors.CORRUPT_MESSAGE
    assert broker.replica_manager.get_partition(TP).log.log_end_offset == 0
    assert broker.metric("FailedProduceRequestsPerSec") == 0


def test_invalid_records_are_listed_with_message_and_log_start(make_broker, caplog):
    broker = make_broker(log_defaults={"log.cleanup.policy": "compact"})
    broker.lead()

    answer = only(broker.produce(records("without key")))

    assert answer.error is Errors.INVALID_RECORD
    assert [error.batch_index for error in answer.record_errors] == [0]
    assert answer.error_message
    assert answer.log_start_offset == 0
    assert answer.base_offset == -1
    assert broker.metric("FailedProduceRequestsPerSec") == 1


def test_timestamp_out_of_bounds_is_an_invalid_timestamp(make_broker, time):
    broker = make_broker(log_defaults={"log.message.timestamp.before.max.ms": "1000"})
    broker.lead()

    answer = only(broker.produce(records("old", timestamp=time.milliseconds() - 5000)))

    assert answer.error is Errors.INVALID_TIMESTAMP
    assert [error.batch_index for error in answer.record_errors] == [0]


def test_log_append_time_is_answered(make_broker, time):
    broker = make_broker(log_defaults={"log.message.timestamp.type": "LogAppendTime"})
    broker.lead()

    assert only(broker.produce("a")).log_append_time_ms == time.milliseconds()


def test_unexpected_error_is_answered_logged_and_counted(broker, caplog):
    broker.lead()
    broker.file_system.surprise = ZeroDivisionError("surprise")

    answer = only(broker.produce("a"))

    assert answer.error is Errors.UNKNOWN_SERVER_ERROR
    assert answer.log_start_offset == 0
    assert "surprise" in caplog.text
    assert broker.metric("FailedProduceRequestsPerSec", topic="t") == 1


def test_duplicate_is_answered_with_the_offset_of_the_first_time(broker):
    partition = broker.lead()

    def batch():
        return records("a", "b", producer_id=7, producer_epoch=0, sequence=0)

    first = only(broker.produce(batch(), acks=-1))
    broker.produce("other")
    again = only(broker.produce(batch(), acks=-1))

    assert (again.error, again.base_offset, again.last_offset) == (Errors.NONE, 0, 1)
    assert first.base_offset == again.base_offset
    assert partition.log.log_end_offset == 3


def test_out_of_order_sequence_is_refused(broker):
    broker.lead()
    broker.produce(records("a", producer_id=7, producer_epoch=0, sequence=0))

    answer = only(broker.produce(records("b", producer_id=7, producer_epoch=0, sequence=5)))

    assert answer.error is Errors.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_stats_count_requests_messages_and_bytes(broker):
    broker.lead()
    batch = records("a", "b")

    broker.produce(batch)

    assert broker.metric("TotalProduceRequestsPerSec", topic="t") == 1
    assert broker.metric("MessagesInPerSec", topic="t") == 2
    assert broker.metric("MessagesInPerSec") == 2
    assert broker.metric("BytesInPerSec", topic="t") == batch.size_in_bytes


def test_records_of_an_old_format_are_converted_and_counted(broker):
    broker.lead()

    answer = only(broker.produce(records("a", "b", magic=1)))

    assert answer.error is Errors.NONE
    assert broker.metric("ProduceMessageConversionsPerSec", topic="t") == 2


# acks=-1 with followers


def test_produce_waits_until_the_isr_has_the_records(broker):
    partition = broker.lead(replicas=(1, 2))
    waiting = broker.produce("a", acks=-1)
    assert waiting == []
    assert partition.log.high_watermark == 0

    broker.fetch(0, replica_id=2, max_wait_ms=0)
    assert waiting == []
    broker.fetch(1, replica_id=2, max_wait_ms=0)

    assert only(waiting).error is Errors.NONE
    assert only(waiting).base_offset == 0


def test_produce_with_acks_1_does_not_wait_for_followers(broker):
    broker.lead(replicas=(1, 2))

    assert only(broker.produce("a", acks=1)).error is Errors.NONE


def test_produce_that_is_not_replicated_in_time_times_out(broker):
    broker.lead(replicas=(1, 2))
    waiting = broker.produce("a", acks=-1, timeout_ms=100)

    broker.expire(99)
    assert waiting == []
    broker.expire(1)

    assert only(waiting).error is Errors.REQUEST_TIMED_OUT
    assert only(waiting).base_offset == 0
    assert broker.metric("ExpiresPerSec") == 1
    assert broker.metric("ExpiresPerSec", topic="t", partition=0) == 1


def test_waiting_produce_ends_when_leadership_is_lost(broker):
    broker.lead(replicas=(1, 2))
    waiting = broker.produce("a", acks=-1)

    broker.leader_and_isr(leader=2, leader_epoch=1, partition_epoch=1, replicas=(1, 2))

    assert only(waiting).error is Errors.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("known", "error"),
    [(True, Errors.NOT_LEADER_OR_FOLLOWER), (False, Errors.UNKNOWN_TOPIC_OR_PARTITION)],
)
def test_waiting_produce_ends_when_the_replica_is_deleted(broker, known, error):
    broker.lead(replicas=(1, 2))
    waiting = broker.produce("a", acks=-1)
    if not known:
        broker.update_metadata(leader=-2)

    broker.stop(delete=True, leader_epoch=-2)

    assert only(waiting).error is error


def test_waiting_produce_ends_when_its_log_dir_fails(make_broker):
    broker = make_broker(log_dirs=2)
    partition = broker.lead(replicas=(1, 2))
    waiting = broker.produce("a", acks=-1)

    broker.replica_manager.handle_log_dir_failure(partition.log.parent_dir)

    assert only(waiting).error is Errors.KAFKA_STORAGE_ERROR


def test_produce_is_refused_below_min_isr_unless_acks_is_1(make_broker):
    broker = make_broker(log_defaults={"min.insync.replicas": "2"})
    partition = broker.lead(replicas=(1, 2, 3), isr=(1,))

    assert only(broker.produce("a", acks=-1)).error is Errors.NOT_ENOUGH_REPLICAS
    assert partition.log.log_end_offset == 0
    assert only(broker.produce("a", acks=1)).error is Errors.NONE
    # Nothing is committed below min.insync.replicas.
    assert partition.log.high_watermark == 0


def test_min_isr_above_the_replication_factor_asks_for_all_replicas_only(make_broker):
    broker = make_broker(log_defaults={"min.insync.replicas": "3"})
    partition = broker.lead(replicas=(1,))

    assert only(broker.produce("a", acks=-1)).error is Errors.NONE
    assert partition.log.high_watermark == 1


def test_isr_that_shrinks_below_the_minimum_after_the_append_is_an_error(make_broker):
    broker = make_broker(log_defaults={"min.insync.replicas": "2"})
    partition = broker.lead(replicas=(1, 2, 3), isr=(1, 2))
    waiting = broker.produce("a", acks=-1, timeout_ms=60_000)
    # Committed by both, then told of an ISR of one before the produce is looked at.
    partition.remote_replicas[2].reset_state(
        now_ms=0, leader_end_offset=0, is_new_leader=True, is_in_sync=True
    )
    partition.log.update_high_watermark(1)
    broker.leader_and_isr(leader_epoch=1, partition_epoch=1, replicas=(1, 2, 3), isr=(1,))

    assert only(waiting).error is Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND
