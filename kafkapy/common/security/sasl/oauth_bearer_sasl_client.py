"""SASL OAUTHBEARER, as RFC 7628 has it."""

from __future__ import annotations

from kafkapy.common.password import Password

_SEPARATOR = "\x01"


class OAuthBearerSaslClient:
    """Shows a token that somebody else gave out. For one exchange.

    Ports: org.apache.kafka.common.security.oauthbearer.internals.OAuthBearerSaslClient
    """

    def __init__(self, token: Password) -> None:
        self._token = token

    def initial_response(self) -> bytes:
        fields = ("n,,", f"auth=Bearer {self._token.value}", "", "")
        return _SEPARATOR.join(fields).encode()

    def respond(self, challenge: bytes) -> bytes | None:
        # A server that refuses the token says why, and fails the exchange only after this answer.
        return _SEPARATOR.encode() if challenge else None
