"""The commands `omnigraph token …`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from omnigraph.operations.authorization.access import Only
from omnigraph.server.auth.sources import TokenSources
from omnigraph.server.auth.tokens import Principal
from support.commands import Cli, document

TOKEN = re.compile(r"og_[A-Za-z0-9_-]{49}\n")


def find(token: str) -> Principal:
    tokens = TokenSources(file=Path("tokens.json")).load().tokens
    assert tokens is not None
    return tokens.find(f"Bearer {token.strip()}")


def test_create_prints_the_token_once(folder: Path, cli: Cli) -> None:
    code, out, err = cli("token", "create", "--actor", "ana", "tokens.json")
    assert code == 0
    assert TOKEN.fullmatch(out)
    assert err == "note: the token is shown only now; tokens.json contains its hash\n"
    assert find(out) == Principal("ana")
    assert cli("--quiet", "token", "create", "--actor", "ben", "tokens.json")[2] == ""


def test_a_second_token_of_an_actor_needs_a_name(folder: Path, cli: Cli) -> None:
    assert cli("token", "create", "--actor", "ana", "tokens.json")[0] == 0
    code, _, err = cli("token", "create", "--actor", "ana", "tokens.json")
    assert code == 1
    assert "hint: give each token of an actor a 'name' of its own (token create: --name NAME)\n" in err
    assert cli("token", "create", "--actor", "ana", "--name", "ci", "tokens.json")[0] == 0


def test_attributes(folder: Path, cli: Cli) -> None:
    given = (
        "--attribute",
        "tenant=acme",
        "--attribute",
        "level=3",
        "--attribute",
        'teams=["a"]',
        "--attribute",
        'c="3"',
    )
    code, out, _ = cli("token", "create", "--actor", "ana", *given, "tokens.json")
    assert code == 0
    assert find(out).attributes == {"tenant": "acme", "level": 3, "teams": ["a"], "c": "3"}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (("tenant",), "write --attribute NAME=VALUE"),
        (("=x",), "write --attribute NAME=VALUE"),
        (("a=1", "a=2"), "the attribute 'a' is given twice"),
        (("a=1.5",), "'attributes.a' must be a text, an integer, a Boolean or a list of these"),
    ],
)
def test_wrong_attributes(folder: Path, cli: Cli, given: tuple[str, ...], wanted: str) -> None:
    options = [word for one in given for word in ("--attribute", one)]
    code, _, err = cli("token", "create", "--actor", "ana", *options, "tokens.json")
    assert code != 0
    assert wanted in err
    assert not Path("tokens.json").exists()


def test_create_with_all_options(folder: Path, cli: Cli) -> None:
    words = (
        "token create --actor ana --name ci --expires 2999-01-01T00:00:00+01:00 --group staff --group ops"
        " --only-action read --only-action export --only-graph kb --only-branch main --only-branch mcp/* tokens.json"
    )
    found = document(cli(*words.split(), "--json"))
    token = found.pop("token")
    assert found == {"path": "tokens.json", "actor": "ana", "name": "ci", "not_after": "2998-12-31T23:00:00Z"}
    assert find(token) == Principal(
        "ana", "ci", ("staff", "ops"), {}, Only(("read", "export"), ("kb",), ("main", "mcp/*")), 32_472_140_400.0
    )
    listed = document(cli("token", "list", "tokens.json", "--json"))
    assert listed == {
        "path": "tokens.json",
        "tokens": [
            {
                "actor": "ana",
                "name": "ci",
                "not_after": "2998-12-31T23:00:00Z",
                "expired": False,
                "plain": False,
                "groups": ["staff", "ops"],
                "only": {"actions": ["read", "export"], "graphs": ["kb"], "branches": ["main", "mcp/*"]},
            }
        ],
    }
    assert token not in cli("token", "list", "tokens.json")[1]


@pytest.mark.parametrize("expires", ["3600s", "30m", "1.5h", "90d", "4w", " 1d "])
def test_durations(folder: Path, cli: Cli, expires: str) -> None:
    assert cli("token", "create", "--actor", "ana", "--expires", expires, "tokens.json")[0] == 0
    (row,) = document(cli("token", "list", "tokens.json", "--json"))["tokens"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", row["not_after"])
    assert not row["expired"]


@pytest.mark.parametrize(
    ("expires", "message"),
    [
        ("3y", "neither a duration nor a time"),
        ("5", "neither a duration nor a time"),
        ("", "neither a duration nor a time"),
        ("2999-01-01", "neither a duration nor a time"),
        ("999999w", "neither a duration nor a time"),
        ("0d", "is not in the future"),
        ("2001-01-01T00:00:00Z", "is not in the future"),
    ],
)
def test_bad_expiry_is_a_usage_error(folder: Path, cli: Cli, expires: str, message: str) -> None:
    code, out, err = cli("token", "create", "--actor", "ana", "--expires", expires, "tokens.json")
    assert (code, out) == (2, "")
    assert message in err
    assert not Path("tokens.json").exists()


def test_list_as_table(folder: Path, cli: Cli) -> None:
    entries = [
        {"actor": "ana", "sha256": "0" * 64, "name": "ci", "not_after": "2020-01-01T00:00:00Z", "groups": ["a", "b"]},
        {"actor": "ben", "token": "canary", "only": {"actions": ["read"], "branches": ["mcp/*"]}},
    ]
    Path("tokens.json").write_text(json.dumps({"tokens": entries}), encoding="utf-8")
    assert cli("token", "list", "tokens.json") == (
        0,
        "actor | name | expires                        | groups | only                         | stored\n"
        "------+------+--------------------------------+--------+------------------------------+-----------\n"
        "ana   | ci   | 2020-01-01T00:00:00Z (expired) | a, b   |                              | hash\n"
        "ben   |      | never                          |        | actions read; branches mcp/* | plain text\n",
        "",
    )
    Path("tokens.json").write_text("{}", encoding="utf-8")
    assert cli("token", "list", "tokens.json")[:2] == (0, "no tokens\n")


def test_revoke(folder: Path, cli: Cli) -> None:
    for actor, name in (("ana", "ci"), ("ana", "laptop"), ("ben", "ci")):
        assert cli("token", "create", "--actor", actor, "--name", name, "tokens.json")[0] == 0
    assert cli("token", "revoke", "--actor", "ana", "--name", "ci", "tokens.json")[:2] == (
        0,
        "revoked the token of 'ana' (token 'ci')\n",
    )
    assert document(cli("token", "revoke", "--name", "ci", "tokens.json", "--json")) == {
        "path": "tokens.json",
        "revoked": [{"actor": "ben", "name": "ci"}],
    }
    assert (
        document(cli("token", "revoke", "--actor", "eve", "tokens.json", "--json"), code=1)["reason"]
        == "token_not_found"
    )
    code, _, err = cli("token", "revoke", "tokens.json")
    assert code == 2
    assert "give --actor, --name, or both" in err


def test_errors_name_the_file_and_never_a_token(folder: Path, cli: Cli) -> None:
    Path("tokens.json").write_text('{"ana": "canary", "ben": "canary"}', encoding="utf-8")
    for words in (("create", "--actor", "eve"), ("list",), ("revoke", "--actor", "ana")):
        code, out, err = cli("token", *words, "tokens.json", "--json")
        assert code == 1
        assert json.loads(out)["reason"] == "bad_tokens"
        assert "canary" not in out + err
