"""The settings of TLS and SASL, on a client's side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kafkapy.common.config_def import Importance, config, each_of, one_of
from kafkapy.common.password import Password

PEM = "PEM"
HTTPS = "https"


@dataclass(frozen=True, slots=True)
class SecurityConfig:
    """How a client proves who it is, and finds out whom it talks to.

    Ports: org.apache.kafka.common.config.SslConfigs
    """

    ssl_truststore_type: str = config(
        "ssl.truststore.type",
        "JKS",
        doc="The format of the trust store. Only PEM can be read.",
    )
    ssl_truststore_location: str | None = config(
        "ssl.truststore.location",
        None,
        importance=Importance.HIGH,
        doc="A file of the certificates to trust; without one, those that the system trusts.",
    )
    ssl_truststore_certificates: Password | None = config(  # noqa: RUF009
        "ssl.truststore.certificates",
        None,
        importance=Importance.HIGH,
        doc="The certificates to trust themselves, as PEM text, in place of a file.",
    )
    ssl_truststore_password: Password | None = config(  # noqa: RUF009
        "ssl.truststore.password",
        None,
        importance=Importance.HIGH,
        doc="Refused: PEM has no password for certificates.",
    )
    ssl_keystore_type: str = config(
        "ssl.keystore.type",
        "JKS",
        doc="The format of the key store. Only PEM can be read.",
    )
    ssl_keystore_location: str | None = config(
        "ssl.keystore.location",
        None,
        importance=Importance.HIGH,
        doc="A file of the client's private key and its certificates, for brokers that ask.",
    )
    ssl_keystore_certificate_chain: Password | None = config(  # noqa: RUF009
        "ssl.keystore.certificate.chain",
        None,
        importance=Importance.HIGH,
        doc="The client's certificates as PEM text, its own first, in place of a file.",
    )
    ssl_keystore_key: Password | None = config(  # noqa: RUF009
        "ssl.keystore.key",
        None,
        importance=Importance.HIGH,
        doc="The client's private key as PEM text, in place of a file.",
    )
    ssl_keystore_password: Password | None = config(  # noqa: RUF009
        "ssl.keystore.password",
        None,
        importance=Importance.HIGH,
        doc="Refused: in PEM only the key has a password, see ssl.key.password.",
    )
    ssl_key_password: Password | None = config(  # noqa: RUF009
        "ssl.key.password",
        None,
        importance=Importance.HIGH,
        doc="The pass phrase of the private key, if it has one.",
    )
    ssl_enabled_protocols: tuple[str, ...] = config(
        "ssl.enabled.protocols",
        ("TLSv1.2", "TLSv1.3"),
        each_of("TLSv1.2", "TLSv1.3"),
        doc="The versions of TLS to speak.",
    )
    ssl_cipher_suites: tuple[str, ...] = config(
        "ssl.cipher.suites",
        (),
        importance=Importance.LOW,
        doc="The cipher suites to accept, by their standard names; empty: the system's choice.",
    )
    ssl_endpoint_identification_algorithm: str = config(
        "ssl.endpoint.identification.algorithm",
        HTTPS,
        one_of(HTTPS, ""),
        importance=Importance.LOW,
        doc="https: a broker's certificate must name its host; empty: any host will do.",
    )
    sasl_mechanism: str = config(
        "sasl.mechanism",
        "GSSAPI",
        doc="How to say who the client is: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER.",
    )
    sasl_jaas_config: Password | None = config(  # noqa: RUF009
        "sasl.jaas.config",
        None,
        doc="The login module with the username and the password, in the form of JAAS.",
    )
    sasl_login_callback_handler_class: Callable[[], str] | None = config(  # noqa: RUF009
        "sasl.login.callback.handler.class",
        None,
        doc="For OAUTHBEARER: a function that returns the token of the next connection.",
    )
