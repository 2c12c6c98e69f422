"""The caller of a request from the claims of a verified token.

Claims become groups and attributes only through the settings of their issuer. A claim of another form than a text, a
number or a list of these counts as absent: without an attribute, a rule of a policy grants nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omnigraph.errors import Unauthorized
from omnigraph.server.auth.oidc.issuers import Issuer
from omnigraph.server.auth.tokens import Principal

ACTOR_MAX = 256
GROUPS_MAX = 1_000
_EMAIL = "email"
_MISSING = object()


def principal_of(claims: Mapping[str, Any], issuer: Issuer) -> Principal:
    """Return the caller of a token; raises `Unauthorized` if its actor is missing or not usable."""
    return Principal(
        actor=_actor(claims, issuer),
        token_name=f"oidc:{issuer.host}",
        groups=_groups(claims, issuer),
        attributes=_attributes(claims, issuer),
    )


def _actor(claims: Mapping[str, Any], issuer: Issuer) -> str:
    actor = find_claim(claims, issuer.actor_claim)
    if not isinstance(actor, str) or not actor.strip() or not actor.isprintable() or len(actor) > ACTOR_MAX:
        raise refused(f"its claim '{issuer.actor_claim}' is missing or is not a name")
    if issuer.actor_claim == _EMAIL and claims.get("email_verified") is not True:
        # Anybody can register an account with the address of another person.
        raise refused("its address of e-mail is not verified")
    return issuer.actor_prefix + actor.strip()


def _groups(claims: Mapping[str, Any], issuer: Issuer) -> tuple[str, ...]:
    if issuer.groups_claim is None:
        return ()
    value = find_claim(claims, issuer.groups_claim)
    listed = value if isinstance(value, list) else [value]
    names = [name for name in listed[:GROUPS_MAX] if isinstance(name, str) and name.strip() and name.isprintable()]
    if issuer.groups_map is None:
        return tuple(dict.fromkeys(names))
    return tuple(dict.fromkeys(issuer.groups_map[name] for name in names if name in issuer.groups_map))


def _attributes(claims: Mapping[str, Any], issuer: Issuer) -> dict[str, Any]:
    found = {name: find_claim(claims, claim) for name, claim in issuer.attributes.items()}
    return {name: value for name, value in found.items() if _is_attribute(value)}


def _is_attribute(value: Any) -> bool:
    parts = value if isinstance(value, list) else [value]
    return all(isinstance(part, str | bool | int) for part in parts)


def find_claim(claims: Mapping[str, Any], name: str) -> Any:
    """Return a claim by its name, or by a path such as `realm_access.roles`; None if it is absent."""
    value = claims.get(name, _MISSING)
    if value is not _MISSING:
        return value
    value = claims
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return value


def refused(reason: str) -> Unauthorized:
    """Return the error of a token that is not accepted."""
    return Unauthorized("invalid bearer token", code="invalid_token", hint=f"the token is not accepted: {reason}")
