"""Keys of tables."""

from __future__ import annotations

import json
import pickle

import pytest

from omnigraph.table_key import TableKey


def test_key_is_the_text_of_kind_and_name():
    key = TableKey.node("Person")
    assert key == "node:Person"
    assert {"node:Person": 1}[key] == 1
    assert (key.kind, key.type_name, key.parts) == ("node", "Person", ("node", "Person"))
    assert TableKey.edge("Knows") == TableKey.of("edge", "Knows") == "edge:Knows"


def test_parse_returns_an_equal_key():
    key = TableKey.parse("edge:Knows")
    assert type(key) is TableKey
    assert key.parts == ("edge", "Knows")
    assert TableKey.parse(key) is key


@pytest.mark.parametrize("text", ["", "Person", "node:", ":Person", "graph:Person", "Node:Person"])
def test_parse_rejects_other_text(text):
    with pytest.raises(ValueError, match="is not a table key"):
        TableKey.parse(text)


def test_key_survives_pickle_and_json():
    key = TableKey.node("Person")
    assert type(pickle.loads(pickle.dumps(key))) is TableKey
    assert json.dumps({key: key}) == '{"node:Person": "node:Person"}'
