"""bin/kafka-pipeline: run a pipeline that a file declares, check it, or report on its runs."""

from __future__ import annotations

import logging
import os
import signal
import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from kafkapy.common.command_line import CommandParser, fail, run_command
from kafkapy.pipeline.jobs.pipeline_config import PipelineConfig, Trigger, TriggerKind
from kafkapy.pipeline.jobs.pipeline_file import PipelineFile
from kafkapy.pipeline.jobs.report.report_command import add_report_arguments, run_report
from kafkapy.pipeline.jobs.topic_directory import TopicDirectory
from kafkapy.pipeline.pipeline_errors import PipelineError
from kafkapy.utils.stop_request import StopRequest

_DEFAULT_MASTER = "local[*]"
_SPARK_TOO = ("DEBUG", "INFO")


def main(arguments: Sequence[str] | None = None) -> int:
    return run_command(run, arguments)


def parser() -> CommandParser:
    command = CommandParser(
        "kafka-pipeline", "Run a data pipeline on Spark that a TOML file declares."
    )
    actions = command.add_subparsers(
        dest="action", metavar="ACTION", required=True, help="what to do"
    )
    _add_run(
        actions.add_parser("run", help="run a pipeline", description="Run or check a pipeline.")
    )
    add_report_arguments(
        actions.add_parser(
            "report",
            help="draw what a pipeline has done",
            description="Make a page of charts, or one picture, from a pipeline's progress log.",
        )
    )
    return command


def run(arguments: Sequence[str]) -> int:
    parsed = parser().parse_args(arguments)
    try:
        return run_report(parsed) if parsed.action == "report" else _run(parsed)
    except PipelineError as e:
        fail(str(e))


def _add_run(command: CommandParser) -> None:
    command.add_argument("file", metavar="FILE", help="the pipeline's file")
    how = command.add_mutually_exclusive_group()
    how.add_argument(
        "--once",
        action="store_true",
        help="do what there is to do now, then end, whatever the file's trigger is",
    )
    how.add_argument(
        "--continuous",
        action="store_true",
        help="go on until told to stop, whatever the file's trigger is",
    )
    how.add_argument(
        "--validate",
        action="store_true",
        help="check the file, its SQL, topics and sinks; print what would run",
    )
    command.add_argument(
        "--master",
        metavar="MASTER",
        help=f"Spark's master (default: what the file says, else {_DEFAULT_MASTER})",
    )
    command.add_argument(
        "--quiet", action="store_true", help="one line for each batch, also on a terminal"
    )
    command.add_argument(
        "--log-level",
        default="WARNING",
        choices=["DEBUG", "INFO", "WARNING", "ERROR"],
        help="what to log on standard error (default: WARNING); from INFO on, Spark's log too",
    )


def _run(parsed: Namespace) -> int:
    logging.basicConfig(
        level=parsed.log_level,
        stream=sys.stderr,
        format="[%(asctime)s] %(levelname)s %(message)s (%(name)s)",
    )
    config = _with_trigger(PipelineFile(Path(parsed.file), os.environ).load(), parsed)
    if find_spec("pyspark") is None:
        fail("kafka-pipeline needs Spark: pip install 'kafkapy[spark]'")
    TopicDirectory(config).check()
    stop = StopRequest()
    _stop_on_signals(stop)

    # Only now: a wrong file or a missing topic should not cost the time of starting Spark.
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from kafkapy.pipeline.jobs.failure_cause import failure_cause
    from kafkapy.pipeline.jobs.job_runner import JobRunner
    from kafkapy.pipeline.jobs.progress.progress_reporters import (
        ProgressConfig,
        progress_reporters,
    )
    from kafkapy.pipeline.spark.spark_session_factory import spark_session

    progress = ProgressConfig(
        log_path=None if config.progress_log is None else Path(config.progress_log),
        metrics_port=config.metrics_port,
        is_quiet=parsed.quiet,
    )
    try:
        spark = spark_session(
            app_name=config.name,
            master=parsed.master or config.spark.master or _DEFAULT_MASTER,
            conf=config.spark.conf,
        )
    except (PySparkException, Py4JError) as e:
        raise PipelineError(f"Spark does not start: {failure_cause(e)}") from e
    try:
        # What matters of Spark's own log is in the exception that ends the run, without its traces.
        spark.sparkContext.setLogLevel("WARN" if parsed.log_level in _SPARK_TOO else "OFF")
        # Spark has put its own in place for SIGINT.
        _stop_on_signals(stop)
        if stop.is_asked(within_s=0):
            return 0
        if parsed.validate:
            for line in JobRunner(config, spark, stop=stop).validate():
                print(line)
            return 0
        runner = JobRunner(
            config, spark, stop=stop, reporters=progress_reporters(progress), say=_say
        )
        runner.run()
    finally:
        spark.stop()
    return 0


def _with_trigger(config: PipelineConfig, parsed: Namespace) -> PipelineConfig:
    if parsed.once:
        return replace(config, trigger=Trigger(TriggerKind.ONCE))
    if parsed.continuous:
        kinds = (TriggerKind.ONCE, TriggerKind.AVAILABLE_NOW)
        return (
            replace(config, trigger=Trigger(TriggerKind.CONTINUOUS))
            if config.trigger.kind in kinds
            else config
        )
    return config


def _stop_on_signals(stop: StopRequest) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.ask())


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
