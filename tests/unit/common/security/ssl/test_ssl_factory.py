import ssl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kafkapy.common.config_def import parse
from kafkapy.common.errors import InvalidConfigurationError
from kafkapy.common.password import Password
from kafkapy.common.security.security_config import SecurityConfig
from kafkapy.common.security.ssl.ssl_factory import SslFactory
from tests.helpers.certificates import PASS_PHRASE, CertificateAuthority, Identity


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def sealed(authority: CertificateAuthority) -> Identity:
    return authority.issue("sealed", encrypted=True)


@pytest.fixture(autouse=True)
def no_key_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    yield
    assert list(tmp_path.glob("*.pem")) == []


PEM = SecurityConfig(ssl_truststore_type="PEM", ssl_keystore_type="PEM")


def refusal_of(config: SecurityConfig) -> str:
    with pytest.raises(InvalidConfigurationError) as raised:
        SslFactory(config).new_client_context()
    assert PASS_PHRASE not in str(raised.value)
    return str(raised.value)


def test_defaults_check_host_names_and_trust_what_the_system_trusts() -> None:
    context = SslFactory(SecurityConfig()).new_client_context()

    assert context.check_hostname and context.verify_mode is ssl.CERT_REQUIRED
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert context.maximum_version is ssl.TLSVersion.TLSv1_3


@pytest.mark.parametrize("instead_of_line_break", [" ", ""])
def test_trust_store_may_be_a_file_or_a_text_without_line_breaks(
    authority: CertificateAuthority, tmp_path: Path, instead_of_line_break: str
) -> None:
    other = CertificateAuthority(authority.certificate.parent, "other")
    both = tmp_path / "both"
    both.write_text(authority.certificate.read_text() + other.certificate.read_text())
    text = both.read_text().replace("\n", instead_of_line_break)
    by_file = replace(PEM, ssl_truststore_location=str(both))
    by_text = replace(PEM, ssl_truststore_certificates=Password(text))

    for config in (by_file, by_text):
        context = SslFactory(config).new_client_context()
        assert [len(c["subject"]) for c in context.get_ca_certs()] == [1, 1]


def test_key_store_may_be_a_file_or_two_texts(sealed: Identity) -> None:
    with_phrase = replace(PEM, ssl_key_password=Password(PASS_PHRASE))
    by_file = replace(with_phrase, ssl_keystore_location=str(sealed.store))
    by_text = replace(
        with_phrase,
        ssl_keystore_key=Password(sealed.key.read_text()),
        ssl_keystore_certificate_chain=Password(sealed.certificate.read_text()),
    )
    # Without the line break at its end, which a setting loses.
    by_setting = replace(by_text, ssl_keystore_key=Password(sealed.key.read_text().strip()))

    for config in (by_file, by_text, by_setting):
        SslFactory(config).new_client_context()


def test_host_names_go_unchecked_only_when_asked_for() -> None:
    config = SecurityConfig(ssl_endpoint_identification_algorithm="")

    context = SslFactory(config).new_client_context()

    assert not context.check_hostname and context.verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize("store_type", ["JKS", "PKCS12"])
@pytest.mark.parametrize("store", ["truststore", "keystore"])
def test_other_stores_than_pem_are_refused_with_advice(store: str, store_type: str) -> None:
    settings = {
        f"ssl.{store}.type": store_type,
        f"ssl.{store}.location": "/some/file",
        f"ssl.{store}.password": "changeit",
    }
    config = parse(SecurityConfig, settings)

    assert refusal_of(config) == (
        f"Invalid value {store_type} for configuration ssl.{store}.type: only PEM stores can be"
        " read; convert it and set this to PEM"
    )


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        (
            {"ssl.truststore.location": "/no/such/file"},
            "Invalid value /no/such/file for configuration ssl.truststore.location: No such file",
        ),
        ({"ssl.keystore.location": "/no/such/file"}, "ssl.keystore.location: No such file"),
        ({"ssl.truststore.certificates": "x"}, "ssl.truststore.certificates: it has no"),
        ({"ssl.truststore.password": "x"}, "ssl.truststore.password: a trust store"),
        ({"ssl.keystore.password": "x"}, "ssl.keystore.password: a key store"),
        ({"ssl.keystore.key": "x"}, "ssl.keystore.certificate.chain is not set"),
        ({"ssl.keystore.certificate.chain": "x"}, "ssl.keystore.key is not set"),
        (
            {"ssl.keystore.key": "x", "ssl.keystore.location": "/x"},
            "ssl.keystore.location: ssl.keystore.key is set as well",
        ),
        (
            {"ssl.truststore.certificates": "x", "ssl.truststore.location": "/x"},
            "ssl.truststore.certificates: ssl.truststore.location is set as well",
        ),
    ],
)
def test_wrong_store_is_named(settings: dict[str, str], complaint: str) -> None:
    types = {"ssl.truststore.type": "PEM", "ssl.keystore.type": "PEM"}

    assert complaint in refusal_of(parse(SecurityConfig, {**types, **settings}))


def test_store_without_a_key_is_named(authority: CertificateAuthority) -> None:
    config = replace(PEM, ssl_keystore_location=str(authority.certificate))

    assert "ssl.keystore.location: it has no private key" in refusal_of(config)


@pytest.mark.parametrize(
    ("phrase", "complaint"), [(None, "it is not set"), (Password("wrong"), "it is not the pass")]
)
def test_pass_phrase_that_does_not_fit_is_named(
    sealed: Identity, phrase: Password | None, complaint: str
) -> None:
    config = replace(PEM, ssl_keystore_location=str(sealed.store), ssl_key_password=phrase)

    assert f"ssl.key.password: {complaint}" in refusal_of(config)


TLS_1_3 = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
ECDHE = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"


@pytest.mark.parametrize(
    ("names", "ciphers"),
    [
        ((ECDHE,), ["ECDHE-RSA-AES256-GCM-SHA384"]),
        (
            ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "TLS_RSA_WITH_AES_128_CBC_SHA"),
            ["ECDHE-ECDSA-CHACHA20-POLY1305", "AES128-SHA"],
        ),
        ((*TLS_1_3, "TLS_DHE_RSA_WITH_AES_128_GCM_SHA256"), ["DHE-RSA-AES128-GCM-SHA256"]),
    ],
)
def test_cipher_suites_go_by_their_standard_names(
    names: tuple[str, ...], ciphers: list[str]
) -> None:
    context = SslFactory(SecurityConfig(ssl_cipher_suites=names)).new_client_context()

    older = [c["name"] for c in context.get_ciphers() if c["name"] not in TLS_1_3]
    assert older == ciphers
    newest = ssl.TLSVersion.TLSv1_3 if set(TLS_1_3) <= set(names) else ssl.TLSVersion.TLSv1_2
    assert context.maximum_version is newest


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        (("TLS_NONE_SUCH",), "Invalid value TLS_NONE_SUCH for configuration ssl.cipher.suites"),
        (TLS_1_3[:1], "of TLS 1.3 name all of"),
        ((ECDHE,), "they belong to none of the ssl.enabled.protocols"),
    ],
)
def test_cipher_suite_that_cannot_be_had_is_named(names: tuple[str, ...], complaint: str) -> None:
    config = SecurityConfig(ssl_cipher_suites=names, ssl_enabled_protocols=("TLSv1.3",))

    assert complaint in refusal_of(config)
