"""Warnings about annotations that have no effect."""

from __future__ import annotations

import pytest

from omnigraph.schema.annotations import misspelled
from omnigraph.schema.check import compile_schema
from omnigraph.schema.warnings import _HINTS, unknown_annotations


@pytest.mark.parametrize("name", sorted(_HINTS))
def test_every_hint_can_appear(name):
    assert misspelled(name) is None


@pytest.mark.parametrize(
    ("annotation", "hint"),
    [
        ("@pk", "@key"),
        ("@primary", "@key"),
        ("@id", "@key"),
        ("@primaryKey", "@key"),
        ("@default(3)", "no default values"),
        ("@nullable", "'I32?'"),
        ("@required", "unless its type ends with '?'"),
        ('@references("Film")', "edge Name: From -> To"),
    ],
)
def test_an_annotation_of_another_language_has_a_hint(annotation, hint):
    catalog = compile_schema(f"node Film {{ number: I32 {annotation} }}")
    (found,) = unknown_annotations(catalog)
    assert (found.type_name, found.property_name) == ("Film", "number")
    assert "has no effect: " in found.message
    assert hint in found.message


def test_an_unknown_annotation_has_no_hint_and_a_defined_one_no_warning():
    catalog = compile_schema('node Film @owner("a") { number: I32 @key @description("d") }')
    assert [found.message for found in unknown_annotations(catalog)] == [
        "'@owner' on 'Film' is not an annotation of the schema language; it is kept as metadata and has no effect"
    ]
