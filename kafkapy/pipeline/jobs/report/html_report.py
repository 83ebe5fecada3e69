"""The report as one page of HTML that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from kafkapy.pipeline.jobs.progress.figures import duration, grouped, short
from kafkapy.pipeline.jobs.report.query_charts import QueryCharts, clock
from kafkapy.pipeline.jobs.report.query_history import QueryHistory
from kafkapy.pipeline.jobs.report.query_summary import UNKNOWN, QuerySummary, Tile
from kafkapy.pipeline.jobs.report.svg_elements import element
from kafkapy.pipeline.jobs.report.theme import CHART_STYLE, FONT, VARIABLES

_LAST_BATCHES = 20
_LAST_FAILURES = 5

_PAGE_STYLE = (
    "*{box-sizing:border-box}"
    f"body{{margin:0;background:var(--page);color:var(--text);font:15px/1.5 {FONT}}}"
    "main{max-width:1080px;margin:0 auto;padding:32px 20px 48px}"
    "h1{font-size:24px;margin:0}h2{font-size:19px;margin:40px 0 2px}"
    "p{margin:2px 0 16px;color:var(--muted)}"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;"
    "margin-bottom:12px}"
    ".card{background:var(--surface);border:1px solid var(--border);border-radius:10px;"
    "padding:14px 16px;margin-bottom:12px}"
    ".tiles .card{margin:0}"
    ".tiles span{display:block;font-size:13px;color:var(--muted)}"
    ".tiles b{display:block;font-size:25px;font-weight:600;line-height:1.35}"
    "svg{display:block;width:100%;height:auto}"
    ".bad{color:var(--bad)}"
    ".wide{overflow-x:auto}"
    "table{border-collapse:collapse;width:100%;font-size:13px;font-variant-numeric:tabular-nums}"
    "th,td{padding:5px 10px;text-align:right;border-bottom:1px solid var(--border);"
    "white-space:nowrap}"
    "th{color:var(--muted);font-weight:500}"
    "tr:last-child td{border-bottom:0}"
    "th:first-child,td:first-child{text-align:left}"
    "summary{cursor:pointer;color:var(--muted)}"
    "a{color:var(--s1);text-decoration:none}a:hover{text-decoration:underline}"
)


def html_report(title: str, histories: Sequence[QueryHistory]) -> str:
    """All queries of one log, one below the other."""
    summaries = [QuerySummary.of(history) for history in histories]
    sections = [
        _section(number, history, summary)
        for number, (history, summary) in enumerate(zip(histories, summaries, strict=True))
    ]
    overview = _overview(summaries) if len(summaries) > 1 else ""
    body = element(
        "main",
        element("h1", escape(title)),
        element("p", escape(_span(summaries))),
        overview,
        *sections,
    )
    style = VARIABLES + _PAGE_STYLE + CHART_STYLE
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>{style}</style></head>"
        f"<body>{body}</body></html>\n"
    )


def _span(summaries: Sequence[QuerySummary]) -> str:
    if not summaries:
        return "The log is empty: no query has started."
    start_ms = min(summary.start_ms for summary in summaries)
    end_ms = max(summary.end_ms for summary in summaries)
    return f"{clock(start_ms)} to {clock(end_ms)}, {duration(end_ms - start_ms)}"


def _overview(summaries: Sequence[QuerySummary]) -> str:
    rows = [
        [
            element("a", escape(summary.name), href=f"#query-{number}"),
            element("span", escape(summary.state), class_="bad")
            if summary.is_failed
            else escape(summary.state),
            grouped(summary.rows_in),
            UNKNOWN if summary.rows_out is None else grouped(summary.rows_out),
            short(summary.rows_per_second),
            duration(summary.median_batch_ms),
            UNKNOWN if summary.last_lag is None else grouped(summary.last_lag),
        ]
        for number, summary in enumerate(summaries)
    ]
    header = ["Query", "Its last run", "Rows in", "Rows out", "Rows/s", "Batch", "Lag"]
    return element("div", _table(header, rows), class_="card wide")


def _section(number: int, history: QueryHistory, summary: QuerySummary) -> str:
    charts = [element("div", chart.svg(), class_="card") for chart in QueryCharts(history).all()]
    return element(
        "section",
        element("h2", escape(summary.name)),
        element(
            "p",
            escape(f"{clock(summary.start_ms)}, for {duration(summary.end_ms - summary.start_ms)}"),
            escape(f"; the last run {summary.state}") if not summary.is_failed else "",
        ),
        element("div", *map(_tile, summary.tiles()), class_="tiles"),
        _failures(history),
        *charts,
        _last_batches(history),
        id=f"query-{number}",
    )


def _tile(tile: Tile) -> str:
    return element(
        "div",
        element("span", escape(tile.label)),
        element("b", escape(tile.value)),
        element("span", escape(tile.detail) or "&nbsp;"),
        class_="card",
    )


def _failures(history: QueryHistory) -> str:
    failed = [run for run in history.runs if run.error is not None][-_LAST_FAILURES:]
    if not failed:
        return ""
    lines = [
        element("div", escape(f"{clock(run.end_ms)} {run.ending}"), class_="bad") for run in failed
    ]
    return element("div", *lines, class_="card")


def _last_batches(history: QueryHistory) -> str:
    header = ["Batch", "Began", "Took", "Rows in", "Rows out", "Rows/s", "Lag", "Dead letters"]
    rows = [
        [
            grouped(batch.batch_id),
            clock(batch.timestamp_ms),
            duration(batch.duration_ms),
            grouped(batch.rows_in),
            UNKNOWN if batch.rows_out is None else grouped(batch.rows_out),
            grouped(batch.processed_rows_per_second),
            UNKNOWN if batch.lag is None else grouped(batch.lag),
            grouped(batch.dead_letters),
        ]
        for batch in reversed(history.batches[-_LAST_BATCHES:])
    ]
    if not rows:
        return ""
    title = element("summary", "The last batches")
    return element(
        "details", title, element("div", _table(header, rows), class_="wide"), class_="card"
    )


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Cells are HTML already."""
    return element(
        "table",
        element("thead", element("tr", *(element("th", name) for name in header))),
        element("tbody", *(element("tr", *(element("td", cell) for cell in row)) for row in rows)),
    )
