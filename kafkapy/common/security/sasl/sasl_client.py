"""One side of a SASL exchange: the client's."""

from __future__ import annotations

from typing import Protocol


class SaslError(Exception):
    """The server's part of an exchange is wrong, or it could not prove itself."""


class SaslClient(Protocol):
    """The messages of a client in one exchange of one mechanism. For one exchange.

    Ports: javax.security.sasl.SaslClient
    """

    def initial_response(self) -> bytes: ...

    def respond(self, challenge: bytes) -> bytes | None:
        """The answer to the server's message; None when the exchange is over and went well.

        SaslError when the message is malformed or the server could not prove itself.
        """
        ...
