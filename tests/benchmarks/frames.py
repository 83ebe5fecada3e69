"""Whole request frames, size and header in front, for the load generator to send as they are."""

import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass

from kafkapy.common.protocol.header_versions import response_header_version
from kafkapy.common.protocol.headers import RequestHeader
from kafkapy.common.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkapy.common.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.common.protocol.messages.produce import ProduceRequest, ProduceResponse
from kafkapy.common.protocol.schema import Message
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record import SimpleRecord

MIB = 1024 * 1024
BATCH_BYTES = 64 * 1024
RECORDS_PER_BATCH = 64
SLICE_BYTES = MIB
SMALL_VALUE_BYTES = 100
SMALLEST_FRAME_BYTES = 100

# The newest versions that name a topic by its name, so that one file of frames fits any broker.
PRODUCE_VERSION = 9
FETCH_VERSION = 12
_API_VERSIONS_VERSION = 0

_CLIENT_ID = "bench"
_TIMEOUT_MS = 10_000
_CORRELATION_ID_SIZE = 4


@dataclass(frozen=True, slots=True)
class Frames:
    """Requests to be sent round and round, and where their answers carry an error code."""

    requests: Sequence[bytes]
    error_at: int


def frame(request: Message, version: int, *, client_id: str = _CLIENT_ID) -> bytes:
    """A request with its size and header; the load generator sets the correlation id."""
    assert request.API_KEY is not None
    header = RequestHeader(
        api_key=request.API_KEY, api_version=version, correlation_id=0, client_id=client_id
    )
    payload = header.to_bytes() + request.encode(version)
    return struct.pack(">i", len(payload)) + payload


def smallest() -> Frames:
    """ApiVersions v0, which has no body: the client id brings it to the limit server's size."""
    unpadded = len(frame(ApiVersionsRequest(), _API_VERSIONS_VERSION, client_id=""))
    client_id = "x" * (SMALLEST_FRAME_BYTES - unpadded)
    request = frame(ApiVersionsRequest(), _API_VERSIONS_VERSION, client_id=client_id)
    good, bad = ApiVersionsResponse(error_code=0), ApiVersionsResponse(error_code=-1)
    return Frames([request], error_position(good, bad, _API_VERSIONS_VERSION))


def produce(topic: str, partitions: int, batch: bytes) -> Frames:
    """One request per partition, acks=1."""
    requests = [
        frame(produce_request(topic, [index], batch), PRODUCE_VERSION)
        for index in range(partitions)
    ]
    return Frames(requests, _produce_error_position(topic))


def produce_request(topic: str, partitions: Sequence[int], batch: bytes) -> ProduceRequest:
    """The same batch for each of the partitions, acks=1."""
    data = [
        ProduceRequest.PartitionProduceData(index=index, records=memoryview(batch))
        for index in partitions
    ]
    topic_data = ProduceRequest.TopicProduceData(name=topic, partition_data=data)
    return ProduceRequest(acks=1, timeout_ms=_TIMEOUT_MS, topic_data=[topic_data])


def fetch(topic: str, partitions: int, slices: int) -> Frames:
    """One request per slice of a topic filled with `large_batch`es, partition by partition."""
    records_per_slice = SLICE_BYTES // BATCH_BYTES * RECORDS_PER_BATCH
    requests = [
        frame(_fetch_request(topic, index, number * records_per_slice), FETCH_VERSION)
        for index in range(partitions)
        for number in range(slices)
    ]
    return Frames(requests, _fetch_error_position(topic))


def _fetch_request(topic: str, partition: int, offset: int) -> FetchRequest:
    data = FetchRequest.FetchPartition(
        partition=partition, fetch_offset=offset, partition_max_bytes=SLICE_BYTES
    )
    topics = [FetchRequest.FetchTopic(topic=topic, partitions=[data])]
    return FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=SLICE_BYTES, topics=topics)


def small_batch() -> bytes:
    """One record."""
    return _batch([SMALL_VALUE_BYTES])


def large_batch() -> bytes:
    """RECORDS_PER_BATCH records in exactly BATCH_BYTES, so that slices end where batches end."""
    sizes = [BATCH_BYTES // RECORDS_PER_BATCH - 16] * RECORDS_PER_BATCH
    sizes[-1] += BATCH_BYTES - len(_batch(sizes))
    batch = _batch(sizes)
    assert len(batch) == BATCH_BYTES
    return batch


def _batch(value_sizes: Sequence[int]) -> bytes:
    timestamp_ms = int(time.time() * 1000)
    records = [SimpleRecord(timestamp_ms, None, b"v" * size) for size in value_sizes]
    return bytes(MemoryRecords.with_records(*records).buffer)


def _produce_error_position(topic: str) -> int:
    def response(error_code: int) -> ProduceResponse:
        partition = ProduceResponse.PartitionProduceResponse(error_code=error_code)
        topics = ProduceResponse.TopicProduceResponse(name=topic, partition_responses=[partition])
        return ProduceResponse(responses=[topics])

    return error_position(response(0), response(-1), PRODUCE_VERSION)


def _fetch_error_position(topic: str) -> int:
    def response(error_code: int) -> FetchResponse:
        partition = FetchResponse.PartitionData(error_code=error_code, records=b"")
        topics = FetchResponse.FetchableTopicResponse(topic=topic, partitions=[partition])
        return FetchResponse(responses=[topics])

    return error_position(response(0), response(-1), FETCH_VERSION)


def error_position(good: Message, bad: Message, version: int) -> int:
    """Where in a response, behind its size, the field is in which two examples differ."""
    pairs = zip(good.encode(version), bad.encode(version), strict=True)
    differing = next(at for at, (a, b) in enumerate(pairs) if a != b)
    return response_header_size(type(good), version) + differing


def response_header_size(response: type[Message], version: int) -> int:
    assert response.API_KEY is not None
    # Header v1 ends in a byte that says "no tagged fields".
    return _CORRELATION_ID_SIZE + response_header_version(response.API_KEY, version)
