"""What can be measured: declarations, and the instruments made from them.

A declaration (`Gauge`, `Meter`, `Histogram`) is a constant beside the code that owns the metric,
named by its MBean as Kafka's documentation names it. A `MetricsRegistry` turns it into an
instrument. Instruments are written on the hot path, so each thread writes to a cell of its own and
nobody takes a lock: reading adds the cells up.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from threading import get_ident
from typing import Final

QUANTILES: Final = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
_SAMPLES_PER_THREAD: Final = 256


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """A metric's MBean name (`domain:type=T,name=N`), meaning and label names."""

    mbean: str
    help: str
    labels: tuple[str, ...] = ()

    @property
    def domain(self) -> str:
        return self.mbean.partition(":")[0]

    @property
    def type(self) -> str:
        return self._property("type")

    @property
    def name(self) -> str:
        return self._property("name")

    def _property(self, key: str) -> str:
        pairs = dict(pair.split("=", 1) for pair in self.mbean.partition(":")[2].split(","))
        return pairs[key]


class Gauge(MetricSpec):
    """A value that is read when somebody asks."""

    __slots__ = ()


class Meter(MetricSpec):
    """Events counted since the broker started.

    Ports: com.yammer.metrics.core.Meter
    """

    __slots__ = ()


class Histogram(MetricSpec):
    """The distribution of recent values, with the count and sum of all of them.

    Ports: com.yammer.metrics.core.Histogram
    """

    __slots__ = ()


class MeterInstrument:
    """Counts events. `mark` is lock-free and may be called from any thread."""

    __slots__ = ("_cells",)

    def __init__(self) -> None:
        # One cell a thread; only its own thread writes it, so no update is lost.
        self._cells: dict[int, int] = {}

    def mark(self, n: int = 1) -> None:
        ident = get_ident()
        cells = self._cells
        cells[ident] = cells.get(ident, 0) + n

    @property
    def count(self) -> int:
        return sum(list(self._cells.values()))


class _HistogramCell:
    __slots__ = ("count", "samples", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self.samples: deque[float] = deque(maxlen=_SAMPLES_PER_THREAD)


@dataclass(frozen=True, slots=True)
class HistogramSnapshot:
    count: int
    total: float
    quantiles: tuple[tuple[float, float], ...]

    def quantile(self, q: float) -> float:
        return dict(self.quantiles)[q]


class HistogramInstrument:
    """Remembers each thread's latest values. `update` is lock-free, from any thread."""

    __slots__ = ("_cells",)

    def __init__(self) -> None:
        self._cells: dict[int, _HistogramCell] = {}

    def update(self, value: float) -> None:
        cell = self._cell()
        cell.count += 1
        cell.total += value
        cell.samples.append(value)

    def update_all(self, values: Sequence[float]) -> None:
        """Many values at once, for little more than the price of one."""
        cell = self._cell()
        cell.count += len(values)
        cell.total += sum(values)
        cell.samples.extend(values)

    def _cell(self) -> _HistogramCell:
        cell = self._cells.get(get_ident())
        if cell is None:
            cell = self._cells[get_ident()] = _HistogramCell()
        return cell

    def snapshot(self) -> HistogramSnapshot:
        cells = list(self._cells.values())
        samples = sorted(value for cell in cells for value in tuple(cell.samples))
        quantiles = tuple(
            (q, samples[min(int(q * len(samples)), len(samples) - 1)] if samples else 0.0)
            for q in QUANTILES
        )
        count = sum(cell.count for cell in cells)
        return HistogramSnapshot(count, sum(cell.total for cell in cells), quantiles)
