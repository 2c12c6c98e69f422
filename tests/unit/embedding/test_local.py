"""The local provider: deterministic, similar vectors for similar texts, and a model name that identifies it."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.embedding.client import EmbeddingClient
from omnigraph.embedding.config import find_config
from omnigraph.embedding.local import HASHED_MODEL, LocalVectors, choose_model
from omnigraph.errors import EmbeddingError

LOCAL = {"OMNIGRAPH_EMBED_PROVIDER": "local"}

# Each group is about one thing; nothing is shared between groups but small words.
GROUPS = [
    ["The cat sat on the mat", "A cat is sitting on a mat", "Cats sat on mats"],
    ["Stock prices fell sharply", "A sharp fall of stock prices", "The price of the stock is falling"],
    ["Baking an apple pie", "Recipe for apple pies", "How to bake pies of apples"],
    ["Photons can be entangled", "Quantum entanglement of photons", "An entangled photon"],
    ["Merging a branch", "How branches are merged", "Branches and how to merge them"],
    ["Datenbank für Graphen", "Eine Graphdatenbank", "Graphen in Datenbanken"],
    ["東京都の天気予報", "東京の天気", "天気予報と東京"],
]


def bits(vector):
    return " ".join(struct.pack(">f", component).hex() for component in vector)


def hashed(texts, dim=256):
    return LocalVectors(HASHED_MODEL).embed(texts, dim)


def test_the_client_needs_no_key_and_names_its_model():
    client = EmbeddingClient(find_config(LOCAL))
    assert client.model == HASHED_MODEL == "local-hashed-ngrams-v1"
    vectors = client.embed(["one text", "another text"], 32)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert (vectors == client.embed(["one text", "another text"], 32, "query")).all()


@pytest.mark.parametrize("dim", [128, 384, 1_536])
def test_texts_of_one_group_are_nearest(dim):
    texts = [text for group in GROUPS for text in group]
    group_of = [number for number, group in enumerate(GROUPS) for _ in group]
    vectors = hashed(texts, dim)
    likeness = vectors @ vectors.T
    np.fill_diagonal(likeness, -1)
    nearest = likeness.argmax(axis=1)
    assert [group_of[place] for place in nearest] == group_of
    same = np.equal.outer(group_of, group_of) & ~np.eye(len(texts), dtype=bool)
    assert likeness[same].mean() > likeness[~same].mean() + 0.2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Naïve Café", "naive cafe"),
        ("GRAPH", "graph"),
        ("Straße", "STRASSE"),
        ("graph, database!", "graph database"),
        ("ﬁle ①", "file 1"),
        ("snake_case name", "snake case name"),
        ("two words", "words two"),
    ],
)
def test_case_and_accents_are_ignored(one, other):
    assert np.dot(*hashed([one, other])) > 0.999_99


@pytest.mark.parametrize(("one", "other"), [("colour", "color"), ("databse", "database"), ("running", "runner")])
def test_similar_words_have_similar_vectors(one, other):
    vectors = hashed([one, other, "elephant"], 8_192)
    assert vectors[0] @ vectors[1] > 0.2
    assert abs(vectors[0] @ vectors[2]) < 0.15


FROZEN = [
    "3e8401e5 3ee35134 3da10dbc 3f215042 3ed0f7ea bed0f7ea",
    "bf3504f3 00000000 00000000 00000000 00000000 3f3504f3",
    "be47d207 bde6bb95 3de6bb95 3f5f0132 bed746ce 3cf74c71",
]


def test_vectors_of_this_version_never_change():
    vectors = hashed(["graph database", "", "東京"], 6)
    assert [bits(vector) for vector in vectors] == FROZEN


def test_other_processes_compute_the_same_vectors():
    script = textwrap.dedent(
        """
        import sys
        from omnigraph.embedding.local import HASHED_MODEL, LocalVectors
        texts = [text for text in sys.stdin.buffer.read().decode().split("\\0")]
        sys.stdout.write(LocalVectors(HASHED_MODEL).embed(texts, 48).tobytes().hex())
        """
    )
    texts = [text for group in GROUPS for text in group]
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", script],
            input="\0".join(texts).encode(),
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        )
        assert done.stdout.decode() == hashed(texts, 48).tobytes().hex()


@settings(max_examples=40)
@given(st.lists(st.text(max_size=30), min_size=1, max_size=12), st.sampled_from([1, 2, 3, 8, 100]))
def test_a_vector_does_not_depend_on_the_batch(texts, dim):
    together = hashed(texts, dim)
    assert np.isfinite(together).all()
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    for text, vector in zip(texts, together, strict=True):
        assert bits(hashed([text], dim)[0]) == bits(vector)


def test_texts_are_processed_in_blocks(monkeypatch):
    texts = [f"{text} {number}" for group in GROUPS for text in group for number in range(5)]
    whole = hashed(texts, 16)
    monkeypatch.setattr("omnigraph.embedding.local._BLOCK_WORDS", 7)
    assert (hashed(texts, 16) == whole).all()
    monkeypatch.setattr("omnigraph.embedding.local._BLOCK_NUMBERS", 48)
    assert (hashed(texts, 16) == whole).all()


@pytest.mark.parametrize("text", ["", " ", "!?", "—", "a", "\x00", "x" * 100_000, "नमस्ते दुनिया", "🙂"])
def test_every_text_has_a_vector(text):
    for dim in (1, 2, 64):
        assert np.isclose(np.linalg.norm(hashed([text], dim)), 1)


# -- word vectors of an installed package ------------------------------------------------------------


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a package that ships word vectors, the way pip would leave it."""

    def install(name, module, source):
        (tmp_path / f"{module}.py").write_text(textwrap.dedent(source))
        info = tmp_path / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[omnigraph.word_vectors]\n{name} = {module}:vectors\n")
        monkeypatch.syspath_prepend(tmp_path)

    yield install
    for module in [name for name in sys.modules if name.startswith("ogtest_")]:
        del sys.modules[module]


TINY = """
    import numpy

    calls = []

    def vectors():
        calls.append(1)
        words = ["Car", "automobile", "vehicle", "banana", "fruit", "café", "nothing", "car"]
        rows = [[1, .1, 0, 0], [.9, .2, 0, 0], [.8, .3, .1, 0], [0, 0, 1, .2], [0, .1, .9, .3], [0, 0, 0, 2],
                [0, 0, 0, 0], [0, 0, 0, 1]]
        return words, numpy.array(rows)
"""


def test_word_vectors_are_found_and_named(install):
    install("tiny-v2", "ogtest_tiny", TINY)
    assert choose_model(None) == "local-words-tiny-v2-v1"
    assert choose_model(HASHED_MODEL) == HASHED_MODEL
    assert find_config(LOCAL).model == "local-words-tiny-v2-v1"
    assert find_config(LOCAL | {"OMNIGRAPH_EMBED_MODEL": HASHED_MODEL}).model == HASHED_MODEL
    assert "ogtest_tiny" not in sys.modules


@pytest.mark.parametrize("dim", [4, 3, 64])
def test_words_of_similar_meaning_have_similar_vectors(install, dim):
    install("tiny", "ogtest_tiny", TINY)
    client = EmbeddingClient(find_config(LOCAL))
    car, automobile, banana, fruit = client.embed(["The CAR", "the automobile", "the banana", "the fruit"], dim)
    assert car @ automobile > max(car @ banana, car @ fruit) + 0.3
    assert banana @ fruit > max(banana @ car, banana @ automobile) + 0.3


def test_word_vectors_of_the_requested_dimension_are_used_unchanged(install):
    install("tiny", "ogtest_tiny", TINY)
    client = EmbeddingClient(find_config(LOCAL))
    # The accent does not matter, nor how long the stored row is.
    assert np.allclose(client.embed(["Cafe"], 4)[0], [0, 0, 0, 1], atol=1e-6)
    # Of two words with the same normalised form the first, more frequent one counts.
    assert np.allclose(client.embed(["car"], 4)[0], np.array([1, 0.1, 0, 0]) / np.sqrt(1.01), atol=1e-6)


def test_unknown_words_and_zero_rows_are_hashed(install):
    install("tiny", "ogtest_tiny", TINY)
    client = EmbeddingClient(find_config(LOCAL))
    assert (client.embed(["unheard of", "nothing"], 32) == hashed(["unheard of", "nothing"], 32)).all()
    mixed = client.embed(["automobile unheard"], 512)[0]
    assert mixed @ client.embed(["automobile"], 512)[0] > 0.3
    assert mixed @ client.embed(["unheard"], 512)[0] > 0.3


def test_word_vectors_are_read_once_on_first_use(install):
    install("tiny", "ogtest_tiny", TINY)
    client = EmbeddingClient(find_config(LOCAL))
    assert "ogtest_tiny" not in sys.modules
    threads = [threading.Thread(target=client.embed, args=(["car"], 8)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sys.modules["ogtest_tiny"].calls == [1]


BROKEN = {
    "does not import": ("import nowhere_to_be_found", "nowhere_to_be_found"),
    "has no such function": ("", "vectors"),
    "fails": ("def vectors():\n raise OSError('weights are gone')", "weights are gone"),
    "returns nothing": ("def vectors():\n return None", "cannot be read"),
    "ragged": ("def vectors():\n return ['a', 'b'], [[1], [1, 2]]", "cannot be read"),
    "too few rows": ("def vectors():\n return ['a', 'b'], [[1.0]]", "2 words"),
    "one row only": ("def vectors():\n return ['a'], [1.0]", "shape"),
    "empty": ("def vectors():\n return [], [[]]", "0 words"),
    "not finite": ("def vectors():\n return ['a'], [[float('nan')]]", "finite"),
}


@pytest.mark.parametrize(("source", "said"), BROKEN.values(), ids=BROKEN)
def test_a_broken_package_is_an_error_that_names_it(install, source, said):
    install("broken", "ogtest_broken", source)
    client = EmbeddingClient(find_config(LOCAL))
    with pytest.raises(EmbeddingError, match="word vectors 'broken'") as caught:
        client.embed(["a"], 4)
    assert said in caught.value.message


def test_uninstalled_word_vectors_are_an_error():
    with pytest.raises(EmbeddingError, match="'local-words-gone-v1' are not installed"):
        LocalVectors("local-words-gone-v1").embed(["a"], 4)
