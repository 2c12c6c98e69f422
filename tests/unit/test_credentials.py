"""The credentials file: mode, atomic replacement, and the server that a token belongs to."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from omnigraph.credentials import find_token, read_tokens, remove_token, server_of, store_token
from omnigraph.errors import InputError

OPERATOR = """
servers:
  wide: { url: "https://graph.example" }
  loans: { url: "https://graph.example/graphs/loans" }
  other: { url: "https://other.example:8443/base" }
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "config.yaml").write_text(OPERATOR)
    return {"OMNIGRAPH_HOME": str(tmp_path)}


def test_tokens_are_stored_privately(tmp_path):
    path = tmp_path / "new" / "credentials"
    store_token(path, "wide", "og_one")
    store_token(path, "DEFAULT", "og_two")
    store_token(path, "wide", "og_three")
    assert read_tokens(path) == {"wide": "og_three", "DEFAULT": "og_two"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [found.name for found in path.parent.iterdir()] == ["credentials"]
    assert remove_token(path, "wide")
    assert not remove_token(path, "wide")
    assert read_tokens(path) == {"DEFAULT": "og_two"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_removal_without_a_file_creates_none(tmp_path):
    assert not remove_token(tmp_path / "credentials", "wide")
    assert not (tmp_path / "credentials").exists()


@pytest.mark.skipif(os.name != "posix", reason="the mode of a file belongs to POSIX")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o610])
def test_file_that_others_can_use_is_refused(tmp_path, mode):
    path = tmp_path / "credentials"
    store_token(path, "wide", "og_secret")
    path.chmod(mode)
    for call in (lambda: read_tokens(path), lambda: store_token(path, "x", "og_y"), lambda: remove_token(path, "wide")):
        with pytest.raises(InputError, match=f"mode {mode:04o}") as caught:
            call()
        assert caught.value.code == "insecure_credentials"
        assert "chmod 600" in str(caught.value.hint)
    path.chmod(0o600)
    assert read_tokens(path) == {"wide": "og_secret"}


@pytest.mark.parametrize("token", ["", "two words", "line\nbreak", "tab\t", "ümlaut", "nul\0"])
def test_tokens_that_no_header_can_carry(tmp_path, token):
    path = tmp_path / "credentials"
    with pytest.raises(InputError) as caught:
        store_token(path, "wide", token)
    assert caught.value.code == "bad_token"
    assert not token or token not in str(caught.value)
    assert not path.exists()


@pytest.mark.parametrize("name", ["", "a b", "a]b", "a\nb", "https://x", "-a"])
def test_names_that_no_server_has(tmp_path, name):
    with pytest.raises(InputError) as caught:
        store_token(tmp_path / "credentials", name, "og_x")
    assert caught.value.code == "bad_server_name"


@pytest.mark.parametrize("text", ["token = og_secret\n", "[a]\nog_secret\n", "[a]\ntoken = og_secret\n[a]\n"])
def test_damaged_file_reveals_nothing(tmp_path, text):
    path = tmp_path / "credentials"
    path.touch(mode=0o600)
    path.write_text(text)
    with pytest.raises(InputError, match="is not a credentials file") as caught:
        read_tokens(path)
    assert caught.value.code == "bad_credentials"
    assert "og_secret" not in f"{caught.value} {caught.value.hint} {caught.value.__context__ and ''}"


def test_entries_of_others_are_kept(tmp_path):
    path = tmp_path / "credentials"
    path.touch(mode=0o600)
    path.write_text("[a]\ntoken = og_a\nNote = kept\n[b]\n")
    store_token(path, "c", "og_c=1%")
    assert read_tokens(path) == {"a": "og_a", "c": "og_c=1%"}
    assert "Note = kept" in path.read_text()


def test_concurrent_changes_keep_each_other(tmp_path):
    path = tmp_path / "credentials"
    names = [f"s{number}" for number in range(12)]
    threads = [threading.Thread(target=store_token, args=(path, name, f"og_{name}")) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read_tokens(path) == {name: f"og_{name}" for name in names}


def test_longest_address_wins(environ):
    servers = {"wide": "https://h", "deep": "https://h/a/b", "mid": "https://h/a"}
    assert server_of("https://h/a/b/c", servers) == "deep"
    assert server_of("https://h/a/bc", servers) == "mid"
    assert server_of("https://H:443/ab/", servers) == "wide"
    assert server_of("http://h/a", servers) is None
    assert server_of("https://h.example", servers) is None


def test_token_of_an_address(environ, tmp_path):
    path = tmp_path / "credentials"
    assert find_token("https://graph.example", environ) is None
    for name in ("wide", "loans", "other"):
        store_token(path, name, f"og_{name}")
    assert find_token("https://graph.example/graphs/loans/", environ) == "og_loans"
    assert find_token("https://graph.example/graphs/loans2", environ) == "og_wide"
    assert find_token("https://other.example:8443/base/graphs/x", environ) == "og_other"
    assert find_token("https://other.example/base", environ) is None
    with_variable = {**environ, "OMNIGRAPH_TOKEN_LOANS": " og_variable "}
    assert find_token("https://graph.example/graphs/loans", with_variable) == "og_variable"
    assert find_token("https://graph.example", with_variable) == "og_wide"
    assert remove_token(path, "loans")
    assert find_token("https://graph.example/graphs/loans", environ) is None, "a token of another server is not used"
