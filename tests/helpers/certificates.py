"""Certificates that a test makes for itself, by the openssl command."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

PASS_PHRASE = "s3same open"


@dataclass(frozen=True, slots=True)
class Identity:
    """A private key and its certificate, as PEM files."""

    key: Path
    certificate: Path

    @property
    def store(self) -> Path:
        """Both in one file, as ssl.keystore.location wants them."""
        store = self.key.with_suffix(".store.pem")
        store.write_text(self.key.read_text() + self.certificate.read_text())
        return store


class CertificateAuthority:
    """Signs certificates; `certificate` is what those who trust it need."""

    def __init__(self, directory: Path, name: str = "authority") -> None:
        if shutil.which("openssl") is None:
            pytest.skip("there is no openssl command to make certificates with")
        self._directory = directory
        self._name = name
        self._key = directory / f"{name}.key"
        self.certificate = directory / f"{name}.pem"
        _openssl(
            *("req", "-x509", *_NEW_KEY, "-nodes", "-days", "2", "-subj", f"/CN={name}"),
            *("-keyout", str(self._key), "-out", str(self.certificate)),
        )

    def issue(self, name: str, alternative_names: str = "", *, encrypted: bool = False) -> Identity:
        """An identity called `name`, valid for hosts such as `DNS:localhost,IP:127.0.0.1`."""
        key, request = self._directory / f"{name}.key", self._directory / f"{name}.csr"
        certificate = self._directory / f"{name}.pem"
        extensions = self._directory / f"{name}.ext"
        extensions.write_text(f"subjectAltName={alternative_names}\n" if alternative_names else "")
        secret = ("-passout", f"pass:{PASS_PHRASE}") if encrypted else ("-nodes",)
        _openssl(
            *("req", "-new", *_NEW_KEY, *secret, "-subj", f"/CN={name}"),
            *("-keyout", str(key), "-out", str(request)),
        )
        _openssl(
            *("x509", "-req", "-in", str(request), "-days", "2", "-extfile", str(extensions)),
            *("-CA", str(self.certificate), "-CAkey", str(self._key), "-CAcreateserial"),
            *("-out", str(certificate)),
        )
        return Identity(key, certificate)


_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")


def _openssl(*arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, f"openssl {' '.join(arguments)}: {done.stderr}"
