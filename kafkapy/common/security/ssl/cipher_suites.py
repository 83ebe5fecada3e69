"""Cipher suites: the standard names, which Kafka uses, as Python's `ssl` can take them."""

from __future__ import annotations

import ssl
from collections.abc import Sequence

from kafkapy.common.config_def import InvalidValueError

_NAME = "ssl.cipher.suites"
# Those of TLS 1.3 cannot be chosen through Python's `ssl`: there are these, all or none.
_TLS_1_3 = frozenset(
    {"TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"}
)


def set_cipher_suites(context: ssl.SSLContext, names: Sequence[str]) -> None:
    """Restrict the context to these suites; InvalidValueError names one it cannot take."""
    older = [name for name in names if name not in _TLS_1_3]
    newer = _TLS_1_3.intersection(names)
    if newer and newer != _TLS_1_3:
        raise InvalidValueError(
            _NAME, ",".join(names), f"of TLS 1.3 name all of {', '.join(sorted(_TLS_1_3))}, or none"
        )
    if not newer:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    if not older:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
    if context.minimum_version > context.maximum_version:
        raise InvalidValueError(
            _NAME, ",".join(names), "they belong to none of the ssl.enabled.protocols"
        )
    for name in older:
        try:
            context.set_ciphers(openssl_name(name))
        except ssl.SSLError as error:
            raise InvalidValueError(_NAME, name, "there is no such cipher suite") from error
    if older:
        context.set_ciphers(":".join(openssl_name(name) for name in older))


def openssl_name(name: str) -> str:
    """`TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384` is OpenSSL's `ECDHE-RSA-AES256-GCM-SHA384`."""
    exchange, _, cipher = name.removeprefix("TLS_").partition("_WITH_")
    cipher = (
        cipher.replace("AES_", "AES").replace("_CBC", "").replace("POLY1305_SHA256", "POLY1305")
    )
    prefix = "" if exchange == "RSA" else exchange + "-"
    return (prefix + cipher).replace("_", "-")
