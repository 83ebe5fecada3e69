"""bin/kafka-server-start: run a broker until it is told to stop."""

from __future__ import annotations

import gc
import logging
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kafkapy.common.command_line import CommandParser, fail, name_and_version, run_command
from kafkapy.tools.pid_file import PidFile
from kafkapy.tools.server_arguments import add_server_arguments, server_properties
from kafkapy.utils.stop_request import StopRequest

if TYPE_CHECKING:
    from kafkapy.server.kafka_config import KafkaConfig
    from kafkapy.server.kafka_server import KafkaServer

OUTPUT_FILE = "kafkapy-server.out"
# A tenth of Python's default: a CPU-bound thread then holds up the others for half a millisecond,
# which brings the 99th percentile of small requests from 28 ms down to 4.5 ms.
_SWITCH_INTERVAL_S = 0.0005
_READY = b"\0"

log = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None) -> int:
    return run_command(run, arguments)


def run(arguments: Sequence[str]) -> int:
    begun = time.monotonic()
    parsed = parser().parse_args(arguments)
    _configure_logging(parsed.log_level)
    properties = server_properties(parsed)

    # Only now: a wrong argument should not cost the time of importing the broker.
    from kafkapy.server.kafka_config import KafkaConfig

    config = KafkaConfig(properties)
    if parsed.daemon:
        return _run_detached(config, lambda on_started: _run(config, begun, on_started))
    return _run(config, begun, lambda: None)


def parser() -> CommandParser:
    command = CommandParser("kafka-server-start", "Start a Kafka broker.")
    command.add_argument(
        "-daemon", action="store_true", help="return once the broker is ready, and leave it running"
    )
    add_server_arguments(command, required=True)
    command.add_argument(
        "--log-level",
        default=os.environ.get("KAFKAPY_LOG_LEVEL", "WARNING"),
        choices=["DEBUG", "INFO", "WARNING", "ERROR"],
        help="what to log on standard error (default: $KAFKAPY_LOG_LEVEL, else WARNING)",
    )
    return command


def _configure_logging(level: str) -> None:
    logging.basicConfig(
        level=level,
        stream=sys.stderr,
        format="[%(asctime)s] %(levelname)s %(message)s (%(name)s)",
    )


def _run(config: KafkaConfig, begun: float, on_started: Callable[[], None]) -> int:
    from kafkapy.server.kafka_server import KafkaServer
    from kafkapy.utils.time import SystemTime

    for name in config.unknown_properties():
        log.warning("The property %s is unknown and has no effect", name)
    _tune_process(config)
    stop = StopRequest()

    def on_thread_death(death: threading.ExceptHookArgs) -> None:
        name = death.thread.name if death.thread is not None else "unknown"
        error = (death.exc_type, death.exc_value or death.exc_type(), death.exc_traceback)
        log.critical("Thread %s died", name, exc_info=error)
        stop.ask(f"Stopped because thread {name} died: {death.exc_value!r}")

    # A broker with a dead thread would limp on; its data is safer with one that has stopped.
    threading.excepthook = on_thread_death
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signal_number, lambda *_: stop.ask())
    server = KafkaServer(config, SystemTime(), on_fatal_error=stop.ask)
    try:
        server.startup()
        with PidFile(Path(config.log_manager.log_dirs[0])), _kept_on_a_core(config):
            gc.collect()
            gc.freeze()  # what start-up made lives as long as the broker: never look at it again
            _report(server, config, (time.monotonic() - begun) * 1000)
            on_started()
            failure = stop.wait()
    finally:
        server.shutdown()
    if failure is not None:
        fail(failure)
    return 0


def _tune_process(config: KafkaConfig) -> None:
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    cores = config.fixed_cores
    if not cores:
        return
    if not hasattr(os, "sched_setaffinity"):
        fail("cpu.affinity is only supported on Linux")
    try:
        os.sched_setaffinity(0, cores)
    except OSError as e:
        fail(f"cpu.affinity={','.join(config.broker.cpu_affinity)}: {e.strerror}")


@contextmanager
def _kept_on_a_core(config: KafkaConfig) -> Iterator[None]:
    """Only a broker that is a process of its own is: others' threads stay where they are."""
    if not config.is_kept_on_a_core or sys.platform != "linux":
        yield
        return
    from kafkapy.server.core_keeper import CoreKeeper, LinuxCores

    with CoreKeeper(LinuxCores()):
        yield


def _report(server: KafkaServer, config: KafkaConfig, started_in_ms: float) -> None:
    metrics = server.metrics_address
    print(
        f"{name_and_version()}, broker {server.broker_id}, cluster {server.cluster_id}\n"
        f"listeners: {', '.join(str(end_point) for end_point in server.bound_listeners)}\n"
        f"log dirs: {', '.join(config.log_manager.log_dirs)}\n"
        f"metrics: {f'http://{metrics}/metrics' if metrics else 'off'}\n"
        f"started in {started_in_ms:.0f} ms",
        flush=True,
    )


def _run_detached(config: KafkaConfig, run: Callable[[Callable[[], None]], int]) -> int:
    """Runs the broker in a session of its own; returns when it is ready or has failed.

    The child speaks through a pipe until it is ready, then into a file in its first log directory;
    the parent repeats what came through the pipe. A NUL byte tells that the child is ready.
    """
    output = Path(config.log_manager.log_dirs[0]) / OUTPUT_FILE
    reader, writer = os.pipe()
    child = os.fork()
    if child != 0:
        os.close(writer)
        with open(reader, "rb") as pipe:
            said, is_ready, _ = pipe.read().partition(_READY)
        sys.stdout.write(said.decode())
        sys.stdout.flush()
        if is_ready:
            return 0
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.setsid()
    os.close(reader)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for stream in (1, 2):
        os.dup2(writer, stream)
    os.close(writer)

    def to_file() -> None:
        file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.write(1, _READY)
        for stream in (1, 2):
            os.dup2(file, stream)
        os.close(file)

    return run(to_file)


if __name__ == "__main__":
    sys.exit(main())
