"""An ElectLeaders that waits until this broker knows of the leaders it has brought about."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kafkapy.common.errors import Errors
from kafkapy.common.types import TopicPartition
from kafkapy.controller.controller_events import ApiResult
from kafkapy.metadata.metadata_cache import MetadataCache
from kafkapy.purgatory.delayed_operation import DelayedOperation

ElectionCallback = Callable[[dict[TopicPartition, ApiResult]], None]


class DelayedElectLeader(DelayedOperation):
    """Done when every partition has been seen with the leader that was elected for it.

    Ports: kafka.server.DelayedElectLeader
    """

    def __init__(
        self,
        delay_ms: int,
        expected_leaders: Mapping[TopicPartition, int],
        results: Mapping[TopicPartition, ApiResult],
        *,
        metadata_cache: MetadataCache,
        response_callback: ElectionCallback,
    ) -> None:
        super().__init__(delay_ms)
        self._metadata_cache = metadata_cache
        self._response_callback = response_callback
        # guarded by self.lock
        self._waiting = dict(expected_leaders)
        self._results = dict(results)

    def try_complete(self) -> bool:
        for topic_partition, leader in list(self._waiting.items()):
            state = self._metadata_cache.get_partition_info(*topic_partition)
            if state is not None and state.leader == leader:
                del self._waiting[topic_partition]
                self._results[topic_partition] = ApiResult()
        return not self._waiting and self.force_complete()

    def on_expiration(self) -> None:
        """The answer has gone out already."""

    def on_complete(self) -> None:
        with self.lock:
            timed_out = dict.fromkeys(self._waiting, ApiResult(Errors.REQUEST_TIMED_OUT))
            results = {**self._results, **timed_out}
        self._response_callback(results)
