"""bin/kafka-server-start as a person meets it: what it prints, how it fails, how it ends."""

import contextlib
import os
import re
import signal
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from kafkapy import __version__
from tests.helpers.api import create_topic, fetch, fetched_values, produced
from tests.helpers.records import records
from tests.helpers.server_process import (
    PROPERTIES,
    overrides,
    run_server_start,
    running_server,
)

_CLEAN_SHUTDOWN = ".kafka_cleanshutdown"


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


def _refusal(log_dirs: str | Path, properties: Mapping[str, str] | None = None) -> str:
    """The one line with which the broker refuses to start."""
    ended = run_server_start(str(PROPERTIES), *overrides(log_dirs, properties))
    return _the_one_line(ended.returncode, ended.stdout, ended.stderr)


def _the_one_line(code: int, stdout: str, stderr: str) -> str:
    assert code == 1, stdout + stderr
    assert stdout == ""
    lines = stderr.splitlines()
    assert len(lines) == 1, stderr
    return lines[0]


def test_ready_broker_tells_what_a_person_needs(tmp_path: Path) -> None:
    properties = {"prometheus.port": "0", "broker.id": "7", "no.such.property": "1"}

    with running_server(tmp_path / "logs", tmp_path / "output", properties) as server:
        metrics = re.search(r"http://127\.0\.0\.1:(\d+)/metrics", server.output())
        assert metrics is not None, server.output()
        with (
            socket.create_connection(server.address, timeout=5),
            socket.create_connection(("127.0.0.1", int(metrics[1])), timeout=5),
        ):
            pass
        code = server.stop(signal.SIGINT)

    warning, first, *rest = server.output().splitlines()
    assert code == 0
    assert "WARNING" in warning and "no.such.property" in warning
    assert re.fullmatch(rf"kafkapy {re.escape(__version__)}, broker 7, cluster \S{{22}}", first)
    assert rest[0] == f"listeners: PLAINTEXT://127.0.0.1:{server.address[1]}"
    assert rest[1] == f"log dirs: {tmp_path / 'logs'}"
    assert rest[2] == f"metrics: {metrics[0]}"
    assert re.fullmatch(r"started in \d+ ms", rest[3])
    assert rest[4:] == []


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_next_start_recovers_only_what_was_not_stopped_cleanly(
    tmp_path: Path, end: signal.Signals
) -> None:
    log_dir = tmp_path / "logs"
    with running_server(log_dir, tmp_path / "first") as server:
        with server.client() as client:
            topic = create_topic(client)
            produced(client, topic, records("kept"))
        code = server.stop(end)
    marked_clean = (log_dir / _CLEAN_SHUTDOWN).exists()

    with running_server(log_dir, tmp_path / "second", log_level="INFO") as server:
        marked_while_running = (log_dir / _CLEAN_SHUTDOWN).exists()
        with server.client() as client:
            found = fetched_values(fetch(client, topic))

    was_clean = end == signal.SIGTERM
    assert code == (0 if was_clean else -signal.SIGKILL)
    assert (marked_clean, marked_while_running) == (was_clean, False)
    assert ("recovering logs" in server.output()) == (not was_clean)
    assert found == [b"kept"]


def _cores_of(pid: int) -> set[int]:
    """Those that any of its threads may run on."""
    cores: set[int] = set()
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(ProcessLookupError):
            cores |= os.sched_getaffinity(int(thread))
    return cores


@pytest.mark.skipif(
    sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2,
    reason="needs Linux and two cores to choose from",
)
@pytest.mark.parametrize(("setting", "is_kept"), [("auto", True), ("", False)])
def test_working_broker_keeps_to_one_core(tmp_path: Path, setting: str, is_kept: bool) -> None:
    allowed = os.sched_getaffinity(0)
    with (
        running_server(tmp_path / "logs", tmp_path / "o", {"cpu.affinity": setting}) as server,
        server.client() as client,
    ):
        at_start = _cores_of(server.process.pid)
        topic = create_topic(client)
        # It looks every second, and a broker that has little to do is left alone.
        deadline = time.monotonic() + (20 if is_kept else 2)
        while time.monotonic() < deadline and _cores_of(server.process.pid) == allowed:
            for _ in range(100):
                produced(client, topic, records("busy"))
        cores = _cores_of(server.process.pid)

    assert at_start == allowed
    assert len(cores) == (1 if is_kept else len(allowed))


def test_locked_log_dir_is_refused_by_name(tmp_path: Path) -> None:
    with running_server(tmp_path / "logs", tmp_path / "output") as server:
        line = _refusal(tmp_path / "logs")
        with server.client() as client:
            topic = create_topic(client)

    assert "log.dirs" in line and str(tmp_path / "logs") in line
    assert topic


def test_taken_port_names_listeners(tmp_path: Path, taken_port: int) -> None:
    line = _refusal(tmp_path / "logs", {"listeners": f"PLAINTEXT://127.0.0.1:{taken_port}"})

    assert "listeners" in line and str(taken_port) in line


def test_taken_metrics_port_names_its_property(tmp_path: Path, taken_port: int) -> None:
    line = _refusal(tmp_path / "logs", {"prometheus.port": str(taken_port)})

    assert "prometheus.port" in line and str(taken_port) in line


@pytest.mark.parametrize("below", ["", "below"])
def test_log_dir_that_cannot_be_made_is_refused_by_name(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").touch()
    log_dir = tmp_path / "file" / below

    line = _refusal(log_dir)

    assert "log.dirs" in line and str(log_dir) in line


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num.io.threads", "many"),
        ("num.io.threads", "0"),
        ("listeners", "nonsense"),
        ("listeners", "PLAINTEXT://127.0.0.1:99999"),
        ("log.retention.hours", "1.5"),
        ("auto.create.topics.enable", "perhaps"),
        ("compression.type", "arj"),
        ("broker.id", "zero"),
        ("log.dirs", ""),
    ],
)
def test_bad_value_names_the_property(tmp_path: Path, name: str, value: str) -> None:
    line = _refusal(tmp_path / "logs", {name: value})

    assert name in line


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["no-such.properties"], "no-such.properties"),
        ([str(PROPERTIES.parent)], str(PROPERTIES.parent)),
        ([str(PROPERTIES), "--override", "broker.id"], "--override broker.id"),
        ([str(PROPERTIES), "--override", "=1"], "--override =1"),
    ],
)
def test_bad_argument_is_one_line(arguments: list[str], named: str) -> None:
    ended = run_server_start(*arguments)

    assert named in _the_one_line(ended.returncode, ended.stdout, ended.stderr)


def test_log_dir_of_another_broker_or_cluster_is_refused(tmp_path: Path) -> None:
    log_dir = tmp_path / "logs"
    with running_server(log_dir, tmp_path / "output", {"broker.id": "3"}) as server:
        server.stop()

    of_another_broker = _refusal(log_dir, {"broker.id": "4"})
    meta = log_dir / "meta.properties"
    text = meta.read_text()
    meta.write_text(re.sub(r"cluster\.id=.*", "cluster.id=AAAAAAAAAAAAAAAAAAAAAA", text))
    of_another_cluster = _refusal(log_dir, {"broker.id": "3"})

    assert "broker.id" in of_another_broker and "3" in of_another_broker
    assert "log.dirs" in of_another_cluster and "AAAAAAAAAAAAAAAAAAAAAA" in of_another_cluster


def test_damaged_metadata_store_is_refused_by_name(tmp_path: Path) -> None:
    log_dir = tmp_path / "logs"
    log_dir.mkdir()
    (log_dir / "kafkapy-metadata.sqlite").write_bytes(b"no database" * 1000)

    line = _refusal(log_dir)

    assert "log.dirs" in line and "kafkapy-metadata.sqlite" in line


def test_help_and_version_print_and_end() -> None:
    shown = run_server_start("--help")
    version = run_server_start("--version")

    assert shown.returncode == version.returncode == 0
    assert "--override" in shown.stdout and "-daemon" in shown.stdout
    assert version.stdout == f"kafkapy {__version__}\n"


@pytest.mark.parametrize("connect", ["127.0.0.1:{free_port}", "::::"])
def test_zookeeper_that_cannot_be_reached_is_named(tmp_path: Path, connect: str) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        connect = connect.format(free_port=closed.getsockname()[1])

        ended = run_server_start(
            *("--log-level", "ERROR", str(PROPERTIES)),
            *overrides(
                tmp_path / "logs",
                {"zookeeper.connect": connect, "zookeeper.connection.timeout.ms": "300"},
            ),
        )

    line = _the_one_line(ended.returncode, ended.stdout, ended.stderr)
    assert f"zookeeper.connect={connect}" in line
