"""Documents of widgets and saved files, the answers of a widget, and a real anywidget."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import InputError, NotFound
from omnigraph.notebook import document as documents
from omnigraph.notebook.document import document_of
from omnigraph.notebook.graph_view import NodeList
from omnigraph.notebook.saved_page import page_of
from omnigraph.notebook.widget import Answers, StaticDisplay

SCHEMA = "node Person { name: String @key  age: I64? } edge Knows: Person -> Person { since: I64? }"
PAIRS = "match { $a: Person  $a knows $b } return { $a, $b, $a.age as age } order { $a.name, $b.name }"
HOSTILE = "</script><script>window.pwned=1</script>"


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "g.omni", SCHEMA, sync=False, actor="maren")
    names = ["ana", "bo", "cleo", HOSTILE]
    nodes: list[dict[str, Any]] = [{"type": "Person", "data": {"name": name, "age": 2**60}} for name in names]
    edges = [{"edge": "Knows", "from": "ana", "to": name, "data": {}} for name in names[1:]]
    graph.load([*nodes, *edges], mode="append", message="first")
    return graph


def answer(answers: Answers, ask: str, **question: Any) -> Any:
    answered = answers.answer({"number": 7, "ask": ask, **question})
    assert answered["number"] == 7
    json.dumps(answered)
    return answered


def test_a_result_is_nodes_edges_and_rows(graph: og.Graph) -> None:
    shown = document_of(graph.query(PAIRS))
    assert [(node["type"], node["id"]) for node in shown["nodes"]] == [
        ("Person", name) for name in ("ana", HOSTILE, "bo", "cleo")
    ]
    assert shown["nodes"][0]["data"] == {"name": "ana", "age": str(2**60)}
    assert shown["edges"] == [{"from": 0, "to": at, "label": "Knows"} for at in (1, 2, 3)]
    assert [(each["name"], each["kind"], each["type"]) for each in shown["table"]["columns"]] == [
        ("a", "node", "Person"),
        ("b", "node", "Person"),
        ("age", "integer", None),
    ]
    assert len(shown["table"]["rows"]) == shown["table"]["total"] == 3
    assert shown["notice"] is None


def test_limits_are_named(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "NODES_MAX", 2)
    monkeypatch.setattr(documents, "BYTES_MAX", 10)
    monkeypatch.setattr(documents, "_BATCH_ROWS", 1)
    shown = document_of(graph.query(PAIRS))
    assert len(shown["nodes"]) == 2
    assert shown["notice"] == "The table has the first 1 of 3 rows."
    monkeypatch.setattr(documents, "BYTES_MAX", 10_000)
    assert document_of(graph.query(PAIRS))["notice"] == "The picture has the first 2 nodes."


def test_a_difference_marks_what_changed(graph: og.Graph) -> None:
    graph.branch_create("draft")
    graph.mutate('update Person set { age: 5 } where name = "bo"', branch="draft")
    graph.mutate('delete Person where name = "cleo"', branch="draft")
    shown = document_of(graph.diff("main...draft"))
    assert {node["id"]: node["op"] for node in shown["nodes"]} == {"bo": "update", "cleo": "delete", "ana": "same"}
    assert sorted((edge["label"], edge["op"]) for edge in shown["edges"]) == [("Knows", "delete"), ("Knows", "same")]
    assert {row[0] for row in shown["table"]["rows"]} == {"update", "delete"}
    assert shown["table"]["total"] == 3


def test_a_schema_is_types_and_properties(graph: og.Graph) -> None:
    shown = document_of(graph.schema)
    assert [node["id"] for node in shown["nodes"]] == ["Person"]
    assert shown["edges"] == [{"from": 0, "to": 0, "label": "Knows"}]
    assert ["Knows", "since", "I64?"] in shown["table"]["rows"]


def test_something_else_is_refused() -> None:
    with pytest.raises(InputError, match="int cannot be shown"):
        document_of(1)


def test_a_saved_file_has_its_policy_and_no_way_out_of_its_data(graph: og.Graph, tmp_path: Path) -> None:
    path = graph.query(PAIRS).save(tmp_path / "pairs.html")
    page = path.read_text(encoding="utf-8")
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", page, re.DOTALL)
    assert len(scripts) == 2
    assert HOSTILE in json.dumps(json.loads(scripts[0]), ensure_ascii=False)
    wanted = base64.b64encode(hashlib.sha256(scripts[1].encode()).digest()).decode()
    assert f"script-src 'sha256-{wanted}'" in page
    assert "default-src 'none'" in page
    style = re.findall(r"<style>(.*?)</style>", page)[0]
    assert f"style-src 'sha256-{base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()}'" in page
    assert graph.schema.save(tmp_path / "schema.html").is_file()
    assert graph.diff(1, 2).save(tmp_path / "diff.HTML").is_file()
    with pytest.raises(InputError, match="not an HTML file"):
        graph.query(PAIRS).save(tmp_path / "pairs.png")


def test_a_table_that_is_too_large_is_left_out(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.notebook.saved_page.BYTES_MAX", 100)
    assert "The table is left out: it is too large." in page_of(document_of(graph.query(PAIRS)))


def test_answers_come_from_the_graph(graph: og.Graph) -> None:
    widget = graph.show(PAIRS)
    answers = widget._answers
    assert widget.document["asks"] == ["as_of", "expand", "page", "why"]
    page = answer(answers, "expand", type="Person", id="ana", after=None)["answer"]
    assert [(each["edge"], each["id"]) for each in page["neighbors"]] == [
        ("Knows", name) for name in ("bo", "cleo", HOSTILE)
    ]
    blame = answer(answers, "why", type="Person", id="bo")["answer"]["blame"]
    assert {(each["property"], each["actor_id"], each["message"]) for each in blame} == {
        (name, "maren", "first") for name in ("id", "name", "age")
    }
    assert len(answer(answers, "page", start=1)["answer"]["rows"]) == 2
    assert answer(answers, "page", start=3)["answer"]["rows"] == []
    assert answer(answers, "page", start="x")["problem"]["code"] == "bad_input"
    assert answer(answers, "expand", type="Person", id="nobody")["problem"]["code"] == "entity_not_found"
    assert "does not answer" in answer(answers, "drop")["problem"]["error"]
    graph.mutate('delete Person where name = "cleo"')
    assert len(answer(answers, "as_of", at="main")["answer"]["table"]["rows"]) == 2
    assert len(answer(answers, "as_of", at="2")["answer"]["table"]["rows"]) == 3


def test_results_and_schemas_answer_what_they_can(graph: og.Graph) -> None:
    assert graph.query(PAIRS).show().document["asks"] == ["page"]
    assert graph.show(graph.query(PAIRS)).document["asks"] == ["expand", "page", "why"]
    assert graph.schema.show().document["asks"] == []
    assert graph.diff(1, 2).show().document["asks"] == []


def test_types_and_nodes_are_shown(graph: og.Graph) -> None:
    assert len(graph.show("Person").document["nodes"]) == 4
    shown = graph.show([("Person", "ana"), ("Person", "bo")]).document
    assert shown["edges"] == [{"from": 0, "to": 1, "label": "Knows"}]
    assert "<svg" in NodeList((("Person", "ana", {}),), ())._repr_html_()
    for wrong, message in (("Persn", "no node type 'Persn'"), (["ana"], "a pair of its type and its id")):
        with pytest.raises(InputError, match=message):
            graph.show(wrong)
    with pytest.raises(NotFound, match="there is no Person 'nobody'"):
        graph.show([("Person", "nobody")])


def test_a_real_widget_sends_answers_and_carries_its_static_form(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    anywidget = pytest.importorskip("anywidget")
    widget = graph.show(PAIRS)
    assert isinstance(widget, anywidget.AnyWidget)
    sent: list[Any] = []
    monkeypatch.setattr(widget, "send", sent.append)
    widget._handle_custom_msg({"number": 1, "ask": "expand", "type": "Person", "id": "ana"}, [])
    assert sent[0]["number"] == 1
    assert len(sent[0]["answer"]["neighbors"]) == 3
    widget.set_state({"selected": [{"type": "Person", "id": "bo"}]})
    assert widget.selected == [{"type": "Person", "id": "bo"}]
    data, _ = widget._repr_mimebundle_()
    assert "<table>" in data["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in data
    assert "export" in str(widget._esm)


def test_without_anywidget_the_static_form_is_shown(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anywidget", None)
    shown = graph.show(PAIRS)
    assert isinstance(shown, StaticDisplay)
    assert "<svg" in shown._repr_html_()
    assert shown.selected == ()
