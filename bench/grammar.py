"""The query language as a Lark grammar: the peer of the benchmarks and an oracle in the tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lark import Lark, Token


class LongestMatch:
    """Lets every parser state read a whole name, so that `trueish` does not lex as `true` and a rest."""

    always_accept = ("IDENT", "TYPENAME")

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        return stream


def lark_parser() -> Lark:
    grammar = Path(__file__).with_name("query.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer="contextual", postlex=LongestMatch(), maybe_placeholders=False)
