"""Folder names: test vectors of the specification, and separation of tables."""

from __future__ import annotations

import re

import pytest

from omnigraph.storage.files import layout

VECTORS = {
    "": "cbf29ce484222325",
    "a": "af63dc4c8601ec8c",
    "K": "af64064c860233ea",
    "Kn": "092a3807b5bd894c",
    "Kno": "50465819d1100679",
    "Know": "778dc1de3e3a49ca",
    "Knows": "602a25a3bd0b455b",
    "Person": "40d76f1f51639ec0",
    "Company": "7cb4e55c59663b1c",
    "WorksAt": "844eefbe5068b644",
}


@pytest.mark.parametrize(("text", "expected"), VECTORS.items(), ids=[text or "(empty)" for text in VECTORS])
def test_fnv1a64(text, expected):
    assert layout.fnv1a64(text) == expected


def test_the_hash_is_over_utf8():
    # By definition two bytes, c3 and a9.
    value = 0xCBF29CE484222325
    for byte in (0xC3, 0xA9):
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    assert layout.fnv1a64("é") == f"{value:016x}"


@pytest.mark.parametrize(
    ("kind", "name", "folder"),
    [("node", "Person", "nodes/40d76f1f51639ec0"), ("edge", "Knows", "edges/602a25a3bd0b455b")],
)
def test_the_first_table_of_a_name_has_the_specified_folder(kind, name, folder):
    assert layout.table_folder(kind, name) == folder


def test_a_later_table_of_the_same_name_has_its_own_folder():
    first = layout.table_folder("node", "Person")
    later = layout.table_folder("node", "Person", 0x1F)
    assert later == f"{first}-000000000000001f"
    assert re.fullmatch(r"nodes/[0-9a-f]{16}-[0-9a-f]{16}", layout.table_folder("node", "Person", 2**64 - 1))


def test_a_node_and_an_edge_of_one_name_have_different_folders():
    assert layout.table_folder("node", "Knows") != layout.table_folder("edge", "Knows")


def test_intents_are_in_one_folder():
    assert layout.intent_name("01J") == "__recovery/01J.json"
