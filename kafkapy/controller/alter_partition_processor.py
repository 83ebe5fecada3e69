"""Changes of in-sync replicas, asked for by partition leaders."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
)
from kafkapy.common.types import ZERO_UUID, TopicPartition
from kafkapy.controller.controller_context import ControllerContext
from kafkapy.metadata.leader_and_isr import (
    LeaderAndIsr,
    LeaderIsrAndControllerEpoch,
    LeaderRecoveryState,
)
from kafkapy.utils.log_context import LogContext
from kafkapy.zk.kafka_zk_client import KafkaZkClient

_FIRST_VERSION_WITH_TOPIC_IDS = 2
_FIRST_VERSION_WITH_ISR_EPOCHS = 3


class AlterPartitionProcessor:
    """Judges AlterPartition requests and writes what passes. Belongs to the event thread.

    Ports: kafka.controller.KafkaController (processAlterPartition)
    """

    def __init__(
        self,
        controller_id: int,
        *,
        context: ControllerContext,
        zk_client: KafkaZkClient,
        on_isr_change: Callable[[Collection[TopicPartition]], None],
    ) -> None:
        self._context = context  # constant after construction
        self._zk_client = zk_client
        self._on_isr_change = on_isr_change
        self._log = LogContext(f"[Controller id={controller_id}] ").logger(__name__)

    def process(self, request: AlterPartitionRequest, version: int) -> AlterPartitionResponse:
        """Raises only when the request as a whole could not be handled."""
        broker_epoch = self._context.live_broker_id_and_epochs.get(request.broker_id)
        if broker_epoch is None or broker_epoch != request.broker_epoch:
            self._log.info(
                "Ignoring AlterPartition of broker %d with epoch %d, its epoch is %s",
                request.broker_id,
                request.broker_epoch,
                broker_epoch,
            )
            return AlterPartitionResponse(error_code=Errors.STALE_BROKER_EPOCH.code)
        by_id = version >= _FIRST_VERSION_WITH_TOPIC_IDS
        response = AlterPartitionResponse()
        accepted: dict[TopicPartition, LeaderAndIsr] = {}
        outcomes: dict[TopicPartition, LeaderAndIsr | Errors] = {}
        for topic in request.topics:
            name = self._context.topic_names.get(topic.topic_id) if by_id else topic.topic_name
            if name is None:
                response.topics.append(_unknown_topic_id(topic))
                continue
            for data in topic.partitions:
                partition = TopicPartition(name, data.partition_index)
                proposed = self._proposed(request.broker_id, data, version)
                verdict = self._judge(partition, proposed)
                if verdict is None:
                    accepted[partition] = proposed
                else:
                    outcomes[partition] = verdict
        changed = self._write(accepted, outcomes)
        if changed:
            self._on_isr_change(changed)
        self._add_outcomes(response, outcomes)
        return response

    @staticmethod
    def _proposed(
        broker_id: int, data: AlterPartitionRequest.PartitionData, version: int
    ) -> LeaderAndIsr:
        isr = (
            tuple(member.broker_id for member in data.new_isr_with_epochs)
            if version >= _FIRST_VERSION_WITH_ISR_EPOCHS
            else tuple(data.new_isr)
        )
        return LeaderAndIsr(
            leader=broker_id,
            isr=isr,
            leader_epoch=data.leader_epoch,
            leader_recovery_state=LeaderRecoveryState(data.leader_recovery_state),
            partition_epoch=data.partition_epoch,
        )

    def _judge(
        self, partition: TopicPartition, proposed: LeaderAndIsr
    ) -> LeaderAndIsr | Errors | None:
        """None: it is to be written; the current state: it is that already; else the error."""
        info = self._context.partition_leadership_info(partition)
        if info is None:
            return Errors.UNKNOWN_TOPIC_OR_PARTITION
        current = info.leader_and_isr
        if (
            proposed.partition_epoch > current.partition_epoch
            or proposed.leader_epoch > current.leader_epoch
        ):
            # The leader knows more than we do: somebody else is the controller by now.
            return Errors.NOT_CONTROLLER
        if proposed.leader_epoch < current.leader_epoch:
            return Errors.FENCED_LEADER_EPOCH
        if _equal_but_for_partition_epoch(proposed, current):
            return current  # a repeat of a request whose answer was lost
        if proposed.partition_epoch != current.partition_epoch:
            return Errors.INVALID_UPDATE_VERSION
        recovering = proposed.leader_recovery_state is LeaderRecoveryState.RECOVERING
        if recovering and (
            len(proposed.isr) > 1 or current.leader_recovery_state is LeaderRecoveryState.RECOVERED
        ):
            return Errors.INVALID_REQUEST
        return None

    def _write(
        self,
        accepted: dict[TopicPartition, LeaderAndIsr],
        outcomes: dict[TopicPartition, LeaderAndIsr | Errors],
    ) -> list[TopicPartition]:
        """Fills in `outcomes`; the partitions whose state changed."""
        if not accepted:
            return []
        update = self._zk_client.update_leader_and_isr(
            accepted, self._context.epoch, self._context.epoch_zk_version
        )
        changed = []
        for partition, outcome in update.finished_partitions.items():
            if isinstance(outcome, LeaderAndIsr):
                self._log.info("ISR of %s is now %s", partition, outcome.isr)
                self._context.put_partition_leadership_info(
                    partition, LeaderIsrAndControllerEpoch(outcome, self._context.epoch)
                )
                outcomes[partition] = outcome
                changed.append(partition)
            else:
                self._log.error("Failed to update ISR of %s: %s", partition, outcome)
                outcomes[partition] = Errors.for_exception(outcome)
        for partition in update.partitions_to_retry:
            self._log.info("ISR of %s was not updated: its version has changed", partition)
            outcomes[partition] = Errors.INVALID_UPDATE_VERSION
        return changed

    def _add_outcomes(
        self,
        response: AlterPartitionResponse,
        outcomes: dict[TopicPartition, LeaderAndIsr | Errors],
    ) -> None:
        topics: dict[str, AlterPartitionResponse.TopicData] = {}
        for partition, outcome in outcomes.items():
            topic = topics.get(partition.topic)
            if topic is None:
                topic = topics[partition.topic] = AlterPartitionResponse.TopicData(
                    topic_name=partition.topic,
                    topic_id=self._context.topic_ids.get(partition.topic, ZERO_UUID),
                )
                response.topics.append(topic)
            data = AlterPartitionResponse.PartitionData(partition_index=partition.partition)
            if isinstance(outcome, LeaderAndIsr):
                data.leader_id = outcome.leader
                data.leader_epoch = outcome.leader_epoch
                data.isr = list(outcome.isr)
                data.leader_recovery_state = int(outcome.leader_recovery_state)
                data.partition_epoch = outcome.partition_epoch
            else:
                data.error_code = outcome.code
            topic.partitions.append(data)


def _equal_but_for_partition_epoch(proposed: LeaderAndIsr, current: LeaderAndIsr) -> bool:
    """Equal with the ISR taken as a set."""
    return frozenset(proposed.isr) == frozenset(current.isr) and proposed == replace(
        current, isr=proposed.isr, partition_epoch=proposed.partition_epoch
    )


def _unknown_topic_id(topic: AlterPartitionRequest.TopicData) -> AlterPartitionResponse.TopicData:
    return AlterPartitionResponse.TopicData(
        topic_id=topic.topic_id,
        partitions=[
            AlterPartitionResponse.PartitionData(
                partition_index=data.partition_index, error_code=Errors.UNKNOWN_TOPIC_ID.code
            )
            for data in topic.partitions
        ],
    )
