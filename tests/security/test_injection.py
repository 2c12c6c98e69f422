"""Line ends in names and headers, forged log lines, and tricks in paths."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest

from omnigraph.server.route import Route
from omnigraph.server.route_table import ROUTES
from support.raw_http import exchange, statuses
from support.route_requests import RouteRequest, request_of
from support.tenants import Tenants

WITH_PATH = [route for route in ROUTES if "{" in route.path]
FORGED = "2027-01-01T00:00:00.000Z info request actor=forged"
SEGMENTS = (
    *("..", "%2e%2e", "%2E%2e", ".", "%2e", "..%2f..%2f..%2fetc%2fpasswd", "%2e%2e%2f%2e%2e%2fetc%2fpasswd"),
    *(
        "..%5c..%5cwindows",
        "%2fetc%2fpasswd",
        "file:%2f%2f%2fetc%2fpasswd",
        "s3:%2f%2fbucket%2fkey",
        "a%2fb",
        "a%2f%2fb",
    ),
    *("%00", "main%00", "main%0d%0aX-Injected:%20yes", "%0a", "%1b%5b2J", "%7f", "%e2%80%ae", "%ef%bb%bfmain"),
    *(
        "%ff",
        "%c0%ae%c0%ae",
        "%ed%a0%80",
        "%zz",
        "%",
        "%u002e",
        "%252e%252e%252f",
        "main%20",
        "%20main",
        "main;x",
        "main?",
    ),
    *(
        "x" * 300,
        "%f0%9f%92%a9",
        "__cache",
        "_refs",
        ".lance",
        "con",
        "main%23",
        "*",
        "{branch}",
        "$(id)",
        "'%20or%20'1",
    ),
)
SERVER_ERRORS = range(500, 600)


def named(route: Route) -> str:
    return f"{route.method} {route.path}"


def raw_requests(site: Tenants, route: Route) -> list[tuple[str, str]]:
    """Pairs of a hostile segment and the path in which it replaces one parameter."""
    target = request_of(route, site.mine).target.split("/")
    places = [index for index, part in enumerate(route.path.split("/")) if part.startswith("{")]
    return [
        (segment, "/".join(segment if index == place else part for index, part in enumerate(target)))
        for place in places
        for segment in SEGMENTS
    ]


def files_outside(folder: Path) -> set[Path]:
    return {path for path in folder.parent.rglob("*") if folder not in path.parents and path != folder}


@pytest.mark.parametrize("route", WITH_PATH, ids=named)
def test_tricks_in_paths_reach_no_file(site: Tenants, route: Route) -> None:
    before = files_outside(site.folder)
    token = f"Authorization: Bearer {site.tokens['root']}\r\nConnection: close\r\n"
    for segment, path in raw_requests(site, route):
        head = f"{route.method} {path} HTTP/1.1\r\nHost: localhost\r\n{token}Content-Type: application/json\r\n"
        answer = exchange(site.server.port, f"{head}Content-Length: 2\r\n\r\n{{}}".encode())
        (status,) = statuses(answer)
        assert status not in SERVER_ERRORS, (segment, answer[-300:])
        assert b"root:x:0" not in answer
        assert b"\r\nX-Injected" not in answer.partition(b"\r\n\r\n")[0]
    assert files_outside(site.folder) == before


@pytest.mark.parametrize("route", [route for route in ROUTES if route.scope == "graph"], ids=named)
def test_tricks_in_members_reach_no_file(site: Tenants, route: Route) -> None:
    before = files_outside(site.folder)
    base = request_of(route, site.mine)
    names = ("branch", "source", "target", "name", "from", "at", "type", "id", "compare", "tag")
    for name in names:
        if name not in base.members:
            continue
        for value in (
            "../../../etc/passwd",
            "/etc/passwd",
            "a\r\nX-Injected: yes",
            "a\x00b",
            "\x1b[2J",
            "file:///etc/passwd",
        ):
            reply = base.with_value(name, value).send(site.server, token=site.tokens["root"])
            assert reply.status < 500, (name, value, reply.body)
            assert b"root:x:0" not in reply.body
            assert "x-injected" not in reply.headers
    assert files_outside(site.folder) == before


@pytest.mark.parametrize(
    "graph_id", ["..", "%2e%2e", "a%2f..%2fb", "A", "a%00", "a%20", "policies", "a;b", "%e2%91%a0"]
)
def test_tricks_in_the_id_of_a_graph(site: Tenants, graph_id: str) -> None:
    reply = site.server.post(f"/graphs/{graph_id}/query", {}, token=site.tokens["root"])
    assert reply.status in (400, 404)


def test_names_with_line_ends_give_no_header(site: Tenants) -> None:
    """A commit message and a branch name come back in documents only, never in headers."""
    message = "first\r\nX-Injected: yes\r\n\r\n<script>"
    route = next(route for route in ROUTES if route.name == "change")
    request = request_of(route, {**site.mine, "branch": "spare", "message": message})
    reply = request.send(site.server, token=site.tokens["root"])
    assert reply.status == 200
    assert "x-injected" not in reply.headers
    assert reply.json["commit"]["message"] == message


@pytest.mark.parametrize(
    "value", ["a\r\nX-Injected: yes", "a\nX-Injected: yes", "a\rb", "a\x00b", "a\x7fb", "é", "a b", "x" * 200]
)
def test_a_request_id_is_printable_or_replaced(site: Tenants, value: str) -> None:
    sent = f"GET /version HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: {value}\r\nConnection: close\r\n\r\n"
    answer = exchange(site.server.port, sent.encode("latin-1"))
    head = answer.partition(b"\r\n\r\n")[0]
    assert b"X-Injected: yes" not in head.split(b"\r\n")
    returned = re.search(rb"x-request-id: ([^\r]*)", head)
    assert returned is None or (returned[1].isascii() and value.encode("latin-1") != returned[1])


def test_no_request_forges_a_log_line(site: Tenants, log_text: io.StringIO) -> None:
    """Names and headers of a request stay within the one line that reports it."""
    hostile = f"x\r\n{FORGED}\n\x1b[31m\u2028{FORGED}"
    for route in ROUTES:
        request = request_of(route, site.mine)
        for name in (*request.path, *request.members):
            if name in ("query", "schema_source", "data", "algorithm"):
                continue
            request.with_value(name, hostile).send(site.server, token=site.tokens["root"])
        headers = {"User-Agent": "a\tb", "X-Request-Id": "a=b"}
        request.send(site.server, token=site.tokens["root"], headers=headers)
    lines = log_text.getvalue().split("\n")
    assert len(lines) > len(ROUTES)
    assert not [line for line in lines if line.startswith(FORGED)]
    assert all(line.isascii() and (line.isprintable()) for line in lines)


def test_audit_lines_are_one_record_each(site: Tenants) -> None:
    hostile = f'x"}}\n{{"actor":"forged"}}\r\n{FORGED}'
    for route in ROUTES:
        if route.scope == "graph":
            changed: RouteRequest = request_of(route, {**site.mine, "branch": hostile, "message": hostile})
            changed.send(site.server, token=site.tokens["none"])
    files = [path for path in site.audit_files if path.suffix == ".jsonl"]
    records = [json.loads(line) for path in files for line in path.read_text(encoding="utf-8").splitlines()]
    assert records
    assert "forged" not in {record["actor"] for record in records}
