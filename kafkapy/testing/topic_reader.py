"""Reading topics without a consumer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum

from kafkapy.common.errors import Errors, KafkaError
from kafkapy.common.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.common.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kafkapy.common.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kafkapy.common.record.control_record import ControlRecordType
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record_batch import RecordBatch
from kafkapy.testing.wire_client import WireClient

_BY_NAME = 12  # the last Fetch version that names topics
_EARLIEST = -2
_MAX_BYTES = 50 * 1024 * 1024
_MAX_SHOWN_BYTES = 200


class IsolationLevel(IntEnum):
    """Whether records of transactions that are open or aborted are seen."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record as it is in the log."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]

    def __str__(self) -> str:
        content = f"{_short(self.key)} = {_short(self.value)}"
        if self.headers:
            headers = ", ".join(f"{name!r}: {_short(value)}" for name, value in self.headers)
            content += f" {{{headers}}}"
        return f"{self.topic}-{self.partition}@{self.offset}: {content}"


def _short(content: bytes | None) -> str:
    if content is None or len(content) <= _MAX_SHOWN_BYTES:
        return repr(content)
    return f"{content[:_MAX_SHOWN_BYTES]!r}… ({len(content)} bytes)"


class TopicReader:
    """Reads on where it stopped, through a connection it is given. Not thread-safe."""

    def __init__(self, client: WireClient, topic: str, isolation: IsolationLevel) -> None:
        """Raises ValueError if that is no isolation level."""
        self._client = client
        self._topic = topic
        self._isolation = IsolationLevel(isolation)
        self._positions: dict[int, int] = {}

    def poll(self, max_wait_ms: int = 0) -> list[StoredRecord]:
        """New records, waited for; none as well while there is no such topic."""
        self._find_partitions()
        found: list[StoredRecord] = []
        while self._positions:
            read, progress = self._fetch(0 if found else max_wait_ms)
            found += read
            if not progress:
                break
        return found

    def _find_partitions(self) -> None:
        response = self._client.ask(
            MetadataRequest(
                topics=[MetadataRequest.MetadataRequestTopic(name=self._topic)],
                allow_auto_topic_creation=False,
            ),
            MetadataResponse,
        )
        new = [
            partition.partition_index
            for topic in response.topics
            if topic.error_code == Errors.NONE.code
            for partition in topic.partitions
            if partition.error_code == Errors.NONE.code
            and partition.partition_index not in self._positions
        ]
        if new:
            self._positions.update(self._earliest(new))

    def _earliest(self, partitions: Iterable[int]) -> dict[int, int]:
        response = self._client.ask(
            ListOffsetsRequest(
                replica_id=-1,
                topics=[
                    ListOffsetsRequest.ListOffsetsTopic(
                        name=self._topic,
                        partitions=[
                            ListOffsetsRequest.ListOffsetsPartition(
                                partition_index=partition, timestamp=_EARLIEST
                            )
                            for partition in partitions
                        ],
                    )
                ],
            ),
            ListOffsetsResponse,
        )
        return {
            partition.partition_index: partition.offset
            for topic in response.topics
            for partition in topic.partitions
            if partition.error_code == Errors.NONE.code
        }

    def _fetch(self, max_wait_ms: int) -> tuple[list[StoredRecord], bool]:
        """Records, and whether any partition was read further."""
        response = self._client.ask(
            FetchRequest(
                replica_id=-1,
                max_wait_ms=max_wait_ms,
                min_bytes=1,
                max_bytes=_MAX_BYTES,
                isolation_level=self._isolation,
                topics=[
                    FetchRequest.FetchTopic(
                        topic=self._topic,
                        partitions=[
                            FetchRequest.FetchPartition(
                                partition=partition,
                                fetch_offset=offset,
                                partition_max_bytes=_MAX_BYTES,
                            )
                            for partition, offset in self._positions.items()
                        ],
                    )
                ],
            ),
            FetchResponse,
            _BY_NAME,
        )
        found: list[StoredRecord] = []
        before = dict(self._positions)
        for topic in response.responses:
            for data in topic.partitions:
                error = Errors.for_code(data.error_code)
                if error is Errors.NONE:
                    found += self._records(data)
                else:
                    self._failed(data.partition_index, error)
        return found, self._positions != before

    def _failed(self, partition: int, error: Errors) -> None:
        if error is Errors.UNKNOWN_TOPIC_OR_PARTITION:
            self._positions.pop(partition, None)
        elif error is Errors.OFFSET_OUT_OF_RANGE:
            # Older records were deleted meanwhile.
            self._positions.update(self._earliest([partition]))
        else:
            raise KafkaError(f"{self._topic}-{partition} cannot be read: {error.name}")

    def _records(self, data: FetchResponse.PartitionData) -> Iterator[StoredRecord]:
        if not isinstance(data.records, bytes | bytearray | memoryview):
            return
        partition = data.partition_index
        position = self._positions[partition]
        aborted = _AbortedTransactions(data.aborted_transactions or ())
        for batch in MemoryRecords(data.records).batches():
            self._positions[partition] = batch.last_offset + 1
            if aborted.hides(batch) or batch.is_control_batch:
                continue
            for record in batch.records():
                if record.offset >= position:
                    yield StoredRecord(
                        self._topic,
                        partition,
                        record.offset,
                        record.timestamp,
                        record.key,
                        record.value,
                        tuple((header.key, header.value) for header in record.headers),
                    )


class _AbortedTransactions:
    """Tells the batches of aborted transactions while a fetch is read from front to back."""

    def __init__(self, aborted: Iterable[FetchResponse.AbortedTransaction]) -> None:
        self._to_come = sorted(
            ((a.first_offset, a.producer_id) for a in aborted), key=lambda a: a[0]
        )
        self._aborted: set[int] = set()

    def hides(self, batch: RecordBatch) -> bool:
        while self._to_come and self._to_come[0][0] <= batch.last_offset:
            self._aborted.add(self._to_come.pop(0)[1])
        if batch.is_control_batch:
            if ControlRecordType.ABORT is _control_type(batch):
                self._aborted.discard(batch.producer_id)
            return True
        return batch.is_transactional and batch.producer_id in self._aborted


def _control_type(batch: RecordBatch) -> ControlRecordType | None:
    key = next(iter(batch.records())).key
    return ControlRecordType.parse(key) if key is not None else None
