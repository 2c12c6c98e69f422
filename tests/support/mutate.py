"""A seeded text mutator for both languages.

`mutant(texts, seed)` gives one damaged text; the same texts and seed always give the same one, so a failure is repeated
by its seed alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random

from omnigraph.lang.tokens import BAD, DECIMAL, DIGITS, END, PUNCT, STRING, UPPER, VAR, Token, lex

HUGE = 100_000
"""The maximum length of a literal or name."""
LONGEST = 150_000

_STRANGE = (
    "\x00", "\x1b", "\x7f", "\ufeff", "\u00a0", "\u2028", "\u200b", "\u202e", "\ud800", "\udfff", "é", "ß", "İ", "ſ",
    "🙂", "А", "а", "Е", "ο", "＄", "｛", "；", "“", "’", "٣", "²", "\r", "\n", "\t", "\v", "\f", "\\", '"', "'", "`",
    "$", "@", ";", "#", "~", "^", "&", "|", "/", "*", "//", "/*", "*/", "\\x", "\\u0041", "$$", "$A", "$1",
)  # fmt: skip
_LOOKALIKES = str.maketrans("aeopcxysiABEHKMOPTX0", "аеорсхуѕіАВЕНКМОРТХО")
_WORDS = (
    "node", "edge", "interface", "implements", "enum", "Vector", "query", "match", "return", "order", "limit", "not",
    "as", "asc", "desc", "insert", "update", "delete", "set", "where", "contains", "starts_with", "true", "false",
    "now()", "count", "search", "fuzzy", "match_text", "nearest", "bm25", "rrf", "date", "datetime", "uuid", "$_", "$x",
    "$x.p",
    "@key", "@unique", "@index", "@range", "@check", "@card", "@embed", "@description", "@rename_from", "..", "->", "<",
    ">", "=", "!=", "?", ":", ",", "(", ")", "[", "]", "{", "}", "{1,2}", "{0,}", "{}", "[]", "0", "1", "2.5", "0.0",
    "18446744073709551615", "18446744073709551616", "-1", '""', '"x"', '"2024-02-30"', 'date("2024-02-29")', "id",
    "src", "String", "Blob", "Bool", "I32", "U64", "F32", "Date", "DateTime", "T", "x", "_", "__nanograph_now",
)  # fmt: skip
_KEYWORDS = frozenset({
    "node", "edge", "interface", "implements", "enum", "Vector", "query", "match", "return", "order", "limit", "not",
    "as", "asc", "desc", "insert", "update", "delete", "set", "where", "contains", "starts_with", "date", "datetime",
    "now",
})  # fmt: skip
_TYPES = (
    "String", "Blob", "Bool", "I32", "U64", "F32", "F64", "Date", "DateTime", "Uuid", "[I32]", "[String]?", "Vector(3)",
    "Vector(0)", "enum(a, b)", "enum(a, a)", "Person", "Named", "Knows", "Nobody",
)  # fmt: skip
_VALUES = (
    "0", "1", "2.5", "18446744073709551615", "18446744073709551616", "true", "now()", "$x", '""', '" "', '"("', '"x"',
    '"base64:!"', "[]", "[1, 2, 3]", '[1, "x"]', "[[1]]", 'date("2024-02-29")', 'datetime("2024-02-29T10:00Z")',
)  # fmt: skip
_NAMES = (
    "a", "id", "src", "dst", "from", "to", "name", "age", "key", "not", "true", "_rowid", "knows", "owns", "count",
    "sum", "min", "search", "bm25", "vec", "photo", "tags", "mood",
)  # fmt: skip
_PIECES = (
    (re.compile(r"^ +\w+: [\w()]+\??", re.MULTILINE), (
        "@key", "@unique", "@index", "@embed", '@embed("bio")', '@embed("name", model="m")', '@embed("name", size=3)',
        "@description", '@description("x")', '@description(" ")', '@instruction("x")', '@rename_from("x")',
        "@rename_from", '@rename_from("x", y=1)', "@x(1, y=2)",
    )),
    (re.compile(r"^(node|edge|interface) .*\{", re.MULTILINE), (
        "@key(name)", "@key(age)", "@unique(name, age)", "@index(src)", "@unique(tags)", "@index(photo)",
        "@index(nope)", "@range(age, 1..0)", "@range(age, ..)", "@range(tags, 0..)", "@range(nope, 1..)",
        '@check(name, "(")', '@check(tags, "x")', '@check(age, "x")', "_rowid: I32", "id: String", "from: Date",
        "name: Bool", "e: [Blob]", "v: Vector(0)", "v: Vector(99999999999)",
    )),
    (re.compile(r"^edge .*-> \w+", re.MULTILINE), (
        "@card(2..1)", "@card(0..)", "@card(4294967296..)", '@description("x")', "@key", "@embed", "{ a: I32 @key }",
    )),
    (re.compile(r"(match|not) \{"), (
        "$p: Person", "$p: Nobody", "$a: Team { name: $p }", "$p knows{0,2} $q", "$p knows{2,1} $q", "$p knows{1,} $q",
        "$p <memberOf> $q", "$p $p:knows $q", "$p $e:knows{1,2} $q", "not { $z: Team }", "not { $p.age > 1 }",
        "search($p.age, 1)", "fuzzy($p.name, $x, true)", "$p.photo = 1", "$p.tags = $p.tags", "$p = $q", "$p.vec = [1]",
        '$p.name contains "x"', "$p.age starts_with 1", "$p.at = 1", "count($p) > 1", 'bm25($p.name, "x") > 1',
    )),
    (re.compile(r"return \{"), (
        "$p.photo", "count($p)", "sum($p.name)", "min($p)", "count(count($p))", "nearest($p.vec, [1])", "nope",
        "$p.nope", 'rrf(bm25($p.name, "x"), nearest($p.vec, "x"))', "null", "[1, true]", "now()",
        'search($p.name, "x")', "$e",
    )),
    (re.compile(r"return \{.*\}$", re.MULTILINE), (
        "limit 0", "order { nope }", "order { $p.name desc } limit 3", "order { nearest($p.vec, [1]) }",
        "order { $p.tags }", 'order { $p.name, bm25($p.bio, "x") }', "order { count($p) }", "order { 1 }",
    )),
    (re.compile(r"(insert|set) .*\{"), (
        "name: 1,", 'name: "x" name: "y",', "nope: 1,", "from: 1,", "age: $nope,", "photo: 1,", "vec: [1],",
        "email: now(),",
    )),
)  # fmt: skip
_OPENERS = ("not {", "[", "[[", "count(", "count(count(", "{", "(", "enum(", "@a(", "rrf(bm25(", "$x: T {", "node N {")


def mutant(texts: Sequence[str], seed: int | str) -> str:
    """One of `texts` with something wrong: half the time gently, so that it mostly still parses.

    However many things go wrong, it stays below `LONGEST` characters.
    """
    random = Random(seed)
    text = random.choice(texts)
    if random.random() < 0.5:
        for _ in range(random.randint(1, 3)):
            text = random.choice(GENTLE)(text, random, texts)
        return text
    for _ in range(random.choice((1, 1, 1, 2, 2, 3, 4))):
        text = random.choices(ROUGH, WEIGHTS)[0](text, random, texts)
    return text[:LONGEST]


# -- characters --------------------------------------------------------------------------------------


def flip_characters(text: str, random: Random, _: Sequence[str]) -> str:
    characters = list(text)
    for _ in range(random.randint(1, 5)):
        if characters:
            place = random.randrange(len(characters))
            new = random.choice(_STRANGE) if random.random() < 0.6 else chr(random.randrange(32, 127))
            characters[place : place + random.randint(0, 1)] = [new]
    return "".join(characters)


def flip_bits(text: str, random: Random, _: Sequence[str]) -> str:
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    for _ in range(random.randint(1, 4)):
        if data:
            data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    return bytes(data).decode("utf-8", random.choice(("replace", "surrogateescape")))


def look_alike(text: str, random: Random, _: Sequence[str]) -> str:
    start = random.randrange(len(text) + 1)
    end = start + random.randint(1, 30)
    return text[:start] + text[start:end].translate(_LOOKALIKES) + text[end:]


def cut(text: str, random: Random, _: Sequence[str]) -> str:
    place = random.randrange(len(text) + 1)
    return text[:place] if random.random() < 0.7 else text[place:]


def open_something(text: str, random: Random, _: Sequence[str]) -> str:
    """An unterminated string or comment."""
    place = random.randrange(len(text) + 1)
    return text[:place] + random.choice(('"', "/*", '"\\', "//", "*/", "\\")) + text[place:]


def other_line_ends(text: str, random: Random, _: Sequence[str]) -> str:
    end = random.choice(("\r\n", "\r", " ", "\n\n\n", "\u2028", "\v"))
    return random.choice(("", "\ufeff")) + text.replace("\n", end)


# -- tokens ------------------------------------------------------------------------------------------


def _pieces(text: str) -> list[str]:
    """The tokens of a text, each with the space before it."""
    pieces: list[str] = []
    last = 0
    for token in lex(text).tokens:
        pieces.append(text[last : token.end])
        last = token.end
    return pieces


def drop_tokens(text: str, random: Random, _: Sequence[str]) -> str:
    pieces = _pieces(text)
    place = random.randrange(len(pieces))
    del pieces[place : place + random.choice((1, 1, 1, 2, 5))]
    return "".join(pieces)


def repeat_tokens(text: str, random: Random, _: Sequence[str]) -> str:
    pieces = _pieces(text)
    place = random.randrange(len(pieces))
    run = pieces[place : place + random.randint(1, 20)]
    times = random.choice((1, 1, 1, 2, 3, 10)) if random.random() < 0.99 else 200
    return "".join(pieces[:place] + run * times + pieces[place:])


def swap_tokens(text: str, random: Random, _: Sequence[str]) -> str:
    pieces = _pieces(text)
    a = random.randrange(len(pieces))
    b = random.choice((random.randrange(len(pieces)), min(a + 1, len(pieces) - 1)))
    pieces[a], pieces[b] = pieces[b], pieces[a]
    return "".join(pieces)


def insert_word(text: str, random: Random, _: Sequence[str]) -> str:
    pieces = _pieces(text)
    place = random.randrange(len(pieces))
    pieces[place : place + random.randint(0, 1)] = [" ", random.choice(_WORDS), " "]
    return "".join(pieces)


def _names(text: str) -> list[Token]:
    """Tokens that can be exchanged without a syntax error: names, numbers and strings."""
    return [token for token in lex(text).tokens if token.kind not in (PUNCT, BAD, END) and token.text not in _KEYWORDS]


def swap_alike(text: str, random: Random, _: Sequence[str]) -> str:
    """Replace a token by another of the same kind."""
    tokens = _names(text)
    if not tokens:
        return text
    token = random.choice(tokens)
    return _put(text, token, random.choice([other.text for other in tokens if other.kind == token.kind]))


def swap_scalar(text: str, random: Random, _: Sequence[str]) -> str:
    """Change a type, a value or a name, to exercise the checker."""
    tokens = _names(text)
    if not tokens:
        return text
    token = random.choice(tokens)
    if token.kind == UPPER:
        new = random.choice(_TYPES)
    elif token.kind in (STRING, DIGITS, DECIMAL):
        new = random.choice(_VALUES)
    elif token.kind == VAR:
        new = random.choice(("$_", "$x", "$p", "$p.name", "$a.name"))
    else:
        new = random.choice(_NAMES)
    return _put(text, token, new)


def add_piece(text: str, random: Random, _: Sequence[str]) -> str:
    """Add an element to a property, a body, a match block or a result."""
    form, pieces = random.choice(_PIECES)
    places = [match.end() for match in form.finditer(text)]
    if not places:
        return text
    place = random.choice(places)
    return f"{text[:place]} {random.choice(pieces)} {text[place:]}"


def repeat_line(text: str, random: Random, _: Sequence[str]) -> str:
    lines = text.split("\n")
    lines.insert(random.randrange(len(lines) + 1), random.choice(lines))
    return "\n".join(lines)


def toggle_nullable(text: str, random: Random, _: Sequence[str]) -> str:
    tokens = [token for token in lex(text).tokens if token.text in ("?", "]") or token.kind == UPPER]
    if not tokens:
        return text
    token = random.choice(tokens)
    return _put(text, token, "" if token.text == "?" else token.text + "?")


def _put(text: str, token: Token, new: str) -> str:
    return text[: token.start] + new + text[token.end :]


# -- larger pieces -----------------------------------------------------------------------------------


def splice(text: str, random: Random, texts: Sequence[str]) -> str:
    """The beginning of one text and the end of another."""
    mine, other = _pieces(text), _pieces(random.choice(texts))
    return "".join(mine[: random.randrange(len(mine) + 1)] + other[random.randrange(len(other) + 1) :])


def swap_lines(text: str, random: Random, texts: Sequence[str]) -> str:
    lines = text.split("\n")
    place = random.randrange(len(lines))
    lines[place : place + random.randint(0, 2)] = random.sample(lines, min(len(lines), random.randint(0, 3)))
    return "\n".join(lines)


def nest(text: str, random: Random, _: Sequence[str]) -> str:
    pieces = _pieces(text)
    place = random.randrange(len(pieces))
    opener, depth = random.choice(_OPENERS), random.choice((2, 10, 63, 64, 65, 300))
    if random.random() < 0.02:
        depth = 10_000
    closers = "".join({"{": "}", "[": "]", "(": ")"}.get(c, "") for c in reversed(opener))
    closing = random.choice((closers * depth, closers * (depth - 1), ""))
    inside = pieces[place] if random.random() < 0.5 else ""
    return "".join(pieces[:place]) + opener * depth + inside + closing + "".join(pieces[place:])


def make_huge(text: str, random: Random, _: Sequence[str]) -> str:
    tokens = lex(text).tokens
    token = random.choice(tokens)
    size = random.choice((40, 300, 5_000)) if random.random() < 0.9 else HUGE
    digits = random.choice("0179") * size
    new = random.choice(
        (
            digits,
            digits + ".5",
            "0." + digits,
            f'"{"x" * size}"',
            "x" * size,
            "X" * size,
            "$" + "x" * size,
            f'"{digits}"',
        )
    )
    return _put(text, token, new)


Mutation = Callable[[str, Random, Sequence[str]], str]
GENTLE: tuple[Mutation, ...] = (
    swap_alike, swap_alike, swap_scalar, swap_scalar, add_piece, add_piece, repeat_line, toggle_nullable,
)  # fmt: skip
ROUGH: tuple[Mutation, ...] = (
    flip_characters, flip_bits, look_alike, cut, open_something, other_line_ends, drop_tokens, repeat_tokens,
    swap_tokens, insert_word, splice, swap_lines, nest, make_huge,
)  # fmt: skip
WEIGHTS = (8, 4, 2, 4, 4, 3, 10, 6, 8, 12, 6, 6, 4, 4)
