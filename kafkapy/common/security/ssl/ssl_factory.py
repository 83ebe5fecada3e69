"""Makes TLS contexts out of settings."""

from __future__ import annotations

import os
import ssl
import tempfile
from pathlib import Path

from kafkapy.common.config_def import InvalidValueError
from kafkapy.common.security.security_config import HTTPS, PEM, SecurityConfig
from kafkapy.common.security.ssl.cipher_suites import set_cipher_suites
from kafkapy.common.security.ssl.pem import with_lines

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


class SslFactory:
    """The TLS side of a client's settings. Immutable.

    Every method raises InvalidValueError.

    Ports: org.apache.kafka.common.security.ssl.DefaultSslEngineFactory
    """

    def __init__(self, config: SecurityConfig) -> None:
        self._config = config

    def new_client_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = self._config.ssl_endpoint_identification_algorithm == HTTPS
        versions = [_VERSIONS[name] for name in self._config.ssl_enabled_protocols]
        context.minimum_version = min(versions)
        context.maximum_version = max(versions)
        if self._config.ssl_cipher_suites:
            set_cipher_suites(context, self._config.ssl_cipher_suites)
        self._load_trust_store(context)
        self._load_key_store(context)
        return context

    def _load_trust_store(self, context: ssl.SSLContext) -> None:
        config = self._config
        location, certificates = config.ssl_truststore_location, config.ssl_truststore_certificates
        if location is not None or certificates is not None:
            _require_pem("ssl.truststore.type", config.ssl_truststore_type)
        if config.ssl_truststore_password is not None:
            raise InvalidValueError(
                "ssl.truststore.password", "", "a trust store of type PEM has no password"
            )
        if location is not None and certificates is not None:
            raise InvalidValueError(
                "ssl.truststore.certificates", "", "ssl.truststore.location is set as well"
            )
        if location is not None:
            name, text = "ssl.truststore.location", _read("ssl.truststore.location", location)
        elif certificates is not None:
            name, text = "ssl.truststore.certificates", certificates.value
        else:
            context.load_default_certs()
            return
        try:
            context.load_verify_locations(cadata=with_lines(text))
        except ssl.SSLError as error:
            raise InvalidValueError(name, "", "it has no certificates in PEM format") from error

    def _load_key_store(self, context: ssl.SSLContext) -> None:
        config = self._config
        location, key = config.ssl_keystore_location, config.ssl_keystore_key
        chain = config.ssl_keystore_certificate_chain
        if location is not None or key is not None or chain is not None:
            _require_pem("ssl.keystore.type", config.ssl_keystore_type)
        if config.ssl_keystore_password is not None:
            raise InvalidValueError(
                "ssl.keystore.password", "", "a key store of type PEM has no password"
            )
        if location is not None and (key is not None or chain is not None):
            raise InvalidValueError("ssl.keystore.location", "", "ssl.keystore.key is set as well")
        if location is not None:
            self._load_key(context, "ssl.keystore.location", location)
        elif key is not None and chain is not None:
            # Only a file can be loaded; this one nobody else can read, and it does not stay.
            descriptor, path = tempfile.mkstemp(suffix=".pem")
            try:
                with open(descriptor, "w") as file:
                    file.write(with_lines(key.value + chain.value))
                self._load_key(context, "ssl.keystore.key", path)
            finally:
                os.unlink(path)
        elif key is not None:
            raise InvalidValueError(
                "ssl.keystore.key", "", "ssl.keystore.certificate.chain is not set"
            )
        elif chain is not None:
            raise InvalidValueError(
                "ssl.keystore.certificate.chain", "", "ssl.keystore.key is not set"
            )

    def _load_key(self, context: ssl.SSLContext, name: str, path: str) -> None:
        password = self._config.ssl_key_password
        is_encrypted = False

        def pass_phrase() -> str:
            nonlocal is_encrypted
            is_encrypted = True
            # Without one OpenSSL would ask at the terminal.
            return "" if password is None else password.value

        try:
            context.load_cert_chain(path, password=pass_phrase)
        except ssl.SSLError as error:
            if is_encrypted and error.reason != "KEY_VALUES_MISMATCH":
                missing = "it is not set, but the key needs one"
                wrong = "it is not the pass phrase of the key"
                raise InvalidValueError(
                    "ssl.key.password", "", missing if password is None else wrong
                ) from None
            raise InvalidValueError(
                name, "", "it has no private key with its certificate in PEM format"
            ) from error
        except OSError as error:
            raise _unreadable(name, path, error) from error


def _require_pem(name: str, store_type: str) -> None:
    if store_type.upper() != PEM:
        raise InvalidValueError(
            name, store_type, f"only {PEM} stores can be read; convert it and set this to {PEM}"
        )


def _read(name: str, location: str) -> str:
    try:
        return Path(location).read_text(encoding="ascii", errors="replace")
    except OSError as error:
        raise _unreadable(name, location, error) from error


def _unreadable(name: str, location: str, error: OSError) -> InvalidValueError:
    return InvalidValueError(name, location, error.strerror or str(error))
