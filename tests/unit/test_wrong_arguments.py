"""Missing arguments and arguments of wrong types raise typed errors with a hint."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import InputError

SCHEMA = "node Film {\n    id_no: I64 @key\n    title: String?\n}\n"
QUERY = "query films() {\n    match { $f: Film }\n    return { $f.id_no }\n}\n"


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return og.init(tmp_path_factory.mktemp("graphs") / "g", SCHEMA, sync=False)


def test_str_that_names_a_file_is_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("films.pg").write_text(SCHEMA)
    Path("q.gq").write_text(QUERY)
    graph = og.init("films.omni", "films.pg", sync=False)
    assert graph.query("q.gq", "films").to_rows() == []
    assert graph.lint("q.gq").query_path == "q.gq"
    assert graph.plan_schema("films.pg").steps == ()
    for call in (
        lambda: graph.query("nope.gq"),
        lambda: graph.apply_schema("nope.gq"),
        lambda: og.init("other.omni", "nope.gq", sync=False),
    ):
        with pytest.raises(InputError, match=r"there is no file 'nope\.gq'"):
            call()


@pytest.mark.parametrize("data", [pd.DataFrame({"id_no": [1]}), pa.table({"id_no": [1]})], ids=["pandas", "arrow"])
def test_table_without_type_is_rejected(graph, data):
    with pytest.raises(InputError, match="without the name of its type") as caught:
        graph.load(data, mode="merge")
    assert caught.value.hint == "name the type: load({'Person': data}, …)"


def test_load_requires_a_mode(graph):
    with pytest.raises(InputError, match="a load needs a mode") as caught:
        graph.load([])
    assert "mode='merge'" in caught.value.hint


def test_signature_errors_name_the_graph(graph):
    with pytest.raises(TypeError, match=r"^Graph\.query\(\) got an unexpected keyword argument 'id'"):
        graph.query(QUERY, id=1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda g: g.query(QUERY, ["x"]), "the name of a query is a str and its parameters are a mapping, not list"),
        (lambda g: g.query(5), "a query is a str or a Path, not int"),
        (lambda g: g.apply_schema(5), "a schema is a str or a Path, not int"),
        (lambda g: g.query(QUERY, timeout="x"), "a timeout is a number of seconds, not str"),
        (lambda g: g.profile(QUERY, timeout=True), "a timeout is a number of seconds, not bool"),
        (lambda g: g.query(QUERY, limits={"rows_max": 9}), "limits takes Limits(rows_max=…, bytes_max=…), not dict"),
        (lambda g: g.query(QUERY, limits=0), "limits takes Limits(rows_max=…, bytes_max=…), not int"),
        (lambda g: g.profile(QUERY, limits=5, timeout=1), "limits takes Limits(rows_max=…, bytes_max=…), not int"),
        (lambda g: g.query(QUERY, branch=5), "the name of a branch is a str, not int"),
        (lambda g: g.on(["main"]), "the name of a branch is a str, not list"),
        (lambda g: g.branch_create(5), "the name of a branch is a str, not int"),
        (lambda g: g.branch_delete(5), "the name of a branch is a str, not int"),
        (lambda g: g.merge(5), "the name of a branch is a str, not int"),
        (lambda g: g.tag_create(5), "the name of a tag is a str, not int"),
        (lambda g: g.tag_delete(5), "the name of a tag is a str, not int"),
        (lambda g: g.get(5, 1), "the name of a type is a str, not int"),
        (lambda g: g.commits(limit="x"), "the limit must be a non-negative integer (got 'x')"),
        (lambda g: g.commits(limit=-1), "the limit must be a non-negative integer (got '-1')"),
    ],
)
def test_arguments_of_wrong_types_are_rejected(graph, call, message):
    with pytest.raises(InputError) as caught:
        call(graph)
    assert caught.value.message == message
