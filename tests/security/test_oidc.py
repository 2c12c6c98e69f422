"""OWASP API 2 and 10: tokens of issuers on a running server, and what a server does with the answers of an issuer."""

from __future__ import annotations

import base64
import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import InputError
from omnigraph.server.observability import log
from support.issuer import IssuerServer, issuing, public_jwk, rsa_key
from support.server import Reply, ServerUnderTest, serving

POLICY = """version: 2
groups: {staff: [static]}
attributes: {declare: {level: Long}}
protected_branches: [main]
rules:
  - id: staff
    allow: {actors: {group: staff}, actions: [read]}
  - id: seniors
    allow: {actors: {group: staff}, actions: [change], branches: any, when: 'principal.level >= 3'}
"""
SCHEMA = "node Note {\n name: String @key\n}\n"
ADD = {"query": 'query add() { insert Note { name: "a" } }'}
EXTRA = ", groups_claim: roles, groups_map: {kb-staff: staff}, attributes: {level: lvl}, actor_prefix: 'sso:'"


@pytest.fixture
def issuer() -> Iterator[IssuerServer]:
    with issuing() as running:
        yield running


@contextmanager
def secured(folder: Path, issuer: IssuerServer, extra: str = EXTRA, auth: str = "") -> Iterator[ServerUnderTest]:
    """A server with an issuer, a policy, an audit log, and one token of its own."""
    if not (folder / "g.omni").exists():
        og.init(folder / "g.omni", SCHEMA, sync=False)
    (folder / "policy.yaml").write_text(POLICY, encoding="utf-8")
    config = folder / "omnigraph.yaml"
    config.write_text(
        f"graphs: {{g: {{uri: {folder / 'g.omni'}}}}}\npolicy: {{file: policy.yaml}}\nserver:\n"
        f"  audit: {{dir: {folder / 'audit'}, reads: all}}\n  auth:\n{auth}    oidc:\n      - {issuer.entry(extra)}\n",
        encoding="utf-8",
    )
    environ = {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps({"static": "token.of.static"})}
    with serving(config=config, environ=environ) as server:
        yield server


@pytest.fixture
def server(tmp_path: Path, issuer: IssuerServer) -> Iterator[ServerUnderTest]:
    with secured(tmp_path, issuer) as running:
        yield running


def me(server: ServerUnderTest, token: str, **headers: str) -> Reply:
    return server.get("/me", headers={"Authorization": f"Bearer {token}", **headers})


def test_claims_decide_through_the_policy(server: ServerUnderTest, issuer: IssuerServer, tmp_path: Path) -> None:
    junior = issuer.token(sub="ana", roles=["kb-staff", "owners"], lvl=1)
    senior = issuer.token(sub="bo", roles=["kb-staff"], lvl=3)
    outsider = issuer.token(sub="eve", roles=["staff"])
    shown = me(server, junior).json
    assert (shown["actor_id"], shown["groups"], shown["attributes"]) == ("sso:ana", ["staff"], {"level": 1})
    assert server.get("/schema", token=junior).status == 200
    assert server.post("/change", ADD, token=junior).status == 403
    assert server.post("/change", ADD, token=senior).status == 200
    assert server.get("/schema", token=outsider).status == 403, "a group of the token counts through the map only"
    commit = og.open(tmp_path / "g.omni").commits()[0]
    assert commit.actor == "sso:bo"
    records = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "audit").glob("*.jsonl"))
    assert '"actor":"sso:bo","token_name":"oidc:127.0.0.1' in records
    for token in (junior, senior, outsider):
        assert token not in records


def test_tokens_of_the_server_stay_valid_beside_an_issuer(server: ServerUnderTest, issuer: IssuerServer) -> None:
    assert me(server, "token.of.static").json["actor_id"] == "static", "also one in the form of a JSON Web Token"
    assert issuer.paths == []
    assert me(server, "og_unknown").status == 401


def test_nothing_else_in_a_request_changes_the_actor(server: ServerUnderTest, issuer: IssuerServer) -> None:
    token = issuer.token(sub="ana", actor="root", act={"sub": "root"}, may_act={"sub": "root"})
    assert me(server, token, **{"X-Actor": "root", "X-Forwarded-User": "root"}).json["actor_id"] == "sso:ana"


def part(document: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(document).encode()).rstrip(b"=").decode()


def test_refusals_point_to_the_metadata_and_reveal_nothing(server: ServerUnderTest, issuer: IssuerServer) -> None:
    url = f"http://127.0.0.1:{server.port}/.well-known/oauth-protected-resource"
    missing = server.get("/me")
    assert (missing.status, missing.headers["www-authenticate"]) == (401, f'Bearer resource_metadata="{url}"')
    for token in (
        f"{part({'alg': 'none', 'kid': 'k1'})}.{part(issuer.claims())}.",
        issuer.token(key=rsa_key("attacker")),
        issuer.token(headers={"kid": "k9"}),
        issuer.token(aud="other"),
        issuer.token(iss="https://id.example.org"),
    ):
        reply = me(server, token)
        assert (reply.status, reply.json["reason"], reply.json["error"]) == (
            401, "invalid_token", "invalid bearer token"
        )  # fmt: skip
        assert reply.headers["www-authenticate"] == f'Bearer error="invalid_token", resource_metadata="{url}"'
        assert issuer.url not in reply.body.decode()
        assert token not in reply.body.decode()
    expired = me(server, issuer.token(exp=1))
    assert (expired.status, expired.json["reason"]) == (401, "token_expired")


def test_the_metadata_of_the_resource(server: ServerUnderTest, issuer: IssuerServer) -> None:
    reply = server.get("/.well-known/oauth-protected-resource")
    assert reply.json == {
        "resource": f"http://127.0.0.1:{server.port}",
        "authorization_servers": [issuer.url],
        "bearer_methods_supported": ["header"],
        "resource_name": "OmniGraph",
    }


@pytest.mark.parametrize("host", ['evil"\r', "a b", "x\\y", "<script>"])
def test_a_strange_host_is_not_reflected(server: ServerUnderTest, host: str) -> None:
    headers = {"Host": host.strip()}
    assert server.get("/.well-known/oauth-protected-resource", headers=headers).status in (400, 404)
    challenge = server.get("/me", headers=headers).headers.get("www-authenticate", "")
    assert "resource_metadata" not in challenge


def test_a_configured_address_is_used_instead_of_the_host(tmp_path: Path, issuer: IssuerServer) -> None:
    with secured(tmp_path, issuer, auth="    resource: https://graphs.example.org/\n") as server:
        headers = {"Host": "evil.example"}
        found = server.get("/.well-known/oauth-protected-resource", headers=headers).json
        assert found["resource"] == "https://graphs.example.org"
        expected = 'Bearer resource_metadata="https://graphs.example.org/.well-known/oauth-protected-resource"'
        assert server.get("/me", headers=headers).headers["www-authenticate"] == expected


@pytest.mark.parametrize("url", ["graphs.example.org", "ftp://graphs.example.org", "https://a@graphs.example.org"])
def test_a_configured_address_is_a_url(tmp_path: Path, issuer: IssuerServer, url: str) -> None:
    with (
        pytest.raises(InputError, match=r"'server\.auth\.resource' must"),
        secured(tmp_path, issuer, auth=f"    resource: {url}\n"),
    ):
        pass


def test_without_an_issuer_there_is_no_metadata(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g.omni", SCHEMA, sync=False)
    with serving(graph.uri, environ={"OMNIGRAPH_SERVER_BEARER_TOKEN": "t"}) as server:
        assert server.get("/.well-known/oauth-protected-resource").status == 404
        assert server.get("/me").headers["www-authenticate"] == "Bearer"


def test_a_flood_of_unknown_keys_causes_one_fetch(server: ServerUnderTest, issuer: IssuerServer) -> None:
    for number in range(15):
        assert me(server, issuer.token(headers={"kid": f"made-up-{number}"})).status == 401
    assert issuer.fetches == 1
    assert me(server, issuer.token()).status == 200


def test_an_issuer_that_is_down_is_no_reason_to_admit(server: ServerUnderTest, issuer: IssuerServer) -> None:
    issuer.status = 500
    reply = me(server, issuer.token())
    assert (reply.status, reply.headers["retry-after"]) == (503, "30")
    assert me(server, "token.of.static").status == 200
    assert server.get("/healthz").status == 200


@pytest.mark.parametrize("answer", [b"x" * 1_000_000, b"[" * 100_000, b'{"keys": [{"kty": "oct", "k": "AA"}]}'])
def test_hostile_answers_of_an_issuer_are_bounded(server: ServerUnderTest, issuer: IssuerServer, answer: bytes) -> None:
    issuer.answer = answer
    assert me(server, issuer.token()).status == 503
    assert server.get("/healthz").status == 200


def test_a_server_with_an_issuer_alone_is_not_open(tmp_path: Path, issuer: IssuerServer) -> None:
    og.init(tmp_path / "g.omni", SCHEMA, sync=False)
    config = tmp_path / "omnigraph.yaml"
    config.write_text(
        f"graphs: {{g: {{uri: {tmp_path / 'g.omni'}}}}}\nserver:\n  auth:\n    oidc:\n      - {issuer.entry()}\n",
        encoding="utf-8",
    )
    with serving(config=config) as server:
        assert server.get("/schema").status == 401
        assert server.get("/schema", token="token.of.static").status == 401
        assert server.get("/schema", token="og_x").status == 401
        assert server.get("/schema", token=issuer.token()).status == 200
        assert server.post("/change", ADD, token=issuer.token()).status == 403, "without a policy, only reads"
        assert "securitySchemes" in server.get("/openapi.json").json["components"]


def test_a_reload_changes_issuers_and_keeps_the_last_good_ones(tmp_path: Path, issuer: IssuerServer) -> None:
    with secured(tmp_path, issuer) as server:
        token = issuer.token(sub="ana")
        assert me(server, token).json["actor_id"] == "sso:ana"
        config = tmp_path / "omnigraph.yaml"
        text = config.read_text(encoding="utf-8")
        config.write_text(text.replace("audience: omnigraph", "audience: omnigraph, algorithms: [HS256]"), "utf-8")
        assert not server.holder.reload("test").ok
        assert me(server, token).status == 200
        config.write_text(text.replace("'sso:'", "'id:'"), "utf-8")
        assert server.holder.reload("test").ok
        assert me(server, token).json["actor_id"] == "id:ana"
        config.write_text(text.partition("    oidc:")[0] + "    tokens: {}\n", "utf-8")
        assert server.holder.reload("test").ok
        assert me(server, token).status == 401


def test_a_changed_key_of_the_issuer_takes_effect(server: ServerUnderTest, issuer: IssuerServer) -> None:
    old = issuer.token()
    assert me(server, old).status == 200
    issuer.keys = [public_jwk(rsa_key("k2"), "k2")]
    issued = server.holder.current.authenticator
    assert issued is not None
    assert issued.json_web_tokens is not None
    issued.json_web_tokens.keys[issuer.url].refresh()
    assert me(server, old).status == 401
    assert me(server, issuer.token(key=rsa_key("k2"), headers={"kid": "k2"})).status == 200


def test_no_token_is_in_the_log(tmp_path: Path, issuer: IssuerServer) -> None:
    lines = io.StringIO()
    log.configure("debug", stream=lines)
    try:
        with secured(tmp_path, issuer) as server:
            tokens = [issuer.token(), issuer.token(exp=1), issuer.token(key=rsa_key("attacker"))]
            for token in tokens:
                me(server, token)
                server.get(f"/schema?branch={token}", token=token)
            logging.getLogger("omnigraph.server").warning("Authorization: Bearer %s, or %s", tokens[0], tokens[1])
        log.flush(10)
    finally:
        log.configure("info")
        logging.getLogger("omnigraph").setLevel(logging.NOTSET)
    assert "issuers=1" in lines.getvalue() or "request" in lines.getvalue()
    for token in tokens:
        assert token.rsplit(".", 1)[1] not in lines.getvalue()


def test_a_symmetric_algorithm_cannot_be_configured(tmp_path: Path, issuer: IssuerServer) -> None:
    with pytest.raises(InputError, match="HS256"), secured(tmp_path, issuer, ", algorithms: [RS256, HS256]"):
        pass
