"""SCRAM credentials of users, as they are shown and changed."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from enum import IntEnum

DEFAULT_ITERATIONS = 4096
_SALT_BYTES = 32


class ScramMechanism(IntEnum):
    """Ports: org.apache.kafka.clients.admin.ScramMechanism"""

    UNKNOWN = 0
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @classmethod
    def _missing_(cls, value: object) -> ScramMechanism:
        return cls.UNKNOWN

    @property
    def hash_name(self) -> str:
        """The name by which hashlib knows it."""
        return {ScramMechanism.SCRAM_SHA_256: "sha256", ScramMechanism.SCRAM_SHA_512: "sha512"}[
            self
        ]


@dataclass(frozen=True, slots=True)
class ScramCredentialInfo:
    """Ports: org.apache.kafka.clients.admin.ScramCredentialInfo"""

    mechanism: ScramMechanism
    iterations: int


@dataclass(frozen=True, slots=True)
class UserScramCredentialUpsertion:
    """A password to be set; the broker gets only its salted hash.

    Ports: org.apache.kafka.clients.admin.UserScramCredentialUpsertion
    """

    user: str
    mechanism: ScramMechanism
    password: str | bytes = field(repr=False)
    iterations: int = DEFAULT_ITERATIONS
    salt: bytes = field(default_factory=lambda: secrets.token_bytes(_SALT_BYTES), repr=False)

    def __post_init__(self) -> None:
        if self.mechanism is ScramMechanism.UNKNOWN:
            raise ValueError(f"user {self.user!r}: a credential needs a mechanism")
        if not self.password:
            raise ValueError(f"user {self.user!r}: the password must not be empty")


@dataclass(frozen=True, slots=True)
class UserScramCredentialDeletion:
    """Ports: org.apache.kafka.clients.admin.UserScramCredentialDeletion"""

    user: str
    mechanism: ScramMechanism


UserScramCredentialAlteration = UserScramCredentialUpsertion | UserScramCredentialDeletion
