"""Elections that an administrator asks for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from kafkapy.common.types import TopicPartition
from kafkapy.controller.controller_events import ApiResult, ElectionType
from kafkapy.controller.kafka_controller import KafkaController
from kafkapy.metadata.metadata_cache import MetadataCache
from kafkapy.purgatory.delayed_operation_purgatory import DelayedOperationPurgatory
from kafkapy.server.delayed_elect_leader import DelayedElectLeader, ElectionCallback
from kafkapy.utils.time import Time


class LeaderElections:
    """Has leaders elected by the controller and waits until this broker knows them. Thread-safe.

    Ports: kafka.server.ReplicaManager (electLeaders, tryCompleteElection)
    """

    def __init__(
        self,
        controller: KafkaController,
        metadata_cache: MetadataCache,
        purgatory: DelayedOperationPurgatory[DelayedElectLeader],
        time: Time,
    ) -> None:
        self._controller = controller
        self._metadata_cache = metadata_cache
        self._purgatory = purgatory
        self._time = time

    def elect_leaders(
        self,
        partitions: Collection[TopicPartition],
        election_type: ElectionType,
        *,
        timeout_ms: int,
        callback: ElectionCallback,
    ) -> None:
        deadline_ms = self._time.milliseconds() + timeout_ms

        def on_elected(outcomes: Mapping[TopicPartition, ApiResult | int]) -> None:
            leaders = {tp: o for tp, o in outcomes.items() if isinstance(o, int)}
            results = {tp: o for tp, o in outcomes.items() if isinstance(o, ApiResult)}
            if not leaders:
                callback(results)
                return
            self._purgatory.try_complete_else_watch(
                DelayedElectLeader(
                    max(0, deadline_ms - self._time.milliseconds()),
                    leaders,
                    results,
                    metadata_cache=self._metadata_cache,
                    response_callback=callback,
                ),
                list(leaders),
            )

        self._controller.elect_leaders(partitions, election_type, on_elected)

    def try_complete(self, partitions: Iterable[TopicPartition]) -> None:
        """This broker was told of their leaders."""
        for topic_partition in partitions:
            self._purgatory.check_and_complete(topic_partition)
