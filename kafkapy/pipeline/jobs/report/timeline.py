"""A query's batches over time, in so few points that they can be drawn.

Time is cut into buckets of equal, round length. A batch's rows are spread evenly over the time that
it took; a rate is by the time of the bucket in which the query ran, and None where it did not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kafkapy.common.types import TopicPartition
from kafkapy.pipeline.jobs.progress.query_progress import QueryProgress
from kafkapy.pipeline.jobs.report.query_history import QueryHistory, Run
from kafkapy.pipeline.jobs.report.scale import time_step

MAX_BUCKETS = 240

Values = list[float | None]


@dataclass(frozen=True, slots=True)
class LagSeries:
    """The lag of one partition, or of all those that are not shown by themselves."""

    name: str
    values: Values
    is_rest: bool = False


class Timeline:
    """Series of values, one for each bucket."""

    def __init__(self, history: QueryHistory, *, max_buckets: int = MAX_BUCKETS) -> None:
        # constant after construction
        self._history = history
        self.step_ms = time_step(max(1, history.end_ms - history.start_ms), max_buckets - 1)
        # On the clock's own marks, so that a bucket can be named.
        self.start_ms = history.start_ms // self.step_ms * self.step_ms
        self.size = max(1, -(-(history.end_ms - self.start_ms) // self.step_ms))
        self.end_ms = self.start_ms + self.size * self.step_ms
        self._running_ms = [0.0] * self.size
        for run in history.runs:
            self._spread(self._running_ms, run.start_ms, run.end_ms, run.end_ms - run.start_ms)

    def bucket_of(self, timestamp_ms: int) -> int:
        return min(max(0, (timestamp_ms - self.start_ms) // self.step_ms), self.size - 1)

    def bucket_start_ms(self, bucket: int) -> int:
        return self.start_ms + bucket * self.step_ms

    def rate(self, rows: Callable[[QueryProgress], int | None]) -> Values:
        """`rows` per second. All None if no batch has such a count."""
        total = [0.0] * self.size
        is_counted = False
        for batch in self._history.batches:
            count = rows(batch)
            if count is not None:
                is_counted = True
                self._spread(total, batch.timestamp_ms, batch.end_ms, count)
        return [
            1000 * amount / ran_ms if is_counted and ran_ms else None
            for amount, ran_ms in zip(total, self._running_ms, strict=True)
        ]

    def lags(self, top: int) -> list[LagSeries]:
        """Of the `top` partitions that ever lagged most, and of the others together."""
        peaks: dict[TopicPartition, int] = {}
        for batch in self._history.batches:
            for key, lag in _lags(batch):
                peaks[key] = max(lag, peaks.get(key, 0))
        # One more than is asked for needs no summing up.
        shown = sorted(peaks, key=lambda key: (-peaks[key], key))
        shown = sorted(shown if len(shown) <= top + 1 else shown[:top])
        series = [LagSeries(str(key), self._lag_of({key})) for key in shown]
        rest = peaks.keys() - set(shown)
        if rest:
            series.append(LagSeries(f"{len(rest)} others", self._lag_of(rest), is_rest=True))
        return series

    def slowest_batches(self) -> list[QueryProgress]:
        """Of those that end in one bucket, the one that took longest."""
        slowest: dict[int, QueryProgress] = {}
        for batch in self._history.batches:
            bucket = self.bucket_of(batch.end_ms)
            if bucket not in slowest or batch.duration_ms > slowest[bucket].duration_ms:
                slowest[bucket] = batch
        return [slowest[bucket] for bucket in sorted(slowest)]

    def _lag_of(self, keys: Iterable[TopicPartition]) -> Values:
        """The most of each bucket; what a batch has left holds until the next one of its run."""
        wanted = set(keys)
        values: Values = [None] * self.size
        for run in self._history.runs:
            points = [
                (self.bucket_of(batch.end_ms), sum(lags))
                for batch in run.batches
                if (lags := [lag for key, lag in _lags(batch) if key in wanted])
            ]
            self._hold(values, run, points)
        return values

    def _hold(self, values: Values, run: Run, points: list[tuple[int, int]]) -> None:
        last_bucket = self.bucket_of(run.end_ms)
        for index, (bucket, lag) in enumerate(points):
            values[bucket] = max(lag, values[bucket] or 0)
            until = points[index + 1][0] if index + 1 < len(points) else last_bucket + 1
            values[bucket + 1 : until] = [float(lag)] * max(0, until - bucket - 1)

    def _spread(self, into: list[float], start_ms: int, end_ms: int, amount: float) -> None:
        first, last = self.bucket_of(start_ms), self.bucket_of(end_ms)
        if first == last:
            into[first] += amount
            return
        for bucket in range(first, last + 1):
            begin = max(start_ms, self.bucket_start_ms(bucket))
            end = min(end_ms, self.bucket_start_ms(bucket + 1))
            into[bucket] += amount * (end - begin) / (end_ms - start_ms)


def _lags(batch: QueryProgress) -> list[tuple[TopicPartition, int]]:
    return [
        (TopicPartition(partition.topic, partition.partition), partition.lag)
        for partition in batch.partitions
        if partition.lag is not None
    ]
