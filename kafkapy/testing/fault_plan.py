"""The faults that are in force in a broker."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from kafkapy.common.errors import KafkaError
from kafkapy.testing.fault_specs import FaultSpec, RequestFault, StorageFault
from kafkapy.testing.faulty_file_system import FaultyFileSystem
from kafkapy.testing.recorded_request import RecordedRequest


class FaultStatus(NamedTuple):
    """A fault by its number, and how often it has struck."""

    number: int
    description: str
    fired: int


class FaultTarget(Protocol):
    """Where faults are put: a plan here, or that of a broker in another process."""

    def add(self, spec: FaultSpec) -> int:
        """The number by which `status` lists it."""
        ...

    def clear(self) -> None: ...

    def status(self) -> list[FaultStatus]: ...


@dataclass(slots=True)
class _Active:
    spec: FaultSpec
    fired: Callable[[], int]
    seen: int = 0
    struck: int = 0


class FaultPlan:
    """Decides which fault, if any, strikes a request; hands those of storage to the disk.

    Thread-safe.
    """

    def __init__(self, file_system: FaultyFileSystem) -> None:
        self._file_system = file_system  # constant after construction
        # Of the broker that serves clients: faults do not strike one that is being prepared.
        self.directory = ""
        self._is_sparing_storage = False  # written by whoever takes checkpoints
        self._lock = threading.Lock()
        # guarded by self._lock
        self._active: dict[int, _Active] = {}
        self._next_number = 1
        # Replaced, never changed: so that a broker without faults takes no lock to find none.
        self._of_requests: tuple[_Active, ...] = ()

    def add(self, spec: FaultSpec) -> int:
        if isinstance(spec, StorageFault):
            active = _Active(spec, self._put_on_disk(spec))
        else:
            active = _Active(spec, lambda: active.struck)
        with self._lock:
            number = self._next_number
            self._next_number += 1
            self._active[number] = active
            if isinstance(spec, RequestFault):
                self._of_requests = (*self._of_requests, active)
        return number

    def clear(self) -> None:
        with self._lock:
            self._active.clear()
            self._of_requests = ()
        self._file_system.heal()

    def status(self) -> list[FaultStatus]:
        with self._lock:
            return [
                FaultStatus(number, str(active.spec), active.fired())
                for number, active in self._active.items()
            ]

    @contextmanager
    def storage_spared(self) -> Iterator[None]:
        """The disk works meanwhile, and what is written does not count."""
        self._is_sparing_storage = True
        try:
            yield
        finally:
            self._is_sparing_storage = False

    def strike(self, request: RecordedRequest) -> RequestFault | None:
        """The first fault whose turn it is; those put in earlier go first.

        Raises KafkaError if a predicate fails.
        """
        for active in self._of_requests:
            spec = active.spec
            if not isinstance(spec, RequestFault) or spec.occasions.are_over(active.seen):
                continue
            # A predicate is somebody else's code: no lock is held while it runs.
            try:
                is_concerned = spec.concerns(request)
            except BaseException as e:  # pytest.fail() is no Exception, and would end the thread
                raise KafkaError(f"the condition of the fault {spec} has failed: {e!r}") from e
            if not is_concerned:
                continue
            with self._lock:
                active.seen += 1
                if spec.occasions.includes(active.seen):
                    active.struck += 1
                    return spec
        return None

    def _put_on_disk(self, spec: StorageFault) -> Callable[[], int]:
        occasions = spec.occasions
        fault = self._file_system.fail(
            spec.operation,
            nth=occasions.first,
            error=spec.error,
            matches=lambda path: (
                not self._is_sparing_storage
                and path.startswith(self.directory)
                and spec.topic in (None, _topic_of(path))
            ),
            sticky=occasions.count is None,
            write_before_failing=spec.written_bytes,
        )
        return lambda: max(0, fault.seen - fault.nth + 1) if fault.sticky else fault.has_struck


def _topic_of(path: str) -> str | None:
    """The topic whose partition directory a file is in."""
    topic, dash, partition = os.path.basename(os.path.dirname(path)).rpartition("-")
    return topic if dash and partition.isdigit() else None
