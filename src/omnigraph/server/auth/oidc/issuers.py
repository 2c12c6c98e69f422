"""`Issuer`: an entry of `server.auth.oidc`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from omnigraph.errors import InputError, MissingPackage
from omnigraph.server.outgoing_http import Reach, url_problem
from omnigraph.suggestions import did_you_mean

ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
"""Algorithms that can be accepted. All are asymmetric: a public key can never verify a token that it made itself."""
DEFAULT_ALGORITHMS = ("RS256", "ES256")


@dataclass(frozen=True)
class Issuer:
    """An issuer whose tokens are accepted, and what their claims mean."""

    issuer: str
    """Equal to the claim `iss`, character by character."""
    audience: str
    jwks_url: str | None = None
    """The address of the keys; None means that of the discovery document."""
    algorithms: tuple[str, ...] = DEFAULT_ALGORITHMS
    actor_claim: str = "sub"
    actor_prefix: str = ""
    groups_claim: str | None = None
    groups_map: Mapping[str, str] | None = field(default=None, hash=False)
    """Group of a claim → group of the policy; others do not count. None means that all count under their names."""
    attributes: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Attribute of the policy → claim."""
    allow_private: bool = False
    client_id: str | None = None
    """The web explorer as a public client; None if it does not sign in."""
    scopes: tuple[str, ...] = ("openid",)
    """The scopes that the explorer requests."""

    @property
    def origin(self) -> str:
        """The origin of the issuer, which the explorer sends requests to."""
        parts = urlsplit(self.issuer)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def host(self) -> str:
        """The host of the issuer, for the audit log."""
        return urlsplit(self.issuer).netloc

    @property
    def reach(self) -> Reach:
        """The addresses that may be reached."""
        return "private" if self.allow_private else "public"


def read_issuers(entries: Sequence[Mapping[str, Any]]) -> tuple[Issuer, ...]:
    """Return the issuers of the settings; raises `InputError` that names the issuer and the key."""
    issuers = tuple(map(_read, entries))
    names = [issuer.issuer for issuer in issuers]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"the issuer '{name}' occurs twice", code="bad_setting")
    if issuers:
        check_installed()
    return issuers


def check_resource(url: str | None) -> None:
    """Raise `InputError` if `server.auth.resource` is not a URL."""
    problem = url_problem(url, plain=True) if url is not None else None
    if problem is not None:
        raise InputError(f"'server.auth.resource' {problem}", code="bad_setting")


def _read(entry: Mapping[str, Any]) -> Issuer:
    name, plain = entry["issuer"], entry["allow_private"]
    for key in ("issuer", "jwks_url"):
        problem = url_problem(entry[key], plain=plain) if entry[key] is not None else None
        if problem is not None:
            raise _invalid(name if key != "issuer" else "", key, problem)
    for algorithm in entry["algorithms"]:
        if algorithm not in ALGORITHMS:
            note = did_you_mean(algorithm, ALGORITHMS)
            text = f"contains '{algorithm}', which is not accepted; accepted: {', '.join(ALGORITHMS)}"
            raise _invalid(name, "algorithms", text + (f" ({note})" if note else ""))
    for key in ("groups_map", "attributes"):
        if any(not isinstance(value, str) for value in (entry[key] or {}).values()):
            raise _invalid(name, key, "must map names to texts")
    return Issuer(
        issuer=name,
        audience=entry["audience"],
        jwks_url=entry["jwks_url"],
        algorithms=tuple(entry["algorithms"]) or DEFAULT_ALGORITHMS,
        actor_claim=entry["actor_claim"],
        actor_prefix=entry["actor_prefix"] or "",
        groups_claim=entry["groups_claim"],
        groups_map=entry["groups_map"],
        attributes=entry["attributes"] or {},
        allow_private=plain,
        client_id=entry["client_id"],
        scopes=_scopes(name, entry["scopes"]),
    )


def _scopes(issuer: str, given: Sequence[str]) -> tuple[str, ...]:
    for scope in given:
        if not scope or any(sign <= " " or sign in '"\\' or sign > "~" for sign in scope):
            raise _invalid(issuer, "scopes", f"contains '{scope}', which is not a scope")
    return tuple(dict.fromkeys(("openid", *given)))


def check_installed() -> None:
    """Raise `MissingPackage` if PyJWT or its cryptography is not installed."""
    try:
        import cryptography  # noqa: F401, PLC0415 (only a server with issuers needs them)
        import jwt  # noqa: F401, PLC0415
    except ImportError as error:
        raise MissingPackage(
            "'PyJWT' with 'cryptography' is not installed, and the settings name an issuer of tokens",
            hint="install it: pip install 'omnigraph[oidc]', or remove 'server.auth.oidc' from the configuration",
        ) from error


def _invalid(issuer: str, key: str, problem: str) -> InputError:
    named = f"issuer '{issuer}': " if issuer else "'server.auth.oidc': "
    return InputError(f"{named}'{key}' {problem}", code="bad_setting")
