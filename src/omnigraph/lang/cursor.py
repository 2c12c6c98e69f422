"""Cursor over the tokens of a source: look ahead, take, expect.

The cursor is independent of grammar. `expect_…` raises a `Fault` with the expected and the actual token; parsers catch
it where they can continue.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from omnigraph.checkpoints import ITEMS_AT_ONCE, checkpoint
from omnigraph.lang.diagnostics import Fault
from omnigraph.lang.spans import Name, Source, Span
from omnigraph.lang.tokens import (
    BAD,
    DECIMAL,
    DIGITS,
    END,
    LOWER,
    STRING,
    UPPER,
    VAR,
    Comment,
    Token,
    describe,
    lex,
)

DEPTH_MAX = 64
"""Maximum nesting depth of blocks and calls; a deeper text is refused."""

_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}


class Cursor:
    """A position in the tokens of a source."""

    def __init__(self, source: Source) -> None:
        self.source = source
        _refuse_half_characters(source.text)
        lexed = lex(source.text)
        self._tokens = lexed.tokens
        self.comments: list[Comment] = lexed.comments
        self._index = 0
        self._depth = 0
        self.token = self._tokens[0]

    # -- lookahead -------------------------------------------------------------------------------

    @property
    def tokens(self) -> Sequence[Token]:
        """All tokens of the source."""
        return self._tokens

    def ahead(self, distance: int = 1) -> Token:
        """Return the token `distance` tokens ahead, or the end token."""
        index = self._index + distance
        return self._tokens[index] if index < len(self._tokens) else self._tokens[-1]

    def at(self, text: str) -> bool:
        """Return True if the next token is this punctuation or word."""
        return self.token.text == text

    def at_end(self) -> bool:
        """Return True at the end of the source."""
        return self.token.kind == END

    def starts_line(self) -> bool:
        """Return True if the next token is the first on its line."""
        if not self._index:
            return True
        return "\n" in self.source.text[self._tokens[self._index - 1].end : self.token.start]

    @property
    def here(self) -> Span:
        """Span of the next token."""
        return Span(self.token.start, self.token.end)

    @property
    def mark(self) -> int:
        """Start of the next token, for a later call of `since`."""
        return self.token.start

    def since(self, mark: int) -> Span:
        """Return the span from `mark` to the end of the last taken token."""
        return Span(mark, self._tokens[self._index - 1].end if self._index else mark)

    # -- taking ----------------------------------------------------------------------------------

    def take(self) -> Token:
        """Return the next token and advance; the end token is never passed."""
        token = self.token
        if token.kind != END:
            self._index += 1
            self.token = self._tokens[self._index]
            if self._index % ITEMS_AT_ONCE == 0:
                checkpoint()
        return token

    def accept(self, text: str) -> bool:
        """Take the next token if it is `text`, and return whether it was."""
        if self.token.text != text:
            return False
        self.take()
        return True

    def expect(self, text: str, why: str = "") -> Token:
        """Take exactly this punctuation or word."""
        if self.token.text != text:
            raise self.fault(f"'{text}'{why}")
        return self.take()

    def expect_lower(self, what: str) -> Token:
        """Take a name that begins with a lower-case letter or underscore."""
        if self.token.kind != LOWER:
            hint = None
            if self.token.kind == UPPER:
                lowered = self.token.text[0].lower() + self.token.text[1:]
                hint = f"{what} begins with a lower-case letter: '{lowered}'"
            raise self.fault(what, hint=hint)
        return self.take()

    def expect_upper(self, what: str) -> Token:
        """Take a name that begins with an upper-case letter."""
        if self.token.kind != UPPER:
            hint = None
            if self.token.kind == LOWER:
                raised = self.token.text[0].upper() + self.token.text[1:]
                hint = f"{what} begins with an upper-case letter: '{raised}'"
            raise self.fault(what, hint=hint)
        return self.take()

    def expect_variable(self, what: str) -> Token:
        """Take a `$variable`."""
        if self.token.kind != VAR:
            hint = (
                f"variables are written with a dollar sign: '${self.token.text}'" if self.token.kind == LOWER else None
            )
            raise self.fault(what, hint=hint)
        return self.take()

    def expect_digits(self, what: str) -> Token:
        """Take an unsigned integer."""
        if self.token.kind != DIGITS:
            raise self.fault(what)
        return self.take()

    def expect_string(self, what: str) -> str:
        """Take a string and return its value with escapes decoded."""
        if self.token.kind != STRING:
            raise self.fault(what)
        return decode_string(self.take())

    # -- errors ----------------------------------------------------------------------------------

    def fault(self, expected: str, *, hint: str | None = None) -> Fault:
        """Return a fault that states the expected and the actual token."""
        token = self.token
        span = self.here
        if token.kind == BAD and token.text[0] in '"/':
            return Fault(f"{describe(token)}", Span(token.start, token.start + (1 if token.text[0] == '"' else 2)))
        if token.kind == BAD and hint is None:
            hint = _about_bad_character(token.text)
        if token.kind in (LOWER, UPPER) and self._index and hint is None:
            before = self._tokens[self._index - 1]
            if before.kind in (DIGITS, DECIMAL) and before.end == token.start:
                hint = "numbers are written as digits, with an optional fraction"
        return Fault(f"expected {expected}, found {describe(token)}", span, hint=hint)

    def enter(self) -> None:
        """Enter one level of nesting; refuse a text that is deeper than `DEPTH_MAX`.

        Every `enter` is matched by a `leave`, except after a fault: `skip_past` resets the depth.
        """
        if self._depth >= DEPTH_MAX:
            raise Fault(f"nested more than {DEPTH_MAX} levels deep", self.here, hint="split it into simpler parts")
        self._depth += 1

    def leave(self) -> None:
        """Leave the level that `enter` entered."""
        self._depth -= 1

    def skip_past(self, found: Callable[[Cursor], bool]) -> None:
        """Advance until `found(self)` or the end, to resume after a fault."""
        self._depth = 0
        while self.token.kind != END and not found(self):
            self.take()


def name_of(token: Token) -> Name:
    """Return the tree node of a name token; a variable loses its dollar sign."""
    text = token.text[1:] if token.kind == VAR else token.text
    return Name(text, Span(token.start, token.end))


def _refuse_half_characters(text: str) -> None:
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Fault("unpaired surrogate: the text is not valid Unicode", Span(error.start, error.end)) from None


def decode_string(token: Token) -> str:
    """Return the value of a string token; an unknown escape is a fault at its position."""
    body = token.text[1:-1]
    if "\\" not in body:
        return body
    parts: list[str] = []
    position = 0
    while (slash := body.find("\\", position)) >= 0:
        parts.append(body[position:slash])
        escape = body[slash + 1]
        if escape not in _ESCAPES:
            at = token.start + 1 + slash
            raise Fault(
                f"unsupported escape '\\{escape}' in a string",
                Span(at, at + 2),
                hint='the escapes are \\" \\\\ \\n \\r \\t',
            )
        parts.append(_ESCAPES[escape])
        position = slash + 2
    parts.append(body[position:])
    return "".join(parts)


def _about_bad_character(text: str) -> str | None:
    if text.startswith("$"):
        return "a variable is '$' and a name that begins with a lower-case letter or underscore"
    if text[0] in "'`‘’“”":
        return "strings are written in double quotes"
    if text[0] in ";":
        return "nothing is needed between clauses: end the line"
    if any(c.isalpha() for c in text):
        return "names are written in the letters a to z, digits and underscores"
    return None
