"""A query's batches over time, in so few points that they can be drawn.

Time is cut into buckets of equal, round length. A batch's rows are spread evenly over the time that
it took; a rate is by the time of the bucket in which the query ran, and None where it did not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain

from kafkapy.common.types import TopicPartition
from kafkapy.pipeline.jobs.progress.query_progress import QueryProgress
from kafkapy.pipeline.jobs.report.query_history import QueryHistory, Run
from kafkapy.pipeline.jobs.report.scale import time_step

MAX_BUCKETS = 240

Values = list[float | None]
PartitionLags = list[tuple[TopicPartition, int]]


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
        lags = [[(batch, _lags(batch)) for batch in run.batches] for run in self._history.runs]
        by_peak = _by_peak(of_batch for _, of_batch in chain.from_iterable(lags))
        # One more than is asked for needs no summing up.
        shown = sorted(by_peak if len(by_peak) <= top + 1 else by_peak[:top])
        series = [LagSeries(str(key), [None] * self.size) for key in shown]
        if len(shown) < len(by_peak):
            name = f"{len(by_peak) - len(shown)} others"
            series.append(LagSeries(name, [None] * self.size, is_rest=True))
        places = {key: place for place, key in enumerate(shown)}
        for run, of_run in zip(self._history.runs, lags, strict=True):
            points: list[list[tuple[int, int]]] = [[] for _ in series]
            for batch, of_batch in of_run:
                sums: dict[int, int] = {}
                for key, lag in of_batch:
                    place = places.get(key, len(shown))
                    sums[place] = sums.get(place, 0) + lag
                for place, lag in sums.items():
                    points[place].append((self.bucket_of(batch.end_ms), lag))
            for one, its_points in zip(series, points, strict=True):
                self._hold(one.values, run, its_points)
        return series

    def slowest_batches(self) -> list[QueryProgress]:
        """Of those that end in one bucket, the one that took longest."""
        slowest: dict[int, QueryProgress] = {}
        for batch in self._history.batches:
            bucket = self.bucket_of(batch.end_ms)
            if bucket not in slowest or batch.duration_ms > slowest[bucket].duration_ms:
                slowest[bucket] = batch
        return [slowest[bucket] for bucket in sorted(slowest)]

    def _hold(self, values: Values, run: Run, points: list[tuple[int, int]]) -> None:
        """The most of each bucket; what a batch has left holds until the next one of its run."""
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


def _by_peak(lags: Iterable[PartitionLags]) -> list[TopicPartition]:
    """The partition that ever lagged most comes first."""
    peaks: dict[TopicPartition, int] = {}
    for of_batch in lags:
        for key, lag in of_batch:
            peaks[key] = max(lag, peaks.get(key, 0))
    return sorted(peaks, key=lambda key: (-peaks[key], key))


def _lags(batch: QueryProgress) -> PartitionLags:
    return [
        (TopicPartition(partition.topic, partition.partition), partition.lag)
        for partition in batch.partitions
        if partition.lag is not None
    ]
