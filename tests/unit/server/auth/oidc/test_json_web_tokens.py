"""Verification of tokens: what is accepted, and what is not."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from omnigraph.errors import Overloaded, Unauthorized
from omnigraph.server.auth.oidc import json_web_tokens
from omnigraph.server.auth.oidc.issuers import Issuer
from omnigraph.server.auth.oidc.json_web_tokens import LEEWAY_S, JsonWebTokens, is_json_web_token
from support.issuer import AUDIENCE, IssuerServer, issuing, public_jwk, rsa_key


@dataclass
class Setup:
    server: IssuerServer
    options: dict[str, Any] = field(default_factory=dict)
    now: float = field(default_factory=time.time)

    def __post_init__(self) -> None:
        self.tokens = self.make()

    def make(self, running: JsonWebTokens | None = None, **options: Any) -> JsonWebTokens:
        issuer = Issuer(self.server.url, AUDIENCE, allow_private=True, **options)
        return JsonWebTokens([issuer], running, clock=lambda: self.now)

    def find(self, token: str | bytes) -> str:
        text = token.encode() if isinstance(token, str) else token
        return asyncio.run(self.tokens.find(text)).actor


@pytest.fixture
def setup() -> Iterator[Setup]:
    with issuing() as server:
        yield Setup(server)


def test_a_valid_token(setup: Setup) -> None:
    assert setup.find(setup.server.token()) == "ana"


@pytest.mark.parametrize("algorithm", ["RS256", "RS512", "PS256", "ES256", "ES512", "EdDSA"])
def test_accepted_algorithms(setup: Setup, algorithm: str) -> None:
    key: Any = rsa_key()
    if algorithm.startswith("ES"):
        key = ec.generate_private_key(ec.SECP256R1() if algorithm == "ES256" else ec.SECP521R1())
    elif algorithm == "EdDSA":
        key = ed25519.Ed25519PrivateKey.generate()
    setup.server.keys = [public_jwk(key, "k1")]
    setup.tokens = setup.make(algorithms=(algorithm,))
    assert setup.find(setup.server.token(key=key, algorithm=algorithm)) == "ana"


def test_an_audience_among_several(setup: Setup) -> None:
    assert setup.find(setup.server.token(aud=["other", AUDIENCE])) == "ana"


def test_times_have_leeway(setup: Setup) -> None:
    now = int(time.time())
    assert setup.find(setup.server.token(exp=now - LEEWAY_S + 20)) == "ana"
    assert setup.find(setup.server.token(nbf=now + LEEWAY_S - 20, sub="bo")) == "bo"


def part(document: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(document).encode()).rstrip(b"=").decode()


def public_pem() -> bytes:
    return (
        rsa_key().public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )


def hmac_token(server: IssuerServer, secret: bytes, **headers: Any) -> str:
    """A token that is signed with a secret."""
    body = f"{part({'alg': 'HS256', 'typ': 'JWT', 'kid': 'k1', **headers})}.{part(server.claims())}"
    signature = hmac.new(secret, body.encode(), hashlib.sha256).digest()
    return f"{body}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def unsigned(server: IssuerServer, **headers: Any) -> str:
    return f"{part({'alg': 'none', 'kid': 'k1', **headers})}.{part(server.claims())}."


def foreign(server: IssuerServer, **options: Any) -> str:
    return server.token(key=rsa_key("attacker"), **options)


NOW = int(time.time())
FORGED: dict[str, tuple[Any, str]] = {
    "none": (unsigned, "algorithm"),
    "none in capitals": (lambda server: unsigned(server, alg="NONE"), "algorithm"),
    "no algorithm": (lambda server: unsigned(server, alg=None), "algorithm"),
    "algorithm is a list": (lambda server: unsigned(server, alg=["RS256"]), "algorithm|JSON Web Token"),
    "signed with the public key as a secret": (lambda server: hmac_token(server, public_pem()), "algorithm"),
    "the same, called RS256": (lambda server: hmac_token(server, public_pem(), alg="RS256"), "signature"),
    "another algorithm of the key": (lambda server: server.token(algorithm="RS512"), "algorithm"),
    "another key": (foreign, "signature"),
    "a key in its header": (
        lambda server: foreign(server, headers={"jwk": public_jwk(rsa_key("attacker"), "k1")}),
        "signature",
    ),
    "an address of keys in its header": (
        lambda server: foreign(server, headers={"jku": f"{server.url}/attacker"}),
        "signature",
    ),
    "certificates in its header": (lambda server: foreign(server, headers={"x5c": ["AAAA"], "x5u": "x"}), "signature"),
    "an unknown key": (lambda server: server.token(headers={"kid": "k9"}), "key is not known"),
    "a path as the id of its key": (lambda server: server.token(headers={"kid": "../../dev/null"}), "key is not known"),
    "a long id of its key": (lambda server: server.token(headers={"kid": "k" * 300}), "key is not known"),
    "an extension": (lambda server: server.token(headers={"crit": ["x"], "x": 1}), "extension|JSON Web Token"),
    "another issuer": (lambda server: server.token(iss="https://id.example.org"), "issuer"),
    "an issuer with a slash": (lambda server: server.token(iss=server.url + "/"), "issuer"),
    "no issuer": (lambda server: server.token(iss=None), "issuer"),
    "another audience": (lambda server: server.token(aud="other"), "audience"),
    "an audience that contains it": (lambda server: server.token(aud="omnigraph2"), "audience"),
    "no audience": (lambda server: server.token(aud=None), "claims"),
    "no expiry": (lambda server: server.token(exp=None), "claims"),
    "not valid yet": (lambda server: server.token(nbf=NOW + 3600), "not valid yet"),
    "made in the future": (lambda server: server.token(iat=NOW + 3600), "not valid yet"),
    "no subject": (lambda server: server.token(sub=None), "claim 'sub'"),
    "a changed claim": (
        lambda server: ".".join(
            (part({"alg": "RS256", "kid": "k1"}), part(server.claims(sub="root")), server.token().rsplit(".", 1)[1])
        ),
        "signature",
    ),
    "an infinite expiry": (
        lambda server: ".".join(
            (part({"alg": "RS256", "kid": "k1"}), part({**server.claims(), "exp": float("inf")}), "AAAA")
        ),
        "signature|claims",
    ),
    "not base64": (lambda _: "a!b.c.d", "JSON Web Token"),
    "not JSON": (lambda _: "YQ.YQ.YQ", "JSON Web Token"),
    "deep JSON": (
        lambda _: base64.urlsafe_b64encode(b"[" * 3000).rstrip(b"=").decode() + ".e30.AAAA",
        "JSON Web Token",
    ),
    "very long": (lambda server: server.token(padding="x" * 9000), "longer than"),
}


@pytest.mark.parametrize("form", FORGED)
def test_forged_tokens_are_refused(setup: Setup, form: str) -> None:
    make, reason = FORGED[form]
    assert setup.find(setup.server.token()) == "ana"
    with pytest.raises(Unauthorized) as caught:
        setup.find(make(setup.server))
    assert caught.value.code == "invalid_token"
    assert any(word in str(caught.value.hint) for word in reason.split("|")), caught.value.hint
    assert set(setup.server.paths) == {"/.well-known/openid-configuration", "/keys"}


def test_a_token_that_is_no_ascii_text(setup: Setup) -> None:
    with pytest.raises(Unauthorized):
        setup.find(b"\xff.\xff.\xff")


def test_an_expired_token_says_so(setup: Setup) -> None:
    with pytest.raises(Unauthorized) as caught:
        setup.find(setup.server.token(exp=int(time.time()) - LEEWAY_S - 1))
    assert caught.value.code == "token_expired"


def test_a_known_token_is_verified_once_and_expires(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    token = setup.server.token()
    assert setup.find(token) == "ana"
    monkeypatch.setattr(jwt, "decode", lambda *_, **__: pytest.fail("it is verified again"))
    assert setup.find(token) == "ana"
    setup.now += 300 + LEEWAY_S + 1
    with pytest.raises(Unauthorized) as caught:
        setup.find(token)
    assert caught.value.code == "token_expired"


def test_a_withdrawn_key_ends_the_tokens_that_it_signed(setup: Setup) -> None:
    token = setup.server.token()
    assert setup.find(token) == "ana"
    setup.server.keys = [public_jwk(rsa_key("k2"), "k2")]
    setup.tokens.keys[setup.server.url].refresh()
    with pytest.raises(Unauthorized, match="invalid bearer token"):
        setup.find(token)


def test_known_tokens_are_bounded(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_web_tokens, "KEPT_MAX", 3)
    for number in range(6):
        setup.find(setup.server.token(sub=f"a{number}"))
    assert len(setup.tokens._kept) == 3


def test_without_keys_the_answer_is_to_try_again(setup: Setup) -> None:
    setup.server.status = 503
    with pytest.raises(Overloaded) as caught:
        setup.find(setup.server.token())
    assert caught.value.scope == "server"


def test_a_check_without_waiting_uses_known_keys(setup: Setup) -> None:
    token = setup.server.token().encode()
    with pytest.raises(Unauthorized):
        setup.tokens.find_now(token)
    assert setup.server.paths == []
    setup.find(token)
    assert setup.tokens.find_now(token).actor == "ana"
    assert setup.tokens.find_now(setup.server.token(sub="bo").encode()).actor == "bo"


def test_a_reload_keeps_the_keys_of_an_unchanged_issuer(setup: Setup) -> None:
    setup.find(setup.server.token())
    same = setup.make(setup.tokens)
    other = setup.make(setup.tokens, actor_prefix="sso:")
    assert same.keys == setup.tokens.keys
    assert other.keys != setup.tokens.keys


@pytest.mark.parametrize(
    ("token", "expected"), [(b"a.b.c", True), (b"og_abc", False), (b"a.b", False), (b"a.b.c.d", False)]
)
def test_the_form_of_a_token(token: bytes, expected: bool) -> None:
    assert is_json_web_token(token) is expected
