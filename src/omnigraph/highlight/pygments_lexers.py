"""Lexers of Pygments for schemas and queries; they colour the tokens of the languages' own lexer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from pygments.lexer import Lexer
from pygments.token import Comment, Error, Keyword, Name, Number, Punctuation, String, Text, _TokenType

from omnigraph.highlight.words import WordClass, class_of
from omnigraph.lang.tokens import END, lex
from omnigraph.query.editor import Language

_TOKENS: dict[WordClass, Any] = {
    "keyword": Keyword,
    "constant": Keyword.Constant,
    "function": Name.Function,
    "scalar": Keyword.Type,
    "type": Name.Class,
    "annotation": Name.Decorator,
    "name": Name,
    "variable": Name.Variable,
    "number": Number,
    "string": String,
    "punctuation": Punctuation,
    "error": Error,
}


class _LanguageLexer(Lexer):  # type: ignore[misc]
    language: ClassVar[Language]

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, _TokenType, str]]:
        """Yield offset, kind and text of each token, comment and space."""
        tokens, comments = lex(text)
        items: list[tuple[int, int, Any]] = [(each.start, each.end, Comment) for each in comments]
        for at, token in enumerate(tokens):
            if token.kind == END:
                continue
            before = text[token.start - 1] if token.start else ""
            after = tokens[at + 1].text[:1] if at + 1 < len(tokens) else ""
            items.append((token.start, token.end, _TOKENS[class_of(token, before, after, self.language)]))
        done = 0
        for start, end, kind in sorted(items):
            if start > done:
                yield done, Text.Whitespace, text[done:start]
            yield start, kind, text[start:end]
            done = end
        if done < len(text):
            yield done, Text.Whitespace, text[done:]


class SchemaLexer(_LanguageLexer):
    """Schemas of OmniGraph (`.pg`)."""

    language = "pg"
    name = "OmniGraph schema"
    aliases: ClassVar[list[str]] = ["pg", "omnigraph-schema"]
    filenames: ClassVar[list[str]] = ["*.pg"]


class QueryLexer(_LanguageLexer):
    """Queries of OmniGraph (`.gq`)."""

    language = "gq"
    name = "OmniGraph query"
    aliases: ClassVar[list[str]] = ["gq", "omnigraph-query"]
    filenames: ClassVar[list[str]] = ["*.gq"]
