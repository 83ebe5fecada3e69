from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy.pipeline.jobs.progress.query_progress import QueryProgress, QueryRun
from kafkapy.pipeline.jobs.report.query_history import QueryHistory, query_histories
from kafkapy.pipeline.jobs.report.timeline import Timeline
from tests.helpers.query_progress import ARCHIVE, partition, progress

START_MS = 1_794_820_900_000
AGAIN = QueryRun(ARCHIVE.name, ARCHIVE.query_id, "another-run")


def batch(
    start_s: float, duration_s: float, query: QueryRun = ARCHIVE, **changes: object
) -> QueryProgress:
    return progress(
        query=query,
        timestamp_ms=START_MS + round(1000 * start_s),
        duration_ms=round(1000 * duration_s),
        **changes,
    )


def history(*batches: QueryProgress) -> QueryHistory:
    return query_histories(batches)[0]


def rates(*batches: QueryProgress, buckets: int = 11) -> list[float | None]:
    timeline = Timeline(history(*batches), max_buckets=buckets)
    assert timeline.step_ms == 1000
    return timeline.rate(lambda batch: batch.rows_in)


def test_rows_are_spread_over_the_time_of_their_batch() -> None:
    assert rates(batch(0, 4, rows_in=400), batch(4, 6, rows_in=60)) == [100] * 4 + [10] * 6


def test_a_query_that_waits_has_a_rate_of_nothing() -> None:
    assert rates(batch(0, 2, rows_in=20), batch(8, 2, rows_in=20)) == [10] * 2 + [0] * 6 + [10] * 2


def test_between_two_runs_there_is_no_rate() -> None:
    assert rates(batch(0, 2, rows_in=20), batch(8, 2, AGAIN, rows_in=20)) == (
        [10] * 2 + [None] * 6 + [10] * 2
    )


def test_a_part_of_a_bucket_in_which_the_query_ran_counts_by_itself() -> None:
    assert rates(batch(0.5, 9.5, rows_in=95))[0] == pytest.approx(10)


@settings(derandomize=True, max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 5000), st.integers(0, 10_000)), min_size=1, max_size=30))
def test_no_row_is_lost_or_counted_twice(lengths_and_rows: list[tuple[int, int]]) -> None:
    batches, at_s = [], 0.0
    for length_ms, rows in lengths_and_rows:
        batches.append(batch(at_s, length_ms / 1000, rows_in=rows))
        at_s += length_ms / 1000
    end_ms = batches[-1].end_ms
    timeline = Timeline(history(*batches), max_buckets=20)

    total = 0.0
    for bucket, rate in enumerate(timeline.rate(lambda batch: batch.rows_in)):
        begin = max(START_MS, timeline.bucket_start_ms(bucket))
        end = min(end_ms, timeline.bucket_start_ms(bucket + 1))
        total += (rate or 0) * max(0, end - begin) / 1000

    assert total == pytest.approx(sum(rows for _, rows in lengths_and_rows))


def test_what_no_batch_has_counted_has_no_rate() -> None:
    timeline = Timeline(history(batch(0, 4, rows_out=None)))

    assert set(timeline.rate(lambda batch: batch.rows_out)) == {None}


@pytest.mark.parametrize(
    ("duration_s", "step_ms"), [(0, 1), (0.1, 1), (60, 500), (86_400, 600_000)]
)
def test_any_time_is_cut_into_a_drawable_number_of_buckets(duration_s: float, step_ms: int) -> None:
    timeline = Timeline(history(batch(0, duration_s)))

    assert timeline.step_ms == step_ms
    assert 1 <= timeline.size <= 240
    assert timeline.start_ms % step_ms == 0
    assert timeline.end_ms >= START_MS + 1000 * duration_s


def lag_values(timeline: Timeline, top: int = 5) -> dict[str, Sequence[float | None]]:
    return {series.name: series.values for series in timeline.lags(top)}


def test_a_lag_holds_from_the_end_of_its_batch_to_the_next_one() -> None:
    timeline = Timeline(
        history(
            batch(0, 2.5, partitions=(partition(0, 50),)),
            batch(5, 1.5, partitions=(partition(0, 7),)),
            batch(9, 1, partitions=(partition(0, 0),)),
        ),
        max_buckets=11,
    )

    assert lag_values(timeline) == {"orders-0": [None, None, 50, 50, 50, 50, 7, 7, 7, 0]}


def test_a_lag_ends_with_its_run() -> None:
    timeline = Timeline(
        history(
            batch(0, 1.5, partitions=(partition(0, 50),)),
            batch(8, 2, AGAIN, partitions=(partition(0, 7),)),
        ),
        max_buckets=11,
    )

    assert lag_values(timeline) == {"orders-0": [None, 50, *[None] * 7, 7]}


def test_of_several_batches_in_a_bucket_the_highest_lag_is_shown() -> None:
    timeline = Timeline(
        history(
            batch(0, 0.2, partitions=(partition(0, 5),)),
            batch(0.3, 0.2, partitions=(partition(0, 80),)),
            batch(0.6, 0.2, partitions=(partition(0, 2),)),
            batch(9, 1, partitions=(partition(0, 1),)),
        ),
        max_buckets=11,
    )

    # What the last of them has left holds afterwards.
    assert lag_values(timeline)["orders-0"][:3] == [80, 2, 2]


def test_the_partitions_that_lagged_most_are_shown_and_the_others_summed() -> None:
    batches = [batch(0, 1, partitions=tuple(partition(n, 10 * n) for n in range(8)))]

    shown = Timeline(history(*batches)).lags(3)

    assert [series.name for series in shown] == ["orders-5", "orders-6", "orders-7", "5 others"]
    assert [series.values[-1] for series in shown] == [50, 60, 70, 0 + 10 + 20 + 30 + 40]
    assert [series.is_rest for series in shown] == [False, False, False, True]


def test_a_single_other_partition_is_shown_by_its_name() -> None:
    batches = [batch(0, 1, partitions=tuple(partition(n, 10 * n) for n in range(4)))]

    assert len(Timeline(history(*batches)).lags(3)) == 4


def test_a_lag_that_nobody_knows_is_not_shown() -> None:
    assert Timeline(history(batch(0, 1, partitions=(partition(0, None),)))).lags(3) == []


def test_of_the_batches_in_a_bucket_the_slowest_is_shown() -> None:
    quick, slow, later = batch(0, 0.1), batch(0.2, 0.5), batch(8, 2)

    timeline = Timeline(history(quick, slow, later), max_buckets=11)

    assert timeline.slowest_batches() == [slow, later]
