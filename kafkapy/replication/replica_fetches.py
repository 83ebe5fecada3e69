"""The fetch path through the replica manager."""

from __future__ import annotations

import logging

from kafkapy.common.errors import (
    Errors,
    FencedLeaderEpochError,
    InconsistentTopicIdError,
    KafkaStorageError,
    NotLeaderOrFollowerError,
    OffsetOutOfRangeError,
    ReplicaNotAvailableError,
    UnknownLeaderEpochError,
    UnknownTopicOrPartitionError,
)
from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.types import ZERO_UUID, TopicIdPartition
from kafkapy.metadata.metadata_cache import MetadataCache
from kafkapy.replication.delayed_fetch import (
    DelayedFetch,
    FetchCallback,
    FetchInfos,
    FetchPartitionStatus,
    FetchResults,
)
from kafkapy.replication.delayed_operations import DelayedOperations
from kafkapy.replication.fetch_partition_result import LogReadResult
from kafkapy.replication.hosted_partitions import HostedPartitions
from kafkapy.replication.partition import Partition
from kafkapy.replication.replica_selector import PartitionView, ReplicaSelector, ReplicaView
from kafkapy.storage.broker_topic_stats import BrokerTopicStats
from kafkapy.storage.fetch_data_info import FetchDataInfo
from kafkapy.storage.fetch_params import ClientMetadata, FetchParams, FetchPartitionData
from kafkapy.utils.time import Time

logger = logging.getLogger(__name__)

# Expected in normal running, so they count neither as failures of the broker nor are they logged.
_EXPECTED_ERRORS = (
    UnknownTopicOrPartitionError,
    NotLeaderOrFollowerError,
    UnknownLeaderEpochError,
    FencedLeaderEpochError,
    ReplicaNotAvailableError,
    KafkaStorageError,
    InconsistentTopicIdError,
    OffsetOutOfRangeError,
)

_ReadResults = list[tuple[TopicIdPartition, LogReadResult]]


class ReplicaFetches:
    """Reads from the logs here, at once or when there is enough to return.

    Thread-safe; the response callback runs with no lock held.

    Ports: kafka.server.ReplicaManager (fetchMessages, readFromLog)
    """

    def __init__(
        self,
        *,
        time: Time,
        partitions: HostedPartitions,
        delayed_operations: DelayedOperations,
        broker_topic_stats: BrokerTopicStats,
        metadata_cache: MetadataCache,
        metrics: MetricsRegistry,
        replica_selector: ReplicaSelector | None,
    ) -> None:
        self._time = time
        self._partitions = partitions
        self._delayed_operations = delayed_operations
        self._broker_topic_stats = broker_topic_stats
        self._metadata_cache = metadata_cache
        self._metrics = metrics
        self._replica_selector = replica_selector

    def fetch_messages(
        self, params: FetchParams, fetch_infos: FetchInfos, response_callback: FetchCallback
    ) -> None:
        """Answer at once when the fetch does not want to wait, asks for nothing, has enough data,
        met an error or a diverging epoch, or should rather go to another replica."""
        results = self._read_from_log(params, fetch_infos, update_fetch_state=True)
        answer_now = params.max_wait_ms <= 0 or not results
        readable_bytes = 0
        for topic_id_partition, result in results:
            self._broker_topic_stats.mark_fetch_request(topic_id_partition.topic_partition.topic)
            readable_bytes += result.info.records.size_in_bytes
            if (
                result.error is not Errors.NONE
                or result.diverging_epoch is not None
                or result.preferred_read_replica is not None
            ):
                answer_now = True
        if answer_now or readable_bytes >= params.min_bytes:
            response_callback(self._to_fetch_results(params, results))
            return
        statuses = [
            FetchPartitionStatus(result.info.fetch_offset_metadata, topic_id_partition, data)
            for (topic_id_partition, data), (_, result) in zip(fetch_infos, results, strict=True)
        ]
        self._delayed_operations.fetch.try_complete_else_watch(
            DelayedFetch(
                params,
                statuses,
                partitions=self._partitions,
                read=self._read_from_purgatory,
                metrics=self._metrics,
                response_callback=response_callback,
            ),
            [status.topic_id_partition.topic_partition for status in statuses],
        )

    def _read_from_purgatory(self, params: FetchParams, fetch_infos: FetchInfos) -> FetchResults:
        # The follower told how far it has come when the fetch came in; it may be further now.
        return self._to_fetch_results(
            params, self._read_from_log(params, fetch_infos, update_fetch_state=False)
        )

    def _to_fetch_results(self, params: FetchParams, results: _ReadResults) -> FetchResults:
        if not params.is_from_follower:
            return [
                (topic_id_partition, result.to_fetch_partition_result(is_reassignment_fetch=False))
                for topic_id_partition, result in results
            ]
        return [
            (
                topic_id_partition,
                result.to_fetch_partition_result(
                    is_reassignment_fetch=(
                        partition := self._partitions.get(topic_id_partition.topic_partition)
                    )
                    is not None
                    and partition.is_adding_replica(params.replica_id)
                ),
            )
            for topic_id_partition, result in results
        ]

    def _read_from_log(
        self, params: FetchParams, fetch_infos: FetchInfos, *, update_fetch_state: bool
    ) -> _ReadResults:
        """Read partition after partition until the fetch is full.

        Unless the limit is a hard one, the first partition with data returns at least one batch,
        however large, so that a reader always makes progress.
        """
        limit_bytes = params.max_bytes
        min_one_message = not params.hard_max_bytes_limit
        results: _ReadResults = []
        for topic_id_partition, data in fetch_infos:
            result = self._read(
                params,
                topic_id_partition,
                data,
                max_bytes=min(data.max_bytes, limit_bytes),
                min_one_message=min_one_message,
                update_fetch_state=update_fetch_state,
            )
            size = result.info.records.size_in_bytes
            if size > 0:
                min_one_message = False
                limit_bytes = max(0, limit_bytes - size)
            results.append((topic_id_partition, result))
        return results

    def _read(
        self,
        params: FetchParams,
        topic_id_partition: TopicIdPartition,
        data: FetchPartitionData,
        *,
        max_bytes: int,
        min_one_message: bool,
        update_fetch_state: bool,
    ) -> LogReadResult:
        try:
            partition = self._partitions.get_or_raise(topic_id_partition.topic_partition)
            topic_id = topic_id_partition.topic_id
            if topic_id != ZERO_UUID and partition.topic_id not in (None, topic_id):
                raise InconsistentTopicIdError(
                    f"{topic_id_partition} is not the topic whose log is here"
                )
            fetch_time_ms = self._time.hi_res_clock_ms()
            if self._replica_selector is not None and params.client_metadata is not None:
                preferred = self._find_preferred_read_replica(
                    partition, params.client_metadata, data.fetch_offset, fetch_time_ms
                )
                if preferred is not None:
                    return self._redirect(partition, data, preferred)
            info = partition.fetch_records(
                params,
                data,
                fetch_time_ms=fetch_time_ms,
                max_bytes=max_bytes,
                min_one_message=min_one_message,
                update_fetch_state=update_fetch_state,
            )
        except _EXPECTED_ERRORS as error:
            return LogReadResult(error=Errors.for_exception(error))
        except Exception as error:
            self._broker_topic_stats.mark_failed_fetch(topic_id_partition.topic_partition.topic)
            logger.exception(
                "Fetch of %s at offset %d by %s failed",
                topic_id_partition,
                data.fetch_offset,
                f"broker {params.replica_id}" if params.is_from_follower else "a consumer",
            )
            return LogReadResult(error=Errors.for_exception(error))
        fetched = info.fetched_data
        if fetched.first_entry_incomplete and not params.hard_max_bytes_limit:
            # From v3 on clients are not made to deal with a piece of a batch.
            fetched = FetchDataInfo(fetched.fetch_offset_metadata, MemoryRecords.EMPTY)
        return LogReadResult(
            fetched,
            info.high_watermark,
            info.log_start_offset,
            info.log_end_offset,
            info.last_stable_offset,
            info.diverging_epoch,
        )

    def _redirect(
        self, partition: Partition, data: FetchPartitionData, preferred: int
    ) -> LogReadResult:
        snapshot = partition.fetch_offset_snapshot(
            data.current_leader_epoch, fetch_only_from_leader=False
        )
        return LogReadResult(
            high_watermark=snapshot.high_watermark.message_offset,
            leader_log_start_offset=snapshot.log_start_offset,
            leader_log_end_offset=snapshot.log_end_offset.message_offset,
            last_stable_offset=snapshot.last_stable_offset.message_offset,
            preferred_read_replica=preferred,
        )

    def _find_preferred_read_replica(
        self,
        partition: Partition,
        client: ClientMetadata,
        fetch_offset: int,
        fetch_time_ms: int,
    ) -> int | None:
        """Another replica that the selector wants this consumer to read from.

        Only the leader sends consumers away, and only to followers in the ISR: one that lags would
        be chosen again and again while the consumer falls behind.
        """
        log = partition.leader_log_if_local
        if log is None or self._replica_selector is None:
            return None
        endpoints = self._metadata_cache.get_partition_replica_endpoints(
            partition.topic_partition, client.listener_name
        )
        leader_endpoint = endpoints.get(partition.local_broker_id)
        if leader_endpoint is None:
            return None
        leader = ReplicaView(leader_endpoint, log.log_end_offset, 0)
        followers = []
        for replica in partition.remote_replicas.values():
            state = replica.state
            endpoint = endpoints.get(replica.broker_id)
            if (
                endpoint is not None
                and replica.broker_id in partition.in_sync_replica_ids
                and state.log_start_offset <= fetch_offset <= state.log_end_offset
            ):
                followers.append(
                    ReplicaView(
                        endpoint, state.log_end_offset, fetch_time_ms - state.last_caught_up_time_ms
                    )
                )
        selected = self._replica_selector.select(
            partition.topic_partition, client, PartitionView((*followers, leader), leader)
        )
        return None if selected is None or selected == leader else selected.endpoint.id
