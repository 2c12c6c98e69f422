"""The keys of an issuer: bounds, freshness, and few fetches whatever the number of tokens."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from omnigraph.server.auth.oidc.issuers import Issuer
from omnigraph.server.auth.oidc.key_sets import (
    DISCOVERY_BYTES,
    FRESH_S,
    KEYS_BYTES,
    KEYS_MAX,
    STALE_S,
    UNKNOWN_KEY_S,
    KeySet,
    KeysUnavailable,
    read_keys,
)
from omnigraph.server.outgoing_http import OutgoingFailed
from support.issuer import AUDIENCE, IssuerServer, issuing, public_jwk, rsa_key
from support.waiting import wait_until


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def server() -> Iterator[IssuerServer]:
    with issuing() as running:
        yield running


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def keys(server: IssuerServer, clock: Clock) -> KeySet:
    return KeySet(issuer_of(server), clock)


def issuer_of(server: IssuerServer, **options: Any) -> Issuer:
    return Issuer(server.url, AUDIENCE, allow_private=True, **options)


def get(keys: KeySet, key_id: str | None = "k1", algorithm: str = "RS256") -> Any:
    return asyncio.run(keys.get(algorithm, key_id))


def wait(keys: KeySet) -> None:
    """Wait for a fetch in the background."""
    fetch = keys._fetch
    if fetch is not None:
        fetch.result(30)


def test_keys_are_discovered_once(server: IssuerServer, keys: KeySet) -> None:
    assert get(keys) is not None
    assert get(keys) is not None
    assert server.paths == ["/.well-known/openid-configuration", "/keys"]


def test_a_given_address_needs_no_discovery(server: IssuerServer, clock: Clock) -> None:
    keys = KeySet(issuer_of(server, jwks_url=f"{server.url}/keys"), clock)
    assert get(keys) is not None
    assert server.paths == ["/keys"]


def test_old_keys_are_used_while_they_are_fetched_again(server: IssuerServer, keys: KeySet, clock: Clock) -> None:
    get(keys)
    clock.now += FRESH_S + 1
    server.keys = [public_jwk(rsa_key("k2"), "k2")]
    assert get(keys) is not None, "the old key answers at once"
    wait(keys)
    assert (server.fetches, get(keys, "k2") is not None, keys.find("RS256", "k1")) == (2, True, None)


def test_keys_are_used_for_a_day_if_the_issuer_is_down(
    server: IssuerServer, keys: KeySet, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    get(keys)
    server.status = 503
    clock.now += STALE_S - 1
    with caplog.at_level(logging.WARNING):
        assert get(keys) is not None
        wait(keys)
    assert "status 503" in caplog.text
    clock.now += 2
    with pytest.raises(KeysUnavailable):
        get(keys)


def test_unknown_keys_cause_one_fetch_in_thirty_seconds(server: IssuerServer, keys: KeySet, clock: Clock) -> None:
    get(keys)
    for number in range(200):
        assert get(keys, f"made-up-{number}") is None
    assert server.fetches == 1, "the first fetch was a moment ago"
    clock.now += UNKNOWN_KEY_S
    for number in range(200):
        assert get(keys, f"made-up-{number}") is None
    assert server.fetches == 2


def test_a_new_key_is_found_at_its_first_token(server: IssuerServer, keys: KeySet, clock: Clock) -> None:
    get(keys)
    clock.now += UNKNOWN_KEY_S
    server.keys.append(public_jwk(rsa_key("k2"), "k2"))
    before = keys.generation
    assert get(keys, "k2") is not None
    assert keys.generation == before + 1


def test_equal_keys_are_no_change(keys: KeySet) -> None:
    get(keys)
    before = keys.generation
    keys.refresh()
    assert keys.generation == before


def test_many_requests_wait_for_one_fetch(server: IssuerServer, keys: KeySet) -> None:
    server.gate = threading.Event()

    async def ask() -> list[Any]:
        waiting = [asyncio.ensure_future(keys.get("RS256", "k1")) for _ in range(50)]
        await wait_until(lambda: server.paths, "the first request")
        assert server.gate is not None
        server.gate.set()
        return await asyncio.gather(*waiting)

    assert all(asyncio.run(ask()))
    assert server.fetches == 1


def test_without_keys_a_failure_is_not_repeated_at_once(server: IssuerServer, keys: KeySet) -> None:
    server.status = 500
    for _ in range(20):
        with pytest.raises(KeysUnavailable):
            get(keys)
    assert len(server.paths) == 1


@pytest.mark.parametrize(
    ("discovery", "problem"),
    [
        ({"issuer": "https://another.example"}, "another issuer"),
        ({"jwks_uri": None}, "is not a text"),
        ({"jwks_uri": "file:///etc/passwd"}, "must begin with https"),
        ({"jwks_uri": "http://user@127.0.0.1/keys"}, "user"),
    ],
)
def test_a_wrong_discovery_document_is_refused(server: IssuerServer, discovery: Any, problem: str) -> None:
    server.discovery = discovery
    with pytest.raises(ValueError, match=problem):
        read_keys(issuer_of(server))
    assert server.fetches == 0


def test_the_addresses_of_an_issuer_are_checked(server: IssuerServer) -> None:
    with pytest.raises(OutgoingFailed, match="not permitted"):
        read_keys(Issuer(server.url, AUDIENCE))
    server.discovery = {"jwks_uri": "http://169.254.169.254/keys"}
    with pytest.raises(OutgoingFailed, match="not permitted"):
        read_keys(issuer_of(server))


@pytest.mark.parametrize("answer", [b"", b"[]", b"{", b"[" * 5000, b'{"keys": 3}', b'{"keys": []}', b"\xff"])
def test_an_answer_that_is_no_document_of_keys(server: IssuerServer, answer: bytes) -> None:
    server.answer = answer
    with pytest.raises(ValueError, match=r"issuer|keys"):
        read_keys(issuer_of(server, jwks_url=f"{server.url}/keys"))


@pytest.mark.parametrize("size", [DISCOVERY_BYTES, KEYS_BYTES])
def test_a_long_answer_is_not_read(server: IssuerServer, size: int) -> None:
    server.answer = b" " * (size + 1)
    url = None if size == DISCOVERY_BYTES else f"{server.url}/keys"
    with pytest.raises(OutgoingFailed, match="more than"):
        read_keys(issuer_of(server, jwks_url=url))


def test_only_keys_of_the_right_kind_are_kept(server: IssuerServer) -> None:
    p256, p384 = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP384R1())
    server.keys = [
        public_jwk(rsa_key(), "rsa"),
        public_jwk(rsa_key("weak", 1024), "weak"),
        public_jwk(rsa_key(), "encryption", use="enc"),
        public_jwk(rsa_key(), "signing", key_ops=["sign"]),
        public_jwk(rsa_key(), "another", alg="RS512"),
        {"kty": "oct", "kid": "secret", "k": "c2VjcmV0", "alg": "HS256"},
        {"kty": "oct", "kid": "disguised", "k": "c2VjcmV0", "alg": "RS256"},
        public_jwk(p256, "p256"),
        public_jwk(p384, "p384"),
        public_jwk(ed25519.Ed25519PrivateKey.generate(), "ed"),
        {"kty": "RSA", "kid": "broken", "n": "!", "e": "AQAB"},
        {"kty": "RSA", "kid": "absent"},
        "not a key",
    ]
    found = read_keys(issuer_of(server, algorithms=("RS256", "ES256", "EdDSA")))
    assert set(found) == {("RS256", "rsa"), ("ES256", "p256"), ("EdDSA", "ed")}


def test_the_number_of_keys_is_bounded(server: IssuerServer) -> None:
    server.keys = [public_jwk(rsa_key(), f"k{number}") for number in range(KEYS_MAX + 50)]
    assert len(read_keys(issuer_of(server))) == KEYS_MAX


def test_a_token_without_an_id_needs_a_single_key(server: IssuerServer, keys: KeySet, clock: Clock) -> None:
    server.keys = [public_jwk(rsa_key(), None)]
    assert get(keys, None) is not None
    clock.now += UNKNOWN_KEY_S
    server.keys = [public_jwk(rsa_key(), "k1"), public_jwk(rsa_key("k2"), "k2")]
    keys.refresh()
    assert get(keys, None) is None
