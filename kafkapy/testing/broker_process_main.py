"""The program that a BrokerProcess runs: a broker that obeys the one who started it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from multiprocessing.connection import Connection

from kafkapy.testing.broker_handle import Checkpoint
from kafkapy.testing.control_channel import ControlChannel
from kafkapy.testing.embedded_broker import EmbeddedBroker
from kafkapy.testing.fault_plan import FaultStatus
from kafkapy.testing.fault_specs import FaultSpec, RequestFault
from kafkapy.testing.recorded_request import RecordedRequest


class _Controlled:
    """The functions that the other side may call, by their names."""

    def __init__(self, connection: Connection) -> None:
        self.ended = threading.Event()
        self._broker: EmbeddedBroker | None = None
        names = (
            "start stop restart bootstrap_servers log_dir failure checkpoint rollback discard "
            "requests clear_requests advance milliseconds add_fault clear_faults fault_status"
        )
        functions = {name: getattr(self, name) for name in names.split()}
        self._channel = ControlChannel(connection, functions, on_end=self.ended.set)

    @property
    def broker(self) -> EmbeddedBroker:
        assert self._broker is not None
        return self._broker

    def start(self, properties: Mapping[str, str]) -> None:
        broker = EmbeddedBroker(properties)
        broker.start()
        self._broker = broker

    def stop(self) -> None:
        if self._broker is not None:
            self._broker.stop()

    def restart(self, clean: bool) -> None:
        self.broker.restart(clean=clean)

    def bootstrap_servers(self) -> str:
        return self.broker.bootstrap_servers

    def log_dir(self) -> str:
        return str(self.broker.log_dir)

    def failure(self) -> str | None:
        return self.broker.failure

    def checkpoint(self) -> Checkpoint:
        return self.broker.checkpoint()

    def rollback(self, checkpoint: Checkpoint) -> None:
        self.broker.rollback(checkpoint)

    def discard(self, checkpoint: Checkpoint) -> None:
        self.broker.discard(checkpoint)

    def requests(
        self, api: str | None, topic: str | None, client_id: str | None
    ) -> list[RecordedRequest]:
        return self.broker.requests(api, topic=topic, client_id=client_id)

    def clear_requests(self) -> None:
        self.broker.clear_requests()

    def advance(self, ms: int) -> None:
        self.broker.time.advance(milliseconds=ms)

    def milliseconds(self) -> int:
        return self.broker.time.milliseconds()

    def add_fault(self, spec: FaultSpec, predicate: int | None) -> int:
        """A predicate stays with the test, which is asked each time."""
        if predicate is not None and isinstance(spec, RequestFault):
            spec = replace(
                spec,
                predicate=lambda request: bool(self._channel.call("predicate", predicate, request)),
            )
        return self.broker.fault_plan.add(spec)

    def clear_faults(self) -> None:
        self.broker.fault_plan.clear()

    def fault_status(self) -> list[FaultStatus]:
        return self.broker.fault_plan.status()


def main(descriptor: int) -> None:
    controlled = _Controlled(Connection(descriptor))
    controlled.ended.wait()
    controlled.stop()
