"""A broker in a process of its own, for tests."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from kafkapy.common.errors import KafkaError
from kafkapy.testing.broker_clock import BrokerClock
from kafkapy.testing.broker_handle import BrokerHandle, Checkpoint
from kafkapy.testing.control_channel import ControlChannel
from kafkapy.testing.fault_plan import FaultStatus
from kafkapy.testing.fault_specs import FaultSpec, Predicate, RequestFault
from kafkapy.testing.faults import Faults
from kafkapy.testing.recorded_request import RecordedRequest

# Modules are found where the test finds them, but in the test's directories last: those may well
# hold a file with the name of a module of Python's own.
_PROGRAM = (
    "import sys; number, *path = sys.argv[1:]; sys.path += path; "
    "from kafkapy.testing.broker_process_main import main; main(int(number))"
)
_STOP_TIMEOUT_S = 20


class BrokerProcess(BrokerHandle):
    """As EmbeddedBroker, but the test and the broker do not share an interpreter.

    It is told what to do over a socket pair that it inherits: no port but its listeners' is open.
    It ends with the process that started it.
    """

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        """`properties` as in server.properties; `start` raises what is wrong with them."""
        super().__init__(
            Faults(_RemotePlan(self)),
            BrokerClock(
                lambda ms: self._call("advance", ms), lambda: int(self._call("milliseconds"))
            ),
        )
        self._properties = dict(properties or {})  # constant after construction
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: ControlChannel | None = None
        self._bootstrap_servers = ""
        self._owner_pid: int | None = None
        self._base: Path | None = None
        self._predicates: dict[int, Predicate] = {}
        self._numbers = count(1)

    # Life

    def start(self) -> None:
        if self._process is not None:
            raise KafkaError("the broker is running already")
        self._owner_pid = os.getpid()
        ours, theirs = socket.socketpair()
        with theirs:
            descriptor = theirs.fileno()
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-c", _PROGRAM, str(descriptor), *sys.path],
                    pass_fds=(descriptor,),
                    stdin=subprocess.DEVNULL,
                    # An interrupt at the terminal is for the test, which then stops the broker.
                    start_new_session=True,
                )
            except OSError as e:
                ours.close()
                raise KafkaError(f"no process can be started for the broker: {e}") from e
        self._channel = ControlChannel(
            Connection(ours.detach()), {"predicate": self._evaluate_predicate}
        )
        try:
            self._call("start", self._properties)
            self._bootstrap_servers = self._call("bootstrap_servers")
            self._base = self.log_dir.parent
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        if self._owner_pid not in (None, os.getpid()):
            return  # a fork of the process whose broker it is
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()
        process, self._process = self._process, None
        if process is not None:
            try:
                process.wait(_STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise KafkaError("the broker's process did not end and was killed") from None
            finally:
                if self._base is not None:
                    # It deletes its data itself, unless it was killed.
                    shutil.rmtree(self._base, ignore_errors=True)

    def restart(self, *, clean: bool = True) -> None:
        self._call("restart", clean)

    @property
    def bootstrap_servers(self) -> str:
        if self._channel is None:
            raise KafkaError("the broker is not running")
        return self._bootstrap_servers

    @property
    def log_dir(self) -> Path:
        return Path(self._call("log_dir"))

    @property
    def failure(self) -> str | None:
        failure: str | None = self._call("failure")
        return failure

    @property
    def pid(self) -> int:
        if self._process is None:
            raise KafkaError("the broker is not running")
        return self._process.pid

    # Going back

    def checkpoint(self) -> Checkpoint:
        checkpoint: Checkpoint = self._call("checkpoint")
        return checkpoint

    def rollback(self, checkpoint: Checkpoint) -> None:
        self._call("rollback", checkpoint)

    def discard(self, checkpoint: Checkpoint) -> None:
        self._call("discard", checkpoint)

    # What happened

    def requests(
        self, api: str | None = None, *, topic: str | None = None, client_id: str | None = None
    ) -> list[RecordedRequest]:
        requests: list[RecordedRequest] = self._call("requests", api, topic, client_id)
        return requests

    def clear_requests(self) -> None:
        self._call("clear_requests")

    def add_fault(self, spec: FaultSpec) -> int:
        """For the fault plan: what the other process is to do wrong."""
        predicate = spec.predicate if isinstance(spec, RequestFault) else None
        number = None
        if isinstance(spec, RequestFault) and predicate is not None:
            number = next(self._numbers)
            self._predicates[number] = predicate
            spec = replace(spec, predicate=None)
        return int(self._call("add_fault", spec, number))

    def clear_faults(self) -> None:
        self._call("clear_faults")
        self._predicates.clear()

    def fault_status(self) -> list[FaultStatus]:
        status: list[FaultStatus] = self._call("fault_status")
        return status

    def _evaluate_predicate(self, number: int, request: RecordedRequest) -> bool:
        predicate = self._predicates.get(number)
        return predicate is not None and predicate(request)

    def _call(self, name: str, *arguments: object) -> Any:
        if self._channel is None:
            raise KafkaError("the broker is not running")
        return self._channel.call(name, *arguments)


class _RemotePlan:
    """The fault plan of a broker in another process. Thread-safe."""

    def __init__(self, broker: BrokerProcess) -> None:
        self._broker = broker

    def add(self, spec: FaultSpec) -> int:
        return self._broker.add_fault(spec)

    def clear(self) -> None:
        self._broker.clear_faults()

    def status(self) -> list[FaultStatus]:
        return self._broker.fault_status()
