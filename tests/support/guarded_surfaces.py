"""Every surface that shows or changes a graph with hidden rows and values, for an actor with limits."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import omnigraph as og
from omnigraph.engine import tuning
from omnigraph.graph_handle import context_of
from omnigraph.graph_proposals import proposal_feed
from omnigraph.graph_queries import GraphQueries
from omnigraph.operations.exploration.projection import project
from support.guarded_graph import SCHEMA, World, edge, note, row, told

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
    "upsert new": 'upsert Note { name: "h1" } new { title: "t", tenant: "acme" }',
    "unseen": 'insert Drop { name: "x" } as $d return { $d.name as n }',
    "heads": 'insert Heads { from: "a", to: "p" }',
    "returned": 'update Note set { text: "x" } where name = "a" as $n return { $n.pay as pay, $n.text as t }',
}


EDGES = ("a-b", "b-h1", "a-c", "c-c")
"""Visible and hidden edges of Cites."""


def _each(texts: dict[str, str], run: Callable[[str], Any]) -> dict[str, str]:
    return {name: told(lambda text=text: run(text)) for name, text in texts.items()}  # type: ignore[misc]


def queries(world: World) -> Any:
    first = _each(QUERIES, lambda text: world.bo.query(text).to_pylist())
    found = [
        _each(QUERIES, lambda text, actor=actor: getattr(world, actor).query(text).to_pylist())  # type: ignore[misc]
        for actor in ("ana", "ana", "cleo", "ana")
    ]
    return found, len(first)


def large(world: World) -> Any:
    """Read with the settings of large tables, in which few rows are judged without a mask."""
    few = tuning.replaced(
        complete_column_rows=0, take_row_cost=1, rows_judged_before_mask=1_000, visible_steps_min=1_000
    )

    def cold(read: Callable[[og.Graph], Any]) -> str:
        return told(lambda: read(World(world.folder).ana))

    with few:
        rows = {
            name: cold(lambda ana, text=text: ana.query(text).to_pylist())
            for name, text in QUERIES.items()
            if "links" in text
        }  # type: ignore[misc]
        return rows, [cold(lambda ana, id=id: ana.get("Cites", id)) for id in EDGES]  # type: ignore[misc]


def parts(world: World) -> Any:
    """Ask the visible tables and adjacencies themselves, also what operators do not ask of hidden nodes."""
    context = context_of(world.ana)
    view = context.view(context.snapshot("main"))
    assert view is not None
    nodes = np.arange(view.context.type_table("node:Note").row_count)
    near, far = (ends.ravel() for ends in np.meshgrid(nodes, nodes, indexing="ij"))
    found: list[Any] = []
    for name in ("Cites", "Links"):
        adjacency = view.context.adjacency(name)
        found += [adjacency.loops("out").tolist(), adjacency.neighbours("out").connected(near, far).tolist()]
    commit = world.whole.on("sealed").commits()[0]
    return [found, [view.hides_rows(key) for key in ("node:Note", "node:Free", "edge:Reads", "edge:Writes")],
            context.own_commit(commit).changed]  # fmt: skip


def tables(world: World) -> Any:
    ana = world.ana
    return [
        told(lambda: [ana.get("Note", id) for id in ("a", "h1")]),
        told(lambda: [ana.get("Cites", id) for id in EDGES]),
        told(lambda: [ana.blob("Note", id, "photo") is None for id in ("a",)]),
        told(lambda: ana.blob("Note", "h1", "photo").read()),
        told(lambda: ana.to_arrow("Note").to_pylist()),
        *(told(lambda name=name: ana.to_arrow(name).to_pylist()) for name in ("Cites", "Reads", "Writes")),  # type: ignore[misc]
        told(lambda: [batch.to_pylist() for batch in ana.to_batches("Note", columns=["name", "pay", "text"])]),
        told(lambda: sorted(ana.to_networkx().edges)),
        told(lambda: sorted(map(str, ana.to_rustworkx()[1]))),
        told(lambda: list(ana.export())),
        told(lambda: ana.snapshot().to_json()),
        told(lambda: re.sub(r"\s+", " ", ana._repr_html_())),
        told(lambda: ana.snapshot(branch="sealed").commit),
    ]


def files(world: World) -> Any:
    def exported(form: str) -> Any:
        out = world.folder / f"out.{form}"
        rows = world.ana.export(out, format=form)  # type: ignore[call-overload]
        return rows, out.is_file() and out.read_text(encoding="utf-8")

    def parted() -> Any:
        world.ana.export(world.folder / "parts", format="jsonl", partitioned=True)
        return [path.read_text(encoding="utf-8") for path in sorted((world.folder / "parts").glob("*.jsonl"))]

    return [*(told(lambda form=form: exported(form)) for form in ("parquet", "jsonl", "graphml")), told(parted)]  # type: ignore[misc]


def _block(block: Any) -> Any:
    return block.to_json(), block.commit.changed, sorted(block.commit.metadata)


def _feed(graph: og.Graph) -> Any:
    found, polled = [], graph.changes(start="beginning")
    for _ in range(50):
        found += [_block(block) for block in polled.blocks]
        if polled.caught_up:
            break
        polled = graph.changes(polled.cursor, page=polled.page)
    return found


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
        *(told(lambda id=commit.id: _block(ana.commit_changes(id))) for commit in world.bo.commits()),  # type: ignore[misc]
        told(lambda: _block(ana.commit_changes(world.bo.commits("sealed")[0].id))),
        told(lambda: _feed(ana)),
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
        told(lambda: len(ana.branch_create("draft2").pins)),
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
        told(lambda: _known_plan(ana, ana.explain(QUERIES["scan"]).plan_hash)),
        told(lambda: ana.validate_queries(branch="broken").to_json()),
        told(lambda: str(ana.profile(QUERIES["hop"])).splitlines()[0]),
        told(lambda: ana.plan_schema(SCHEMA + "node New { name: String @key }\n").steps),
        told(lambda: ana.apply_schema(SCHEMA + "node New { name: String @key }\n").steps),
    ]


def sql(world: World) -> Any:
    return [
        told(lambda: world.ana.sql('select name, pay from "Note" order by name').to_pylist()),
        told(lambda: world.ana.sql('select src, dst from "Cites" order by src, dst').to_pylist()),
        told(lambda: world.ana.duckdb(queries={"v": "pages"}).sql("select * from v").fetchall()),
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
        "hidden edge": [{"edge": "Cites", "from": "a", "to": "c", "data": {"kind": "x"}}],
        "hidden edge id": [edge("Cites", "a", "b", id="a-c", kind="z")],
        "masked edge": [{"edge": "Links", "from": "a", "to": "b", "data": {"mark": 1}}],
        "part": [row("Note", name="h1", text="x")],
    }
    found = {}
    for name, records in rows.items():
        for mode in ("append", "merge"):
            found[name, mode] = told(lambda records=records, mode=mode: world.ana.load(records, mode=mode).to_json())  # type: ignore[misc]
    found["free"] = told(lambda: world.ana.load([row("Free", name="g")], mode="overwrite").to_json())
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
        *(told(lambda name=name: ana.merge_preview(name).to_json()) for name in ("unique", "unsealed", "quiet")),  # type: ignore[misc]
        told(lambda: ana.merge_preview("pair", resolve="columns").to_json()),
        told(lambda: ana.merge_preview("unique", resolve={"node:Note:h8": "ours"}).to_json()),
        told(lambda: ana.merge("unique").outcome),
        told(lambda: world.bo.merge("quiet").outcome),
        told(lambda: ana.merge("clash").outcome),
        told(lambda: ana.merge("clash", resolve={"node:Note:h3": "ours"}).outcome),
        told(lambda: ana.merge("clash", resolve={"*": "ours"}).outcome),
        told(lambda: ana.merge("moved").outcome),
        told(lambda: ana.merge("main", "draft").outcome),
        told(lambda: ana.revert(third).commit_id is None),
        told(lambda: ana.revert(second).commit_id is None),
        told(lambda: ana.merge("mine").outcome),
        world.bo.query(QUERIES["scan"]).to_pylist(),
    ]


def proposals(world: World) -> Any:
    ana = world.ana
    (listed,) = ana.proposals()
    proposal, mine = ana.proposal(listed.id), ana.propose("mine", title="Mine")
    hidden = world.bo.propose("side", into="private", title="Hidden")
    feed = proposal_feed(ana)
    feed.start(None)
    hidden.comment("hidden")
    shown = told(lambda: [(one.record.title, one.event.to_json()) for one in feed.poll()])
    mine.comment("new")
    cursors = [one.cursor for one in feed.poll()]
    return [
        told(lambda: proposal.to_json()),
        told(lambda: [change.to_json() for change in proposal.diff()]),
        told(lambda: [one.text for one in proposal.comments().comments]),
        told(lambda: proposal.conflicts().to_json()),
        told(lambda: [event.to_json() for event in proposal.events()]),
        told(lambda: proposal.comment("x", on={"table_key": "node:Note", "row_id": "h9"}).text),
        told(lambda: proposal.land()),
        told(lambda: mine.land()),
        shown,
        [hidden.id in cursor for cursor in cursors],
    ]


SURFACES: dict[str, Callable[[World], Any]] = {
    each.__name__: each
    for each in (
        queries,
        large,
        parts,
        tables,
        files,
        history,
        pages,
        exploration,
        sql,
        writes,
        loads,
        merges,
        proposals,
    )
}


def observe(origin: Path, folder: Path, surface: str) -> Any:
    """Return what a surface shows of a new copy of the graph."""
    shutil.copytree(origin, folder)
    try:
        return SURFACES[surface](World(folder))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        shutil.rmtree(folder)
