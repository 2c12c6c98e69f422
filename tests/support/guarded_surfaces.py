"""A small graph with hidden rows and values, and every surface that shows or changes it, for an actor with limits."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import omnigraph as og
from omnigraph.errors import OmniGraphError
from omnigraph.graph_handle import context_of
from omnigraph.graph_queries import GraphQueries
from omnigraph.operations.authorization.access import Access
from omnigraph.operations.exploration.projection import project
from omnigraph.policy.decide import Policy
from omnigraph.policy.load import parse_policy_text

SCHEMA = """
interface Named { title: String }
node Note implements Named {
    name: String @key
    title: String
    tenant: String
    text: String? @index
    code: String? @unique
    pay: I64?
    vec: Vector(2)?
    photo: Blob?
}
node Page implements Named { name: String @key  title: String  tenant: String }
node Sealed { name: String @key }
edge Cites: Note -> Note { weight: I64?  kind: String? }
edge Links: Note -> Note
edge Holds: Sealed -> Note
"""
POLICY = """version: 2
groups: { staff: [ana], owners: [bo], readers: [cleo] }
attributes: { declare: { tenant: String }, ana: { tenant: acme }, cleo: { tenant: other } }
rows: { default: allow }
rules:
  - { id: work, allow: { actors: { any: true }, role: maintainer } }
  - id: more
    allow: { actors: { any: true }, actions: [change, schema_apply, branch_create, query_store, invoke_query] }
  - { id: owners, allow: { actors: { group: owners }, role: owner } }
  - id: own-tenant
    allow: { actors: { any: true }, actions: [row_read, row_insert, row_update, row_delete], types: [Note, Page],
             when: 'resource.tenant == principal.tenant' }
  - { id: sealed, allow: { actors: { group: owners }, actions: [row_read], types: [Sealed] } }
  - id: locked
    deny: { actors: { group: staff }, actions: [row_read], types: [Cites], when: 'resource.kind == "x"' }
  - { id: draft, deny: { actors: { group: staff }, actions: [row_read], types: [Page], branches: [draft] } }
  - id: pay
    allow: { actors: { group: owners }, actions: [property_read, property_write], types: [Note], properties: [pay],
             otherwise: mask }
  - id: photo
    allow: { actors: { group: owners }, actions: [property_read], types: [Note], properties: [photo], otherwise: mask }
  - id: weight
    allow: { actors: { group: owners }, actions: [property_read], types: [Cites], properties: [weight] }
  - id: weight-of-readers
    allow: { actors: { group: readers }, actions: [property_read], types: [Cites], properties: [weight] }
"""


LINKS = [("a", "b"), ("b", "a"), ("b", "h1"), ("h1", "b"), ("h1", "c"), ("h2", "h2"), ("c", "c"), ("c", "h3")]


def note(name: str, tenant: str, **more: Any) -> dict[str, Any]:
    data = {"name": name, "title": f"Title {name}", "tenant": tenant, "text": f"apple {name}", "pay": 7, **more}
    return {"type": "Note", "data": data}


def cites(source: str, target: str, kind: str = "y") -> dict[str, Any]:
    return {"edge": "Cites", "from": source, "to": target, "data": {"weight": 3, "kind": kind}}


def make(folder: Path) -> None:
    """Create the graph: rows of two tenants, and a branch, a tag, queries and a proposal that concern both."""
    graph = og.init(folder, SCHEMA, sync=False)
    hidden = [note(f"h{at}", "other", code=f"c{at}", vec=[1.0, at / 9], photo="base64:aGk=") for at in range(6)]
    graph.load(
        [
            note("a", "acme", vec=[1.0, 0.0], photo="base64:aGk="), note("b", "acme", vec=[0.0, 1.0]), *hidden,
            note("c", "acme"), {"type": "Page", "data": {"name": "p", "title": "Page", "tenant": "acme"}},
            {"type": "Page", "data": {"name": "q", "title": "Quiet", "tenant": "other"}},
            {"type": "Sealed", "data": {"name": "s"}}, {"edge": "Holds", "from": "s", "to": "a"},
            cites("a", "b"), cites("b", "h1"), cites("h1", "c"), cites("a", "c", "x"), cites("h2", "h2"),
            cites("c", "c"), cites("c", "a", "x"),
            *({"edge": "Links", "from": source, "to": target} for source, target in LINKS),
        ],
        mode="merge", message="first",
    )  # fmt: skip
    graph.mutate('update Note set { text: "pear", pay: 9 } where name = "a"', message="second")
    graph.mutate('update Note set { text: "pear" } where name = "h1"', message="third")
    graph.mutate('update Note set { tenant: "acme" } where name = "h5"', message="fourth")
    graph.branch_create("side")
    side = graph.on("side")
    side.load([note("h9", "other"), note("d", "acme"), cites("d", "a")], mode="append")
    side.mutate('update Note set { pay: 11 } where name = "b"')
    side.mutate('delete Note where name = "h2"')
    graph.branch_create("clash")
    graph.on("clash").mutate('update Note set { text: "x" } where name in ["h3", "c"]')
    graph.mutate('update Note set { text: "y" } where name in ["h3", "c"]')
    graph.branch_create("mine")
    graph.on("mine").mutate('update Note set { text: "z" } where name = "c"')
    graph.branch_create("moved")
    graph.on("moved").apply_schema(SCHEMA + "node Extra { name: String @key }\n")
    graph.tag_create("v1")
    sealed = "query sealed() { match { $s: Sealed } return { $s.name } }"
    graph.store_query("query notes() { match { $n: Note } return { $n.name } order { $n.name } }", sealed)
    proposal = graph.propose("side", title="Side")
    proposal.comment("on h9", on={"table_key": "node:Note", "row_id": "h9"})
    proposal.comment("on pay", on={"table_key": "node:Note", "row_id": "d", "property": "pay"})


class World:
    """A copy of the graph, opened by several actors with the policy."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._policy = Policy(parse_policy_text(POLICY))
        self._open: og.Graph | None = None

    def _as(self, actor: str) -> og.Graph:
        if self._open is None:
            self._open = og.open(self.folder)
        return self._open.with_access(Access(self._policy, actor))

    @property
    def ana(self) -> og.Graph:
        return self._as("ana")

    @property
    def bo(self) -> og.Graph:
        return self._as("bo")

    @property
    def cleo(self) -> og.Graph:
        return self._as("cleo")


def told(call: Callable[[], Any]) -> str:
    """Return a result or an error as text, without ids and times of commits."""
    try:
        text = repr(call())
    except OmniGraphError as error:
        text = f"{type(error).__name__}: {error}"
    return re.sub(r"[0-9A-HJKMNP-TV-Z]{26}|\d{4}-\d\d-\d\dT[\d:.]+Z?|datetime\([^)]*\)|\d+\.\d+ ?ms|0x\w+", "*", text)


QUERIES = {
    "scan": "match { $n: Note } return { $n.name as n, $n.pay as pay, $n.text as t } order { $n.name }",
    "key": 'match { $n: Note { name: "h1" } } return { $n.text as t }',
    "hop": "match { $n: Note $n cites $m } return { $n.name as n, $m.name as m } order { $n.name, $m.name }",
    "from": 'match { $n: Note { name: "b" } $n cites $m } return { $m.name as m }',
    "hops": "match { $n: Note $n cites{1,3} $m } return { $n.name as n, $m.name as m } order { $n.name, $m.name }",
    "back": 'match { $m: Note { name: "c" } $n cites $m } return { $n.name as n } order { $n.name }',
    "loop": "match { $n: Note $n cites $n } return { $n.name as n } order { $n.name }",
    "closed": "match { $n: Note $n cites $m $m cites $n } return { $n.name as n } order { $n.name }",
    "links": "match { $n: Note $n links $m } return { $n.name as n, $m.name as m } order { $n.name, $m.name }",
    "linked": 'match { $n: Note { name: "b" } $n links $m } return { $m.name as m } order { $m.name }',
    "link back": 'match { $m: Note { name: "b" } $n links $m } return { $n.name as n } order { $n.name }',
    "link hops": 'match { $n: Note { name: "a" } $n links{1,3} $m } return { $m.name as m } order { $m.name }',
    "link loops": "match { $n: Note $n links $n } return { $n.name as n } order { $n.name }",
    "link pairs": "match { $n: Note $n links $m $m links $n } return { $n.name as n, $m.name as m } order { $n.name }",
    "link edges": "match { $n: Note $n $e:links $m } return { $n.name as n, count($e) as c } order { $n.name }",
    "link counts": "match { $n: Note $n links $m } return { count($m) as c }",
    "link groups": "match { $n: Note $n links $m } return { $n.name as n, count($m) as c } order { $n.name }",
    "either": "match { $n: Note $n links|cites $m } return { $n.name as n, $m.name as m } order { $n.name, $m.name }",
    "edges": "match { $n: Note $n $e:cites $m } return { $e.kind as k, $n.name as n } order { $n.name }",
    "not": "match { $n: Note not { $n cites $m } } return { $n.name as n } order { $n.name }",
    "optional": "match { $n: Note optional { $n cites $m } } return { $n.name as n, count($m) as c } order { $n.name }",
    "union": "match { $n: Named } return { $n.title as t } order { $n.title }",
    "counts": "match { $n: Note } return { count($n) as c, sum($n.pay) as pay }",
    "degree": "match { $n: Note $n cites $m } return { count($m) as c }",
    "words": 'match { $n: Note search($n.text, "apple") } return { $n.name as n } order { bm25($n.text, "apple") }',
    "near": "match { $n: Note } return { $n.name as n } order { nearest($n.vec, [1.0, 0.1]) } limit 4",
    "whole": "match { $n: Note } return { $n } order { $n.name }",
    "sealed": "match { $s: Sealed } return { $s.name as n }",
    "weight": "match { $n: Note $n $e:cites $m } return { $e.weight as w }",
}
WRITES = {
    "insert": 'insert Note { name: "n", title: "t", tenant: "other" }',
    "key": 'insert Note { name: "h1", title: "t", tenant: "acme" }',
    "code": 'insert Note { name: "n", title: "t", tenant: "acme", code: "c1" }',
    "end": 'insert Cites { from: "a", to: "h1" }',
    "update": 'update Note set { text: "x" } where name = "h1"',
    "where": 'update Note set { text: "x" } where pay = 7 as $n return { $n.name as n }',
    "away": 'update Note set { tenant: "other" } where name = "a"',
    "pay": 'update Note set { pay: 1 } where name = "a"',
    "copy": 'update Note set { text: concat("p", to_string(pay)) } where name = "a" as $n return { $n.text as t }',
    "delete": 'delete Note where name = "h1"',
    "hidden edges": 'delete Note where name = "b"',
    "edge": 'delete Cites where from = "a"',
    "upsert": 'upsert Note { name: "h1", title: "t", tenant: "acme" } new { text: "n" } existing { text: "e" }',
    "returned": 'update Note set { text: "x" } where name = "a" as $n return { $n.pay as pay, $n.text as t }',
}


def _each(texts: dict[str, str], run: Callable[[str], Any]) -> dict[str, str]:
    return {name: told(lambda text=text: run(text)) for name, text in texts.items()}  # type: ignore[misc]


def queries(world: World) -> Any:
    first = _each(QUERIES, lambda text: world.bo.query(text).to_pylist())
    again = [_each(QUERIES, lambda text: world.ana.query(text).to_pylist()) for _ in range(2)]
    return again, _each(QUERIES, lambda text: world.cleo.query(text).to_pylist()), len(first)


def tables(world: World) -> Any:
    ana = world.ana
    return [
        told(lambda: [ana.get("Note", id) for id in ("a", "h1")]),
        told(lambda: [ana.blob("Note", id, "photo") is None for id in ("a",)]),
        told(lambda: ana.blob("Note", "h1", "photo").read()),
        told(lambda: ana.to_arrow("Note").to_pylist()),
        told(lambda: ana.to_arrow("Cites").to_pylist()),
        told(lambda: [batch.to_pylist() for batch in ana.to_batches("Note", columns=["name", "pay", "text"])]),
        told(lambda: sorted(ana.to_networkx().edges)),
        told(lambda: list(ana.export())),
        told(lambda: ana.snapshot().to_json()),
        told(lambda: re.sub(r"\s+", " ", ana._repr_html_())),
        told(lambda: ana.snapshot().commit),
    ]


def files(world: World) -> Any:
    def exported(form: str) -> Any:
        out = world.folder / f"out.{form}"
        rows = world.ana.export(out, format=form)  # type: ignore[call-overload]
        return rows, out.is_file() and out.read_text(encoding="utf-8")

    return [told(lambda form=form: exported(form)) for form in ("parquet", "jsonl", "graphml")]  # type: ignore[misc]


def _block(block: Any) -> Any:
    return block.to_json(), block.commit.changed, sorted(block.commit.metadata)


def _cause(change: Any) -> Any:
    return change.to_json(), change.commit.changed


def history(world: World) -> Any:
    ana = world.ana
    cursor = world.cleo.changes(start="now").cursor
    return [
        told(lambda: [change.to_json() for change in ana.diff("v1", "side")]),
        told(lambda: [change.to_json() for change in ana.diff(1, "main")]),
        told(lambda: [change.to_json() for change in ana.diff(1, "main", limit=2)]),
        told(lambda: ana.diff_summary(1, "main").to_json()),
        told(lambda: ana.diff_graph(1, "main").to_json()),
        told(lambda: [_block(ana.commit_changes(commit.id)) for commit in world.bo.commits()]),
        told(lambda: [_block(block) for block in ana.changes(start="beginning").blocks]),
        told(lambda: ana.changes(cursor).to_json()),
        told(lambda: list(ana.changes_baseline())),
        told(lambda: [_cause(change) for id in ("a", "h1", "h5") for change in ana.history("Note", id)]),
        told(lambda: [_cause(one) for one in ana.blame("Note", "a")]),
        told(lambda: [one.to_json() for one in ana.blame("Note", "h1")]),
        told(lambda: [commit.to_json() for commit in ana.commits()]),
        told(lambda: [ana.commit(commit.id).to_json() for commit in world.bo.commits()]),
        told(lambda: [(len(one.head.pins), one.commit.changed) for one in ana.branch_status()]),
        told(lambda: [len(one.pins) for one in (ana.head("side"), *ana.tags())]),
        told(lambda: len(ana.branch_update("side", description="x").pins)),
        told(lambda: len(ana.tag_create("v2").pins)),
        told(lambda: len(ana.branch_create("draft").pins)),
        told(lambda: len(ana.branch_create("new").pins)),
        told(lambda: ana.export_diff(1, "main", world.folder / "diff")),
    ]


def pages(world: World) -> Any:
    text = QUERIES["scan"]
    mine, theirs = world.ana.query(text, page=1), world.cleo.query(text, page=1)
    found = world.cleo.search("apple", by="words", limit=1)
    return [
        told(lambda: world.ana.query(text, page=1, after=mine.next).to_pylist()),
        told(lambda: world.ana.query(text, page=1, after=theirs.next).to_pylist()),
        told(lambda: [page.to_pylist() for page in world.ana.pages(text, page=2)]),
        told(lambda: world.ana.search("apple", by="words", limit=1, after=found.next).to_json()),
    ]


def _known_plan(graph: og.Graph, plan_hash: str) -> Any:
    context = context_of(graph)
    return GraphQueries(context).explain_known(context.snapshot("main"), plan_hash)


def exploration(world: World) -> Any:
    ana = world.ana
    return [
        told(lambda: ana.search("apple pear", by="words").to_json()),
        told(lambda: ana.search("apple", by="words", rank_of="h1").to_json()),
        told(lambda: [ana.neighbors("Note", id).to_json() for id in ("a", "b", "c")]),
        told(lambda: ana.neighbors("Note", "h1").to_json()),
        told(lambda: project(context_of(ana), context_of(ana).snapshot("main"), "Note", "vec")),
        told(lambda: {name: table.to_pylist() for name, table in ana.analyze("components").tables.items()}),
        told(lambda: ana.analyze("components", nodes=["Note"], edges=["Cites"], write="pay")),
        told(lambda: ana.catalog()),
        told(lambda: ana.schema),
        told(lambda: [query.name for query in ana.queries()]),
        told(lambda: [ana.invoke(name).to_pylist() for name in ("notes", "sealed")]),
        told(lambda: ana.store_query("query s() { match { $s: Sealed } return { $s.name } }")),
        told(lambda: str(ana.explain(QUERIES["hop"]))),
        told(lambda: str(world.bo.explain(QUERIES["hop"]))),
        told(lambda: _known_plan(ana, world.bo.explain(QUERIES["sealed"]).plan_hash)),
        told(lambda: str(ana.profile(QUERIES["hop"])).splitlines()[0]),
        told(lambda: ana.plan_schema(SCHEMA + "node New { name: String @key }\n").steps),
        told(lambda: ana.apply_schema(SCHEMA + "node New { name: String @key }\n").steps),
    ]


def sql(world: World) -> Any:
    return [
        told(lambda: world.ana.sql('select name, pay from "Note" order by name').to_pylist()),
        told(lambda: world.ana.sql('select src, dst from "Cites" order by src, dst').to_pylist()),
    ]


def writes(world: World) -> Any:
    def run(text: str) -> Any:
        result = world.ana.mutate(text)
        return result.rows if hasattr(result, "rows") else result

    return _each(WRITES, run), world.bo.query(QUERIES["scan"]).to_pylist()


def loads(world: World) -> Any:
    rows = {
        "hidden id": [note("h1", "acme")],
        "own": [{"type": "Note", "data": {"name": "a", "title": "t", "tenant": "acme"}}],
        "hidden end": [{"edge": "Cites", "from": "a", "to": "h1"}],
        "other": [note("n", "other")],
        "code": [{"type": "Note", "data": {"name": "n", "title": "t", "tenant": "acme", "code": "c1"}}],
        "edge": [{"edge": "Cites", "from": "a", "to": "c", "data": {"kind": "y"}}],
    }
    found = {}
    for name, records in rows.items():
        for mode in ("append", "merge"):
            found[name, mode] = told(lambda records=records, mode=mode: world.ana.load(records, mode=mode).to_json())  # type: ignore[misc]
    found["overwrite"] = told(lambda: world.ana.load([note("a", "acme")], mode="overwrite").to_json())
    return found, world.bo.query(QUERIES["whole"]).to_pylist()


def merges(world: World) -> Any:
    ana, first = world.ana, world.bo.commits()[-2].id
    second = next(commit.id for commit in world.bo.commits() if commit.message == "second")
    third = next(commit.id for commit in world.bo.commits() if commit.message == "third")
    return [
        told(lambda: ana.merge_preview("side").to_json()),
        told(lambda: ana.merge_preview("clash").to_json()),
        told(lambda: ana.merge_preview("moved").to_json()),
        told(lambda: ana.revert_preview(first).to_json()),
        told(lambda: ana.revert_preview(second).to_json()),
        told(lambda: ana.merge("side").outcome),
        told(lambda: ana.merge("clash").outcome),
        told(lambda: ana.merge("clash", resolve={"*": "ours"}).outcome),
        told(lambda: ana.merge("moved").outcome),
        told(lambda: ana.merge("main", "draft").outcome),
        told(lambda: ana.revert(third).commit_id is None),
        told(lambda: ana.revert(second).commit_id is None),
        told(lambda: ana.merge("mine").outcome),
        world.bo.query(QUERIES["scan"]).to_pylist(),
    ]


def proposals(world: World) -> Any:
    (listed,) = world.ana.proposals()
    proposal = world.ana.proposal(listed.id)
    return [
        told(lambda: proposal.to_json()),
        told(lambda: [change.to_json() for change in proposal.diff()]),
        told(lambda: [one.text for one in proposal.comments().comments]),
        told(lambda: proposal.conflicts().to_json()),
        told(lambda: [event.to_json() for event in proposal.events()]),
        told(lambda: proposal.comment("x", on={"table_key": "node:Note", "row_id": "h9"}).text),
        told(lambda: proposal.land()),
    ]


SURFACES: dict[str, Callable[[World], Any]] = {
    each.__name__: each
    for each in (queries, tables, files, history, pages, exploration, sql, writes, loads, merges, proposals)
}


def observe(origin: Path, folder: Path, surface: str) -> Any:
    """Return what a surface shows of a new copy of the graph."""
    shutil.copytree(origin, folder)
    try:
        return SURFACES[surface](World(folder))
    finally:
        shutil.rmtree(folder)
