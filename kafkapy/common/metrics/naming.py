"""MBean names turned into Prometheus names, by the conventions dashboards are written for.

`jmx-exporter` follows the Prometheus JMX exporter's Kafka rules and Strimzi's dashboards,
`confluent` those of Confluent's monitoring stacks.
"""

from collections.abc import Callable
from enum import Enum

from kafkapy.common.metrics.stats import Meter, MetricSpec


class MetricsNaming(Enum):
    JMX_EXPORTER = "jmx-exporter"
    CONFLUENT = "confluent"

    def metric_name(self, spec: MetricSpec) -> str:
        """The metric's full name; histograms add `_count` and a quantile label."""
        return _CONVENTIONS[self](spec)


def _jmx_exporter(spec: MetricSpec) -> str:
    name = spec.name
    # Kafka's newer metrics, in small letters, are named by the attribute, `-total` included.
    if isinstance(spec, Meter) and not name.islower():
        name = name.removesuffix("PerSec") + "_total"
    elif name.endswith("Percent"):
        name = name.removesuffix("Percent") + "_percent"
    return _join(spec.domain, spec.type.replace("-", "_"), name)


def _confluent(spec: MetricSpec) -> str:
    name = spec.name
    if name == "RequestHandlerAvgIdlePercent":
        name += "_oneminuterate"
    return _join(spec.domain, spec.type.replace("-", ""), name)


def _join(*parts: str) -> str:
    return "_".join(part.replace(".", "_").replace("-", "_") for part in parts).lower()


_CONVENTIONS: dict[MetricsNaming, Callable[[MetricSpec], str]] = {
    MetricsNaming.JMX_EXPORTER: _jmx_exporter,
    MetricsNaming.CONFLUENT: _confluent,
}
