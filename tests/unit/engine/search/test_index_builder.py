"""The inverted index equals a straightforward implementation, however its build is divided."""

from __future__ import annotations

import math
import string
from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import snowballstemmer

from omnigraph.engine import kernels
from omnigraph.engine.cache import disk_cache
from omnigraph.engine.cache.segments import SegmentView
from omnigraph.engine.exec.cancellation import Cancellation, Watch, watching
from omnigraph.engine.search.analyzer import analyse, analyse_word
from omnigraph.engine.search.index_builder import GUIDED, index_arrays, write_index
from omnigraph.engine.search.inverted_index import InvertedIndex, TextIndex, build_inverted_index
from omnigraph.errors import Cancelled

PIECES = [
    *("river", "Rivers", "RIVER", "sea", "the", "running", "x" * 40, "x" * 41, "C3PO", "42", "under_score", "a"),
    *(
        "Café",
        "naïve",
        "don\u2019t",
        "one\u2014two",
        "日本語",
        "Python入門",
        "ｶﾞｲﾄﾞ",
        "\U0001f600smile",
        "é" * 21,
        "текст",
    ),
]
GAPS = [" ", "  ", ", ", ".", "-", "\n", "\u2026", "'", "\0"]
K1, B = 1.2, 0.75


def random_texts(random: Random, count: int, *, plain: bool = False) -> list[str | None]:
    pieces = [piece for piece in PIECES if piece.isascii()] if plain else PIECES
    found: list[str | None] = []
    for _ in range(count):
        words = [random.choice(pieces) if random.random() < 0.8 else str(random.random()) for _ in range(9)]
        words = words[: random.randrange(10)]
        found.append(None if random.random() < 0.1 else "".join(word + random.choice(GAPS) for word in words))
    return found


def chunks_of(texts: list[str | None], random: Random, kind: pa.DataType) -> list[pa.Array]:
    column = pa.array(texts, kind)
    cuts = sorted(random.sample(range(len(texts) + 1), min(4, len(texts) + 1)))
    return [column.slice(a, b - a) for a, b in zip([0, *cuts], [*cuts, len(texts)], strict=True)]


def postings_of(index: InvertedIndex) -> dict[str, dict[int, int]]:
    found: dict[str, dict[int, int]] = {}
    for term in index.terms.to_pylist():
        place = index.find(term)
        assert place is not None
        rows, counts = index.postings(place)
        assert len(rows) == index.count(place)
        found[term] = dict(zip(rows.tolist(), counts.tolist(), strict=True))
    return found


def expected_postings(texts: list[str | None]) -> dict[str, dict[int, int]]:
    found: dict[str, dict[int, int]] = {}
    for row, text in enumerate(texts):
        for term, count in Counter(analyse(text or "")).items():
            found.setdefault(term, {})[row] = count
    return dict(sorted(found.items()))


DIVIDED = {"postings_chunk_bytes": 500, "postings_partial_bytes": 3_000, "postings_merge_terms": 20}
SMALL = {**DIVIDED, "postings_merge_words": 10, "postings_runs_max": 30}


@pytest.mark.parametrize("seed", range(8))
def test_the_index_equals_a_straightforward_one(kernel_loader, tune, tmp_path, seed):
    random = Random(seed)
    texts = random_texts(random, random.choice((0, 1, 30, 400)), plain=seed % 2 == 0)
    expected = expected_postings(texts)
    kind = random.choice((pa.utf8(), pa.large_utf8()))
    for number, constants in enumerate(({}, DIVIDED, SMALL)):
        tune(**constants)
        chunks = chunks_of(texts, random, kind)
        made: list[dict[str, Any]] = []
        for compiled in (False, True):
            with kernels.isolated():
                assert not compiled or kernels.load()
                made += [index_arrays(chunks), written(chunks, tmp_path / f"{number}{compiled}")]
        index = InvertedIndex(**made[0])
        assert postings_of(index) == expected
        assert list(postings_of(index)) == list(expected), "ascending"
        assert index.lengths.tolist() == [0 if text is None else len(analyse(text)) + 1 for text in texts]
        described = [{name: (array.dtype, array.tolist()) for name, array in arrays.items()} for arrays in made]
        assert described == [described[0]] * 4, "the same bits with and without kernels, in memory and on disk"


def written(chunks: list[pa.Array], folder: Path) -> dict[str, Any]:
    with disk_cache.writing_entry(folder, ("text",), {}) as writer:
        write_index(chunks, writer)
    entry = disk_cache.load(folder, ("text",), lambda entry: entry, discard=False)
    assert entry is not None
    (path,) = folder.iterdir()
    assert {file.name for file in path.iterdir()} == {"about.json", *entry.arrays}, "no intermediate files"
    arrays = dict(entry.arrays)
    letters, ends = arrays.pop("guide_letters").tobytes(), arrays.pop("guide_ends").tolist()
    terms = InvertedIndex(**arrays).terms.to_pylist()
    assert [letters[start:end].decode() for start, end in pairwise(ends)] == terms[::GUIDED]
    return arrays


def straightforward_scores(texts: dict[int, str | None], words: list[str], rows: int) -> list[float]:
    """The scores by the definition, in 64-bit floats, term by term."""
    terms = {row: analyse(text) for row, text in texts.items() if text is not None}
    mean = sum(map(len, terms.values())) / len(terms) if terms else 0.0
    scores = [0.0] * rows
    for word in dict.fromkeys(words):
        held = {row: found.count(word) for row, found in terms.items() if word in found}
        weight = math.log(1 + (len(terms) - len(held) + 0.5) / (len(held) + 0.5)) * (K1 + 1)
        for row, count in held.items():
            norm = K1 * (1 - B + B * len(terms[row]) / (mean or 1.0))
            scores[row] += weight * count / (count + norm)
    return scores


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_scores_of_segments_with_deleted_rows_have_the_bits_of_the_definition(kernel_loader, tune, compiled, seed):
    assert not compiled or kernels.load()
    random = Random(seed)
    parts = [random_texts(random, random.randrange(1, 120)) for _ in range(random.randrange(1, 4))]
    texts = [text for part in parts for text in part]
    bodies = tuple(build_inverted_index([pa.array(part, pa.utf8())]) for part in parts)
    starts = tuple(int(start) for start in np.cumsum([0, *map(len, parts[:-1])]))
    order = list(range(len(texts)))
    view = SegmentView(bodies, starts)
    if seed % 3:
        order = random.sample(order, random.randrange(len(order) + 1))
        stored_of = np.array(order, np.int32)
        row_of = np.full(len(texts), -1, np.int32)
        row_of[stored_of] = np.arange(len(order), dtype=np.int32)
        view = SegmentView(bodies, starts, stored_of, row_of)
    live = {row: texts[stored] for row, stored in enumerate(order)}
    index = TextIndex(view)
    for _ in range(8):
        words = analyse(" ".join(random.choices(PIECES, k=random.randrange(5))))
        expected = straightforward_scores(live, words, len(order))
        for share in (0, 1_000_000):
            tune(postings_dense_share=share)
            scored = index.scored(words)
            assert (scored.dense is not None) == (share == 0)
            assert scored.whole().tolist() == expected
            assert scored.rows.tolist() == [row for row, score in enumerate(expected) if score]
            some = np.array(random.choices(range(len(order)), k=20) if order else [], np.int64)
            assert scored.of(some).tolist() == [expected[row] for row in some.tolist()]
            for wanted in (0, 1, 5, 1_000):
                least = sorted(expected, reverse=True)[:wanted][-1:] or [1.0]
                best = [(row, score) for row, score in enumerate(expected) if wanted and score and score >= least[0]]
                rows, values = scored.best(wanted)
                assert list(zip(rows.tolist(), values.tolist(), strict=True)) == best


@pytest.mark.parametrize("first_share", [0, 1 / 8, 2])
@pytest.mark.parametrize("seed", range(6))
def test_the_best_rows_are_those_of_all_scores(kernel_loader, tune, monkeypatch, seed, first_share):
    """With and without the rows that pruning leaves out, over segments whose rows moved or were deleted."""
    assert kernels.load()
    tune(pruned_postings_min=0, pruned_rows_share=2, pruned_first_share=first_share)
    random = np.random.default_rng(seed)
    words = np.array([f"w{at}" for at in range(400)])
    share = 1 / np.arange(1, 401) ** 1.2
    share /= share.sum()
    texts = [" ".join(random.choice(words, random.integers(1, 60), p=share)) for _ in range(6_000)]
    bodies = tuple(build_inverted_index([pa.array(some)]) for some in (texts[:3_500], texts[3_500:]))
    view = SegmentView(bodies, (0, 3_500))
    if seed % 2:
        stored_of = random.permutation(6_000)[:5_000].astype(np.int32)
        row_of = np.full(6_000, -1, np.int32)
        row_of[stored_of] = np.arange(5_000, dtype=np.int32)
        view = SegmentView(bodies, (0, 3_500), stored_of, row_of)
    index = TextIndex(view)
    pruned: list[int] = []
    add_to = TextIndex._add_to

    def counting(self: TextIndex, loops: Any, rows: Any, *more: Any) -> None:
        pruned.append(len(rows))
        add_to(self, loops, rows, *more)

    searches: list[int] = []
    search, add = TextIndex._pruned, TextIndex._add

    def starting(self: TextIndex, *given: Any) -> Any:
        searches.append(0)
        return search(self, *given)

    def adding(self: TextIndex, *given: Any) -> int:
        searches[-1:] = [searches[-1] + 1] if searches else []
        return add(self, *given)

    monkeypatch.setattr(TextIndex, "_add_to", counting)
    monkeypatch.setattr(TextIndex, "_pruned", starting)
    monkeypatch.setattr(TextIndex, "_add", adding)
    for at in range(60):
        chosen = words[random.integers(0, (5, 40, 400)[at % 3], random.integers(1, 5))].tolist()
        for wanted in (1, 10, 300):
            rows, scores = index.best(chosen, wanted)
            added = searches[-1:]
            expected = index.scored(chosen).best(wanted)
            searches[-1:] = added
            assert rows.tolist() == expected[0].tolist()
            assert scores.tolist() == expected[1].tolist()
    assert min(pruned) < 50
    # Without an array of all rows if the rows of the rarest term suffice.
    assert (0 in searches) == (first_share > 0)
    assert any(searches)


def test_long_texts_have_long_lengths():
    index = build_inverted_index([pa.array(["sea " * 70_000, "sea", None])])
    assert (index.lengths.dtype, index.lengths.tolist()) == (np.uint32, [70_001, 2, 0])
    assert postings_of(index) == {"sea": {0: 70_000, 1: 1}}


def test_a_text_of_many_runs_fits_the_run_table(kernel_loader):
    assert kernels.load()
    words = [f"w{at}q" for at in range(100_000)]
    index = build_inverted_index([pa.array(["first", " ".join(words)])])
    assert len(index.terms) == len(words) + 1
    assert postings_of(index)["w77777q"] == {1: 1}


def test_a_build_is_cancellable(tune):
    tune(**DIVIDED)
    cancellation = Cancellation()
    seen = 0

    def texts() -> Any:
        nonlocal seen
        for _ in range(50):
            seen += 1
            if seen == 10:
                cancellation.cancel()
            yield pa.array(["river " * 100])

    with watching(Watch(cancellation=cancellation)), pytest.raises(Cancelled):
        index_arrays(texts())
    assert seen < 15


def test_words_with_some_ends_are_not_changed_by_the_stemmer():
    """The analyzer does not call the stemmer for them."""
    stemmer = snowballstemmer.stemmer("english")
    random = Random(1)
    suffixes = ["", "ing", "ed", "ly", "s", "ation", "ness", "y", "ie", "e", "ll", "bb", "yy", "ement", "gener", "ful"]
    for end in string.ascii_lowercase + string.digits:
        same = True
        for _ in range(300):
            stem = "".join(random.choices("aeiouybcdlmnrstxé1", k=random.randrange(6)))
            word = stem + random.choice(suffixes) + end
            same = same and stemmer.stemWord(word) == word
            expected = stemmer.stemWord(word)
            if len(word.encode()) <= 40 and expected.isascii() and analyse_word(word) is not None:
                assert analyse_word(word) == expected
        assert same or end in "sdgylirnmet", end
