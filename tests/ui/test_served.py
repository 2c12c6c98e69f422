"""The routes of the explorer: headers, the policy of each answer, caches, and servers without it."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph import ui
from support.server import ServerUnderTest, serving
from support.serving import make_graph


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerUnderTest]:
    with serving(make_graph(tmp_path_factory.mktemp("g") / "g.omni", "Ada")) as running:
        yield running


def test_the_page_has_a_policy_with_a_nonce_of_its_own(server: ServerUnderTest) -> None:
    first, second = server.get("/ui/"), server.get("/ui/")
    nonces = [re.search(r"'nonce-([\w-]+)'", reply.headers["content-security-policy"]) for reply in (first, second)]
    assert nonces[0] is not None
    assert nonces[1] is not None
    assert nonces[0][1] != nonces[1][1]
    assert f'nonce="{nonces[0][1]}"'.encode() in first.body
    policy = first.headers["content-security-policy"]
    for rule in (
        "default-src 'none'",
        "script-src 'self'",
        "connect-src 'self'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types og",
    ):
        assert rule in policy
    assert "unsafe" not in policy
    assert first.headers["cache-control"] == "no-store"
    assert first.headers["x-content-type-options"] == "nosniff"
    assert first.headers["referrer-policy"] == "no-referrer"
    assert first.headers["cross-origin-opener-policy"] == "same-origin"
    assert first.headers["cross-origin-resource-policy"] == "same-origin"
    assert "set-cookie" not in first.headers


def test_the_page_has_no_inline_script_style_or_handler() -> None:
    page = (ui.STATIC / ui.PAGE).read_text(encoding="utf-8")
    assert re.findall(r"<script(?![^>]*\ssrc=)", page) == []
    assert re.findall(r"<style|\sstyle=|\son\w+=", page) == []


@pytest.mark.parametrize("name", sorted(path.name for path in ui.STATIC.glob("*") if path.name != ui.PAGE))
def test_every_file_is_served_with_a_tag_and_compressed(server: ServerUnderTest, name: str) -> None:
    plain = server.get(f"/ui/{name}")
    assert plain.status == 200
    assert plain.body == (ui.STATIC / name).read_bytes()
    assert plain.headers["x-content-type-options"] == "nosniff"
    packed = server.get(f"/ui/{name}", headers={"Accept-Encoding": "gzip"})
    assert gzip.decompress(packed.body) == plain.body
    again = server.get(f"/ui/{name}", headers={"If-None-Match": plain.headers["etag"]})
    assert (again.status, again.body) == (304, b"")


def test_the_address_without_a_slash_redirects(server: ServerUnderTest) -> None:
    reply = server.get("/ui")
    assert (reply.status, reply.headers["location"]) == (308, "ui/")


@pytest.mark.parametrize("path", ["/ui/nonesuch.js", "/ui/..%2f__init__.py", "/ui/index.html", "/ui/%2e%2e", "/ui/a/b"])
def test_other_files_are_not_served(server: ServerUnderTest, path: str) -> None:
    assert server.get(path).status == 404


def test_the_settings_tell_nothing_of_a_graph(server: ServerUnderTest) -> None:
    settings = server.get("/ui/config.json").json
    assert settings["needs_token"] is False
    assert settings["single_graph"] is True
    assert settings["default_graph"] == "default"
    assert settings["read_only"] is False


def test_a_server_can_run_without_the_explorer(tmp_path: Path) -> None:
    with serving(make_graph(tmp_path / "g.omni"), flags={"ui": False}) as plain:
        for path in ("/ui", "/ui/", "/ui/app.js", "/ui/config.json"):
            reply = plain.get(path)
            assert reply.status == 404
            assert reply.json["hint"] == "'server.ui' turns it on"


def test_a_tree_without_built_files_says_how_to_build_them(
    server: ServerUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ui, "static_files", dict)
    assert server.get("/ui/").json["hint"] == "run 'make web' in the source tree"


def test_the_server_of_one_user_refuses_other_hosts_and_origins(tmp_path: Path) -> None:
    with serving(make_graph(tmp_path / "g.omni", "Ada"), local_token="og_of-one-user") as local:
        ours = {"Authorization": "Bearer og_of-one-user"}
        assert local.get("/snapshot", headers=ours).status == 200
        assert local.get("/ui/config.json").json["default_graph"] == "g"
        for header in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
            assert local.get("/snapshot", headers={**ours, **header}).status == 403
            assert local.get("/ui/", headers=header).status == 403
        assert local.get("/snapshot").status == 401
