"""Computing vectors from texts: which texts are embedded, and how often."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.engine.write.fill_vectors import CachingEmbedder, Unconfigured, fill_vectors, has_text
from omnigraph.errors import InputError
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.check import compile_schema

SCHEMA = """
node Free { text: String?  vec: Vector(2)? @embed("text", model="m1")  wide: Vector(3)? @embed("text") }
node Strict { text: String?  vec: Vector(2) @embed(text) }
"""
CATALOG = compile_schema(SCHEMA)
FREE, STRICT = CATALOG.nodes["Free"], CATALOG.nodes["Strict"]


class RecordingEmbedder:
    """Returns the length of the text and a constant; records the requests."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, list[str]]] = []
        self.models: list[tuple[str, str, str | None]] = []

    def embed_documents(self, texts: Sequence[str], dim: int) -> Sequence[Sequence[float]]:
        self.asked.append((dim, list(texts)))
        return [[float(len(text))] * dim for text in texts]

    def check_model(self, type_name: str, property_name: str, recorded: str | None) -> None:
        self.models.append((type_name, property_name, recorded))

    def identity(self) -> tuple[str, str]:
        return "fake", "length"

    allows_mixed = False


class UnconfiguredEmbedder(RecordingEmbedder):
    """An embedder without a provider."""

    def check_model(self, *_: str | None) -> None:
        raise Unconfigured


def rows(node: Any, *rows: dict[str, Any]) -> pa.Table:
    """Rows in two chunks."""
    schema = pa.schema([field.with_nullable(True) for field in table_schema(node)])
    filled = [{name: row.get(name) for name in schema.names} for row in rows]
    return pa.concat_tables(pa.Table.from_pylist(part, schema=schema) for part in (filled[:1], filled[1:]))


def test_missing_vectors_are_filled_and_given_vectors_are_kept():
    fake = RecordingEmbedder()
    given = rows(
        FREE,
        {"id": "1", "text": "abc"},
        {"id": "2", "text": "abcd", "vec": [9, 9]},
        {"id": "3"},
        {"id": "4", "text": "abc", "wide": [1, 1, 1]},
    )
    filled, computed, waiting = fill_vectors(FREE, given, fake)
    assert filled["vec"].to_pylist() == [[3, 3], [9, 9], None, [3, 3]]
    assert filled["wide"].to_pylist() == [[3, 3, 3], [4, 4, 4], None, [1, 1, 1]]
    assert (computed, waiting) == (4, 0)
    assert filled.schema.names == given.schema.names


def test_each_text_is_embedded_once_and_the_model_is_checked():
    fake = RecordingEmbedder()
    fill_vectors(FREE, rows(FREE, *({"id": str(i), "text": "same"} for i in range(5))), fake, targets=["vec"])
    assert fake.asked == [(2, ["same"])]
    assert fake.models == [("Free", "vec", "m1")]


@pytest.mark.parametrize("text", [None, "", "   ", "\t\n", "\u00a0\u2003"])
def test_blank_text_has_no_vector(text):
    fake = RecordingEmbedder()
    filled, computed, waiting = fill_vectors(FREE, rows(FREE, {"id": "1", "text": text}), fake)
    assert filled["vec"].to_pylist() == [None]
    assert (computed, waiting, fake.asked) == (0, 0, [])
    assert has_text(pa.array([text, "x"])).to_pylist() == [False, True]


@pytest.mark.parametrize("embedder", [None, UnconfiguredEmbedder()])
def test_without_a_provider_a_nullable_vector_stays_null(embedder):
    filled, computed, waiting = fill_vectors(FREE, rows(FREE, {"id": "1", "text": "x"}, {"id": "2"}), embedder)
    assert filled["vec"].to_pylist() == [None, None]
    assert (computed, waiting) == (0, 2)


@pytest.mark.parametrize("embedder", [None, UnconfiguredEmbedder()])
def test_without_a_provider_a_required_vector_is_an_error(embedder):
    with pytest.raises(
        InputError, match=r"'Strict.vec' must be embedded from 'text', and no provider is configured"
    ) as caught:
        fill_vectors(STRICT, rows(STRICT, {"id": "1", "text": "x"}), embedder)
    assert caught.value.code == "embedding_unconfigured"
    for name in ("GEMINI_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "OMNIGRAPH_EMBEDDINGS_MOCK"):
        assert name in (caught.value.hint or "")


def test_the_provider_is_not_called_without_texts():
    given = rows(STRICT, {"id": "1", "vec": [1, 2]})
    assert fill_vectors(STRICT, given, None)[0].equals(given)


def test_vectors_are_cached_by_text_and_dimension():
    fake = RecordingEmbedder()
    memory = CachingEmbedder(fake)
    assert memory.embed_documents(["a", "bb", "a"], 2) == [[1, 1], [2, 2], [1, 1]]
    assert memory.embed_documents(["bb", "ccc"], 2) == [[2, 2], [3, 3]]
    assert memory.embed_documents(["a"], 3) == [[1, 1, 1]]
    assert memory.embed_documents(["a"], 3) == [[1, 1, 1]]
    assert fake.asked == [(2, ["a", "bb"]), (2, ["ccc"]), (3, ["a"])]
    memory.check_model("T", "p", "m")
    assert fake.models == [("T", "p", "m")]
