"""The caller of a token from its claims."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from omnigraph.errors import Unauthorized
from omnigraph.server.auth.oidc.claims import principal_of
from omnigraph.server.auth.oidc.issuers import Issuer

ISSUER = Issuer("https://id.example.org/realm", "omnigraph")


def test_without_settings_claims_give_an_actor_and_nothing_else() -> None:
    claims = {"sub": "ana", "groups": ["owners"], "tenant": "acme", "actor": "root"}
    found = principal_of(claims, ISSUER)
    assert (found.actor, found.token_name, found.groups, dict(found.attributes)) == (
        "ana", "oidc:id.example.org", (), {}
    )  # fmt: skip
    assert found.only is None


@pytest.mark.parametrize("actor", [None, 7, "", "  ", "a\nb", ["ana"], "x" * 257])
def test_an_actor_that_is_no_name_is_refused(actor: Any) -> None:
    with pytest.raises(Unauthorized, match="invalid bearer token"):
        principal_of({"sub": actor}, ISSUER)


def test_an_address_of_email_must_be_verified() -> None:
    issuer = replace(ISSUER, actor_claim="email")
    assert principal_of({"email": "ana@example.org", "email_verified": True}, issuer).actor == "ana@example.org"
    for verified in (None, False, "true", 1):
        with pytest.raises(Unauthorized):
            principal_of({"email": "ana@example.org", "email_verified": verified}, issuer)


def test_a_prefix_tells_actors_of_an_issuer_apart() -> None:
    assert principal_of({"sub": "default"}, replace(ISSUER, actor_prefix="sso:")).actor == "sso:default"


@pytest.mark.parametrize(
    ("value", "groups"),
    [
        (["staff", "staff", "hr"], ("staff", "hr")),
        ("staff", ("staff",)),
        (["staff", 3, None, "", "a\nb", {"x": 1}], ("staff",)),
        (None, ()),
        ({"staff": True}, ()),
    ],
)
def test_groups_are_texts(value: Any, groups: tuple[str, ...]) -> None:
    assert principal_of({"sub": "ana", "roles": value}, replace(ISSUER, groups_claim="roles")).groups == groups


def test_with_a_map_only_its_groups_count() -> None:
    issuer = replace(ISSUER, groups_claim="realm_access.roles", groups_map={"kb-owner": "owners"})
    claims = {"sub": "ana", "realm_access": {"roles": ["kb-owner", "owners"]}}
    assert principal_of(claims, issuer).groups == ("owners",)
    assert principal_of({"sub": "ana", "realm_access": {"roles": ["owners"]}}, issuer).groups == ()


def test_a_claim_with_a_dot_in_its_name_comes_before_a_path() -> None:
    issuer = replace(ISSUER, groups_claim="https://example.org/groups")
    assert principal_of({"sub": "ana", "https://example.org/groups": ["a"]}, issuer).groups == ("a",)


def test_attributes_have_simple_values() -> None:
    issuer = replace(
        ISSUER, attributes={"tenant": "org", "level": "lvl", "tags": "tags", "raw": "raw", "f": "f", "no": "no"}
    )
    claims = {"sub": "a", "org": "acme", "lvl": 3, "tags": ["x", "y"], "raw": {"a": 1}, "f": 0.5, "secret": "s"}
    assert principal_of(claims, issuer).attributes == {"tenant": "acme", "level": 3, "tags": ["x", "y"]}
