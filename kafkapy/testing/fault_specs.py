"""What is to go wrong, when, and how often."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.testing.recorded_request import RecordedRequest

Predicate = Callable[[RecordedRequest], bool]


class FaultAction(Enum):
    """What becomes of a request that a fault strikes."""

    ERROR = "error"
    DROP_RESPONSE = "drop response"
    DELAY = "delay"
    DISCONNECT = "disconnect"


@dataclass(frozen=True, slots=True)
class Occasions:
    """Of all matching events, those from the `first` on, `count` of them or (None) all."""

    first: int = 1
    count: int | None = 1

    def includes(self, number: int) -> bool:
        return number >= self.first and (self.count is None or number < self.first + self.count)

    def are_over(self, seen: int) -> bool:
        """Whether none is left once so many events have been seen."""
        return self.count is not None and seen >= self.first + self.count - 1

    def __str__(self) -> str:
        start = "" if self.first == 1 else f" from the {self.first}th on"
        if self.count is None:
            return f"every time{start}"
        return f"{self.count} time{'s' if self.count > 1 else ''}{start}"


@dataclass(frozen=True, slots=True)
class RequestFault:
    """A fault of requests."""

    api_key: ApiKeys
    action: FaultAction
    occasions: Occasions
    topic: str | None = None
    client_id: str | None = None
    predicate: Predicate | None = None
    error: Errors = Errors.NONE
    delay_ms: int = 0

    def concerns(self, request: RecordedRequest) -> bool:
        return (
            request.api == self.api_key.api_name
            and (self.topic is None or self.topic in request.topics)
            and self.client_id in (None, request.client_id)
            and (self.predicate is None or self.predicate(request))
        )

    def __str__(self) -> str:
        action = self.action.value
        if self.action is FaultAction.ERROR:
            action += f" {self.error.name}"
        elif self.action is FaultAction.DELAY:
            action += f" of {self.delay_ms} ms"
        of = "".join(
            f" {name} {value}"
            for name, value in (("topic", self.topic), ("client", self.client_id))
            if value is not None
        )
        return f"{self.api_key.api_name}{of}: {action}, {self.occasions}"


@dataclass(frozen=True, slots=True)
class StorageFault:
    """A fault of the files of a topic, or of all."""

    operation: str
    error: int
    occasions: Occasions
    topic: str | None = None
    written_bytes: int = 0

    def __str__(self) -> str:
        of = f" of topic {self.topic}" if self.topic is not None else ""
        return f"{self.operation}{of}: {errno.errorcode[self.error]}, {self.occasions}"


FaultSpec = RequestFault | StorageFault
