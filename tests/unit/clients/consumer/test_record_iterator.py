"""Records one by one, whatever happens to the position meanwhile."""

from kafkapy.clients.consumer.consumer_record import ConsumerRecord
from kafkapy.clients.consumer.record_iterator import RecordIterator
from kafkapy.clients.consumer.topic_partition_state import FetchPosition
from kafkapy.clients.metadata import LeaderAndEpoch
from kafkapy.common.record.record import TimestampType
from kafkapy.common.types import TopicPartition
from tests.unit.clients.consumer.parts import NODE, OTHER_NODE, TP0, Parts


def record(offset: int) -> ConsumerRecord:
    kind = TimestampType.CREATE_TIME
    return ConsumerRecord(*TP0, 0, offset, 1, kind, None, b"%d" % offset, (), -1, 1)


def test_leader_that_changes_before_the_first_record_loses_none() -> None:
    parts = Parts()
    parts.assign(TP0)
    subscriptions = parts.subscriptions
    polls = 0

    def poll(timeout_ms: int) -> dict[TopicPartition, list[ConsumerRecord]]:
        nonlocal polls
        polls += 1
        if polls == 1:
            subscriptions.update_position(TP0, FetchPosition(3, 0, LeaderAndEpoch(NODE, 0)))
            # The heartbeat thread has read of a new leader.
            new = LeaderAndEpoch(OTHER_NODE, 1)
            assert subscriptions.maybe_validate_position(TP0, new, can_validate=True)
            return {TP0: [record(0), record(1), record(2)]}
        parts.time.sleep(timeout_ms)
        return {}

    assert list(RecordIterator(poll, subscriptions, parts.time, 100).records()) == []

    position = subscriptions.position(TP0)
    assert position is not None and position.offset == 0
    assert subscriptions.is_awaiting_validation(TP0)
