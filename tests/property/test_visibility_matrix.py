"""Every read surface under every kind of rules equals the same surface of a projected copy.

The copy is a second graph that holds, commit by commit, what the rules show. Updates move rows in and out of sight
between the comparisons, so that caches are carried to other versions. The surfaces are rows of a table; a read
method of `Graph` without a row fails. So does a surface for which no read is generated, and a cell in which few kinds
of reads return rows. `pytest --long --resume FILE -k matrix_long` runs the long form: it writes the names of finished
tests to a file and leaves them out when it is started again. `--basetemp` on a file system in memory makes it faster.
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Any

import pytest

from omnigraph.engine.result.result import Result
from omnigraph.errors import CompileError, InputError, NotFound
from omnigraph.graph import Graph
from omnigraph.query.syntax.parser import parse_queries
from omnigraph.schema.catalog import Catalog
from property.test_visibility import NOW, SEED, differs
from property.test_visible_history import (
    ProjectedCopy,
    Step,
    blocks_of,
    check_analyses,
    check_blocks,
    check_files,
    check_rows,
    diff_of,
    pages_of,
)
from support.oracle.model import World
from support.random_reads.generator import DirectedGenerator, RandomRead
from support.random_reads.graphs import ManualClock, Subject, change, is_rich, new_subject, update
from support.random_reads.values import POOLS, Values
from support.remembered_scans import remembered_scans
from support.visible import SHAPES, BranchAccess, Rules, move_rows, projected, seen_by, telling_rules

BRANCHES = "branch-dependent"
"""The kind of rules that differ between a branch and the one from which it was forked."""
ROW_SHAPES = ("tenant", "level", "set", "edge rule", "both ends", "mask", "forbid", "null-heavy")
"""Kinds of rules that hide no type and no property."""

TRIES_MAX = 300
"""Reads that are generated for one comparison, at most."""
CANDIDATES = 5
"""Reads that run on the copy until one of them returns rows."""
PAGES = 10
"""Pages of one read, about."""


@dataclass(frozen=True)
class Kind:
    """A kind of queries: a pattern of their texts, and what the generator is asked for if it is rare."""

    pattern: str
    construct: str | None = None


@dataclass
class Reads:
    """Generated reads of one state of a graph; those that one surface does not use are left for the others."""

    of: World
    catalog: Catalog
    left: list[RandomRead] = field(default_factory=list)

    def matching(self, kind: Kind, random: Random, values: Values) -> Iterator[RandomRead]:
        """Take reads whose texts match a pattern: first those that are left, then new ones."""
        for read in [read for read in self.left if re.match(kind.pattern, read.text)]:
            self.left.remove(read)
            yield read
        for _ in range(TRIES_MAX):
            new = Random(random.random())
            try:
                read = DirectedGenerator(new, self.catalog, values, kind.construct).query()
            except IndexError:
                continue
            if re.match(kind.pattern, read.text):
                yield read
            else:
                self.left.append(read)


@dataclass
class Cell:
    """A branch of a graph under rules, and its projected copy."""

    root: Path
    random: Random
    subject: Subject
    rules: Rules
    projection: ProjectedCopy
    context: str
    access: BranchAccess | None = None
    """Rules that depend on the branch."""
    drawn: Reads | None = None
    """Generated reads of the state of the branch."""
    feed_copy: ProjectedCopy | None = None
    """The copy of which the feed is compared; None until the first comparison."""
    compared: Counter[Kind] = field(default_factory=Counter)
    """Kinds of reads → the comparisons of which the copy returned rows."""

    @property
    def branch(self) -> str:
        """The branch of the graph; the copy has it as main."""
        return self.projection.branch

    @property
    def copy(self) -> Graph:
        """The projected copy."""
        return self.projection.graph

    @property
    def steps(self) -> list[Step]:
        """The commits, and those of the copy."""
        return self.projection.steps

    @property
    def head(self) -> World:
        """The state of the branch."""
        return self.subject.heads[self.branch]

    @property
    def seen(self) -> Graph:
        """The graph as the rules show it."""
        if self.access is None:
            return seen_by(self.subject.graph, self.rules)
        return self.subject.graph.with_access(self.access).on(self.branch)

    def advance(self) -> None:
        """Change the graph so that rows come into sight and leave it, and bring the copy up to date."""
        clock, self.subject.graph._repository.clock = self.subject.graph._repository.clock, self.subject.clock
        self.copy._repository.clock = self.subject.clock
        self.projection.follow()  # what surfaces committed with another clock comes first
        for _ in range(2):
            move_rows(self.subject, self.branch, self.rules)
        change(self.subject, self.branch)
        self.projection.follow()
        self.copy._repository.clock = self.subject.graph._repository.clock = clock

    @property
    def both(self) -> tuple[Graph, Graph]:
        """The visible graph and the copy."""
        return self.seen, self.copy

    def equal(self, call: Callable[[Graph], Any]) -> None:
        """Check that a call returns the same on both."""
        found, expected = map(call, self.both)
        assert found == expected, self.context

    def reads(self, kind: Kind) -> Iterator[tuple[RandomRead, Any]]:
        """Yield generated reads of a kind that compile, with their outcome on the copy, until it has rows."""
        if self.drawn is None or self.drawn.of is not self.head:
            self.drawn = Reads(self.head, projected(self.head, self.rules).catalog)
        found = 0
        for read in self.drawn.matching(kind, self.random, self.subject.values):
            try:
                expected = outcome(partial(self.copy.query, read.text, params=read.params))
            except CompileError:
                continue
            yield read, expected
            found += 1
            if has_rows(expected):
                self.compared[kind] += 1
            if has_rows(expected) or found == CANDIDATES:
                break
        assert found, f"no read of {kind}\n{self.context}"

    def read(self, kind: Kind) -> RandomRead:
        """Return a generated read of a kind: one of which the copy returns rows, if one is found."""
        *_, (read, _) = self.reads(kind)
        return read


def outcome(call: Callable[[], Any]) -> Any:
    """The result of a call, or the code of its error; an error of compilation is raised."""
    try:
        return call()
    except CompileError:
        raise
    except (InputError, NotFound) as error:
        return error.code


def has_rows(found: Any) -> bool:
    """True if a call returned rows."""
    return isinstance(found, Result) and len(found) > 0


def new_cell(root: Path, seed: int, shape: str) -> Cell:
    random = Random(seed)
    subject = new_subject(root / "graph", random, rich=True)
    if shape == BRANCHES:
        return _branch_cell(root, seed, random, subject)
    for _ in range(2):
        change(subject, "main")
    rules = _rules(random, subject, shape)
    projection = ProjectedCopy(root / "copy", subject, {"main": rules})
    projection.graph._repository.clock = subject.graph._repository.clock = ManualClock(NOW)
    return Cell(root, random, subject, rules, projection, f"seed {seed}, {shape}\n{rules.visibility}")


def _branch_cell(root: Path, seed: int, random: Random, subject: Subject) -> Cell:
    """A branch that has other rules than the branch from which it was forked."""
    if "side" not in subject.heads:
        subject.graph.branch_create("side")
        subject.heads["side"] = subject.heads["main"]
    for branch in ("main", "side", "side"):
        subject.random.choice((change, update))(subject, branch)
    shapes = {branch: random.choice(ROW_SHAPES) for branch in ("main", "side")}
    rules = {branch: _rules(random, subject, shape) for branch, shape in shapes.items()}
    projection = ProjectedCopy(root / "copy", subject, rules, "side")
    projection.graph._repository.clock = subject.graph._repository.clock = ManualClock(NOW)
    context = "\n".join(f"{branch}: {shapes[branch]} {rules[branch].visibility}" for branch in rules)
    return Cell(root, random, subject, rules["side"], projection, f"seed {seed}\n{context}", BranchAccess(rules))


def _rules(random: Random, subject: Subject, shape: str) -> Rules:
    """Rules of a shape that leave something for all surfaces."""
    return telling_rules(random, subject.heads["main"], shape, lambda seen: is_rich(seen.catalog))


# -- reads -----------------------------------------------------------------------------------------

_ONE_HOP = r"(?s)(?!.*(path|shortest|\{\d)).*"
READS = {
    "rows": Kind(r"(?s)(?!.*(count|sum|path|shortest)).*return \{"),
    "groups": Kind(r"(?s).*(count|sum|avg|min|max|collect)\("),
    "blocks": Kind(r"(?s).*(not|optional) \{"),
    "several types": Kind(r"(?s).*: [A-Z]\w*\|"),
    "any edge": Kind(r"(?s).* <?->"),
    "all paths": Kind(r"(?s).*: path ", "path"),
    "shortest paths": Kind(r"(?s).*shortest (?!.*\} by )", "path"),
    "lightest paths": Kind(r"(?s).*\} by ", "by"),
    "vectors": Kind(_ONE_HOP + r"order \{ nearest", "nearest"),
    "texts": Kind(_ONE_HOP + r"order \{ bm25", "bm25"),
    "fusion": Kind(_ONE_HOP + r"order \{ rrf", "rrf"),
    "stages": Kind(_ONE_HOP + r"\n  with .*\n  match ", "stage"),
}
PAGED = Kind(r"(?s)(?!.*(limit|skip|now\()).*order \{ \$")
PROFILED = Kind(r"(?s)(?!.*(limit|skip)).*")
EXPLAINED = Kind(r"(?s)(?!.*\b\d).*")


def check_read(cell: Cell, kind: Kind) -> None:
    for read, expected in cell.reads(kind):
        found = outcome(partial(cell.seen.query, read.text, params=read.params))
        wrong = None if found == expected else f"{found}, the copy {expected}"
        if isinstance(found, Result) and isinstance(expected, Result):
            body = parse_queries(read.text).queries[0].body
            cut = body.limit is not None or body.skip is not None
            wrong = differs(found, expected, ordered=bool(body.order), cut=cut)
        assert wrong is None, f"{wrong}\n{read.text}\n{read.params}\n{cell.context}"


def check_pages(cell: Cell) -> None:
    *_, (read, expected) = cell.reads(PAGED)
    text, params = read.text, read.params
    # Each page runs the query again: a product of types has few pages as well.
    size = max(3, len(expected) // PAGES) if has_rows(expected) else 3
    cell.equal(lambda graph: outcome(lambda: [len(page) for page in graph.pages(text, params=params, page=size)]))


def check_profile(cell: Cell) -> None:
    read = cell.read(PROFILED)
    seen = outcome(lambda: str(cell.seen.profile(read.text, params=read.params)))
    copy = outcome(lambda: str(cell.copy.profile(read.text, params=read.params)))
    total = re.compile(r"total +([\d,]+ rows?)")
    assert total.findall(seen) == total.findall(copy), cell.context
    assert "expected" not in seen


def check_explain(cell: Cell) -> None:
    read = cell.read(EXPLAINED)
    names = r", 2\)|#\d+|F(32|64)|[IU](32|64)|column \d+|Vector\(\d+\)|[a-z]+\d+\w*"
    shown = re.sub(names, "", str(cell.seen.explain(read.text, params=read.params)))
    assert not re.search(r"\d", shown), f"{shown}\n{cell.context}"


def check_stored_query(cell: Cell) -> None:
    read = cell.read(READS["groups"])
    try:
        cell.subject.graph.store_query(read.text, branch=cell.branch)
    except CompileError:
        return  # a pattern has more types in the whole graph, some of them without a property of the read
    cell.copy.store_query(read.text)
    cell.equal(lambda graph: [query.source for query in graph.queries()])
    cell.equal(lambda graph: graph.validate_queries().to_json())
    found, expected = (outcome(lambda graph=graph: graph.invoke("q", read.params)) for graph in cell.both)
    if isinstance(found, Result) and isinstance(expected, Result):
        assert len(found) == len(expected), cell.context
    else:
        assert found == expected, cell.context


def check_lint(cell: Cell) -> None:
    types = list(cell.subject.graph.on(cell.branch).catalog().nodes)
    text = "\n".join(f"query q{name}() {{ match {{ $x: {name} }} return {{ $x.missing }} }}" for name in types)
    cell.equal(lambda graph: graph.lint(text).to_dict()["results"])


def hints_of(every: Graph, graph: Graph) -> Any:
    """The completions of types, edges and properties, and the words that have a description."""
    found = []
    for type_ in every.catalog().nodes.values():
        text = f"query q() {{ match {{ $x: {type_.name} $x  }} return {{ $x. }} }}"
        places = [text.index(type_.name) + 1, text.index("  }"), text.index(". }") + 1]
        found += [sorted(one.text for one in graph.complete(text, place).candidates) for place in places]
        found.append(graph.hover(text, text.index(type_.name) + 1) is None)
    return found


# -- stored rows -----------------------------------------------------------------------------------


def catalog_of(graph: Graph) -> Any:
    catalog = graph.catalog()
    return [
        (type_.table_key, sorted((p.name, p.type.scalar, p.type.is_list) for p in type_.properties.values()))
        for type_ in catalog.tables()
    ] + sorted(catalog.interfaces)


def check_gets(cell: Cell) -> None:
    every = cell.subject.graph.on(cell.branch)
    for type_ in every.catalog().tables():
        if type_.table_key not in cell.seen.snapshot().tables:
            continue
        ids = every.to_arrow(type_.name, columns=["id"], kind=type_.kind)["id"].to_pylist()
        for id_ in cell.random.sample(ids, min(len(ids), 4)):
            cell.equal(lambda graph, type_=type_, id_=id_: _row(graph.get(type_.name, id_, kind=type_.kind)))


def _row(row: dict[str, Any] | None) -> Any:
    return None if row is None else sorted((name, str(value)) for name, value in row.items())


def tables_of(graph: Graph) -> Any:
    found = {}
    for type_ in graph.catalog().tables():
        table = graph.to_arrow(type_.name, kind=type_.kind)
        batches = graph.to_batches(type_.name, kind=type_.kind, batch_rows=3)
        assert sum(batch.num_rows for batch in batches) == table.num_rows
        found[type_.table_key] = sorted(map(_row, table.to_pylist()))
    return found


def sql_of(graph: Graph) -> Any:
    """The rows of every view, those that pass a filter on a property, and their number."""
    connection = graph.duckdb()
    views = sorted(name for (name,) in connection.sql("show tables").fetchall())
    rows, filtered = ["select 'views' as view, name as row from (show tables)"], []
    for type_ in graph.catalog().tables():
        key = type_.table_key
        view = next(name for name in views if name in (type_.name, f"{type_.name}_{type_.kind}"))
        rows.append(f"select '{key}', cast(row as varchar) from \"{view}\" row")
        filtered.append(f"select '{key}', count(*), '' from \"{view}\"")
        for name in [*type_.properties][:2]:
            passing = f'"{view}" where "{name}" is not null and id > \'a\''
            filtered.append(f"select '{key}.{name}', 0, id from {passing}")
    found = sorted(connection.sql(" union all ".join(filtered)).fetchall())
    connection.close()
    # A call opens a connection of its own: one statement reads all views.
    return found, sorted(map(str, graph.sql(" union all ".join(rows)).to_pylist()))


def network_of(graph: Graph) -> Any:
    network = graph.to_networkx()
    rust, index = graph.to_rustworkx()
    sparse = {}
    for name in graph.catalog().edges:
        matrix, rows, columns = graph.to_sparse(name)
        cells = matrix.tocoo()
        sparse[name] = sorted(
            (rows[int(row)].as_py(), columns[int(column)].as_py(), int(value))
            for row, column, value in zip(*cells.coords, cells.data, strict=True)
        )
    return (
        sorted(map(str, network.nodes)),
        sorted(map(str, network.edges)),
        sorted(map(str, index)),
        sorted(str(sorted(payload.items(), key=str)) for payload in rust.edges()),
        sparse,
    )


def shown_of(graph: Graph) -> Any:
    """The nodes and rows of the widget of every node type."""
    found = {name: graph.show(name).document for name in graph.catalog().nodes}
    return {
        name: (sorted(map(str, each["nodes"])), sorted(map(str, each["table"]["rows"])), each["table"]["total"])
        for name, each in found.items()
    }


def counts_of(graph: Graph) -> dict[str, int]:
    return {key: table.pin.row_count for key, table in graph.snapshot().tables.items()}


def numbers_of_picture(graph: Graph) -> list[str]:
    return re.findall(r"<td[^>]*>[^<]*</td>", graph._repr_html_())


def check_search(cell: Cell) -> None:
    words = ["the", "red", "apple", "graph", "a", "of", *cell.random.sample(POOLS["String"], 3)]
    text = " ".join(word for word in map(str, words) if word.strip())
    ids = [id_ for rows in cell.head.nodes.values() for id_ in rows]

    def found(graph: Graph, id_: str) -> Any:
        document = graph.search(text, by="words", limit=50, rank_of=id_).to_json(str)
        return {key: value for key, value in document.items() if key != "graph_commit_id"}

    for id_ in cell.random.sample(ids, min(len(ids), 2)):
        cell.equal(lambda graph, id_=id_: outcome(lambda: found(graph, id_)))


def check_neighbors(cell: Cell) -> None:
    def found(graph: Graph, name: str, id_: str) -> Any:
        near = graph.neighbors(name, id_).neighbors
        counts = [degree.to_json() for degree in graph.degrees(name, id_)]
        return sorted(str(one.to_json(str)) for one in near), counts

    for name in cell.copy.catalog().nodes:
        ids = list(cell.head.nodes[name])
        for id_ in cell.random.sample(ids, min(len(ids), 3)):
            found_here, expected = (outcome(partial(found, graph, name, id_)) for graph in cell.both)
            assert found_here == expected, f"{name} {id_}\n{cell.context}"


# -- history ---------------------------------------------------------------------------------------


def drawn_diff(graph: Graph, first: str, last: str) -> Any:
    """The graph of a diff; a node with many neighbours shows the first stored ones, which differ in a copy."""
    drawn = graph.diff_graph(first, last, limit=1_000)
    every = not drawn.neighbors_omitted
    nodes = sorted(str((node.type, node.id, node.op)) for node in drawn.nodes if node.op is not None or every)
    edges = sorted(str((edge.type, edge.id, edge.op)) for edge in drawn.edges if edge.op is not None or every)
    return nodes, edges, drawn.changes_omitted


def check_diff(cell: Cell) -> None:
    for _ in range(2):
        one, other = cell.random.choice(cell.steps), cell.random.choice(cell.steps)
        points, copies = (one.commit.id, other.commit.id), (one.copies[-1], other.copies[-1])
        expected = diff_of(cell.copy, *copies)
        assert diff_of(cell.seen, *points) == expected, cell.context
        assert cell.seen.diff(*points).counts() == cell.copy.diff(*copies).counts(), cell.context
        assert cell.seen.diff_summary(*points).tables == cell.copy.diff_summary(*copies).tables, cell.context
        assert drawn_diff(cell.seen, *points) == drawn_diff(cell.copy, *copies), cell.context
        size = max(2, len(expected) // 4)
        assert pages_of(cell.seen, *points, size) == pages_of(cell.copy, *copies, size), cell.context


def baseline_of(graph: Graph) -> list[str]:
    """The records of a baseline, without its cursor."""
    return sorted(str(record) for record in graph.changes_baseline() if "baseline" not in record)


def check_feed(cell: Cell) -> None:
    """The feed of a branch shows all its commits by the rules of the branch; a single commit has those of its own."""
    if cell.feed_copy is None:
        own = None if cell.access is None else dict.fromkeys(cell.access.rules, cell.rules)
        cell.feed_copy = (
            cell.projection if own is None else ProjectedCopy(cell.root / "feed", cell.subject, own, cell.branch)
        )
    cell.feed_copy.follow()
    copy, page = cell.feed_copy, cell.random.choice((2, 10, 50))
    check_blocks(cell.seen, blocks_of(copy.graph, 1_000), copy.steps, cell.context, cell.branch, page=page)


def check_row_history(cell: Cell) -> None:
    if all(len(step.copies) == 1 for step in cell.steps):
        check_rows(cell.random, cell.seen, cell.copy, cell.steps, cell.context, each=3)


def at_random_commit(check: Callable[..., None], cell: Cell) -> None:
    step = cell.random.choice(cell.steps)
    check(cell.seen, step.commit.id, cell.copy, step.copies[-1], cell.context)


def check_file_rows(cell: Cell) -> None:
    # An update that finds no rows makes no commit: the number of commits is no name.
    at_random_commit(partial(check_files, Path(mkdtemp(prefix="files-", dir=cell.root))), cell)


SURFACES: dict[str, tuple[set[str], Callable[[Cell], None]]] = {
    **{name: ({"query"}, partial(lambda kind, cell: check_read(cell, kind), READS[name])) for name in READS},
    "pages": ({"pages"}, check_pages),
    "profile": ({"profile"}, check_profile),
    "explain": ({"explain"}, check_explain),
    "lint": ({"lint"}, check_lint),
    "editors": ({"complete", "hover"}, lambda cell: cell.equal(partial(hints_of, cell.subject.graph.on(cell.branch)))),
    "schema": ({"schema", "catalog"}, lambda cell: cell.equal(catalog_of)),
    "get": ({"get"}, check_gets),
    "search": ({"search"}, check_search),
    "neighbours": ({"neighbors", "degrees"}, check_neighbors),
    "tables": ({"to_arrow", "to_batches", "to_pyg"}, lambda cell: cell.equal(tables_of)),
    "sql": ({"sql", "duckdb"}, lambda cell: cell.equal(sql_of)),
    "networks": ({"to_networkx", "to_rustworkx", "to_sparse"}, lambda cell: cell.equal(network_of)),
    "records": ({"export"}, lambda cell: cell.equal(lambda graph: sorted(map(str, graph.export())))),
    "snapshot": ({"snapshot"}, lambda cell: cell.equal(counts_of)),
    "widgets": ({"show"}, lambda cell: cell.equal(shown_of)),
    "picture": (set(), lambda cell: cell.equal(numbers_of_picture)),
    "baseline": ({"changes_baseline"}, lambda cell: cell.equal(baseline_of)),
    "files": ({"export", "export_diff"}, check_file_rows),
    "analyses": ({"analyze"}, partial(at_random_commit, check_analyses)),
    "diff": ({"diff", "diff_summary", "diff_graph"}, check_diff),
    "feed": ({"changes", "commit_changes"}, check_feed),
    "row history": ({"history", "blame"}, check_row_history),
    # It makes a commit, which the steps of the history do not have.
    "stored queries": ({"queries", "validate_queries", "invoke"}, check_stored_query),
}
"""Read surface → the methods of `Graph` that it covers, and its comparison."""
ELSEWHERE = {
    "to_spark": "tests/spark/test_row_rules.py",
    **dict.fromkeys(("proposals", "proposal", "proposal_events"), "tests/unit/operations/test_proposals.py"),
    "blob": "tests/unit/test_graph_visibility.py",
    "resolve": "the rows of 'to_arrow'",
    "entity_at": "the same read as 'get'",
    "merge_preview": "tests/unit/test_visible_previews.py",
    "revert_preview": "tests/unit/test_visible_previews.py",
    **dict.fromkeys(
        ("commit", "commits", "head", "branches", "branch_status", "tags", "projection"),
        "tests/unit/test_graph_visibility.py",
    ),
}
"""Reads that other tests compare."""
NO_READS = {
    "uri", "newest_version", "on", "with_access", "with_metadata", "plan_schema", "apply_schema",
    "propose", "mutate", "unify", "load", "ingest", "merge", "revert", "embed", "store_query", "delete_query",
    "branch_create", "branch_update", "branch_delete", "tag_create", "tag_delete",
    "optimize", "ensure_indices", "cleanup", "recover", "verify",
    "purge", "purge_allow", "purge_preview", "purge_redact", "purge_resume", "purge_verify", "purges",
}  # fmt: skip
"""Members of `Graph` that return no rows, write, or treat the whole graph."""


def test_every_read_has_a_surface() -> None:
    covered = {name for methods, _ in SURFACES.values() for name in methods}
    public = {name for name, _ in inspect.getmembers(Graph) if not name.startswith("_")}
    assert public == covered | ELSEWHERE.keys() | NO_READS
    assert not covered & ELSEWHERE.keys()
    assert len(SURFACES) >= 24


def check_surfaces(cell: Cell) -> None:
    """Compare all surfaces of one graph under one kind of rules."""
    for name, (_, check) in SURFACES.items():
        try:
            check(cell)
        except Exception as error:
            error.add_note(f"surface: {name}")
            raise


def check_cell(root: Path, seed: int, shape: str, *, updates: int = 0) -> None:
    """Compare all surfaces: the caches are cold first and warm later; updates carry them to other versions."""
    with remembered_scans():
        cell = new_cell(root, seed, shape)
        check_surfaces(cell)
        for _ in range(updates):
            cell.advance()
            check_surfaces(cell)
        telling = sum(cell.compared[kind] > 0 for kind in READS.values())
        assert not updates or telling >= len(READS) / 2, f"only {telling} kinds of reads return rows\n{cell.context}"


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("number", range(2))
def test_matrix(tmp_path: Path, number: int, shape: str) -> None:
    check_cell(tmp_path, SEED + 50_000 + 100 * number + SHAPES.index(shape), shape)


def test_matrix_of_a_branch_with_its_own_rules_and_updates(tmp_path: Path) -> None:
    check_cell(tmp_path, SEED + 55_000, BRANCHES, updates=1)


@pytest.mark.long
@pytest.mark.parametrize("shape", [*SHAPES, BRANCHES])
@pytest.mark.parametrize("number", range(200))
def test_matrix_long(tmp_path: Path, number: int, shape: str) -> None:
    check_cell(tmp_path, SEED + 60_000 + 100 * number + (*SHAPES, BRANCHES).index(shape), shape, updates=2)
