"""Differences, the change feed and the history of rows under a visibility equal those of a projected copy.

The copy is a second graph. Each of its commits holds what the visibility lets through of one commit of the first graph,
decided by a simple reading of the rules.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.errors import ChangeDiffRefused
from omnigraph.graph import Graph
from omnigraph.graph_open import init
from omnigraph.graph_open import open as open_graph
from omnigraph.operations.analysis.request import Analysis
from omnigraph.schema.catalog import SYSTEM_FIELDS, Catalog, EdgeType, NodeType, Property
from omnigraph.storage.lance.staging import TableWrite
from omnigraph.versioning.compare.rows import to_plain
from omnigraph.versioning.model.manifest_objects import Commit
from omnigraph.versioning.write.transaction import Transaction, WriteOptions
from omnigraph.versioning.write.write import write_once
from support.oracle.model import Props, World
from support.random_reads.graphs import Declared, Subject, change, new_subject
from support.visible import SHAPES, Rules, projected, projected_schema, seen_by, telling_rules

SEED = 20_261_117


@dataclass
class Step:
    """A commit, and the commits of the copy that lead to the same visible state."""

    commit: Commit
    world: World
    copies: list[str]


def declared(text: str) -> Declared:
    """The declarations of a schema text."""
    schema: Declared = {}
    for line in text.splitlines():
        if line.endswith("{"):
            schema[line.removesuffix(" {")] = body = []
        elif line.strip() not in ("", "}"):
            body.append(line.strip())
    return schema


def worlds(subject: Subject, branch: str = "main") -> Iterator[tuple[Commit, World]]:
    """The commits of a branch, oldest first, each with its state."""
    at = {point.where["at"]: point.world for point in subject.points}
    commits = subject.graph.commits(branch)[::-1]
    catalog = subject.graph.catalog(at=commits[0].id)
    world = World(catalog, {name: {} for name in catalog.nodes}, {name: {} for name in catalog.edges})
    for commit in commits:
        world = at.get(commit.id, world)
        yield commit, world


class ProjectedCopy:
    """The projected copy of a branch, commit by commit; a commit is seen by the rules of the branch it was made on."""

    def __init__(self, root: Path, subject: Subject, rules: Mapping[str, Rules], branch: str = "main") -> None:
        self.root = root
        self.subject = subject
        self.rules = rules
        self.branch = branch
        self.steps: list[Step] = []
        self._schema = ""
        self._graph: Graph | None = None
        self.follow()

    @property
    def graph(self) -> Graph:
        """The copy."""
        assert self._graph is not None
        return self._graph

    def follow(self) -> None:
        """Copy the commits that were made since the last call."""
        done = {step.commit.id for step in self.steps}
        for commit, world in worlds(self.subject, self.branch):
            if commit.id not in done:
                self._add(commit, projected(world, self.rules[commit.branch]))

    def _add(self, commit: Commit, seen: World) -> None:
        origin = self.subject.graph
        text = projected_schema(declared(origin.snapshot(at=commit.id).schema.source), _nullable(seen.catalog))
        made: list[str] = []
        if self._graph is None:
            self._graph = init(self.root, text, sync=False, environ={})
            made.append(self._graph.commits()[0].id)
        elif text != self._schema:
            self._graph.apply_schema(_known_renames(text, self._graph), allow_data_loss=True)
            made.append(self._graph.commits()[0].id)
        self._schema = text
        written = _write(self._graph, origin, commit.id, seen)
        made += [written] if written is not None else []
        self.steps.append(Step(commit, seen, made or self.steps[-1].copies[-1:]))


def build_copy(root: Path, subject: Subject, rules: Rules) -> tuple[Graph, list[Step]]:
    """The projected copy of main, commit by commit."""
    made = ProjectedCopy(root, subject, {"main": rules})
    return made.graph, made.steps


def _nullable(catalog: Catalog) -> Catalog:
    """A catalog whose properties are nullable: one that becomes visible has no values in the rows of the copy."""
    types = [
        {
            name: replace(type_, properties={key: _optional(p, type_) for key, p in type_.properties.items()})
            for name, type_ in types.items()
        }
        for types in (catalog.nodes, catalog.edges)
    ]
    return Catalog(catalog.interfaces, *types)


def _optional(property_: Property, type_: NodeType | EdgeType) -> Property:
    is_key = isinstance(type_, NodeType) and property_.name in type_.key
    return property_ if is_key else replace(property_, type=property_.type.with_nullable(True))


def _known_renames(text: str, copy: Graph) -> str:
    """The schema text without renames of properties that the copy does not have."""
    catalog = copy.catalog()
    types = {"node": catalog.nodes, "edge": catalog.edges}
    known: Collection[str] = ()
    lines = []
    for line in text.splitlines():
        if line.endswith("{"):
            kind, name = line.split()[:2]
            type_ = types.get(kind, {}).get(name.rstrip(":"))
            known = () if type_ is None else type_.properties
        head, at, old = line.partition(' @rename_from("')
        lines.append(line if not at or old.removesuffix('")') in known else head)
    return "\n".join(lines)


def _write(copy: Graph, graph: Graph, commit_id: str, seen: World) -> str | None:
    """Make the rows of the copy those of a world, as one commit; None if they are."""
    snapshot = graph.snapshot(at=commit_id)

    def prepare(transaction: Transaction) -> None:
        for type_ in seen.catalog.tables():
            rows = seen.nodes[type_.name] if isinstance(type_, NodeType) else seen.edges[type_.name]
            target = transaction.snapshot.table(type_.table_key)
            put = _visible_rows(snapshot.table(type_.table_key).read(), type_, rows).select(target.schema.names)
            if not _same(put, target.read()):
                transaction.change(type_.table_key, TableWrite(overwrite=put))

    commit, _ = write_once(copy._repository, prepare, WriteOptions(branch="main", actor=None, message=None))
    return None if commit is None else commit.id


def _same(one: pa.Table, other: pa.Table) -> bool:
    return sorted(map(str, _exact(one).to_pylist())) == sorted(map(str, _exact(other).to_pylist()))


def _exact(table: pa.Table) -> pa.Table:
    """Return a table with numbers for times: `to_pylist` returns the day of a date64."""
    kinds = {pa.date64(): pa.int64(), pa.list_(pa.date64()): pa.list_(pa.int64())}
    return table.cast(pa.schema([field.with_type(kinds.get(field.type, field.type)) for field in table.schema]))


def _visible_rows(stored: pa.Table, type_: NodeType | EdgeType, rows: dict[str, Props]) -> pa.Table:
    ids = stored["id"].to_pylist()
    names = [*SYSTEM_FIELDS[type_.kind], *sorted(type_.properties)]
    kept = [place for place, id in enumerate(ids) if id in rows]
    table = stored.select(names).take(pa.array(kept, pa.int64()))
    for at, name in enumerate(names):
        if name in type_.properties:
            shown = pa.array([rows[ids[place]][name] is not None for place in kept], pa.bool_())
            values = table[name].combine_chunks()
            masked = pa.compute.if_else(shown, values, pa.scalar(None, values.type))
            table = table.set_column(at, pa.field(name, values.type), masked)
    return table


# -- comparison ------------------------------------------------------------------------------------


def diff_of(graph: Graph, one: str, other: str, **more: Any) -> list[dict[str, Any]]:
    return [change.to_json() for change in graph.diff(one, other, **more)]


def pages_of(graph: Graph, one: str, other: str, limit: int) -> list[list[dict[str, Any]]]:
    """The pages of a diff."""
    pages, after = [], None
    for _ in range(10_000):
        page = graph.diff(one, other, limit=limit, after=after)
        pages.append([change.to_json() for change in page])
        after = page.next
        if after is None:
            break
    return pages


def blocks_of(graph: Graph, limit: int) -> dict[str, list[dict[str, Any]]]:
    """The changes of every commit of the feed, polled in small pages, without the ids of types."""
    found: dict[str, list[dict[str, Any]]] = {}
    answer = graph.changes(start="beginning", changes_max=limit, commits_max=3)
    for _ in range(10_000):
        for block in answer.blocks:
            changes = found.setdefault(block.commit.id, [])
            changes += [{**change.to_json(), "type": change.type_name} for change in block]
        if answer.caught_up:
            break
        answer = graph.changes(answer.cursor, page=answer.page, changes_max=limit, commits_max=3)
    return found


def row_changes(graph: Graph, name: str, id: str, number: dict[str, int]) -> list[tuple[Any, ...]]:
    return [
        (
            number[change.commit.id],
            change.op,
            sorted(change.properties),
            to_plain(change.before),
            to_plain(change.after),
        )
        for change in graph.history(name, id)
    ]


def blamed(graph: Graph, name: str, id: str, number: dict[str, int]) -> list[tuple[Any, ...]]:
    return sorted((one.property, to_plain(one.value), number[one.commit.id]) for one in graph.blame(name, id))


def check(root: Path, seed: int, shape: str, *, pairs: int = 3) -> int:
    """Compare a graph under rules with its projected copy; return the number of changes that were compared."""
    random = Random(seed)
    subject = new_subject(root / "graph", random)
    for _ in range(3):
        change(subject, "main")
    rules = telling_rules(random, subject.heads["main"], shape)
    copy, steps = build_copy(root / "copy", subject, rules)
    seen = seen_by(subject.graph, rules)
    context = f"seed {seed}, {shape}\n{rules.visibility}"
    compared = 0
    for _ in range(pairs):
        one, other = random.choice(steps), random.choice(steps)
        points, copies = (one.commit.id, other.commit.id), (one.copies[-1], other.copies[-1])
        expected = diff_of(copy, *copies)
        assert diff_of(seen, *points) == expected, context
        if not compared:
            cold = seen_by(open_graph(root / "graph", environ={}), rules)
            assert diff_of(cold, *points) == expected, context
        assert seen.diff(*points).counts() == copy.diff(*copies).counts(), context
        size = max(2, len(expected) // 4)
        assert pages_of(seen, *points, size) == pages_of(copy, *copies, size), context
        assert diff_of(seen, *points, kinds=["edge"]) == diff_of(copy, *copies, kinds=["edge"]), context
        compared += len(expected)
    step = random.choice(steps)
    check_files(root, seen, step.commit.id, copy, step.copies[-1], context)
    check_analyses(seen, step.commit.id, copy, step.copies[-1], context)
    single = all(len(step.copies) == 1 for step in steps)
    compared += check_blocks(seen, blocks_of(copy, 2), steps, context)
    if single:
        compared += check_rows(random, seen, copy, steps, context)
    return compared


def check_blocks(
    seen: Graph,
    expected: dict[str, list[dict[str, Any]]],
    steps: list[Step],
    context: str,
    branch: str | None = None,
    page: int = 2,
) -> int:
    """Compare the blocks of the feed and the changes of commits with the blocks of the copy; return their changes.

    With `branch`, only the changes of commits that were made on it are compared.
    """
    compared = 0
    for commit_id, changes in blocks_of(seen, page).items():
        step = next(step for step in steps if step.commit.id == commit_id)
        made = [id for id in step.copies if id not in _before(steps, step)]
        if len(made) <= 1:
            wanted = expected[made[0]] if made else []
            assert sorted(changes, key=str) == sorted(wanted, key=str), context
            compared += len(changes)
            if step.commit.parent_id is not None and branch in (None, step.commit.branch):
                assert _commit_changes(seen, commit_id) in (None, changes), context
    return compared


def check_files(root: Path, seen: Graph, at: str, copy: Graph, copy_at: str, context: str) -> None:
    """Compare the rows of files of an export and of a diff from the first commit."""
    for number, (graph, point) in enumerate(((seen, at), (copy, copy_at))):
        graph.export(root / f"files{number}", format="jsonl", partitioned=True, at=point)
        graph.export_diff(graph.commits()[-1].id, point, root / f"diff{number}")
    for kind in ("files", "diff"):
        one, other = (_lines(root / f"{kind}{number}") for number in range(2))
        assert sorted(one, key=str) == sorted(other, key=str), context


def _lines(folder: Path) -> list[Any]:
    """The records in the files of a folder, without the boundaries of files."""
    return [json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]


def check_analyses(seen: Graph, at: str, copy: Graph, copy_at: str, context: str) -> None:
    """Compare the results of algorithms; components have the numbers of their first nodes."""
    for algorithm in ("degrees", "components", "pagerank"):
        one, other = seen.analyze(algorithm, at=at), copy.analyze(algorithm, at=copy_at)
        assert {**one.stats, "rounds": 0} == {**other.stats, "rounds": 0}, context
        assert _values(one) == pytest.approx(_values(other)), context


def _values(analysis: Analysis) -> dict[tuple[Any, ...], Any]:
    rows = {
        (name, row["id"]): [*row.values()][1:] for name, table in analysis.tables.items() for row in table.to_pylist()
    }
    if analysis.algorithm != "components":
        return {(*key, at): value for key, values in rows.items() for at, value in enumerate(values)}
    first: dict[int, int] = {}
    return {key: first.setdefault(rows[key][0], place) for place, key in enumerate(sorted(rows))}


def _before(steps: list[Step], step: Step) -> set[str]:
    return {id for one in steps[: steps.index(step)] for id in one.copies}


def _commit_changes(graph: Graph, commit_id: str) -> list[dict[str, Any]] | None:
    try:
        return [{**change.to_json(), "type": change.type_name} for change in graph.commit_changes(commit_id)]
    except ChangeDiffRefused:
        return None


def check_rows(random: Random, seen: Graph, copy: Graph, steps: list[Step], context: str, each: int = 5) -> int:
    """Compare the history of some rows of each type: those that changed most often, and one of the others."""
    number = {commit_id: at for at, step in reversed([*enumerate(steps)]) for commit_id in step.copies}
    own = {step.commit.id: at for at, step in enumerate(steps)}
    compared = 0
    for type_ in seen.catalog().tables():
        if type_.kind == "edge" and type_.name in seen.catalog().nodes:
            continue
        tables = [getattr(step.world, f"{type_.kind}s").get(type_.name, {}) for step in steps]
        ids = sorted({id for rows in tables for id in rows})
        random.shuffle(ids)
        ids.sort(key=lambda id: -_changes(tables, id))
        for id in [*ids[: each - 1], *random.sample(ids[each - 1 :], min(len(ids[each - 1 :]), 1))]:
            found = row_changes(seen, type_.name, id, own)
            assert found == row_changes(copy, type_.name, id, number), f"{type_.name} {id}\n{context}"
            assert blamed(seen, type_.name, id, own) == blamed(copy, type_.name, id, number), context
            compared += len(found)
    return compared


def _changes(tables: list[dict[str, Props]], id: str) -> int:
    """The number of times that a row came, went or changed."""
    return sum(before.get(id) != after.get(id) for before, after in pairwise(tables))


@pytest.mark.parametrize("shape", SHAPES[::3])
def test_history_equals_that_of_a_projected_copy(tmp_path, shape):
    """The matrix of `test_visibility_matrix` has all shapes; this one also has cold caches and single kinds."""
    assert check(tmp_path, SEED + SHAPES.index(shape), shape)


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("number", range(12))
def test_history_equals_that_of_a_projected_copy_long(tmp_path, shape, number):
    check(tmp_path, SEED + 1_000 + 100 * number + SHAPES.index(shape), shape, pairs=12)
