"""Tables as an actor sees them: the rows and values that a `Visibility` lets through.

A `VisibleTable` has the row numbers of the table below it. Hidden rows keep their numbers, and no operator starts from
one: a binding begins with the mask of the visible rows, and a lookup by id asks `sees`. Values of masked properties are
null where their condition is not true, in every method that returns values.

A few rows are judged by the condition on these rows alone. A mask of all rows has one byte per row. It is kept in the
cache under the digest of its condition, so that actors with equal conditions share it, and later versions of the table
judge only the rows that were added.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial, reduce
from hashlib import sha256
from typing import Any, Protocol, TypeVar, cast

import numpy as np
import pyarrow as pa

from omnigraph.arrays import with_nulls
from omnigraph.engine import tuning
from omnigraph.engine.cache.columns import MemoryTable
from omnigraph.engine.cache.dictionary_codes import DictionaryCodes
from omnigraph.engine.cache.row_mapping import FragmentLayout, map_rows
from omnigraph.engine.cache.table_cache import Mask, Numbers, TableData, UseCounter
from omnigraph.query.plan import ir
from omnigraph.query.visibility import Visibility
from omnigraph.schema.arrow import arrow_type

Derived = TypeVar("Derived")
Judge = Callable[[ir.Condition, TableData | MemoryTable, Numbers | None], Mask]
"""(condition, table, row numbers or None for all rows) → the rows where the condition is true."""
Ends = Callable[[], tuple[np.ndarray[tuple[int], np.dtype[np.int32]], np.ndarray[tuple[int], np.dtype[np.int32]]]]
"""Returns the row numbers of the source and of the target of each edge."""

_SLICE_SHARE = 4
"""At most one in so many rows of a table are read by their numbers in place of a mask."""
_RANKS = ("ranks of rows", "ranks:")
"""Names of structures that contain the order of values alone."""


class JudgedRows:
    """The rows of a version where a condition is true: a mask, or row numbers of which a mask is made on demand."""

    def __init__(self, layout: FragmentLayout, mask: Mask | None, rows: Numbers | None = None, count: int = 0) -> None:
        self.layout = layout
        self.rows = rows
        """The rows, ascending, if they are known."""
        self._count = count if mask is None else len(mask)
        if mask is not None:
            self.mask = mask

    @cached_property
    def mask(self) -> Mask:
        """True for each row where the condition is true."""
        mask = np.zeros(self._count, bool)
        mask[self.rows] = True
        return mask

    @property
    def nbytes(self) -> int:
        """The size in memory with the mask."""
        return self.layout.nbytes + self._count + (0 if self.rows is None else int(self.rows.nbytes))


class RowCondition:
    """A condition on the rows of one table version."""

    is_slice = False
    """True if the condition shows the rows of an instant of a large table."""

    def __init__(self, condition: ir.Condition, data: TableData, judge: Judge) -> None:
        condition = with_absent_columns(condition, partial(_has, data))
        self._condition = condition
        self._data = data
        self._judge = judge
        names = sorted({part.name for part in ir.walk(condition) if isinstance(part, ir.Prop)})
        self.names = names
        """The columns that the condition reads."""
        # Rows that stayed keep their values; a column of the same name can be another one after a schema change.
        columns = ",".join(str(data.field_id(name)) for name in names)
        self.digest = digest_of(repr(condition), columns)
        self._name = f"visible:{self.digest}"
        self._key = (*data.key, self._name)

    def mask(self) -> Mask:
        """Return a mask of all rows where the condition is true."""
        return self._data.cache.get(self._key, self._judged).mask

    def numbers(self) -> Numbers:
        """Return the rows where the condition is true, ascending."""
        judged = self._data.cache.get(self._key, self._judged)
        return np.flatnonzero(judged.mask) if judged.rows is None else judged.rows

    def holds(self, numbers: Numbers) -> Mask:
        """Return for some rows whether the condition is true."""
        known: JudgedRows | None = self._data.cache.find(self._key)
        if known is not None:
            return known.mask[numbers]
        if self._is_judged_alone(len(numbers)):
            return self._judge(self._condition, self._data, numbers)
        return self.mask()[numbers]

    def holds_in(self, rows: pa.Table) -> Mask:
        """Return for rows that were read of the version whether the condition is true."""
        return self._judge(self._condition, MemoryTable.of(rows), None)

    def holds_for(self, number: int) -> bool:
        """Return whether the condition is true for one row."""
        known: JudgedRows | None = self._data.cache.find(self._key)
        return bool((self.holds(np.array([number])) if known is None else known.mask[number : number + 1])[0])

    def _is_judged_alone(self, rows: int) -> bool:
        """Return True if so many rows are judged faster than all rows, with those that were judged before."""
        data = self._data
        if not data.is_few(rows):
            return False
        uses = data.derived(f"uses:{self._name}", UseCounter)
        uses.count += rows
        if not data.is_few(uses.count):
            return False
        in_memory = all(data.known_column(name) is not None for name in self.names)
        return not in_memory or uses.count <= tuning.current.rows_judged_before_mask

    def _judged(self) -> JudgedRows:
        """Judge all rows; those of the version used last keep their result."""
        data, judge = self._data, self._judge
        known: JudgedRows | None = data.cache.newest(data, self._name)
        mapping = map_rows(known.layout, data) if known is not None else None
        if known is None or mapping is None:
            return JudgedRows(FragmentLayout.of(data), judge(self._condition, data, None))
        stored = len(known.mask)
        mask = np.empty(data.row_count, bool)
        if mapping.stored_of is None:
            new = np.arange(stored, data.row_count)
            mask[:stored] = known.mask
        else:
            new = np.flatnonzero(mapping.stored_of >= stored)
            old = np.flatnonzero(mapping.stored_of < stored)
            mask[old] = known.mask[mapping.stored_of[old]]
        if len(new):
            mask[new] = judge(self._condition, data, new)
        return JudgedRows(FragmentLayout.of(data), mask)


class VisibleTable:
    """One table version as an actor sees it."""

    union = None
    key: tuple[str, str]

    def __init__(
        self,
        base: TableData,
        rows: RowCondition | None,
        properties: Mapping[str, RowCondition | None],
        ends: tuple[Ends, EndTable, EndTable] | None = None,
    ) -> None:
        self.base = base
        self.cache = base.cache
        self.folder = base.folder
        self.version = base.version
        self.own = rows
        """The condition of the rows themselves; None if there is none."""
        self._properties = properties
        """Guarded properties; None hides one."""
        self._ends = ends
        """The ends of each edge and the tables of both; None if they are not guarded, or for nodes."""
        parts = [rows.digest if rows is not None else ""]
        for name, one in sorted(properties.items()):
            # A renamed property has other rules than before.
            field = base.field_id(name) if base.has_column(name) else ""
            parts.append(f"{name} {field} {one.digest if one is not None else ''}")
        self.rule_digest = digest_of(*parts)
        """Identifies the conditions of the table alone, and the columns that they guard."""
        if ends is not None:
            parts += [f"{table.key[0]}@{table.key[1]}" for table in ends[1:]]
        self.digest = digest_of(*parts)
        """Identifies the conditions of the table and, for edges, the versions and conditions of both ends."""
        self.key = (base.key[0], f"{base.key[1]}#{self.digest}")
        self._mask_key = (*base.key, f"visible edges:{self.digest}")

    @property
    def row_count(self) -> int:
        """The number of row numbers, those of hidden rows included."""
        return self.base.row_count

    # -- rows ------------------------------------------------------------------------------------

    @property
    def hides_rows(self) -> bool:
        """True if rows can be hidden; else only values are."""
        return self.own is not None or self._ends is not None

    @property
    def visible(self) -> Mask | None:
        """A mask of the visible rows; None if no row is hidden."""
        if self._ends is None:
            return None if self.own is None else self.own.mask()
        return self.cache.get(self._mask_key, self._visible_edges)

    def _visible_edges(self) -> Mask:
        assert self._ends is not None
        ends, *tables = self._ends
        masks: list[Mask] = [] if self.own is None else [self.own.mask()]
        for numbers, table in zip(ends(), tables, strict=True):
            seen = table.visible
            if seen is not None:
                masks.append(seen[numbers])
        return reduce(np.logical_and, masks)

    @property
    def slice_rows(self) -> Numbers | None:
        """The visible rows if they are those of an instant of a large table, and few of its rows; else None."""
        if self._ends is not None or self.own is None or not self.own.is_slice:
            return None
        rows = self.own.numbers()
        return rows if len(rows) * _SLICE_SHARE < self.row_count else None

    def shown_rows(self) -> Numbers:
        """Return the visible rows, ascending."""
        if self._ends is None:
            return np.arange(self.row_count) if self.own is None else self.own.numbers()
        seen = self.visible
        assert seen is not None
        return np.flatnonzero(seen)

    def sees(self, numbers: Numbers) -> Mask:
        """Return which of some rows are visible."""
        if self._ends is None:
            return np.ones(len(numbers), bool) if self.own is None else self.own.holds(numbers)
        known: Mask | None = self.cache.find(self._mask_key)
        if known is not None or not self.base.is_few(len(numbers)):
            mask = known if known is not None else self.visible
            assert mask is not None
            return mask[numbers]
        seen = np.ones(len(numbers), bool) if self.own is None else self.own.holds(numbers)
        ends, *tables = self._ends
        for of_edge, table in zip(ends(), tables, strict=True):
            if not isinstance(table, TableData):
                seen &= table.sees(of_edge[numbers].astype(np.int64))
        return seen

    def sees_row(self, number: int) -> bool:
        """Return whether one row is visible."""
        if self._ends is None:
            return self.own is None or self.own.holds_for(number)
        return bool(self.sees(np.array([number]))[0])

    @property
    def ends(self) -> tuple[Ends, EndTable, EndTable] | None:
        """The ends of each edge and the tables of both; None if they are not guarded, or for nodes."""
        return self._ends

    @property
    def judged_columns(self) -> list[str]:
        """The columns that decide which rows are visible."""
        ends = ["src", "dst"] if self._ends is not None else []
        return list(dict.fromkeys(["id", *ends, *(self.own.names if self.own is not None else ())]))

    # -- values ----------------------------------------------------------------------------------

    def masked_in(self, rows: pa.Table) -> pa.Table:
        """Return rows that were read of the version with nulls in place of masked values, without hidden properties."""
        guarded = {name: one for name, one in self._properties.items() if name in rows.schema.names}
        shown = rows.drop_columns([name for name, one in guarded.items() if one is None])
        for name, condition in guarded.items():
            if condition is not None:
                place, field = shown.schema.get_field_index(name), rows.schema.field(name)
                column = with_nulls(rows[name], condition.holds_in(rows))
                shown = shown.set_column(place, field.with_nullable(True), column)
        return shown

    @property
    def guarded_names(self) -> tuple[str, ...]:
        """The properties that are hidden or of which values are masked."""
        return tuple(self._properties)

    @property
    def masked_names(self) -> tuple[str, ...]:
        """The properties of which values are masked."""
        return tuple(name for name, condition in self._properties.items() if condition is not None)

    def is_guarded(self, name: str) -> bool:
        """Return True if values of a property are masked."""
        if name not in self._properties:
            return False
        if self._properties[name] is None:
            raise LookupError(f"'{name}' is hidden")
        return True

    def value_mask(self, name: str) -> Mask | None:
        """Return a mask of the rows whose value of a property is visible; None if it is in all."""
        condition = self._properties[name] if self.is_guarded(name) else None
        own = None if condition is None else condition.mask()
        seen = self.visible
        return own if seen is None else seen if own is None else own & seen

    def column(self, name: str) -> pa.Array:
        """Return a complete column in row order."""
        column = self.base.column(name)
        if not self.is_guarded(name):
            return column
        condition = self._properties[name]
        assert condition is not None
        return with_nulls(column, condition.mask())

    def column_for(self, name: str, rows: int) -> pa.Array | None:
        """Return a complete column if it is in memory, or is to be read for so many rows; else None.

        The values of a masked property are masked for the rows alone if there are few.
        """
        if not self.is_guarded(name):
            return self.base.column_for(name, rows)
        if rows * 4 < self.row_count or self.base.column_for(name, rows) is None:
            return None
        return self.column(name)

    def take(self, name: str, numbers: Numbers) -> pa.Array:
        """Return the values of some rows."""
        return self.take_columns([name], numbers)[name]

    def take_columns(self, names: Sequence[str], numbers: Numbers) -> dict[str, pa.Array]:
        """Return the values of several columns of some rows."""
        guarded = [name for name in names if self.is_guarded(name)]
        found = self.base.take_columns(names, numbers)
        return found | {name: self.masked(name, found[name], numbers) for name in guarded}

    def masked(self, name: str, values: pa.Array | pa.ChunkedArray, numbers: Numbers) -> pa.Array | pa.ChunkedArray:
        """Return values of a guarded property of some rows with nulls in place of those that are not visible."""
        condition = self._properties[name]
        assert condition is not None
        return with_nulls(values, condition.holds(numbers))

    def sees_value(self, name: str, number: int) -> bool:
        """Return whether the value of a property of a visible row is visible."""
        condition = self._properties[name] if self.is_guarded(name) else None
        return condition is None or condition.holds_for(number)

    def codes(self, name: str, rows: int | None = None) -> DictionaryCodes | None:
        """Return the dictionary codes of a text column; None for a masked property."""
        if self.is_guarded(name):
            return None
        if self.own is not None and self.own.is_slice and self.base.column_for(name, self.row_count) is not None:
            # The rows of other instants need the codes of the same column.
            return self.base.codes(name)
        return self.base.codes(name, rows)

    def derived(self, name: str, make: Callable[[], Derived]) -> Derived:
        """Return a structure computed from what is visible; it is computed once for each digest.

        Ranks of values that are not masked are those of the table.
        """
        if name.startswith(_RANKS) and not self.is_guarded(name.removeprefix("ranks:")):
            return self.base.derived(name, make)
        return self.base.derived(f"{self.digest}:{name}", make)

    def known(self, name: str) -> Any:
        """Return a structure of `derived` if it is in memory; else None."""
        return self.cache.find((*self.base.key, f"{self.digest}:{name}"))

    # -- sizes -----------------------------------------------------------------------------------

    def column_key(self, name: str) -> str:
        """Return the cache key of a column."""
        key = self.base.column_key(name)
        return f"{key}#{self.digest}" if self.is_guarded(name) else key

    def field_id(self, name: str) -> int:
        """Return the field id of a column."""
        return self.base.field_id(name)

    def is_few(self, rows: int) -> bool:
        """Return True if so many rows are read faster by their numbers than with the complete column."""
        return self.base.is_few(rows)

    def mean_bytes(self, name: str, rows: int) -> int:
        """Return the approximate size of a value of a column."""
        return self.base.mean_bytes(name, rows)

    def streams(self, name: str) -> bool:
        """Return True if a column does not fit the cache."""
        return self.base.streams(name)


StoredTable = TableData | VisibleTable
"""A table version, in full or as an actor sees it."""


class EntityRows(Protocol):
    """The nodes at an end of edges whose rows are periods: the numbers of ends are those of entities."""

    table: StoredTable
    key: tuple[str, str]

    @property
    def visible(self) -> Mask | None:
        """A mask of the visible entities; None if no row is hidden."""

    @property
    def row_count(self) -> int:
        """The number of entities."""

    def sees(self, numbers: Numbers) -> Mask:
        """Return which of some entities are visible."""

    def numbers_of(self, keys: pa.Array) -> Numbers:
        """Return the entities of some keys that exist."""


EndTable = TableData | VisibleTable | EntityRows
"""The nodes at an end of edges."""


def base_of(data: StoredTable) -> TableData:
    """Return the table version below what is visible of it."""
    return data.base if isinstance(data, VisibleTable) else data


class Guard:
    """Makes the visible tables of one visibility."""

    def __init__(self, visibility: Visibility, judge: Judge) -> None:
        self.visibility = visibility
        self._judge = judge

    @cached_property
    def _properties(self) -> Mapping[str, Mapping[str, ir.Condition | None]]:
        found: dict[str, dict[str, ir.Condition | None]] = {}
        for (key, name), condition in self.visibility.properties.items():
            found.setdefault(key, {})[name] = condition
        return found

    def node_table(self, key: str, data: TableData) -> StoredTable:
        """Return what is visible of a node table."""
        rows, properties = self._conditions(key, data)
        return data if rows is None and not properties else VisibleTable(data, rows, properties)

    def edge_table(self, key: str, data: TableData, ends: Ends, sources: EndTable, targets: EndTable) -> StoredTable:
        """Return what is visible of an edge table: an edge is visible only if both its ends are."""
        rows, properties = self._conditions(key, data)
        if not hides_rows(sources) and not hides_rows(targets):
            return data if rows is None and not properties else VisibleTable(data, rows, properties)
        return VisibleTable(data, rows, properties, (ends, sources, targets))

    def _conditions(self, key: str, data: TableData) -> tuple[RowCondition | None, dict[str, RowCondition | None]]:
        rows = None
        if key in self.visibility.rows:
            condition = self.visibility.rows[key]
            # A table without a visible row is not in the catalog; it is closed here as well.
            rows = self._row_condition(key, NOTHING if condition is None else condition, data)
        properties = {
            name: None if condition is None else RowCondition(condition, data, self._judge)
            for name, condition in self._properties.get(key, {}).items()
        }
        return rows, properties

    def _row_condition(self, key: str, condition: ir.Condition, data: TableData) -> RowCondition:
        """Return the condition of the rows of a table: that of a valid clause, of a policy, or of both."""
        test, policy = self.visibility.periods.get(key), self.visibility.policy
        if test is None or condition is NOTHING:
            return RowCondition(condition, data, self._judge)
        from omnigraph.engine.cache.timeline import PeriodCondition  # noqa: PLC0415 (only for a valid clause)

        given = None if policy is None else policy.rows.get(key)
        rest = None if given is None else RowCondition(given, data, self._judge)
        return PeriodCondition(condition, data, self._judge, test, rest)


NOTHING = ir.Const(False, ir.BOOL)
"""The condition that no row satisfies."""


def hides_rows(data: EndTable) -> bool:
    """Return True if rows of a table can be hidden."""
    table = data if isinstance(data, TableData | VisibleTable) else data.table
    return isinstance(table, VisibleTable) and table.hides_rows


def digest_of(*parts: str) -> str:
    """Return a digest of texts."""
    return sha256("\n".join(parts).encode()).hexdigest()[:32]


def _has(data: TableData, prop: ir.Prop) -> bool:
    """Return True if a table has a column of the name and the type of a property."""
    return data.has_column(prop.name) and data.column_type(prop.name) == arrow_type(prop.type)


def with_absent_columns(condition: ir.Condition, has: Callable[[ir.Prop], bool]) -> ir.Condition:
    """Return a condition with null in place of properties that a version of a table does not have."""

    def changed(expr: ir.Expr) -> ir.Expr:
        if isinstance(expr, ir.Prop) and not has(expr):
            return ir.Const(None, expr.type.with_nullable(True))
        return ir.with_parts(expr, changed)

    return cast(ir.Condition, changed(condition))
