"""The log of the server: its lines, levels and formats; no text forges a line."""

from __future__ import annotations

import json
import logging
import re
import threading
import urllib.error
import urllib.request
import warnings

import pytest
import uvicorn

from omnigraph.errors import InputError
from omnigraph.policy.decide import PolicyDecision
from omnigraph.server.observability import log as log_module
from omnigraph.server.observability.log import (
    PROBES,
    QueryLogEntry,
    configure,
    log_decision,
    log_event,
    log_query,
    log_request,
)
from omnigraph.server.route_table import ROUTES

HOSTILE = [
    "a\r\n2027-01-01T00:00:00.000Z info request status=200",
    'x","level":"error","y":"',
    "\x1b[2J\x9b31m\x00\x7f\x85\x0b\x0c",
    "\u2028\u2029\u202e",
    "\ud800",
    "a b=c",
    "\\n",
    "",
    "%s %d {}",
]


def one(stream) -> dict:
    (line,) = stream.getvalue().splitlines()
    return json.loads(line)


def test_a_request_in_both_formats(configured):
    stream = configured()
    log_request("GET", "/branches/{branch}", 200, 1.23456, "r1", "ana")
    found = one(stream)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", found.pop("at"))
    assert found == {
        "level": "info",
        "event": "request",
        "method": "GET",
        "route": "/branches/{branch}",
        "status": 200,
        "ms": 1.235,
        "request_id": "r1",
        "actor": "ana",
    }
    stream = configured(format="text")
    log_request("GET", "/branches", 200, 1.0, "r1", None)
    assert stream.getvalue().partition(" ")[2] == (
        "info request method=GET route=/branches status=200 ms=1.0 request_id=r1\n"
    )


def test_only_a_failed_probe_is_logged_at_info(configured):
    stream = configured()
    for route in PROBES:
        log_request("GET", route, 200, 1.0, "r1", None)
    assert stream.getvalue() == ""
    log_request("GET", "/readyz", 503, 1.0, "r1", None)
    assert one(stream)["status"] == 503
    assert set(PROBES) <= {route.path for route in ROUTES}


def test_a_decision(configured):
    stream = configured()
    log_decision(PolicyDecision(True, "ana", "merge", "b", "main", ("r1", "r2"), "allowed"), "q")
    found = one(stream)
    assert (found["event"], found["actor"], found["action"], found["branch"]) == ("decision", "ana", "merge", "b")
    assert (found["target_branch"], found["allowed"], found["rule"]) == ("main", True, "r1")


@pytest.mark.parametrize("format", ["json", "text"])
def test_a_query_shows_the_names_of_its_parameters_only(configured, format):
    stream = configured("debug", format)
    parameters = {"name": "value-1", "age": "value-2"}
    times = {"queue": 0.1, "engine": 2.34567}
    log_query(
        QueryLogEntry(
            request_id="q",
            actor="ana",
            graph="kb",
            branch="main",
            commit="c",
            query="adults",
            plan_hash="h",
            params=parameters,
            rows=3,
            bytes=120,
            plan_cache="hit",
            table_cache="miss",
            ms=times,
        )
    )
    assert "name,age" in stream.getvalue()
    assert "value-" not in stream.getvalue()
    if format == "json":
        found = one(stream)
        assert (found["queue_ms"], found["engine_ms"], found["rows"], found["bytes"]) == (0.1, 2.346, 3, 120)
        assert (found["plan_hash"], found["plan_cache"], found["table_cache"]) == ("h", "hit", "miss")


def test_a_line_that_is_written_later_has_the_time_of_its_event(configured):
    stream = configured()
    log_request("GET", "/x", 200, 1.0, "r", None, 1_800_000_000.5)
    assert one(stream)["at"] == "2027-01-15T08:00:00.500Z"


def test_a_message_has_the_arguments_of_its_moment(configured):
    stream = configured()
    names = ["ana"]
    logging.getLogger("other").warning("%s", names)
    names.append("later")
    assert one(stream)["message"] == "['ana']"


def test_a_changed_format_applies_to_the_same_stream(configured):
    stream = configured()
    configure("info", "text", stream)
    log_event("start", mode="open")
    assert stream.getvalue().endswith(" info start mode=open\n")


def test_dropped_lines_are_reported(configured, monkeypatch):
    stream = configured()
    monkeypatch.setattr(log_module._queue, "_limit", 0)
    log_event("start")
    logging.getLogger("other").warning("a warning is never dropped")
    found = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["event"] for line in found] == ["message", "log_dropped"]
    assert found[1]["lines"] == 1


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_no_text_forges_a_line(configured, text):
    stream = configured()
    log_request(text, text, 200, 1.0, text, text)
    log_event(text, value=text)
    logging.getLogger("omnigraph.x").warning(text)
    logging.getLogger("other").warning("%s", text)
    value = stream.getvalue()
    assert value.isascii()
    lines = [json.loads(line) for line in value.split("\n")[:-1]]
    assert value.splitlines() == value.split("\n")[:-1]
    assert [lines[0]["actor"], lines[1]["value"], lines[2]["message"], lines[3]["message"]] == [text] * 4
    assert {line["level"] for line in lines} == {"info", "warn"}


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_no_text_forges_a_text_line(configured, text):
    stream = configured(format="text")
    log_request("GET", "/x", 200, 1.0, text, text)
    logging.getLogger("other").warning("%s", text)
    try:
        raise ValueError(text)
    except ValueError:
        logging.getLogger("other").exception("failed")
    value = stream.getvalue()
    assert all(32 <= ord(char) < 127 or char == "\n" for char in value)
    first, second, third = [line for line in value.splitlines() if not line.startswith("  | ")]
    assert " info request method=GET route=/x status=200 ms=1.0 request_id=" in first
    assert " warn message logger=other message=" in second
    assert " error message logger=other message=failed" in third
    assert "\n  | Traceback (most recent call last):\n" in value


def test_levels(configured):
    stream = configured("error")
    log_request("GET", "/x", 200, 1.0, "r", None)
    log_event("start")
    logging.getLogger("omnigraph.x").warning("x")
    assert stream.getvalue() == ""
    stream = configured("debug")
    logging.getLogger("omnigraph.x").debug("x")
    assert one(stream)["level"] == "debug"


def test_other_libraries_log_from_warn_only(configured):
    stream = configured("debug")
    for name in ("botocore.endpoint", "asyncio", "httpx", "uvicorn.error"):
        logging.getLogger(name).debug("headers with keys")
        logging.getLogger(name).info("request")
    logging.getLogger("uvicorn.access").warning("GET /?token=x")
    assert stream.getvalue() == ""
    logging.getLogger("uvicorn.error").error("failed")
    assert one(stream)["logger"] == "uvicorn.error"


def test_a_second_call_replaces_the_first(configured):
    first = configured()
    second = configured(format="text")
    log_event("start", mode="policy")
    assert first.getvalue() == ""
    assert second.getvalue().endswith("info start mode=policy\n")


def test_warnings_are_logged(configured):
    stream = configured()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.showwarning(UserWarning("old"), UserWarning, "f.py", 1)
    assert "UserWarning: old" in one(stream)["message"]


@pytest.mark.parametrize(("level", "format"), [("loud", "text"), ("info", "xml"), ("INFO", "text"), ("", "json")])
def test_unknown_values_are_refused(level, format):
    with pytest.raises(InputError, match="must be one of"):
        configure(level, format)


def test_a_message_that_cannot_be_formatted_is_not_shown(configured):
    stream = configured()
    logging.getLogger("other").warning("%d", "Bearer og_" + "x" * 49)
    assert stream.getvalue() == "a message of logger other cannot be logged\n"


def test_uvicorn_logs_through_it(configured):
    """A failing application on a real uvicorn: its error is one line, and there is no access log."""
    stream = configured("debug")

    async def application(scope, receive, send):
        raise RuntimeError("og_" + "k" * 49 + "\nforged")

    server = uvicorn.Server(uvicorn.Config(application, port=0, lifespan="off", log_config=None))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        for _ in range(1000):
            if server.started:
                break
            thread.join(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/?token=canary", timeout=10)
    finally:
        server.should_exit = True
        thread.join(10)
    found = one(stream)
    assert (found["level"], found["logger"]) == ("error", "uvicorn.error")
    assert "og_***" in found["exception"]
    assert "kkkk" not in stream.getvalue()
    assert "canary" not in stream.getvalue()
