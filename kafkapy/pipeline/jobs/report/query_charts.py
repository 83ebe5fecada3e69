"""The three charts of a query: throughput, lag and the time of its batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from kafkapy.pipeline.jobs.progress.figures import duration, grouped, short
from kafkapy.pipeline.jobs.progress.query_progress import QueryProgress
from kafkapy.pipeline.jobs.report.query_history import QueryHistory
from kafkapy.pipeline.jobs.report.scale import duration_ticks, nice_ticks, time_of
from kafkapy.pipeline.jobs.report.theme import REST_CLASS, SERIES_CLASSES
from kafkapy.pipeline.jobs.report.time_chart import RESTART_CLASS, ChartFrame, TimeChart
from kafkapy.pipeline.jobs.report.timeline import Timeline, Values

# By Spark's names, as a batch goes through them; what else it names, or does not, is the rest.
_PHASES = ("latestOffset", "queryPlanning", "walCommit", "addBatch", "commitOffsets")
_PHASE_CLASSES = dict(zip(_PHASES, ("s5", "s4", "s3", "s1", "s2"), strict=True))
_PARTITIONS_SHOWN = len(SERIES_CLASSES) - 1


class QueryCharts:
    """Charts over the same time, so that they can be read one below the other."""

    def __init__(self, history: QueryHistory, *, has_hover: bool = True) -> None:
        # constant after construction
        self._history = history
        self._has_hover = has_hover
        self._timeline = Timeline(history)

    def all(self) -> list[TimeChart]:
        return [self.throughput(), self.lag(), self.batch_time()]

    def throughput(self) -> TimeChart:
        timeline = self._timeline
        rows_in = timeline.rate(lambda batch: batch.rows_in)
        rows_out = timeline.rate(lambda batch: batch.rows_out)
        chart = self._chart(
            "Throughput, rows a second", nice_ticks(_highest(rows_in, rows_out)), short
        )
        self._add_restarts(chart)
        self._add_series(chart, "in", rows_in, "s1", has_area=True)
        if any(value is not None for value in rows_out):
            self._add_series(chart, "out", rows_out, "s2 thin")
        for bucket, (came, went) in enumerate(zip(rows_in, rows_out, strict=True)):
            if came is not None:
                out = "" if went is None else f"\nout {grouped(went)} rows/s"
                self._add_bucket_hover(chart, bucket, f"in {grouped(came)} rows/s{out}")
        return chart

    def lag(self) -> TimeChart:
        series = self._timeline.lags(_PARTITIONS_SHOWN)
        highest = _highest(*(one.values for one in series))
        chart = self._chart(
            "Lag, records behind the end", nice_ticks(highest, is_whole=True), short
        )
        self._add_restarts(chart)
        for one, css_class in zip(series, SERIES_CLASSES, strict=False):
            self._add_series(chart, one.name, one.values, REST_CLASS if one.is_rest else css_class)
        for bucket in range(self._timeline.size):
            lines = [
                f"{one.name} {grouped(value)}"
                for one in series
                if (value := one.values[bucket]) is not None
            ]
            if lines:
                self._add_bucket_hover(chart, bucket, "\n".join(lines))
        return chart

    def batch_time(self) -> TimeChart:
        batches = self._timeline.slowest_batches()
        highest_ms = max((batch.duration_ms for batch in batches), default=0)
        chart = self._chart("Time of a batch, by its parts", duration_ticks(highest_ms), duration)
        self._add_restarts(chart)
        seen = {phase for batch in batches for phase, _ in _phases(batch)}
        for phase in (*_PHASES, "other"):
            if phase in seen:
                chart.add_legend(phase, _phase_class(phase))
        spans = self._bar_spans(batches)
        for batch, (start_ms, end_ms) in zip(batches, spans, strict=True):
            parts = [(float(ms), _phase_class(phase)) for phase, ms in _phases(batch)]
            chart.add_stack(start_ms, end_ms, parts)
        for batch, span in zip(batches, spans, strict=True):
            self._add_hover(chart, span, _batch_note(batch))
        return chart

    def _bar_spans(self, batches: Sequence[QueryProgress]) -> list[tuple[float, float]]:
        """A bar is as wide as its batch was long, but no narrower than a bucket, and leaves the
        room of the one before it alone.
        """
        spans: list[tuple[float, float]] = []
        before = float(self._timeline.start_ms)
        for batch in batches:
            end = float(max(batch.end_ms, before + self._timeline.step_ms))
            end = min(end, float(self._timeline.end_ms))
            start = max(before, min(batch.timestamp_ms, end - self._timeline.step_ms))
            spans.append((start, end))
            before = end
        return spans

    def _chart(
        self, title: str, y_ticks: list[float], y_label: Callable[[float], str]
    ) -> TimeChart:
        timeline = self._timeline
        return TimeChart(ChartFrame(title, timeline.start_ms, timeline.end_ms, y_ticks, y_label))

    def _add_series(
        self,
        chart: TimeChart,
        label: str,
        values: Values,
        css_class: str,
        *,
        has_area: bool = False,
    ) -> None:
        chart.add_legend(label, css_class)
        chart.add_line(values, css_class, has_area=has_area)

    def _add_restarts(self, chart: TimeChart) -> None:
        runs = self._history.runs
        for before, after in pairwise(runs):
            down_ms = max(0, after.start_ms - before.end_ms)
            note = (
                f"{clock(after.start_ms)} started again, {duration(down_ms)} after the run before "
                f"{before.ending}"
            )
            chart.add_band(before.end_ms, after.start_ms, note)
        if len(runs) > 1:
            chart.add_legend("restart", RESTART_CLASS)

    def _add_bucket_hover(self, chart: TimeChart, bucket: int, note: str) -> None:
        start_ms = self._timeline.bucket_start_ms(bucket)
        span = start_ms, start_ms + self._timeline.step_ms
        self._add_hover(chart, span, f"{clock(start_ms)}\n{note}")

    def _add_hover(self, chart: TimeChart, span: tuple[float, float], note: str) -> None:
        if self._has_hover:
            chart.add_hover(*span, note)


def clock(timestamp_ms: int) -> str:
    return f"{time_of(timestamp_ms):%Y-%m-%d %H:%M:%S} UTC"


def _highest(*series: Values) -> float:
    return max((value for values in series for value in values if value is not None), default=0.0)


def _phases(batch: QueryProgress) -> list[tuple[str, int]]:
    """The known parts of the batch that took any time, and the rest of it."""
    parts = [(phase, batch.phases_ms[phase]) for phase in _PHASES if batch.phases_ms.get(phase)]
    rest = batch.duration_ms - sum(ms for _, ms in parts)
    return [*parts, ("other", rest)] if rest > 0 else parts


def _phase_class(phase: str) -> str:
    return _PHASE_CLASSES.get(phase, REST_CLASS)


def _batch_note(batch: QueryProgress) -> str:
    parts = "\n".join(f"{phase} {duration(ms)}" for phase, ms in _phases(batch))
    return (
        f"{clock(batch.timestamp_ms)}\nbatch {batch.batch_id}: {duration(batch.duration_ms)}, "
        f"{grouped(batch.rows_in)} rows\n{parts}"
    )
