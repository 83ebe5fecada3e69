"""bin/bench: the broker's figures beside the machine's own limits, taken in the same run.

A measurement, never a test: the exit code is 0 whatever the figures are, 1 when it cannot run.
"""

import argparse
import importlib.util
import itertools
import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tests.benchmarks.broker_client import BenchmarkError, BrokerClient
from tests.benchmarks.broker_process import BrokerProcess
from tests.benchmarks.clients import CLIENTS, LIBRARIES, ClientBench, is_installed
from tests.benchmarks.groups import measure_groups
from tests.benchmarks.load_program import LoadProgram, Sample
from tests.benchmarks.loads import LOADS, Load
from tests.benchmarks.measures import Figure, Measure, Subject
from tests.benchmarks.pipeline import PIPELINE, measure_pipeline
from tests.benchmarks.report import print_figure, print_heading
from tests.benchmarks.startup import measure_startup
from tests.benchmarks.testing import measure_testing
from tests.benchmarks.variants import COMPILE, start_variants

GROUPS = "groups"
STARTUP = "startup"
TESTING = "testing"
NAMES = (*(load.name for load in LOADS), GROUPS, STARTUP, CLIENTS, TESTING, PIPELINE)
_ROUNDS = 3
_WARM_UP_S = 1.0


@dataclass(slots=True)
class Bench:
    """One run over some of the loads. Not thread-safe."""

    program: LoadProgram
    work_dir: Path
    seconds: float
    clients: dict[Subject, BrokerClient]
    _topic_numbers: Iterator[int] = field(default_factory=itertools.count)

    def measure(self, load: Load) -> list[Figure]:
        """Rounds of limit, ours, theirs, so that a slow minute of the machine hits all alike."""
        samples: dict[Subject, list[Sample]] = {
            subject: [] for subject in (Subject.LIMIT, *self.clients)
        }
        with ExitStack() as stack:
            standing = self._standing_topics(load, stack)
            # Also of the limit: memory that was in use before is cheaper to fill than fresh memory.
            warm_up_s = min(_WARM_UP_S, self.seconds)
            load.run_limit(self.program, self.work_dir, warm_up_s)
            for subject, client in self.clients.items():
                self._sample(load, client, standing.get(subject), warm_up_s)
            for _ in range(_ROUNDS):
                limit = load.run_limit(self.program, self.work_dir, self.seconds)
                samples[Subject.LIMIT].append(limit)
                for subject, client in self.clients.items():
                    sample = self._sample(load, client, standing.get(subject), self.seconds)
                    samples[subject].append(sample)
        return [
            Figure(measure, {s: [read(one) for one in taken] for s, taken in samples.items()})
            for measure, read in load.measures.items()
        ]

    def _standing_topics(self, load: Load, stack: ExitStack) -> dict[Subject, str]:
        if load.topic is None or not load.topic.is_filled:
            return {}
        names = {}
        for subject, client in self.clients.items():
            names[subject] = self._new_topic_name(load)
            stack.enter_context(load.topic_on(client, names[subject]))
        return names

    def _sample(
        self, load: Load, client: BrokerClient, standing: str | None, seconds: float
    ) -> Sample:
        if standing is not None:
            return load.run(self.program, client, standing, seconds)
        name = self._new_topic_name(load)
        with load.topic_on(client, name):
            return load.run(self.program, client, name, seconds)

    def _new_topic_name(self, load: Load) -> str:
        # The process id keeps runs against the same long-lived broker apart.
        return f"bench-{load.name}-{os.getpid()}-{next(self._topic_numbers)}"


def main(arguments: Sequence[str]) -> int:
    parsed = _parser().parse_args(arguments)
    names = [name for name in NAMES if name in (parsed.names or NAMES)]
    try:
        with tempfile.TemporaryDirectory(prefix="kafkapy-bench-") as work:
            figures = _run(parsed, names, Path(work))
    except BenchmarkError as e:
        print(f"bench: {e}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    if parsed.json is not None:
        result = {
            "machine": _machine(),
            "seconds": parsed.seconds,
            "against": parsed.against and "{}:{}".format(*parsed.against),
            "figures": [figure.as_json() for figure in figures],
        }
        parsed.json.write_text(json.dumps(result, indent=2) + "\n")
    return 0


def _run(parsed: argparse.Namespace, names: Sequence[str], work_dir: Path) -> list[Figure]:
    program = LoadProgram.build()
    machine = _machine()
    print(", ".join(f"{key} {value}" for key, value in machine.items()))
    loads = [load for load in LOADS if load.name in names]
    if program is None and loads:
        print(f"no C compiler (cc, gcc): {', '.join(load.name for load in loads)} left out")
        loads = []
    if loads or STARTUP in names:
        print_heading(with_other=parsed.against is not None)
    figures: list[Figure] = []

    def report(found: Sequence[Figure]) -> None:
        figures.extend(found)
        for figure in found:
            print_figure(figure, with_other=parsed.against is not None)

    if loads or GROUPS in names:
        with ExitStack() as stack:
            broker = BrokerProcess.start(work_dir / "broker")
            stack.callback(broker.stop)
            clients = {Subject.OURS: stack.enter_context(BrokerClient("127.0.0.1", broker.port))}
            if parsed.variants:
                for subject, variant in start_variants(work_dir):
                    stack.callback(variant.stop)
                    client = BrokerClient("127.0.0.1", variant.port)
                    clients[subject] = stack.enter_context(client)
            if parsed.against is not None:
                clients[Subject.THEIRS] = stack.enter_context(BrokerClient(*parsed.against))
            if program is not None:
                bench = Bench(program, work_dir, parsed.seconds, clients)
                for load in loads:
                    report(bench.measure(load))
            if GROUPS in names:
                report(measure_groups(clients, broker.cpu_seconds, parsed.seconds))
            measure = Measure("loaded-rss", "resident memory after these loads", "MB", "")
            report([Figure(measure, {Subject.OURS: [broker.resident_mb()]})])
    if STARTUP in names:
        report(measure_startup(work_dir, _ROUNDS))
    if CLIENTS in names:
        figures.extend(_measure_clients(parsed.seconds, work_dir))
    if TESTING in names:
        if importlib.util.find_spec("confluent_kafka") is None:
            print(f"no confluent-kafka (the test extra): {TESTING} left out")
        else:
            report(measure_testing(_ROUNDS))
    if PIPELINE in names:
        if None in map(importlib.util.find_spec, ("pyspark", "pytest")):
            print(f"no pyspark (the test extra): {PIPELINE} left out")
        else:
            figures.extend(measure_pipeline(work_dir, _ROUNDS))
    return figures


def _measure_clients(seconds: float, work_dir: Path) -> Iterator[Figure]:
    for library in LIBRARIES.values():
        if not is_installed(library):
            print(f"{library} is not installed (pip install kafkapy[test]) and left out")
    print_heading(with_other=True, limit=LIBRARIES[Subject.LIMIT], other=LIBRARIES[Subject.THEIRS])
    broker = BrokerProcess.start(work_dir / "clients-broker")
    try:
        bench = ClientBench(
            f"127.0.0.1:{broker.port}", seconds, _ROUNDS, f"bench-clients-{os.getpid()}"
        )
        for figure in bench.figures():
            print_figure(figure, with_other=True)
            yield figure
    finally:
        broker.stop()


def _machine() -> dict[str, str]:
    return {
        "cores": str(len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "kafkapy": "compiled" if os.environ.get(COMPILE) == "1" else "from source",
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench", description="Measure the broker beside the machine's own limits."
    )
    parser.add_argument(
        "names", nargs="*", type=_name, metavar="name", help=f"{', '.join(NAMES)} (default: all)"
    )
    parser.add_argument(
        "--against",
        type=_address,
        metavar="HOST:PORT",
        help="run the same loads on this broker too, in alternating rounds",
    )
    parser.add_argument(
        "--seconds", type=float, default=2.0, help=f"of each of the {_ROUNDS} rounds (default: 2)"
    )
    parser.add_argument(
        "--variants",
        action="store_true",
        help="run the same loads on any core and, after bin/compile, compiled as well",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here as well")
    return parser


def _name(text: str) -> str:
    if text not in NAMES:
        raise argparse.ArgumentTypeError(f"there is no {text}, only {', '.join(NAMES)}")
    return text


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        raise argparse.ArgumentTypeError(f"{text} is not host:port")
    return host, int(port)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
