import socket
from pathlib import Path
from urllib.request import urlopen

import pytest

from kafkapy.pipeline.jobs.progress.pipeline_metrics import PipelineMetrics
from kafkapy.pipeline.jobs.progress.progress_log import ProgressLog
from kafkapy.pipeline.jobs.progress.progress_reporters import ProgressConfig, progress_reporters
from kafkapy.pipeline.jobs.progress.terminal_view import TerminalView
from kafkapy.pipeline.pipeline_errors import OptionError


def test_without_settings_there_is_only_the_view() -> None:
    assert [type(r) for r in progress_reporters(ProgressConfig())] == [TerminalView]


def test_a_path_adds_the_log_and_a_port_the_metrics(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = ProgressConfig(log_path=tmp_path / "progress.jsonl", metrics_port=0)

    reporters = progress_reporters(config)
    url = capsys.readouterr().err.removeprefix("Metrics: ").strip()
    with urlopen(url, timeout=10) as answer:
        assert answer.status == 200
    for reporter in reporters:
        reporter.close()

    assert [type(r) for r in reporters] == [TerminalView, ProgressLog, PipelineMetrics]


def test_a_port_that_is_taken_leaves_nothing_open(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        with pytest.raises(OptionError, match=f"127.0.0.1:{port}"):
            progress_reporters(ProgressConfig(log_path=tmp_path / "log", metrics_port=port))
