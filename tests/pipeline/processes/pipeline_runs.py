"""Runs of `kafka-pipeline run` as processes of their own."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from kafkapy.pipeline.jobs.progress.progress_log import read_progress_log
from kafkapy.pipeline.jobs.progress.query_progress import QueryProgress
from tests.helpers.waiting import wait_until

TIMEOUT_S = 240
_PAUSE_S = 0.3


class PipelineRuns:
    """A pipeline's file in a directory, and what its runs leave there.

    The file finds the directory as ${DATA}, and writes its progress to ${DATA}/progress.jsonl.
    """

    def __init__(
        self,
        directory: Path,
        file: str,
        environment: Mapping[str, str],
        *,
        python: str = sys.executable,
    ) -> None:
        self._directory = directory
        self._environment = {"DATA": str(directory), **environment}
        self._command = [python, "-m", "kafkapy.pipeline.kafka_pipeline", "run"]
        (directory / "p.toml").write_text(file)

    @contextmanager
    def running(self, *options: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
        """In a group of its own with its JVM and workers, none of which outlives the block."""
        with (
            open(self._directory / "stderr", "w") as stderr,
            subprocess.Popen(
                [*self._command, str(self._directory / "p.toml"), "--master", "local[1]", *options],
                env={**os.environ, **self._environment, **environment},
                cwd=self._directory,
                start_new_session=True,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                text=True,
            ) as process,
        ):
            try:
                yield process
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)

    def said(self) -> str:
        """By the last run, on standard error."""
        return (self._directory / "stderr").read_text()

    def batches(self) -> int:
        """Of all runs."""
        log = self._directory / "progress.jsonl"
        events = read_progress_log(log) if log.exists() else []
        return sum(isinstance(event, QueryProgress) for event in events)

    def await_batches(self, process: subprocess.Popen[str], number: int) -> None:
        """Until there are so many more, while the process is still at work."""
        wanted = self.batches() + number
        wait_until(
            lambda: process.poll() is not None or self.batches() >= wanted,
            timeout=TIMEOUT_S,
            pause=_PAUSE_S,
        )
        assert process.poll() is None, self.said()
