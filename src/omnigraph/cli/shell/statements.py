"""Recognises a complete query in what was typed."""

from __future__ import annotations

from omnigraph.lang.tokens import BAD, END, PUNCT, lex

_LATER = ("return", "order", "limit", "skip", "having")


def is_whole(text: str) -> bool:
    """Whether Enter may run it: every bracket closed, no string or comment left open, no part still to come.

    A bare `match` needs its `return`; an empty line ends anything that is closed.
    """
    stripped = text.strip()
    if not stripped or stripped.startswith(":"):
        return True
    tokens = lex(text).tokens
    depth = 0
    for token in tokens:
        if token.kind == BAD and token.text.startswith(('"', "/*")):
            return False
        if token.kind == PUNCT:
            depth += (token.text in "{([") - (token.text in "})]")
    if depth > 0:
        return False
    if text.endswith("\n"):
        return True
    words = [token.text for token in tokens if token.kind != END]
    return words[0] != "match" or "return" in words


def continues(line: str) -> bool:
    """Whether a line can only belong to the query before it."""
    return lex(line).tokens[0].text in _LATER
