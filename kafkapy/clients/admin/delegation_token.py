from __future__ import annotations

import base64
from dataclasses import dataclass, field

from kafkapy.common.security.kafka_principal import KafkaPrincipal


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """A token that lets its bearer act for its owner. Times are in ms; `hmac` is the secret.

    Ports: org.apache.kafka.common.security.token.delegation.DelegationToken
    """

    token_id: str
    hmac: bytes = field(repr=False)
    owner: KafkaPrincipal
    token_requester: KafkaPrincipal
    renewers: tuple[KafkaPrincipal, ...]
    issue_timestamp: int
    max_timestamp: int
    expiry_timestamp: int

    @property
    def hmac_as_base64(self) -> str:
        return base64.b64encode(self.hmac).decode()
