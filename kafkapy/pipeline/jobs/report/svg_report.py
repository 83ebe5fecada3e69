"""One query's report as a picture, for documents."""

from __future__ import annotations

from kafkapy.pipeline.jobs.progress.figures import duration
from kafkapy.pipeline.jobs.report.query_charts import QueryCharts, clock
from kafkapy.pipeline.jobs.report.query_history import QueryHistory
from kafkapy.pipeline.jobs.report.query_summary import QuerySummary, Tile
from kafkapy.pipeline.jobs.report.svg_elements import element, text
from kafkapy.pipeline.jobs.report.theme import CHART_STYLE, VARIABLES

_MARGIN = 24
_WIDTH = 960
_CHART_HEIGHT = 240
_CHART_GAP = 20
_TILES_TOP = 64
_TILE_HEIGHT = 96

_STYLE = (
    "svg .page{fill:var(--surface)}"
    "svg .name{font-size:20px;font-weight:600;fill:var(--text)}"
    "svg .value{font-size:24px;font-weight:600;fill:var(--text)}"
    "svg .small{font-size:11px}"
)


def svg_report(history: QueryHistory) -> str:
    summary = QuerySummary.of(history)
    span = f"{clock(summary.start_ms)}, for {duration(summary.end_ms - summary.start_ms)}"
    parts = [
        text(summary.name, x=0, y=20, class_="name"),
        text(span, x=0, y=42),
        *(_tile(number, tile) for number, tile in enumerate(summary.tiles())),
    ]
    top = _TILES_TOP + _TILE_HEIGHT
    for chart in QueryCharts(history, has_hover=False).all():
        parts.append(element("g", chart.content(), transform=f"translate(0 {top})"))
        top += _CHART_HEIGHT + _CHART_GAP
    width, height = _WIDTH + 2 * _MARGIN, top - _CHART_GAP + 2 * _MARGIN
    return (
        element(
            "svg",
            element("style", VARIABLES + CHART_STYLE + _STYLE),
            element("rect", width=width, height=height, class_="page"),
            element("g", *parts, transform=f"translate({_MARGIN} {_MARGIN})"),
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {width} {height}",
            width=width,
            height=height,
            role="img",
            aria_label=f"Throughput, lag and batch time of {summary.name}",
        )
        + "\n"
    )


def _tile(number: int, tile: Tile) -> str:
    x = number * _WIDTH // 6
    return element(
        "g",
        text(tile.label, x=x, y=_TILES_TOP + 12),
        text(tile.value, x=x, y=_TILES_TOP + 40, class_="value"),
        text(tile.detail, x=x, y=_TILES_TOP + 58, class_="small"),
    )
