"""Where a connection goes."""

from __future__ import annotations

from typing import Any, NamedTuple


class SocketAddress(NamedTuple):
    """Where to connect: one answer of getaddrinfo, and the name that was asked for."""

    family: int
    sockaddr: tuple[Any, ...]
    name: str = ""

    @property
    def host(self) -> str:
        """The name by which the peer must prove who it is."""
        return self.name or str(self.sockaddr[0])

    def __str__(self) -> str:
        return f"{self.host}:{self.sockaddr[1]}"
