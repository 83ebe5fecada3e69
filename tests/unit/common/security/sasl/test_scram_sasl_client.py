import base64

import pytest

from kafkapy.common.password import Password
from kafkapy.common.security.sasl.sasl_client import SaslError
from kafkapy.common.security.sasl.scram_mechanism import ScramMechanism
from kafkapy.common.security.sasl.scram_sasl_client import ScramSaslClient

# The example of RFC 7677.
NONCE = "rOprNGfwEbeRWgbNEkqO"
BOTH_NONCES = NONCE + "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SERVER_FIRST = f"r={BOTH_NONCES},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
CLIENT_FINAL = f"c=biws,r={BOTH_NONCES},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def client(password: str = "pencil") -> ScramSaslClient:
    return ScramSaslClient(ScramMechanism.SCRAM_SHA_256, "user", Password(password), nonce=NONCE)


def test_example_of_the_rfc_is_followed_to_its_end() -> None:
    scram = client()

    assert scram.initial_response() == b"n,,n=user,r=" + NONCE.encode()
    assert scram.respond(SERVER_FIRST) == CLIENT_FINAL
    assert scram.respond(SERVER_FINAL) is None


def test_sha_512_proof_is_one_that_the_stored_key_confirms() -> None:
    mechanism = ScramMechanism.SCRAM_SHA_512
    salted = mechanism.salted_password("pencil", b"salt", 4096)
    stored_key = mechanism.stored_key(mechanism.client_key(salted))
    scram = ScramSaslClient(mechanism, "user", Password("pencil"), nonce="a")
    first = scram.initial_response().removeprefix(b"n,,")
    server_first = b"r=ab,s=" + base64.b64encode(b"salt") + b",i=4096"

    without_proof, _, proof = (scram.respond(server_first) or b"").rpartition(b",p=")

    signed = b",".join((first, server_first, without_proof))
    signature = mechanism.hmac(stored_key, signed)
    client_key = bytes(a ^ b for a, b in zip(base64.b64decode(proof), signature, strict=True))
    assert mechanism.stored_key(client_key) == stored_key
    server_signature = mechanism.hmac(mechanism.server_key(salted), signed)
    assert scram.respond(b"v=" + base64.b64encode(server_signature)) is None


@pytest.mark.parametrize(
    ("server_first", "complaint"),
    [
        (b"", "malformed"),
        (b"r=" + BOTH_NONCES.encode(), "malformed"),
        (SERVER_FIRST.replace(b"4096", b"0"), "malformed"),
        (SERVER_FIRST.replace(b"==", b"="), "base64"),
        (SERVER_FIRST.replace(b"r=r", b"r=R"), "nonce"),
        (SERVER_FIRST.replace(b"4096", b"4095"), "4095 iterations"),
        (SERVER_FIRST.replace(b"4096", b"1000001"), "1000001 iterations"),
    ],
)
def test_wrong_first_message_of_the_server_is_refused(server_first: bytes, complaint: str) -> None:
    scram = client()
    scram.initial_response()

    with pytest.raises(SaslError, match=complaint):
        scram.respond(server_first)


@pytest.mark.parametrize(
    ("server_final", "complaint"),
    [
        (b"e=unknown-user", "unknown-user"),
        (b"v=" + base64.b64encode(bytes(32)), "does not know the password"),
        (b"ok", "malformed"),
    ],
)
def test_server_that_cannot_prove_itself_is_refused(server_final: bytes, complaint: str) -> None:
    scram = client()
    scram.initial_response()
    scram.respond(SERVER_FIRST)

    with pytest.raises(SaslError, match=complaint):
        scram.respond(server_final)


def test_name_is_escaped_and_a_delegation_token_says_that_it_is_one() -> None:
    scram = ScramSaslClient(
        ScramMechanism.SCRAM_SHA_256,
        "a=b,c",
        Password("secret"),
        is_delegation_token=True,
        nonce="n",
    )

    assert scram.initial_response() == b"n,,n=a=3Db=2Cc,r=n,tokenauth=true"


def test_each_exchange_has_a_nonce_of_its_own() -> None:
    def first() -> bytes:
        mechanism = ScramMechanism.SCRAM_SHA_256
        return ScramSaslClient(mechanism, "user", Password("")).initial_response()

    assert first() != first()
