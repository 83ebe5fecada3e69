"""The metrics of one broker."""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from kafkapy.common.metrics.stats import (
    Gauge,
    Histogram,
    HistogramGroup,
    HistogramInstrument,
    HistogramSnapshot,
    Meter,
    MeterInstrument,
    MetricSpec,
)

log = logging.getLogger(__name__)

LabelValues = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """One metric as it is now."""

    spec: MetricSpec
    labels: LabelValues
    value: float | HistogramSnapshot


class MetricsRegistry:
    """Instruments by declaration and labels. Thread-safe; the lock is not taken to record.

    Ports: com.yammer.metrics.core.MetricsRegistry
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # guarded by self._lock
        self._gauges: dict[tuple[MetricSpec, LabelValues], Callable[[], float]] = {}
        self._meters: dict[tuple[MetricSpec, LabelValues], MeterInstrument] = {}
        self._histograms: dict[tuple[MetricSpec, LabelValues], HistogramInstrument] = {}
        self._groups: dict[tuple[tuple[Histogram, ...], LabelValues], HistogramGroup] = {}

    def gauge(self, spec: Gauge, function: Callable[[], float], **labels: object) -> None:
        """`function` is called at each scrape; registering again replaces it."""
        with self._lock:
            self._gauges[spec, _values(spec, labels)] = function

    def meter(self, spec: Meter, **labels: object) -> MeterInstrument:
        """The one meter for these labels, made at first use."""
        key = spec, _values(spec, labels)
        with self._lock:
            found = self._meters.get(key)
            if found is None:
                found = self._meters[key] = MeterInstrument()
            return found

    def histogram(self, spec: Histogram, **labels: object) -> HistogramInstrument:
        """The one histogram for these labels, made at first use."""
        key = spec, _values(spec, labels)
        with self._lock:
            found = self._histograms.get(key)
            if found is None:
                found = self._histograms[key] = HistogramInstrument()
            return found

    def histogram_group(self, specs: Sequence[Histogram], **labels: object) -> HistogramGroup:
        """The one group of these histograms, which have the same labels, made at first use."""
        key = tuple(specs), _values(specs[0], labels)
        with self._lock:
            found = self._groups.get(key)
            if found is None:
                found = self._groups[key] = HistogramGroup(len(specs))
            return found

    def remove(self, spec: MetricSpec, **labels: object) -> None:
        key = spec, _values(spec, labels)
        with self._lock:
            self._gauges.pop(key, None)
            self._meters.pop(key, None)
            self._histograms.pop(key, None)

    def samples(self) -> Iterator[Sample]:
        """Every metric's value. A gauge whose function fails is logged and left out."""
        with self._lock:
            gauges = list(self._gauges.items())
            meters = list(self._meters.items())
            histograms = list(self._histograms.items())
            groups = list(self._groups.items())
        for (spec, labels), function in gauges:
            try:
                value = function()
            except Exception:
                log.exception("The gauge %s %s could not be read", spec.mbean, dict(labels))
                continue
            yield Sample(spec, labels, value)
        for (spec, labels), meter in meters:
            yield Sample(spec, labels, meter.count)
        for (spec, labels), histogram in histograms:
            yield Sample(spec, labels, histogram.snapshot())
        for (specs, labels), group in groups:
            for index, spec in enumerate(specs):
                yield Sample(spec, labels, group.snapshot(index))


def _values(spec: MetricSpec, labels: dict[str, object]) -> LabelValues:
    """In the declaration's order; a label may be left out (all topics), none may be invented."""
    unknown = labels.keys() - set(spec.labels)
    if unknown:
        raise ValueError(f"{spec.mbean} has no label {sorted(unknown)}")
    return tuple((name, str(labels[name])) for name in spec.labels if name in labels)
