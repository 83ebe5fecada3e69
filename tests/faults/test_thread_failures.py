"""A background thread that fails is restarted, or the broker stops and says so; it never limps."""

import contextlib
import errno
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkapy.common.errors import Errors, KafkaStorageError
from kafkapy.common.metrics.naming import MetricsNaming
from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.protocol.messages.create_topics import CreateTopicsRequest
from kafkapy.controller.topic_change_processor import TopicChangeProcessor
from kafkapy.network.acceptor import Acceptor
from kafkapy.network.processor import Processor
from kafkapy.network.request_channel import RequestChannel
from kafkapy.purgatory.delayed_operation_purgatory import DelayedOperationPurgatory
from kafkapy.replication.delayed_fetch import DelayedFetch
from kafkapy.replication.replica_manager import ReplicaManager
from kafkapy.server import metrics_server
from kafkapy.server.config_handler import TopicConfigHandler
from kafkapy.server.kafka_apis import KafkaApis
from kafkapy.storage.log_manager import LogManager
from kafkapy.utils.time import SystemTime
from kafkapy.zk.kafka_zk_client import KafkaZkClient
from tests.faults.faulty_broker import FaultyBroker, wait_for_leaders
from tests.helpers.api import (
    TOPIC_RESOURCE,
    alter_configs,
    creatable,
    create_topic,
    delete_topic,
    fetch,
    fetch_request,
    fetch_topic,
    fetched_values,
    produce,
    produced,
)
from tests.helpers.broker import Client, ConnectionClosed
from tests.helpers.crashing_fs import CrashingFileSystem
from tests.helpers.records import records
from tests.helpers.server_process import PROPERTIES, overrides
from tests.helpers.waiting import wait_until

_TOO_LARGE = Errors.MESSAGE_TOO_LARGE.code


class Sabotage:
    """Makes a method raise the next `times` times it is called, then work again."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        owner: type,
        method: str,
        error: type[Exception] = RuntimeError,
    ) -> None:
        self.failures = 0
        self._left = 0
        original: Callable[..., Any] = getattr(owner, method)

        def sabotaged(*args: Any, **kwargs: Any) -> Any:
            if self._left > 0:
                self._left -= 1
                self.failures += 1
                raise error("sabotage")
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, method, sabotaged)

    def fail(self, times: int) -> None:
        self._left = times


@pytest.fixture
def deaths(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of threads that ended by an exception."""
    names: list[str] = []
    monkeypatch.setattr(
        threading, "excepthook", lambda death: names.append(death.thread.name), raising=True
    )
    return names


@pytest.fixture
def file_system() -> CrashingFileSystem:
    return CrashingFileSystem()


@pytest.fixture
def broker(tmp_path: Path, file_system: CrashingFileSystem) -> Iterator[FaultyBroker]:
    broker = FaultyBroker([tmp_path / "a", tmp_path / "b"], file_system)
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()


def _works(broker: FaultyBroker, topic: str) -> bool:
    """Whether a new client is served as if nothing had happened."""
    with broker.client() as client:
        offset = produced(client, topic, records("well"))
        long_poll = fetch(client, topic, offset, max_wait_ms=100, min_bytes=10**6)
        return fetched_values(long_poll) == [b"well"]


def _ask(client: Client, topic: str) -> None:
    """A request whose connection may be closed instead of an answer."""
    with contextlib.suppress(ConnectionClosed):
        produce(client, topic, records("x"))


@pytest.mark.parametrize(
    ("owner", "method"),
    [
        pytest.param(Processor, "_poll", id="processor polling"),
        pytest.param(Processor, "_process_completed_receives", id="processor receiving"),
        pytest.param(Processor, "_process_new_responses", id="processor sending"),
        pytest.param(Acceptor, "_accept_new_connections", id="acceptor"),
        pytest.param(KafkaApis, "handle", id="request handler"),
        pytest.param(ReplicaManager, "append_records", id="replica manager"),
    ],
)
def test_broker_serves_on_after_errors_on_the_request_path(
    broker: FaultyBroker,
    monkeypatch: pytest.MonkeyPatch,
    deaths: list[str],
    owner: type,
    method: str,
) -> None:
    with broker.client() as client:
        topic = create_topic(client)
    sabotage = Sabotage(monkeypatch, owner, method)

    sabotage.fail(3)
    for _ in range(3):
        with broker.client() as client:
            _ask(client, topic)
    wait_until(lambda: sabotage.failures == 3)

    assert _works(broker, topic)
    assert deaths == []
    assert broker.fatal_errors == []


def test_controller_goes_on_after_a_failed_event(
    broker: FaultyBroker, monkeypatch: pytest.MonkeyPatch, deaths: list[str]
) -> None:
    sabotage = Sabotage(monkeypatch, TopicChangeProcessor, "_on_new_partition_creation")

    with broker.client() as client:
        sabotage.fail(1)
        request = CreateTopicsRequest(topics=[creatable("lost")], timeout_ms=200)
        refused = client.request(request).topics[0].error_code
        topic = create_topic(client)
    works = _works(broker, topic)
    # The next controller, here the same broker, takes up what was left.
    broker.restart()
    with broker.client() as client:
        wait_for_leaders(client, "lost")

    assert refused == Errors.REQUEST_TIMED_OUT.code
    assert works
    assert _works(broker, "lost")
    assert deaths == []


def test_controller_takes_up_what_the_store_could_not_write(
    broker: FaultyBroker, monkeypatch: pytest.MonkeyPatch, deaths: list[str]
) -> None:
    creating, changing, leaving, electing, deleting = (
        Sabotage(monkeypatch, KafkaZkClient, method, KafkaStorageError)
        for method in (
            "create_topic_partition_states_raw",
            "set_topic_partition_states_raw",
            "delete_controller",
            "register_controller_and_increment_controller_epoch",
            "delete_topic_znode",
        )
    )

    with broker.client() as client:
        for sabotage in (creating, leaving, electing):
            sabotage.fail(1)
        topic = create_topic(client)
        works = _works(broker, topic)
        for sabotage in (changing, deleting):
            sabotage.fail(1)
        delete_topic(client, topic)
        # Refused while the topic is leaving, and while there is no controller.
        again = CreateTopicsRequest(topics=[creatable(topic)], timeout_ms=15_000)
        wait_until(lambda: client.request(again).topics[0].error_code == Errors.NONE.code)

    assert works
    assert _works(broker, topic)
    failures = [s.failures for s in (creating, changing, leaving, electing, deleting)]
    assert failures == [1, 1, 1, 1, 1]
    assert deaths == []


def test_scheduled_task_that_failed_is_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deaths: list[str]
) -> None:
    sabotage = Sabotage(monkeypatch, LogManager, "checkpoint_log_recovery_offsets")
    sabotage.fail(2)
    settings = {
        "log.flush.offset.checkpoint.interval.ms": "20",
        "log.initial.task.delay.ms": "1",
    }
    broker = FaultyBroker([tmp_path / "a"], CrashingFileSystem(), settings)
    broker.start()
    try:
        wait_until(lambda: sabotage.failures == 2)
        wait_until((tmp_path / "a" / "recovery-point-offset-checkpoint").exists)
    finally:
        broker.stop()

    assert deaths == []


def test_expired_request_that_fails_does_not_keep_others_from_expiring(
    broker: FaultyBroker, monkeypatch: pytest.MonkeyPatch, deaths: list[str]
) -> None:
    sabotage = Sabotage(monkeypatch, DelayedFetch, "run")
    with broker.client() as client:
        topic = create_topic(client)
        sabotage.fail(1)
        client.send(fetch_request(fetch_topic(topic, {0: 0}), max_wait_ms=20), 12)
        wait_until(lambda: sabotage.failures == 1)

    assert _works(broker, topic)
    assert deaths == []


def test_configuration_is_followed_after_a_failed_notification(
    broker: FaultyBroker, monkeypatch: pytest.MonkeyPatch, deaths: list[str]
) -> None:
    sabotage = Sabotage(monkeypatch, TopicConfigHandler, "process_config_changes")
    with broker.client() as client:
        topic = create_topic(client)
        sabotage.fail(1)
        alter_configs(client, TOPIC_RESOURCE, topic, ("max.message.bytes", 0, "100"))
        wait_until(lambda: sabotage.failures == 1)
        alter_configs(client, TOPIC_RESOURCE, topic, ("max.message.bytes", 0, "200"))
        wait_until(lambda: produce(client, topic, records(b"x" * 500)).error_code == _TOO_LARGE)

    assert deaths == []


@pytest.mark.parametrize(
    ("owner", "method"),
    [
        pytest.param(DelayedOperationPurgatory, "advance_clock", id="expiration reaper"),
        pytest.param(RequestChannel, "receive_request", id="request handler"),
    ],
)
def test_thread_that_cannot_go_on_reaches_the_process(
    broker: FaultyBroker,
    monkeypatch: pytest.MonkeyPatch,
    deaths: list[str],
    owner: type,
    method: str,
) -> None:
    Sabotage(monkeypatch, owner, method).fail(1)

    wait_until(lambda: deaths or broker.fatal_errors)


def test_broker_stops_when_failed_directories_can_no_longer_be_handled(
    broker: FaultyBroker,
    monkeypatch: pytest.MonkeyPatch,
    file_system: CrashingFileSystem,
    tmp_path: Path,
) -> None:
    with broker.client() as client:
        topic = create_topic(client, partitions=2)
        Sabotage(monkeypatch, LogManager, "handle_log_dir_failure").fail(1)
        file_system.fail("write", path_contains=str(tmp_path / "b"), sticky=True)
        for partition in range(2):
            produce(client, topic, records("x"), partition=partition)

    wait_until(lambda: broker.fatal_errors)
    assert "thread" in broker.fatal_errors[0]


def test_directory_fails_although_the_controller_cannot_be_told(
    broker: FaultyBroker,
    monkeypatch: pytest.MonkeyPatch,
    file_system: CrashingFileSystem,
    tmp_path: Path,
) -> None:
    def fail(*_: object) -> None:
        raise KafkaStorageError("the metadata store is on that disk")

    monkeypatch.setattr(KafkaZkClient, "propagate_log_dir_event", fail)
    with broker.client() as client:
        topic = create_topic(client, partitions=2)
        file_system.fail("write", path_contains=str(tmp_path / "b"), sticky=True)
        codes = {produce(client, topic, records("x"), partition=p).error_code for p in range(2)}
        wait_until(lambda: broker.offline_log_dirs() == 1)

    assert codes == {Errors.NONE.code, Errors.KAFKA_STORAGE_ERROR.code}
    assert broker.fatal_errors == []


_DYING_THREAD = """
import sys, threading
from kafkapy.tools import kafka_server_start

def die():
    raise RuntimeError("worn out")

def report(*args, report=kafka_server_start._report):
    report(*args)
    threading.Thread(target=die, name="poor-thread").start()

kafka_server_start._report = report
sys.exit(kafka_server_start.main())
"""


def test_process_ends_with_a_clear_message_when_a_thread_dies(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _DYING_THREAD, str(PROPERTIES), *overrides(tmp_path / "logs")],
        capture_output=True,
        text=True,
        timeout=40,
    )

    assert ended.returncode == 1
    last_line = ended.stderr.splitlines()[-1]
    assert last_line == "Stopped because thread poor-thread died: RuntimeError('worn out')"
    assert (tmp_path / "logs" / ".kafka_cleanshutdown").exists()


class _ExhaustedSocket:
    """A listening socket whose first `accept` finds no descriptor left."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._failed = False

    def accept(self) -> Any:
        if not self._failed:
            self._failed = True
            raise OSError(errno.EMFILE, "Too many open files")
        return self._socket.accept()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)


def test_metrics_are_served_after_descriptors_ran_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_server, "_PAUSE_AFTER_ERROR_S", 0.01)
    server = metrics_server.MetricsServer(
        MetricsRegistry(), MetricsNaming.JMX_EXPORTER, SystemTime(), host="127.0.0.1", port=0
    )
    monkeypatch.setattr(server, "_socket", _ExhaustedSocket(server._socket))
    server.start()
    try:
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
            connection.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            answer = connection.recv(100)
    finally:
        server.close()

    assert answer.startswith(b"HTTP/1.1 200")
