"""A broker's life inside a test."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kafkapy.common.errors import InvalidConfigurationError, KafkaError
from kafkapy.testing import BrokerHandle, BrokerProcess, EmbeddedBroker
from tests.helpers.waiting import wait_until


def produce(broker: BrokerHandle, topic: str, *values: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for value in values:
        producer.produce(topic, value, "key")
    assert producer.flush(20) == 0


def consume(broker: BrokerHandle, topic: str, count: int) -> list[bytes | None]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "test"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    messages = consumer.consume(count, timeout=20)
    consumer.close()
    return [message.value() for message in messages]


def open_descriptors() -> set[str]:
    return {
        f"{number} {os.readlink(f'/proc/self/fd/{number}')}"
        for number in os.listdir("/proc/self/fd")
        if os.path.exists(f"/proc/self/fd/{number}")
    }


def interrupt_the_first_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C, or the time-out of a test, while the test waits for its broker."""
    interrupted = threading.Event()

    def interrupting(wait: Callable[..., object]) -> Callable[..., object]:
        def wait_or_not(*arguments: object) -> object:
            if threading.current_thread() is threading.main_thread() and not interrupted.is_set():
                interrupted.set()
                raise KeyboardInterrupt
            return wait(*arguments)

        return wait_or_not

    for name in ("result", "exception"):
        monkeypatch.setattr(Future, name, interrupting(getattr(Future, name)))


def test_a_real_client_produces_and_consumes(either_broker: BrokerHandle) -> None:
    either_broker.create_topic("x")

    produce(either_broker, "x", "a", "b")

    assert consume(either_broker, "x", 2) == [b"a", b"b"]
    assert [record.value for record in either_broker.records("x")] == [b"a", b"b"]
    assert either_broker.topics()["x"] == 1


@pytest.mark.parametrize("clean", [True, False])
def test_a_restart_keeps_the_data_and_the_port(either_broker: BrokerHandle, clean: bool) -> None:
    topic = f"restarted-{clean}"
    either_broker.create_topic(topic, configs={"retention.ms": "1234567"})
    produce(either_broker, topic, "a")
    before = either_broker.bootstrap_servers

    either_broker.restart(clean=clean)

    assert either_broker.bootstrap_servers == before
    assert consume(either_broker, topic, 1) == [b"a"]
    assert topic in either_broker.topics()


def test_stopping_leaves_nothing_behind() -> None:
    with EmbeddedBroker():  # so that modules are loaded
        pass
    threads, descriptors = set(threading.enumerate()), open_descriptors()
    broker = EmbeddedBroker()
    broker.start()
    broker.create_topic("x")
    broker.rollback(broker.checkpoint())
    base = broker.log_dir.parent

    broker.stop()
    broker.stop()

    assert {t for t in threading.enumerate() if t not in threads} == set()
    assert open_descriptors() - descriptors == set()
    assert not base.exists()


@pytest.mark.parametrize("broker_class", [EmbeddedBroker, BrokerProcess])
@pytest.mark.parametrize("is_stopped", [True, False])
def test_a_forked_child_does_not_take_the_broker_with_it(broker_class, is_stopped: bool) -> None:
    # In a process of one thread, as programs that fork are.
    program = f"""
import os, sys
from kafkapy.testing import {broker_class.__name__}
broker = {broker_class.__name__}()
broker.start()
broker.create_topic("x")
child = os.fork()
if child == 0:
    if {is_stopped}:
        broker.stop()
    sys.exit(5)
assert os.waitpid(child, 0)[1] == 5 << 8
assert broker.log_dir.exists()
broker.create_topic("y")
broker.stop()
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_what_a_killed_process_left_goes_with_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    # As the time-out of a test does that cannot interrupt it.
    program = """
import os
from kafkapy.testing import EmbeddedBroker
EmbeddedBroker().start()
os._exit(1)
"""
    subprocess.run([sys.executable, "-c", program], timeout=60)
    (left,) = tmp_path.iterdir()

    with EmbeddedBroker() as one, BrokerProcess() as other, EmbeddedBroker():
        assert not left.exists()
        assert one.log_dir.exists()
        assert other.log_dir.exists()

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("action", ["start", "checkpoint", "rollback", "restart"])
def test_an_interrupt_leaves_nothing_behind(action: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with EmbeddedBroker():
        pass
    threads, descriptors = set(threading.enumerate()), open_descriptors()
    broker = EmbeddedBroker()
    if action != "start":
        broker.start()
    arguments = [broker.checkpoint()] if action == "rollback" else []
    if action == "checkpoint":
        broker.checkpoint()
        broker.create_topic("x")

    interrupt_the_first_wait(monkeypatch)
    with suppress(KeyboardInterrupt):
        getattr(broker, action)(*arguments)
    monkeypatch.undo()

    broker.stop()
    assert {t for t in threading.enumerate() if t not in threads} == set()
    assert open_descriptors() - descriptors == set()


def test_a_restart_that_fails_ends_neither_going_back_nor_starting_anew() -> None:
    def fail_to_restart() -> None:
        shutil.rmtree(broker.log_dir)
        broker.log_dir.touch()
        with pytest.raises(KafkaError, match="can be used"):
            broker.restart()
        with pytest.raises(KafkaError, match="not running"):
            broker.topics()

    with EmbeddedBroker() as broker:
        broker.create_topic("x")
        with broker.rolled_back():
            base = broker.log_dir.parent
            fail_to_restart()
        assert broker.topics() == {"x": 1}

        fail_to_restart()
        broker.start()
        assert broker.topics() == {}
        assert not base.exists()


def test_a_broker_process_ends_when_told_and_when_its_parent_is_gone() -> None:
    broker = BrokerProcess()
    broker.start()
    process = Path(f"/proc/{broker.pid}")
    log_dir = broker.log_dir
    # What its parent's death would do to the control channel.
    assert broker._channel is not None
    broker._channel.close()

    wait_until(lambda: not log_dir.exists())

    with pytest.raises(KafkaError, match="process has ended"):
        broker.checkpoint()
    broker.stop()
    assert not process.exists()


def test_a_broker_process_that_was_killed_leaves_nothing_behind() -> None:
    broker = BrokerProcess()
    broker.start()
    base = broker.log_dir.parent
    os.kill(broker.pid, signal.SIGKILL)

    broker.stop()

    assert not base.exists()


def test_a_broker_process_that_cannot_be_started_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    descriptors = open_descriptors()
    monkeypatch.setattr(sys, "executable", "/no/such/python")

    with pytest.raises(KafkaError, match=r"no process can be started .*/no/such/python"):
        BrokerProcess().start()

    assert open_descriptors() == descriptors


def test_a_broker_process_is_not_misled_by_files_of_the_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "selectors.py").write_text("raise SystemError")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)

    with BrokerProcess() as broker:
        assert broker.topics() == {}


def test_brokers_share_a_process_and_may_be_started_again() -> None:
    with EmbeddedBroker() as one, EmbeddedBroker() as other:
        one.create_topic("x")
        assert one.bootstrap_servers != other.bootstrap_servers
        assert other.topics() == {}
        with pytest.raises(KafkaError, match="running already"):
            one.start()
    with pytest.raises(KafkaError, match="not running"):
        _ = one.bootstrap_servers
    with one:
        assert one.topics() == {}


def test_properties_reach_the_broker_on_every_listener() -> None:
    properties = {
        "listeners": "PLAINTEXT://127.0.0.1:0,OTHER://localhost:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT",
        "num.partitions": "3",
    }
    with EmbeddedBroker(properties) as broker:
        broker.create_topic("x", partitions=-1)

        assert broker.topics() == {"x": 3}


@pytest.mark.parametrize(
    ("broker_class", "name", "value", "message"),
    [
        (EmbeddedBroker, "log.dirs", "/tmp/x", "An embedded broker sets log.dirs itself"),
        (EmbeddedBroker, "num.io.threads", "none", "num.io.threads"),
        (BrokerProcess, "num.io.threads", "none", "num.io.threads"),
        (EmbeddedBroker, "num.partitions", 3, "num.partitions: expected text, .* not 3"),
        (BrokerProcess, "num.partitions", 3, "num.partitions: expected text, .* not 3"),
        (EmbeddedBroker, "listeners", " ", "listeners: an embedded broker needs one"),
    ],
)
def test_bad_settings_are_named(broker_class, name: str, value: Any, message: str) -> None:
    with pytest.raises(InvalidConfigurationError, match=message):
        broker_class({name: value}).start()


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        broker = EmbeddedBroker({"listeners": f"PLAINTEXT://{address}"})

        with pytest.raises(KafkaError, match=f"Cannot listen on PLAINTEXT://{address}"):
            broker.start()
    assert broker._base is None


def test_a_topic_that_cannot_be_made_says_why(broker: EmbeddedBroker) -> None:
    with pytest.raises(KafkaError, match="topic a/b is not created"):
        broker.create_topic("a/b")
    configs: Any = {"retention.ms": 60_000}
    with pytest.raises(KafkaError, match=r"c is not created: retention\.ms: expected text, not 6"):
        broker.create_topic("c", configs=configs)
    with pytest.raises(KafkaError, match="topic none is not deleted"):
        broker.delete_topic("none")
