"""Each tool that reads."""

from __future__ import annotations

import pytest

from omnigraph.mcp.endpoint import UnknownName
from omnigraph.mcp.read_tools import READ_TOOLS

PEOPLE = "match { $p: Person } return { $p.name, $p.age } order { $p.name }"


def test_schema_shows_types_and_marks(endpoint):
    answer = endpoint().call("schema", {})
    assert answer.structured["complete"] is True
    assert "Person(name String key, age I64?, bio String? text, meaning Vector(3)?)" in answer.text
    assert "WorksAt: Person -> Company [0..1 per Person]" in answer.text


def test_schema_of_one_type_has_its_edges(endpoint):
    text = endpoint().call("schema", {"type": "Company"}).text
    assert text.splitlines() == [
        "Company(slug String key, founded Date?, title String)",
        "WorksAt: Person -> Company [0..1 per Person]",
    ]
    failed = endpoint().call("schema", {"type": "Compny"})
    assert failed.is_error
    assert failed.structured["hint"] == "did you mean 'Company'?"


def test_get_returns_a_row(endpoint):
    answer = endpoint().call("get", {"type": "Person", "id": "bo"})
    assert answer.structured["data"]["age"] == 41
    assert endpoint().call("get", {"type": "Person", "id": "zoe"}).structured["reason"] == "entity_not_found"


def test_get_of_a_past_commit(endpoint, graph):
    before = graph.head().commit_id
    graph.mutate('update Person set { age: 42 } where name = "bo"')
    assert endpoint().call("get", {"type": "Person", "id": "bo"}).structured["data"]["age"] == 42
    assert endpoint().call("get", {"type": "Person", "id": "bo", "at": before}).structured["data"]["age"] == 41


def test_query_returns_rows_twice(endpoint, graph):
    answer = endpoint().call("query", {"query": PEOPLE})
    assert answer.structured == {
        "columns": ["p.name", "p.age"],
        "rows": [{"p.name": "ana", "p.age": 30}, {"p.name": "bo", "p.age": 41}],
        "row_count": 2,
        "commit": graph.head().commit_id,
    }
    assert answer.text.splitlines()[1:] == ['["p.name","p.age"]', '["ana",30]', '["bo",41]']
    assert answer.commit == graph.head().commit_id


def test_query_pages_continue_at_the_commit_of_the_first(endpoint, graph):
    first = endpoint().call("query", {"query": PEOPLE, "limit": 1})
    graph.mutate('insert Person { name: "abe" }')
    second = endpoint().call("query", {"query": PEOPLE, "limit": 1, "after": first.structured["next"]})
    assert [row["p.name"] for row in first.structured["rows"] + second.structured["rows"]] == ["ana", "bo"]
    assert "next" not in second.structured
    assert "next: " in first.text


def test_query_without_order_shows_its_first_rows(endpoint):
    answer = endpoint().call("query", {"query": "match { $p: Person } return { $p.name }", "limit": 1})
    assert answer.structured["row_count"] == 1
    assert answer.structured["note"].startswith("1 more rows are not shown.")


def test_query_takes_parameters(endpoint):
    query = "match { $p: Person $p.age > $least } return { $p.name }"
    answer = endpoint().call("query", {"query": query, "params": {"least": 35}})
    assert answer.structured["rows"] == [{"p.name": "bo"}]


def test_failed_query_has_the_corrected_text(endpoint):
    answer = endpoint().call("query", {"query": "match { $p: Persn } return { $p.nmae }"})
    assert answer.is_error
    assert answer.structured["corrected"] == "match { $p: Person } return { $p.name }"
    assert answer.structured["diagnostics"][0]["line"] == 1
    assert "corrected:\nmatch { $p: Person }" in answer.text


def test_a_text_is_never_a_file(endpoint, tmp_path):
    path = tmp_path / "secret.gq"
    path.write_text("query q() { match { $p: Person } return { $p.name } }", encoding="utf-8")
    answer = endpoint().call("query", {"query": str(path)})
    assert answer.is_error
    assert answer.structured["reason"] == "parse_error"


def test_a_change_is_no_query(endpoint, graph):
    before = graph.head().commit_id
    assert endpoint().call("query", {"query": 'insert Person { name: "x" }'}).is_error
    assert graph.head().commit_id == before


def test_explain_error(endpoint):
    assert "cannot be compared" in endpoint().call("explain_error", {"code": "t7"}).text
    assert endpoint().call("explain_error", {"code": "T777"}).structured["reason"] == "unknown_code"
    found = endpoint().call("explain_error", {"query": "match { $p: Person } return { $p.nme }"})
    assert found.structured["valid"] is False
    assert found.structured["corrected"].endswith("$p.name }")
    assert endpoint().call("explain_error", {"query": PEOPLE}).structured == {"valid": True}
    assert endpoint().call("explain_error", {}).is_error


def test_history(endpoint, graph):
    graph.mutate('update Person set { age: 42 } where name = "bo"', message="birthday")
    answer = endpoint().call("history", {"type": "Person", "id": "bo", "limit": 1})
    (change,) = answer.structured["changes"]
    assert (change["before"], change["after"], change["message"]) == ({"age": 41}, {"age": 42}, "birthday")
    rest = endpoint().call("history", {"type": "Person", "id": "bo", "after": answer.structured["next"]})
    assert [change["op"] for change in rest.structured["changes"]] == ["insert"]
    assert endpoint().call("history", {"type": "Person", "id": "zoe"}).structured["reason"] == "entity_not_found"


def test_diff(endpoint, graph):
    graph.branch_create("draft")
    graph.mutate('insert Person { name: "cy" }', branch="draft")
    answer = endpoint().call("diff", {"from": "main", "to": "draft", "types": ["Person"]})
    (change,) = answer.structured["changes"]
    assert (change["op"], change["id"], change["after"]["name"]) == ("insert", "cy", "cy")
    assert endpoint().call("diff", {"from": "main...draft"}).structured["changes"] == [change]


def test_branches_and_commits(endpoint, graph):
    for name in ("b1", "b2", "b3"):
        graph.branch_create(name, description="a draft")
    answer = endpoint().call("branches", {"limit": 2})
    assert [each["name"] for each in answer.structured["branches"]] == ["main", "b1"]
    rest = endpoint().call("branches", {"after": answer.structured["next"]})
    assert [each["name"] for each in rest.structured["branches"]] == ["b2", "b3"]
    assert endpoint().call("branches", {"prefix": "b"}).structured["branches"][0]["name"] == "b1"
    graph.mutate('insert Person { name: "cy" }', branch="b2", message="add cy")
    (item,) = endpoint().call("branches", {"prefix": "b2"}).structured["branches"]
    assert (item["ahead"], item["behind"], item["message"], item["description"]) == (1, 0, "add cy", "a draft")
    commits = endpoint().call("commits", {"limit": 1}).structured
    assert commits["commits"][0]["kind"] == "query_store"
    older = endpoint().call("commits", {"after": commits["next"], "actor": "ana"}).structured["commits"]
    assert [each["kind"] for each in older] == ["load", "init"]


@pytest.mark.parametrize(
    ("tool", "arguments", "reason"),
    [
        ("query", {}, "bad_member"),
        ("query", {"query": 7}, "bad_member"),
        ("query", {"query": PEOPLE, "limit": 0}, "bad_member"),
        ("query", {"query": PEOPLE, "limt": 1}, "unknown_member"),
        ("query", {"query": PEOPLE, "params": {"least": 1}}, "bad_parameter"),
        ("query", {"query": PEOPLE, "after": "x"}, "page_cursor_rejected"),
        ("query", {"query": PEOPLE, "branch": "nope"}, "branch_not_found"),
        ("query", {"query": PEOPLE, "at": "nope"}, "commit_not_found"),
        ("get", {"type": "Person", "id": [1]}, "bad_member"),
        ("get", {"type": "Nope", "id": "x"}, "type_not_found"),
        ("history", {"type": "Person", "id": "ana", "limit": 10**9}, "bad_member"),
        ("diff", {"from": "nope"}, "commit_not_found"),
        ("schema", {"budget_tokens": 1}, "bad_member"),
    ],
)
def test_wrong_arguments_are_answers(endpoint, tool, arguments, reason):
    answer = endpoint().call(tool, arguments)
    assert answer.is_error
    assert answer.structured["reason"] == reason


def test_read_tools_are_read_only(endpoint):
    for tool in READ_TOOLS:
        assert tool.annotations()["readOnlyHint"] is True
        assert tool.input_schema["additionalProperties"] is False
    assert [tool.name for tool in endpoint(adhoc=False).tools()].count("query") == 0
    with pytest.raises(UnknownName):
        endpoint(adhoc=False).call("query", {"query": PEOPLE})


def test_older_names_are_answered_and_not_listed(endpoint, graph):
    listed = {tool.name for tool in endpoint(write=True).tools()}
    calls = {
        "health": {},
        "snapshot": {},
        "schema_get": {},
        "branches_list": {},
        "commits_list": {},
        "commits_get": {"id": graph.head().commit_id},
        "read": {"query_source": PEOPLE},
        "mutate": {"query_source": 'insert Person { name: "m" }'},
        "ingest": {"data": [{"type": "Person", "data": {"name": "i"}}]},
        "branches_create": {"name": "topic"},
        "branches_delete": {"branch": "mcp/ana/topic"},
    }
    for name, arguments in calls.items():
        assert name not in listed
        assert not endpoint(write=True).call(name, arguments).is_error, name
    for name in ("branches_merge", "schema_apply", "merge", "optimize", "graphs_list"):
        with pytest.raises(UnknownName):
            endpoint(write=True).call(name, {})
