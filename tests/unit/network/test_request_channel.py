import struct
from typing import Any

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.network.memory_pool import MemoryPool
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.headers import RequestHeader
from kafkapy.common.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkapy.common.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.common.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kafkapy.common.protocol.schema import Message
from kafkapy.network.request_channel import (
    REQUEST_QUEUE_SIZE,
    RESPONSE_QUEUE_SIZE,
    CloseConnectionResponse,
    EndThrottlingResponse,
    NoOpResponse,
    Request,
    RequestChannel,
    RequestContext,
    Response,
    SendResponse,
    ShutdownRequest,
    StartThrottlingResponse,
    metric_names,
)
from kafkapy.network.request_metrics import ERRORS_PER_SEC, REQUESTS_PER_SEC, TOTAL_TIME_MS
from tests.helpers.in_memory_transport import InMemoryTransport
from tests.helpers.mock_time import MockTime

MS = 1_000_000


class FakeProcessor:
    def __init__(self, processor_id: int = 0) -> None:
        self.id = processor_id
        self.responses: list[Response] = []

    @property
    def response_queue_size(self) -> int:
        return len(self.responses)

    def enqueue_response(self, response: Response) -> None:
        self.responses.append(response)


@pytest.fixture
def metrics() -> MetricsRegistry:
    return MetricsRegistry()


@pytest.fixture
def channel(metrics: MetricsRegistry, time: MockTime) -> RequestChannel:
    return RequestChannel(2, metrics, time)


@pytest.fixture
def processor(channel: RequestChannel) -> FakeProcessor:
    fake = FakeProcessor()
    channel.add_processor(fake)
    return fake


def request(api_key: ApiKeys, version: int, body: Message | None, **options: Any) -> Request:
    header = RequestHeader(api_key=api_key, api_version=version, correlation_id=42, client_id="c")
    return Request(RequestContext(header, "connection", "127.0.0.1"), body, **options)


def metadata_request(version: int = 1, **options: Any) -> Request:
    return request(ApiKeys.METADATA, version, MetadataRequest(topics=None), **options)


def sent_bytes(response: Response) -> bytes:
    assert isinstance(response, SendResponse)
    transport = InMemoryTransport()
    assert response.send.write_to(transport)
    assert response.send.size == len(transport.outgoing)
    return bytes(transport.outgoing)


def gauge(metrics: MetricsRegistry, spec: object) -> list[object]:
    return [sample.value for sample in metrics.samples() if sample.spec is spec]


def test_requests_are_queued_up_to_the_bound(
    channel: RequestChannel, metrics: MetricsRegistry
) -> None:
    first, second, third = (metadata_request() for _ in range(3))

    assert [channel.send_request(r) for r in (first, second, third)] == [True, True, False]
    assert gauge(metrics, REQUEST_QUEUE_SIZE) == [2]
    assert channel.poll_request() is first
    assert channel.receive_request(1) is second
    assert channel.receive_request(1) is None


def test_shutdown_request_comes_after_what_is_queued(channel: RequestChannel) -> None:
    queued = metadata_request()
    channel.send_request(queued)

    channel.send_shutdown_request()

    assert channel.receive_request(1) is queued
    assert isinstance(channel.receive_request(1), ShutdownRequest)


@pytest.mark.parametrize(("version", "tags"), [(1, b""), (8, b""), (9, b"\0"), (12, b"\0")])
def test_response_is_framed_with_its_header(
    channel: RequestChannel, processor: FakeProcessor, version: int, tags: bytes
) -> None:
    message = MetadataResponse(controller_id=5)

    channel.send_response(metadata_request(version), message)

    body = struct.pack(">i", 42) + tags + message.encode(version)
    assert sent_bytes(processor.responses[0]) == struct.pack(">i", len(body)) + body


@pytest.mark.parametrize("version", [0, 3, 4])
def test_api_versions_response_has_the_oldest_header(
    channel: RequestChannel, processor: FakeProcessor, version: int
) -> None:
    message = ApiVersionsResponse()

    channel.send_response(request(ApiKeys.API_VERSIONS, version, ApiVersionsRequest()), message)

    assert sent_bytes(processor.responses[0])[4:] == struct.pack(">i", 42) + message.encode(version)


@pytest.mark.parametrize("version", [5, 32767, -1])
def test_unsupported_api_versions_is_answered_in_version_zero(
    channel: RequestChannel, processor: FakeProcessor, version: int
) -> None:
    refused = request(ApiKeys.API_VERSIONS, version, None)
    message = ApiVersionsResponse(error_code=Errors.UNSUPPORTED_VERSION.code)

    channel.send_response(refused, message)

    assert refused.is_unsupported_api_versions
    assert sent_bytes(processor.responses[0])[4:] == struct.pack(">i", 42) + message.encode(0)


def test_large_records_are_not_copied(channel: RequestChannel, processor: FakeProcessor) -> None:
    records = bytearray(b"r" * 100_000)
    data = FetchResponse.PartitionData(partition_index=0, high_watermark=1, records=records)
    topic = FetchResponse.FetchableTopicResponse(topic="t", partitions=[data])
    fetch = request(ApiKeys.FETCH, 4, FetchRequest())

    channel.send_response(fetch, FetchResponse(responses=[topic]))
    records[:5] = b"later"

    assert b"later" + b"r" * 99_995 in sent_bytes(processor.responses[0])


def test_other_outcomes_reach_the_processor(
    channel: RequestChannel, processor: FakeProcessor
) -> None:
    answered = metadata_request()

    channel.start_throttling(answered)
    channel.send_no_op_response(answered)
    channel.close_connection(answered)
    channel.end_throttling(answered)

    assert processor.responses == [
        StartThrottlingResponse(answered),
        NoOpResponse(answered),
        CloseConnectionResponse(answered),
        EndThrottlingResponse(answered),
    ]


def test_response_for_a_processor_that_is_gone_is_dropped(
    channel: RequestChannel, processor: FakeProcessor, metrics: MetricsRegistry
) -> None:
    assert gauge(metrics, RESPONSE_QUEUE_SIZE) == [0]
    channel.remove_processor(processor.id)

    channel.send_no_op_response(metadata_request())

    assert processor.responses == []
    assert gauge(metrics, RESPONSE_QUEUE_SIZE) == []


def test_two_processors_of_one_id_are_refused(
    channel: RequestChannel, processor: FakeProcessor
) -> None:
    with pytest.raises(ValueError, match="0"):
        channel.add_processor(FakeProcessor(processor.id))


def test_six_times_add_up_to_the_total() -> None:
    timed = metadata_request(start_time_ns=100 * MS, size_in_bytes=30)
    timed.request_dequeue_time_ns = 101 * MS
    timed.api_local_complete_time_ns = 103 * MS
    timed.response_complete_time_ns = 107 * MS
    timed.response_dequeue_time_ns = 115 * MS
    timed.api_throttle_time_ms = 9

    times = timed.times(131 * MS)

    assert times == (30, 1, 2, 4, 9, 8, 16, 31)


def test_response_before_the_handler_returns_leaves_no_remote_time() -> None:
    timed = metadata_request(start_time_ns=100 * MS)
    timed.request_dequeue_time_ns = 101 * MS
    timed.response_complete_time_ns = 104 * MS
    timed.response_dequeue_time_ns = 104 * MS

    for local_complete_ns in (0, 106 * MS):
        timed.api_local_complete_time_ns = local_complete_ns
        _, _, local_ms, remote_ms, *_ = timed.times(110 * MS)
        assert (local_ms, remote_ms) == (3, 0)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (FetchRequest(), "FetchConsumer"),
        (FetchRequest(replica_id=3), "FetchFollower"),
        (
            FetchRequest(replica_state=FetchRequest.ReplicaState(replica_id=3)),
            "FetchFollower",
        ),
    ],
)
def test_fetches_are_also_counted_by_kind(body: FetchRequest, kind: str) -> None:
    assert metric_names(request(ApiKeys.FETCH, 12, body)) == ("Fetch", kind)


def test_requests_and_errors_are_counted_by_api(
    channel: RequestChannel, metrics: MetricsRegistry
) -> None:
    times = metadata_request(start_time_ns=MS).times(3 * MS)

    channel.update_request_metrics({("Metadata", 1): [times, times]})
    channel.send_response(
        metadata_request(),
        MetadataResponse(
            topics=[
                MetadataResponse.MetadataResponseTopic(name="bad", error_code=17),
                MetadataResponse.MetadataResponseTopic(name="good"),
            ]
        ),
    )

    requests = metrics.meter(REQUESTS_PER_SEC, request="Metadata", version=1)
    assert requests.count == 2
    (total,) = [sample.value for sample in metrics.samples() if sample.spec is TOTAL_TIME_MS]
    assert (total.count, total.total) == (2, 4)
    errors = metrics.meter(ERRORS_PER_SEC, request="Metadata", error="INVALID_TOPIC_EXCEPTION")
    assert errors.count == 1


def test_memory_is_released_once() -> None:
    pool = MemoryPool(100)
    pool.try_allocate(60, lambda: None)
    held = metadata_request(size_in_bytes=60, memory_pool=pool)

    held.release_memory()
    held.release_memory()

    assert pool.available_bytes == 100
