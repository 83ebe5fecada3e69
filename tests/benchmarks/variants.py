"""The broker run otherwise than as it comes: pinned to one core, compiled, or both."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.broker_client import BenchmarkError
from tests.benchmarks.broker_process import ROOT, BrokerProcess
from tests.benchmarks.measures import Subject

# The variable that has the launchers run the compiled broker.
COMPILE = "KAFKAPY_COMPILE"


def start_variants(work_dir: Path) -> Iterator[tuple[Subject, BrokerProcess]]:
    """Starts what this machine allows, one after the other; whoever gets a broker stops it."""
    for subject in _possible():
        properties = {}
        if subject in (Subject.PINNED, Subject.COMPILED_PINNED):
            properties["cpu.affinity"] = str(max(os.sched_getaffinity(0)))
        compiled = subject in (Subject.COMPILED, Subject.COMPILED_PINNED)
        yield (
            subject,
            BrokerProcess.start(
                work_dir / subject.name.lower(), properties, {COMPILE: "1" if compiled else "0"}
            ),
        )


def _possible() -> list[Subject]:
    can_pin = sys.platform == "linux"
    possible = [Subject.PINNED] if can_pin else []
    if not (ROOT / ".venv-compiled").exists():
        print("compiled: left out, bin/compile has not been run")
        return possible
    # The source may have changed since: a broker that had to compile would seem not to start.
    if subprocess.run([ROOT / "bin/compile"], stdout=subprocess.DEVNULL).returncode != 0:
        raise BenchmarkError("bin/compile failed")
    return [*possible, Subject.COMPILED, *([Subject.COMPILED_PINNED] if can_pin else [])]
