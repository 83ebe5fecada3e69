"""Who is on the other end, found out before a connection is used."""

from __future__ import annotations

from typing import Protocol


class Authenticator(Protocol):
    """Makes one side known to the other over a connection's transport. For one thread.

    Ports: org.apache.kafka.common.network.Authenticator
    """

    @property
    def reauthenticate_at_ms(self) -> int | None:
        """The monotonic time at which to authenticate anew; None: never."""
        ...

    def authenticate(self) -> int:
        """Go on as far as can be without blocking: the events to wait for, 0 once it is done.
        Called again after that, it starts anew.

        Raises AuthenticationError when one side refuses the other, EOFError or OSError when the
        connection is lost.
        """
        ...
