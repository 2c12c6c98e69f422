from __future__ import annotations

import pytest

from omnigraph.lang.tokens import Token, describe, lex, visible


def kinds(text: str) -> list[tuple[str, str]]:
    return [(token.kind, token.text) for token in lex(text).tokens[:-1]]


KINDS = {
    "a": "lower",
    "_": "lower",
    "_x9": "lower",
    "camelCase_2": "lower",
    "node": "lower",
    "A": "upper",
    "TypeName_2": "upper",
    "$x": "var",
    "$_": "var",
    "$aB_1": "var",
    "0": "digits",
    "007": "digits",
    "1.5": "decimal",
    "00.00": "decimal",
    '""': "string",
    '"a // b"': "string",
    '"a\nb"': "string",
    r'"\""': "string",
    r'"\\"': "string",
    r'"\q"': "string",
    "->": "punct",
    "..": "punct",
    ">=": "punct",
    "<=": "punct",
    "!=": "punct",
    "@": "punct",
    "/": "punct",
}


@pytest.mark.parametrize(("text", "kind"), KINDS.items(), ids=KINDS)
def test_one_token(text: str, kind: str) -> None:
    assert kinds(text) == [(kind, text)]


LONGEST_MATCH = {
    "trueish": ["trueish"],
    "nodeA": ["nodeA"],
    "Node1": ["Node1"],
    "1a": ["1", "a"],
    "1_000": ["1", "_000"],
    "0..1": ["0", "..", "1"],
    "0.5..1.5": ["0.5", "..", "1.5"],
    "0...5": ["0", "..", ".", "5"],
    "1.": ["1", "."],
    ".5": [".", "5"],
    "1.2.3": ["1.2", ".", "3"],
    "-1": ["-", "1"],
    "1e5": ["1", "e5"],
    "a-b": ["a", "-", "b"],
    "a->b": ["a", "->", "b"],
    "a--b": ["a", "-", "-", "b"],
    "$x.p": ["$x", ".", "p"],
    "a<=b": ["a", "<=", "b"],
    "a<=>b": ["a", "<=", ">", "b"],
    "==": ["=", "="],
    "<e>": ["<", "e", ">"],
    "{1,3}": ["{", "1", ",", "3", "}"],
    '"a""b"': ['"a"', '"b"'],
}


@pytest.mark.parametrize(("text", "pieces"), LONGEST_MATCH.items(), ids=LONGEST_MATCH)
def test_longest_match(text: str, pieces: list[str]) -> None:
    assert [token.text for token in lex(text).tokens[:-1]] == pieces


BAD = {
    "a stray character": (";", [("bad", ";")]),
    "several at once": ("~~^", [("bad", "~~^")]),
    "a letter outside ASCII": ("é", [("bad", "é")]),
    "such a letter ends a name": ("aé", [("lower", "a"), ("bad", "é")]),
    "a digit outside ASCII": ("٣", [("bad", "٣")]),
    "a space outside ASCII": ("a\u00a0b", [("lower", "a"), ("bad", "\u00a0"), ("lower", "b")]),
    "vertical tab": ("a\vb", [("lower", "a"), ("bad", "\v"), ("lower", "b")]),
    "NUL": ("\x00", [("bad", "\x00")]),
    "byte order mark": ("\ufeffnode", [("bad", "\ufeff"), ("lower", "node")]),
    "dollar alone": ("$ x", [("bad", "$"), ("lower", "x")]),
    "dollar and a capital": ("$X", [("bad", "$X")]),
    "dollar and a digit": ("$1a", [("bad", "$1a")]),
    "a string never closed": ('a "b c', [("lower", "a"), ("bad", '"b c')]),
    "a string closed by an escaped quote": (r'"b\"', [("bad", r'"b\"')]),
    "a string ending in a backslash": ('"b\\', [("bad", '"b\\')]),
    "a comment never closed": ("a /* b\nc", [("lower", "a"), ("bad", "/* b\nc")]),
    "not a comment": ("/ /", [("punct", "/"), ("punct", "/")]),
    "exclamation mark": ("!", [("bad", "!")]),
}


@pytest.mark.parametrize(("text", "expected"), BAD.values(), ids=BAD)
def test_invalid_text_gives_a_bad_token(text: str, expected: list[tuple[str, str]]) -> None:
    assert kinds(text) == expected


@pytest.mark.parametrize("space", [" ", "\t", "\r", "\n", "\r\n", " \t\r\n "])
def test_spaces(space: str) -> None:
    tokens = lex(f"{space}a{space}b{space}").tokens
    assert [token.text for token in tokens] == ["a", "b", ""]
    assert tokens[0].start == len(space)


def test_offsets_are_characters() -> None:
    assert lex('é "é" x').tokens == [
        Token("bad", "é", 0, 1),
        Token("string", '"é"', 2, 5),
        Token("lower", "x", 6, 7),
        Token("end", "", 7, 7),
    ]


@pytest.mark.parametrize("text", ["", "  \n", "// only", "/* only */", "a b // c\n/* d */"])
def test_tokens_and_comments_and_spaces_are_the_whole_text(text: str) -> None:
    tokens, comments = lex(text)
    covered = sorted([*tokens, *comments], key=lambda piece: (piece.start, piece.end))
    assert "".join(text[piece.start : piece.end] for piece in covered) == "".join(piece.text for piece in covered)
    last = 0
    for piece in covered:
        assert text[last : piece.start].strip() == ""
        last = piece.end
    assert last == len(text)
    assert tokens[-1].kind == "end"


COMMENTS = {
    "to the end of the line": ("a // b\nc", ["// b"], ["a", "c"]),
    "to the end of the text": ("a // b", ["// b"], ["a"]),
    "empty": ("//\n/**/", ["//", "/**/"], []),
    "carriage return belongs to it": ("// b\r\nc", ["// b\r"], ["c"]),
    "between any two tokens": ("$x/*1*/./*2*/p", ["/*1*/", "/*2*/"], ["$x", ".", "p"]),
    "of several lines": ("/* a\n * b\n */ c", ["/* a\n * b\n */"], ["c"]),
    "not nested": ("/* a /* b */ c", ["/* a /* b */"], ["c"]),
    "stars": ("/***/ c", ["/***/"], ["c"]),
    "slash star slash is not closed": ("/*/ a */ b", ["/*/ a */"], ["b"]),
    "line comment hides a block": ("// /* a\nb", ["// /* a"], ["b"]),
    "block hides a line comment": ("/* // */ b", ["/* // */"], ["b"]),
    "not in a string": ('"// a" "/* b */"', [], ['"// a"', '"/* b */"']),
    "quotes in a comment": ('// "\na', ['// "'], ["a"]),
}


@pytest.mark.parametrize(("text", "comments", "tokens"), COMMENTS.values(), ids=COMMENTS)
def test_comments(text: str, comments: list[str], tokens: list[str]) -> None:
    lexed = lex(text)
    assert [comment.text for comment in lexed.comments] == comments
    assert [token.text for token in lexed.tokens[:-1]] == tokens
    for comment in lexed.comments:
        assert text[comment.start : comment.end] == comment.text


DESCRIBED = {
    "": "the end of the text",
    "name": "'name'",
    '"x"': "a string",
    '"x': "a string that is never closed",
    "/*": "a comment that is never closed",
    ";": "';'",
    "\x00": "'\\u0000'",
    "\u2028": "'\\u2028'",
    "a" * 40: f"'{'a' * 40}'",
    "a" * 41: f"'{'a' * 39}…'",
}


@pytest.mark.parametrize(("text", "words"), DESCRIBED.items(), ids=range(len(DESCRIBED)))
def test_describe(text: str, words: str) -> None:
    assert describe(lex(text).tokens[0]) == words


def test_visible() -> None:
    assert visible("plain é 🙂") == "plain é 🙂"
    assert visible("a\nb\x1b\u202e") == "a\\u000ab\\u001b\\u202e"
