"""Splits typed text into inputs: queries, changes and commands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from omnigraph.lang.tokens import BAD, END, PUNCT, Token, lex
from omnigraph.query.syntax.parse_writes import BARE

_CLAUSES = ("with", "return", "order", "limit", "skip", "having")
_STARTS = ("query", *BARE)
_WITHIN = {"query": BARE, "atomic": tuple(word for word in BARE if word not in ("match", "atomic"))}
"""First word of a text → the words that start a line inside its braces."""
WORDS = {"help": "help", "?": "help", "\\?": "help", "\\h": "help", "exit": "quit", "quit": "quit", "\\q": "quit"}
"""Commands that need no colon."""


def is_word(text: str) -> bool:
    """True if an input is a command that needs no colon."""
    return text.strip().rstrip(";").lower() in WORDS


def is_complete(text: str) -> bool:
    """True if an input is complete: brackets, strings and comments are closed, and a bare `match` has its `return`.

    A blank line or a semicolon also ends a text whose brackets are closed. A command on the last line ends any text.
    """
    stripped = text.strip()
    if not stripped or _is_command(stripped.splitlines()[-1]):
        return True
    tokens = [token for token in lex(text).tokens if token.kind != END]
    if any(token.kind == BAD and token.text.startswith(('"', "/*")) for token in tokens):
        return False
    if _depth(tokens) > 0:
        return False
    return text.endswith("\n") or not tokens or not _awaits_return(tokens)


def inputs(lines: Iterable[str]) -> Iterator[str]:
    """Join lines to inputs.

    A line that cannot belong to the text before it starts a new input, so that a malformed input does not absorb the
    inputs after it: a command, or a line that starts with the first word of a statement where none can stand.
    """
    text = ""
    for line in lines:
        if text.strip() and _ends(text, line):
            yield text
            text = ""
        text += line
    if text.strip():
        yield text


def _ends(text: str, line: str) -> bool:
    """True if a line starts a new input."""
    if _is_command(text) or _is_command(line):
        return True
    if (is_complete(text.removesuffix("\n")) or is_word(text)) and not _continues(line):
        return True
    if _first(line) == "match" and (_awaits_match(lex(text).tokens) or _is_in_stages(lex(text).tokens)):
        return False
    return _starts_statement(line, _first(text))


def _is_command(text: str) -> bool:
    return text.lstrip().startswith(":")


def _first(text: str) -> str:
    return lex(text).tokens[0].text


def _continues(line: str) -> bool:
    """True if a line is a further clause of the query before it."""
    return _first(line) in _CLAUSES


def _starts_statement(line: str, before: str) -> bool:
    """True if a line can only start a new statement, given the first word of the text before it."""
    first, *more = lex(line).tokens
    if first.text not in _STARTS or (more and more[0].text in (":", ",", "}", "=")):
        return False
    return first.text not in _WITHIN.get(before, ())


def _depth(tokens: Sequence[Token]) -> int:
    return sum(_step(token) for token in tokens)


def _step(token: Token) -> int:
    return (token.text in "{([") - (token.text in "})]") if token.kind == PUNCT else 0


def _awaits_return(tokens: Sequence[Token]) -> bool:
    """True if a bare `match` ends with its block, with a stage, or with the word `return`; or awaits its block."""
    if _awaits_match(tokens):
        return True
    tokens = _match(tokens)
    if tokens[0].text != "match":
        return False
    if _is_in_stages(tokens):
        return True
    depth = 0
    for index, token in enumerate(tokens):
        depth += _step(token)
        if depth == 0 and token.text == "}":
            return [later.text for later in tokens[index + 1 :]] in ([], ["return"])
    return depth == 0


def _match(tokens: Sequence[Token]) -> Sequence[Token]:
    """Return a bare query from its `match` on, without a valid clause."""
    if tokens[0].text != "valid":
        return tokens
    return next((tokens[at:] for at, token in enumerate(tokens) if token.text == "match"), tokens)


def _awaits_match(tokens: Sequence[Token]) -> bool:
    """True if a text is a valid clause alone."""
    return tokens[0].text == "valid" and _match(tokens) is tokens


def _is_in_stages(tokens: Sequence[Token]) -> bool:
    """True if a bare `match` has a stage, `with { … }`, and no `return` block yet."""
    tokens = _match(tokens)
    if tokens[0].text != "match":
        return False
    depth = 0
    outer: list[str] = []
    for token in tokens:
        if depth == 0:
            outer.append(token.text)
        depth += _step(token)
    parts = [word for word, after in pairwise(outer) if after in ("{", "distinct")]
    return depth == 0 and "with" in parts and "return" not in parts
