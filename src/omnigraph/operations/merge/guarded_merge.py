"""Merges and reverts under rules for rows and properties.

The caller lands changes of others. Each changed row of the target is checked as it was and as it becomes, unless a rule
trusts the merge. Conflicts in rows that the caller cannot see are counted and not shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import one_array
from omnigraph.engine.write.delta import TableDelta
from omnigraph.engine.write.overlay import WriteOverlay
from omnigraph.engine.write.unify import compared_rows, row_codes
from omnigraph.errors import Denied
from omnigraph.operations.merge.merge_schema import MergedTable, SchemaMerge
from omnigraph.operations.merge.merge_target import MergeTarget
from omnigraph.query.visibility import project_catalog
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.versioning.compare.diff import TableChanges, compare
from omnigraph.versioning.compare.rows import from_dicts
from omnigraph.versioning.compare.three_way import (
    ConflictDetail,
    MergeRule,
    Row,
    TableMerge,
    describe_conflict,
    nullable_columns,
)
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.model.snapshot_view import PinnedTable

if TYPE_CHECKING:
    from omnigraph.engine.cache.table_cache import Mask
    from omnigraph.engine.write.row_guard import GuardedWrite, ReadRows
    from omnigraph.operations.graph_context import GraphContext
    from omnigraph.policy.breakage import SchemaCheck
    from omnigraph.query.write_guard import WriteGuard

_ROW_CONFLICTS = ("divergent_insert", "divergent_update", "delete_vs_update")


@dataclass(frozen=True)
class MergeRowRules:
    """The rules for rows and properties that limit the caller of a merge or revert."""

    guard_of: Callable[[Catalog, str], WriteGuard | None]
    """Returns what the caller may change of a branch with a schema; None if it may change everything."""
    sees_alike: Callable[[Snapshot, str], bool]
    """Returns True if the caller sees everything of a snapshot, or would see the same of it on a branch."""
    catalog_of: Callable[[Snapshot], Catalog]
    check_schema: SchemaCheck | None = None
    """Tells whether a change of the schema would break rules."""
    trusted: bool = False
    """True if a rule says that the rows of the merge are not checked."""
    preview: bool = False
    """True if nothing is written: the changes are not checked, and the plan shows what is visible of them."""

    def guarded(self, ours: Snapshot, theirs: Snapshot, schema: SchemaMerge) -> GuardedMerge | None:
        """Return the rules for a merge of two snapshots; None if nothing is limited.

        A merge that changes the schema, or brings rows to a branch where the caller sees other rows, is denied.
        """
        branch, catalog = ours.branch, self.catalog_of(ours)
        guard = self.guard_of(catalog, branch)
        if guard is None and schema.record is not None and self._may_break(catalog, schema.catalog):
            # The rules do not fit the merged schema, so they limit nothing of it.
            return None
        if schema.record is not None and self.preview:
            merged = self.guard_of(schema.catalog, branch)
            if (guard is None) != (merged is None):
                raise Denied("the preview is denied: the merge would change which rules for rows limit you")
            guard = merged
        elif schema.record is not None:
            guards = [guard]
            if guard is None or self.trusted:
                if self.check_schema is not None:
                    self.check_schema.check(catalog, schema.catalog)
                guard = self.guard_of(schema.catalog, branch)
                guards.append(guard)
            if not self.trusted and any(one is not None for one in guards):
                raise _denied(branch, "it changes the schema, and rules for rows limit what you may see or change")
        if (self.preview or not self.trusted) and not self.sees_alike(theirs, branch):
            raise _denied(branch, f"the rules for rows of '{branch}' show other rows and values of its source")
        if guard is None:
            return None
        from omnigraph.engine.write.row_guard import GuardedWrite  # noqa: PLC0415 (only for a guard)

        trusted = self.trusted or self.preview
        write = GuardedWrite(guard, schema.catalog, WriteOverlay(ours), lands=True, trusted=trusted)
        now = (self.guard_of(catalog, branch) or guard).visibility
        keys = frozenset(str(type_.table_key) for type_ in project_catalog(catalog, now).tables())
        return GuardedMerge(write, schema, MergeTarget(ours, schema), theirs, keys, branch, self.trusted)

    def _may_break(self, before: Catalog, after: Catalog) -> bool:
        """Return True if a change of the schema breaks rules and is shown or permitted nevertheless."""
        check = self.check_schema
        return check is not None and (self.preview or check.allowed) and bool(check.broken(before, after))


def row_rules_of(
    context: GraphContext, *, trusted: bool = False, preview: bool = False, check: SchemaCheck | None = None
) -> MergeRowRules | None:
    """Return the rules for rows and properties that limit a caller; None if there are none."""
    if not context.has_row_rules:
        return None
    check = check or context.schema_check()
    return MergeRowRules(context.guard_on, context.sees_alike, context.catalogs.of, check, trusted, preview)


def _denied(branch: str, reason: str) -> Denied:
    return Denied(f"the change of '{branch}' is denied: {reason}; nothing was written", (reason,))


@dataclass
class GuardedMerge:
    """A guard, applied to one plan of a merge."""

    write: GuardedWrite
    schema: SchemaMerge
    target: MergeTarget
    theirs: Snapshot
    target_keys: frozenset[str]
    """The tables of the target that are visible."""
    branch: str
    """The target."""
    trusted: bool = False
    """True if a rule says that the rows of the merge are not checked."""
    deltas: Mapping[str, TableDelta] = field(default_factory=dict)
    """The planned changes by table."""

    @cached_property
    def _tables(self) -> dict[str, MergedTable]:
        return {table.key: table for table in self.schema.merged_tables.values()}

    @cached_property
    def visible_catalog(self) -> Catalog:
        """What the caller may see of the merged schema."""
        return project_catalog(self.schema.catalog, self.write.guard.visibility)

    @property
    def conceals_names(self) -> bool:
        """True if conflicts of the schema, of stored queries and of aliases are hidden."""
        visibility = self.write.guard.visibility
        return bool(visibility.rows or visibility.properties)

    def check_chosen(self, table: MergedTable, rule: MergeRule) -> None:
        """Raise `Denied` for values and deletions in `resolve` that the caller may not make.

        These are changes of the caller, not of the merged branch, so a rule that trusts the merge does not cover them.
        An equal value is an assignment, too.
        """
        type_ = self.schema.type_of(table)
        for id_, choice in rule.rows.items():
            if isinstance(choice, str):
                continue
            rows = self._read(table.key, pa.array([id_], pa.utf8()), self.write.checked_columns(type_), "id")
            if self._sees_rows(type_, rows):
                self.write.require_chosen(type_, rows, choice)

    def checked_columns(self, table: MergedTable) -> list[str]:
        """Return the columns of changed rows that the check reads."""
        return self.write.checked_columns(self.schema.type_of(table))

    def visible_ids(self, table: MergedTable, ids: Iterable[str], sides: Iterable[Mapping[str, Row]]) -> list[str]:
        """Return the ids of the rows that are visible on each side that has them."""
        known = [*sides]
        return [id_ for id_ in ids if self._sees(table, [rows[id_] for rows in known if id_ in rows])]

    def visible_conflicts(self, conflicts: Iterable[ConflictDetail]) -> tuple[list[ConflictDetail], int]:
        """Return what is visible of conflicts, and the number of those that are not."""
        seen = [self._shown(conflict) for conflict in conflicts]
        visible = [conflict for conflict in seen if conflict is not None]
        return visible, len(seen) - len(visible)

    def foldable(self, edge: EdgeType, rows: pa.Table, columns: Sequence[str], is_moved: Mask) -> Mask:
        """Return which edges may be folded with edges that are equal in some columns: those that the caller sees.

        Raise `Denied` if a hidden edge or value decides whether an edge that it sees is folded.
        """
        if self.trusted:
            return np.ones(rows.num_rows, bool)
        seen = self.write.sees(edge, rows, self._read_planned)
        codes = row_codes(rows, columns)
        mixed = np.isin(codes, codes[seen]) & np.isin(codes, codes[~seen])
        if (mixed & compared_rows(rows, columns, is_moved)).any():
            raise _denied(self.branch, "an edge would be folded with one that you cannot read")
        visible = rows.filter(pa.array(seen))
        withheld = [names.intersection(columns) for names in self.write.withheld_values(edge, visible)]
        names = set[str]().union(*withheld)
        shown = [name for name in columns if name not in names]
        if (np.array([bool(one) for one in withheld], bool) & compared_rows(visible, shown, is_moved[seen])).any():
            raise _denied(self.branch, "a value of the edges is hidden from you")
        return seen

    def withholds(self, edge: EdgeType, row: Row) -> bool:
        """Return True if an edge, or one of its values, is hidden from a caller whose merge is checked."""
        if self.trusted:
            return False
        rows = self._table(self._tables[edge.table_key], [row])
        return not self._sees_rows(edge, rows) or any(self.write.withheld_values(edge, rows))

    def shows_table(self, key: str) -> bool:
        """Return True if rows of a table of the merged schema can be visible."""
        return self.write.shows_type(self.schema.type_of(self._tables[key]))

    def visible_changes(self, key: str, planned: TableMerge, adopted: PinnedTable | None) -> TableChanges | None:
        """Return what is visible of the planned changes of a table; None if nothing is.

        A row is judged as it is in the target and as it becomes.
        """
        if not self.shows_table(key):
            return None
        table = self._tables[key]
        type_, names = self.schema.type_of(table), list(table.columns.names)
        ids = one_array(planned.put["id"])
        put = planned.put if adopted is None else self.theirs.open(adopted).rows_of(ids.to_pylist(), names)
        old = self.target.rows_among(key, "id", pa.concat_arrays([ids, planned.delete]), names)
        before = self._visible(type_, old, self._read)
        after = self._visible(type_, put.select(names), self._read_planned)
        return compare(key, before, after)

    def visible_insertions(self, key: str) -> int:
        """Return the number of visible rows of a table that is new in the target."""
        if not self.shows_table(key):
            return 0
        rows = self.deltas[key].rows
        return int(self.write.sees(self.schema.type_of(self._tables[key]), rows, self._read_planned).sum())

    def _visible(self, type_: NodeType | EdgeType, rows: pa.Table, read: ReadRows) -> pa.Table:
        shown = self.write.masked(type_, rows.filter(pa.array(self.write.sees(type_, rows, read))))
        return shown.select([name for name in shown.schema.names if not self.write.hides(type_, name)])

    def _read_planned(self, key: str, values: pa.Array, columns: Sequence[str], column: str) -> pa.Table:
        """Return the rows with these values in a column as the merge leaves them."""
        rows = self.target.rows_among(key, column, values, columns)
        delta = self.deltas.get(key)
        if delta is None:
            return rows
        gone = pa.concat_arrays([one_array(delta.rows["id"]), one_array(delta.deleted)])
        put = delta.rows.filter(pc.is_in(delta.rows[column], value_set=values)).select([*columns])
        kept = rows.filter(pc.invert(pc.is_in(rows["id"], value_set=gone)))
        return pa.concat_tables([kept, put], promote_options="permissive")

    def _shown(self, conflict: ConflictDetail) -> ConflictDetail | None:
        """Return what is visible of a conflict; None if it is hidden."""
        if conflict.kind in ("schema_conflict", "query_conflict", "alias_conflict"):
            return None if self.conceals_names else conflict
        table = self._tables[conflict.table_key]
        if not self.write.shows_type(self.schema.type_of(table)):
            return None
        if conflict.kind in _ROW_CONFLICTS:
            return self._shown_row(conflict, table)
        # The message of a violation contains nothing hidden. Without an id, it concerns hidden rows.
        if conflict.row_id is None:
            return conflict
        return conflict if conflict.row_id and self._sees_stored(table, conflict.row_id) else None

    def _shown_row(self, conflict: ConflictDetail, table: MergedTable) -> ConflictDetail | None:
        images = [conflict.base, conflict.ours, conflict.theirs]
        rows = [image for image in images if image is not None]
        if not self._sees(table, rows):
            return None
        withheld = iter(self.write.withheld_values(self.schema.type_of(table), self._table(table, rows)))
        every: set[str] = set()
        shown: list[Row | None] = []
        for image in images:
            names = next(withheld) if image is not None else set[str]()
            every |= names
            shown.append(None if image is None else self._shown_image(image, table, names))
        changed = tuple(name for name in conflict.properties if name not in every)
        if conflict.properties and not changed:
            return None
        base, ours, theirs = shown
        message = describe_conflict(conflict.kind, ours, theirs, changed)
        return replace(conflict, message=message, base=base, ours=ours, theirs=theirs, properties=changed)

    def _shown_image(self, image: Row, table: MergedTable, withheld: set[str]) -> Row:
        type_ = self.schema.type_of(table)
        return {
            name: None if name in withheld else value
            for name, value in image.items()
            if not self.write.hides(type_, name)
        }

    def _sees(self, table: MergedTable, rows: Sequence[Row]) -> bool:
        return self._sees_rows(self.schema.type_of(table), self._table(table, rows))

    def _sees_stored(self, table: MergedTable, id_: str) -> bool:
        """Return True if the row with an id is visible in the target and as it becomes."""
        type_ = self.schema.type_of(table)
        ids, columns = pa.array([id_], pa.utf8()), self.write.checked_columns(type_)
        images = [self.target.rows_among(table.key, "id", ids, columns)]
        if table.key in self.deltas:
            rows = self.deltas[table.key].rows
            images.append(rows.filter(pc.equal(rows["id"], id_)))
        return all(self._sees_rows(type_, image) for image in images)

    def _sees_rows(self, type_: NodeType | EdgeType, rows: pa.Table) -> bool:
        return bool(self.write.sees(type_, rows, self._read).all())

    def _read(self, key: str, values: pa.Array, columns: Sequence[str], column: str) -> pa.Table:
        return self.target.rows_among(key, column, values, columns)

    def _table(self, table: MergedTable, rows: Sequence[Row]) -> pa.Table:
        wanted = {*self.checked_columns(table)}
        columns = nullable_columns(pa.schema([column for column in table.columns if column.name in wanted]))
        return from_dicts(rows, columns)
