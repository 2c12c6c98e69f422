"""OWASP API 2: authentication. The matrix of tokens; what a refusal reveals; what a caller can influence."""

from __future__ import annotations

import gc
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from omnigraph.errors import InputError, Unauthorized
from omnigraph.server.auth.modes import start_mode
from omnigraph.server.auth.sources import TokenSources
from omnigraph.server.auth.token_file import create_token, revoke_tokens
from omnigraph.server.auth.tokens import TOKEN_PATTERN, Principal, TokenEntry, TokenSet, new_token, token_digest

VALID, EXPIRED, PLAIN = new_token(), new_token(), "plain token"
NOW = datetime.now(UTC)
TOKENS = TokenSet.of(
    [
        TokenEntry(token_digest(VALID), Principal("ana"), NOW + timedelta(days=1)),
        TokenEntry(token_digest(EXPIRED), Principal("ben"), NOW - timedelta(seconds=1)),
        TokenEntry(token_digest(PLAIN), Principal("eve")),
    ]
)
DIGEST = token_digest(VALID)


class NoOptions:
    file = None
    command = None


REFUSED = {
    "no header": (None, "missing_token"),
    "empty header": ("", "missing_token"),
    "scheme only": ("Bearer", "missing_token"),
    "blank token": ("Bearer \t ", "missing_token"),
    "token without scheme": (VALID, "missing_token"),
    "Basic": (f"Basic {VALID}", "missing_token"),
    "Digest": (f"Digest {VALID}", "missing_token"),
    "two schemes": (f"Basic x, Bearer {VALID}", "missing_token"),
    "scheme joined to the token": (f"Bearer{VALID}", "missing_token"),
    "colon after the scheme": (f"Bearer: {VALID}", "missing_token"),
    "look-alike scheme": (f"Веarer {VALID}", "missing_token"),
    "unknown": (f"Bearer {new_token()}", "invalid_token"),
    "expired": (f"Bearer {EXPIRED}", "token_expired"),
    "expired by case of the scheme": (f"bEaReR {EXPIRED}", "token_expired"),
    "other case": (f"Bearer {VALID.upper()}", "invalid_token"),
    "prefix": (f"Bearer {VALID[:-1]}", "invalid_token"),
    "suffix": (f"Bearer {VALID}x", "invalid_token"),
    "quoted": (f'Bearer "{VALID}"', "invalid_token"),
    "twice": (f"Bearer {VALID} {VALID}", "invalid_token"),
    "list": (f"Bearer {VALID}, Bearer {VALID}", "invalid_token"),
    "parameter": (f"Bearer token={VALID}", "invalid_token"),
    "zero byte": (f"Bearer {VALID}\x00", "invalid_token"),
    "zero-width space": (f"Bearer {VALID}\u200b", "invalid_token"),
    "stored digest as hex": (f"Bearer {DIGEST.hex()}", "invalid_token"),
    "stored digest as bytes": (f"Bearer {DIGEST.decode('latin-1')}", None),
    "unsigned JWT": ("Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbmEifQ.", "invalid_token"),
    "actor": ("Bearer ana", "invalid_token"),
    "long": (f"Bearer {'x' * 1_000_000}", "invalid_token"),
}


@pytest.mark.parametrize(("header", "code"), REFUSED.values(), ids=REFUSED.keys())
def test_matrix(header: str | None, code: str | None) -> None:
    with pytest.raises(Unauthorized) as caught:
        TOKENS.find(header)
    if code is not None:
        assert caught.value.code == code


def test_valid_tokens_are_accepted() -> None:
    assert TOKENS.find(f"Bearer {VALID}").actor == "ana"
    assert TOKENS.find(f"Bearer {PLAIN}").actor == "eve"


def test_refusal_does_not_depend_on_how_near_the_token_was() -> None:
    """A token that differs in its last character gets the same answer as any other."""
    near = VALID[:-1] + ("A" if VALID[-1] != "A" else "B")
    far = new_token()[:-1] + "~"
    answers = set()
    for token in (near, "other", far):
        with pytest.raises(Unauthorized) as caught:
            TOKENS.find(f"Bearer {token}")
        answers.add((caught.value.code, caught.value.message))
    assert answers == {("invalid_token", "invalid bearer token")}


def test_lookup_key_cannot_be_computed_outside_the_process() -> None:
    """The table is keyed by an HMAC: neither a token nor its hash is a key, so a caller cannot steer the lookup."""
    assert DIGEST not in TOKENS._found
    assert all(len(key) == 32 for key in TOKENS._found)


def test_no_token_stays_in_memory(tmp_path: Path) -> None:
    """After a load, no reachable text contains the token."""
    path = tmp_path / "tokens.json"
    path.write_text(json.dumps({"ana": "-".join(["canary", "in", "memory"])}), encoding="utf-8")
    name = "OMNIGRAPH_SERVER_BEARER_TOKEN"
    variables = {name: "-".join(["canary", "in", "memory", "2"])}
    literal = {f"{name}S_JSON": path.read_text(encoding="utf-8")}
    sources = [
        TokenSources.of({**variables, f"{name}S_FILE": str(path)}, NoOptions()),
        TokenSources.of({**variables, **literal}, NoOptions()),
    ]
    loaded = [(each, each.load()) for each in sources]
    gc.collect()
    wanted = "-".join(["canary", "in", "memory"])
    seen: set[int] = set()
    pending: list[object] = [loaded]
    while pending:
        value = pending.pop()
        if id(value) in seen or isinstance(value, type) or hasattr(value, "__globals__"):
            continue
        seen.add(id(value))
        assert not (isinstance(value, str) and wanted in value)
        pending.extend(gc.get_referents(value))


def test_revoked_token_is_refused_after_the_next_load(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    token = create_token(path, Principal("ana"))
    sources = TokenSources(file=path)
    first = sources.load()
    revoke_tokens(path, actor="ana")
    second = sources.load()
    assert first.tokens is not None
    assert second.tokens is not None
    assert first.tokens.find(f"Bearer {token}").actor == "ana"
    with pytest.raises(Unauthorized):
        second.tokens.find(f"Bearer {token}")


def test_revoking_the_last_token_does_not_open_the_server(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    create_token(path, Principal("ana"))
    revoke_tokens(path, actor="ana")
    tokens = TokenSources(file=path).load().tokens
    assert tokens is not None
    mode = start_mode(has_tokens=True, has_policy=False, bind="127.0.0.1:0", is_loopback=True)
    assert mode == "default_deny"


@pytest.mark.parametrize("has_policy", [False, True])
def test_server_without_tokens_does_not_start_where_others_reach_it(has_policy: bool) -> None:
    with pytest.raises(InputError):
        start_mode(has_tokens=False, has_policy=has_policy, bind="0.0.0.0:8080", is_loopback=False)


def test_new_tokens_are_masked_by_the_pattern() -> None:
    for _ in range(1000):
        assert TOKEN_PATTERN.sub("***", f"x={new_token()};") == "x=***;"
