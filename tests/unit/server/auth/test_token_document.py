"""The JSON form of tokens."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from omnigraph.errors import InputError
from omnigraph.operations.authorization.access import Only
from omnigraph.server.auth.token_document import parse_tokens
from omnigraph.server.auth.tokens import Principal, token_digest

SECRET = "canary-token-value"
HASH = token_digest("abc").hex()


def parse(document: Any) -> Any:
    return parse_tokens(document if isinstance(document, str) else json.dumps(document), "tokens.json")


def test_map_of_actors() -> None:
    document = parse({" ana ": f"  {SECRET} ", "ben": "other", "tokens": "not a list"})
    assert [entry.principal.actor for entry in document.entries] == ["ana", "ben", "tokens"]
    assert document.entries[0].sha256 == token_digest(SECRET)
    assert document.plain_count == 3


def test_list_of_entries() -> None:
    document = parse(
        {
            "tokens": [
                {
                    "actor": "ana",
                    "sha256": HASH.upper(),
                    "name": "laptop",
                    "not_after": "2027-01-01T01:00:00+01:00",
                    "groups": ["staff"],
                    "attributes": {"tenant": "acme", "level": 3, "tags": ["a", "b"], "on": True},
                    "only": {"actions": ["read", "graph_list"], "graphs": ["kb"], "branches": ["main", "mcp/*"]},
                },
                {"actor": "ben", "token": SECRET, "name": None, "groups": None, "only": None},
            ]
        }
    )
    first, second = document.entries
    assert first.sha256 == token_digest("abc")
    assert first.not_after == datetime(2027, 1, 1, tzinfo=UTC)
    assert first.principal == Principal(
        "ana",
        "laptop",
        ("staff",),
        {"tenant": "acme", "level": 3, "tags": ["a", "b"], "on": True},
        Only(("read", "graph_list"), ("kb",), ("main", "mcp/*")),
        datetime(2027, 1, 1, tzinfo=UTC).timestamp(),
    )
    assert (second.principal, second.not_after, document.plain_count) == (Principal("ben"), None, 1)


def test_empty_documents_have_no_tokens() -> None:
    assert parse({}).entries == parse({"tokens": []}).entries == ()


def listed(**members: Any) -> dict[str, Any]:
    return {"tokens": [{"actor": "ana", "token": SECRET, **members}]}


WRONG: list[tuple[Any, str]] = [
    ("", "tokens.json is not JSON: line 1, column 1"),
    (f'{{"ana": "{SECRET}"', "tokens.json is not JSON: line 1"),
    ("[]", "must be a JSON object, not a list"),
    ("[" * 100_000, "tokens.json is "),
    (f'{{"ana": "{SECRET}", "ana": "x"}}', "the member 'ana' twice"),
    ({"ana": 3}, "the token of 'ana' must be a text, not a number"),
    ({"ana": None}, "the token of 'ana': exactly one of 'sha256' and 'token'"),
    ({"ana": [SECRET]}, "the token of 'ana' must be a text, not a list"),
    ({"ana": " "}, "the token of 'ana' must not be blank"),
    ({"ana": f"{SECRET}\nx"}, "the token of 'ana' contains a character that no HTTP header can hold"),
    ({" ": SECRET}, "tokens[0]: 'actor' must not be blank"),
    ({"a\nb": SECRET}, "tokens[0]: 'actor' contains a character that is not printable"),
    ('{"\\ud800": "x"}', "tokens[0]: 'actor' contains a character that is not printable"),
    ({"tokens": [], "more": 1}, "unknown member 'more' beside 'tokens'"),
    ({"tokens": [SECRET]}, "tokens[0] must be an object, not a text"),
    ({"tokens": [{"token": SECRET}]}, "tokens[0]: 'actor' must be a text, not null"),
    ({"tokens": [{"actor": "ana"}]}, "exactly one of 'sha256' and 'token'"),
    (listed(sha256=HASH), "the token of 'ana': exactly one of 'sha256' and 'token'"),
    (listed(token=None, sha256="abc"), "'sha256' must be 64 hexadecimal digits"),
    (listed(token=None, sha256=7), "'sha256' must be 64 hexadecimal digits"),
    (listed(nmae="x"), "unknown member 'nmae'"),
    (listed(name=" "), "'name' must not be blank"),
    (listed(name=3), "'name' must be a text, not a number"),
    (listed(not_after="2027-01-01"), "'not_after' must be a time with its zone"),
    (listed(not_after="soon"), "'not_after' must be a time with its zone"),
    (listed(not_after=1), "'not_after' must be a time with its zone"),
    (listed(groups="staff"), "'groups' must be a list of texts, not a text"),
    (listed(groups=["a", ""]), "'groups[1]' must not be blank"),
    (listed(attributes=[]), "'attributes' must be an object, not a list"),
    (listed(attributes={"a": 1.5}), "'attributes.a' must be"),
    (listed(attributes={"a": {}}), "'attributes.a' must be"),
    (listed(only=[]), "'only' must be an object, not a list"),
    (listed(only={"action": []}), "only: unknown member 'action'"),
    (listed(only={"graphs": True}), "'only.graphs' must be a list of texts, not a Boolean"),
    (listed(only={"actions": ["reed"]}), "'only.actions' has the unknown action 'reed'"),
]


@pytest.mark.parametrize(("document", "message"), WRONG, ids=range(len(WRONG)))
def test_wrong_documents_are_refused_without_naming_a_token(document: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(document)
    error = caught.value
    assert error.code == "bad_tokens"
    assert message in error.message
    assert (
        SECRET
        not in f"{error} {error.hint} {error.__cause__} {error.__context__ if not error.__suppress_context__ else ''}"
    )


def test_hint_has_the_nearest_member_and_action() -> None:
    for document, word in ((listed(nmae="x"), "name"), (listed(only={"actions": ["reed"]}), "read")):
        with pytest.raises(InputError) as caught:
            parse(document)
        assert word in (caught.value.hint or "")
