import threading
from collections.abc import Callable, Iterator

import pytest

from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.network.memory_pool import MemoryPool
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.headers import RequestHeader
from kafkapy.common.protocol.messages.metadata import MetadataRequest
from kafkapy.network.request_channel import (
    CloseConnectionResponse,
    NoOpResponse,
    Request,
    RequestChannel,
    RequestContext,
    Response,
)
from kafkapy.server.request_handler import (
    REQUEST_HANDLER_AVG_IDLE_PERCENT,
    KafkaRequestHandlerPool,
)
from kafkapy.utils.time import SystemTime
from tests.helpers.waiting import wait_until


class Responses(list[Response]):
    """Stands for the network thread."""

    id = 0
    response_queue_size = 0

    def enqueue_response(self, response: Response) -> None:
        self.append(response)


class Apis:
    """Does with each request what the test says."""

    def __init__(self, channel: RequestChannel) -> None:
        self.action: Callable[[Request], None] = channel.send_no_op_response

    def handle(self, request: Request) -> None:
        self.action(request)


@pytest.fixture
def metrics() -> MetricsRegistry:
    return MetricsRegistry()


@pytest.fixture
def channel(metrics: MetricsRegistry) -> RequestChannel:
    return RequestChannel(100, metrics, SystemTime())


@pytest.fixture
def responses(channel: RequestChannel) -> Responses:
    made = Responses()
    channel.add_processor(made)
    return made


@pytest.fixture
def apis(channel: RequestChannel) -> Apis:
    return Apis(channel)


@pytest.fixture
def pool(
    channel: RequestChannel, apis: Apis, metrics: MetricsRegistry
) -> Iterator[KafkaRequestHandlerPool]:
    made = KafkaRequestHandlerPool(
        0, channel, apis, time=SystemTime(), num_threads=3, metrics=metrics
    )
    yield made
    made.shutdown()


def request(memory_pool: MemoryPool | None = None) -> Request:
    header = RequestHeader(api_key=ApiKeys.METADATA, api_version=1, correlation_id=1, client_id="c")
    context = RequestContext(header, "connection", "127.0.0.1")
    return Request(context, MetadataRequest(topics=None), size_in_bytes=10, memory_pool=memory_pool)


def submit(channel: RequestChannel, *requests: Request) -> None:
    for one in requests:
        assert channel.send_request(one)
    channel.wake_handler()


def test_every_request_is_handled_once(
    channel: RequestChannel, pool: KafkaRequestHandlerPool, responses: Responses
) -> None:
    requests = [request() for _ in range(50)]

    submit(channel, *requests)

    wait_until(lambda: len(responses) == 50)
    assert {id(response.request) for response in responses} == {id(r) for r in requests}
    assert all(r.request_dequeue_time_ns > 0 for r in requests)


def test_requests_are_handled_side_by_side(
    channel: RequestChannel, pool: KafkaRequestHandlerPool, apis: Apis, responses: Responses
) -> None:
    together = threading.Barrier(3, timeout=30)

    def meet(handled: Request) -> None:
        together.wait()
        channel.send_no_op_response(handled)

    apis.action = meet
    submit(channel, *(request() for _ in range(3)))

    wait_until(lambda: len(responses) == 3)


def test_failing_handler_costs_the_connection_not_the_thread(
    channel: RequestChannel,
    pool: KafkaRequestHandlerPool,
    apis: Apis,
    responses: Responses,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(_: Request) -> None:
        raise RuntimeError("on purpose")

    apis.action = fail
    submit(channel, *(request() for _ in range(5)))
    wait_until(lambda: len(responses) == 5)
    assert all(isinstance(response, CloseConnectionResponse) for response in responses)
    assert sum("on purpose" in (record.exc_text or "") for record in caplog.records) == 5

    apis.action = channel.send_no_op_response
    submit(channel, request())

    wait_until(lambda: isinstance(responses[-1], NoOpResponse))
    assert pool.threads_alive


def test_memory_is_released_when_the_request_is_handled(
    channel: RequestChannel, pool: KafkaRequestHandlerPool, responses: Responses
) -> None:
    memory_pool = MemoryPool(100)
    memory_pool.try_allocate(10, lambda: None)

    submit(channel, request(memory_pool))

    wait_until(lambda: memory_pool.available_bytes == 100)


def test_time_until_the_handler_returns_is_local(
    channel: RequestChannel, pool: KafkaRequestHandlerPool, apis: Apis, responses: Responses
) -> None:
    delayed = request()
    apis.action = lambda _: None

    submit(channel, delayed)

    wait_until(lambda: delayed.api_local_complete_time_ns > 0)
    assert delayed.api_local_complete_time_ns >= delayed.request_dequeue_time_ns


@pytest.mark.parametrize("num_threads", [1, 6])
def test_resized_pool_goes_on_handling(
    channel: RequestChannel,
    pool: KafkaRequestHandlerPool,
    responses: Responses,
    num_threads: int,
) -> None:
    pool.resize(num_threads)
    submit(channel, *(request() for _ in range(20)))

    wait_until(lambda: len(responses) == 20)
    assert pool.num_threads == num_threads
    assert pool.threads_alive


def test_pool_that_could_not_grow_goes_on_with_the_threads_it_has(
    channel: RequestChannel,
    apis: Apis,
    responses: Responses,
    metrics: MetricsRegistry,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool = KafkaRequestHandlerPool(
        9, channel, apis, time=SystemTime(), num_threads=2, metrics=metrics
    )

    def cannot_start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched, pytest.raises(RuntimeError, match="new thread"):
        patched.setattr(threading.Thread, "start", cannot_start)
        pool.resize(3)
    submit(channel, *(request() for _ in range(20)))
    wait_until(lambda: len(responses) == 20)
    assert pool.threads_alive

    pool.shutdown()

    assert _handler_threads(9) == 0


def test_shutdown_handles_what_is_queued_and_ends_the_threads(
    channel: RequestChannel, apis: Apis, responses: Responses, metrics: MetricsRegistry
) -> None:
    pool = KafkaRequestHandlerPool(
        7, channel, apis, time=SystemTime(), num_threads=2, metrics=metrics
    )
    assert _handler_threads(7) == 2
    submit(channel, *(request() for _ in range(20)))

    pool.shutdown()

    assert len(responses) == 20
    assert _handler_threads(7) == 0
    assert _idle_ratios(metrics) == []


@pytest.mark.parametrize("num_threads", [1, 2, 3])
def test_shutdown_right_after_shrinking_ends_all_threads(
    channel: RequestChannel, apis: Apis, metrics: MetricsRegistry, num_threads: int
) -> None:
    pool = KafkaRequestHandlerPool(
        8, channel, apis, time=SystemTime(), num_threads=4, metrics=metrics
    )
    pool.resize(num_threads)

    # Those that were stopped still wait, and may take what tells the others to end.
    pool.shutdown()

    assert _handler_threads(8) == 0


def test_idle_share_is_measured(pool: KafkaRequestHandlerPool, metrics: MetricsRegistry) -> None:
    (ratio,) = _idle_ratios(metrics)

    assert isinstance(ratio, float)
    assert 0 <= ratio <= 1


def _handler_threads(broker_id: int) -> int:
    prefix = f"data-plane-kafka-request-handler-{broker_id}-"
    return sum(thread.name.startswith(prefix) for thread in threading.enumerate())


def _idle_ratios(metrics: MetricsRegistry) -> list[object]:
    return [s.value for s in metrics.samples() if s.spec is REQUEST_HANDLER_AVG_IDLE_PERCENT]
