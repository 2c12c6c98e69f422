"""The description of the interface."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import omnigraph as og
from support.server import ServerUnderTest, serving


def test_the_description_has_the_form_of_the_server(server: ServerUnderTest, graph: og.Graph, tmp_path: Path) -> None:
    flat = server.get("/openapi.json").json
    assert flat["openapi"] == "3.1.0"
    assert "/query" in flat["paths"]
    assert "securitySchemes" not in flat["components"]
    other = og.init(tmp_path / "other.omni", graph.schema)
    environ = {"OMNIGRAPH_SERVER_BEARER_TOKEN": "secret"}
    with serving(graph.uri, other.uri, environ=environ) as several:
        nested = several.get("/openapi.json").json
    assert "/graphs/{graph_id}/query" in nested["paths"]
    assert nested["paths"]["/graphs/{graph_id}/query"]["post"]["operationId"] == "cluster_query"
    assert nested["components"]["securitySchemes"]["bearer_token"]["scheme"] == "bearer"


def test_the_page_loads_nothing_from_elsewhere(server: ServerUnderTest) -> None:
    reply = server.get("/docs", headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    assert reply.status == 200
    text = reply.body.decode()
    assert not re.search(r"(src|href)=|https?://|@import", text)
    script = re.search(r"<script>(.*?)</script>", text, re.DOTALL)
    assert script is not None
    digest = base64.b64encode(hashlib.sha256(script.group(1).encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in reply.headers["content-security-policy"]


def test_the_page_of_error_codes_has_an_anchor_for_each_reason(server: ServerUnderTest) -> None:
    problem = server.get("/nowhere", headers={"Accept": "application/problem+json"}).json
    page, _, reason = problem["type"].partition("#")
    assert f'id="{reason}"' in server.get(page).body.decode()
