"""bin/soak: what tests/faults shows in seconds, for hours. Ends when something is wrong."""

import argparse
import logging
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from kafkapy.testing.broker_process import BrokerProcess
from tests.compat.mutation import FrameSender, mutated, seeds
from tests.compat.tools import require_spark_with
from tests.faults.faulty_broker import read_all
from tests.faults.hostile_clients import Crowd, canary
from tests.faults.lost_answers import LostAnswers
from tests.faults.small_disk import small_disk
from tests.faults.test_full_disk import FIRST_KIB, survive_full_disk
from tests.faults.test_kill_nine import survive_kills
from tests.helpers.api import create_topic, init_producer_id
from tests.helpers.server_process import ServerProcess, running_server
from tests.helpers.spark import running_spark
from tests.pipeline.processes.table_kills import (
    DELTA,
    ICEBERG,
    TableFormat,
    survive_table_kills,
)
from tests.pipeline.processes.worker_kills import survive_worker_kills
from tests.pipeline.streaming_copy import survive_driver_kills

_FRAMES_AT_ONCE = 20_000
_ANSWERS_PER_KILL = 5000
_PARTITIONS = 2
_TOPIC = "canary"

Figures = dict[str, object]


@dataclass(frozen=True, slots=True)
class Soak:
    """One of the long runs; `count` is what reliability asks for."""

    name: str
    count: int
    unit: str
    run: Callable[[Path, int], Figures]


def kill_nine(work_dir: Path, count: int) -> Figures:
    return {"acknowledged, none lost or doubled": survive_kills(work_dir, count)}


def full_disk(work_dir: Path, count: int) -> Figures:
    with small_disk(work_dir / "small", FIRST_KIB) as disk:
        acked = survive_full_disk(work_dir / "large", disk, count)
    return {"acknowledged, none lost": acked}


def hostile_frames(work_dir: Path, count: int) -> Figures:
    properties = {"auto.create.topics.enable": "false", "delete.topic.enable": "false"}
    frames = mutated(seeds(_TOPIC), random.Random(time.time_ns()))
    with running_server(work_dir / "logs", work_dir / "output", properties) as server:
        with server.client() as client:
            create_topic(client, _TOPIC)
        with canary(server.address) as bird:
            bird.await_rounds(1)
            before = server.memory_mb()
            answered = closed = 0
            for done in range(0, count, _FRAMES_AT_ONCE):
                sender = FrameSender(server.address)
                sender.send(frames, min(_FRAMES_AT_ONCE, count - done))
                answered += sender.answered
                closed += sender.closed
            grown = server.memory_mb() - before
        _stop(server)
    assert grown < 50, f"memory grew by {grown:.0f} MB"
    return {
        "answered": answered,
        "closed": closed,
        "memory grown MB": round(grown),
        "canary's slowest ms": round(bird.slowest_s * 1000),
    }


def connections(work_dir: Path, count: int) -> Figures:
    with running_server(work_dir / "logs", work_dir / "output") as server:
        with canary(server.address) as bird:
            bird.await_rounds(200)
            quiet_s, bird.slowest_s = bird.slowest_s, 0.0
            before = server.memory_mb()
            sockets_before = server.open_sockets()
            with Crowd(server.address) as crowd:
                crowd.connect(count // 3)
                crowd.connect(count // 3, b"\x00\x00")
                slow = crowd.connect_slowly_sending(count // 3)
                for _ in range(20):
                    assert crowd.trickle(slow) == count // 3
                    bird.await_rounds(50)
                grown = server.memory_mb() - before
                opened = server.open_sockets() - sockets_before
            deadline = time.monotonic() + 60
            while server.open_sockets() > sockets_before:
                assert time.monotonic() < deadline, "sockets stay open"
                time.sleep(0.1)
        _stop(server)
    return {
        "opened": opened,
        "memory grown MB": round(grown),
        "canary's slowest ms, before": round(quiet_s * 1000),
        "and with the crowd": round(bird.slowest_s * 1000),
    }


def lost_answers(work_dir: Path, count: int) -> Figures:
    producer: LostAnswers | None = None
    kills = 0
    topic = "lost-answers"
    for done in range(0, count, _ANSWERS_PER_KILL):
        with running_server(work_dir / "logs", work_dir / "output") as server:
            if producer is None:
                with server.client() as client:
                    create_topic(
                        client, topic, partitions=_PARTITIONS, configs={"retention.ms": "-1"}
                    )
                    rng = random.Random(time.time_ns())
                    producer = LostAnswers(topic, _PARTITIONS, init_producer_id(client), rng)
            producer.send(server.address, min(_ANSWERS_PER_KILL, count - done))
            server.kill()
            kills += 1
    assert producer is not None
    with running_server(work_dir / "logs", work_dir / "output") as server:
        with server.client() as client:
            stored = [read_all(client, topic, partition) for partition in range(_PARTITIONS)]
        _stop(server)
    assert stored == producer.sent, "a record is lost, doubled or out of order"
    return {"records, each stored once": sum(map(len, stored)), "kills": kills}


def spark_worker_kills(work_dir: Path, count: int) -> Figures:
    work_dir.mkdir(parents=True, exist_ok=True)
    with BrokerProcess() as broker:
        return {"rows, each once": survive_worker_kills(work_dir, broker, count)}


def spark_driver_kills(work_dir: Path, count: int) -> Figures:
    with BrokerProcess() as broker:
        copied = survive_driver_kills(broker, work_dir, count)
        with running_spark(work_dir / "spark") as spark:
            copied.finish(spark)
    return {"rows, each copied once": copied.rows}


def spark_table_kills(table: TableFormat, work_dir: Path, count: int) -> Figures:
    spark = require_spark_with(table.type)
    work_dir.mkdir(parents=True, exist_ok=True)
    with BrokerProcess() as broker:
        return {"rows, each once": survive_table_kills(work_dir, broker, table, spark, count)}


SOAKS = (
    Soak("kill-nine", 200, "kills", kill_nine),
    Soak("full-disk", 100, "rounds", full_disk),
    Soak("hostile-frames", 1_000_000, "frames", hostile_frames),
    Soak("connections", 10_000, "connections", connections),
    Soak("lost-answers", 100_000, "batches", lost_answers),
    Soak("spark-driver-kills", 20, "kills", spark_driver_kills),
    Soak("spark-worker-kills", 20, "kills", spark_worker_kills),
    Soak("spark-delta-kills", 5, "kills", partial(spark_table_kills, DELTA)),
    Soak("spark-iceberg-kills", 5, "kills", partial(spark_table_kills, ICEBERG)),
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="soak",
        description="Run fault tests for long.",
        epilog="; ".join(f"{soak.name}: {soak.count:,} {soak.unit}" for soak in SOAKS),
    )
    parser.add_argument("names", metavar="name", nargs="*", help="which ones (default: all)")
    parser.add_argument("--scale", type=float, default=1, help="times the usual numbers")
    parser.add_argument("--minutes", type=float, help="repeat until so much time has passed")
    parsed = parser.parse_args(arguments)
    unknown = set(parsed.names) - {soak.name for soak in SOAKS}
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    chosen = [soak for soak in SOAKS if not parsed.names or soak.name in parsed.names]
    logging.disable(logging.CRITICAL)  # the faults are meant
    deadline = time.monotonic() + (parsed.minutes or 0) * 60
    while True:
        for soak in chosen:
            _run(soak, max(1, int(soak.count * parsed.scale)))
        if time.monotonic() >= deadline:
            return 0


def _run(soak: Soak, count: int) -> None:
    print(f"{soak.name}: {count:,} {soak.unit} …", end="", flush=True)
    begun = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="kafkapy-soak-") as directory:
            figures = soak.run(Path(directory), count)
    except pytest.skip.Exception as e:
        print(f" skipped: {e}", flush=True)
        return
    took_s = time.monotonic() - begun
    told = "".join(f"; {name}: {value}" for name, value in figures.items())
    print(f" {took_s:.0f} s{told}", flush=True)


def _stop(server: ServerProcess) -> None:
    code = server.stop()
    assert code == 0, server.output()


if __name__ == "__main__":
    sys.exit(main())
