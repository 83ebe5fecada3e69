import argparse
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kafkapy.pipeline.jobs.progress.progress_log import ProgressLog
from kafkapy.pipeline.jobs.progress.query_progress import QueryRun
from kafkapy.pipeline.jobs.report.report_command import add_report_arguments, run_report
from kafkapy.pipeline.pipeline_errors import OptionError, PipelineError
from tests.helpers.mock_time import MockTime
from tests.helpers.query_progress import ARCHIVE, progress

_VOID_TAGS = {"meta"}


class _Page(HTMLParser):
    """Which elements a page has, all of them closed."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(content)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in _VOID_TAGS:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def report(*arguments: str | Path) -> int:
    parser = argparse.ArgumentParser()
    add_report_arguments(parser)
    return run_report(parser.parse_args([str(argument) for argument in arguments]))


@pytest.fixture
def log_path(tmp_path: Path, time: MockTime) -> Path:
    path = tmp_path / "orders.jsonl"
    log = ProgressLog(path, time)
    for batch_id in range(20):
        log.on_progress(progress(batch_id))
    again = QueryRun(ARCHIVE.name, ARCHIVE.query_id, "another-run")
    for batch_id in range(30, 40):
        log.on_progress(progress(batch_id, query=again))
    log.on_progress(progress(0, query=QueryRun("<counts> & more", "2", "2")))
    log.close()
    return path


def test_a_page_has_three_charts_of_every_query(
    log_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(log_path) == 0

    written = log_path.with_suffix(".html")
    page = _Page(written.read_text())
    assert capsys.readouterr().out == f"{written}\n"
    assert page.tags.count("svg") == 6
    assert page.texts.count("restart") == 3
    assert "archive" in page.texts
    assert "<counts> & more" in page.texts


def test_a_page_needs_nothing_from_elsewhere(log_path: Path) -> None:
    report(log_path)
    content = log_path.with_suffix(".html").read_text()

    assert re.findall(r"https?://|src=|@import|url\(|<script|<link", content) == []


def test_a_page_of_one_query_has_only_that(log_path: Path, tmp_path: Path) -> None:
    output = tmp_path / "page.html"

    report(log_path, "-o", output, "--query", "archive", "--title", "Orders <1>")

    page = _Page(output.read_text())
    assert page.tags.count("svg") == 3
    assert page.texts.count("Orders <1>") == 2


def test_a_picture_is_one_whole_svg(log_path: Path) -> None:
    report(log_path, "--svg", "--query", "archive")

    picture = ElementTree.parse(log_path.with_suffix(".svg")).getroot()
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"
    texts = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert {"archive", "Rows in", "30k", "Throughput, rows a second"} <= set(texts)


def test_a_page_of_a_log_without_events_says_so(tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    path.touch()

    report(path)

    assert "The log is empty: no query has started." in path.with_suffix(".html").read_text()
    with pytest.raises(PipelineError, match="The log is empty"):
        report(path, "--svg")


def test_a_picture_is_of_one_query(log_path: Path) -> None:
    with pytest.raises(OptionError, match="a picture is of one query: give --query archive or"):
        report(log_path, "--svg")


def test_a_query_that_the_log_does_not_have_is_named_with_those_that_it_has(log_path: Path) -> None:
    with pytest.raises(OptionError, match="--query: the log has no query sums; it has archive or"):
        report(log_path, "--query", "sums")


def test_an_output_that_cannot_be_written_is_named(log_path: Path, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"--output: .*page\.html cannot be written"):
        report(log_path, "-o", tmp_path / "nowhere" / "page.html")
