"""Lexer of both languages: text → tokens.

One regular expression matches the longest token. No word is reserved. Comments are kept beside the tokens for the
formatters. A text that cannot be split into tokens (a stray character, an unterminated string) still gives a list: the
invalid part becomes a token of kind `bad` whose text describes it, and the parser reports it if it reaches it.

Constructs of only one language are not tokens: an enum value such as `in-progress` gives several adjacent tokens that
the schema parser joins.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple, cast

from omnigraph.checkpoints import paced

TokenKind = Literal["lower", "upper", "var", "digits", "decimal", "string", "punct", "bad", "end"]

LOWER: Final = "lower"
UPPER: Final = "upper"
VAR: Final = "var"
DIGITS: Final = "digits"
DECIMAL: Final = "decimal"
STRING: Final = "string"
PUNCT: Final = "punct"
BAD: Final = "bad"
END: Final = "end"


class Token(NamedTuple):
    """Token with its character offsets; a string token includes its quotes and escapes."""

    kind: TokenKind
    text: str
    start: int
    end: int


class Comment(NamedTuple):
    """Comment, including its delimiters."""

    text: str
    start: int
    end: int


class Lexed(NamedTuple):
    """All tokens of a text, ending with an `end` token, and the comments between them."""

    tokens: list[Token]
    comments: list[Comment]


_TOKEN = re.compile(
    r"""[ \t\r\n]*+(?:
      (?P<lower>   [a-z_]\w*+ )
    | (?P<punct>   -> | \.\. | >= | <= | != | [{}()\[\]:,.<>=@?*|+%-] | /(?![/*]) )
    | (?P<var>     \$[a-z_]\w*+ )
    | (?P<upper>   [A-Z]\w*+ )
    | (?P<string>  "[^"\\]*+(?:\\.[^"\\]*+)*+" )
    | (?P<decimal> \d++\.\d++ )
    | (?P<digits>  \d++ )
    | (?P<comment> //[^\n]*+ | /\*(?s:.*?)\*/ )
    | (?P<end>     \Z )
    | (?P<bad>     "(?s:.*+) | /\*(?s:.*+) | \$\w*+ | [^\s\w{}()\[\]:,.<>=@?*|+%/"$-]++ | . )
    )""",
    re.VERBOSE | re.ASCII | re.DOTALL,
)


def lex(text: str) -> Lexed:
    """Split `text` into tokens and comments."""
    tokens: list[Token] = []
    comments: list[Comment] = []
    push = tokens.append
    for match in paced(iter(_TOKEN.scanner(text).match, None)):  # type: ignore[attr-defined]
        kind = match.lastgroup
        start, end = match.span(kind)
        if kind == "comment":
            comments.append(Comment(match.group(kind), start, end))
            continue
        push(Token(cast(TokenKind, kind), match.group(kind), start, end))
        if kind == "end":
            break
    return Lexed(tokens, comments)


def describe(token: Token) -> str:
    """Return the name of a token for an error message."""
    if token.kind == END:
        return "the end of the text"
    if token.kind == STRING:
        return "a string"
    if token.kind == BAD:
        if token.text.startswith('"'):
            return "a string that is never closed"
        if token.text.startswith("/*"):
            return "a comment that is never closed"
    shown = token.text if len(token.text) <= 40 else token.text[:39] + "…"
    return f"'{visible(shown)}'"


def visible(text: str) -> str:
    """Return the text with invisible characters (control characters, line ends) as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
