"""Rules for rows over HTTP: every route has a row in a matrix, and no answer contains a value of a hidden row."""

from __future__ import annotations

import base64
import binascii
import json
import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import OmniGraphError
from omnigraph.operations.authorization.access import Access
from omnigraph.server.route import Route
from omnigraph.server.route_table import ROUTES
from support.guarded_server import SERVER_ADMIN, TOKEN, guarded
from support.route_requests import request_of, text_of
from support.server import Reply, ServerUnderTest
from support.tenants import short_event_streams

CANARY = "zebraword"
NUMBER = 918_273_645
HIDDEN = 1_237
"""The number of hidden notes."""
BO = "token-of-bo"

APPLIES = {
    "read", "query", "explain", "profile", "lint", "change", "changeIfGraphCommit", "mutate", "mutateIfGraphCommit",
    "getSchema", "getSnapshot", "getEntity", "readTable", "export", "getBlob", "listCommits", "getCommit",
    "listQueries", "getQuery", "storeQueries", "storeQuery", "deleteQueries", "deleteQuery", "invokeQuery",
    "invokeQueryIfGraphCommit", "getQueryRows", "validateQueries",
    "getBranch", "listBranches", "createBranch", "updateBranch", "deleteBranch", "listTags", "createTag", "deleteTag",
    "analyze", "ingest", "load", "loadNdjson", "loadArrow", "loadFiles", "embed", "mergeBranches", "previewMerge",
    "getEntityHistory", "getEntityBlame", "getCommitChanges", "revertCommit", "previewRevert", "diff", "pollChanges",
    "streamChanges", "exportBaseline", "search", "getEntityNeighbors", "complete", "hover",
    "diffSummary", "diffGraph", "mcp", "project",
    "listProposals", "propose", "streamProposals", "getProposal", "editProposal", "diffProposal", "proposalConflicts",
    "listComments", "addComment", "editComment", "reviewProposal", "resolveProposal", "checkProposal", "getCheckRows",
    "reportCheck", "landProposal", "closeProposal", "reopenProposal", "listProposalEvents",
}  # fmt: skip
"""Routes that show or change what the caller may see or change, and nothing else."""
REFUSES = {"planSchema", "applySchema"}
"""Routes that are refused to a caller whose rows rules limit."""
MADE: dict[str, Callable[[og.Graph], object]] = {
    "deleteBranch": lambda graph: "made" in graph.branches() or graph.branch_create("made"),
    "deleteTag": lambda graph: (
        graph.tag_create("made-tag") if "made-tag" not in {tag.name for tag in graph.tags()} else None
    ),
    "deleteQuery": lambda graph: graph.store_query(READ.replace("notes", "made")),
}
"""What a route deletes; the order of the tests is arbitrary."""
UNSUCCESSFUL = {"revertCommit", "loadArrow", "loadFiles", "landProposal"}
"""Routes whose request of the tests meets a hidden conflict, or lacks a binary body."""
MAINTAINS = {"optimize", "buildIndices", "cleanup", "recover", "verify"}
"""Routes that treat the whole graph and need the action `maintain`."""
PURGES = {"runPurge", "previewPurge", "resumePurges", "verifyPurges", "redactTexts", "allowPurged", "listPurges"}
"""Routes that treat all history and need the action `purge`, which the caller of the tests does not have."""
WITHOUT_ROWS = {
    "listOperations", "getOperation", "cancelOperation", "listGraphs", "getMe", "getStatus", "getMetrics", "readAudit",
    "listWebhooks", "getPlan", "explainPolicy", "testPolicy", "reload", "health", "ready", "version", "openapi", "docs",
    "errorCodes", "protectedResource", "explorer", "explorerAddress", "explorerConfig", "explorerFile", "format",
}  # fmt: skip
"""Routes whose answers hold no rows and no figures of rows."""

SCHEMA = """
node Note {
    name: String @key
    tenant: String
    text: String? @index
    pay: I64?
    vec: Vector(2)?
    photo: Blob?
}
node Sealed { name: String @key }
edge Cites: Note -> Note { weight: I64? }
edge Holds: Sealed -> Note
"""
POLICY = """version: 2
groups: { staff: [ana], owners: [bo] }
attributes: { declare: { tenant: String }, ana: { tenant: acme } }
rows: { default: allow }
rules:
  - id: staff
    allow: { actors: { group: staff }, role: maintainer }
  - id: staff-changes
    allow: { actors: { group: staff }, actions: [change, schema_apply, branch_create, branch_delete, admin] }
  - id: staff-queries
    allow: { actors: { group: staff }, actions: [query_store, invoke_query] }
  - id: owners
    allow: { actors: { group: owners }, role: owner }
  - id: own-tenant
    allow: { actors: { group: staff }, actions: [row_read, row_insert, row_update, row_delete], types: [Note],
             when: 'resource.tenant == principal.tenant' }
  - id: sealed
    allow: { actors: { group: owners }, actions: [row_read], types: [Sealed] }
  - id: pay
    allow: { actors: { group: owners }, actions: [property_read, property_write], types: [Note], properties: [pay],
             otherwise: mask }
  - id: weight
    allow: { actors: { group: owners }, actions: [property_read], types: [Cites], properties: [weight] }
"""
READ = "query notes() { match { $n: Note } return { $n.name, $n.text, $n.pay, $n.tenant } order { $n.name } }"
QUERIES = [
    READ,
    "query q() { match { $n: Note } return { $n.name, $n.pay } limit 1 }",
    'query q() { match { $n: Note { name: "a" } } return { $n.pay } }',
    "query q() { match { $n: Note } return { count($n) as n, sum($n.pay) as pay } }",
    'query q() { match { $n: Note search($n.text, "apple") } return { $n.name } order { bm25($n.text, "apple") } }',
    f'query q() {{ match {{ $n: Note fuzzy($n.text, "{CANARY[:-1]}x", 2) }} return {{ $n.name }} }}',
    "query q() { match { $n: Note $n cites{1,3} $m } return { $n.name as n, $m.name as m } }",
    "query q() { match { $n: Note } return { $n } }",
    "query q() { match { $s: Sealed } return { $s.name } }",
    "query q() { match { $s: Seale } return { $s.name } }",
    "query q() { match { $n: Note $n $e:cites $m } return { $e.weight } }",
]


def note(name: str, tenant: str, text: str, **more: Any) -> dict[str, Any]:
    return {"type": "Note", "data": {"name": name, "tenant": tenant, "text": text, "pay": NUMBER, **more}}


def make_graph(path: Path) -> og.Graph:
    graph = og.init(path, SCHEMA, sync=False)
    hidden = [note(f"{CANARY}-{n}", "other", f"{CANARY} apple") for n in range(HIDDEN)]
    records = [
        note("a", "acme", "red apple", vec=[1.0, 0.0], photo="base64:aGk="),
        note("b", "acme", "green apple"),
        *hidden,
        {"type": "Sealed", "data": {"name": CANARY}},
        {"edge": "Cites", "from": "a", "to": "b", "data": {"weight": NUMBER}},
        {"edge": "Cites", "from": "b", "to": f"{CANARY}-1", "data": {"weight": NUMBER}},
        {"edge": "Holds", "from": CANARY, "to": "a"},
    ]
    graph.load(records, mode="merge", message="first")
    graph.branch_create("spare")
    returned = f'update Note set {{ text: "{CANARY}" }} where name = "{CANARY}-3" as $n return {{ $n.text as text }}'
    graph.mutate(returned, idempotency_key="k")
    graph.branch_create("side")
    graph.on("side").load([note(f"{CANARY}-side", "other", CANARY)], mode="append")
    graph.branch_create("mine")
    graph.on("mine").load([{"type": "Note", "data": {"name": "m", "tenant": "acme"}}], mode="append")
    graph.tag_create("v1")
    graph.store_query(READ, READ.replace("notes", "all_notes"), READ.replace("notes()", "proposed() @check(some)"))
    graph.branch_create("proposed")
    graph.on("proposed").load([note(f"{CANARY}-new", "other", CANARY), note("p", "acme", "apple")], mode="append")
    return graph


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerUnderTest]:
    graph = make_graph(tmp_path_factory.mktemp("site") / "people.omni")
    extra = "  metrics: {enabled: true}\n  audit: {dir: audit}"
    with short_event_streams(), guarded(graph, POLICY, SERVER_ADMIN, extra) as running:
        yield running


@pytest.fixture
def graph(server: ServerUnderTest) -> og.Graph:
    found = server.holder.current.find_graph(None).graph
    assert found is not None
    return found


def decoded(text: str) -> str:
    """Return a text and every part of it that is base64, decoded."""
    parts = [text]
    for token in re.findall(r"[A-Za-z0-9_\-+/]{16,}={0,2}", text):
        for end in range(4):
            try:
                parts.append(base64.urlsafe_b64decode(token + "=" * end).decode("utf-8", "replace"))
            except (ValueError, binascii.Error):
                continue
    return "\n".join(parts)


def check_hidden(text: str, given: str = "") -> None:
    """Check that a text has no value of a hidden row; `given` is what the request itself contained."""
    shown = decoded(text)
    for secret in (CANARY, str(NUMBER), f"{NUMBER:,}"):
        assert secret in given or secret not in shown, secret
    for count in (HIDDEN, HIDDEN + 2):
        # Ids and times contain any digits. A count has no fraction but zeros.
        found = re.search(rf"(?<![\w.-])({count}|{count:,})(?![\w-]|\.\d*[1-9])", text)
        assert found is None, text[max(0, found.start() - 200) : found.end() + 50]


def check_bytes(reply: Reply) -> None:
    """Check that a body has no number of a masked value in binary form, also where its row has null."""
    text = reply.body.decode("utf-8", "replace")
    parts = [reply.body]
    for token in re.findall(r"[A-Za-z0-9+/]{16,}", text):
        # A token of 4n + 1 letters is no base64.
        parts.append(base64.b64decode(token[: len(token) - (len(token) % 4 == 1)] + "=" * (-len(token) % 4)))
    for stored in (struct.pack("<i", NUMBER), struct.pack("<d", NUMBER)):
        assert not any(stored in part for part in parts), stored


def values(graph: og.Graph) -> dict[str, Any]:
    first = graph.commits(limit=9)[-2].id
    new = {"type": "Note", "data": {"name": "n", "tenant": "acme"}}
    writes = ("change", "mutate", "changeIfGraphCommit", "mutateIfGraphCommit")
    return {
        **{f"{name}.query_source": None for name in writes},
        "query": READ, "query_source": READ, "branch": "main", "type": "Note", "id": "a", "property": "photo",
        "project.property": "vec",
        "commit_id": first, "from": first, "to": "main", "source": "side", "target": "main", "tag": "v1",
        "name": "made", "createTag.name": "made-tag", "createBranch.from": "main", "deleteBranch.branch": "made",
        "updateBranch.branch": "spare", "getBranch.branch": "main", "algorithm": "degrees", "schema_source": SCHEMA,
        "read.name": None, "query.name": None, "mode": "merge", "deleteTag.tag": "made-tag", "cursor": None,
        "change.query": 'insert Note { name: "c1", tenant: "acme" }', "change.name": None, "mutate.name": None,
        "mutate.query": 'insert Note { name: "c2", tenant: "acme" }', "operation_id": "x", "explain.name": None,
        "changeIfGraphCommit.query": 'insert Note { name: "c3", tenant: "acme" }', "changeIfGraphCommit.name": None,
        "mutateIfGraphCommit.query": 'insert Note { name: "c4", tenant: "acme" }', "mutateIfGraphCommit.name": None,
        **{f"{route}.name": "notes" for route in ("getQuery", "invokeQuery", "invokeQueryIfGraphCommit")},
        "getQueryRows.name": "notes",
        **{f"{route}.source": READ.replace("notes", "made") for route in ("storeQueries", "storeQuery")},
        "deleteQueries.name": "all_notes",
        "search.text": "apple", "rank_of": None, "search.types": None, "filters": None,
        **{f"{route}.text": "query q() { match { $s: S } }" for route in ("complete", "hover", "format")},
        "offset": 25, "profile.name": None, "start": "beginning", "data": json.dumps(new), "snapshot": None,
        "loadNdjson.type": None, "mergeBranches.source": "mine",
        "types": None, "type_names": None, "keep": 5, "actor": "ana", "action": "read",
        "jsonrpc": "2.0", "mcp.id": 1, "method": "tools/call", "file": "none.js",
        "mcp.params": {"name": "query", "arguments": {"query": READ}},
    }  # fmt: skip


def proposed(graph: og.Graph) -> dict[str, Any]:
    """Return the values of a new proposal with visible and hidden rows and comments."""
    proposal = graph.on("main").propose("proposed", title="New notes")
    proposal.comment(CANARY, on={"table_key": "node:Note", "row_id": f"{CANARY}-new"})
    proposal.comment(CANARY, on={"table_key": "node:Note", "row_id": "p", "property": "pay"})
    comment = proposal.comment("fine", on={"table_key": "node:Note", "row_id": "p"})
    assert proposal.trial is not None
    return {
        "proposal": proposal.id, "comment": comment.id, "resolved": True, "editComment.text": None, "text": "hello",
        "check": "proposed", "reportCheck.check": "ci", "reportCheck.commit": proposal.trial.commit, "title": "Notes",
        "reviewProposal.verdict": "request_changes",
    }  # fmt: skip


def send(server: ServerUnderTest, route: Route, given: dict[str, Any], **options: Any) -> Reply:
    options.setdefault("headers", {"Prefer": "wait"})
    return request_of(route, given).send(server, **options)


def test_an_unlimited_caller_sees_the_values(server) -> None:
    """The values that other tests look for are in the answers to a caller without limits."""
    for reply in (server.post("/query", {"query": READ}, token=BO), server.post("/export", {}, token=BO)):
        assert CANARY in text_of(reply)
        assert str(NUMBER) in text_of(reply)
    arrow = {"Accept": "application/vnd.apache.arrow.stream"}
    with pytest.raises(AssertionError):
        check_bytes(server.post("/query", {"query": READ}, token=BO, headers=arrow))
    with pytest.raises(AssertionError, match=str(HIDDEN + 2)):
        check_hidden(text_of(server.get("/snapshot", token=BO)))


def test_every_route_has_a_row() -> None:
    groups = [APPLIES, REFUSES, MAINTAINS, PURGES, WITHOUT_ROWS]
    assert sorted(name for group in groups for name in group) == sorted(route.name for route in ROUTES)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_no_answer_contains_a_hidden_value(server, graph, log_text, route: Route) -> None:
    given = values(graph)
    if "{proposal}" in route.path:
        given |= proposed(graph)
    if route.name in MADE:
        MADE[route.name](graph)
    reply = send(server, route, given)
    if route.name in (APPLIES | MAINTAINS) - UNSUCCESSFUL and not route.conditional:
        assert reply.status < 300, reply.body
    if route.name in REFUSES:
        assert reply.status == 403, reply.body
        assert send(server, route, given, token=BO).status == 200
    if route.name in PURGES:
        assert reply.status == 403, reply.body
    assert reply.status < 500, reply.body
    check_hidden(text_of(reply))
    check_bytes(reply)
    typed = send(server, route, given, headers={"Accept": "application/json; values=typed", "Prefer": "wait"})
    check_hidden(text_of(typed))
    check_bytes(typed)
    stream = send(server, route, given, headers={"Accept": "application/vnd.apache.arrow.stream", "Prefer": "wait"})
    check_hidden(text_of(stream))
    check_bytes(stream)
    # Slow queries of other tests are logged with the number of their rows.
    check_hidden("\n".join(line for line in log_text.getvalue().splitlines() if "actor=bo" not in line))
    if "server-timing" in reply.headers and route.scope == "graph":
        assert all(re.fullmatch(r"\w+;dur=\d+", part) for part in reply.headers["server-timing"].split(", "))
    if route.scope != "public":
        assert "private" in reply.headers["cache-control"]
        assert "Authorization" in reply.headers["vary"]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("path", ["/query", "/explain", "/profile", "/lint"])
def test_no_query_shows_a_hidden_value(server, path: str, query: str) -> None:
    for form in ("application/json", "application/x-ndjson", "application/vnd.apache.arrow.stream", "text/csv"):
        reply = server.post(path, {"query": query}, headers={"Accept": form})
        assert reply.status < 500
        check_hidden(text_of(reply), query)
        check_bytes(reply)


def test_a_cursor_of_neighbors_is_rejected_for_a_caller_with_other_rights(server) -> None:
    path = "/entities/Note/b/neighbors?limit=1"
    first = server.get(path, token=BO).json
    assert first["next"] is not None
    after = f"{path}&after={first['next']}"
    assert server.get(after, token=BO).status == 200
    rejected = server.get(after)
    assert (rejected.status, rejected.json["reason"]) == (400, "page_cursor_rejected")


@pytest.mark.parametrize(
    "text",
    [
        f'insert Note {{ name: "{CANARY}-5", tenant: "acme" }}',
        f'update Note set {{ text: "x" }} where name = "{CANARY}-5"',
        f'delete Note where name = "{CANARY}-5"',
        f'insert Cites {{ from: "a", to: "{CANARY}-5" }}',
        'insert Note { name: "new", tenant: "other" }',
        'update Note set { pay: 1 } where name = "a"',
    ],
)
def test_errors_of_writes_show_no_hidden_value(server, text: str) -> None:
    reply = server.post("/mutate", {"query": text})
    assert reply.status < 500
    check_hidden(text_of(reply), text)


def test_pages_and_their_cursors(server) -> None:
    first = server.post("/query", {"query": READ, "page": 1})
    check_hidden(text_of(first))
    cursor = first.json["next"]
    assert server.post("/query", {"query": READ, "page": 1, "after": cursor}).status == 200
    other = server.post("/query", {"query": READ, "page": 1, "after": cursor}, token=BO)
    assert (other.status, other.json["reason"]) == (400, "page_cursor_rejected")


def test_pages_of_a_branch_without_commits(server) -> None:
    body = {"query": READ, "branch": "spare", "page": 1}
    first = server.post("/query", body).json
    assert server.post("/query", {**body, "after": first["next"]}).status == 200


def test_a_catalog_has_no_numbers_whose_gaps_tell_of_hidden_types(server) -> None:
    note = server.get("/schema", params={"form": "json"}).json["nodes"][0]
    assert "number" not in note
    assert all("number" not in each for each in note["properties"])
    assert "number" in server.get("/schema", params={"form": "json"}, token=BO).json["nodes"][0]


def test_a_search_knows_no_hidden_row(server) -> None:
    hidden, unknown = (
        server.post("/search", {"text": f"apple {CANARY}", "by": "words", "rank_of": id}).json
        for id in (f"{CANARY}-1", "no-such-note")
    )
    assert hidden["hits"] == unknown["hits"]
    assert {**hidden["rank_of"][0], "id": "", "message": ""} == {**unknown["rank_of"][0], "id": "", "message": ""}
    for path in (f"/entities/Note/{CANARY}-1/neighbors", "/entities/Note/no-such-note/neighbors"):
        assert server.get(path).status == 404


def test_tags_of_answers_differ_between_callers(server) -> None:
    for path in ("/snapshot", "/schema", "/entities/Note/a"):
        mine, theirs = server.get(path), server.get(path, token=BO)
        assert mine.status == theirs.status == 200
        tag = mine.headers["etag"]
        assert tag != theirs.headers["etag"]
        assert server.get(path, headers={"If-None-Match": tag}).status == 304
        assert server.get(path, headers={"If-None-Match": tag}, token=BO).status == 200


def test_repeated_reads_of_two_callers_stay_apart(server) -> None:
    """Short reads run inline after some repetitions."""
    text = 'query one() { match { $n: Note { name: "a" } } return { $n.pay as pay } }'
    for _ in range(6):
        assert server.post("/query", {"query": text}).json["rows"] == [{"pay": None}]
        assert server.post("/query", {"query": text}, token=BO).json["rows"] == [{"pay": NUMBER}]


def test_figures_of_the_server_count_no_rows(server) -> None:
    """The sums of rows would tell an administrator whom rules limit how many rows others read."""
    text = "query counted() { match { $n: Note } return { $n.name, $n.tenant, $n.pay } }"
    assert len(server.post("/query", {"query": text}, token=BO).json["rows"]) > HIDDEN
    assert server.post("/query", {"query": text}).status == 200
    plans = server.get("/status").json["plans"]
    assert [plan["rows"] for plan in plans if plan["query"] == "counted"] == [0]
    sums = re.findall(r"omnigraph_query_rows_sum\S* (\S+)", text_of(server.get("/metrics")))
    assert {float(number) for number in sums} <= {0.0}


OF_THE_OWNER = {
    "constant": f'query of_the_owner() {{ match {{ $n: Note {{ name: "{CANARY}-1" }} }} return {{ $n.name }} }}',
    "hidden type": "query of_the_owner() { match { $s: Sealed $s holds $n } return { $s.name as s, $n.name as n } }",
    "mutation": f'query of_the_owner() {{ update Note set {{ text: "{CANARY}" }} where name = "{CANARY}-7" }}',
}


@pytest.mark.parametrize("text", OF_THE_OWNER.values(), ids=OF_THE_OWNER)
def test_the_plan_of_another_actor_is_not_found(server, text: str) -> None:
    plan = server.post("/explain", {"query": text}, token=BO).json["plan_hash"]
    theirs, mine = server.get(f"/plans/{plan}", token=BO), server.get(f"/plans/{plan}")
    assert theirs.status == 200
    assert CANARY in text_of(theirs) or "Sealed" in text_of(theirs)
    assert (mine.status, mine.json["reason"]) == (404, "no_such_plan")
    own = server.post("/explain", {"query": READ}).json["plan_hash"]
    assert server.get(f"/plans/{own}").status == 200


def test_plans_with_one_hash_show_the_constants_of_those_who_see_the_same(server) -> None:
    """The hash of a plan does not depend on constants."""
    text = 'query one() {{ match {{ $n: Note {{ name: "{}" }} }} return {{ $n.text }} }}'
    mine = server.post("/explain", {"query": text.format("a")}).json["plan_hash"]
    assert server.post("/explain", {"query": text.format(f"{CANARY}-9")}, token=BO).json["plan_hash"] == mine
    shown = server.get(f"/plans/{mine}")
    assert shown.status == 200
    check_hidden(text_of(shown))


def test_the_status_names_no_hidden_type_and_no_plan_of_others(server) -> None:
    text = "query of_the_owner() { match { $s: Sealed } return { $s.name } }"
    assert server.post("/query", {"query": text}, token=BO).status == 200
    status = server.get("/status").json
    assert {each["table_key"] for each in status["graphs"][0]["tables"]} == {"node:Note", "edge:Cites"}
    assert "of_the_owner" not in {plan["query"] for plan in status["plans"]}


def test_the_outcome_of_an_operation_of_another_actor_is_not_shown(server) -> None:
    """The result of maintenance names all tables."""
    started = server.post("/maintenance/optimize", {}, token=BO)
    assert started.status == 202, started.body
    path = f"/operations/{started.json['id']}"
    while (theirs := server.get(path, token=BO).json)["state"] == "running":
        pass
    mine = server.get(path).json
    assert "node:Sealed" in json.dumps(theirs["result"])
    assert mine["state"] == "done"
    assert "result" not in mine
    assert "Sealed" not in text_of(server.get("/operations"))


def test_an_owner_gets_decisions_on_rows_explained(server) -> None:
    def explain(**body: Any) -> dict[str, Any]:
        reply = server.post("/policy/explain", {"actor": "ana", "type": "Note", **body}, token=BO)
        assert reply.status == 200, reply.body
        return reply.json

    mine, other = explain(id="a"), explain(id=f"{CANARY}-1")
    assert (mine["decision"], mine["rules"], mine["matched_rule"]) == ("allow", ["own-tenant"], "own-tenant")
    assert (other["decision"], other["condition"]) == ("deny", mine["condition"])
    assert {each["rule"]: (each["matched"], each["why"]) for each in other["considered"]} == {
        "own-tenant": (False, "condition"),
        "owners": (False, "actor_not_in_group"),
    }
    assert mine["properties"]["pay"] == "mask"
    assert explain(data={"tenant": "acme"})["decision"] == "allow"
    assert explain(data={"tenant": "acme"}, attributes={"tenant": "beta"})["decision"] == "allow", "the file wins"
    visitor = {"actor": "vic", "attributes": {"tenant": "beta"}}
    assert explain(**visitor, data={"tenant": "beta"})["decision"] == "deny"
    assert explain(**visitor, groups=["staff"], data={"tenant": "beta"})["decision"] == "allow"
    held = explain(id="a", action="row_update")
    assert (held["decision"], held["readable"]) == ("allow", True)


def test_a_limited_caller_learns_decisions_on_itself_and_on_visible_rows(server) -> None:
    own = server.post("/policy/explain", {"type": "Note", "id": "a", "action": "row_update"}).json
    assert (own["decision"], own["actor"], own["considered"], own["reasons"]) == ("allow", "ana", [], [])
    assert "condition" not in own
    hidden, unknown = (
        server.post("/policy/explain", {"type": "Note", "id": id}) for id in (f"{CANARY}-1", "no-such-note")
    )
    assert hidden.status == unknown.status == 404
    assert hidden.json["error"].replace(f"{CANARY}-1", "no-such-note") == unknown.json["error"]
    assert server.post("/policy/explain", {"type": "Sealed", "id": CANARY}).json["reason"] == "type_not_found"
    for body in (
        {"type": "Note", "data": {"tenant": "acme"}},
        {"type": "Note", "id": f"{CANARY}-1", "actor": "bo"},
        {"type": "Sealed", "data": {"name": "x"}, "actor": "ana"},
    ):
        reply = server.post("/policy/explain", body)
        assert reply.status == 403
        check_hidden(text_of(reply), json.dumps(body))
    for wrong in (
        {"type": "Note", "id": "a", "groups": ["owners"]},
        {"type": "Note", "id": "a", "data": {}},
        {"type": "Note", "action": "read"},
        {"id": "a", "action": "read"},
        {},
    ):
        assert server.post("/policy/explain", wrong).status == 400, wrong


def test_cases_on_rows(server) -> None:
    row = {"actor": "ana", "type": "Note", "data": {"tenant": "acme"}}
    cases = [
        {**row, "id": "own", "expect": "allow", "properties": {"pay": "mask", "text": "show"}},
        {**row, "id": "other", "data": {"tenant": "other"}, "expect": "deny"},
        {**row, "id": "wrong view", "expect": "allow", "properties": {"pay": "show"}},
        {
            **row,
            "id": "token",
            "actor": "vic",
            "groups": ["staff"],
            "attributes": {"tenant": "acme"},
            "expect": "allow",
        },
        {"id": "call", "actor": "ana", "action": "invoke_query", "query": "notes", "expect": "allow"},
        {"id": "kind", "actor": "ana", "action": "invoke_query", "query": "x", "changes": True, "expect": "allow"},
    ]
    report = server.post("/policy/test", {"cases": cases}, token=BO).json
    assert {case["id"]: case["ok"] for case in report["cases"]} == {
        "own": True, "other": True, "wrong view": False, "token": True, "call": True, "kind": True,
    }  # fmt: skip
    assert report["cases"][2]["properties"] == {"pay": "mask"}
    assert server.post("/policy/test", {"cases": cases}).status == 403
    assert server.post("/policy/test", {"cases": [{"id": "x", "actor": "a", "expect": "deny"}]}, token=BO).status == 400


def test_an_owner_sees_and_does_everything(server, graph) -> None:
    tables = {each["table_key"]: each for each in server.get("/snapshot", token=BO).json["tables"]}
    assert tables["node:Sealed"]["row_count"] == 1
    assert tables["node:Sealed"]["table_path"]
    mine = {each["table_key"]: each["row_count"] for each in server.get("/snapshot").json["tables"]}
    assert mine.keys() == {"node:Note", "edge:Cites"}
    assert mine["node:Note"] < 20
    assert mine["edge:Cites"] == 1
    plan = {"schema_source": SCHEMA + "node Extra { name: String @key }\n"}
    assert server.post("/schema/plan", plan, token=BO).status == 200
    assert server.post("/schema/plan", plan).status == 403


TOOLS: list[tuple[str, dict[str, Any]]] = [
    ("schema", {}),
    ("schema", {"type": "Sealed"}),
    ("get", {"type": "Note", "id": "a"}),
    ("get", {"type": "Note", "id": f"{CANARY}-1"}),
    ("search", {"text": f"apple {CANARY}"}),
    ("neighbors", {"type": "Note", "id": "b"}),
    ("history", {"type": "Note", "id": "a"}),
    ("history", {"type": "Note", "id": f"{CANARY}-3"}),
    ("diff", {"from": "1", "to": "main"}),
    ("diff", {"from": "main...side"}),
    ("branches", {}),
    ("commits", {}),
    ("notes", {}),
    ("snapshot", {}),
    ("explain_error", {"query": "match { $s: Seale } return { $s.name }"}),
    *(("query", {"query": query}) for query in QUERIES),
    ("change", {"query": 'update Note set { text: "x" } where name = "a" as $n return { $n.pay, $n.text }'}),
    ("change", {"query": f'insert Note {{ name: "{CANARY}-5", tenant: "acme" }}'}),
    ("change", {"query": f'insert Cites {{ from: "a", to: "{CANARY}-5" }}'}),
    ("load", {"records": [{"type": "Note", "data": {"name": f"{CANARY}-6", "tenant": "acme"}}]}),
    ("load", {"records": [{"type": "Sealed", "data": {"name": "s"}}]}),
]


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerUnderTest]:
    """A server whose MCP tools may change branches."""
    graph = make_graph(tmp_path_factory.mktemp("agents") / "people.omni")
    with guarded(graph, POLICY, extra="  mcp: {write: true}") as running:
        yield running


def message(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


@pytest.mark.parametrize(("tool", "arguments"), TOOLS)
def test_no_tool_shows_a_hidden_value(agents, log_text, tool: str, arguments: dict[str, Any]) -> None:
    reply = agents.post("/mcp", message("tools/call", {"name": tool, "arguments": arguments}))
    assert reply.status == 200
    assert "result" in reply.json, reply.body
    check_hidden(text_of(reply), json.dumps(arguments))
    check_hidden(log_text.getvalue(), json.dumps(arguments))


def test_no_resource_shows_a_hidden_type(agents) -> None:
    for name in ("schema", "queries", "branches", "guide", "schema/Note"):
        reply = agents.post("/mcp", message("resources/read", {"uri": f"omnigraph://{name}"}))
        text = text_of(reply)
        assert "result" in reply.json
        check_hidden(text)
        assert "Sealed" not in text
        assert "Holds" not in text
    hidden = agents.post("/mcp", message("resources/read", {"uri": "omnigraph://schema/Sealed"})).json["error"]
    unknown = agents.post("/mcp", message("resources/read", {"uri": "omnigraph://schema/Sealex"})).json["error"]
    assert hidden["message"].replace("Sealed", "Sealex") == unknown["message"]
    for prompt, given in (("explore", {}), ("write_query", {"question": "x"}), ("propose_change", {"change": "x"})):
        reply = agents.post("/mcp", message("prompts/get", {"name": prompt, "arguments": given}))
        assert "result" in reply.json
        assert "Sealed" not in text_of(reply)
    ref = {"type": "ref/resource", "uri": "omnigraph://schema/{type}"}
    params = {"ref": ref, "argument": {"name": "type", "value": "S"}}
    reply = agents.post("/mcp", message("completion/complete", params))
    assert reply.json["result"]["completion"]["values"] == []


def test_an_owner_sees_the_values_by_tools(agents) -> None:
    reply = agents.post("/mcp", message("tools/call", {"name": "query", "arguments": {"query": READ}}), token=BO)
    assert CANARY in text_of(reply)
    assert str(NUMBER) in text_of(reply)


CALLS: dict[str, Callable[[Any], Any]] = {
    "query": lambda graph: graph.query(READ).to_pylist(),
    "pages": lambda graph: [page.to_pylist() for page in graph.pages(READ, page=2)],
    "branch": lambda graph: graph.query(READ, branch="spare").to_pylist(),
    "lint": lambda graph: graph.lint("query q() { match { $s: Sealed } return { $s.name } }").to_dict()["results"],
    "get": lambda graph: [graph.get("Note", id) for id in ("a", f"{CANARY}-1")],
    "hidden type": lambda graph: graph.get("Sealed", CANARY),
    "blob": lambda graph: graph.blob("Note", "a", "photo").read(),
    "hidden blob": lambda graph: graph.blob("Note", f"{CANARY}-1", "photo").read(),
    "export": lambda graph: list(graph.export(branch="spare")),
    "to_arrow": lambda graph: graph.to_arrow("Note", branch="spare").to_pylist(),
    "networkx": lambda graph: sorted(graph.to_networkx(branch="spare").edges),
    "snapshot": lambda graph: graph.snapshot("spare").to_json(),
    "schema": lambda graph: graph.schema,
    "catalog": lambda graph: sorted(type_.table_key for type_ in graph.catalog().tables()),
    "commits": lambda graph: [commit.to_json() for commit in graph.commits("spare")],
    "head": lambda graph: graph.head("spare"),
    "branches": lambda graph: "spare" in graph.branches(),
    "tags": lambda graph: [tag for tag in graph.tags() if tag.name == "v1"],
    "queries": lambda graph: [query.name for query in graph.queries()],
    "invoke": lambda graph: graph.invoke("notes").to_pylist(),
    "plan_schema": lambda graph: graph.plan_schema(SCHEMA),
    "diff": lambda graph: [change.to_json() for change in graph.diff(1, "spare")],
    "history": lambda graph: [change.to_json() for change in graph.history("Note", "a", branch="spare")],
}
"""Reads that a client makes of a server and of a graph in its process."""
REFUSED: dict[str, Callable[[Any], Any]] = {
    "insert": lambda graph: graph.mutate('insert Note { name: "new", tenant: "other" }'),
    "hidden end": lambda graph: graph.mutate(f'insert Cites {{ from: "a", to: "{CANARY}-5" }}'),
}
"""Writes that are refused to `ana`."""


CALLERS = [*(("ana", name) for name in (*CALLS, *REFUSED)), *(("bo", name) for name in CALLS)]


@pytest.mark.parametrize(("actor", "name"), CALLERS)
def test_a_client_sees_what_an_opened_graph_shows(server, graph, actor: str, name: str) -> None:
    policy = server.holder.current.find_graph(None).policy
    embedded = graph.with_access(Access(policy, actor))
    with og.connect(server.url, token=TOKEN if actor == "ana" else BO) as remote:
        call = {**CALLS, **REFUSED}[name]
        assert outcome(remote, call) == outcome(embedded, call)


def outcome(graph: Any, call: Callable[[Any], Any]) -> Any:
    """Return the result of a call, or the class and the text of its error."""
    try:
        return call(graph)
    except OmniGraphError as error:
        return type(error).__name__, error.code, error.message


def test_rules_that_no_longer_fit_show_nothing(tmp_path: Path) -> None:
    graph = make_graph(tmp_path / "people.omni")
    with guarded(graph, POLICY) as server:
        assert server.get("/snapshot").status == 200
        graph.apply_schema(SCHEMA.replace("    tenant: String\n", ""), allow_data_loss=True, allow_query_breakage=True)
        reply = server.get("/snapshot")
        assert reply.status == 403
        assert "tenant" not in text_of(reply)
        report = server.holder.reload("test")
        assert not report.ok
        assert "do not fit the schema" in (report.error or "")
