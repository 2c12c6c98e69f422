"""A small graph with hidden rows and values, opened by several actors with a policy.

Every type, row and branch is there for a guard: without it, an actor would see or change something else.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import omnigraph as og
from omnigraph.errors import OmniGraphError
from omnigraph.operations.authorization.access import Access
from omnigraph.policy.decide import Policy
from omnigraph.policy.load import parse_policy_text

SCHEMA = """
interface Named { title: String }
interface Shut { name: String }
interface Owned { tenant: String }
interface Quiet { name: String }
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
node Page implements Named {
    name: String @key
    title: String
    tenant: String
    memo: String?
    secret: String?
}
node Sealed implements Shut { name: String @key }
node Free {
    name: String @key
    old: String?
}
node Drop { name: String @key }
edge Cites: Note -> Note {
    weight: I64?
    kind: String?
    @unique(src, dst, kind)
}
edge Links: Note -> Note {
    mark: I64?
    @unique(src, dst, mark)
}
edge Holds: Sealed -> Note
edge Reads: Free -> Note
edge Writes: Note -> Free
edge Heads: Note -> Page @card(0..1)
"""
POLICY = """version: 2
groups: { staff: [ana], owners: [bo], readers: [cleo] }
attributes: { declare: { tenant: String }, ana: { tenant: acme }, cleo: { tenant: other } }
rows: { default: allow }
rules:
  - { id: work, allow: { actors: { any: true }, role: maintainer } }
  - id: more
    allow: { actors: { any: true }, actions: [change, schema_apply, branch_create, query_store, invoke_query] }
  - { id: landing, allow: { actors: { group: staff }, actions: [proposal_land], row_check: skip } }
  - { id: owners, allow: { actors: { group: owners }, role: owner } }
  - { id: private, deny: { actors: { group: staff }, actions: [read], branches: [private] } }
  - id: own-tenant
    allow: { actors: { any: true }, actions: [row_read, row_insert, row_update, row_delete], types: [Note, Page, Owned],
             when: 'resource.tenant == principal.tenant' }
  - { id: sealed, allow: { actors: { group: owners }, actions: [row_read], types: [Shut] } }
  - { id: drops, allow: { actors: { any: true }, actions: [row_insert], types: [Drop] } }
  - { id: quiet, deny: { actors: { group: owners }, actions: [row_read], types: [Quiet] } }
  - id: locked
    deny: { actors: { group: staff }, actions: [row_read], types: [Cites], when: 'resource.kind == "x"' }
  - { id: draft, deny: { actors: { group: staff }, actions: [row_read], types: [Page], branches: ["draft*"] } }
  - id: pay
    allow: { actors: { group: owners }, actions: [property_read, property_write], types: [Note], properties: [pay],
             otherwise: mask }
  - id: photo
    allow: { actors: { group: owners }, actions: [property_read], types: [Note], properties: [photo], otherwise: mask }
  - id: memo
    allow: { actors: { group: owners }, actions: [property_read], types: [Page], properties: [memo], otherwise: mask }
  - { id: secret, allow: { actors: { group: owners }, actions: [property_read], types: [Page], properties: [secret] } }
  - id: mark
    allow: { actors: { group: owners }, actions: [property_read], types: [Links], properties: [mark], otherwise: mask }
  - id: weight
    allow: { actors: { group: owners }, actions: [property_read], types: [Cites], properties: [weight] }
  - id: weight-of-readers
    allow: { actors: { group: readers }, actions: [property_read], types: [Cites], properties: [weight] }
"""

LINKS = [("a", "b"), ("b", "a"), ("b", "h1"), ("h1", "b"), ("h1", "c"), ("h2", "h2"), ("c", "c"), ("c", "h3")]
EXTRA = "node Extra implements Owned { name: String @key  tenant: String }\n"
WHISPER = "node Whisper implements Quiet { name: String @key }\n"


def row(type_name: str, **data: Any) -> dict[str, Any]:
    return {"type": type_name, "data": data}


def note(name: str, tenant: str, **more: Any) -> dict[str, Any]:
    values = {"title": f"Title {name}", "tenant": tenant, "text": f"apple {name}", "pay": 7, **more}
    return row("Note", name=name, **values)


def edge(type_name: str, source: str, target: str, **data: Any) -> dict[str, Any]:
    return {"edge": type_name, "from": source, "to": target, "data": data}


def cites(source: str, target: str, kind: str = "y") -> dict[str, Any]:
    return edge("Cites", source, target, id=f"{source}-{target}", weight=3, kind=kind)


def make(folder: Path) -> None:
    """Create the graph: rows of two tenants, and branches, a tag, queries and proposals that concern both."""
    graph = og.init(folder, SCHEMA, sync=False)
    hidden = [note(f"h{at}", "other", code=f"c{at}", vec=[1.0, at / 9], photo="base64:aGk=") for at in range(6)]
    graph.load(
        [
            note("a", "acme", vec=[1.0, 0.0], photo="base64:aGk="), note("b", "acme", vec=[0.0, 1.0]), *hidden,
            note("c", "acme"), row("Page", name="p", title="Page", tenant="acme", memo="m"),
            row("Page", name="q", title="Quiet", tenant="other"), row("Sealed", name="s"), row("Free", name="f"),
            edge("Holds", "s", "a"), edge("Reads", "f", "a"), edge("Reads", "f", "h1"), edge("Writes", "a", "f"),
            edge("Writes", "h1", "f"), edge("Heads", "a", "q"),
            cites("a", "b"), cites("b", "h1"), cites("h1", "c"), cites("a", "c", "x"), cites("h2", "h2"),
            cites("c", "c"), cites("c", "a", "x"), cites("a", "h5"),
            *(edge("Links", source, target, mark=1) for source, target in LINKS),
        ],
        mode="merge", message="first",
    )  # fmt: skip
    graph.mutate('update Note set { text: "pear", pay: 9 } where name = "a"', message="second")
    graph.mutate('update Note set { text: "pear" } where name = "h1"', message="third")
    graph.mutate('update Note set { tenant: "acme" } where name = "h5"', message="fourth")
    _make_branches(graph)
    graph.tag_create("v1")
    sealed = "query sealed() { match { $s: Sealed } return { $s.name } }"
    pages = "query pages() { match { $p: Page } return { $p } order { $p.name } }"
    graph.store_query("query notes() { match { $n: Note } return { $n.name } order { $n.name } }", sealed, pages)
    _make_proposals(graph)


def _make_branches(graph: og.Graph) -> None:
    def branch(name: str) -> og.Graph:
        graph.branch_create(name)
        return graph.on(name)

    side = branch("side")
    side.load([note("h9", "other"), note("d", "acme"), cites("d", "a"), row("Sealed", name="s3")], mode="append")
    side.mutate('update Note set { pay: 11 } where name in ["a", "b"]')
    side.mutate('delete Note where name = "h2"')
    branch("clash").mutate('update Note set { text: "x" } where name in ["h3", "c"]')
    branch("unique").mutate('insert Note { name: "h8", title: "t", tenant: "other", code: "twice" }')
    pair = branch("pair")
    pair.mutate('update Note set { code: "pair" } where name = "h4"')
    pair.mutate('update Note set { text: "x" } where name = "h5"')
    graph.mutate('update Note set { code: "pair" } where name = "h5"')
    graph.mutate('update Note set { text: "y" } where name in ["h3", "c"]')
    graph.mutate('update Note set { code: "twice" } where name = "b"')
    branch("mine").mutate('update Note set { text: "z" } where name = "c"')
    moved = branch("moved")
    moved.apply_schema(SCHEMA + EXTRA)
    moved.load([row("Extra", name="e1", tenant="acme"), row("Extra", name="e2", tenant="other")], mode="append")
    branch("quiet").apply_schema(SCHEMA + WHISPER)
    kept = [line for line in SCHEMA.splitlines(keepends=True) if "Sealed" not in line]
    branch("unsealed").apply_schema("".join(kept), allow_data_loss=True)
    branch("sealed").mutate('insert Sealed { name: "s2" }')
    branch("draft")
    broken = branch("broken")
    broken.store_query("query old() @definer { match { $f: Free } return { $f.old } }")
    broken.apply_schema(SCHEMA.replace("    old: String?\n", ""), allow_data_loss=True, allow_query_breakage=True)


def _make_proposals(graph: og.Graph) -> None:
    proposal = graph.propose("side", title="Side", actor="ana")
    proposal.comment("on h9", on={"table_key": "node:Note", "row_id": "h9"})
    proposal.comment("on pay", on={"table_key": "node:Note", "row_id": "d", "property": "pay"})
    graph.branch_create("private")


class World:
    """A copy of the graph, opened by several actors with the policy."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._policy = Policy(parse_policy_text(POLICY))
        self._open: og.Graph | None = None

    @property
    def whole(self) -> og.Graph:
        """The graph without a policy."""
        if self._open is None:
            self._open = og.open(self.folder)
        return self._open

    def _as(self, actor: str) -> og.Graph:
        return self.whole.with_access(Access(self._policy, actor))

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
    return re.sub(
        r"[0-9A-HJKMNP-TV-Z]{26}|\d{4}-\d\d-\d\dT[\d:.]+Z?|datetime\([^)]*\)|\d+\.\d+ ?ms|0x\w+|_us=\d+", "*", text
    )
