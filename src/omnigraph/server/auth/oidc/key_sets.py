"""The public keys of an issuer: fetched within bounds, kept, and refreshed.

Keys are fresh for ten minutes. After that they are still used, while a thread fetches them again; if the issuer is
down, they are used for a day. A token that names an unknown key causes a fetch at most every 30 seconds, whatever the
number of such tokens. Requests that need keys and have none wait for the fetch that is under way.

Only keys that can verify a signature of an accepted algorithm are kept. Symmetric keys are ignored.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omnigraph.server.auth.oidc.issuers import Issuer
from omnigraph.server.outgoing_http import OutgoingFailed, request, url_problem

if TYPE_CHECKING:
    from jwt import PyJWK

FRESH_S = 600.0
STALE_S = 86_400.0
UNKNOWN_KEY_S = 30.0
TIMEOUT_S = 5.0
DISCOVERY_BYTES = 64 * 1024
KEYS_BYTES = 256 * 1024
KEYS_MAX = 100
RSA_BITS = (2048, 8192)
"""Shorter keys are not secure; longer ones cost too much time."""
_DISCOVERY = "/.well-known/openid-configuration"
_CURVES = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}
_log = logging.getLogger(__name__)


class KeysUnavailable(Exception):
    """The keys of an issuer cannot be fetched, and there are none that are recent enough."""


@dataclass(frozen=True)
class _Keys:
    """The keys of one fetch, by algorithm and id; a key without an id is under None."""

    found: Mapping[tuple[str, str | None], PyJWK]
    fetched: float

    def find(self, algorithm: str, key_id: str | None) -> PyJWK | None:
        """Return the key of a token. A token without an id is verified by the only key of its algorithm."""
        if key_id is not None:
            return self.found.get((algorithm, key_id))
        fitting = [key for (known, _), key in self.found.items() if known == algorithm]
        return fitting[0] if len(fitting) == 1 else None


class KeySet:
    """The keys of one issuer. All methods are thread-safe."""

    def __init__(self, issuer: Issuer, clock: Callable[[], float] = time.monotonic) -> None:
        self.issuer = issuer
        self._clock = clock
        self._lock = threading.Lock()
        self._keys: _Keys | None = None
        self._tried = float("-inf")
        self._fetch: Future[None] | None = None
        self.generation = 0
        """Increases when the keys change."""

    def find(self, algorithm: str, key_id: str | None) -> PyJWK | None:
        """Return a key without waiting; None if it is not known."""
        keys = self._keys
        if keys is None or self._clock() - keys.fetched > STALE_S:
            return None
        return keys.find(algorithm, key_id)

    async def get(self, algorithm: str, key_id: str | None) -> PyJWK | None:
        """Return a key; fetch the keys if they are missing or old, or if the key is unknown and a fetch is permitted.

        Raises `KeysUnavailable` if there are no keys.
        """
        found = self.find(algorithm, key_id)
        if found is not None:
            self.keep_fresh()
            return found
        fetch = self._start()
        if fetch is not None:
            await asyncio.shield(asyncio.wrap_future(fetch))
        keys = self._keys
        if keys is None or self._clock() - keys.fetched > STALE_S:
            raise KeysUnavailable
        return keys.find(algorithm, key_id)

    def keep_fresh(self) -> None:
        """Start a fetch if the keys are not fresh; does not wait for it."""
        keys = self._keys
        if keys is None or self._clock() - keys.fetched > FRESH_S:
            self._start()

    def _start(self) -> Future[None] | None:
        """Return the fetch under way, or start one unless the last one is too recent."""
        with self._lock:
            if self._fetch is not None:
                return self._fetch
            if self._clock() - self._tried < UNKNOWN_KEY_S:
                return None
            self._tried = self._clock()
            fetch: Future[None] = Future()
            self._fetch = fetch
        threading.Thread(target=self._run, args=(fetch,), name="omnigraph-oidc", daemon=True).start()
        return fetch

    def _run(self, fetch: Future[None]) -> None:
        try:
            self.refresh()
        except Exception:
            _log.exception("the keys of issuer '%s' cannot be read", self.issuer.issuer)
        finally:
            with self._lock:
                self._fetch = None
            fetch.set_result(None)

    def refresh(self) -> None:
        """Fetch the keys now. If that fails, the known ones stay."""
        try:
            found = read_keys(self.issuer)
        except (OutgoingFailed, ValueError) as error:
            _log.warning("the keys of issuer '%s' cannot be fetched: %s", self.issuer.issuer, error)
            return
        before = self._keys
        if before is None or _identities(before.found) != _identities(found):
            self.generation += 1
        self._keys = _Keys(found, self._clock())


def _identities(found: Mapping[tuple[str, str | None], PyJWK]) -> dict[tuple[str, str | None], Any]:
    return {name: key._jwk_data for name, key in found.items()}


def read_keys(issuer: Issuer) -> dict[tuple[str, str | None], PyJWK]:
    """Fetch the keys of an issuer, by algorithm and id; raises `OutgoingFailed` or `ValueError`."""
    url = issuer.jwks_url or _discover(issuer)
    document = _read_json(url, KEYS_BYTES, issuer)
    listed = document.get("keys")
    if not isinstance(listed, list):
        raise ValueError("the document of keys has no list 'keys'")
    found: dict[tuple[str, str | None], PyJWK] = {}
    for entry in listed[:KEYS_MAX]:
        if not isinstance(entry, dict) or not _may_verify(entry):
            continue
        key_id = entry.get("kid") if isinstance(entry.get("kid"), str) else None
        for algorithm in issuer.algorithms:
            key = _read_key(entry, algorithm)
            if key is not None:
                found.setdefault((algorithm, key_id), key)
    if not found:
        raise ValueError("the document of keys has no key for an accepted algorithm")
    return found


def _discover(issuer: Issuer) -> str:
    """Return the address of the keys that the discovery document names."""
    document = _read_json(issuer.issuer.rstrip("/") + _DISCOVERY, DISCOVERY_BYTES, issuer)
    if document.get("issuer") != issuer.issuer:
        raise ValueError("the discovery document names another issuer")
    url = document.get("jwks_uri")
    problem = "is not a text" if not isinstance(url, str) else url_problem(url, plain=issuer.allow_private)
    if problem is not None or not isinstance(url, str):
        raise ValueError(f"'jwks_uri' of the discovery document {problem}")
    return url


def _read_json(url: str, size_max: int, issuer: Issuer) -> dict[str, Any]:
    headers = {"Accept": "application/json"}
    answer = request("GET", url, headers=headers, timeout_s=TIMEOUT_S, answer_max=size_max, reach=issuer.reach)
    if answer.status != 200:
        raise ValueError(f"the issuer answered with status {answer.status}")
    try:
        document = json.loads(answer.body)
    except (ValueError, RecursionError):
        raise ValueError("the issuer did not answer with JSON") from None
    if not isinstance(document, dict):
        raise ValueError("the issuer did not answer with a JSON object")
    return document


def _may_verify(entry: Mapping[str, Any]) -> bool:
    operations = entry.get("key_ops")
    return entry.get("use", "sig") == "sig" and (not isinstance(operations, list) or "verify" in operations)


def _read_key(entry: Mapping[str, Any], algorithm: str) -> PyJWK | None:
    """Return the public key of an entry for an algorithm; None if it does not fit or is not secure."""
    from jwt import PyJWK, PyJWTError  # noqa: PLC0415 (imported if an issuer is configured)

    if entry.get("alg", algorithm) != algorithm or not _fits(entry, algorithm):
        return None
    public = {name: value for name, value in entry.items() if name in ("kty", "n", "e", "crv", "x", "y", "kid")}
    try:
        key = PyJWK(public, algorithm)
    except (PyJWTError, ValueError, TypeError, OverflowError):
        return None
    bits = getattr(key.key, "key_size", RSA_BITS[0])
    return key if entry["kty"] != "RSA" or RSA_BITS[0] <= bits <= RSA_BITS[1] else None


def _fits(entry: Mapping[str, Any], algorithm: str) -> bool:
    """Return True if the type of a key is that of an algorithm, so that no key serves another purpose."""
    match algorithm[:2]:
        case "RS" | "PS":
            return entry.get("kty") == "RSA"
        case "ES":
            return entry.get("kty") == "EC" and entry.get("crv") == _CURVES[algorithm]
        case _:
            return entry.get("kty") == "OKP" and entry.get("crv") in ("Ed25519", "Ed448")
