"""Who is on the other end of a connection."""

from typing import NamedTuple

USER_TYPE = "User"


class KafkaPrincipal(NamedTuple):
    """An identity that authorisation and quotas are decided by. Immutable.

    Ports: org.apache.kafka.common.security.auth.KafkaPrincipal
    """

    principal_type: str
    name: str

    def __str__(self) -> str:
        return f"{self.principal_type}:{self.name}"


ANONYMOUS = KafkaPrincipal(USER_TYPE, "ANONYMOUS")
