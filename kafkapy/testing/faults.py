"""How a test says what is to go wrong."""

from __future__ import annotations

import errno
from dataclasses import dataclass, replace

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.testing.fault_plan import FaultTarget
from kafkapy.testing.fault_specs import (
    FaultAction,
    FaultSpec,
    Occasions,
    Predicate,
    RequestFault,
    StorageFault,
)
from kafkapy.testing.recorded_request import api_key_named


class Faults:
    """The faults of one broker. Thread-safe.

    `on` and `storage` begin a sentence, whose last word puts the fault in force:
    `faults.on("Produce", topic="x").nth(3).error("NOT_LEADER_OR_FOLLOWER")`. Unless told otherwise
    a fault strikes once, the next time it can.
    """

    def __init__(self, target: FaultTarget) -> None:
        self._target = target  # constant after construction

    def on(
        self, api: str, *, topic: str | None = None, client_id: str | None = None
    ) -> RequestFaultBuilder:
        """Requests of an API, as in "Produce" or "OffsetCommit", and of a topic or client only."""
        return RequestFaultBuilder(self._target, api_key_named(api), Occasions(), topic, client_id)

    def storage(self, topic: str | None = None) -> StorageFaultBuilder:
        """The files of a topic, or of all; a broker that cannot write stops serving the disk."""
        return StorageFaultBuilder(self._target, Occasions(), topic)

    def clear(self) -> None:
        """Nothing goes wrong any more; connections and lost disks stay as they are."""
        self._target.clear()

    def assert_all_fired(self) -> None:
        """Fails, naming them, if a fault has never struck since it was put in."""
        unused = [status.description for status in self._target.status() if not status.fired]
        if unused:
            raise AssertionError(f"faults that never struck: {'; '.join(unused)}")


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault in force."""

    _target: FaultTarget
    _number: int

    @property
    def fired(self) -> int:
        """How often it has struck; 0 as well once the faults are cleared."""
        found = (s.fired for s in self._target.status() if s.number == self._number)
        return next(found, 0)


@dataclass(frozen=True, slots=True)
class RequestFaultBuilder:
    """Says which requests, then what becomes of them."""

    _target: FaultTarget
    _api_key: ApiKeys
    _occasions: Occasions
    _topic: str | None
    _client_id: str | None
    _predicate: Predicate | None = None

    def nth(self, number: int) -> RequestFaultBuilder:
        """Spare those before the `number`th that matches."""
        return replace(self, _occasions=_from(self._occasions, number))

    def times(self, count: int) -> RequestFaultBuilder:
        """Strike so often."""
        return replace(self, _occasions=_times(self._occasions, count))

    def always(self) -> RequestFaultBuilder:
        """Strike until the faults are cleared."""
        return replace(self, _occasions=replace(self._occasions, count=None))

    def when(self, predicate: Predicate) -> RequestFaultBuilder:
        """Only requests for which `predicate(request)` holds (a RecordedRequest)."""
        if not callable(predicate):
            raise ValueError(f"a condition is a function of the request, not {predicate!r}")
        return replace(self, _predicate=predicate)

    def error(self, error: str) -> Fault:
        """Answer with the error instead of handling the request.

        All topics and partitions of the request get it. A Fetch is handled, and then the partitions
        (of the topic, if one is named) get the error in place of their records.
        """
        try:
            found = Errors[error]
        except KeyError:
            raise ValueError(f"there is no error {error!r} in Kafka's protocol") from None
        if found is Errors.NONE:
            raise ValueError("NONE is no error: the client would believe what was never done")
        return self._put(FaultAction.ERROR, error=found)

    def drop_response(self) -> Fault:
        """Handle the request, then close the connection in place of answering."""
        return self._put(FaultAction.DROP_RESPONSE)

    def delay(self, *, ms: int) -> Fault:
        """Handle the request only after so long by the broker's clock."""
        if ms < 0:
            raise ValueError(f"a delay of {ms} ms is not possible")
        return self._put(FaultAction.DELAY, delay_ms=ms)

    def disconnect(self) -> Fault:
        """Close the connection without handling the request."""
        return self._put(FaultAction.DISCONNECT)

    def _put(self, action: FaultAction, *, error: Errors = Errors.NONE, delay_ms: int = 0) -> Fault:
        spec: FaultSpec = RequestFault(
            api_key=self._api_key,
            action=action,
            occasions=self._occasions,
            topic=self._topic,
            client_id=self._client_id,
            predicate=self._predicate,
            error=error,
            delay_ms=delay_ms,
        )
        return Fault(self._target, self._target.add(spec))


@dataclass(frozen=True, slots=True)
class StorageFaultBuilder:
    """Says which of a topic's file operations fails, and how."""

    _target: FaultTarget
    _occasions: Occasions
    _topic: str | None

    def nth(self, number: int) -> StorageFaultBuilder:
        """Spare those before the `number`th."""
        return replace(self, _occasions=_from(self._occasions, number))

    def always(self) -> StorageFaultBuilder:
        """Fail until the faults are cleared."""
        return replace(self, _occasions=replace(self._occasions, count=None))

    def torn_write(self, *, after_bytes: int) -> Fault:
        """Only the first bytes of a write reach the file before it fails."""
        if after_bytes < 1:
            raise ValueError(f"a torn write leaves at least a byte, not {after_bytes}")
        return self._put("write", errno.EIO, written_bytes=after_bytes)

    def fsync_error(self) -> Fault:
        """Forcing a file to disk fails (the broker does it as flush.messages and flush.ms say)."""
        return self._put("fsync", errno.EIO)

    def disk_full(self) -> Fault:
        """From now on there is no room for a write."""
        return self.always()._put("write", errno.ENOSPC)

    def _put(self, operation: str, error: int, *, written_bytes: int = 0) -> Fault:
        spec = StorageFault(
            operation=operation,
            error=error,
            occasions=self._occasions,
            topic=self._topic,
            written_bytes=written_bytes,
        )
        return Fault(self._target, self._target.add(spec))


def _from(occasions: Occasions, number: int) -> Occasions:
    if number < 1:
        raise ValueError(f"requests are counted from 1, not {number}")
    return replace(occasions, first=number)


def _times(occasions: Occasions, count: int) -> Occasions:
    if count < 1:
        raise ValueError(f"a fault strikes at least once, not {count} times")
    return replace(occasions, count=count)
