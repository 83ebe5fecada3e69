"""The answer to a fetch, for one partition."""

from typing import NamedTuple

from kafkapy.common.errors import Errors
from kafkapy.common.record.file_records import FileRecords
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.storage.fetch_data_info import FetchDataInfo
from kafkapy.storage.log_offset_metadata import UNKNOWN_OFFSET, UNKNOWN_OFFSET_METADATA
from kafkapy.storage.transaction_index import AbortedTxn

INVALID_LAST_STABLE_OFFSET = -1
EMPTY_FETCH = FetchDataInfo(UNKNOWN_OFFSET_METADATA, MemoryRecords.EMPTY)


class DivergingEpoch(NamedTuple):
    """The largest epoch up to the follower's last one that leader and follower may share, and
    where it ends in the leader's log: the follower truncates to that."""

    epoch: int
    end_offset: int


class LogReadResult(NamedTuple):
    """What was read from one partition, or why nothing was. A tuple: one per partition and fetch.

    Ports: kafka.server.LogReadResult
    """

    info: FetchDataInfo = EMPTY_FETCH
    high_watermark: int = UNKNOWN_OFFSET
    leader_log_start_offset: int = UNKNOWN_OFFSET
    leader_log_end_offset: int = UNKNOWN_OFFSET
    last_stable_offset: int = INVALID_LAST_STABLE_OFFSET
    diverging_epoch: DivergingEpoch | None = None
    preferred_read_replica: int | None = None
    error: Errors = Errors.NONE

    def to_fetch_partition_result(self, *, is_reassignment_fetch: bool) -> "FetchPartitionResult":
        info = self.info
        return FetchPartitionResult(
            self.error,
            self.high_watermark,
            self.leader_log_start_offset,
            info.records,
            self.last_stable_offset,
            info.aborted_transactions,
            self.preferred_read_replica,
            self.diverging_epoch,
            is_reassignment_fetch,
        )


class FetchPartitionResult(NamedTuple):
    """What a fetch answers for one partition.

    Ports: org.apache.kafka.server.storage.log.FetchPartitionData
    """

    error: Errors
    high_watermark: int
    log_start_offset: int
    records: FileRecords | MemoryRecords
    last_stable_offset: int = INVALID_LAST_STABLE_OFFSET
    aborted_transactions: tuple[AbortedTxn, ...] | None = None
    preferred_read_replica: int | None = None
    diverging_epoch: DivergingEpoch | None = None
    is_reassignment_fetch: bool = False
