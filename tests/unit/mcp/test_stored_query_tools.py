"""Stored queries as tools."""

from __future__ import annotations

import pytest

from omnigraph.mcp.endpoint import UnknownName


def named(endpoint):
    return {tool.name: tool for tool in endpoint.tools()}


def test_exposed_reads_are_tools(endpoint):
    tools = named(endpoint())
    assert {"adults", "all_people"} <= set(tools)
    assert not {"everyone", "hidden", "add_person"} & set(tools)
    assert tools["adults"].description.startswith("People of at least an age. Use it for ages.")
    assert tools["adults"].input_schema["required"] == ["age"]


def test_a_call_returns_rows_and_pages(endpoint):
    first = endpoint().call("adults", {"age": 18, "limit": 1})
    assert first.structured["rows"] == [{"name": "ana", "age": 30}]
    second = endpoint().call("adults", {"age": "18", "limit": 1, "after": first.structured["next"]})
    assert second.structured["rows"] == [{"name": "bo", "age": 41}]


def test_hidden_and_unknown_tools_are_one_error(endpoint):
    messages = set()
    for name in ("hidden", "everyone", "add_person", "nope"):
        with pytest.raises(UnknownName) as caught:
            endpoint().call(name, {})
        messages.add(str(caught.value).replace(name, "NAME"))
    assert messages == {"unknown tool 'NAME'"}


def test_changes_need_write_and_go_to_the_own_branch(endpoint, graph):
    tools = named(endpoint(write=True))
    assert tools["add_person"].annotations() == {
        "readOnlyHint": False,
        "destructiveHint": True,
        "idempotentHint": False,
        "openWorldHint": False,
    }
    answer = endpoint(write=True).call("add_person", {"name": "cy", "message": "by tool"})
    assert answer.structured["branch"] == "mcp/ana/draft"
    assert graph.get("Person", "cy") is None
    assert graph.get("Person", "cy", branch="mcp/ana/draft") is not None
    assert graph.commits("mcp/ana/draft", 1)[0].message == "by tool"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, "bad_parameter"),
        ({"age": "x"}, "bad_parameter"),
        ({"age": 1, "nme": 2}, "unknown_member"),
        ({"age": 1, "limit": True}, "bad_member"),
        ({"age": 1, "branch": 7}, "bad_member"),
    ],
)
def test_wrong_arguments(endpoint, arguments, reason):
    assert endpoint().call("adults", arguments).structured["reason"] == reason


@pytest.mark.parametrize("tool_name", ["List all!", "naïve", "a/b", "x" * 129])
def test_a_tool_name_that_the_protocol_does_not_permit(endpoint, graph, tool_name):
    graph.store_query(f'query people() @tool_name("{tool_name}") {{ match {{ $p: Person }} return {{ $p.name }} }}')
    assert "people" in named(endpoint())
    assert tool_name not in named(endpoint())
    assert endpoint().call("people", {}).structured["row_count"] == 2


def test_parameter_schemas(endpoint, graph):
    graph.store_query(
        "query kinds($s: String, $b: Bool, $i: I32, $l: I64, $f: F64, $d: Date, $t: DateTime, $u: Uuid?, "
        "$v: Vector(3), $xs: [String]) { match { $p: Person } return { $p.name, $s as s, $b as b, $i as i, $l as l, "
        "$f as f, $d as d, $t as t, nearest($p.meaning, $v) as n } }"
    )
    properties = named(endpoint())["kinds"].input_schema["properties"]
    assert properties["s"]["type"] == "string"
    assert properties["b"]["type"] == "boolean"
    assert properties["i"]["type"] == "integer"
    assert properties["l"]["anyOf"][1]["pattern"] == r"^-?\d+$"
    assert properties["d"]["format"] == "date"
    assert properties["t"]["format"] == "date-time"
    assert (properties["v"]["minItems"], properties["v"]["maxItems"]) == (3, 3)
    assert properties["xs"]["items"] == {"type": "string"}
    assert "u" not in named(endpoint())["kinds"].input_schema["required"]


def test_a_parameter_hides_an_option_and_a_taken_name_is_not_used(endpoint, graph):
    graph.store_query("query of_branch($branch: String) { match { $p: Person } return { $branch as b } limit 1 }")
    graph.store_query("query schema() { match { $p: Person } return { $p.name } }")
    assert endpoint().call("of_branch", {"branch": "x"}).structured["rows"] == [{"b": "x"}]
    assert "schema" in endpoint().call("schema", {}).structured
    assert [tool.name for tool in endpoint().tools()].count("schema") == 1
