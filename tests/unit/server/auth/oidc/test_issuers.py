"""Entries of `server.auth.oidc`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from omnigraph.config import parse_config
from omnigraph.errors import InputError, MissingPackage
from omnigraph.server.auth.oidc.issuers import Issuer, read_issuers
from omnigraph.server.deployment.settings import read_settings

ENTRY = 'issuer: "https://id.example.org", audience: omnigraph'


def read(*entries: str) -> tuple[Issuer, ...]:
    lines = ", ".join(f"{{{entry}}}" for entry in entries)
    config = parse_config(f"server: {{auth: {{oidc: [{lines}]}}}}", Path("omnigraph.yaml"))
    return read_issuers(read_settings(config, {}).settings.auth.oidc)


def test_an_issuer_with_defaults() -> None:
    (issuer,) = read(ENTRY)
    assert issuer == Issuer("https://id.example.org", "omnigraph")
    assert (issuer.algorithms, issuer.actor_claim, issuer.reach) == (("RS256", "ES256"), "sub", "public")


def test_an_issuer_with_everything() -> None:
    (issuer,) = read(
        f"{ENTRY}, jwks_url: 'https://id.example.org/keys', algorithms: [EdDSA], actor_claim: email, "
        "actor_prefix: 'sso:', groups_claim: roles, groups_map: {Admins: owners}, attributes: {tenant: org_id}"
    )
    assert (issuer.jwks_url, issuer.algorithms, issuer.actor_claim, issuer.actor_prefix) == (
        "https://id.example.org/keys", ("EdDSA",), "email", "sso:"
    )  # fmt: skip
    assert (issuer.groups_claim, issuer.groups_map, issuer.attributes) == (
        "roles", {"Admins": "owners"}, {"tenant": "org_id"}
    )  # fmt: skip


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        (["issuer: 'https://id.example.org'"], "the key 'audience' is missing"),
        ([ENTRY.replace("https", "http")], "must begin with https"),
        ([ENTRY + ", jwks_url: 'http://id.example.org'"], "'jwks_url' must begin with https"),
        ([ENTRY + ", algorithms: [HS256]"], "'HS256', which is not accepted"),
        ([ENTRY + ", algorithms: [none]"], "'none', which is not accepted"),
        ([ENTRY + ", attributes: {tenant: 3}"], "must map names to texts"),
        ([ENTRY + ", attributes: [tenant]"], "'attributes' must be a map"),
        ([ENTRY + ", audiences: x"], "'audiences' is unknown"),
        ([ENTRY, ENTRY], "occurs twice"),
    ],
)
def test_bad_entries_are_refused(entries: list[str], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        read(*entries)


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jwt", None)
    with pytest.raises(MissingPackage) as caught:
        read(ENTRY)
    assert caught.value.hint is not None
    assert "omnigraph[oidc]" in caught.value.hint
    assert read() == ()
