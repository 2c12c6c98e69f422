"""OWASP API 9: inventory. Router, OpenAPI document and documentation list the same routes; nothing else answers."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest

from omnigraph.server.route import Route
from omnigraph.server.route_table import ROUTES
from support.raw_http import exchange, statuses
from support.route_requests import request_of
from support.tenants import Tenants

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "QUERY", "get", "X-NEW")
ABSENT = (
    *("/", "//", "/healthz/", "//healthz", "/HEALTHZ", "/healthz/..", "/./healthz", "/healthz;x=1", "/healthz%2f"),
    *(
        "/healthz%00",
        "/%68ealthz/x",
        "/openapi.yaml",
        "/openapi",
        "/swagger.json",
        "/redoc",
        "/docs/",
        "/docs/index.html",
    ),
    *("/admin", "/admin/", "/admin/reload/", "/debug", "/debug/pprof", "/server-status", "/actuator/env", "/console"),
    *("/.env", "/.git/config", "/.well-known/security.txt", "/robots.txt", "/favicon.ico", "/static/docs.html"),
    *("/graphs/", "/graphs/a", "/graphs/a/", "/graphs/a/graphs", "/graphs/a/healthz", "/graphs/a/admin/reload"),
    *("/graphs/a/graphs/b/query", "/graphs/a/../b/query", "/v1/query", "/v2/query"),
    *(
        "/runs",
        "/runs/x",
        "/runs/x/publish",
        "/graphql",
        "/ws",
        "/rpc",
        "/ui/a/b",
        "/mcp/x",
    ),
    *("/..", "/../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/query/../healthz", "/%2e/healthz"),
)
GRAPH_ROUTES = [route for route in ROUTES if route.scope == "graph"]


def named(route: Route) -> str:
    return f"{route.method} {route.path}"


def documented(document: dict[str, Any]) -> set[tuple[str, str]]:
    return {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}


def test_the_document_lists_exactly_the_route_table(site: Tenants) -> None:
    assert documented(site.server.get("/openapi.json").json) == {(route.method, route.path) for route in ROUTES}


def test_the_reference_lists_exactly_the_route_table() -> None:
    text = (Path(__file__).parents[2] / "docs/http.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `([A-Z]+) (/[^`]*)`", text, re.MULTILINE)
    assert sorted(listed) == sorted((route.method, route.path) for route in ROUTES)


def test_the_page_shows_the_document_of_the_server(site: Tenants) -> None:
    """The page lists no route of its own: it reads the document."""
    page = site.server.get("/docs").body.decode()
    assert "openapi.json" in page
    assert not [route.path for route in ROUTES if route.scope == "graph" and f'"{route.path}"' in page]


def methods_of(path: str) -> set[str]:
    """The methods of all routes that a path fits: /branches/merge is also the branch of that name."""
    found = {route.method for route in ROUTES if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", route.path), path)}
    return found | ({"HEAD"} if "GET" in found else set())


def test_every_path_takes_its_methods_only(site: Tenants) -> None:
    for path, method in itertools.product({request_of(route, site.mine).target for route in ROUTES}, METHODS):
        allowed = methods_of(path)
        if method in allowed:
            continue
        sent = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        answer = exchange(site.server.port, sent.encode())
        if statuses(answer) == [400]:
            # The parser knows no such method.
            assert method not in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE"), method
            continue
        assert statuses(answer) == [405], (method, path)
        found = re.search(rb"\r\nallow: ([^\r]*)\r\n", answer)
        assert found is not None
        assert set(found[1].decode().split(", ")) == allowed, (method, path)


@pytest.mark.parametrize("path", ABSENT)
def test_nothing_undocumented_answers(site: Tenants, path: str) -> None:
    for method in ("GET", "POST"):
        sent = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 2\r\n"
        token = f"Authorization: Bearer {site.tokens['root']}\r\n"
        answer = exchange(site.server.port, f"{sent}{token}\r\n{{}}".encode())
        assert statuses(answer)[0] in (400, 404), answer[:300]


@pytest.mark.parametrize("route", GRAPH_ROUTES, ids=named)
def test_a_flat_path_is_the_path_of_the_default_graph(site: Tenants, route: Route) -> None:
    for actor in ("ana", "none"):
        flat, nested = (
            request_of(route, site.mine, graph=graph).send(site.server, token=site.tokens[actor])
            for graph in (None, "a")
        )
        assert flat.status == nested.status, (flat.body, nested.body)
        if flat.headers.get("content-type", "").startswith("application/json"):
            varying = ("elapsed_ms", "ms", "request_id", "cursor", "text", "location", "next_page_token")
            if route.name == "profile":
                varying += ("notes",)  # The first run of a query reads columns, the next one finds them cached.
            assert without(flat.json, varying) == without(nested.json, varying)


def without(value: Any, names: tuple[str, ...]) -> Any:
    if isinstance(value, dict):
        return {name: without(inner, names) for name, inner in value.items() if name not in names}
    return [without(inner, names) for inner in value] if isinstance(value, list) else value


def test_the_nested_document_lists_the_nested_paths() -> None:
    from omnigraph.server.api_description.openapi import openapi_document  # noqa: PLC0415

    expected = {
        (route.method, f"/graphs/{{graph_id}}{route.path}" if route.scope == "graph" else route.path)
        for route in ROUTES
    }
    assert documented(json.loads(json.dumps(openapi_document(nested=True)))) == expected
