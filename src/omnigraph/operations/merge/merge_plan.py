"""Planning of a merge of three snapshots. Nothing is written.

A table that only the source changed is adopted by version, without copying rows. Its changes are still validated,
because two valid sides can make an invalid graph. A table that both sides changed is merged by id range. The row
conflicts of all tables are reported together. Only a plan without row conflicts is validated, and then all violations
are reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import one_array
from omnigraph.engine.write.constraints import violations
from omnigraph.engine.write.delta import Delta, TableDelta, Violation
from omnigraph.operations.merge.column_mapping import document, names_in
from omnigraph.operations.merge.conflict_rules import ConflictRules
from omnigraph.operations.merge.guarded_merge import GuardedMerge, MergeRowRules
from omnigraph.operations.merge.merge_aliases import (
    AliasedEdges,
    AliasedNodes,
    AliasMerge,
    NewAliases,
    SideRows,
    decide_aliases,
    edge_reader,
)
from omnigraph.operations.merge.merge_embeddings import merge_embeddings
from omnigraph.operations.merge.merge_preview import MergeOutcome, MergePreview, PreviewTable, SettledRow
from omnigraph.operations.merge.merge_queries import decide_queries
from omnigraph.operations.merge.merge_schema import MergedTable, SchemaMerge, decide_schema
from omnigraph.operations.merge.merge_target import MergeTarget
from omnigraph.operations.merge.merge_tasks import MergeJob, RunRanges, Side, decide_table
from omnigraph.operations.merge.settled_rows import settled_rows
from omnigraph.operations.merge.violation_rows import ViolationRows, plain_conflict
from omnigraph.operations.stored_queries import queries_of, record_of
from omnigraph.query.stored_queries import QuerySet, changed_queries
from omnigraph.schema.catalog import Catalog, EdgeType
from omnigraph.storage.lance.staging import TableWrite
from omnigraph.storage.lance.table_store import TableStore
from omnigraph.versioning.compare.diff import Identity, TableDiff, by_identity
from omnigraph.versioning.compare.equality import same_column
from omnigraph.versioning.compare.rows import to_dicts
from omnigraph.versioning.compare.three_way import (
    ConflictDetail,
    MergeRule,
    Resolution,
    Row,
    TableMerge,
    VirtualBase,
    concat_merges,
    in_columns,
    nullable_columns,
    override_rows,
    take_changes,
)
from omnigraph.versioning.model.aliases import AliasSet
from omnigraph.versioning.model.manifest_objects import Pin
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.model.snapshot_view import PinnedTable
from omnigraph.versioning.write.transaction import Transaction

VirtualBases = Callable[[Identity, SchemaMerge], VirtualBase | None]
"""Table → rows of the virtual base of several common ancestors; None if there is one ancestor."""


@dataclass(frozen=True)
class PlannedTable:
    """The planned change of one table of the target."""

    target_key: str
    """The key of the table in the target before the merge."""
    merge: TableMerge
    adopted: PinnedTable | None = None

    def preview(self) -> PreviewTable:
        """Return the numbers of changed rows."""
        return PreviewTable(**self.merge.counts(), adopted=self.adopted is not None)


@dataclass
class MergePlan:
    """The plan of a merge."""

    outcome: MergeOutcome
    source_commit: str
    tables: dict[str, PlannedTable] = field(default_factory=dict)
    new: dict[str, tuple[Pin, int]] = field(default_factory=dict)
    """Tables that are new in the target: pin and number of rows."""
    dropped: list[str] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)
    schema: SchemaMerge | None = None
    conflicts: list[ConflictDetail] = field(default_factory=list)
    """The conflicts that the caller may see."""
    hidden_conflicts: int = 0
    """The number of the other conflicts."""
    queries: QuerySet = field(default_factory=QuerySet)
    """The stored queries of the merged graph."""
    query_changes: int = 0
    """The number of stored queries that differ from those of the target."""
    aliases: AliasSet = field(default_factory=AliasSet)
    """The aliases of nodes of the merged graph."""
    shown: GuardedMerge | None = None
    """Decides what the caller may see; None if everything."""
    settled: tuple[SettledRow, ...] = ()
    """The first rows whose conflicts are resolved."""

    @property
    def guarded(self) -> bool:
        """True if rules limit what the caller may see."""
        return self.shown is not None

    @property
    def has_conflicts(self) -> bool:
        """True if the plan cannot be staged."""
        return bool(self.conflicts) or self.hidden_conflicts > 0

    def preview(self) -> MergePreview:
        """Return the plan without its rows."""
        if self.shown is not None:
            return self._visible_preview(self.shown)
        tables = {key: table.preview() for key, table in self.tables.items()}
        tables |= {key: PreviewTable(rows, 0, 0, adopted=True) for key, (_, rows) in self.new.items()}
        return MergePreview(
            self.outcome,
            self.source_commit,
            dict(sorted(tables.items())),
            tuple(sorted(self.dropped)),
            dict(self.renamed),
            self.schema is not None and self.schema.record is not None,
            tuple(step.describe() for step in self.schema.steps) if self.schema is not None else (),
            list(self.conflicts),
            settled=self.settled,
            query_changes=self.query_changes,
        )

    def _visible_preview(self, shown: GuardedMerge) -> MergePreview:
        """Return what the caller may see of the plan, and whether it changes other rows."""
        tables: dict[str, PreviewTable] = {}
        hidden = False
        for key, table in self.tables.items():
            changes = shown.visible_changes(key, table.merge, table.adopted)
            count = 0 if changes is None else changes.count
            hidden = hidden or count < table.merge.put.num_rows + len(table.merge.delete)
            if changes is not None and count:
                counts = changes.inserted.num_rows, changes.new.num_rows, changes.deleted.num_rows
                tables[key] = PreviewTable(*counts, adopted=table.adopted is not None)
        for key, (_, rows) in self.new.items():
            inserted = shown.visible_insertions(key)
            hidden = hidden or inserted < rows
            if shown.shows_table(key):
                tables[key] = PreviewTable(inserted, 0, 0, adopted=True)
        return MergePreview(
            self.outcome,
            self.source_commit,
            dict(sorted(tables.items())),
            tuple(key for key in sorted(self.dropped) if key in shown.target_keys),
            {old: new for old, new in self.renamed.items() if old in shown.target_keys and shown.shows_table(new)},
            self.schema is not None and self.schema.record is not None,
            (),
            list(self.conflicts),
            self.hidden_conflicts,
            hidden,
            query_changes=self.query_changes,
        )

    # -- execution -------------------------------------------------------------------------------

    def stage(self, transaction: Transaction, theirs: Snapshot) -> None:
        """Add the planned changes to a transaction on the target."""
        assert self.schema is not None
        for key, table in self.tables.items():
            merge = table.merge
            if table.adopted is not None:
                transaction.set_version(table.target_key, theirs.open(table.adopted))
                transaction.set_embeddings(table.target_key, dict(table.adopted.pin.embeddings))
                continue
            merge_embeddings(transaction, table.target_key, theirs, named=not self.guarded)
            evolved = self.schema.evolved(key, transaction.snapshot.table(table.target_key))
            if merge.put.num_rows or len(merge.delete):
                new = pc.is_in(merge.put["id"], value_set=merge.new_ids)
                change = TableWrite(
                    append=merge.put.filter(new),
                    upsert=merge.put.filter(pc.invert(new)),
                    delete=merge.delete.to_pylist(),
                )
                transaction.change(table.target_key, change, on=evolved)
            elif evolved is not None:
                transaction.set_version(table.target_key, evolved)
        for pin, _ in self.new.values():
            transaction.adopt_table(pin)
        for key in self.dropped:
            transaction.drop_table(key)
        for old, new in self.renamed.items():
            transaction.rename_table(old, new)
        if self.schema.record is not None:
            transaction.take_schema(self.schema.record)
        if self.aliases.hash != transaction.snapshot.aliases_hash:
            transaction.set_aliases(self.aliases)
        if self.queries.hash != transaction.snapshot.queries_hash:
            transaction.set_queries(record_of(self.queries))


def plan_snapshots(
    outcome: MergeOutcome,
    bases: Sequence[Snapshot],
    ours: Snapshot,
    theirs: Snapshot,
    rules: Callable[[Catalog, Catalog | None], ConflictRules],
    virtual: VirtualBases = lambda *_: None,
    run_ranges: RunRanges | None = None,
    row_rules: MergeRowRules | None = None,
    *,
    restores: bool = False,
) -> MergePlan:
    """Plan a merge of two snapshots on one or several bases. `run_ranges` runs the tasks for large tables.

    If it `restores` an earlier state, the values of restored properties return to rows that the target changed since.
    With `row_rules`, `Denied` is raised for the first change that they do not allow.
    """
    plan = MergePlan(outcome, theirs.commit_id)
    plan.schema = decide_schema(bases, ours, theirs)
    guard = None if row_rules is None else row_rules.guarded(ours, theirs, plan.schema)
    plan.shown = guard
    plan.conflicts += plan.schema.conflicts
    if not plan.conflicts:
        chosen = rules(plan.schema.catalog, None if guard is None else guard.visible_catalog)
        if document(ours.schema).merge_properties == "combine":
            chosen.combine_properties()
        if guard is not None and guard.conceals_names:
            chosen.conceal_names()
        plan.queries, clashes = decide_queries(bases, ours, theirs, chosen)
        plan.query_changes = sum(1 for _ in changed_queries(queries_of(ours), plan.queries))
        plan.conflicts += clashes
        keys = {identity[0]: table.key for identity, table in plan.schema.merged_tables.items()}
        aliases = decide_aliases(bases, ours, theirs, keys, chosen)
        plan.conflicts += aliases.conflicts
        planner = _Planner(
            plan, plan.schema, bases, ours, theirs, chosen, virtual, run_ranges, guard, aliases, restores
        )
        if guard is not None:
            guard.deltas = planner.deltas
        planner.run()
    if guard is not None:
        plan.conflicts, plan.hidden_conflicts = guard.visible_conflicts(plan.conflicts)
    return plan


@dataclass
class _Planner:
    plan: MergePlan
    schema: SchemaMerge
    bases: Sequence[Snapshot]
    ours: Snapshot
    theirs: Snapshot
    rules: ConflictRules
    virtual: VirtualBases
    run_ranges: RunRanges | None = None
    guard: GuardedMerge | None = None
    aliases: AliasMerge = field(default_factory=AliasMerge)
    restores: bool = False
    deltas: dict[str, TableDelta] = field(default_factory=dict)
    repaired: dict[str, list[str]] = field(default_factory=dict)
    """Rows that resolve violations, by table."""

    def __post_init__(self) -> None:
        self._violation_rows = ViolationRows(self.schema, self.ours, self.theirs, self.deltas, self._rows)

    def run(self) -> None:
        if self.guard is not None:
            for table in self.schema.merged_tables.values():
                self.guard.check_chosen(table, self.rules.of(table.key))
        sides = [by_identity(snapshot) for snapshot in (self.bases[0], self.ours, self.theirs)]
        for identity in sorted({**sides[0], **sides[1], **sides[2]}):
            b, t, s = (side.get(identity) for side in sides)
            merged_table = self.schema.merged_tables.get(identity)
            if merged_table is None:
                self._drop(b, t, s)
                continue
            if t is not None and merged_table.key != t.pin.key:
                self.plan.renamed[t.pin.key] = merged_table.key
            if t is not None and s is not None:
                self._merge(merged_table, identity, b, t, s)
            elif s is not None:
                self._add(merged_table, s)
        self._drop_aliases()
        if not self.plan.conflicts:
            self._validate()
        elif self.rules.unused:
            # The other ids in 'resolve' can name violations, which are reported after these conflicts are resolved.
            for violation in self._violations():
                for key, row_id in self._nameable_rows(violation):
                    self._used(key, [row_id])
        self.rules.check_all_used()
        if self.guard is None:
            merges = {key: table.merge for key, table in self.plan.tables.items()}
            self.plan.settled = settled_rows(self.schema, self.ours, merges, self.repaired, self._rows)

    def _used(self, key: str, ids: Sequence[str]) -> None:
        """Mark the resolutions of some rows as used. A hidden row has no conflict that can be named."""
        if self.guard is not None:
            identity, table = next(item for item in self.schema.merged_tables.items() if item[1].key == key)
            sides = [(snapshot, by_identity(snapshot).get(identity)) for snapshot in (self.ours, self.theirs)]
            images = [self._rows(side, identity, pinned, ids) for side, pinned in sides if pinned is not None]
            ids = self.guard.visible_ids(table, ids, images)
        self.rules.used(key, ids)

    def _drop(self, b: PinnedTable | None, t: PinnedTable | None, s: PinnedTable | None) -> None:
        """Drop a table that one side dropped. It is a conflict if the other side changed its rows."""
        if t is not None:
            self.plan.dropped.append(t.pin.key)
        kept, who, other = (t, "source", "target") if t is not None else (s, "target", "source")
        if kept is None or b is None or kept.pin.lance_version == b.pin.lance_version:
            return
        snapshot = self.ours if t is not None else self.theirs
        base = self.bases[0]
        diff = TableDiff(kept.pin.key, base.open(b), snapshot.open(kept), _base_names(base, snapshot, kept))
        count = sum(changes.count for changes in diff.ranges())
        if count:
            message = f"the {who} dropped the type, the {other} changed {count} of its rows"
            self.plan.conflicts.append(ConflictDetail(kept.pin.key, None, "schema_conflict", message))

    def _add(self, merged_table: MergedTable, s: PinnedTable) -> None:
        """Add a table that only the source has."""
        self.plan.new[merged_table.key] = (replace(s.pin, key=merged_table.key), s.pin.row_count)
        checked = self._checked_columns(merged_table)
        rows = self.theirs.open(s).read(checked.names)
        self.deltas[merged_table.key] = TableDelta(in_columns(rows, checked))

    def _checked_columns(self, merged_table: MergedTable) -> pa.Schema:
        more = () if self.guard is None else self.guard.checked_columns(merged_table)
        return self.schema.checked_columns(merged_table, more)

    def _merge(
        self, merged_table: MergedTable, identity: Identity, b: PinnedTable | None, t: PinnedTable, s: PinnedTable
    ) -> None:
        """Merge a table that both sides have."""
        key, columns = merged_table.key, merged_table.columns
        base_version = b.pin.lance_version if b is not None else None
        ours, theirs = self.ours.open(t), self.theirs.open(s)
        evolves = _names(ours.schema) != _names(columns)
        same = s.pin.lance_version in (t.pin.lance_version, base_version) and not evolves
        # Only the changes of a side can concern aliases that it does not know.
        late = t.pin.lance_version != base_version
        new = self.aliases.of(self.schema.type_of(merged_table))
        new = {column: one for column, one in new.items() if (one.theirs and late) or (one.ours and not same)}
        if same:
            if new:
                merge = self._aliased(
                    concat_merges([], nullable_columns(columns)), merged_table, identity, b, t, s, new
                )
                if merge.put.num_rows or len(merge.delete) or merge.conflicts:
                    self.plan.tables[key] = PlannedTable(t.pin.key, merge)
                    self.plan.conflicts += merge.conflicts
                    self.deltas[key] = TableDelta(merge.put, merge.delete)
            return
        base, mine, yours = (
            Side(table.pin.lance_version, table.pin.transaction, self.schema.names(snapshot, identity))
            if table is not None
            else None
            for snapshot, table in ((self.bases[0], b), (self.ours, t), (self.theirs, s))
        )
        assert mine is not None
        assert yours is not None
        store = ours.store
        rule = self.rules.of(key)
        if self.restores:
            rule = replace(rule, restored=self.schema.new_columns(key))
        job = MergeJob(store.location, t.folder, key, base, mine, yours, nullable_columns(columns), rule)
        if self.guard is not None and job.rule.rows:
            job = replace(job, rule=self._nameable(job, store, identity, self.guard))
        unchanged = t.pin.lance_version == base_version and _names(theirs.schema) == _names(columns)
        if unchanged and not job.rule.rows and not any(one.ours for one in new.values()):
            # The table is adopted with its rows; only the columns that rules read are kept.
            checked = self._checked_columns(merged_table)
            changes = job.diffs(store)[1].ranges()
            merge = concat_merges((take_changes(part, checked) for part in changes), nullable_columns(checked))
            self.plan.tables[key] = PlannedTable(t.pin.key, merge, s)
        else:
            parts = decide_table(job, store, self.virtual(identity, self.schema), self.run_ranges)
            merge = concat_merges(parts, nullable_columns(columns))
            self._used(key, merge.resolved)
            if new:
                merge = self._aliased(merge, merged_table, identity, b, t, s, new)
            self.plan.tables[key] = PlannedTable(t.pin.key, merge)
            self.plan.conflicts += merge.conflicts
            self._check_dropped(key, identity, b)
            self._check_required(merged_table, t, merge)
        self.deltas[key] = TableDelta(merge.put, merge.delete)

    def _aliased(
        self,
        merge: TableMerge,
        merged_table: MergedTable,
        identity: Identity,
        b: PinnedTable | None,
        t: PinnedTable,
        s: PinnedTable,
        new: Mapping[str, NewAliases],
    ) -> TableMerge:
        """Apply the aliases that one side does not know to the changes of that side."""
        key, type_ = merged_table.key, self.schema.type_of(merged_table)
        columns = nullable_columns(merged_table.columns)
        if isinstance(type_, EdgeType):
            sides = ((self.ours, t), (self.theirs, s))
            read = [edge_reader(side.open(table), self.schema.names(side, identity)) for side, table in sides]
            return AliasedEdges(key, type_, new, read[0], read[1], self.guard).apply(merge, columns)

        def reader(snapshot: Snapshot, table: PinnedTable | None) -> Callable[[Sequence[str]], dict[str, Row]]:
            return lambda ids: self._rows(snapshot, identity, table, ids) if table is not None else {}

        rows = SideRows(reader(self.bases[0], b), reader(self.ours, t), reader(self.theirs, s))
        return AliasedNodes(key, type_, new["id"], self.rules.of(key), rows).apply(merge, columns)

    def _drop_aliases(self) -> None:
        """Remove the aliases of nodes that the merged graph does not have."""
        aliases = self.aliases
        for identity, table in self.schema.merged_tables.items() if aliases.aliases else ():
            planned = self.plan.tables.get(table.key)
            gone: list[str] = [] if planned is None else planned.merge.delete.to_pylist()
            new = aliases.new.get(table.key)
            target = by_identity(self.ours).get(identity)
            if new is not None and new.theirs and target is not None:
                nodes = list(dict.fromkeys(new.theirs.values()))
                known = set(self.ours.open(target).rows_of(nodes, ["id"])["id"].to_pylist())
                known |= set() if planned is None else set(planned.merge.put["id"].to_pylist())
                gone += [node for node in nodes if node not in known]
            if gone:
                aliases = aliases.without_nodes(identity[0], gone)
        self.plan.aliases = aliases.aliases

    def _nameable(self, job: MergeJob, store: TableStore, identity: Identity, guard: GuardedMerge) -> MergeRule:
        """Return the rule of a table without the resolutions of hidden conflicts, which the caller cannot name."""
        parts = decide_table(
            replace(job, rule=MergeRule(restored=job.rule.restored)),
            store,
            self.virtual(identity, self.schema),
            self.run_ranges,
        )
        conflicts = [conflict for part in parts for conflict in part.conflicts]
        hidden = {conflict.row_id for conflict in conflicts if not guard.visible_conflicts([conflict])[0]}
        rows = {id_: choice for id_, choice in job.rule.rows.items() if id_ not in hidden}
        return replace(job.rule, rows=rows)

    def _check_dropped(self, key: str, identity: Identity, b: PinnedTable | None) -> None:
        """Report a conflict for each column that one side dropped and the other side changed."""
        base = self.bases[0]
        sides = (("source", "target", self.ours), ("target", "source", self.theirs))
        for who, other, snapshot in sides:
            kept = self.schema.names(snapshot, identity)
            if b is None or kept is None:
                continue
            table = by_identity(snapshot)[identity]
            then = names_in(document(base.schema), document(snapshot.schema))[identity]
            dropped = [name for name in then.values() if name not in kept]
            if not dropped:
                continue
            diff = TableDiff(key, base.open(b), snapshot.open(table), then)
            for changes in diff.ranges():
                for name in dropped:
                    same = same_column(*(one_array(side[name]) for side in (changes.old, changes.new)))
                    inserted = changes.inserted[name]
                    count = int((~same).sum()) + len(inserted) - inserted.null_count
                    if count:
                        message = f"the {who} dropped '{name}', the {other} changed it in {count} rows"
                        self.plan.conflicts.append(
                            ConflictDetail(key, None, "schema_conflict", message, properties=(name,))
                        )

    def _check_required(self, merged_table: MergedTable, t: PinnedTable, merge: TableMerge) -> None:
        """Report a conflict for each required column that one side adds and that rows of the other side lack."""
        key = merged_table.key
        kept = t.pin.row_count - len(merge.delete) - (merge.put.num_rows - len(merge.new_ids))
        new = self.schema.new_columns(key)
        for property_ in self.schema.type_of(merged_table).properties.values():
            count = merge.put[property_.name].null_count + (kept if property_.name in new else 0)
            if count and not property_.type.nullable:
                message = f"'{property_.name}' is required, and {count} rows have no value for it"
                self.plan.conflicts.append(
                    ConflictDetail(key, None, "schema_conflict", message, properties=(property_.name,))
                )

    # -- validation ------------------------------------------------------------------------------

    def _validate(self) -> None:
        """Apply every rule to the result. Rows named in `resolve` are resolved, and the result is validated again."""
        resolved: set[tuple[str, str]] = set()
        while True:
            found = self._violations()
            named = {
                (key, row_id)
                for violation in found
                for key, row_id in self._nameable_rows(violation)
                if row_id in self.rules.of(key).rows
            } - resolved
            if not named:
                break
            resolved |= named
            for key in {key for key, _ in named}:
                ids = sorted(row_id for other, row_id in named if other == key)
                self.repaired.setdefault(key, []).extend(ids)
                self._resolve(key, ids)
        self.plan.conflicts += map(self._violation_rows.conflict if self.guard is None else plain_conflict, found)

    def _violations(self) -> list[Violation]:
        guard = None if self.guard is None else self.guard.write
        delta = Delta(self.deltas, MergeTarget(self.ours, self.schema), guard=guard)
        return list(violations(self.schema.catalog, delta))

    def _nameable_rows(self, violation: Violation) -> Iterator[tuple[str, str]]:
        """Yield the rows whose resolution can end a violation. Rules for rows hide those without a listed id."""
        if self.guard is None or plain_conflict(violation).row_id is not None:
            yield from self._violation_rows.names(violation, related=bool(self.rules.unused))

    def _resolve(self, key: str, ids: Sequence[str]) -> None:
        """Replace rows that violate a rule by the state that `resolve` selects."""
        self._used(key, ids)
        identity, merged_table = next(item for item in self.schema.merged_tables.items() if item[1].key == key)
        tables = [by_identity(snapshot).get(identity) for snapshot in (self.ours, self.theirs)]
        if tables[0] is None:
            return  # The type is new in the target, and its table is adopted as a whole.
        columns = nullable_columns(merged_table.columns)
        planned = self.plan.tables.get(key)
        merge = planned.merge if planned is not None else concat_merges([], columns)
        mine, yours = (
            self._rows(snapshot, identity, table, ids) if table is not None else {}
            for snapshot, table in zip((self.ours, self.theirs), tables, strict=True)
        )
        merged = {**dict.fromkeys(merge.delete.to_pylist()), **{row["id"]: row for row in to_dicts(merge.put)}}
        rows: dict[str, tuple[Row | None, Row | None]] = {}
        for id_ in ids:
            current = merged[id_] if id_ in merged else mine.get(id_)
            rows[id_] = mine.get(id_), _chosen(self.rules.of(key).rows[id_], current, mine.get(id_), yours.get(id_))
        merge = override_rows(merge, rows, key, columns)
        self.plan.tables[key] = PlannedTable(tables[0].pin.key, merge)
        self.deltas[key] = TableDelta(merge.put, merge.delete)

    def _rows(self, snapshot: Snapshot, identity: Identity, table: PinnedTable, ids: Sequence[str]) -> dict[str, Row]:
        """Rows of one side by id, in the columns of the merged schema."""
        names = self.schema.names(snapshot, identity)
        found = to_dicts(snapshot.open(table).rows_of(list(ids)))
        if names is not None:
            found = [{names[name]: value for name, value in row.items() if name in names} for row in found]
        return {row["id"]: row for row in found}


def _chosen(choice: Resolution | Row | None, current: Row | None, ours: Row | None, theirs: Row | None) -> Row | None:
    """The state of a row that a resolution selects."""
    match choice:
        case None:
            return None
        case "ours":
            return ours
        case "theirs":
            return theirs
        case dict():
            return {**current, **choice} if current is not None else None
        case _:
            return current


def _base_names(base: Snapshot, snapshot: Snapshot, table: PinnedTable) -> Mapping[str, str] | None:
    """The base's columns of a table under the names of a snapshot."""
    if base.schema_hash == snapshot.schema_hash:
        return None
    identity = table.pin.table_id, table.pin.incarnation
    return names_in(document(base.schema), document(snapshot.schema)).get(identity)


def _names(schema: pa.Schema) -> set[str]:
    return set(schema.names)
