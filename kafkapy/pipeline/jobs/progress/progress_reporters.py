"""The reporters that a pipeline's file and command line ask for."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from kafkapy.pipeline.jobs.progress.pipeline_metrics import PipelineMetrics
from kafkapy.pipeline.jobs.progress.progress_log import (
    DEFAULT_BACKUPS,
    DEFAULT_MAX_BYTES,
    ProgressLog,
)
from kafkapy.pipeline.jobs.progress.progress_reporter import ProgressReporter
from kafkapy.pipeline.jobs.progress.terminal_view import TerminalView
from kafkapy.utils.time import SystemTime

METRICS_OFF = -1
METRICS_ANY_PORT = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressConfig:
    """What is shown and kept of a pipeline's progress."""

    log_path: Path | None = None
    log_max_bytes: int = DEFAULT_MAX_BYTES
    log_backups: int = DEFAULT_BACKUPS
    metrics_host: str = "127.0.0.1"
    metrics_port: int = METRICS_OFF
    is_quiet: bool = False


def progress_reporters(config: ProgressConfig) -> Sequence[ProgressReporter]:
    """Raises PipelineError if the log cannot be written or the port is taken. Whoever calls it owns
    them: ProgressListener closes those that it was given.
    """
    with ExitStack() as made:
        reporters: list[ProgressReporter] = [TerminalView(sys.stderr, is_quiet=config.is_quiet)]
        if config.log_path is not None:
            log = ProgressLog(
                config.log_path,
                SystemTime(),
                max_bytes=config.log_max_bytes,
                backups=config.log_backups,
            )
            made.callback(log.close)
            reporters.append(log)
        if config.metrics_port != METRICS_OFF:
            metrics = PipelineMetrics()
            port = metrics.serve(config.metrics_host, config.metrics_port)
            reporters.append(metrics)
            if config.metrics_port == METRICS_ANY_PORT:
                # Nobody could know it otherwise.
                print(f"Metrics: http://{config.metrics_host}:{port}/metrics", file=sys.stderr)
        made.pop_all()
        return reporters
