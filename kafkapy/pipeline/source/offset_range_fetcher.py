"""Reads one range of offsets from the partition's leader."""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterator

import pyarrow as pa

from kafkapy.clients.admin.offset_spec import OffsetSpec
from kafkapy.clients.client_request import VersionedRequest
from kafkapy.clients.deadline import Deadline
from kafkapy.common.errors import (
    Errors,
    InvalidConfigurationError,
    KafkaError,
    RequestTimeoutError,
    RetriableError,
    UnknownServerError,
)
from kafkapy.common.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.common.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kafkapy.common.record.record_batch import (
    HEADER_SIZE_UP_TO_MAGIC,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MAGIC_VALUE_V2,
)
from kafkapy.common.types import ZERO_UUID
from kafkapy.pipeline.columnar.record_columns_decoder import RecordColumnsDecoder
from kafkapy.pipeline.columnar.record_schema import RecordSchema
from kafkapy.pipeline.kafka_client_options import option_error
from kafkapy.pipeline.pipeline_errors import CorruptDataError, PipelineError
from kafkapy.pipeline.source.data_loss_reporter import DataLossReporter
from kafkapy.pipeline.source.kafka_source_options import SourceOptions
from kafkapy.pipeline.source.offset_range import OffsetRange
from kafkapy.pipeline.source.partition_leader_client import PartitionLeaderClient
from kafkapy.utils.time import Time

logger = logging.getLogger(__name__)

_OFFSET_AND_SIZE = struct.Struct(">qi")
_LAST_OFFSET_DELTA = struct.Struct(">i")
_LAST_OFFSET_DELTA_POSITION = 23
_LAST_VERSION_WITHOUT_TOPIC_IDS = 12
_NO_EPOCH = -1
_CONSUMER_REPLICA_ID = -1


class OffsetRangeFetcher:
    """Fetches a range and decodes it, the next answer on its way meanwhile. For one thread.

    Offsets that no record has, where transactions end or compaction has been, are passed over;
    offsets that are no longer in the log are data loss.

    Ports: org.apache.spark.sql.kafka010.consumer.KafkaDataConsumer
    """

    def __init__(
        self, offset_range: OffsetRange, schema: RecordSchema, options: SourceOptions, time: Time
    ) -> None:
        # constant after construction
        self._range = offset_range
        self._partition = offset_range.topic_partition
        self._schema = schema
        self._options = options
        self._config = options.consumer_config()
        self._time = time
        self._data_loss = DataLossReporter(options.fail_on_data_loss)

    def record_batches(self) -> Iterator[pa.RecordBatch]:
        """All rows of the range, in their order.

        DataLossError and CorruptDataError say what became of them; PipelineError that nothing came
        for kafkaConsumer.pollTimeoutMs, and why.
        """
        try:
            client = PartitionLeaderClient(
                self._partition,
                self._config,
                self._time,
                client_id=self._config.client_id or self._options.group_id_prefix,
            )
        except InvalidConfigurationError as error:
            raise option_error(error) from error
        decoder = self._decoder(self._range.from_offset)
        try:
            with client:
                for position, data in self._answers(client):
                    if position > decoder.next_offset:
                        # What was in between is lost, also where its batch is still there.
                        yield from decoder.finish()
                        decoder = self._decoder(position)
                    decoder.add_aborted(data.aborted_transactions or ())
                    yield from decoder.decode(data.records)  # type: ignore[arg-type]
        except KafkaError as error:
            raise PipelineError(f"{self._range} cannot be read: {error}") from error
        yield from decoder.finish()

    def _decoder(self, start_offset: int) -> RecordColumnsDecoder:
        return RecordColumnsDecoder(
            self._partition,
            self._schema,
            start_offset=start_offset,
            end_offset=self._range.until_offset,
            check_crcs=self._config.check_crcs,
            read_committed=self._config.is_read_committed,
        )

    def _answers(
        self, client: PartitionLeaderClient
    ) -> Iterator[tuple[int, FetchResponse.PartitionData]]:
        """Those with records, and for which offset; the next is asked for before one is handed
        out."""
        position = self._range.from_offset
        deadline = Deadline(self._time, self._options.poll_timeout_ms)
        is_sent = False
        while position < self._range.until_offset:
            try:
                if not is_sent:
                    client.send(self._fetch_request(position, client), deadline)
                is_sent = False
                data = self._partition_data(client.receive())
                if data.error_code == Errors.OFFSET_OUT_OF_RANGE.code:
                    position = self._after_lost_offsets(position, client, deadline)
                    continue
                self._raise_for(data, position)
            except KafkaError as error:
                if not self._may_go_on(error, position, client, deadline):
                    return
                continue
            end = end_of_batches(data.records)  # type: ignore[arg-type]
            if end is None:
                if self._is_read_to_the_end(data, position, deadline):
                    return
                continue
            if end <= position:
                raise CorruptDataError(f"{self._partition}: a batch at {end} answers {position}")
            if end < self._range.until_offset:
                is_sent = self._try_send(end, client)
            yield position, data
            position = end
            deadline.reset(self._options.poll_timeout_ms)

    def _try_send(self, position: int, client: PartitionLeaderClient) -> bool:
        """Whether that could be done at once; what has come is not to wait for it."""
        try:
            client.send(self._fetch_request(position, client), Deadline(self._time, 0))
        except RetriableError as error:
            logger.debug("%s: not sent yet: %s", self._partition, error)
            return False
        return True

    def _fetch_request(self, position: int, client: PartitionLeaderClient) -> VersionedRequest:
        config = self._config
        epoch = client.leader_epoch
        topic_id = self._range.topic_id
        partition = FetchRequest.FetchPartition(
            partition=self._partition.partition,
            current_leader_epoch=_NO_EPOCH if epoch is None else epoch,
            fetch_offset=position,
            partition_max_bytes=config.max_partition_fetch_bytes,
        )
        return VersionedRequest(
            FetchRequest(
                max_wait_ms=config.fetch_max_wait_ms,
                min_bytes=config.fetch_min_bytes,
                max_bytes=config.fetch_max_bytes,
                isolation_level=int(config.is_read_committed),
                topics=[
                    FetchRequest.FetchTopic(
                        topic=self._partition.topic, topic_id=topic_id, partitions=[partition]
                    )
                ],
            ),
            max_version=_LAST_VERSION_WITHOUT_TOPIC_IDS if topic_id == ZERO_UUID else None,
        )

    def _partition_data(self, response: object) -> FetchResponse.PartitionData:
        assert isinstance(response, FetchResponse)
        error = Errors.for_code(response.error_code)
        if error is not Errors.NONE:
            raise error.exception(error.message)
        for topic in response.responses:
            for data in topic.partitions:
                return data
        # A broker that holds a client back answers at once, with nothing.
        raise RequestTimeoutError("the broker answered with nothing: a quota holds the client back")

    def _raise_for(self, data: FetchResponse.PartitionData, position: int) -> None:
        error = Errors.for_code(data.error_code)
        if error is Errors.CORRUPT_MESSAGE:
            raise CorruptDataError(
                f"{self._partition}: the broker cannot read its own log at offset {position}"
            )
        if error is not Errors.NONE:
            raise error.exception(error.message)

    def _is_read_to_the_end(
        self, data: FetchResponse.PartitionData, position: int, deadline: Deadline
    ) -> bool:
        """After an answer without a whole batch."""
        if data.records:
            raise PipelineError(
                f"{self._partition}: the batch at offset {position} is larger than "
                "kafka.max.partition.fetch.bytes, and the broker sends only part of it"
            )
        log_end = data.last_stable_offset if self._config.is_read_committed else data.high_watermark
        if log_end >= self._range.until_offset:
            return True  # what was there has been compacted away
        # A new leader may not know yet how far its followers are.
        if deadline.is_expired:
            self._data_loss.report(
                f"{self._partition}: offsets {position} to {self._range.until_offset} are wanted, "
                f"and the log ends at {log_end}"
            )
            return True
        return False

    def _may_go_on(
        self,
        error: KafkaError,
        position: int,
        client: PartitionLeaderClient,
        deadline: Deadline,
    ) -> bool:
        """Whether to try again; False when the records are gone and that is accepted."""
        if not isinstance(error, RetriableError | UnknownServerError):
            raise error
        logger.info("%s: reading offset %d failed: %s", self._partition, position, error)
        if not deadline.is_expired:
            client.refresh(deadline)
        if self._range.topic_id != ZERO_UUID and client.topic_id not in (
            ZERO_UUID,
            self._range.topic_id,
        ):
            self._data_loss.report(
                f"{self._partition}: offsets {position} to {self._range.until_offset} are wanted, "
                "but the topic has been deleted and created anew"
            )
            return False
        if deadline.is_expired:
            raise PipelineError(
                f"{self._partition}: nothing came of offset {position} for "
                f"{self._options.poll_timeout_ms} ms (kafkaConsumer.pollTimeoutMs): {error}"
            ) from error
        return True

    def _after_lost_offsets(
        self, position: int, client: PartitionLeaderClient, deadline: Deadline
    ) -> int:
        """Where reading goes on when the log does not have this offset."""
        earliest = self._list_offset(OffsetSpec.EARLIEST, client, deadline)
        latest = self._list_offset(OffsetSpec.LATEST, client, deadline)
        wanted = f"{self._partition}: offsets {position} to {self._range.until_offset} are wanted"
        if position < earliest:
            self._data_loss.report(f"{wanted}, and only {earliest} to {latest} are available")
            return min(earliest, self._range.until_offset)
        if position > latest:
            self._data_loss.report(f"{wanted}, and the log ends at {latest}")
            return self._range.until_offset
        raise RequestTimeoutError(f"the broker does not have offset {position} yet")

    def _list_offset(
        self, spec: OffsetSpec, client: PartitionLeaderClient, deadline: Deadline
    ) -> int:
        partition = ListOffsetsRequest.ListOffsetsPartition(
            partition_index=self._partition.partition, timestamp=spec
        )
        topic = ListOffsetsRequest.ListOffsetsTopic(
            name=self._partition.topic, partitions=[partition]
        )
        request = ListOffsetsRequest(replica_id=_CONSUMER_REPLICA_ID, topics=[topic])
        client.send(VersionedRequest(request, min_version=1), deadline)
        response = client.receive()
        assert isinstance(response, ListOffsetsResponse)
        (found,) = response.topics[0].partitions
        error = Errors.for_code(found.error_code)
        if error is not Errors.NONE:
            raise error.exception(error.message)
        return found.offset


def end_of_batches(records: bytes | memoryview | None) -> int | None:
    """The offset after the last whole batch; None when there is none."""
    view = memoryview(records or b"")
    last: int | None = None
    position = 0
    while len(view) - position >= HEADER_SIZE_UP_TO_MAGIC:
        end = position + LOG_OVERHEAD + _OFFSET_AND_SIZE.unpack_from(view, position)[1]
        if not position + HEADER_SIZE_UP_TO_MAGIC <= end <= len(view):
            break
        last, position = position, end
    if last is None:
        return None
    offset: int = _OFFSET_AND_SIZE.unpack_from(view, last)[0]
    if view[last + MAGIC_OFFSET] == MAGIC_VALUE_V2:
        delta: int = _LAST_OFFSET_DELTA.unpack_from(view, last + _LAST_OFFSET_DELTA_POSITION)[0]
        return offset + delta + 1
    return offset + 1
