"""The sources of bearer tokens."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from omnigraph.errors import InputError
from omnigraph.server.auth import sources
from omnigraph.server.auth.sources import LoadedTokens, TokenSources

BASE = "OMNIGRAPH_SERVER_BEARER_TOKEN"


@dataclass(frozen=True)
class Options:
    file: Path | None = None
    command: str | None = None


def printing(text: str, *, before: str = "") -> str:
    """A command that prints a text."""
    return shlex.join([sys.executable, "-S", "-c", f"{before}; print({text!r})" if before else f"print({text!r})"])


def actors(loaded: LoadedTokens) -> set[str]:
    assert loaded.tokens is not None
    return set(loaded.tokens.actors)


def failure(environ: dict[str, str], options: Options | None = None) -> InputError:
    with pytest.raises(InputError) as caught:
        TokenSources.of(environ, options or Options()).load()
    return caught.value


def test_without_a_source_there_are_no_tokens() -> None:
    blank = {f"{BASE}S_AWS_SECRET": " ", f"{BASE}S_FILE": "", f"{BASE}S_JSON": "\t", BASE: "  "}
    for environ in ({}, blank):
        assert TokenSources.of(environ, Options(command=" ")).load() == LoadedTokens(None, "none")


def test_single_token_belongs_to_default() -> None:
    loaded = TokenSources.of({BASE: "  one "}, Options()).load()
    assert loaded.tokens is not None
    assert loaded.tokens.find("Bearer one").actor == "default"
    assert (loaded.source, loaded.warnings) == ("env-or-file", ())


def test_file_wins_over_literal_and_single_is_added(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    path.write_text('\ufeff{"ana": "a"}', encoding="utf-8")
    environ = {f"{BASE}S_FILE": str(path), f"{BASE}S_JSON": '{"ben": "b"}', BASE: "c"}
    loaded = TokenSources.of(environ, Options(file=tmp_path / "other.json")).load()
    assert actors(loaded) == {"ana", "default"}
    assert loaded.warnings == (
        f"{BASE}S_JSON has no effect beside the file '{path}'",
        f"the token file '{path}' contains 1 token in plain text; 'omnigraph token create' stores hashes instead",
    )
    assert actors(TokenSources.of({f"{BASE}S_JSON": '{"ben": "b"}', BASE: "c"}, Options()).load()) == {"ben", "default"}


def test_file_of_the_settings_and_command_are_united(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    path.write_text(json.dumps({"tokens": [{"actor": "ana", "sha256": "0" * 64}]}), encoding="utf-8")
    loaded = TokenSources.of({BASE: "c"}, Options(path, printing('{"eve": "e"}'))).load()
    assert actors(loaded) == {"ana", "default", "eve"}
    assert (loaded.source, loaded.warnings) == ("env-or-file+command", ())


def test_one_actor_in_two_sources_is_refused() -> None:
    error = failure({f"{BASE}S_JSON": '{"default": "a"}', BASE: "b"})
    assert error.message == "the actor 'default' occurs twice"
    error = failure({f"{BASE}S_JSON": '{"ana": "canary"}', BASE: "canary"})
    assert error.message == "'ana' and 'default' have the same token"


def test_empty_source_accepts_no_token() -> None:
    loaded = TokenSources.of({f"{BASE}S_JSON": '{"tokens": []}'}, Options()).load()
    assert loaded.tokens is not None
    assert len(loaded.tokens) == 0
    assert "no token is accepted" in loaded.warnings[0]


@pytest.mark.parametrize(
    ("content", "code"), [(None, "no_such_file"), (b"\xff\xfe", "not_utf8"), (b'{"ana": canary}', "bad_tokens")]
)
def test_unusable_file(tmp_path: Path, content: bytes | None, code: str) -> None:
    path = tmp_path / "tokens.json"
    if content is not None:
        path.write_bytes(content)
    error = failure({f"{BASE}S_FILE": str(path)})
    assert error.code == code
    assert str(path) in error.message
    assert "canary" not in str(error)


def test_unreadable_file(tmp_path: Path) -> None:
    assert failure({f"{BASE}S_FILE": str(tmp_path)}).code == "unreadable_file"


def test_literal_is_named_by_its_variable() -> None:
    assert failure({f"{BASE}S_JSON": "ana=a"}).message.startswith(f"{BASE}S_JSON is not JSON: line 1, column 1")
    assert failure({BASE: "a\x01b"}).message.startswith(BASE)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("no-such-program-here", "cannot be started: No such file or directory"),
        ("'unclosed", "cannot be split into arguments"),
        (printing("canary", before="import sys; sys.stderr.write('canary'); sys.exit(3)"), "failed with exit code 3"),
        (shlex.join([sys.executable, "-S", "-c", r"import sys; sys.stdout.buffer.write(b'\xff')"]), "no UTF-8 text"),
        (printing("canary"), "is not JSON"),
    ],
)
def test_failing_command(command: str, reason: str) -> None:
    error = failure({}, Options(command=command))
    assert "server.auth.tokens.command" in error.message
    assert reason in error.message
    assert "canary" not in f"{error} {error.hint}"


def test_command_has_a_time_limit_that_its_children_cannot_escape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "COMMAND_LIMIT_S", 1.0)
    record = tmp_path / "pid"
    script = f"sleep 60 & echo $! > {shlex.quote(str(record))}; wait"
    error = failure({}, Options(command=shlex.join(["sh", "-c", script])))
    assert "did not end within 1 s" in error.message
    child = int(record.read_text())
    until = time.monotonic() + 10
    while is_running(child) and time.monotonic() < until:
        time.sleep(0.01)
    assert not is_running(child)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_reload_reads_the_file_again_and_failures_raise(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    path.write_text('{"ana": "a"}', encoding="utf-8")
    found = TokenSources.of({f"{BASE}S_FILE": str(path)}, Options())
    first = found.load()
    replacement = tmp_path / "new.json"
    replacement.write_text('{"ben": "b"}', encoding="utf-8")
    os.replace(replacement, path)  # noqa: PTH105
    second = found.load()
    assert actors(second) == {"ben"}
    assert second.tokens is not None
    assert first.tokens is not None
    assert second.tokens.digest != first.tokens.digest
    path.write_text("{", encoding="utf-8")
    with pytest.raises(InputError):
        found.load()
    path.unlink()
    with pytest.raises(InputError):
        found.load()


def test_polled_sources() -> None:
    assert TokenSources.of({}, Options(command="x")).is_polled
    assert TokenSources.of({f"{BASE}S_AWS_SECRET": "x"}, Options()).is_polled
    assert not TokenSources.of({BASE: "x"}, Options()).is_polled
