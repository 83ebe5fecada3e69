"""Where a broker listens, and how it speaks there."""

from dataclasses import dataclass
from enum import IntEnum


class SecurityProtocol(IntEnum):
    """The values are the ids used on the wire and in ZooKeeper.

    Ports: org.apache.kafka.common.security.auth.SecurityProtocol
    """

    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3


@dataclass(frozen=True, slots=True)
class EndPoint:
    """One listener's address; an empty host means every interface.

    Ports: kafka.cluster.EndPoint
    """

    listener_name: str
    security_protocol: SecurityProtocol
    host: str
    port: int

    @property
    def connection_string(self) -> str:
        """NAME://host:port, as `listeners` and a broker's registration write it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.listener_name}://{host}:{self.port}"

    def __str__(self) -> str:
        return self.connection_string
