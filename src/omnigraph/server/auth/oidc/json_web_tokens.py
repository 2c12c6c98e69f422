"""Verification of JSON Web Tokens of the configured issuers.

The issuer is chosen by the claim `iss`, the key by the header `kid`, both before the signature is verified; neither can
name an address. The algorithm must be one of the issuer's, and the key must be of its type, so a token can choose
neither `none` nor a symmetric algorithm. Headers that carry or name keys (`jwk`, `jku`, `x5c`, `x5u`) have no effect.
`exp`, `nbf` and `iat` are compared with 60 seconds of leeway.

The callers of verified tokens are kept until they expire, so that a repeated token costs one hash. Changed keys clear
them.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from omnigraph.errors import Overloaded, Unauthorized
from omnigraph.server.auth.oidc.claims import principal_of, refused
from omnigraph.server.auth.oidc.issuers import Issuer
from omnigraph.server.auth.oidc.key_sets import UNKNOWN_KEY_S, KeySet, KeysUnavailable
from omnigraph.server.auth.tokens import Principal

if TYPE_CHECKING:
    from jwt import PyJWK

LEEWAY_S = 60
TOKEN_MAX = 8 * 1024
KEPT_MAX = 10_000
_KEY_ID_MAX = 256
_PARTS = 3


@dataclass(frozen=True)
class _Unverified:
    """What a token says of itself, before it is verified."""

    text: str
    issuer: Issuer
    algorithm: str
    key_id: str | None


@dataclass(frozen=True)
class _Kept:
    principal: Principal
    expires: float
    issuer: str
    generation: int


class JsonWebTokens:
    """Verifies tokens of several issuers."""

    def __init__(
        self,
        issuers: Sequence[Issuer],
        running: JsonWebTokens | None = None,
        *,
        clock: Callable[[], float] = time.time,
        make_keys: Callable[[Issuer], KeySet] = KeySet,
    ) -> None:
        self.issuers: dict[str, Issuer] = {issuer.issuer: issuer for issuer in issuers}
        kept = {name: keys for name, keys in running.keys.items() if keys.issuer in issuers} if running else {}
        self.keys: dict[str, KeySet] = {name: kept.get(name) or make_keys(self.issuers[name]) for name in self.issuers}
        self._clock = clock
        self._kept: OrderedDict[bytes, _Kept] = OrderedDict()

    async def find(self, token: bytes) -> Principal:
        """Return the caller of a token; fetches keys if necessary.

        Raises `Unauthorized`, and `Overloaded` if the keys cannot be fetched.
        """
        kept = self._find_kept(token)
        if kept is not None:
            return kept
        said = self._read(token)
        try:
            key = await self.keys[said.issuer.issuer].get(said.algorithm, said.key_id)
        except KeysUnavailable:
            raise Overloaded(
                "the keys of the issuer of the token cannot be fetched",
                scope="server",
                retry_after_s=int(UNKNOWN_KEY_S),
                limit="oidc_keys",
            ) from None
        return self._verify(token, said, key)

    def find_now(self, token: bytes) -> Principal:
        """Return the caller of a token by the keys that are known; never waits."""
        kept = self._find_kept(token)
        if kept is not None:
            return kept
        said = self._read(token)
        return self._verify(token, said, self.keys[said.issuer.issuer].find(said.algorithm, said.key_id))

    def _find_kept(self, token: bytes) -> Principal | None:
        """Return the caller of a token that was verified before; raises `Unauthorized` if it has expired."""
        kept = self._kept.get(hashlib.sha256(token).digest())
        if kept is None or kept.generation != self.keys[kept.issuer].generation:
            return None
        if self._clock() >= kept.expires:
            raise _expired()
        self.keys[kept.issuer].keep_fresh()
        return kept.principal

    def _read(self, token: bytes) -> _Unverified:
        from jwt import PyJWTError, decode, get_unverified_header  # noqa: PLC0415

        if len(token) > TOKEN_MAX:
            raise refused(f"it is longer than {TOKEN_MAX:,} bytes")
        try:
            text = token.decode("ascii")
            header: Mapping[str, Any] = get_unverified_header(text)
            claims: Mapping[str, Any] = decode(text, options={"verify_signature": False})
        except (PyJWTError, ValueError, TypeError, OverflowError, RecursionError):
            raise refused("it is not a JSON Web Token") from None
        name = claims.get("iss")
        issuer = self.issuers.get(name) if isinstance(name, str) else None
        if issuer is None:
            raise refused("its issuer is not known")
        algorithm, key_id = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or algorithm not in issuer.algorithms:
            raise refused("its algorithm is not accepted")
        if "crit" in header:
            raise refused("it requires an extension")
        if key_id is not None and (not isinstance(key_id, str) or len(key_id) > _KEY_ID_MAX):
            raise refused("its key is not known")
        return _Unverified(text, issuer, algorithm, key_id)

    def _verify(self, token: bytes, said: _Unverified, key: PyJWK | None) -> Principal:
        if key is None:
            raise refused("its key is not known")
        claims = _decode(said, key)
        expires = float(claims["exp"]) + LEEWAY_S
        if self._clock() >= expires:
            raise _expired()
        principal = replace(principal_of(claims, said.issuer), not_after=float(claims["exp"]))
        name = said.issuer.issuer
        self._kept[hashlib.sha256(token).digest()] = _Kept(principal, expires, name, self.keys[name].generation)
        while len(self._kept) > KEPT_MAX:
            self._kept.popitem(last=False)
        return principal


def _decode(said: _Unverified, key: PyJWK) -> dict[str, Any]:
    """Return the claims of a token whose signature, issuer, audience and times are valid."""
    import jwt  # noqa: PLC0415 (imported if an issuer is configured)

    try:
        claims: dict[str, Any] = jwt.decode(
            said.text,
            key,
            algorithms=[said.algorithm],
            audience=said.issuer.audience,
            issuer=said.issuer.issuer,
            leeway=LEEWAY_S,
            options={"require": ["exp", "iss", "aud"]},
        )
    except jwt.ExpiredSignatureError:
        raise _expired() from None
    except jwt.InvalidAudienceError:
        raise refused("it is for another audience") from None
    except jwt.ImmatureSignatureError:
        raise refused("it is not valid yet") from None
    except jwt.InvalidSignatureError:
        raise refused("its signature is not valid") from None
    except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError):
        raise refused("its claims are not valid") from None
    return claims


def _expired() -> Unauthorized:
    return Unauthorized("the bearer token has expired", code="token_expired", hint="ask for a new token")


def is_json_web_token(token: bytes) -> bool:
    """Return True if a bearer token has the form of a JSON Web Token: three parts, separated by dots."""
    return token.count(b".") == _PARTS - 1
