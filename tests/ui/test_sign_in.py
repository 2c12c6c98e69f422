"""Sign-in of the page at an issuer on loopback: code flow with PKCE, state, nonce, renewal, sign-out."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from support.explorer import Explorer, ExplorerPage, require_browser
from support.issuer import IssuerServer, issuing
from support.server import serving

CLIENT = "omnigraph-explorer"
BUTTON = "Sign in with 127.0.0.1"


@pytest.fixture(scope="module")
def issuer() -> Iterator[IssuerServer]:
    with issuing() as running:
        yield running


@pytest.fixture(scope="module")
def signed(browser: Any, issuer: IssuerServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explorer]:
    require_browser()
    folder: Path = tmp_path_factory.mktemp("sign-in")
    graph = og.init(folder / "people.omni", "node Person { name: String @key }", sync=False)
    (folder / "policy.yaml").write_text(
        "version: 1\ngroups: {team: [ana]}\nrules:\n"
        "  - id: team\n    allow: {actors: {group: team}, actions: [read, admin]}\n",
        encoding="utf-8",
    )
    entry = issuer.entry(f", client_id: {CLIENT}, scopes: [profile]")
    config = folder / "omnigraph.yaml"
    config.write_text(
        f"graphs: {{people: {{uri: {graph.uri}}}}}\npolicy: {{file: policy.yaml}}\n"
        f"server: {{graph: people, auth: {{oidc: [{entry}]}}}}\n",
        encoding="utf-8",
    )
    with serving(config=config) as server:
        yield Explorer(browser, server, issuer=issuer.url)


def begin(tab: ExplorerPage, place: str = "main/home") -> None:
    tab.page.goto(f"{tab.server.url}/ui/#/g/people/{place}")
    tab.page.get_by_role("button", name=BUTTON).click()


def test_a_sign_in_returns_to_the_screen_and_is_dropped_at_sign_out(signed: Explorer, issuer: IssuerServer) -> None:
    policy = signed.server.get("/ui/").headers["content-security-policy"]
    assert f"connect-src 'self' {issuer.url};" in policy
    issuer.asked.clear()
    with signed.page(None) as tab:
        begin(tab, "main/admin?tab=overview")
        tab.page.get_by_text("Who am I").wait_for()
        assert tab.fragment.startswith("#/g/people/main/admin")
        assert tab.page.url.split("#")[0] == f"{tab.server.url}/ui/"
        tab.page.get_by_role("button", name="Account ana").wait_for()
        (asked,) = issuer.asked
        assert (asked["grant_type"], asked["client_id"]) == ("authorization_code", CLIENT)
        assert len(asked["code_verifier"]) == 43
        tab.page.reload()
        tab.page.get_by_role("button", name="Account ana").wait_for()
        assert len(issuer.asked) == 1
        tab.page.get_by_role("button", name="Account ana").click()
        tab.page.get_by_role("menuitem", name="Sign out").click()
        tab.page.get_by_role("button", name=BUTTON).wait_for()
        assert (
            tab.page.evaluate("Object.keys(sessionStorage).filter(k => k.includes('token') || k.includes('sign'))")
            == []
        )


def test_a_token_is_renewed_before_its_end(signed: Explorer, issuer: IssuerServer) -> None:
    issuer.asked.clear()
    issuer.life_s = 6
    try:
        with signed.page(None) as tab:
            begin(tab)
            tab.page.get_by_role("button", name="Account ana").wait_for()
            first = tab.page.evaluate("sessionStorage.getItem('omnigraph.token')")
            deadline = time.monotonic() + 30
            while len(issuer.asked) < 2 and time.monotonic() < deadline:
                tab.page.wait_for_timeout(100)
            assert issuer.asked[1]["grant_type"] == "refresh_token"
            tab.page.wait_for_function("t => sessionStorage.getItem('omnigraph.token') !== t", arg=first)
    finally:
        issuer.life_s = 300


def test_a_code_in_the_fragment_reaches_no_server(signed: Explorer, issuer: IssuerServer) -> None:
    issuer.discovery["response_modes_supported"] = ["query", "fragment"]
    try:
        with signed.page(None) as tab:
            visited: list[str] = []
            tab.page.on("request", lambda request: visited.append(request.url))
            begin(tab)
            tab.page.get_by_role("button", name="Account ana").wait_for()
            assert not any("code=" in url for url in visited if url.startswith(tab.server.url))
    finally:
        issuer.discovery.clear()


def test_answers_that_do_not_belong_to_the_sign_in_are_refused(signed: Explorer, issuer: IssuerServer) -> None:
    refused = [
        ({"nonce": "another"}, "'nonce' differs"),
        ({"aud": "another-client"}, "for another client"),
        ({"iss": "https://id.example.com"}, "of another issuer"),
    ]
    for claims, message in refused:
        issuer.id_claims = claims
        with signed.page(None) as tab:
            begin(tab)
            tab.page.get_by_role("dialog").get_by_text(message).wait_for()
            assert tab.page.evaluate("sessionStorage.getItem('omnigraph.token')") is None
    issuer.id_claims = {}
    issuer.refuse = "access_denied"
    with signed.page(None) as tab:
        begin(tab)
        tab.page.get_by_role("dialog").get_by_text("The sign-in failed: access_denied.").wait_for()
        issuer.refuse = None
        issuer.asked.clear()
        provider = {"issuer": issuer.url, "client_id": CLIENT, "scopes": []}
        pending = {"provider": provider, "verifier": "v", "state": "s", "nonce": "n", "fragment": ""}
        store = "text => sessionStorage.setItem('omnigraph.sign-in.pending', text)"
        tab.page.evaluate(store, json.dumps(pending))
        tab.page.goto(f"{tab.server.url}/ui/?code=stolen&state=forged")
        tab.page.get_by_role("dialog").get_by_text("'state' differs").wait_for()
        assert issuer.asked == []
