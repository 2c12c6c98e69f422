"""The benchmark of authentication runs and refuses unknown tokens."""

from __future__ import annotations

import pytest
from bench import authenticate

from omnigraph.server.auth.tokens import Principal, TokenEntry, TokenSet, token_digest


def test_every_figure_is_measured() -> None:
    assert len(authenticate.figures(sizes=(2, 4), rounds=1, calls=2)) == 5


def test_accepted_unknown_token_is_detected() -> None:
    tokens = TokenSet.of([TokenEntry(token_digest("x"), Principal("ana"))])
    with pytest.raises(AssertionError):
        authenticate.refusing(tokens, ["x"])()
