"""Edge types of a draft: tables of edges with their ends, and columns of node tables that hold keys."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from omnigraph.errors import Hint, InputError
from omnigraph.operations.inference.draft import DraftTable
from omnigraph.operations.inference.draft_text import percent, rows_text
from omnigraph.operations.inference.keys import FOUND_MIN, TypedTable, ids_of, may_refer, share_found
from omnigraph.operations.inference.names import type_name
from omnigraph.suggestions import did_you_mean, listing

_ID_SUFFIX = re.compile(r"(?<=.)(_id|_key|_code|(?<=[a-z])I[dD])$")

Keys = dict[str, tuple[TypedTable, dict[str, int]]]
"""Type name → a node table with a key, and its ids."""


@dataclass(frozen=True)
class End:
    """The end of an edge: the table that it refers to, and the share of its values that are keys there."""

    target: TypedTable
    share: float


@dataclass(frozen=True)
class DraftEdge:
    """An edge type of a draft."""

    name: str
    table: TypedTable
    columns: tuple[str, str]
    """The columns of the ends."""
    ends: tuple[End, End]
    is_own_table: bool = field(default=False)
    """False if the ends are columns of a node table."""

    @property
    def head(self) -> str:
        """The declaration without its body."""
        return f"edge {self.name}: {self.ends[0].target.type_name} -> {self.ends[1].target.type_name}"

    @property
    def reason(self) -> str:
        """Why the ends are those of the declaration."""
        shown = [(column, end) for column, end in zip(self.columns, self.ends, strict=True)]
        if not self.is_own_table:
            (_, _), (column, end) = shown
            text = f"{self.table.type_name}.{column}: {percent(end.share)} found in {_key_of(end.target)}"
        elif self.ends[0] == self.ends[1]:
            text = f"{', '.join(self.columns)}: {percent(self.ends[0].share)} found in {_key_of(self.ends[0].target)}"
        else:
            text = ", ".join(f"{column}: {percent(end.share)} found in {_key_of(end.target)}" for column, end in shown)
        empty = sum(self.table.nulls(column) for column in self.columns)
        return f"{text}; {rows_text(empty)} without it" if empty else text

    @property
    def has_distinct_pairs(self) -> bool:
        """True if no pair of ends occurs twice."""
        if not self.is_own_table:
            return True  # one end is the key of the row
        pairs = self.table.sample.table.select(self.columns).drop_null()
        return bool(pairs.group_by(list(self.columns)).aggregate([]).num_rows == pairs.num_rows)

    def table_to_load(self) -> DraftTable:
        """The columns that are loaded as edges."""
        columns: dict[str, str | None] = {}
        for column, found in self.table.columns.items():
            owned = self.is_own_table and column in self.table.properties and found.type is not None
            columns[column] = self.table.properties[column] if owned else None
        columns |= {self.columns[0]: "from", self.columns[1]: "to"}
        return DraftTable(self.table.name, self.name, columns)


def keys_of(nodes: Sequence[TypedTable]) -> Keys:
    """Return the ids of the node tables that have a key."""
    return {table.type_name: (table, ids_of(table, table.key)) for table in nodes if table.key is not None}


def resolve_ends(
    table: TypedTable, columns: tuple[str, str], named: tuple[str | None, str | None], keys: Keys
) -> tuple[End, End]:
    """Return the ends of a table of edges: the named tables, else those whose keys the columns hold."""
    return _end(table, columns, 0, named[0], keys), _end(table, columns, 1, named[1], keys)


def _end(table: TypedTable, columns: tuple[str, str], place: int, name: str | None, keys: Keys) -> End:
    column = columns[place]
    if name is not None:
        target, ids = _named(table, name, keys)
        return End(target, share_found(table, column, ids, target.key_type))
    shares = [(share_found(table, column, ids, target.key_type), target) for target, ids in keys.values()]
    best = max(shares, key=lambda one: one[0], default=None)
    if best is None:
        raise InputError(
            f"'{table.name}' is a table of edges, but no table has a key that its ends can refer to",
            hint="give the tables of its nodes; a key is a column that is unique, never empty and has the name or form "
            "of one, or whose values are those of an end",
        )
    share, target = best
    if share < FOUND_MIN:
        raise InputError(
            f"'{table.name}': the values of the column '{column}' are not the keys of a table; "
            f"{percent(share)} are found in {_key_of(target)}, at least {FOUND_MIN:.0%} are needed",
            hint=Hint(
                f"name the table; other rows are rejects: edges(…, {'to' if place else 'from_'}='{target.name}')",
                cli="name the table; other rows are rejects: --from 'FILE:"
                + "->".join(f"{target.name}.{column}" if at == place else other for at, other in enumerate(columns))
                + "'",
            ),
        )
    return End(target, share)


def _named(table: TypedTable, name: str, keys: Keys) -> tuple[TypedTable, dict[str, int]]:
    found = keys.get(type_name(name))
    if found is None:
        known = [target.name for target, _ in keys.values()]
        raise InputError(
            f"'{table.name}': its edges refer to '{name}', which is not a table with a key",
            hint=did_you_mean(name, known) or f"the tables with a key are {listing(known)}",
        )
    return found


def proposed_edges(nodes: Sequence[TypedTable], keys: Keys, taken: set[str]) -> list[DraftEdge]:
    """Return an edge type for each column of a keyed table that holds the keys of a table."""
    found: list[DraftEdge] = []
    names = {name.lower() for name in taken}
    for table in nodes:
        if table.key is None:
            continue
        for column, end in _referring(table, keys):
            if column == table.key:
                continue
            name = _edge_name(table, column, names)
            names.add(name.lower())
            found.append(DraftEdge(name, table, (table.key, column), (End(table, 1.0), end)))
    return found


def _referring(table: TypedTable, keys: Keys) -> list[tuple[str, End]]:
    found: list[tuple[str, End]] = []
    for column in table.columns:
        shares = [
            End(target, share_found(table, column, ids, target.key_type))
            for target, ids in keys.values()
            if may_refer(table, column, target)
        ]
        best = max(shares, key=lambda end: end.share, default=None)
        if best is not None and best.share >= FOUND_MIN:
            found.append((column, best))
    return found


def _edge_name(table: TypedTable, column: str, taken: set[str]) -> str:
    short = type_name(_ID_SUFFIX.sub("", column))
    for name in (short, f"{table.type_name}{short}"):
        if name.lower() not in taken:
            return name
    number = 2
    while f"{table.type_name}{short}{number}".lower() in taken:
        number += 1
    return f"{table.type_name}{short}{number}"


def unkeyed_note(table: TypedTable, keys: Keys) -> str:
    """Return the comment of a table without a key."""
    generated = "ids are generated, and a second load adds the rows again"
    note = f"no key: no column is unique and never empty, '@key(a, b)' declares several; {generated}"
    if table.also_unique:
        names = ", ".join(table.properties[column] for column in table.also_unique[:3])
        verb = "is" if len(table.also_unique) == 1 else "are"
        note = (
            f"no key: {names} {verb} unique in {rows_text(table.sample.rows)}, but without the name or form of a key; "
            f"'@key' behind a property declares it; {generated}"
        )
    found = _referring(table, keys)
    if not found:
        return note
    if len(found) == 1:
        (column, end) = found[0]
        return f"{note}; {column} holds keys of {end.target.type_name}"
    return f"{note}. Edges? Give its ends, such as {found[0][0]}->{found[1][0]}"


def _key_of(table: TypedTable) -> str:
    assert table.key is not None
    return f"{table.type_name}.{table.properties[table.key]}"
