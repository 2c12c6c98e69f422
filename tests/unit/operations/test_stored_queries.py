"""Stored queries: they are versioned, branched and merged with the graph, and stay valid."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import (
    Denied,
    InputError,
    LimitReached,
    MergeConflict,
    PageCursorRejected,
    PolicyInvalid,
    QueryNotFound,
    SchemaChangeError,
    TypeCheckError,
)
from omnigraph.operations.authorization.access import Access
from omnigraph.policy.decide import load_policy

SCHEMA = "node Person { name: String @key  age: I64?  town: String? }"
ADULTS = """// Persons above an age.
query adults($age: I64) @description("persons above an age") {
    match { $p: Person $p.age > $age } return { $p.name as name } order { $p.name }
}"""
ADD = "query add($name: String) { insert Person { name: $name } }"


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "g.omni", SCHEMA)
    people = [("ana", 30), ("bo", 12), ("cleo", 50)]
    graph.load([{"type": "Person", "data": {"name": name, "age": age}} for name, age in people], mode="append")
    return graph


def names(graph: og.Graph, **given: object) -> list[str]:
    return [query.name for query in graph.queries(**given)]  # type: ignore[arg-type]


def test_store_call_and_delete(graph, tmp_path):
    done = graph.store_query(ADULTS, ADD, actor="ana", message="two queries")
    assert (done.stored, done.deleted, done.unchanged) == (("add", "adults"), (), ())
    assert graph.commits()[0].id == done.commit_id
    assert graph.commits()[0].kind == "query_store"
    again = og.open(tmp_path / "g.omni")
    found = {query.name: query for query in again.queries()}
    assert found["adults"].source == ADULTS
    assert (found["adults"].actor, found["adults"].description) == ("ana", "persons above an age")
    assert again.invoke("adults", {"age": 18}).to_pylist() == [{"name": "ana"}, {"name": "cleo"}]
    assert again.invoke("add", {"name": "dan"}).affected_nodes == 1
    assert again.get("Person", "dan") is not None
    assert graph.delete_query("add").deleted == ("add",)
    assert names(graph) == ["adults"]
    assert names(graph, at=done.commit_id) == ["add", "adults"], "time travel sees the queries of its time"
    assert graph.delete_query("adults").commit_id is not None
    assert names(og.open(tmp_path / "g.omni")) == []
    assert og.open(tmp_path / "g.omni").verify() == []


def test_equal_texts_make_no_commit(graph):
    first = graph.store_query(ADULTS)
    assert first.commit_id is not None
    second = graph.store_query(ADULTS)
    assert (second.commit_id, second.stored, second.unchanged) == (None, (), ("adults",))


def test_repetition_with_a_key_returns_the_first_result(graph):
    first = graph.store_query(ADULTS, idempotency_key="k")
    graph.store_query(ADULTS.replace("above", "over"))
    assert graph.store_query(ADULTS, idempotency_key="k").commit_id == first.commit_id
    assert "over" in graph.queries()[0].source


@pytest.mark.parametrize(
    ("text", "error", "part"),
    [
        ("query q() { match { $x: Nothing } return { $x.name } }", TypeCheckError, "Nothing"),
        ("match { $p: Person } return { $p.name }", InputError, "has a name"),
        (f"{ADD}\n{ADD}", InputError, "two queries 'add'"),
        ("// nothing", QueryNotFound, "no query"),
    ],
)
def test_what_is_refused_leaves_nothing(graph, text, error, part):
    before = graph.commits()[0].id
    with pytest.raises(error, match=part):
        graph.store_query(ADULTS, text)
    assert (graph.commits()[0].id, names(graph)) == (before, [])


def test_calls_that_do_not_fit(graph):
    graph.store_query(ADULTS, ADD)
    with pytest.raises(QueryNotFound, match="no stored query 'adult'") as caught:
        graph.invoke("adult")
    assert caught.value.hint == "did you mean 'adults'?"
    with pytest.raises(InputError, match="is a read, not a mutation"):
        graph.invoke("adults", {"age": 1}, expect_mutation=True)
    with pytest.raises(InputError, match="takes no condition"):
        graph.invoke("adults", {"age": 1}, if_commit=graph.head().commit_id)
    assert len(graph.invoke("adults", {"age": 1}, idempotency_key="k")) == 3, "a read needs no key and ignores it"
    with pytest.raises(InputError, match="a str, not int"):
        graph.invoke(7)
    with pytest.raises(InputError, match="no point in time"):
        graph.invoke("add", {"name": "x"}, at=graph.commits()[0].id)
    with pytest.raises(InputError, match="age"):
        graph.invoke("adults")


def test_limits_of_a_query_apply(graph):
    graph.store_query(ADULTS.replace("@desc", "@rows_max(1) @desc"))
    with pytest.raises(LimitReached):
        graph.invoke("adults", {"age": 1})


def test_pages(graph):
    graph.store_query(ADULTS)
    first = graph.invoke("adults", {"age": 1}, page=2)
    assert [row["name"] for row in first.to_pylist()] == ["ana", "bo"]
    assert [row["name"] for row in graph.invoke("adults", {"age": 1}, page=2, after=first.next).to_pylist()] == ["cleo"]


# -- branches ----------------------------------------------------------------------------------------


def test_merge_takes_queries_by_name(graph):
    graph.store_query(ADULTS)
    graph.branch_create("work")
    graph.store_query(ADD, branch="work")
    graph.store_query("query all() { match { $p: Person } return { $p.name as name } }")
    graph.merge("work")
    assert names(graph) == ["add", "adults", "all"]
    graph.branch_create("less")
    graph.delete_query("add", branch="less")
    graph.merge("less")
    assert names(graph) == ["adults", "all"]


def test_previews_count_the_queries_that_change(graph):
    graph.store_query(ADULTS)
    graph.branch_create("work")
    assert "query_changes" not in graph.merge_preview("work").to_json()
    graph.store_query(ADD, branch="work")
    graph.delete_query("adults", branch="work")
    preview = graph.merge_preview("work")
    assert (preview.query_changes, preview.to_json()["query_changes"]) == (2, 2)
    assert repr(preview) == "<MergePreview fast_forward: 2 query changes>"
    graph.merge("work")
    preview = graph.revert_preview("main")
    assert (preview.query_changes, preview.to_json()["query_changes"]) == (2, 2)
    commit = graph.store_query(ADD.replace("insert", "upsert")).commit_id
    assert repr(graph.revert_preview(commit)) == "<MergePreview merged: 1 query change>"


@pytest.mark.parametrize("deleted", [False, True])
def test_edits_on_both_sides_conflict_and_show_both_texts(graph, deleted):
    graph.store_query(ADULTS)
    graph.branch_create("work")
    graph.store_query(ADULTS.replace("above", "over"), branch="work")
    if deleted:
        graph.delete_query("adults")
    else:
        graph.store_query(ADULTS.replace("above", "beyond"))
    with pytest.raises(MergeConflict) as caught:
        graph.merge("work")
    (conflict,) = caught.value.conflicts
    assert (conflict.id, conflict.kind) == ("query:adults", "query_conflict")
    assert "over an age" in conflict.message
    assert ("ours: deleted" if deleted else "beyond an age") in conflict.message
    assert [one.id for one in graph.merge_preview("work").conflicts] == ["query:adults"]
    graph.branch_create("copy")
    graph.merge("work", into="copy", resolve={"query:adults": "theirs"})
    assert "over an age" in graph.queries("copy")[0].source
    graph.merge("work", resolve="ours")
    assert [query.source for query in graph.queries()] == ([] if deleted else [ADULTS.replace("above", "beyond")])


def test_equal_edits_do_not_conflict(graph):
    graph.store_query(ADULTS)
    graph.branch_create("work")
    for branch in ("work", "main"):
        graph.store_query(ADULTS.replace("above", "over"), branch=branch)
    graph.merge("work")
    assert "over an age" in graph.queries()[0].source


def test_an_unknown_query_in_resolve_is_refused(graph):
    graph.branch_create("work")
    graph.store_query(ADD, branch="work")
    with pytest.raises(InputError, match="there is no conflict 'query:none'"):
        graph.merge("work", resolve={"query:none": "ours"})


def test_revert_of_a_stored_query(graph):
    graph.store_query(ADULTS)
    changed = graph.store_query(ADULTS.replace("above", "over"), ADD)
    graph.mutate('insert Person { name: "dan" }')
    graph.revert(changed.commit_id)
    assert [(query.name, query.source) for query in graph.queries()] == [("adults", ADULTS)]
    assert graph.get("Person", "dan") is not None


def test_writes_of_rows_keep_the_queries(graph):
    graph.store_query(ADULTS)
    graph.mutate('insert Person { name: "dan" }')
    graph.load([{"type": "Person", "data": {"name": "eve"}}], mode="merge")
    graph.optimize()
    graph.tag_create("t")
    assert names(graph) == names(graph, at="t") == ["adults"]


# -- schemas -----------------------------------------------------------------------------------------


def test_a_schema_change_that_breaks_a_query_is_refused_and_names_it(graph):
    graph.store_query(ADULTS, ADD)
    without_age = SCHEMA.replace("age: I64?", "")
    with pytest.raises(SchemaChangeError, match="'adults'") as caught:
        graph.apply_schema(without_age, allow_data_loss=True)
    assert caught.value.code == "breaks_stored_queries"
    assert "'add'" not in caught.value.message
    assert graph.schema == SCHEMA
    graph.apply_schema(without_age, allow_data_loss=True, allow_query_breakage=True)
    more = without_age.replace("town", "place: String?  town")
    assert graph.apply_schema(more).applied, "a query that is broken already does not block other changes"


def test_a_merge_that_breaks_a_query_is_refused(graph):
    graph.branch_create("work")
    graph.apply_schema(SCHEMA.replace("age: I64?", ""), branch="work", allow_data_loss=True)
    graph.store_query(ADULTS)
    with pytest.raises(SchemaChangeError, match="the merge would break the stored query 'adults'"):
        graph.merge("work")
    graph.delete_query("adults")
    graph.merge("work")


# -- rights ------------------------------------------------------------------------------------------

POLICY = """
version: 2
groups: { staff: [ana], readers: [bo] }
attributes: { declare: {} }
rows: { default: allow }
rules:
  - id: staff
    allow: { actors: { group: staff }, role: editor }
  - id: store
    allow: { actors: { group: staff }, actions: [query_store, query_define, invoke_query] }
  - id: reports
    allow: { actors: { group: readers }, actions: [invoke_query], queries: ["report_*"] }
  - id: elders
    allow: { actors: { group: staff }, actions: [row_read, row_insert], types: [Person] }
"""
REPORT = "query report_names() @definer { match { $p: Person } return { $p.name as name } order { $p.name } }"


def with_policy(graph: og.Graph, tmp_path: Path, actor: str, text: str = POLICY) -> og.Graph:
    (tmp_path / "policy.yaml").write_text(text)
    return graph.with_access(Access(load_policy(tmp_path / "policy.yaml"), actor))


@pytest.mark.parametrize("role", ["viewer", "editor", "maintainer"])
@pytest.mark.parametrize("branches", ["", ", branches: [main]"])
def test_a_role_calls_queries_with_its_own_rights(graph, tmp_path, role, branches):
    rule = f"{{ actors: {{ group: readers }}, role: {role}{branches if role == 'viewer' else ''} }}"
    text = f"""version: 2
groups: {{ staff: [ana], readers: [bo] }}
protected_branches: [main]
rules:
  - {{ id: all, allow: {{ actors: {{ group: staff }}, role: owner }} }}
  - {{ id: role, allow: {rule} }}
"""
    ana, bo = (with_policy(graph, tmp_path, actor, text) for actor in ("ana", "bo"))
    ana.store_query(ADULTS, ADD, REPORT)
    assert names(bo) == ["add", "adults"]
    assert bo.invoke("adults", {"age": 18}).to_pylist() == [{"name": "ana"}, {"name": "cleo"}]
    with pytest.raises(Denied, match="'change' on branch 'main'"):
        bo.invoke("add", {"name": "dan"})
    with pytest.raises(QueryNotFound, match="there is no stored query 'report_names'"):
        bo.invoke("report_names")


def test_a_caller_without_the_right_to_call_is_told_so(graph, tmp_path):
    text = """version: 1
groups: { staff: [ana] }
rules:
  - { id: read, allow: { actors: { group: staff }, actions: [read], branch_scope: any } }
"""
    graph.store_query(ADULTS)
    ana = with_policy(graph, tmp_path, "ana", text)
    said = set()
    for name in ("adults", "unknown"):
        with pytest.raises(Denied, match="no rule allows action 'invoke_query'") as caught:
            ana.invoke(name)
        said.add(caught.value.message)
    assert len(said) == 1, "the denial does not depend on the name"


def test_policy_by_name_and_rights_of_the_definer(graph, tmp_path):
    ana, bo = (with_policy(graph, tmp_path, actor) for actor in ("ana", "bo"))
    ana.store_query(REPORT, ADULTS)
    with pytest.raises(Denied):
        bo.query("match { $p: Person } return { $p.name }")
    assert [row["name"] for row in bo.invoke("report_names").to_pylist()] == ["ana", "bo", "cleo"]
    errors = []
    for name in ("adults", "unknown"):
        with pytest.raises(QueryNotFound) as caught:
            bo.invoke(name, {"age": 1})
        errors.append((caught.value.message.replace(name, "…"), caught.value.hint))
    assert errors[0] == errors[1], "a denied query does not differ from one that is unknown"
    with pytest.raises(Denied):
        bo.store_query(ADD)


KINDS = """
version: 2
groups: { staff: [ana], readers: [bo], writers: [cleo] }
rules:
  - { id: staff, allow: { actors: { group: staff }, role: owner } }
  - { id: work, allow: { actors: { any: true }, actions: [read, change] } }
  - { id: reads, allow: { actors: { group: readers }, actions: [invoke_query], when: '!resource.changes' } }
  - { id: writes, allow: { actors: { group: writers }, actions: [invoke_query], when: 'resource.changes' } }
  - id: own-rights
    deny: { actors: { any: true }, except: { group: staff }, actions: [invoke_query], queries: ["report_*"],
            when: 'resource.definer' }
"""
CALLABLE = {"ana": ["add", "adults", "report_names"], "bo": ["adults"], "cleo": ["add"]}


@pytest.mark.parametrize("form", ["yaml", "cedar"])
@pytest.mark.parametrize("actor", CALLABLE)
def test_rules_read_what_a_stored_query_does(graph, tmp_path, actor, form):
    text, marker = KINDS, "  - { id: reads"
    if form == "cedar":
        text = KINDS[: KINDS.index(marker)]
        (tmp_path / "queries.cedar").write_text("""
            permit (principal in Omnigraph::Group::"readers", action == Omnigraph::Action::"invoke_query",
                    resource is Omnigraph::StoredQuery) when { !resource.changes };
            permit (principal in Omnigraph::Group::"writers", action == Omnigraph::Action::"invoke_query",
                    resource is Omnigraph::StoredQuery) when { resource.changes };
            forbid (principal, action == Omnigraph::Action::"invoke_query", resource is Omnigraph::StoredQuery)
            when { resource.definer } unless { principal in Omnigraph::Group::"staff" };
        """)
    with_policy(graph, tmp_path, "ana", text).store_query(REPORT, ADULTS, ADD)
    caller = with_policy(graph, tmp_path, actor, text)
    assert [query.name for query in caller.queries()] == CALLABLE[actor]
    for name, params in {"report_names": {}, "adults": {"age": 1}, "add": {"name": "new"}}.items():
        if name in CALLABLE[actor]:
            caller.invoke(name, params)
        else:
            with pytest.raises(QueryNotFound):
                caller.invoke(name, params)


def test_a_rule_for_queries_reads_attributes_of_queries_alone(graph, tmp_path):
    wrong = KINDS.replace("!resource.changes", 'resource.owner == "ana"')
    with pytest.raises(PolicyInvalid, match="can read 'name', 'changes' and 'definer' of 'resource' alone"):
        with_policy(graph, tmp_path, "bo", wrong)


def test_a_definer_without_rights_is_denied(graph, tmp_path):
    with_policy(graph, tmp_path, "ana").store_query(REPORT)
    gone = with_policy(graph, tmp_path, "bo", POLICY.replace("staff: [ana]", "staff: [someone]"))
    with pytest.raises(Denied):
        gone.invoke("report_names")


def test_a_commit_of_a_definer_records_both_actors(graph, tmp_path):
    text = "query report_add($name: String) @definer { insert Person { name: $name } }"
    with_policy(graph, tmp_path, "ana").store_query(text)
    with_policy(graph, tmp_path, "bo").invoke("report_add", {"name": "dan"})
    commit = graph.commits()[0]
    assert (commit.actor, commit.metadata) == ("bo", {"definer": "ana"})


def test_another_actor_takes_over_a_query_of_a_departed_definer(graph, tmp_path):
    changed = POLICY.replace("staff: [ana]", "staff: [cleo]")
    with_policy(graph, tmp_path, "ana").store_query(REPORT, ADULTS)
    with pytest.raises(Denied):
        with_policy(graph, tmp_path, "bo", changed).invoke("report_names")
    taken = with_policy(graph, tmp_path, "cleo", changed).store_query(REPORT, ADULTS)
    assert (taken.stored, taken.unchanged) == (("report_names",), ("adults",))
    assert taken.commit_id is not None
    assert len(with_policy(graph, tmp_path, "bo", changed).invoke("report_names").to_pylist()) == 3
    assert graph.store_query(REPORT).unchanged == ("report_names",), "a caller without an actor takes nothing over"
    assert {query.name: query.actor for query in graph.queries()} == {"report_names": "cleo", "adults": "ana"}


def test_a_new_definer_is_merged_and_two_of_them_conflict(graph):
    graph.store_query(REPORT, actor="ana")
    graph.branch_create("draft")
    graph.store_query(REPORT, actor="cleo", branch="draft")
    graph.merge("draft")
    assert graph.queries()[0].actor == "cleo"
    graph.store_query(REPORT, actor="dan", branch="draft")
    graph.store_query(REPORT, actor="eve")
    with pytest.raises(MergeConflict) as caught:
        graph.merge("draft")
    assert "ours, stored by 'eve':" in caught.value.conflicts[0].message
    assert "theirs, stored by 'dan':" in caught.value.conflicts[0].message
    graph.merge("draft", resolve={"query:report_names": "theirs"})
    assert graph.queries()[0].actor == "dan"


def test_two_exposed_queries_have_two_tool_names(graph, tmp_path):
    graph.store_query('query one() @tool_name("find") { match { $p: Person } return { $p.name } }')
    other = 'query two() @tool_name("find") { match { $p: Person } return { $p.name } }'
    with pytest.raises(InputError, match="the stored query 'one' has the tool name 'find'") as caught:
        graph.store_query(other)
    assert caught.value.code == "duplicate_tool_name"
    with pytest.raises(InputError, match="another stored query has the tool name 'find'"):
        with_policy(graph, tmp_path, "ana").store_query("query find() { match { $p: Person } return { $p.name } }")
    graph.store_query(other.replace("@tool_name", "@expose(false) @tool_name"))
    graph.store_query("query one() { match { $p: Person } return { $p.name } }", other)
    assert [query.tool_name for query in graph.queries()] == ["one", "find"]


def test_queries_of_two_branches_with_one_tool_name_conflict(graph):
    text = 'query {}() @tool_name("find") {{ match {{ $p: Person }} return {{ $p.name }} }}'
    graph.branch_create("work")
    graph.store_query(text.format("one"))
    graph.store_query(text.format("two"), branch="work")
    with pytest.raises(MergeConflict) as caught:
        graph.merge("work")
    (conflict,) = caught.value.conflicts
    assert (conflict.id, conflict.kind) == ("query:two", "query_conflict")
    assert "'two' of theirs has the tool name 'find' of 'one'" in conflict.message
    graph.branch_create("copy")
    graph.merge("work", into="copy", resolve={"query:two": "theirs"})
    assert [query.name for query in graph.queries("copy")] == ["two"]
    graph.merge("work", resolve="ours")
    assert [query.name for query in graph.queries()] == ["one"]


def test_definer_needs_a_right_of_its_own(graph, tmp_path):
    text = POLICY.replace("[query_store, query_define, invoke_query]", "[query_store, invoke_query]")
    ana = with_policy(graph, tmp_path, "ana", text)
    ana.store_query(ADULTS)
    with pytest.raises(Denied, match="query_define"):
        ana.store_query(REPORT)


ROWS = """
version: 2
groups: { staff: [ana], readers: [bo] }
rows: { default: allow }
protected_branches: [secret]
rules:
  - { id: staff, allow: { actors: { group: staff }, role: owner } }
  - { id: readers, allow: { actors: { group: readers }, actions: [read, change], branches: [main] } }
  - { id: calls, allow: { actors: { group: readers }, actions: [invoke_query, query_store] } }
  - { id: no-salaries, deny: { actors: { group: readers }, actions: [invoke_query], queries: [salaries] } }
  - id: young
    allow: { actors: { group: readers }, actions: [row_read], types: [Person], when: 'resource.age < 40' }
  - { id: all, allow: { actors: { group: staff }, actions: [row_read, row_insert, row_update], types: [Person] } }
  - { id: town, allow: { actors: { group: staff }, actions: [property_read], types: [Person], properties: [town] } }
"""
OWN = "query own() { match { $p: Person } return { $p.name as name } order { $p.name } }"
TOWNS = 'query towns() { match { $p: Person { town: "zebraword" } } return { $p.name as name } }'


def test_rules_for_rows_hold_in_calls_and_lists(graph, tmp_path):
    ana, bo = (with_policy(graph, tmp_path, actor, ROWS) for actor in ("ana", "bo"))
    ana.store_query(OWN, TOWNS, REPORT, OWN.replace("own", "salaries"))
    assert [row["name"] for row in ana.invoke("own").to_pylist()] == ["ana", "bo", "cleo"]
    assert [row["name"] for row in bo.invoke("own").to_pylist()] == ["ana", "bo"]
    assert names(ana) == ["own", "report_names", "salaries", "towns"]
    assert names(bo) == ["own", "report_names"], "a query of a hidden property does not exist"
    for name in ("towns", "unknown"):
        with pytest.raises(QueryNotFound) as caught:
            bo.invoke(name)
        assert (caught.value.message, caught.value.hint) == (f"there is no stored query '{name}'", None)
    assert [row["name"] for row in bo.invoke("report_names").to_pylist()] == ["ana", "bo", "cleo"]


def test_pages_of_a_definer_are_those_of_the_definer(graph, tmp_path):
    ana, bo = (with_policy(graph, tmp_path, actor, ROWS) for actor in ("ana", "bo"))
    ana.store_query(OWN, REPORT)
    first = bo.invoke("report_names", page=2)
    assert [row["name"] for row in bo.invoke("report_names", page=2, after=first.next).to_pylist()] == ["cleo"]
    own = bo.invoke("own", page=1)
    with pytest.raises(PageCursorRejected):
        ana.invoke("own", page=1, after=own.next)


def test_calls_tell_nothing_of_branches_and_names(graph, tmp_path):
    ana, bo = (with_policy(graph, tmp_path, actor, ROWS) for actor in ("ana", "bo"))
    ana.branch_create("secret")
    ana.store_query(OWN)
    for branch in ("secret", "nowhere"):
        with pytest.raises(Denied, match=f"'{branch}'"):
            bo.invoke("own", branch=branch)
    ana.store_query(OWN.replace("own", "salaries"))
    with pytest.raises(QueryNotFound) as caught:
        bo.delete_query("salarie")
    assert caught.value.hint is None


def test_a_merge_names_no_broken_query_to_a_limited_caller(graph, tmp_path):
    rules = [line for line in ROWS.splitlines() if "id: town" not in line]
    policy = "\n".join(rules).replace("[read, change], branches: [main]", "[read, change, branch_merge]")
    graph.branch_create("side")
    graph.store_query(TOWNS, branch="side")
    for branch in ("main", "side"):
        schema = SCHEMA.replace("town: String?", "")
        graph.apply_schema(schema, branch=branch, allow_query_breakage=True)
    for actor, names_query in (("ana", True), ("bo", False)):
        with pytest.raises(SchemaChangeError) as caught:
            with_policy(graph, tmp_path, actor, policy).merge("side")
        assert caught.value.code == "breaks_stored_queries"
        assert ("towns" in caught.value.message) is names_query
