import threading

import pytest

from kafkapy.common.metrics.naming import MetricsNaming
from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.metrics.stats import Gauge, Histogram, HistogramSnapshot, Meter, MetricSpec

SIZE = Gauge("kafka.log:type=Log,name=Size", "Bytes.", ("topic", "partition"))
MESSAGES_IN = Meter("kafka.server:type=BrokerTopicMetrics,name=MessagesInPerSec", "In.", ("topic",))
TOTAL_TIME = Histogram("kafka.network:type=RequestMetrics,name=TotalTimeMs", "Time.", ("request",))
BYTES = Histogram("kafka.network:type=RequestMetrics,name=RequestBytes", "Size.", ("request",))


def value_of(registry: MetricsRegistry, spec: MetricSpec) -> float | HistogramSnapshot:
    (sample,) = [sample for sample in registry.samples() if sample.spec == spec]
    return sample.value


def test_a_gauge_is_read_when_it_is_asked_for() -> None:
    registry = MetricsRegistry()
    size = 1
    registry.gauge(SIZE, lambda: size, topic="t", partition=0)

    size = 7

    assert value_of(registry, SIZE) == 7


def test_the_same_labels_give_the_same_meter() -> None:
    registry = MetricsRegistry()

    registry.meter(MESSAGES_IN, topic="a").mark(2)
    registry.meter(MESSAGES_IN, topic="a").mark()
    registry.meter(MESSAGES_IN, topic="b").mark(10)

    assert registry.meter(MESSAGES_IN, topic="a").count == 3


def test_no_mark_of_any_thread_is_lost() -> None:
    meter = MetricsRegistry().meter(MESSAGES_IN)
    threads = [
        threading.Thread(target=lambda: [meter.mark() for _ in range(5000)]) for _ in range(8)
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert meter.count == 40_000


def test_a_histogram_has_quantiles_count_and_sum() -> None:
    histogram = MetricsRegistry().histogram(TOTAL_TIME, request="Produce")

    for value in range(1, 101):
        histogram.update(value)

    snapshot = histogram.snapshot()
    assert (snapshot.count, snapshot.total) == (100, 5050)
    assert snapshot.quantile(0.5) == 51
    assert snapshot.quantile(0.999) == 100


@pytest.mark.parametrize("count", [0, 1, 255, 256, 257, 1000])
def test_histograms_of_a_group_are_as_if_each_were_alone(count: int) -> None:
    registry = MetricsRegistry()
    group = registry.histogram_group((TOTAL_TIME, BYTES), request="Produce")
    alone = MetricsRegistry()
    rows = [(number % 7, 1000 - number) for number in range(count)]

    for start in range(0, count, 3):
        group.update_all(rows[start : start + 3])
    for time, size in rows:
        alone.histogram(TOTAL_TIME, request="Produce").update(time)
        alone.histogram(BYTES, request="Produce").update(size)

    assert registry.histogram_group((TOTAL_TIME, BYTES), request="Produce") is group
    if count:
        assert set(registry.samples()) == set(alone.samples())
    else:
        assert group.snapshot(1) == alone.histogram(BYTES).snapshot()


def test_no_row_of_any_thread_is_lost_or_counted_twice() -> None:
    group = MetricsRegistry().histogram_group((TOTAL_TIME,))
    threads = [
        threading.Thread(target=lambda: [group.update_all([(1,), (1,)]) for _ in range(2000)])
        for _ in range(4)
    ]

    for thread in threads:
        thread.start()
    seen = [0]
    while any(thread.is_alive() for thread in threads):
        snapshot = group.snapshot(0)
        assert snapshot.count == snapshot.total >= seen[-1]
        seen.append(snapshot.count)
    for thread in threads:
        thread.join()

    assert group.snapshot(0).count == 16_000


def test_an_unused_histogram_is_zero() -> None:
    assert MetricsRegistry().histogram(TOTAL_TIME).snapshot().quantile(0.99) == 0


def test_a_removed_metric_is_gone() -> None:
    registry = MetricsRegistry()
    registry.gauge(SIZE, lambda: 1, topic="t", partition=0)

    registry.remove(SIZE, topic="t", partition=0)

    assert list(registry.samples()) == []


def test_a_gauge_that_fails_does_not_hide_the_others(caplog: pytest.LogCaptureFixture) -> None:
    registry = MetricsRegistry()
    registry.gauge(SIZE, lambda: 1 // 0, topic="bad", partition=0)
    registry.gauge(SIZE, lambda: 5, topic="good", partition=0)

    samples = list(registry.samples())

    assert [sample.value for sample in samples] == [5]
    assert "kafka.log:type=Log,name=Size" in caplog.text


def test_a_label_that_was_not_declared_is_refused() -> None:
    with pytest.raises(ValueError, match="colour"):
        MetricsRegistry().meter(MESSAGES_IN, colour="red")


@pytest.mark.parametrize(
    ("spec", "jmx_exporter", "confluent"),
    [
        (
            MESSAGES_IN,
            "kafka_server_brokertopicmetrics_messagesin_total",
            "kafka_server_brokertopicmetrics_messagesinpersec",
        ),
        (SIZE, "kafka_log_log_size", "kafka_log_log_size"),
        (
            TOTAL_TIME,
            "kafka_network_requestmetrics_totaltimems",
            "kafka_network_requestmetrics_totaltimems",
        ),
        (
            Gauge("kafka.network:type=SocketServer,name=NetworkProcessorAvgIdlePercent", ""),
            "kafka_network_socketserver_networkprocessoravgidle_percent",
            "kafka_network_socketserver_networkprocessoravgidlepercent",
        ),
        (
            Gauge(
                "kafka.server:type=KafkaRequestHandlerPool,name=RequestHandlerAvgIdlePercent", ""
            ),
            "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
            "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_oneminuterate",
        ),
        (
            Gauge("kafka.server:type=socket-server-metrics,name=connection-count", ""),
            "kafka_server_socket_server_metrics_connection_count",
            "kafka_server_socketservermetrics_connection_count",
        ),
        (
            Meter("kafka.server:type=socket-server-metrics,name=connection-close-total", ""),
            "kafka_server_socket_server_metrics_connection_close_total",
            "kafka_server_socketservermetrics_connection_close_total",
        ),
    ],
)
def test_names_follow_the_conventions_of_dashboards(
    spec: MetricSpec, jmx_exporter: str, confluent: str
) -> None:
    assert MetricsNaming.JMX_EXPORTER.metric_name(spec) == jmx_exporter
    assert MetricsNaming.CONFLUENT.metric_name(spec) == confluent
