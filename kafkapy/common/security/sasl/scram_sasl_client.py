"""SCRAM, as RFC 5802 and RFC 7677 have it: each side proves that it knows the password.

client first    n,,n=<name>,r=<client nonce>[,<extension>=<value>]
server first    r=<client nonce><server nonce>,s=<salt>,i=<iterations>
client final    c=<n,, in base64>,r=<both nonces>,p=<proof>
server final    v=<signature>, or e=<what is wrong>
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
import secrets

from kafkapy.common.password import Password
from kafkapy.common.security.sasl.sasl_client import SaslError
from kafkapy.common.security.sasl.scram_mechanism import ScramMechanism

_GS2_HEADER = b"n,,"
_NONCE_BYTES = 24
_MAX_ITERATIONS = 1_000_000  # about a second: a server must not keep clients busy for longer
_SERVER_FIRST = re.compile(
    rb"(?:m=[^,]*,)?r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+),s=(?P<salt>[A-Za-z0-9+/=]+)"
    rb",i=(?P<iterations>[1-9][0-9]{0,9})(?:,.*)?",
    re.DOTALL,
)
_SERVER_FINAL = re.compile(
    rb"(?:e=(?P<error>[^,]+)|v=(?P<signature>[A-Za-z0-9+/=]+))(?:,.*)?", re.DOTALL
)


class ScramSaslClient:
    """Proves that it knows the password without sending it. For one exchange.

    Ports: org.apache.kafka.common.security.scram.internals.ScramSaslClient
    """

    def __init__(
        self,
        mechanism: ScramMechanism,
        username: str,
        password: Password,
        *,
        is_delegation_token: bool = False,
        nonce: str | None = None,
    ) -> None:
        """`nonce` is given only to repeat a known exchange."""
        self._mechanism = mechanism
        self._password = password
        self._nonce = (nonce or secrets.token_urlsafe(_NONCE_BYTES)).encode()
        name = username.replace("=", "=3D").replace(",", "=2C").encode()
        self._client_first = b"n=" + name + b",r=" + self._nonce
        if is_delegation_token:
            self._client_first += b",tokenauth=true"
        self._server_signature: bytes | None = None  # what the server must send in the end

    def initial_response(self) -> bytes:
        return _GS2_HEADER + self._client_first

    def respond(self, challenge: bytes) -> bytes | None:
        if self._server_signature is None:
            return self._client_final(challenge)
        self._check_server_final(challenge, self._server_signature)
        return None

    def _client_final(self, server_first: bytes) -> bytes:
        found = _SERVER_FIRST.fullmatch(server_first)
        if found is None:
            raise SaslError("the server's first message is malformed")
        nonce, iterations = found["nonce"], int(found["iterations"])
        if not nonce.startswith(self._nonce):
            raise SaslError("the server's nonce does not begin with the client's")
        mechanism = self._mechanism
        if not mechanism.min_iterations <= iterations <= _MAX_ITERATIONS:
            raise SaslError(
                f"the server asks for {iterations} iterations; safe are"
                f" {mechanism.min_iterations} to {_MAX_ITERATIONS}"
            )
        salted = mechanism.salted_password(
            self._password.value, _from_base64(found["salt"]), iterations
        )
        without_proof = b"c=" + base64.b64encode(_GS2_HEADER) + b",r=" + nonce
        signed = b",".join((self._client_first, server_first, without_proof))
        client_key = mechanism.client_key(salted)
        signature = mechanism.hmac(mechanism.stored_key(client_key), signed)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._server_signature = mechanism.hmac(mechanism.server_key(salted), signed)
        return without_proof + b",p=" + base64.b64encode(proof)

    @staticmethod
    def _check_server_final(server_final: bytes, expected: bytes) -> None:
        found = _SERVER_FINAL.fullmatch(server_final)
        if found is None:
            raise SaslError("the server's last message is malformed")
        if found["error"] is not None:
            raise SaslError(found["error"].decode(errors="replace"))
        if not hmac.compare_digest(_from_base64(found["signature"]), expected):
            raise SaslError("the server does not know the password: its signature is wrong")


def _from_base64(text: bytes) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise SaslError("the server sent malformed base64") from error
