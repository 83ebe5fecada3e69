"""Our clients beside kafka-python and aiokafka, on the same broker in the same run."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from kafkapy.clients.producer import KafkaProducer
from tests.benchmarks.broker_client import BenchmarkError
from tests.benchmarks.broker_process import ROOT
from tests.benchmarks.client_load import AIOKAFKA, DIRECTIONS, KAFKA_PYTHON, KAFKAPY
from tests.benchmarks.measures import Bar, Figure, Measure, Subject

CLIENTS = "clients"
# In the columns of the other benchmarks: what is to be beaten stands where the limit does.
LIBRARIES = {Subject.OURS: KAFKAPY, Subject.LIMIT: KAFKA_PYTHON, Subject.THEIRS: AIOKAFKA}
_MODULES = {KAFKAPY: "kafkapy", KAFKA_PYTHON: "kafka", AIOKAFKA: "aiokafka"}

_RECORD_BYTES = (1024, 100)
_BAR = Bar(2, is_ratio=True, of=KAFKA_PYTHON)
# What the consumers read: more than a fetch, less than the page cache.
_FILLED_BYTES = 50_000_000
_TIMEOUT_S = 120


@dataclass(frozen=True, slots=True)
class ClientBench:
    """Runs each library in a process of its own, one after the other in every round."""

    servers: str
    seconds: float
    rounds: int
    prefix: str

    def figures(self) -> Iterator[Figure]:
        libraries = {s: name for s, name in LIBRARIES.items() if is_installed(name)}
        for direction in DIRECTIONS:
            for size in _RECORD_BYTES:
                topic = f"{self.prefix}-{direction}-{size}"
                if direction == "consume":
                    _fill(self.servers, topic, size)
                rounds: dict[Subject, list[float]] = {subject: [] for subject in libraries}
                for _ in range(self.rounds):
                    for subject, library in libraries.items():
                        rate = self._run(library, direction, topic, size)
                        rounds[subject].append(rate)
                what = f"{direction} records of {size:,} B, one partition"
                measure = Measure(
                    f"{CLIENTS}-{direction}-{size}", what, "/s", KAFKA_PYTHON, (_BAR,)
                )
                yield Figure(measure, rounds)

    def _run(self, library: str, direction: str, topic: str, size: int) -> float:
        command = [sys.executable, "-m", "tests.benchmarks.client_load", library, direction]
        command += [self.servers, topic, str(size), str(self.seconds)]
        try:
            done = subprocess.run(
                command, cwd=ROOT, capture_output=True, text=True, timeout=_TIMEOUT_S
            )
        except subprocess.TimeoutExpired as error:
            raise BenchmarkError(f"{library} did not end its {direction}") from error
        if done.returncode != 0:
            raise BenchmarkError(f"{library} failed to {direction}:\n{done.stderr[-2000:]}")
        return float(done.stdout)


def is_installed(library: str) -> bool:
    return importlib.util.find_spec(_MODULES[library]) is not None


def _fill(servers: str, topic: str, size: int) -> None:
    with KafkaProducer(bootstrap_servers=servers, linger_ms=20, batch_size=65_536) as producer:
        for _ in range(_FILLED_BYTES // size):
            producer.send(topic, bytes(size))
