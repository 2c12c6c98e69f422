"""Changes of a file of tokens."""

from __future__ import annotations

import json
import sys
import threading
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from omnigraph.errors import InputError, NotFound
from omnigraph.operations.authorization.access import Only
from omnigraph.server.auth.sources import TokenSources
from omnigraph.server.auth.token_file import create_token, list_tokens, revoke_tokens
from omnigraph.server.auth.tokens import Principal


def accepted(path: Path, token: str) -> Principal:
    tokens = TokenSources(file=path).load().tokens
    assert tokens is not None
    return tokens.find(f"Bearer {token}")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tokens.json"


def test_created_token_is_accepted_and_its_hash_is_stored(path: Path) -> None:
    principal = Principal("ana", "laptop", ("staff",), {"tenant": "acme"}, Only(("read",), None, ("mcp/*",)))
    token = create_token(path, principal, datetime(2999, 1, 2, 3, 4, 5, 600, tzinfo=UTC))
    end = datetime(2999, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp()
    assert accepted(path, token) == replace(principal, not_after=end)
    text = path.read_text(encoding="utf-8")
    assert token not in text
    assert '"not_after": "2999-01-02T03:04:05Z"' in text
    assert path.stat().st_mode & 0o777 == 0o600
    assert [child.name for child in path.parent.iterdir()] == [path.name]


@pytest.mark.skipif(sys.platform == "win32", reason="modes of files")
def test_readers_of_the_file_are_kept(path: Path) -> None:
    create_token(path, Principal("ana"))
    path.chmod(0o640)
    before = path.stat()
    create_token(path, Principal("ben"))
    assert path.stat().st_mode & 0o777 == 0o640, "a service account in the group of the file reads it"
    assert (path.stat().st_uid, path.stat().st_gid) == (before.st_uid, before.st_gid)
    assert path.stat().st_ino != before.st_ino


def test_other_tokens_are_kept(path: Path) -> None:
    path.write_text('{"ana": "plain"}', encoding="utf-8")
    path.chmod(0o644)
    token = create_token(path, Principal("ana", "laptop"))
    assert accepted(path, "plain") == Principal("ana")
    assert accepted(path, token) == Principal("ana", "laptop")
    assert [listed.is_plain for listed in list_tokens(path)] == [True, False]
    assert path.stat().st_mode & 0o777 == 0o600


def test_link_is_followed(path: Path) -> None:
    path.write_text("{}", encoding="utf-8")
    link = path.with_name("link.json")
    link.symlink_to(path)
    token = create_token(link, Principal("ana"))
    assert link.is_symlink()
    assert accepted(path, token).actor == "ana"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"ana": 3}', '{"tokens": [{"actor": "ana"}]}', '{"ana": "a", "ben": "a"}']
)
def test_malformed_file_is_not_changed(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    for change in (
        lambda: create_token(path, Principal("eve")),
        lambda: revoke_tokens(path, actor="ana"),
        lambda: list_tokens(path),
    ):
        with pytest.raises(InputError) as caught:
            change()
        assert caught.value.code == "bad_tokens"
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    ("principal", "message"),
    [
        (Principal("ana"), "the actor 'ana' occurs twice"),
        (Principal(" "), "'actor' must not be blank"),
        (Principal("ben", ""), "'name' must not be blank"),
        (Principal("ben", only=Only(("reed",))), "unknown action 'reed'"),
        (Principal("ben", groups=("",)), "'groups[0]' must not be blank"),
    ],
)
def test_token_that_a_server_would_refuse_is_not_written(path: Path, principal: Principal, message: str) -> None:
    create_token(path, Principal("ana"))
    before = path.read_bytes()
    with pytest.raises(InputError) as caught:
        create_token(path, principal)
    assert message in caught.value.message
    assert path.read_bytes() == before


def test_revoke(path: Path) -> None:
    for actor, name in (("ana", "laptop"), ("ana", "phone"), ("ben", "laptop"), ("eve", None)):
        create_token(path, Principal(actor, name))

    def left() -> list[tuple[str, str | None]]:
        return [(row.entry.principal.actor, row.entry.principal.token_name) for row in list_tokens(path)]

    assert [entry.label for entry in revoke_tokens(path, actor="ana", name="phone")] == ["'ana' (token 'phone')"]
    assert left() == [("ana", "laptop"), ("ben", "laptop"), ("eve", None)]
    assert len(revoke_tokens(path, name="laptop")) == 2
    assert len(revoke_tokens(path, actor="eve")) == 1
    assert json.loads(path.read_text(encoding="utf-8")) == {"tokens": []}
    with pytest.raises(NotFound) as caught:
        revoke_tokens(path, actor="eve", name="x")
    assert caught.value.message.endswith("has no token with the actor 'eve' and the name 'x'")
    assert caught.value.code == "token_not_found"


def test_missing_file_and_folder(tmp_path: Path) -> None:
    for change in (list_tokens, lambda path: revoke_tokens(path, actor="ana")):
        with pytest.raises(InputError) as caught:
            change(tmp_path / "none.json")
        assert caught.value.code == "no_such_file"
    with pytest.raises(InputError) as caught:
        create_token(tmp_path / "none" / "tokens.json", Principal("ana"))
    assert caught.value.code == "unwritable_file"


def test_concurrent_changes_do_not_undo_each_other(path: Path) -> None:
    path.write_text("{}", encoding="utf-8")
    threads = [
        threading.Thread(target=create_token, args=(path, Principal(f"actor {number}")), daemon=True)
        for number in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(list_tokens(path)) == 16
