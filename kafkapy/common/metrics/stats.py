"""What can be measured: declarations, and the instruments made from them.

A declaration (`Gauge`, `Meter`, `Histogram`) is a constant beside the code that owns the metric,
named by its MBean as Kafka's documentation names it. A `MetricsRegistry` turns it into an
instrument. Instruments are written on the hot path, so each thread writes to a cell of its own and
nobody takes a lock: reading adds the cells up.
"""

from collections import deque
from collections.abc import Iterable, Sequence
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


class _MeterCell:
    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class MeterInstrument:
    """Counts events. `mark` is lock-free and may be called from any thread."""

    __slots__ = ("_cells",)

    def __init__(self) -> None:
        # One cell a thread; only its own thread writes it, so no update is lost.
        self._cells: dict[int, _MeterCell] = {}

    def mark(self, n: int = 1) -> None:
        cell = self._cells.get(get_ident())
        if cell is None:
            cell = self._cells[get_ident()] = _MeterCell()
        cell.count += n

    @property
    def count(self) -> int:
        return sum(cell.count for cell in list(self._cells.values()))


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
        cell = self._cells.get(get_ident())
        if cell is None:
            cell = self._cells[get_ident()] = _HistogramCell()
        cell.count += 1
        cell.total += value
        cell.samples.append(value)

    def snapshot(self) -> HistogramSnapshot:
        cells = list(self._cells.values())
        return HistogramSnapshot(
            sum(cell.count for cell in cells),
            sum(cell.total for cell in cells),
            _quantiles(value for cell in cells for value in tuple(cell.samples)),
        )


class _HistogramGroupCell:
    __slots__ = ("count", "rows", "totals")

    def __init__(self, size: int) -> None:
        self.count = 0
        self.totals = [0.0] * size
        self.rows: deque[tuple[float, ...]] = deque(maxlen=_SAMPLES_PER_THREAD)


class HistogramGroup:
    """Histograms whose values come together, a row with one value for each.

    `update_all` is lock-free, from any thread.
    """

    __slots__ = ("_cells", "_size")

    def __init__(self, size: int) -> None:
        self._size = size
        self._cells: dict[int, _HistogramGroupCell] = {}

    def update_all(self, rows: Sequence[tuple[float, ...]]) -> None:
        """Many rows at once, for little more than the price of one."""
        cell = self._cells.get(get_ident())
        if cell is None:
            cell = self._cells[get_ident()] = _HistogramGroupCell(self._size)
        cell.count += len(rows)
        cell.rows.extend(rows)
        totals = cell.totals
        for index, values in enumerate(zip(*rows, strict=True)):
            totals[index] += sum(values)

    def snapshot(self, index: int) -> HistogramSnapshot:
        """That of the histogram at this place in the rows."""
        cells = list(self._cells.values())
        return HistogramSnapshot(
            sum(cell.count for cell in cells),
            sum(cell.totals[index] for cell in cells),
            _quantiles(row[index] for cell in cells for row in tuple(cell.rows)),
        )


def _quantiles(values: Iterable[float]) -> tuple[tuple[float, float], ...]:
    samples = sorted(values)
    return tuple(
        (q, samples[min(int(q * len(samples)), len(samples) - 1)] if samples else 0.0)
        for q in QUANTILES
    )
