"""What a read of the log returns."""

from typing import NamedTuple

from kafkapy.common.record.file_records import FileRecords
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.storage.log_offset_metadata import LogOffsetMetadata
from kafkapy.storage.transaction_index import AbortedTxn


class FetchDataInfo(NamedTuple):
    """Records as a slice of a file, or nothing. A tuple: one is made per partition and fetch.

    `aborted_transactions` is None unless the read was for committed records only.

    Ports: org.apache.kafka.storage.internals.log.FetchDataInfo
    """

    fetch_offset_metadata: LogOffsetMetadata
    records: FileRecords | MemoryRecords
    first_entry_incomplete: bool = False
    aborted_transactions: tuple[AbortedTxn, ...] | None = None
