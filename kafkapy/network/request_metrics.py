"""What is measured about requests, by API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from kafkapy.common.errors import Errors
from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.metrics.stats import Histogram, Meter, MeterInstrument

_LABELS = ("request",)

REQUESTS_PER_SEC = Meter(
    "kafka.network:type=RequestMetrics,name=RequestsPerSec",
    "Requests answered.",
    labels=("request", "version"),
)
ERRORS_PER_SEC = Meter(
    "kafka.network:type=RequestMetrics,name=ErrorsPerSec",
    "Error codes in responses, NONE included.",
    labels=("request", "error"),
)
REQUEST_QUEUE_TIME_MS = Histogram(
    "kafka.network:type=RequestMetrics,name=RequestQueueTimeMs",
    "Time a request waits for a handler.",
    labels=_LABELS,
)
LOCAL_TIME_MS = Histogram(
    "kafka.network:type=RequestMetrics,name=LocalTimeMs",
    "Time a handler works on a request.",
    labels=_LABELS,
)
REMOTE_TIME_MS = Histogram(
    "kafka.network:type=RequestMetrics,name=RemoteTimeMs",
    "Time a request waits for others: replicas, more data, the controller.",
    labels=_LABELS,
)
THROTTLE_TIME_MS = Histogram(
    "kafka.network:type=RequestMetrics,name=ThrottleTimeMs",
    "Time the client is told to hold back.",
    labels=_LABELS,
)
RESPONSE_QUEUE_TIME_MS = Histogram(
    "kafka.network:type=RequestMetrics,name=ResponseQueueTimeMs",
    "Time a response waits for its network thread.",
    labels=_LABELS,
)
RESPONSE_SEND_TIME_MS = Histogram(
    "kafka.network:type=RequestMetrics,name=ResponseSendTimeMs",
    "Time to send a response.",
    labels=_LABELS,
)
TOTAL_TIME_MS = Histogram(
    "kafka.network:type=RequestMetrics,name=TotalTimeMs",
    "Time from a request's arrival until its response is sent.",
    labels=_LABELS,
)
REQUEST_BYTES = Histogram(
    "kafka.network:type=RequestMetrics,name=RequestBytes",
    "Size of requests.",
    labels=_LABELS,
)

CONSUMER_FETCH = "FetchConsumer"
FOLLOWER_FETCH = "FetchFollower"


# What is recorded about one answered request: its bytes, then times in milliseconds.
RequestTimes: TypeAlias = tuple[int, float, float, float, float, float, float, float]
# In the order of RequestTimes.
_HISTOGRAMS = (
    REQUEST_BYTES,
    REQUEST_QUEUE_TIME_MS,
    LOCAL_TIME_MS,
    REMOTE_TIME_MS,
    THROTTLE_TIME_MS,
    RESPONSE_QUEUE_TIME_MS,
    RESPONSE_SEND_TIME_MS,
    TOTAL_TIME_MS,
)


class RequestMetrics:
    """The metrics of one API, or of one kind of fetch. Thread-safe.

    Ports: kafka.network.RequestMetrics
    """

    def __init__(self, name: str, registry: MetricsRegistry) -> None:
        # constant after construction
        self._name = name
        self._registry = registry
        self._times = registry.histogram_group(_HISTOGRAMS, request=name)
        # The registry makes each meter once, so two threads that miss here get the same one.
        self._requests: dict[int, MeterInstrument] = {}
        self._errors: dict[int, MeterInstrument] = {}

    def update(self, version: int, times: Sequence[RequestTimes]) -> None:
        """Record answered requests of one version."""
        requests = self._requests.get(version)
        if requests is None:
            requests = self._requests[version] = self._registry.meter(
                REQUESTS_PER_SEC, request=self._name, version=version
            )
        requests.mark(len(times))
        self._times.update_all(times)

    def mark_error(self, code: int) -> None:
        errors = self._errors.get(code)
        if errors is None:
            errors = self._errors[code] = self._registry.meter(
                ERRORS_PER_SEC, request=self._name, error=Errors.for_code(code).name
            )
        errors.mark()


class RequestMetricsByName(dict[str, RequestMetrics]):
    """The request metrics of one broker, made at first use. Thread-safe.

    Two threads may make the same entry: both record to the same instruments.

    Ports: kafka.network.RequestChannel.Metrics
    """

    def __init__(self, registry: MetricsRegistry) -> None:
        super().__init__()
        self._registry = registry

    def __missing__(self, name: str) -> RequestMetrics:
        metrics = self[name] = RequestMetrics(name, self._registry)
        return metrics
