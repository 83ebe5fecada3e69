"""A setting's value that must not be seen."""

from __future__ import annotations

from dataclasses import dataclass

HIDDEN = "[hidden]"


@dataclass(frozen=True, slots=True, repr=False)
class Password:
    """A secret text: neither logs nor error texts show more than that there is one. Immutable.

    Ports: org.apache.kafka.common.config.types.Password
    """

    value: str

    def __repr__(self) -> str:
        return HIDDEN

    def __str__(self) -> str:
        return HIDDEN
