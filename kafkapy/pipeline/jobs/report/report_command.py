"""`kafka-pipeline report`: a progress log as a page or a picture."""

from __future__ import annotations

import argparse
from pathlib import Path

from kafkapy.pipeline.jobs.progress.progress_log import read_progress_log
from kafkapy.pipeline.jobs.report.html_report import html_report
from kafkapy.pipeline.jobs.report.query_history import QueryHistory, query_histories
from kafkapy.pipeline.jobs.report.svg_report import svg_report
from kafkapy.pipeline.pipeline_errors import OptionError, PipelineError


def add_report_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "progress_log",
        type=Path,
        metavar="PROGRESS_LOG",
        help="the progress log of a pipeline; its rotated files are read with it",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="the file to write (default: the log's name with .html or .svg)",
    )
    parser.add_argument(
        "--query",
        metavar="NAME",
        help="only the query of this name",
    )
    parser.add_argument(
        "--svg",
        action="store_true",
        help="write one picture of one query rather than a page of all of them",
    )
    parser.add_argument(
        "--title", metavar="TEXT", help="the page's heading (default: the log's name)"
    )


def run_report(arguments: argparse.Namespace) -> int:
    """Raises PipelineError if the log cannot be read or does not have the query."""
    path: Path = arguments.progress_log
    histories = query_histories(read_progress_log(path))
    if arguments.query is not None:
        histories = [_named(histories, arguments.query)]
    if arguments.svg:
        content = svg_report(_only(histories))
    else:
        content = html_report(arguments.title or f"Pipeline {path.stem}", histories)
    output: Path = arguments.output or path.with_suffix(".svg" if arguments.svg else ".html")
    try:
        output.write_text(content, encoding="utf-8")
    except OSError as e:
        raise OptionError("--output", f"{output} cannot be written: {e.strerror}") from e
    print(output)
    return 0


def _named(histories: list[QueryHistory], name: str) -> QueryHistory:
    for history in histories:
        if history.name == name:
            return history
    raise OptionError("--query", f"the log has no query {name}; it has {_names(histories)}")


def _only(histories: list[QueryHistory]) -> QueryHistory:
    if not histories:
        raise PipelineError("The log is empty: there is nothing to draw")
    if len(histories) > 1:
        raise OptionError("--svg", f"a picture is of one query: give --query {_names(histories)}")
    return histories[0]


def _names(histories: list[QueryHistory]) -> str:
    return " or ".join(history.name for history in histories) or "none"
