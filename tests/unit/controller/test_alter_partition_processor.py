from collections.abc import Collection
from dataclasses import replace
from uuid import UUID

import pytest

from kafkapy.common.errors import ControllerMovedError, Errors
from kafkapy.common.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
)
from kafkapy.common.types import TopicPartition, random_topic_id
from kafkapy.controller.alter_partition_processor import AlterPartitionProcessor
from kafkapy.metadata.leader_and_isr import (
    LeaderAndIsr,
    LeaderIsrAndControllerEpoch,
    LeaderRecoveryState,
)
from kafkapy.zk.kafka_zk_client import KafkaZkClient
from tests.unit.controller.builders import Machines, context_of

TP = TopicPartition("t", 0)
CURRENT = LeaderAndIsr(leader=1, leader_epoch=5, isr=(1, 2, 3))


class Given:
    def __init__(self, zk_client: KafkaZkClient, current: LeaderAndIsr = CURRENT) -> None:
        self.machines = Machines(zk_client, context_of({TP: (1, 2, 3)}, live=[1, 2, 3]))
        self.context = self.machines.context
        self.machines.write_state(TP, LeaderIsrAndControllerEpoch(current, self.context.epoch))
        self.changes: list[Collection[TopicPartition]] = []
        self.processor = AlterPartitionProcessor(
            0, context=self.context, zk_client=zk_client, on_isr_change=self.changes.append
        )

    def process(
        self,
        proposed: LeaderAndIsr,
        *,
        version: int = 3,
        broker_epoch: int = 101,
        topic_id: UUID | None = None,
        partition: int = 0,
    ) -> AlterPartitionResponse:
        data = AlterPartitionRequest.PartitionData(
            partition_index=partition,
            leader_epoch=proposed.leader_epoch,
            partition_epoch=proposed.partition_epoch,
            leader_recovery_state=int(proposed.leader_recovery_state),
        )
        if version >= 3:
            data.new_isr_with_epochs = [
                AlterPartitionRequest.BrokerState(broker_id=b) for b in proposed.isr
            ]
        else:
            data.new_isr = list(proposed.isr)
        topic = AlterPartitionRequest.TopicData(
            topic_name="t",
            topic_id=topic_id or self.context.topic_ids["t"],
            partitions=[data],
        )
        request = AlterPartitionRequest(broker_id=1, broker_epoch=broker_epoch, topics=[topic])
        request = AlterPartitionRequest.decode(request.encode(version), version)
        response = self.processor.process(request, version)
        response.encode(version)
        return response


def error_of(response: AlterPartitionResponse) -> Errors:
    return Errors.for_code(response.topics[0].partitions[0].error_code)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_accepted_isr_is_written_answered_and_told(zk_client: KafkaZkClient, version: int) -> None:
    given = Given(zk_client)

    response = given.process(replace(CURRENT, isr=(1, 3)), version=version)

    assert error_of(response) is Errors.NONE
    (data,) = response.topics[0].partitions
    assert (data.leader_id, data.leader_epoch, data.isr, data.partition_epoch) == (1, 5, [1, 3], 1)
    assert given.machines.stored(TP) == replace(CURRENT, isr=(1, 3), partition_epoch=1)
    info = given.context.partition_leadership_info(TP)
    assert info is not None
    assert info.leader_and_isr.partition_epoch == 1
    assert given.changes == [[TP]]


@pytest.mark.parametrize(
    ("proposed", "expected"),
    [
        (replace(CURRENT, leader_epoch=4, isr=(1,)), Errors.FENCED_LEADER_EPOCH),
        (replace(CURRENT, leader_epoch=6, isr=(1,)), Errors.NOT_CONTROLLER),
        (replace(CURRENT, partition_epoch=1, isr=(1,)), Errors.NOT_CONTROLLER),
        (replace(CURRENT, partition_epoch=-1, isr=(1,)), Errors.INVALID_UPDATE_VERSION),
        (
            replace(CURRENT, leader_recovery_state=LeaderRecoveryState.RECOVERING, isr=(1, 2)),
            Errors.INVALID_REQUEST,
        ),
        (
            replace(CURRENT, leader_recovery_state=LeaderRecoveryState.RECOVERING, isr=(1,)),
            Errors.INVALID_REQUEST,
        ),
    ],
)
def test_refused_isr_changes_nothing(
    zk_client: KafkaZkClient, proposed: LeaderAndIsr, expected: Errors
) -> None:
    given = Given(zk_client)

    response = given.process(proposed)

    assert error_of(response) is expected
    assert given.machines.stored(TP) == CURRENT
    assert given.changes == []


def test_repeated_request_gets_the_current_state_without_a_write(zk_client: KafkaZkClient) -> None:
    given = Given(zk_client)
    given.process(replace(CURRENT, isr=(1, 3)))

    response = given.process(replace(CURRENT, isr=(3, 1)))

    assert error_of(response) is Errors.NONE
    assert response.topics[0].partitions[0].partition_epoch == 1
    assert given.machines.stored(TP).partition_epoch == 1
    assert len(given.changes) == 1


def test_leader_that_has_recovered_may_say_so(zk_client: KafkaZkClient) -> None:
    recovering = replace(CURRENT, isr=(1,), leader_recovery_state=LeaderRecoveryState.RECOVERING)
    given = Given(zk_client, recovering)

    response = given.process(replace(CURRENT, isr=(1,)))

    assert error_of(response) is Errors.NONE
    assert given.machines.stored(TP).leader_recovery_state is LeaderRecoveryState.RECOVERED


@pytest.mark.parametrize("broker_epoch", [100, 102])
def test_request_from_another_life_of_the_broker_is_refused(
    zk_client: KafkaZkClient, broker_epoch: int
) -> None:
    given = Given(zk_client)

    response = given.process(replace(CURRENT, isr=(1,)), broker_epoch=broker_epoch)

    assert response.error_code == Errors.STALE_BROKER_EPOCH.code
    assert given.machines.stored(TP) == CURRENT


def test_unknown_topic_id_and_partition(zk_client: KafkaZkClient) -> None:
    given = Given(zk_client)

    by_id = given.process(CURRENT, topic_id=random_topic_id())
    by_number = given.process(CURRENT, partition=7)

    assert error_of(by_id) is Errors.UNKNOWN_TOPIC_ID
    assert error_of(by_number) is Errors.UNKNOWN_TOPIC_OR_PARTITION


def test_state_changed_behind_the_controllers_back_is_not_overwritten(
    zk_client: KafkaZkClient,
) -> None:
    given = Given(zk_client)
    theirs = replace(CURRENT, isr=(1, 2))
    context = given.context
    zk_client.update_leader_and_isr({TP: theirs}, context.epoch, context.epoch_zk_version)

    response = given.process(replace(CURRENT, isr=(1, 3)))

    assert error_of(response) is Errors.INVALID_UPDATE_VERSION
    assert given.machines.stored(TP).isr == (1, 2)


def test_stale_controller_does_not_write(zk_client: KafkaZkClient) -> None:
    given = Given(zk_client)
    context = given.context
    zk_client.set_controller_epoch_raw(context.epoch + 1, context.epoch_zk_version)

    with pytest.raises(ControllerMovedError):
        given.process(replace(CURRENT, isr=(1, 3)))

    assert given.machines.stored(TP) == CURRENT
