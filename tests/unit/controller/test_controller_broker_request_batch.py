import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.leader_and_isr import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
)
from kafkapy.common.protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from kafkapy.common.protocol.messages.update_metadata import UpdateMetadataRequest
from kafkapy.common.protocol.schema import Message
from kafkapy.common.types import TopicPartition
from kafkapy.controller.controller_broker_request_batch import (
    ControllerBrokerRequestBatch,
    IllegalBatchError,
    ResponseCallback,
)
from kafkapy.controller.controller_context import ControllerContext
from kafkapy.controller.controller_events import (
    ControllerEvent,
    LeaderAndIsrResponseReceived,
    TopicDeletionStopReplicaResponseReceived,
)
from kafkapy.metadata.leader_and_isr import LEADER_DURING_DELETE
from kafkapy.metadata.replica_assignment import ReplicaAssignment
from tests.unit.controller.builders import LISTENER, RecordingSender, context_of, leadership

TP0, TP1, OTHER = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


class Given:
    def __init__(self) -> None:
        self.context: ControllerContext = context_of(
            {TP0: (1, 2), TP1: (2, 1), OTHER: (1, 9)}, live=[1, 2]
        )
        self.context.put_partition_leadership_info(TP0, leadership(1, [1, 2], leader_epoch=3))
        self.sender = RecordingSender()
        self.events: list[ControllerEvent] = []
        self.batch = ControllerBrokerRequestBatch(
            0,
            context=self.context,
            sender=self.sender,
            send_event=self.events.append,
            inter_broker_listener_name=LISTENER,
        )

    def add_leader_and_isr(self, partition: TopicPartition, *, is_new: bool) -> None:
        self.batch.add_leader_and_isr_request_for_brokers(
            [1, 2, 9, -1],
            partition,
            leadership(1, [1, 2]),
            assignment=ReplicaAssignment.of((1, 2)),
            is_new=is_new,
        )


@pytest.fixture
def given() -> Given:
    return Given()


def test_partitions_of_one_broker_go_in_one_request_grouped_by_topic(given: Given) -> None:
    for partition in (TP0, TP1, OTHER):
        given.add_leader_and_isr(partition, is_new=False)

    given.batch.send_requests_to_brokers(5)

    requests = given.sender.of(LeaderAndIsrRequest)
    assert [broker_id for broker_id, _ in requests] == [1, 2]
    for _, request in requests:
        assert isinstance(request, LeaderAndIsrRequest)
        assert request.controller_epoch == 5
        assert [(t.topic_name, len(t.partition_states)) for t in request.topic_states] == [
            ("t", 2),
            ("u", 1),
        ]


def test_new_stays_new_when_a_partition_is_added_twice(given: Given) -> None:
    given.add_leader_and_isr(TP0, is_new=True)
    given.add_leader_and_isr(TP0, is_new=False)

    given.batch.send_requests_to_brokers(1)

    request = given.sender.of(LeaderAndIsrRequest)[0][1]
    assert isinstance(request, LeaderAndIsrRequest)
    assert [s.is_new for s in request.topic_states[0].partition_states] == [True]


def test_update_metadata_tells_endpoints_and_offline_replicas(given: Given) -> None:
    given.context.put_partition_leadership_info(OTHER, leadership(1, [1]))

    given.batch.add_update_metadata_request_for_brokers([1], [OTHER, TP1])
    given.batch.send_requests_to_brokers(1)

    ((_, request),) = given.sender.of(UpdateMetadataRequest)
    assert isinstance(request, UpdateMetadataRequest)
    # TP1 has no leader yet: brokers hear of it when it has one.
    (topic,) = request.topic_states
    assert topic.topic_id == given.context.topic_ids["u"]
    assert topic.partition_states[0].offline_replicas == [9]
    assert {b.id: b.endpoints[0].port for b in request.live_brokers} == {1: 9001, 2: 9002}
    assert request.broker_epoch == 101


def test_partition_of_a_topic_being_deleted_has_no_leader_for_brokers(given: Given) -> None:
    given.context.queue_topic_deletion({"t"})

    given.batch.add_update_metadata_request_for_brokers([1], [TP0])
    given.batch.send_requests_to_brokers(1)

    ((_, request),) = given.sender.of(UpdateMetadataRequest)
    assert isinstance(request, UpdateMetadataRequest)
    assert request.topic_states[0].partition_states[0].leader == LEADER_DURING_DELETE


def test_stop_replica_carries_the_leader_epoch_and_delete_is_not_taken_back(given: Given) -> None:
    given.batch.add_stop_replica_request_for_brokers([1], TP0, delete_partition=True)
    given.batch.add_stop_replica_request_for_brokers([1], TP0, delete_partition=False)
    given.batch.add_stop_replica_request_for_brokers([1], TP1, delete_partition=False)

    given.batch.send_requests_to_brokers(1)

    ((_, request),) = given.sender.of(StopReplicaRequest)
    assert isinstance(request, StopReplicaRequest)
    (topic,) = request.topic_states
    assert [(s.leader_epoch, s.delete_partition) for s in topic.partition_states] == [
        (3, True),
        (-1, False),
    ]


def test_unsent_batch_forbids_a_new_one_until_cleared(given: Given) -> None:
    given.add_leader_and_isr(TP0, is_new=False)

    with pytest.raises(IllegalBatchError):
        given.batch.new_batch()

    given.batch.clear()
    given.batch.new_batch()


def test_failure_to_send_is_an_illegal_batch() -> None:
    class BrokenSender(RecordingSender):
        def send_request(
            self, broker_id: int, request: Message, version: int, callback: ResponseCallback
        ) -> None:
            raise RuntimeError("no channel")

    given = Given()
    given.batch._sender = BrokenSender()
    given.add_leader_and_isr(TP0, is_new=False)

    with pytest.raises(IllegalBatchError):
        given.batch.send_requests_to_brokers(1)


def test_leader_and_isr_answer_becomes_an_event(given: Given) -> None:
    given.add_leader_and_isr(TP0, is_new=False)
    given.batch.send_requests_to_brokers(1)
    response = LeaderAndIsrResponse()

    given.sender.callbacks[1](response)

    assert given.events == [LeaderAndIsrResponseReceived(response, 2)]


@pytest.mark.parametrize(
    ("request_error", "partition_error", "expected"),
    [
        (Errors.NONE, Errors.NONE, Errors.NONE),
        (Errors.NONE, Errors.KAFKA_STORAGE_ERROR, Errors.KAFKA_STORAGE_ERROR),
        (Errors.STALE_CONTROLLER_EPOCH, None, Errors.STALE_CONTROLLER_EPOCH),
    ],
)
def test_stop_replica_answer_becomes_an_event_about_deleted_partitions_only(
    given: Given, request_error: Errors, partition_error: Errors | None, expected: Errors
) -> None:
    given.batch.add_stop_replica_request_for_brokers([1], TP0, delete_partition=True)
    given.batch.add_stop_replica_request_for_brokers([1], TP1, delete_partition=False)
    given.batch.send_requests_to_brokers(1)
    entries = [(TP0, partition_error), (TP1, partition_error)] if partition_error else []

    given.sender.callbacks[0](
        StopReplicaResponse(
            error_code=request_error.code,
            partition_errors=[
                StopReplicaResponse.StopReplicaPartitionError(
                    topic_name=tp.topic, partition_index=tp.partition, error_code=error.code
                )
                for tp, error in entries
            ],
        )
    )

    assert given.events == [
        TopicDeletionStopReplicaResponseReceived(1, request_error, {TP0: expected})
    ]
