"""Start-up time and idle memory, beside those of an interpreter that does nothing."""

import subprocess
import sys
import time
from pathlib import Path

from tests.benchmarks.broker_process import BrokerProcess, resident_mb
from tests.benchmarks.measures import Bar, Figure, Measure, Subject

_IDLE_S = 1.0

_TIME = Measure(
    name="startup",
    what="start-up to the first answer",
    unit="ms",
    limit="python -c pass",
    bars=(Bar(1_000, is_maximum=True),),
)
_MEMORY = Measure(
    name="idle-rss",
    what="resident memory when idle",
    unit="MB",
    limit="a bare interpreter",
    bars=(Bar(70, is_maximum=True),),
)


def measure_startup(work_dir: Path, rounds: int) -> list[Figure]:
    """Starts fresh brokers one after another; the first, which compiles modules, is left out."""
    times: dict[Subject, list[float]] = {Subject.OURS: [], Subject.LIMIT: []}
    memory: dict[Subject, list[float]] = {Subject.OURS: [], Subject.LIMIT: []}
    for number in range(rounds + 1):
        bare_ms, bare_mb = _bare_interpreter()
        broker = BrokerProcess.start(work_dir / f"start-{number}")
        try:
            time.sleep(_IDLE_S)
            idle_mb = broker.resident_mb()
        finally:
            broker.stop()
        if number > 0:
            times[Subject.OURS].append(broker.ready_after_ms)
            times[Subject.LIMIT].append(bare_ms)
            memory[Subject.OURS].append(idle_mb)
            memory[Subject.LIMIT].append(bare_mb)
    return [Figure(_TIME, times), Figure(_MEMORY, memory)]


def _bare_interpreter() -> tuple[float, float]:
    """Milliseconds `python -c pass` takes, and the memory of an interpreter that waits."""
    begun = time.monotonic()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    elapsed_ms = (time.monotonic() - begun) * 1000
    waiting = "import os; os.write(1, b'.'); os.read(0, 1)"
    with subprocess.Popen(
        [sys.executable, "-c", waiting], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        resident = resident_mb(process.pid)
        process.communicate(b".")
    return elapsed_ms, resident
