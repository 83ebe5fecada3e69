"""The SCRAM mechanisms and their formulas, which client and server share."""

from __future__ import annotations

import hashlib
import hmac
from enum import Enum


class ScramMechanism(Enum):
    """A SCRAM mechanism: its hash, and the fewest iterations that are safe enough.

    Ports: org.apache.kafka.common.security.scram.internals.ScramMechanism
    """

    SCRAM_SHA_256 = ("SCRAM-SHA-256", "sha256", 4096)
    SCRAM_SHA_512 = ("SCRAM-SHA-512", "sha512", 4096)

    def __init__(self, mechanism_name: str, hash_name: str, min_iterations: int) -> None:
        self.mechanism_name = mechanism_name
        self.hash_name = hash_name
        self.min_iterations = min_iterations

    def salted_password(self, password: str, salt: bytes, iterations: int) -> bytes:
        return hashlib.pbkdf2_hmac(self.hash_name, password.encode(), salt, iterations)

    def client_key(self, salted_password: bytes) -> bytes:
        return self.hmac(salted_password, b"Client Key")

    def server_key(self, salted_password: bytes) -> bytes:
        return self.hmac(salted_password, b"Server Key")

    def stored_key(self, client_key: bytes) -> bytes:
        return hashlib.new(self.hash_name, client_key).digest()

    def hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self.hash_name)
