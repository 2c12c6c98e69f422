"""The lexers of Pygments and the TextMate grammars colour every example as the languages' own lexer reads it."""

from __future__ import annotations

import json
import os
import re
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.token import Comment, Error, Token

from omnigraph.highlight.pygments_lexers import _TOKENS, QueryLexer, SchemaLexer
from omnigraph.highlight.textmate import SCOPES, grammar
from omnigraph.highlight.words import class_of
from omnigraph.lang.tokens import END, lex

ROOT = Path(__file__).parents[3]
LEXERS = {"pg": SchemaLexer, "gq": QueryLexer}
FILES = [
    path
    for folder in ("examples", "src/omnigraph/demo", "tests/cases")
    for language in LEXERS
    for path in sorted((ROOT / folder).rglob(f"*.{language}"))
]


def classes(text: str, language: Any) -> dict[int, tuple[str, str]]:
    """Offset → text and class of each token, by the own lexer."""
    tokens = lex(text).tokens
    found = {}
    for at, token in enumerate(tokens):
        if token.kind != END:
            before = text[token.start - 1] if token.start else ""
            found[token.start] = token.text, class_of(token, before, tokens[at + 1].text[:1], language)
    return found


def is_valid(path: Path) -> bool:
    return all(token.kind != "bad" for token in lex(path.read_text(encoding="utf-8")).tokens)


def test_there_are_examples() -> None:
    assert len([path for path in FILES if is_valid(path)]) > 8


@pytest.mark.parametrize("path", [path for path in FILES if is_valid(path)], ids=lambda path: path.name)
def test_pygments(path: Path) -> None:
    text, language = path.read_text(encoding="utf-8"), path.suffix[1:]
    lexer = LEXERS[language]()
    tokens = list(lexer.get_tokens_unprocessed(text))
    assert "".join(part for _, _, part in tokens) == text
    assert not [part for _, kind, part in tokens if kind is Error]
    coloured = {at: (part, kind) for at, kind, part in tokens if kind not in (Token.Text.Whitespace, Comment)}
    assert coloured == {at: (part, _TOKENS[kind]) for at, (part, kind) in classes(text, language).items()}
    assert 'class="err"' not in highlight(text, lexer, HtmlFormatter())


@pytest.mark.parametrize("language", ["pg", "gq"])
def test_grammars_are_current(language: Any) -> None:
    path = ROOT / "editors" / "vscode" / "syntaxes" / f"{language}.tmLanguage.json"
    text = json.dumps(grammar(language), indent=2, ensure_ascii=False) + "\n"
    if os.environ.get("OMNIGRAPH_UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


def scopes(text: str, language: Any) -> dict[int, tuple[str, str]]:
    """Offset → text and scope, by the grammar, as an editor applies it: line by line, the first match wins."""
    rules = [(each, re.compile(each.get("match", each.get("begin")))) for each in grammar(language)["patterns"]]
    found: dict[int, tuple[str, str]] = {}
    start, block = 0, False
    for line in text.splitlines(keepends=True):
        at = 0
        while at < len(line):
            if block:
                end = line.find("*/", at)
                block, at = end < 0, len(line) if end < 0 else end + 2
                continue
            matches = [(match.start(), number, match) for number, (_, pattern) in enumerate(rules)
                       if (match := pattern.search(line.rstrip("\n"), at))]  # fmt: skip
            if not matches:
                break
            _, number, match = min(matches, key=lambda each: each[:2])
            rule = rules[number][0]
            if "begin" in rule:
                block = True
            elif not rule["name"].startswith("comment"):
                found[start + match.start()] = match[0], rule["name"].removesuffix(f".{language}")
            at = max(match.end(), at + 1)
        start += len(line)
    return found


@pytest.mark.parametrize("path", [path for path in FILES if is_valid(path)], ids=lambda path: path.name)
def test_textmate(path: Path) -> None:
    text, language = path.read_text(encoding="utf-8"), path.suffix[1:]
    expected = {at: (part, SCOPES[kind]) for at, (part, kind) in classes(text, language).items() if "\n" not in part}
    found = scopes(text, language)
    assert {at: found.get(at) for at in expected} == expected


def test_broken_texts_have_error_tokens() -> None:
    assert Error in [kind for _, kind, _ in QueryLexer().get_tokens_unprocessed('query q() { "open')]
    assert "".join(part for _, _, part in QueryLexer().get_tokens_unprocessed("$ ; \x00 #")) == "$ ; \x00 #"


def test_entry_points_and_extension() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for target in project["entry-points"]["pygments.lexers"].values():
        module, _, name = target.partition(":")
        assert getattr(import_module(module), name) in LEXERS.values()
    extension = ROOT / "editors" / "vscode"
    package = json.loads((extension / "package.json").read_text())
    contributed = package["contributes"]
    named = [each["path"] for key in ("grammars", "snippets") for each in contributed[key]]
    for path in [*named, package["main"], contributed["languages"][0]["configuration"]]:
        assert (extension / path).is_file(), path
    for path in [*named, contributed["languages"][0]["configuration"]]:
        json.loads((extension / path).read_text())
