"""An Apache Kafka with a listener for each security protocol, and what its clients need."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kafkapy.clients.admin import AdminClient, ScramMechanism, UserScramCredentialUpsertion
from kafkapy.common.security.sasl.jaas_config import quoted
from tests.compat.brokers import Broker, start_apache
from tests.helpers.certificates import CertificateAuthority, Identity

SESSION_MS = 400
SECRET = 'bob, = "secret"'
_LISTENERS = {
    "PLAINTEXT": "PLAINTEXT",
    "SSL": "SSL",
    "MUTUAL": "SSL",
    "SASL_SSL": "SASL_SSL",
    "SASL_PLAINTEXT": "SASL_PLAINTEXT",
    "BRIEF": "SASL_PLAINTEXT",  # with sessions that soon end
}
_PACKAGE = "org.apache.kafka.common.security."
_LOGINS = {
    "plain": f"plain.PlainLoginModule required user_bob={quoted(SECRET)}",
    "scram-sha-256": "scram.ScramLoginModule required",
    "scram-sha-512": "scram.ScramLoginModule required",
    "oauthbearer": 'oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="x"',
}


@dataclass(frozen=True, slots=True)
class SecureBroker:
    """The broker, its ports by listener, and the certificates of both sides."""

    broker: Broker
    ports: dict[str, int]
    authority: Path
    client: Identity

    def address(self, listener: str) -> str:
        return f"127.0.0.1:{self.ports[listener]}"

    @property
    def trust(self) -> dict[str, object]:
        return {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.authority)}

    @property
    def identity(self) -> dict[str, object]:
        return {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self.client.store)}


def start_secure_broker(directory: Path) -> SecureBroker:
    authority = CertificateAuthority(directory)
    server = authority.issue("broker", "DNS:localhost,IP:127.0.0.1")
    settings = {
        "listeners": ",".join(f"{name}://127.0.0.1:0" for name in _LISTENERS),
        "listener.security.protocol.map": ",".join(map(":".join, _LISTENERS.items())),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(server.store),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.certificate),
        "listener.name.mutual.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": ",".join(_LOGINS).upper(),
        "listener.name.brief.oauthbearer.connections.max.reauth.ms": str(SESSION_MS),
        "connection.failed.authentication.delay.ms": "10",
        # It is started once, so that nothing waits for the end of its session.
        "zookeeper.session.timeout.ms": "18000",
    }
    for listener, protocol in _LISTENERS.items():
        if protocol.startswith("SASL"):
            for mechanism, login in _LOGINS.items():
                name = f"listener.name.{listener.lower()}.{mechanism}.sasl.jaas.config"
                # The file of properties takes a backslash for itself.
                settings[name] = f"{_PACKAGE}{login};".replace("\\", "\\\\")
    broker = start_apache(directory / "broker", overrides=settings)
    assert broker.output is not None
    listeners = re.findall(r"listeners: (\w+)://127\.0\.0\.1:(\d+)", broker.output.read_text())
    ports = {name: int(port) for name, port in listeners}
    with AdminClient(bootstrap_servers=f"127.0.0.1:{ports['PLAINTEXT']}") as admin:
        mechanisms = (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
        admin.alter_user_scram_credentials(
            [UserScramCredentialUpsertion("bob", mechanism, SECRET) for mechanism in mechanisms]
        )
    return SecureBroker(broker, ports, authority.certificate, authority.issue("client"))


def login(mechanism: str, secret: str = SECRET) -> dict[str, object]:
    """The settings by which bob says who he is."""
    if mechanism == "OAUTHBEARER":
        return {"sasl.mechanism": mechanism, "sasl.login.callback.handler.class": unsecured_token}
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    return {
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"{_PACKAGE}{module} required username=bob password={quoted(secret)};",
    }


def unsecured_token(clock: Callable[[], float] = time.time) -> str:
    """A token that nobody has signed, which Kafka takes by default."""
    # Kafka's clock has whole milliseconds: what is made and shown within one is of its future.
    issued = clock() - 1
    parts = ({"alg": "none"}, {"sub": "bob", "iat": issued, "exp": issued + 600})
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in parts]
    return b".".join([*encoded, b""]).decode()
