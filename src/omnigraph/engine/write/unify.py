"""Unifies nodes in an overlay: values by rules, edges re-pointed and folded, former ids as aliases.

The values of all pairs are decided column by column: a rule gives, for each kept node, the row that its value is taken
from. So a statement with ten thousand pairs is a few operations on columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import concatenate, one_array
from omnigraph.checkpoints import checkpoint
from omnigraph.engine.write.upsert import match_columns
from omnigraph.errors import Denied, InputError, NotFound
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.versioning.compare.equality import same_column

if TYPE_CHECKING:
    from omnigraph.engine.cache.table_cache import Mask
    from omnigraph.engine.write.overlay import TableOverlay, WriteOverlay
    from omnigraph.engine.write.row_guard import GuardedWrite

Numbers = np.ndarray[Any, np.dtype[np.int64]]
_LISTED_MAX = 100
"""Self-loops that a report names."""


@dataclass
class UnifyReport:
    """What `unify` did besides the counts of the mutation."""

    nodes: int = 0
    """Nodes that became aliases."""
    repointed: int = 0
    """Edges that got another endpoint."""
    folded: int = 0
    """Edges that were removed because another one is equal to them, or by a rule."""
    self_loops: int = 0
    """Edges whose two ends became the same node. They are kept."""
    loops: list[tuple[str, str, str]] = field(default_factory=list)
    """The first self-loops: edge type, edge id, node."""

    def add(self, other: UnifyReport) -> None:
        """Add what another statement did."""
        self.nodes += other.nodes
        self.repointed += other.repointed
        self.folded += other.folded
        self.self_loops += other.self_loops
        self.loops = [*self.loops, *other.loops][:_LISTED_MAX]

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the report of its JSON form."""
        loops = [(one["type"], one["id"], one["node"]) for one in data["loops"]]
        return cls(data["nodes"], data["repointed"], data["folded"], data["self_loops"], loops)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "nodes": self.nodes,
            "repointed": self.repointed,
            "folded": self.folded,
            "self_loops": self.self_loops,
            "loops": [{"type": type_, "id": id_, "node": node} for type_, id_, node in self.loops],
        }


@dataclass(frozen=True)
class UnifyRules:
    """The rules of one statement; values are in stored form, as columns of one row."""

    properties: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, pa.Array] = field(default_factory=dict)
    edges: Mapping[str, str] = field(default_factory=dict)


Groups = Mapping[str, Sequence[str]]
"""Kept id → dropped ids, in the order in which they are unified."""


def unify_groups(
    pairs: Iterable[tuple[str, str]], resolve: Callable[[str], str], type_name: str
) -> dict[str, list[str]]:
    """Return the groups of pairs (drop, keep); an alias stands for its node.

    A kept node that another pair drops passes its dropped nodes on. A pair of two names of one node has no effect.
    """
    target: dict[str, str] = {}
    for given, kept in pairs:
        checkpoint()
        if given == kept:
            raise InputError(f"{type_name} '{given}' cannot be unified with itself", code="unify_cycle")
        drop, keep = resolve(given), resolve(kept)
        if drop == keep:
            continue
        if target.setdefault(drop, keep) != keep:
            message = f"{type_name} '{drop}' is dropped twice, into '{target[drop]}' and '{keep}'"
            raise InputError(message, code="unify_cycle", hint="name one kept node for each dropped one")
    groups: dict[str, list[str]] = {}
    for drop, kept in target.items():
        last, steps = kept, 0
        while last in target:
            last, steps = target[last], steps + 1
            if steps > len(target):
                message = f"the pairs of {type_name} '{drop}' lead back to it"
                raise InputError(message, code="unify_cycle", hint="keep one node of each group")
        groups.setdefault(last, []).append(drop)
    return groups


class NodeUnion:
    """One `unify` of some groups of nodes of a type, on an overlay."""

    def __init__(
        self,
        catalog: Catalog,
        node: NodeType,
        overlay: WriteOverlay,
        groups: Groups,
        rules: UnifyRules,
        guard: GuardedWrite | None = None,
    ) -> None:
        self.node = node
        self.groups = groups
        self.merged = {drop: keep for keep, drops in groups.items() for drop in drops}
        self.report = UnifyReport(nodes=len(self.merged))
        self._catalog = catalog
        self._overlay = overlay
        self._rules = rules
        self._guard = guard
        self._kept = pa.array(groups, pa.utf8())
        self._dropped = pa.array(self.merged, pa.utf8())
        self._targets = pa.array(self.merged.values(), pa.utf8())

    # -- nodes -----------------------------------------------------------------------------------

    def rows(self) -> tuple[pa.Table, set[str]]:
        """Return the kept nodes after the rules, and the properties that a rule changes in one of them."""
        table = self._overlay.table(self.node.table_key)
        found = table.with_ids(concatenate([self._kept, self._dropped]), table.schema.names)
        self._check_found(found)
        places = {id_: place for place, id_ in enumerate(found["id"].to_pylist())}
        starts, members = _members(self.groups, places)
        ages = self._ages(table, found["id"], self._rules.properties.values())
        kept_rows = pa.array(members[starts[:-1]])
        rows = found.take(kept_rows).cast(pa.schema([one.with_nullable(True) for one in found.schema]))
        changed: set[str] = set()
        sources: dict[str, Numbers] = {}
        for name in self.node.properties:
            if name in self.node.key:
                continue
            column = one_array(found[name])
            new = self._value(name, column, starts, members, ages, sources)
            if new is None:
                continue
            same = same_column(one_array(rows[name]), new)
            if not same.all():
                changed.add(name)
                rows = rows.set_column(rows.schema.get_field_index(name), pa.field(name, new.type), new)
        return rows, changed

    def _value(
        self, name: str, column: pa.Array, starts: Numbers, members: Numbers, ages: Numbers, sources: dict[str, Numbers]
    ) -> pa.Array | None:
        """Return a property of the kept nodes; None for a vector that is computed from its text."""
        count = len(starts) - 1
        if name in self._rules.values:
            return self._rules.values[name].take(pa.array(np.zeros(count, np.int64)))
        rule = self._rules.properties.get(name)
        if rule == "union":
            return _union(column, starts, members)
        embed = self.node.embeds.get(name)
        if rule is None and embed is not None:
            # A vector follows its text.
            if embed.source in self._rules.values or self._rules.properties.get(embed.source) == "union":
                return None
            if embed.source not in sources:
                rule = self._rules.properties.get(embed.source)
            else:
                return column.take(pa.array(sources[embed.source]))
        sources[name] = _chosen(rule or "ours", column, starts, members, ages)
        return column.take(pa.array(sources[name]))

    def _check_found(self, found: pa.Table) -> None:
        """Raise `NotFound` for a node that does not exist or is not visible; `Denied` if values are hidden."""
        guard, node = self._guard, self.node
        seen = found if guard is None else found.filter(pa.array(guard.sees(node, found)))
        known = one_array(seen["id"])
        for ids in (self._dropped, self._kept):
            missing = ids.filter(pc.invert(pc.is_in(ids, value_set=known)))
            if len(missing):
                raise NotFound(
                    f"{node.name} '{missing[0]}' does not exist; nothing was unified",
                    code="entity_not_found",
                    hint="'unify' names the ids of two nodes of one type",
                )
        if guard is not None and any(guard.withheld_values(node, found)):
            raise self._denied("a value of the nodes is hidden from you")

    def _denied(self, reason: str) -> Denied:
        return Denied(f"'unify' of {self.node.name} is denied: {reason}; nothing was written", (reason,))

    def _ages(self, table: TableOverlay, ids: pa.ChunkedArray, rules: Iterable[str]) -> Numbers:
        """Return the versions in which rows were last written, if a rule compares them."""
        return table.last_writes(one_array(ids)) if "newest" in rules else np.zeros(len(ids), np.int64)

    # -- edges -----------------------------------------------------------------------------------

    def edges(self) -> list[tuple[EdgeType, pa.Table, pa.Array]]:
        """Return, for each edge type at the nodes, the re-pointed edges and the ids of the folded ones."""
        made: list[tuple[EdgeType, pa.Table, pa.Array]] = []
        for edge in self._catalog.edges_touching[self.node.name]:
            checkpoint()
            ends = [end for end, type_ in (("src", edge.from_type), ("dst", edge.to_type)) if type_ == self.node.name]
            table = self._overlay.table(edge.table_key)
            ids = pc.unique(table.ids_with(ends, self._dropped))
            if not len(ids):
                continue
            moved = table.with_ids(ids, table.schema.names)
            if self._guard is not None and not self._guard.sees(edge, moved).all():
                raise self._denied("a node has edges that you cannot read")
            was_loop = pc.equal(moved["src"], moved["dst"])
            loops_before = one_array(moved["id"]).filter(one_array(was_loop))
            for end in ends:
                column = self._repointed(one_array(moved[end]))
                moved = moved.set_column(moved.schema.get_field_index(end), moved.schema.field(end), column)
            folded = self._folded(edge, table, ends, moved)
            left = moved.filter(pc.invert(pc.is_in(moved["id"], value_set=folded))) if len(folded) else moved
            self._count_loops(edge, left, loops_before)
            self.report.repointed += left.num_rows
            self.report.folded += len(folded)
            made.append((edge, left, folded))
        return made

    def _repointed(self, ids: pa.Array) -> pa.Array:
        places = pc.index_in(ids, value_set=self._dropped)
        return pc.coalesce(self._targets.take(places), ids)

    def _count_loops(self, edge: EdgeType, moved: pa.Table, before: pa.Array) -> None:
        """Report the edges that became loops."""
        if edge.from_type != edge.to_type or not moved.num_rows:
            return
        loops = moved.filter(pc.equal(moved["src"], moved["dst"]))
        loops = loops.filter(pc.invert(pc.is_in(loops["id"], value_set=before)))
        self.report.self_loops += loops.num_rows
        room = _LISTED_MAX - len(self.report.loops)
        first = loops.slice(0, max(0, room))
        for id_, node in zip(first["id"].to_pylist(), first["src"].to_pylist(), strict=True):
            self.report.loops.append((edge.name, id_, node))

    def _folded(self, edge: EdgeType, table: TableOverlay, ends: Sequence[str], moved: pa.Table) -> pa.Array:
        """Return the ids of edges that another edge with the same ends replaces."""
        rule = self._rules.edges.get(edge.name)
        none = pa.array([], pa.utf8())
        if rule == "keep":
            return none
        columns = duplicate_columns(edge) if rule is None else ("src", "dst")
        if columns is None:
            return none
        near = pc.unique(table.ids_with(ends, self._kept))
        near = near.filter(pc.invert(pc.is_in(near, value_set=one_array(moved["id"]))))
        others = table.with_ids(near, moved.column_names) if len(near) else moved.slice(0, 0)
        if self._guard is not None:
            # An edge that the caller does not see neither replaces another edge nor is replaced.
            others = others.filter(pa.array(self._guard.sees(edge, others)))
        both = pa.concat_tables([others.cast(moved.schema), moved])
        is_moved = np.arange(both.num_rows) >= others.num_rows
        if self._guard is not None:
            self._check_compared(self._guard, edge, both, columns, is_moved)
        codes = row_codes(both, columns)
        ages = self._ages(table, both["id"], [rule or ""])
        # The first row of each group stays.
        preferred = {"theirs": ~is_moved, "newest": -ages}.get(rule or "ours", is_moved)
        order = np.lexsort((np.arange(both.num_rows), is_moved, preferred, codes))
        first = np.ones(len(order), bool)
        first[1:] = codes[order][1:] != codes[order][:-1]
        touched = np.zeros(int(codes.max()) + 1 if len(codes) else 0, bool)
        touched[codes[is_moved]] = True
        lost = order[~first & touched[codes[order]]]
        return one_array(both["id"]).take(pa.array(np.sort(lost)))

    def _check_compared(
        self, guard: GuardedWrite, edge: EdgeType, rows: pa.Table, columns: Sequence[str], is_moved: Mask
    ) -> None:
        """Raise `Denied` if a hidden value decides whether an edge is folded.

        Of edges that the rule `newest` compares, every property decides: a change of any value makes an edge newer.
        """
        compared = {*edge.properties} if self._rules.edges.get(edge.name) == "newest" else {*columns}
        withheld = [names & compared for names in guard.withheld_values(edge, rows)]
        names = set[str]().union(*withheld)
        if not names:
            return
        meets = compared_rows(rows, [name for name in columns if name not in names], is_moved)
        if (np.array([bool(one) for one in withheld]) & meets).any():
            raise self._denied("a value of the edges is hidden from you")


def duplicate_columns(edge: EdgeType) -> Sequence[str] | None:
    """Return the columns in which equal edges are duplicates: the first `@unique` over both ends, else all of them.

    None if edges cannot be compared, because they have Blobs or vectors.
    """
    if (columns := match_columns(edge)) is not None:
        return columns
    if any(one.type.scalar in ("Blob", "Vector") for one in edge.properties.values()):
        return None
    return ("src", "dst", *edge.properties)


def compared_rows(rows: pa.Table, columns: Sequence[str], is_moved: Mask) -> Mask:
    """Return the rows that are equal in some columns to other rows, at least one of which is moved."""
    codes = row_codes(rows, columns)
    meets: Mask = ((np.bincount(codes) > 1) & (np.bincount(codes, is_moved) > 0))[codes]
    return meets


def _members(groups: Groups, places: Mapping[str, int]) -> tuple[Numbers, Numbers]:
    """Return the rows of the groups, kept node first, and the start of each group among them."""
    starts = np.cumsum([0, *(1 + len(drops) for drops in groups.values())])
    members = [places[id_] for keep, drops in groups.items() for id_ in (keep, *drops)]
    return starts.astype(np.int64), np.array(members, np.int64)


def _chosen(rule: str, column: pa.Array, starts: Numbers, members: Numbers, ages: Numbers) -> Numbers:
    """Return the row that gives the value of each group. A null loses against any value; of equals, the first wins."""
    filled = np.asarray(pc.is_valid(column))[members]
    position = np.arange(len(members)) - np.repeat(starts[:-1], np.diff(starts))
    match rule:
        case "theirs":
            weight = np.where(position > 0, position, -1)
        case "newest":
            weight = ages[members]
        case "longest":
            lengths = pc.list_value_length(column) if _is_list(column.type) else pc.utf8_length(column)
            weight = np.asarray(pc.fill_null(lengths, 0)).astype(np.int64)[members]
        case _:
            weight = -position
    group = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    order = np.lexsort((position, -weight, ~filled, group))
    return members[order[starts[:-1]]]


def _union(column: pa.Array, starts: Numbers, members: Numbers) -> pa.Array:
    """Return the distinct items of the lists of each group, in order; null if all lists are null."""
    values: list[list[Any] | None] = []
    for start, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        checkpoint()
        lists = [column[int(row)].as_py() for row in members[start:end]]
        given = [one for one in lists if one is not None]
        values.append(list(dict.fromkeys(item for one in given for item in one)) if given else None)
    return pa.array(values, column.type)


def row_codes(rows: pa.Table, columns: Sequence[str]) -> Numbers:
    """Return a number for each row: equal for equal values of the columns; nulls are equal."""
    codes = np.zeros(rows.num_rows, np.int64)
    for name in columns:
        column = one_array(rows[name])
        if pa.types.is_nested(column.type) or pa.types.is_dictionary(column.type):
            column = pa.array([repr(value) for value in column.to_pylist()], pa.utf8())
        own = pc.fill_null(column.dictionary_encode("encode").indices, -1).to_numpy(zero_copy_only=False)
        codes = np.unique(np.stack([codes, own.astype(np.int64)]), axis=1, return_inverse=True)[1].reshape(-1)
    return codes


def _is_list(type_: pa.DataType) -> bool:
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_))
