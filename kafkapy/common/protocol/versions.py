"""Ranges of message versions."""

from __future__ import annotations

from typing import NamedTuple

# No message has ever come near this; it stands for "and every later version".
_OPEN_END = 32767


class Versions(NamedTuple):
    """An inclusive range; empty when highest < lowest.

    Ports: org.apache.kafka.message.Versions
    """

    lowest: int
    highest: int

    @staticmethod
    def parse(text: str) -> Versions:
        """Reads "3", "0-5", "4+" or "none"."""
        if text == "none":
            return NO_VERSIONS
        if text.endswith("+"):
            return Versions(int(text[:-1]), _OPEN_END)
        lowest, _, highest = text.partition("-")
        return Versions(int(lowest), int(highest or lowest))

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.lowest <= version <= self.highest

    def __str__(self) -> str:
        if self.highest < self.lowest:
            return "none"
        if self.highest == _OPEN_END:
            return f"{self.lowest}+"
        return str(self.lowest) if self.lowest == self.highest else f"{self.lowest}-{self.highest}"


NO_VERSIONS = Versions(0, -1)
