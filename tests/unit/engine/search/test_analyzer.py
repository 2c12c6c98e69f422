"""Text analysis, and an inverted index compared with a scan of every text."""

from __future__ import annotations

import subprocess
import sys
import unicodedata
from importlib.util import find_spec
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.engine.search import analyzer
from omnigraph.engine.search.analyzer import all_within, analyse, within
from omnigraph.engine.search.inverted_index import build_index
from support.oracle.text import bm25, is_cjk, levenshtein, tokens
from support.random_reads.values import WORDS

ANALYSED = {
    "": [],
    "  ,.- _ ": [],
    "river": ["river"],
    "Rivers RIVER river's": ["river", "river", "river", "s"],
    "running runs ran": ["run", "run", "ran"],
    "under_score": ["under", "score"],
    "don't": ["don", "t"],
    "C3PO 42 4x4": ["c3po", "42", "4x4"],
    "The river and the SEA": ["river", "sea"],
    "being beings": [],  # they stem to "be", which is a stop word
    "nots": [],
    "Café CAFÉ cafe\u0301": ["cafe", "cafe", "cafe"],
    "naïve über Ångström": ["naiv", "uber", "angstrom"],
    "thé": ["the"],  # becomes a stop word only by folding, after stop words are dropped
    "x" * 40: ["x" * 40],
    "x" * 41: [],
    "é" * 20: ["e" * 20],
    "é" * 21: [],  # 21 letters, 42 bytes
    "a" + "É" * 20: [],
    "日本語 текст": ["日本", "本語", "текст"],
    "水": ["水"],
    "東京都 京都": ["東京", "京都", "京都"],
    "Python入門 第2版": ["python", "入門", "第", "2", "版"],
    "人々のコンピューター": ["人々", "々の", "のコ", "コン", "ンヒ", "ヒュ", "ュー", "ータ", "ター"],
    "ｶﾞｲﾄﾞ": ["カイ", "イト"],  # half-width letters; voicing marks are removed like accents
    "한국어": [unicodedata.normalize("NFKD", pair) for pair in ("한국", "국어")],
    "中" * 60: ["中中"] * 59,
    "one—two…three": ["one", "two", "three"],
    "\U0001f600smile\U0001f600": ["smile"],
}


@pytest.mark.parametrize(("text", "words"), ANALYSED.items(), ids=ascii)
def test_terms_of_a_text(text, words):
    assert analyse(text) == words
    assert analyse(text) == tokens(text)


def test_the_stemmer_is_that_of_the_package_and_other_languages_are_not_imported(monkeypatch):
    script = (
        "import sys; from omnigraph.engine.search import analyzer as a; "
        "print(sorted(name for name in sys.modules if name.endswith('_stemmer')), a.analyse('running rivers'))"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "['omnigraph_snowball.english_stemmer'] ['run', 'river']"
    monkeypatch.delitem(sys.modules, "omnigraph_snowball.english_stemmer")
    monkeypatch.setattr(analyzer, "find_spec", lambda name: object() if name == "Stemmer" else find_spec(name))
    assert analyzer._english_stemmer().stemWord("running") == "run"


STOP = (
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this "
    "to was will with"
)


def test_every_stop_word_is_dropped_and_no_other():
    words = STOP.split()
    assert len(words) == 33
    assert analyse(STOP.upper()) == []
    for other in ("he", "she", "we", "you", "have", "has", "from", "do", "who"):
        assert len(analyse(other)) == 1


def test_a_run_ends_where_letters_and_digits_end():
    """Checks every character that Python knows, because different libraries split stored texts and queries."""
    known = [chr(c) for c in range(sys.maxunicode + 1) if unicodedata.category(chr(c)) not in ("Cn", "Cs")]
    spaced = [f"q{character}q" for character in known]
    index = build_index(pa.array(spaced, pa.utf8()))
    cut = index.matching(["q"])
    for character, apart in zip(known, cut, strict=True):
        assert apart == (not character.isalnum() or is_cjk(character)), ascii(character)


def texts(random: Random, count: int) -> list[str | None]:
    return [
        None if random.random() < 0.15 else " ".join(random.choice(WORDS) for _ in range(random.randrange(7)))
        for _ in range(count)
    ]


@pytest.mark.parametrize("seed", range(20))
def test_the_index_equals_a_scan(seed):
    random = Random(seed)
    column = texts(random, random.choice((0, 1, 5, 40)))
    index = build_index(pa.array(column, pa.utf8()))
    corpus = {str(row): tokens(text) for row, text in enumerate(column) if text is not None}
    for _ in range(10):
        query = " ".join(random.choice(WORDS) for _ in range(random.randrange(5)))
        words = analyse(query)
        expected = [not set(words).isdisjoint(tokens(text)) for text in column]
        assert index.matching(words).tolist() == expected
        every = [bool(words) and set(words) <= set(tokens(text)) for text in column]
        assert index.holding_all(words).tolist() == every
        edits = random.randrange(4)
        near = [any(levenshtein(a, b) <= edits for a in tokens(text) for b in words) for text in column]
        assert index.fuzzy(words, edits).tolist() == near
        scores = [bm25(corpus, str(row), query) for row in range(len(column))]
        assert index.bm25(words) == pytest.approx(scores, rel=1e-12)
        assert (index.bm25(words) > 0).tolist() == expected


def test_bm25_score_computed_by_hand():
    index = build_index(pa.array(["red red blue", "red", None, "green blue", ""]))
    # Four texts with 6 terms, 1.5 on average; "red" is in two of them.
    idf = np.log(1 + (4 - 2 + 0.5) / (2 + 0.5))
    norm = [1.2 * (0.25 + 0.75 * length / 1.5) for length in (3, 1)]
    expected = [idf * 2 * 2.2 / (2 + norm[0]), idf * 2.2 / (1 + norm[1]), 0, 0, 0]
    assert index.bm25(["red"]) == pytest.approx(expected, rel=1e-15)
    assert index.bm25(["red", "red"]).tolist() == index.bm25(["red"]).tolist(), "a repeated query word counts once"
    assert not index.bm25(["yellow"]).any()
    assert not index.bm25([]).any()


def test_index_of_a_column_without_words():
    for column in ([], [None, None], ["", "the", "!!"]):
        index = build_index(pa.array(column, pa.utf8()))
        assert not index.matching(["river"]).any()
        assert not index.fuzzy(["river"], 9).any()
        assert not index.bm25(["river"]).any()


def test_index_of_a_sliced_column():
    column = pa.array(["one", "two", None, "three", "two"])
    assert build_index(column.slice(1, 3)).matching(["two"]).tolist() == [True, False, False]


@pytest.mark.parametrize("seed", range(200))
def test_within_equals_the_levenshtein_distance(seed):
    random = Random(seed)
    a, b = ("".join(random.choice("abé") for _ in range(random.randrange(8))) for _ in range(2))
    for edits in range(9):
        assert within(a, b, edits) == (levenshtein(a, b) <= edits)


@pytest.mark.parametrize("seed", range(10))
def test_all_within_equals_within(seed):
    random = Random(seed)
    words = ["".join(random.choice("abé日\U0001f600") for _ in range(random.randrange(12))) for _ in range(200)]
    for word in (*random.sample(words, 5), "", "abé", "x" * 40):
        for edits in (0, 1, 2, 5, 40):
            assert all_within(words, word, edits).tolist() == [within(known, word, edits) for known in words]


def test_an_index_keeps_the_places_of_some_terms_only():
    words = [f"w{number}" for number in range(3_000)]
    index = build_index(pa.array(words))
    for _ in range(2):
        for row in range(0, 3_000, 2):
            assert np.flatnonzero(index.matching([words[row]])).tolist() == [row]
            assert index.best([words[row]], 1)[0].tolist() == [row]
    assert not index.matching(["absent"]).any()
    (part,) = index.view.bodies
    assert 0 < len(index._found) <= 1_024
    assert 0 < len(part._counts) <= 1_024
