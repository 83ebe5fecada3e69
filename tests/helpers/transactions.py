"""A transactional producer by hand: every request is a call, every error visible."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafkapy.common.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from kafkapy.common.protocol.messages.end_txn import EndTxnRequest
from kafkapy.common.protocol.messages.find_coordinator import FindCoordinatorRequest
from kafkapy.common.protocol.messages.init_producer_id import InitProducerIdRequest
from kafkapy.common.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from kafkapy.common.record.control_record import ControlRecordType
from tests.helpers.api import fetch, fetched_batches, produce_request
from tests.helpers.broker import Client
from tests.helpers.records import records
from tests.helpers.waiting import wait_until

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
GROUP_KEY, TRANSACTION_KEY = 0, 1
_RETRIABLE = (
    Errors.CONCURRENT_TRANSACTIONS,
    Errors.COORDINATOR_LOAD_IN_PROGRESS,
    Errors.COORDINATOR_NOT_AVAILABLE,
    Errors.NOT_COORDINATOR,
)


def find_coordinator(client: Client, key: str, key_type: int = TRANSACTION_KEY) -> None:
    """Returns once there is one; the first call has its topic created."""

    def found() -> bool:
        response = client.request(FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key]))
        return response.coordinators[0].error_code == Errors.NONE.code

    wait_until(found)


def until_settled(attempt: Callable[[], Errors]) -> Errors:
    """The first answer that does not say to try again."""
    last = [Errors.NONE]

    def settled() -> bool:
        last[0] = attempt()
        return last[0] not in _RETRIABLE

    wait_until(settled, pause=0.02)
    return last[0]


class TransactionalProducer:
    """Not thread-safe."""

    def __init__(self, client: Client, transactional_id: str, *, timeout_ms: int = 60_000) -> None:
        self._client = client
        self.transactional_id = transactional_id
        self.timeout_ms = timeout_ms
        self.producer_id = -1
        self.epoch = -1
        self._sequences: dict[tuple[str, int], int] = {}

    def init(self, *, version: int | None = None, continues: bool = False) -> Errors:
        """One InitProducerId; with `continues` naming the id and epoch it has."""
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=self.timeout_ms
        )
        if continues:
            request.producer_id, request.producer_epoch = self.producer_id, self.epoch
        response = self._client.request(request, version)
        error = Errors.for_code(response.error_code)
        if error is Errors.NONE:
            self.producer_id, self.epoch = response.producer_id, response.producer_epoch
            self._sequences.clear()
        return error

    def start(self) -> TransactionalProducer:
        """Ready for transactions, whatever it takes."""
        find_coordinator(self._client, self.transactional_id)
        assert until_settled(self.init) is Errors.NONE
        return self

    def add(self, topic: str, *partitions: int, version: int = 3) -> Errors:
        """The error of the first partition."""
        response = self._client.request(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.transactional_id,
                v3_and_below_producer_id=self.producer_id,
                v3_and_below_producer_epoch=self.epoch,
                v3_and_below_topics=[
                    AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(
                        name=topic, partitions=list(partitions or (0,))
                    )
                ],
            ),
            version,
        )
        result = response.results_by_topic_v3_and_below[0].results_by_partition[0]
        return Errors.for_code(result.partition_error_code)

    def send(
        self, topic: str, *values: str, partition: int = 0, version: int | None = None
    ) -> Errors:
        """One batch."""
        sequence = self._sequences.get((topic, partition), 0)
        response = self._client.request(
            produce_request(
                topic,
                records(
                    *values,
                    producer_id=self.producer_id,
                    producer_epoch=self.epoch,
                    sequence=sequence,
                    transactional=True,
                ),
                partition=partition,
                transactional_id=self.transactional_id,
            ),
            version,
        )
        error = Errors.for_code(response.responses[0].partition_responses[0].error_code)
        if error is Errors.NONE:
            self._sequences[topic, partition] = sequence + len(values)
        return error

    def write(self, topic: str, *values: str, partition: int = 0) -> None:
        """Adds the partition and sends, both with success."""
        assert until_settled(lambda: self.add(topic, partition)) is Errors.NONE
        assert self.send(topic, *values, partition=partition) is Errors.NONE

    def end(self, *, commit: bool, version: int | None = None) -> Errors:
        response = self._client.request(self._end_request(commit=commit), version)
        return Errors.for_code(response.error_code)

    def send_end(self, *, commit: bool) -> None:
        """Does not wait for the answer."""
        self._client.send(self._end_request(commit=commit))

    def _end_request(self, *, commit: bool) -> EndTxnRequest:
        return EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )

    def use(self, client: Client) -> None:
        """Goes on over another connection."""
        self._client = client

    def commit(self) -> None:
        assert self.end(commit=True) is Errors.NONE

    def abort(self) -> None:
        assert self.end(commit=False) is Errors.NONE

    def add_offsets(self, group: str, *, version: int | None = None) -> Errors:
        response = self._client.request(
            AddOffsetsToTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                group_id=group,
            ),
            version,
        )
        return Errors.for_code(response.error_code)

    def commit_offset(
        self, group: str, topic: str, offset: int, *, version: int | None = None
    ) -> Errors:
        response = self._client.request(
            TxnOffsetCommitRequest(
                transactional_id=self.transactional_id,
                group_id=group,
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                topics=[
                    TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
                        name=topic,
                        partitions=[
                            TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
                                partition_index=0, committed_offset=offset, committed_metadata=""
                            )
                        ],
                    )
                ],
            ),
            version,
        )
        return Errors.for_code(response.topics[0].partitions[0].error_code)


def visible(client: Client, topic: str, isolation: int, *, partition: int = 0) -> list[str]:
    """The values that a consumer passes on: aborted ones are its to leave out."""
    values: list[str] = []
    offset = 0
    while True:
        data = fetch(client, topic, offset, partition=partition, isolation_level=isolation)
        batches = fetched_batches(data)
        if not batches:
            return values
        aborts = sorted((a.first_offset, a.producer_id) for a in data.aborted_transactions or ())
        aborting: set[int] = set()
        for batch in batches:
            while aborts and aborts[0][0] <= batch.last_offset:
                aborting.add(aborts.pop(0)[1])
            if batch.is_control_batch:
                if _is_abort(batch.records()):
                    aborting.discard(batch.producer_id)
            elif not (batch.is_transactional and batch.producer_id in aborting):
                values += [(record.value or b"").decode() for record in batch.records()]
            offset = batch.next_offset


def _is_abort(found: Iterable) -> bool:
    return ControlRecordType.parse(next(iter(found)).key) is ControlRecordType.ABORT


def committed(client: Client, topic: str, *, partition: int = 0) -> list[str]:
    return visible(client, topic, READ_COMMITTED, partition=partition)


def uncommitted(client: Client, topic: str, *, partition: int = 0) -> list[str]:
    return visible(client, topic, READ_UNCOMMITTED, partition=partition)
