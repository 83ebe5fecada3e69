"""A broker inside the process of a test."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import count
from pathlib import Path
from uuid import uuid4

from kafkapy.common.errors import InvalidConfigurationError, KafkaError
from kafkapy.metadata.end_point import EndPoint
from kafkapy.network.acceptor import open_server_socket
from kafkapy.network.socket_server_config import SocketServerConfig
from kafkapy.testing.broker_clock import BrokerClock
from kafkapy.testing.broker_handle import BrokerHandle, Checkpoint
from kafkapy.testing.broker_image import BrokerImage, copy_as_crashed
from kafkapy.testing.data_directory import DataDirectory
from kafkapy.testing.fault_plan import FaultPlan
from kafkapy.testing.faults import Faults
from kafkapy.testing.faulty_file_system import FaultyFileSystem
from kafkapy.testing.incarnation import Fingerprint, Incarnation
from kafkapy.testing.intercepted_apis import INTERNAL_LISTENER
from kafkapy.testing.recorded_request import RecordedRequest
from kafkapy.testing.request_log import RequestLog

log = logging.getLogger(__name__)

_DEFAULTS = {
    "broker.id": "0",
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT",
    "prometheus.port": "-1",
    # One client or two, not thousands: few threads start faster.
    "num.network.threads": "1",
    "num.io.threads": "4",
    "background.threads": "1",
    "num.recovery.threads.per.data.dir": "1",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    # A test does not want to wait for members that never come.
    "group.initial.rebalance.delay.ms": "0",
}
_OWN = frozenset(
    {
        "log.dir",
        "log.dirs",
        "zookeeper.connect",
        "advertised.listeners",
        "inter.broker.listener.name",
        "control.plane.listener.name",
    }
)
_SETTLE_TIMEOUT_MS = 10_000
_UNSTARTED = "the broker is not running"


class EmbeddedBroker(BrokerHandle):
    """A whole broker on free ports of this machine, with data that go when it stops.

    Rolling back does not repair the running broker: another one, started beforehand from the
    checkpoint and with its clock standing still, takes over the ports. So whatever a restart
    restores, a rollback restores.
    """

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        """`properties` as in server.properties. Raises InvalidConfigurationError."""
        own = sorted(_OWN & set(properties or {}))
        if own:
            raise InvalidConfigurationError(f"An embedded broker sets {', '.join(own)} itself")
        # constant after construction
        merged = {**_DEFAULTS, **(properties or {})}
        for name, value in merged.items():
            if not isinstance(value, str):
                raise InvalidConfigurationError(
                    f"{name}: expected text, as in server.properties, not {value!r}"
                )
        if not merged["listeners"].strip():
            raise InvalidConfigurationError("listeners: an embedded broker needs one at least")
        merged["listeners"] += f",{INTERNAL_LISTENER}://127.0.0.1:0"
        merged["listener.security.protocol.map"] += f",{INTERNAL_LISTENER}:PLAINTEXT"
        merged["inter.broker.listener.name"] = INTERNAL_LISTENER
        self._properties = merged
        self._file_system = FaultyFileSystem(sync=False)
        self.fault_plan = FaultPlan(self._file_system)
        self._request_log = RequestLog()
        super().__init__(
            Faults(self.fault_plan),
            BrokerClock(self._advance, lambda: self._life.time.milliseconds()),
        )
        self._name = uuid4().hex
        self._numbers = count(1)
        self._lock = threading.RLock()
        # guarded by self._lock
        self._base: DataDirectory | None = None
        self._owner_pid: int | None = None
        self._sockets: dict[str, socket.socket] = {}
        self._bootstrap_servers: str | None = None
        self._current: Incarnation | None = None
        self._opened_as: tuple[Fingerprint, BrokerImage] | None = None
        self._failure: str | None = None
        self._images: dict[Checkpoint, BrokerImage] = {}
        # The next life, begun before it is needed, and the image it begins with.
        self._standby: tuple[BrokerImage | None, Future[Incarnation]] | None = None
        # Begins and ends all lives: an interrupt of the test's thread leaves none half begun.
        self._worker: ThreadPoolExecutor | None = None
        # Those that have not ended. Changed by the worker alone.
        self._lives: set[Incarnation] = set()

    # Life

    def start(self) -> None:
        with self._lock:
            if self._current is not None:
                raise KafkaError("the broker is running already")
            self.stop()  # a restart that failed has left its data
            self._base = DataDirectory()
            self._owner_pid = os.getpid()
            self._worker = ThreadPoolExecutor(1, thread_name_prefix="kafkapy-testing")
            try:
                # An interrupt while the pool starts its thread would have it start another.
                self._worker.submit(int).result()
                self._enter(self._begun(None))
            except BaseException:
                self.stop()
                raise

    def stop(self) -> None:
        if self._owner_pid not in (None, os.getpid()):
            return  # a fork of the process whose broker it is: threads and data are not here
        with self._lock:
            self._standby = None
            self._current = None
            self._bootstrap_servers = None
            if self._worker is not None:
                self._worker.submit(self._discard_all).result()
                self._worker.shutdown()
                self._worker = None
            for sock in self._sockets.values():
                sock.close()
            self._sockets.clear()
            self._images.clear()
            self._opened_as = None
            if self._base is not None:
                self._base.delete()
                self._base = None

    def restart(self, *, clean: bool = True) -> None:
        with self._lock:
            old = self._life
            self._current = None
            try:
                self._enter(self._successor(old, clean=clean))
            except BaseException:
                self._bootstrap_servers = None
                raise

    @property
    def bootstrap_servers(self) -> str:
        # Also while a restart goes on: the sockets outlast it, and clients wait.
        if self._bootstrap_servers is None:
            raise KafkaError(_UNSTARTED)
        return self._bootstrap_servers

    @property
    def log_dir(self) -> Path:
        return self._life.directory

    @property
    def failure(self) -> str | None:
        return self._failure

    @property
    def _life(self) -> Incarnation:
        current = self._current
        if current is None:
            raise KafkaError(_UNSTARTED)
        return current

    # Going back

    def checkpoint(self) -> Checkpoint:
        with self._lock:
            if self._failure is not None:
                raise KafkaError(f"the broker cannot be checkpointed: {self._failure}")
            image = self._unchanged_image()
            if image is None:
                # The faults are for what clients have written, not for what a checkpoint writes.
                with self.fault_plan.storage_spared():
                    image = self._life.capture(self._new_directory())
            checkpoint = Checkpoint(next(self._numbers), self._name)
            self._images[checkpoint] = image
            self._prepare(image)
            return checkpoint

    def rollback(self, checkpoint: Checkpoint) -> None:
        with self._lock:
            image = self._images.get(checkpoint)
            if image is None:
                raise KafkaError(f"{checkpoint} is of another broker, or was discarded")
            following = self._begun(image)
            old = self._current  # None if a restart has failed
            if old is not None:
                self._running_worker().submit(old.close_listeners).result()
            self._enter(following)
            self._opened_as = (following.fingerprint(), image)
            # First the next life, since the test may want it soon.
            self._prepare(image)
            if old is not None:
                self._running_worker().submit(self._discard, old)

    def discard(self, checkpoint: Checkpoint) -> None:
        with self._lock:
            image = self._images.pop(checkpoint, None)
            if image is None or image in self._images.values():
                return
            if self._opened_as is not None and self._opened_as[1] is image:
                return  # the next checkpoint may well be the same: keep what is prepared
            self._forget(image)

    def _unchanged_image(self) -> BrokerImage | None:
        """The image this life began with, if nothing has been stored since."""
        if self._opened_as is None:
            return None
        fingerprint, image = self._opened_as
        if self._life.fingerprint() == fingerprint:
            return image
        self._opened_as = None
        if image not in self._images.values():
            self._forget(image)
        return None

    def _forget(self, image: BrokerImage) -> None:
        if self._standby is not None and self._standby[0] is image:
            self._drop_standby()
        self._running_worker().submit(image.delete)

    # What happened

    def requests(
        self, api: str | None = None, *, topic: str | None = None, client_id: str | None = None
    ) -> list[RecordedRequest]:
        return self._request_log.requests(api, topic=topic, client_id=client_id)

    def clear_requests(self) -> None:
        self._request_log.clear()

    def _advance(self, ms: int) -> None:
        time = self._life.time
        time.advance(ms)
        time.settle(_SETTLE_TIMEOUT_MS)

    # Lives

    def _enter(self, life: Incarnation) -> None:
        self._failure = None
        self._opened_as = None
        self.fault_plan.directory = f"{life.directory}/"
        self._current = life
        self._bootstrap_servers = _address_of(life)
        life.open()

    def _prepare(self, image: BrokerImage | None) -> None:
        if self._standby is not None and self._standby[0] is image:
            return
        following = self._running_worker().submit(self._new_life, image)
        self._drop_standby()
        self._standby = (image, following)

    def _begun(self, image: BrokerImage | None) -> Incarnation:
        """A life that begins with an image, the one in stand-by if it does. Raises KafkaError."""
        self._prepare(image)
        assert self._standby is not None
        _, prepared = self._standby
        wait([prepared])
        self._standby = None
        return prepared.result()

    def _drop_standby(self) -> None:
        if self._standby is None:
            return
        _, prepared = self._standby
        self._standby = None
        if not prepared.cancel():
            self._running_worker().submit(lambda: self._discard(prepared.result()))

    def _successor(self, old: Incarnation, *, clean: bool) -> Incarnation:
        worker = self._running_worker()
        worker.submit(old.close_listeners).result()
        tree = old.tree_image
        if clean:
            worker.submit(self._end, old).result()
            directory = old.directory
        else:
            directory = self._new_directory()
            copy_as_crashed(old.directory, directory)
            worker.submit(self._discard, old).result()
        return worker.submit(
            self._started, directory, tree=tree, clock_offset_ms=old.time.offset_ms
        ).result()

    def _new_life(self, image: BrokerImage | None) -> Incarnation:
        directory = self._new_directory()
        if image is None:
            return self._started(directory)
        image.restore(directory)
        return self._started(directory, tree=image.tree, clock_offset_ms=image.clock_offset_ms)

    def _started(
        self, directory: Path, *, tree: bytes | None = None, clock_offset_ms: int = 0
    ) -> Incarnation:
        life = Incarnation(
            directory,
            self._properties,
            faults=self.fault_plan,
            request_log=self._request_log,
            file_system=self._file_system,
            open_socket=self._open_socket,
            on_fatal_error=lambda reason: self._on_fatal_error(life, reason),
            tree=tree,
            clock_offset_ms=clock_offset_ms,
        )
        life.start()
        self._lives.add(life)
        return life

    def _end(self, life: Incarnation) -> None:
        self._lives.discard(life)
        life.stop()

    def _discard(self, life: Incarnation) -> None:
        self._lives.discard(life)
        try:
            life.discard()
        except Exception:
            log.exception("A broker that is not needed any more could not be stopped")

    def _discard_all(self) -> None:
        for life in list(self._lives):
            self._discard(life)

    def _running_worker(self) -> ThreadPoolExecutor:
        if self._worker is None:
            raise KafkaError(_UNSTARTED)
        return self._worker

    def _new_directory(self) -> Path:
        base = self._base
        if base is None:
            raise KafkaError(_UNSTARTED)
        return base.path / f"{next(self._numbers)}"

    def _open_socket(self, end_point: EndPoint, config: SocketServerConfig) -> socket.socket:
        """All lives listen on the same sockets, so that no connection is refused in between."""
        if end_point.listener_name == INTERNAL_LISTENER:
            return open_server_socket(end_point, config)
        sock = self._sockets.get(end_point.listener_name)
        if sock is None:
            sock = self._sockets[end_point.listener_name] = open_server_socket(end_point, config)
        return sock.dup()

    def _on_fatal_error(self, life: Incarnation, reason: str) -> None:
        # One that was discarded loses its directory, which is none of the test's business.
        if life is self._current:
            log.critical("%s", reason)
            self._failure = reason


def _address_of(life: Incarnation) -> str:
    end_point = next(e for e in life.server.bound_listeners if e.listener_name != INTERNAL_LISTENER)
    host = end_point.host or "127.0.0.1"
    return f"[{host}]:{end_point.port}" if ":" in host else f"{host}:{end_point.port}"
