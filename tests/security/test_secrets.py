"""Secrets sent through every route appear in no log line, no error and no audit record."""

from __future__ import annotations

import io
import logging

import pytest

from omnigraph.server.auth.tokens import new_token
from omnigraph.server.route import Route
from omnigraph.server.route_table import ROUTES
from support.raw_http import exchange
from support.route_requests import request_of, text_of
from support.tenants import SECRET, Tenants

VALUE = "canary-value-51c0ffee"
"""A value of a query parameter or a row."""
PASSWORD = "canary-password-0ddba11"
WRONG = new_token()
HEADERS = {
    "Cookie": f"session={PASSWORD}",
    "Proxy-Authorization": f"Basic {PASSWORD}",
    "X-Api-Key": PASSWORD,
    "X-Amz-Security-Token": PASSWORD,
    "Referer": f"https://user:{PASSWORD}@example.com/?token={PASSWORD}",
    "User-Agent": f"agent/{PASSWORD}",
}
TYPED = "query typed($name: I64) {{ match {{ $p: Person {{ age: $name }} }} return {{ $p }} }}"


def named(route: Route) -> str:
    return f"{route.method} {route.path}"


def secrets_of(site: Tenants) -> list[str]:
    return [WRONG, PASSWORD, *site.tokens.values()]


@pytest.mark.parametrize("route", ROUTES, ids=named)
def test_no_secret_is_shown(site: Tenants, route: Route, log_text: io.StringIO) -> None:
    values = {
        **site.mine,
        "params": {"name": VALUE},
        "data": f'{{"type":"Person","data":{{"name":"{VALUE}","age":"{VALUE}"}}}}',
    }
    request = request_of(route, values)
    replies = [request.send(site.server, token=token, headers=HEADERS) for token in (*site.tokens.values(), WRONG)]
    if "query" in request.members:
        wrong = request.with_value("query", TYPED.format()).with_value("params", {"name": VALUE})
        replies.append(wrong.send(site.server, token=site.tokens["root"], headers=HEADERS))
    for scheme in ("Basic", "bearer", "Token", "Bearer Bearer"):
        headers = {**HEADERS, "Authorization": f"{scheme} {PASSWORD}"}
        replies.append(request.send(site.server, headers=headers))
    shown = "".join(map(text_of, replies))
    recorded = log_text.getvalue() + site.audit_text
    assert route.scope == "public" or "request_id" in recorded
    for secret in secrets_of(site):
        assert secret not in shown
        assert secret not in recorded
    assert VALUE not in recorded, "values of parameters and rows are not logged"
    assert SECRET not in recorded


def test_a_url_with_a_password_is_not_logged(site: Tenants, log_text: io.StringIO) -> None:
    targets = (
        f"http://user:{PASSWORD}@localhost/version",
        f"/version?access_token={PASSWORD}",
        f"/none/{PASSWORD}?token={PASSWORD}",
        f"/branches/{PASSWORD}",
        f"/{PASSWORD}" * 2000,
    )
    for target in targets:
        sent = f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        exchange(site.server.port, sent.encode())
    exchange(site.server.port, f"{PASSWORD} is not HTTP\r\n\r\n".encode())
    assert PASSWORD not in log_text.getvalue() + site.audit_text


def test_an_unexpected_failure_is_logged_without_values(
    site: Tenants, log_text: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(f"cannot use {VALUE} with {site.tokens['root']}")

    monkeypatch.setattr("omnigraph.graph.Graph.query", fail)
    reply = site.server.post("/query", {"query": VALUE, "params": {"x": VALUE}}, token=site.tokens["root"])
    assert reply.status == 500
    assert VALUE not in text_of(reply)
    recorded = log_text.getvalue()
    assert "RuntimeError" in recorded
    assert VALUE not in recorded
    assert site.tokens["root"] not in recorded


def test_the_log_masks_what_other_libraries_log(site: Tenants, log_text: io.StringIO) -> None:
    logging.getLogger("other").warning("request with Authorization: Bearer %s", site.tokens["ana"])
    logging.getLogger("other").warning("https://user:%s@example.com", PASSWORD)
    assert "***" in log_text.getvalue()
    assert site.tokens["ana"] not in log_text.getvalue()
    assert PASSWORD not in log_text.getvalue()
