"""What is remembered of a request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.message_registry import request_class
from kafkapy.common.protocol.schema import Message

_NOT_YET = "not answered yet"


@dataclass(slots=True, eq=False)
class RecordedRequest:
    """One request of a client and what became of it.

    The network and handler threads fill it in; once `outcome` is set it stays as it is.
    """

    time_ms: int  # by the broker's clock, when it came
    client_id: str
    connection_id: str
    api: str
    version: int
    body: Message | None
    size_in_bytes: int
    topics: frozenset[str]
    groups: frozenset[str]
    # "answered", "no answer" (acks=0), "disconnected", or "not answered yet"
    outcome: str = _NOT_YET
    errors: tuple[str, ...] = ()  # the error codes of the response by name, without NONE
    fault: str = ""  # the fault that struck, if one did
    details: str = ""
    latency_ms: float | None = None  # until the answer was there to be sent
    _started_ns: int = field(default=0, repr=False)

    @property
    def is_complete(self) -> bool:
        return self.outcome != _NOT_YET

    def complete(self, outcome: str, now_ns: int) -> None:
        self.outcome = outcome
        self.latency_ms = (now_ns - self._started_ns) / 1_000_000

    def __str__(self) -> str:
        about = ", ".join(sorted(self.topics) + [f"group {group}" for group in sorted(self.groups)])
        parts = [f"{self.api} v{self.version}", f"client {self.client_id or '-'}", about]
        if self.details:
            parts.append(self.details)
        took = f" in {self.latency_ms:.1f} ms" if self.latency_ms is not None else ""
        parts.append(f"{self.outcome}{took}")
        parts += self.errors
        if self.fault:
            parts.append(f"fault: {self.fault}")
        return "; ".join(part for part in parts if part)

    def __reduce__(self) -> tuple[Callable[..., RecordedRequest], tuple[object, ...]]:
        """Messages travel between processes in their own encoding."""
        body = self.body.encode(self.version) if self.body is not None else None
        values = tuple(getattr(self, name) for name in self.__slots__ if name != "body")
        return _restore, (body, *values)


def api_key_named(name: str) -> ApiKeys:
    """Raises ValueError if Kafka has no such API."""
    for api_key in ApiKeys:
        if api_key.api_name == name:
            return api_key
    raise ValueError(f"there is no API {name!r}; it is written as in Kafka: Produce, OffsetCommit")


def _restore(body: bytes | None, *values: object) -> RecordedRequest:
    names = [name for name in RecordedRequest.__slots__ if name != "body"]
    restored = RecordedRequest(**dict(zip(names, values, strict=True)), body=None)  # type: ignore[arg-type]
    if body is not None:
        restored.body = request_class(api_key_named(restored.api)).decode(body, restored.version)
    return restored
