"""`omnigraph webhook`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from omnigraph.cli.main import run
from omnigraph.webhooks import sign

SECRET = "a-secret-of-the-receiver"
BODY = b'{"event_id":"01J","kind":"commit","graph_id":"kb"}'


def verify(tmp_path: Path, body: bytes, *options: str) -> int:
    file = tmp_path / "body.json"
    file.write_bytes(body)
    signature = sign(body, [SECRET], 1_790_000_000)
    return run(["webhook", "verify", str(file), "--signature", signature, "--secret-env", "HOOK", *options])


def test_a_valid_signature_of_any_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOOK", "the next secret")
    monkeypatch.setenv("OLD", SECRET)
    assert verify(tmp_path, BODY, "--secret-env", "OLD", "--tolerance", "1e12", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown == {"event_id": "01J", "kind": "commit", "graph_id": "kb", "signed_at": 1_790_000_000}


@pytest.mark.parametrize(
    ("secret", "body", "options", "problem"),
    [
        ("another secret", BODY, ("--tolerance", "1e12"), "not made with this secret"),
        (SECRET, BODY, ("--tolerance", "0"), "at most 0 s"),
        (SECRET, b"[]", ("--tolerance", "1e12"), "the body is not an event"),
        (SECRET, b"\xff", ("--tolerance", "1e12"), "the body is not an event"),
    ],
)
def test_an_invalid_request_exits_with_1(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    secret: str,
    body: bytes,
    options: tuple[str, ...],
    problem: str,
) -> None:
    monkeypatch.setenv("HOOK", secret)
    assert verify(tmp_path, body, *options) == 1
    printed = capsys.readouterr()
    assert problem in printed.err
    assert secret not in printed.err + printed.out


def test_a_variable_that_is_not_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("HOOK", raising=False)
    assert verify(tmp_path, BODY) == 2
    assert "HOOK of --secret-env is not set" in capsys.readouterr().err


def test_a_file_that_does_not_exist(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("HOOK", SECRET)
    assert run(["webhook", "verify", "lost.json", "--signature", "t=1,v1=0", "--secret-env", "HOOK"]) == 1
    assert "'lost.json' cannot be read" in capsys.readouterr().err
