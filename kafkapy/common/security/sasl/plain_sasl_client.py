"""SASL PLAIN, as RFC 4616 has it."""

from __future__ import annotations

from kafkapy.common.password import Password
from kafkapy.common.security.sasl.sasl_client import SaslError


class PlainSaslClient:
    """Sends the name and the password as they are. For one exchange.

    Ports: com.sun.security.sasl.PlainClient
    """

    def __init__(self, username: str, password: Password) -> None:
        self._username = username
        self._password = password

    def initial_response(self) -> bytes:
        return f"\0{self._username}\0{self._password.value}".encode()

    def respond(self, challenge: bytes) -> bytes | None:
        if challenge:
            raise SaslError("the server asks for more than the password")
        return None
