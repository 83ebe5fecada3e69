from kafkapy.pipeline.jobs.progress.progress_log import QueryStarted, QueryTerminated
from kafkapy.pipeline.jobs.progress.query_progress import QueryRun
from kafkapy.pipeline.jobs.report.query_history import query_histories
from kafkapy.pipeline.jobs.report.query_summary import UNKNOWN, QuerySummary, quantile
from tests.helpers.query_progress import ARCHIVE, BEGAN_MS, partition, progress

AGAIN = QueryRun(ARCHIVE.name, ARCHIVE.query_id, "another-run")
COUNTS = QueryRun("counts", "2", "2")

EVENTS = [
    QueryStarted(ARCHIVE, BEGAN_MS - 500),
    progress(0),
    QueryStarted(COUNTS, BEGAN_MS),
    progress(1, dead_letters=4),
    QueryTerminated(ARCHIVE, BEGAN_MS + 2500, "no broker"),
    QueryStarted(AGAIN, BEGAN_MS + 9500),
    progress(10, query=AGAIN, duration_ms=3000, rows_out=None, partitions=(partition(0, 2),)),
]


def test_queries_have_their_runs_and_these_their_batches() -> None:
    archive, counts = query_histories(EVENTS)

    assert (archive.name, counts.name) == ("archive", "counts")
    assert [[batch.batch_id for batch in run.batches] for run in archive.runs] == [[0, 1], [10]]
    assert [(run.start_ms - BEGAN_MS, run.end_ms - BEGAN_MS) for run in archive.runs] == [
        (-500, 2500),
        (9500, 13_000),
    ]
    assert [run.ending for run in archive.runs] == ["failed: no broker", "has no end in the log"]
    assert counts.runs[0].batches == []


def test_a_run_whose_start_was_rotated_away_begins_with_its_first_batch() -> None:
    [history] = query_histories([progress(5)])

    assert (history.start_ms, history.end_ms) == (BEGAN_MS + 5000, BEGAN_MS + 6000)


def test_a_log_of_nothing_has_no_queries() -> None:
    assert query_histories([]) == []


def test_a_summary_adds_up_all_runs() -> None:
    summary = QuerySummary.of(query_histories(EVENTS)[0])

    assert (summary.runs, summary.failures, summary.down_ms) == (2, 1, 7000)
    assert (summary.rows_in, summary.rows_out, summary.dead_letters) == (3000, 1980, 4)
    assert (summary.batches, summary.slowest_batch_ms, summary.median_batch_ms) == (3, 3000, 1000)
    assert (summary.last_lag, summary.peak_lag) == (2, 320)
    assert summary.rows_per_second == 600
    assert [(tile.label, tile.value, tile.detail) for tile in summary.tiles()] == [
        ("Rows in", "3k", "3,000"),
        ("Rows out", "1.98k", "4 dead letters"),
        ("Rows a second", "600", "while at work"),
        ("Batches", "3", "95% within 3 s"),
        ("Lag at the end", "2", "320 at most"),
        ("Runs", "2", "1 failed, 7 s down"),
    ]


def test_a_summary_of_a_query_without_batches_knows_nothing() -> None:
    tiles = QuerySummary.of(query_histories(EVENTS)[1]).tiles()

    assert [tile.value for tile in tiles] == ["0", UNKNOWN, "0", "0", UNKNOWN, "1"]


def test_quantiles_are_values_that_occurred() -> None:
    assert [quantile([1, 2, 3, 4], q) for q in (0, 0.5, 0.95, 1)] == [1, 3, 4, 4]
    assert quantile([], 0.5) == 0
