"""Tools that change the graph, and the branches that they may change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from omnigraph.mcp.endpoint import UnknownName
from omnigraph.mcp.own_branches import actor_segment, topic_branch
from omnigraph.mcp.write_tools import WRITE_TOOLS
from omnigraph.versioning.write.ref_names import check_branch_name


def test_nothing_is_offered_without_write(endpoint, graph):
    before = graph.newest_version
    listed = {tool.name for tool in endpoint().tools()}
    for tool in WRITE_TOOLS:
        assert tool.name not in listed
        with pytest.raises(UnknownName):
            endpoint().call(tool.name, {})
    assert graph.newest_version == before


def test_a_change_makes_the_branch_with_an_expiry(endpoint, graph):
    answer = endpoint(write=True).call("change", {"query": 'insert Person { name: "cy" }', "message": "add cy"})
    assert answer.structured["affected_nodes"] == 1
    head = graph.head("mcp/ana/draft")
    assert head.commit_id == answer.structured["commit"] == answer.commit
    assert head.owner == "ana"
    assert head.expires_at is not None
    assert timedelta(days=13) < head.expires_at - datetime.now(UTC) <= timedelta(days=14)
    again = endpoint(write=True).call("change", {"query": 'insert Person { name: "di" }'})
    assert graph.commit(again.structured["commit"]).parent_id == head.commit_id
    assert graph.get("Person", "cy") is None


def test_returned_rows_are_shown(endpoint):
    query = 'update Person set { age: 7 } where name = "bo" as $p return { $p.name as name, $p.age as age }'
    answer = endpoint(write=True).call("change", {"query": query})
    assert answer.structured["rows"] == [{"name": "bo", "age": 7}]
    assert '["bo",7]' in answer.text


def test_load_and_branch(endpoint, graph):
    made = endpoint(write=True).call("branch", {"topic": "more-people"})
    assert made.structured["name"] == "mcp/ana/more-people"
    assert endpoint(write=True).call("branch", {"topic": "more-people"}).structured["created"] is False
    record = {"type": "Person", "data": {"name": "eve"}}
    loaded = endpoint(write=True).call("load", {"records": [record], "branch": "mcp/ana/more-people"})
    assert loaded.structured["rows_loaded"] == {"node:Person": 1}
    assert graph.get("Person", "eve", branch="mcp/ana/more-people") is not None
    wrong = endpoint(write=True).call("load", {"records": [{"type": "Persn", "data": {}}]})
    assert wrong.is_error


def test_a_branch_can_start_from_another(endpoint, graph):
    endpoint(write=True).call("change", {"query": 'insert Person { name: "cy" }'})
    endpoint(write=True).call("branch", {"topic": "second", "from": "mcp/ana/draft"})
    assert graph.get("Person", "cy", branch="mcp/ana/second") is not None
    assert endpoint(write=True).call("branch", {"topic": "second", "from": "main"}).structured["reason"] == (
        "branch_exists"
    )


@pytest.mark.parametrize("branch", ["main", "mcp/bo/draft", "other", "mcp/ana", "mcp/anax/draft", "MAIN", "mcp//x"])
def test_other_branches_are_refused(endpoint, graph, branch):
    before = graph.newest_version
    for tool, arguments in (
        ("change", {"query": 'insert Person { name: "x" }'}),
        ("load", {"records": [{"type": "Person", "data": {"name": "x"}}]}),
        ("add_person", {"name": "x"}),
    ):
        answer = endpoint(write=True).call(tool, {**arguments, "branch": branch})
        assert answer.is_error
        assert answer.structured["reason"] == "denied"
    assert graph.newest_version == before


def test_patterns_permit_other_branches_but_never_main(endpoint, graph):
    graph.branch_create("team/x")
    open_ = endpoint(write=True, branches=("*",))
    assert not open_.call("change", {"query": 'insert Person { name: "x" }', "branch": "team/x"}).is_error
    assert open_.call("change", {"query": 'insert Person { name: "y" }', "branch": "main"}).is_error


def test_a_failed_change_leaves_no_commit(endpoint, graph):
    answer = endpoint(write=True).call("change", {"query": 'insert Person { name: "ana" }'})
    assert answer.structured["reason"] == "key_conflict"
    assert graph.head("mcp/ana/draft").commit_id == graph.head("main").commit_id


@settings(max_examples=50)
@given(st.text(min_size=1, max_size=300))
@example("-")
@example("-x")
@example("a" * 300)
def test_every_actor_has_a_branch_name(actor):
    assert check_branch_name(topic_branch(actor, "draft")).startswith("mcp/")


def test_changed_actor_names_stay_apart():
    names = ["a b", "a-b", "a/b", "anonymous", None, "ana@example.org", "..", "x.lock", "-x"]
    assert len({actor_segment(name) for name in names}) == len(names)
    assert actor_segment("act-ana_1.2") == "act-ana_1.2"
