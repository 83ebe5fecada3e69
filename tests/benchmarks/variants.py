"""The broker run otherwise than as it comes: not kept on one core, or compiled."""

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
        properties = {"cpu.affinity": ""} if subject is Subject.ANY_CORE else {}
        compiled = "1" if subject is Subject.COMPILED else "0"
        yield (
            subject,
            BrokerProcess.start(work_dir / subject.name.lower(), properties, {COMPILE: compiled}),
        )


def _possible() -> list[Subject]:
    # Elsewhere than on Linux no broker is kept on a core.
    possible = [Subject.ANY_CORE] if sys.platform == "linux" else []
    if not (ROOT / ".venv-compiled").exists():
        print("compiled: left out, bin/compile has not been run")
        return possible
    # The source may have changed since: a broker that had to compile would seem not to start.
    if subprocess.run([ROOT / "bin/compile"], stdout=subprocess.DEVNULL).returncode != 0:
        raise BenchmarkError("bin/compile failed")
    return [*possible, Subject.COMPILED]
