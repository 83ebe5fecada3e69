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
from typing import Final, TypeAlias

QUANTILES: Final = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
_SAMPLES_PER_THREAD: Final = 256

# One value for each histogram of a group.
Row: TypeAlias = tuple[float, ...]


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
    """A thread's rows: the latest, those just before them, and of all older ones count and sums.

    Only `latest` grows; when that is long enough another cell takes this one's place, so that
    whoever is reading this one misses nothing and counts nothing twice.
    """

    __slots__ = ("before", "latest", "older_count", "older_totals")

    def __init__(self, older_count: int, older_totals: Sequence[float], before: list[Row]) -> None:
        self.older_count = older_count
        self.older_totals = older_totals
        self.before = before
        self.latest: list[Row] = []

    def next(self) -> "_HistogramGroupCell":
        """The cell to go on with: the rows before the latest have become older ones."""
        columns = zip(self.older_totals, *self.before, strict=True)
        return _HistogramGroupCell(
            self.older_count + len(self.before), [sum(column) for column in columns], self.latest
        )


class HistogramGroup:
    """Histograms whose values come together, a row with one value for each.

    `update_all` is lock-free, from any thread.
    """

    __slots__ = ("_cells", "_size")

    def __init__(self, size: int) -> None:
        self._size = size
        self._cells: dict[int, _HistogramGroupCell] = {}

    def update_all(self, rows: Sequence[Row]) -> None:
        """Nothing is added up here: most rows are recorded between two looks at the metrics."""
        cell = self._cells.get(get_ident())
        if cell is None:
            cell = self._cells[get_ident()] = _HistogramGroupCell(0, [0.0] * self._size, [])
        cell.latest.extend(rows)
        if len(cell.latest) >= _SAMPLES_PER_THREAD:
            self._cells[get_ident()] = cell.next()

    def snapshot(self, index: int) -> HistogramSnapshot:
        """That of the histogram at this place in the rows."""
        count = 0
        total = 0.0
        samples: list[float] = []
        for cell in list(self._cells.values()):
            values = [row[index] for row in (*cell.before, *cell.latest)]
            count += cell.older_count + len(values)
            total += cell.older_totals[index] + sum(values)
            samples += values[-_SAMPLES_PER_THREAD:]
        return HistogramSnapshot(count, total, _quantiles(samples))


def _quantiles(values: Iterable[float]) -> tuple[tuple[float, float], ...]:
    samples = sorted(values)
    return tuple(
        (q, samples[min(int(q * len(samples)), len(samples) - 1)] if samples else 0.0)
        for q in QUANTILES
    )
