"""The check of bearer tokens."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from omnigraph.errors import InputError, Unauthorized
from omnigraph.operations.authorization.access import Only
from omnigraph.server.auth.tokens import (
    TOKEN_PATTERN,
    Principal,
    TokenEntry,
    TokenSet,
    new_token,
    token_digest,
)


def entry(actor: str, token: str, name: str | None = None, not_after: datetime | None = None) -> TokenEntry:
    return TokenEntry(token_digest(token), Principal(actor, name), not_after)


TOKENS = TokenSet.of(
    [
        entry("ana", "s3cret", "laptop"),
        entry("ana", "t0ken", "phone"),
        entry("ben", "old", not_after=datetime(2020, 1, 2, tzinfo=UTC)),
        entry("eve", "still", not_after=datetime.now(UTC) + timedelta(days=1)),
        entry("zoë", "schlüssel-€"),
    ]
)


def refused(header: str | None) -> Unauthorized:
    with pytest.raises(Unauthorized) as caught:
        TOKENS.find(header)
    return caught.value


def test_digest_is_sha256() -> None:
    assert token_digest("abc").hex() == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@pytest.mark.parametrize(
    "header",
    ["Bearer s3cret", "bearer s3cret", "BEARER s3cret", "Bearer   s3cret  ", "  Bearer s3cret", "Bearer \ts3cret"],
)
def test_scheme_has_no_case_and_blanks_are_removed(header: str) -> None:
    assert TOKENS.find(header) == Principal("ana", "laptop")


def test_actor_can_have_several_tokens() -> None:
    assert TOKENS.find("Bearer t0ken").token_name == "phone"
    assert TOKENS.find("Bearer still").actor == "eve"


def test_token_outside_ascii_is_compared_by_its_bytes() -> None:
    as_received = "Bearer schlüssel-€".encode().decode("latin-1")
    assert TOKENS.find(as_received).actor == "zoë"


@pytest.mark.parametrize(
    "header", [None, "", " ", "Bearer", "Bearer ", "Basic czNjcmV0", "s3cret", "Bearers3cret", "Token s3cret"]
)
def test_missing_token(header: str | None) -> None:
    error = refused(header)
    assert (error.code, error.message) == ("missing_token", "missing bearer token")
    assert "Authorization: Bearer" in (error.hint or "")


@pytest.mark.parametrize(
    "header",
    [
        "Bearer S3CRET",
        "Bearer s3cre",
        "Bearer s3cret x",
        "Bearer s3cret,",
        "Bearer \x00",
        "Bearer €",
        "Bearer \ud800",
        "Bearer " + "x" * 100_000,
    ],
)
def test_invalid_token(header: str) -> None:
    error = refused(header)
    assert (error.code, error.message) == ("invalid_token", "invalid bearer token")


def test_message_never_contains_the_token() -> None:
    token = new_token()
    damaged = token[:-1] + ("A" if token[-1] != "A" else "B")
    for presented in (token, damaged, "canary-token"):
        error = refused(f"Bearer {presented}")
        assert presented not in f"{error} {error.hint} {error!r} {vars(error)}"


def test_expired_token() -> None:
    error = refused("Bearer old")
    assert error.code == "token_expired"
    assert error.message == "the bearer token expired at 2020-01-02T00:00:00Z"


def test_new_token_has_the_documented_form() -> None:
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100
    for token in tokens:
        assert re.fullmatch(r"og_[A-Za-z0-9_-]{49}", token)
        assert TOKEN_PATTERN.fullmatch(token)


def test_damaged_copy_is_recognised_by_its_check_characters() -> None:
    token = new_token()
    damaged = token[:10] + ("A" if token[10] != "A" else "B") + token[11:]
    assert "check characters" in (refused(f"Bearer {damaged}").hint or "")
    assert "check characters" not in (refused(f"Bearer {token}").hint or "")


def test_only_digests_stay_in_memory() -> None:
    tokens = TokenSet.of([entry("ana", "".join(["canary", "-", "secret"]))])
    assert "canary-secret" not in repr((tokens._found, tokens.actors, tokens.digest, tokens))


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([entry("ana", "a"), entry("ana", "b")], "the actor 'ana' occurs twice"),
        ([entry("ana", "a"), entry("ben", "a", "ci")], "'ana' and 'ben' (token 'ci') have the same token"),
        (
            [entry("ana", "a", "x"), entry("ana", "a", "y")],
            "'ana' (token 'x') and 'ana' (token 'y') have the same token",
        ),
    ],
)
def test_ambiguous_sets_are_refused(entries: list[TokenEntry], message: str) -> None:
    with pytest.raises(InputError) as caught:
        TokenSet.of(entries)
    assert (caught.value.code, caught.value.message) == ("bad_tokens", message)


def test_digest_depends_on_content_not_on_order() -> None:
    first, second = entry("ana", "a"), entry("ben", "b")
    assert TokenSet.of([first, second]).digest == TokenSet.of([second, first]).digest
    limits = [Only(), Only(actions=("read",)), Only(branches=("mcp/*",)), Only(branches=())]
    limited = [TokenEntry(first.sha256, Principal("ana", only=only)) for only in limits]
    digests = {TokenSet.of(entries).digest for entries in ([], [first], [second], *([each] for each in limited))}
    assert len(digests) == 7


def test_empty_set_accepts_nothing() -> None:
    with pytest.raises(Unauthorized) as caught:
        TokenSet.of([]).find("Bearer x")
    assert caught.value.code == "invalid_token"
