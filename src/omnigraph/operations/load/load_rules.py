"""The rules of a load: which record wins, which records are set aside, and which error is raised.

The load in memory (`operations.load.load`) and the load as a job (`pipeline`) both use these functions, so that their
results and errors are equal.

Records of one id: In mode `merge` they are applied in order to one row, together with the committed row
(`engine.write.upsert`). With `missing="keep"` a property that is absent from a record keeps its value. In the other
modes an id may be given only once, and mode `append` refuses the id of a committed row. Rows that share a key are left
to the `@key` rule. Generated ids are unique and are not compared.

Without `set_aside` the first violation ends the load: violations of the integrity rules in the order of the rules, then
ids that cannot be admitted.

With `set_aside` the first record of an id stays and its repetitions are set aside. Then rows are set aside until no
violation is left. Each round takes the ids that cannot be admitted or, if there are none, the violations of the first
violated rule. Later rules wait for the next round, because they would see rows that are already wrong. A row is set
aside with all records that it was made of, and the first violation of a row is its reason. A violation that concerns no
written row cannot be repaired in this way and ends the load.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import one_array
from omnigraph.engine.ingest.records import (
    NOTHING_WITHHELD,
    Faults,
    LoadedRows,
    NewIds,
    RecordSet,
    WithheldProperties,
)
from omnigraph.engine.ingest.row_builder import build_rows
from omnigraph.engine.write.delta import Violation
from omnigraph.engine.write.upsert import match_columns
from omnigraph.errors import KeyConflict, OmniGraphError, RecordError
from omnigraph.operations.load.load_request import Mode
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.table_key import TableKey
from omnigraph.values import Fetch
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.write.transaction import Transaction

if TYPE_CHECKING:
    from omnigraph.operations.load.guarded_load import GuardedLoad

SourceLine = tuple[str | None, int]
"""The file and the line of a record; None if the input is not a file."""


@dataclass(frozen=True, slots=True)
class RejectReason:
    """Why a record is set aside."""

    message: str
    property: str | None
    rule: str

    @classmethod
    def of(cls, violation: Violation) -> RejectReason:
        """The reason that a violation gives."""
        return cls(violation.message, violation.property, violation.rule)

    def error(self, type_name: str, at: SourceLine) -> RecordError:
        """The error of a record of the type."""
        source, line = at
        return RecordError(
            self.message, source=source, line=line, type_name=type_name, property_name=self.property, rule=self.rule
        )


# -- records to rows ---------------------------------------------------------------------------------


def rows_of(
    parts: Sequence[RecordSet],
    faults: Faults,
    new_ids: NewIds,
    fetch: Fetch | None,
    mode: Mode,
    *,
    keep: bool,
    withheld: WithheldProperties = NOTHING_WITHHELD,
) -> LoadedRows:
    """Convert the records of one type to rows, as the mode requires. Withheld properties always keep their values."""
    merges = mode == "merge"
    match = merges and match_columns(parts[0].type) is not None
    kept = withheld.kept if merges else ()
    return build_rows(parts, faults, new_ids, fetch, keep=merges and keep, match=match, withheld=withheld, kept=kept)


def with_current_ids(rows: LoadedRows, aliases: Mapping[str, Mapping[str, str]]) -> pa.Table:
    """Replace old spellings of ids in the ends of edges. `aliases` maps table key → old spelling → id."""
    table = rows.table
    if isinstance(rows.type, EdgeType):
        for column, node in (("src", rows.type.from_type), ("dst", rows.type.to_type)):
            known = aliases.get(TableKey.node(node))
            if known:
                ids = pa.array([known.get(value, value) for value in table[column].to_pylist()], pa.utf8())
                table = table.set_column(table.schema.get_field_index(column), table.schema.field(column), ids)
    return table


NodeAliasArrays = Mapping[str, tuple[pa.Array, pa.Array]]
"""Key of a node table → former ids of unified nodes, and their nodes."""


def node_aliases_of(snapshot: Snapshot, mode: Mode) -> NodeAliasArrays:
    """Return the aliases that a load resolves. An overwrite resolves none: it replaces the nodes of the aliases."""
    if not snapshot.aliases_hash or mode == "overwrite":
        return {}
    tables = set(snapshot.aliases.tables())
    return {
        key: snapshot.aliases.arrays(table.pin.table_id)
        for key, table in snapshot.tables.items()
        if table.pin.table_id in tables
    }


def resolve_aliases(rows: LoadedRows, aliases: NodeAliasArrays, guard: GuardedLoad | None = None) -> None:
    """Replace aliases of nodes in the ends of edges, and in the ids of nodes, whose keys then keep their values.

    With a guard, an alias of a hidden node is not replaced: as an end it does not exist, and as an id it is taken.
    """
    if not aliases:
        return
    if isinstance(rows.type, EdgeType):
        for column, node in (("src", rows.type.from_type), ("dst", rows.type.to_type)):
            _resolve_column(rows, column, TableKey.node(node), aliases, guard)
        return
    found = _resolve_column(rows, "id", rows.type.table_key, aliases, guard)
    for name in rows.type.key if found is not None else ():
        rows.given[name] = pc.and_(rows.given[name], pc.invert(found)) if name in rows.given else pc.invert(found)


def drop_aliases(transaction: Transaction, tables: Iterable[str]) -> None:
    """Remove the aliases of the nodes of tables that a load overwrites."""
    snapshot = transaction.snapshot
    if not snapshot.aliases_hash:
        return
    ids = {snapshot.tables[key].pin.table_id for key in tables}.intersection(snapshot.aliases.tables())
    if ids:
        gone = {table: dict.fromkeys(snapshot.aliases.entries(table)) for table in ids}
        transaction.set_aliases(snapshot.aliases.with_changes(gone))


def _resolve_column(
    rows: LoadedRows, column: str, key: str, aliases: NodeAliasArrays, guard: GuardedLoad | None
) -> pa.Array | None:
    """Replace the aliases of a column, and return a mask of the rows with an alias; None if there is none."""
    if key not in aliases:
        return None
    former, nodes = aliases[key]
    ids = one_array(rows.table[column])
    kept = nodes.take(pc.index_in(ids, value_set=former))
    if guard is not None and kept.null_count < len(ids):
        shown = pc.is_in(kept, value_set=guard.visible_nodes(key, kept))
        if isinstance(rows.type, NodeType):
            hidden = pc.and_(pc.is_valid(kept), pc.invert(shown))
            guard.write.taken_by_aliases(rows.type, ids.filter(hidden))
        kept = pc.if_else(shown, kept, pa.scalar(None, kept.type))
    if kept.null_count == len(ids):
        return None
    place = rows.table.schema.get_field_index(column)
    rows.table = rows.table.set_column(place, rows.table.schema.field(place), pc.coalesce(kept, ids))
    return pc.is_valid(kept)


def incomplete(
    type_: NodeType | EdgeType, name: str, id_: str, withheld: WithheldProperties = NOTHING_WITHHELD
) -> RejectReason:
    """Why a row of a merge without a required property is wrong."""
    property_ = type_.properties[name]
    # A committed row can lack a vector: a record may set the source text to null.
    if property_.embed is not None or name in withheld.hidden:
        return RejectReason(*withheld.required(type_, name), "required")
    # The id of an edge may be generated.
    row = f"{type_.name} '{id_}'" if isinstance(type_, NodeType) else f"an edge {type_.name}"
    return RejectReason(f"{row} is new and needs {name} ({property_.type})", name, "required")


# -- ids ---------------------------------------------------------------------------------------------


def is_keyed(type_: NodeType | EdgeType) -> bool:
    """True if the ids of a type are derived from a key."""
    return isinstance(type_, NodeType) and bool(type_.key)


def checks_ids(mode: Mode, *, fresh: bool) -> bool:
    """True if the ids of a table must be admitted. `fresh` tables have generated ids only."""
    return mode != "merge" and not fresh


def drops_repeats(type_: NodeType | EdgeType, mode: Mode, *, fresh: bool) -> bool:
    """True if repeated ids of a table are set aside before its rows are validated."""
    return checks_ids(mode, fresh=fresh) and not is_keyed(type_)


def repeated_records(ids: pa.ChunkedArray) -> dict[int, RejectReason]:
    """Row → reason, for every record with the id of an earlier record."""
    if pc.count_distinct(ids).as_py() == len(ids):
        return {}
    rows = list(enumerate(ids.to_pylist()))
    first = set({id_: row for row, id_ in reversed(rows)}.values())
    return {
        row: RejectReason(f"the id '{id_}' is given twice", "id", "unique") for row, id_ in rows if row not in first
    }


def refused_ids(type_: NodeType | EdgeType, ids: pa.Array, existing: pa.Array) -> Iterator[Violation]:
    """Yield the written ids that are given twice or are among the existing ids."""
    if not len(existing) and (is_keyed(type_) or pc.count_distinct(ids).as_py() == len(ids)):
        return
    taken, seen = set(existing.to_pylist()), set[str]()
    for position, id_ in enumerate(ids.to_pylist()):
        if id_ in seen or id_ in taken:
            what, other = ("is given twice", id_) if id_ in seen else ("exists already", None)
            message = f"{type_.name}: the id '{id_}' {what}"
            yield Violation("unique", type_.table_key, id_, message, "id", other, position)
        if not is_keyed(type_):
            seen.add(id_)


def _refusal(violation: Violation) -> KeyConflict:
    """An id that cannot be admitted, as an error."""
    error = KeyConflict(violation.table_key, violation.row_id, f"{violation.message}; nothing was written")
    if violation.other_id is None:
        error.hint = "load with mode 'merge' to update it"
    return error


# -- validation --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LoadChecks:
    """The outcome of one round of checks. Both parts are in the order of reporting, may be lazy and are read once."""

    rules: Iterable[Iterable[Violation]]
    """For each integrity rule, its violations. Positions are those of the candidate."""
    refused: Iterable[Violation]
    """Ids that cannot be admitted."""


class LoadCandidate(Protocol):
    """The rows of a load that are validated together. The position of a row identifies it within its table."""

    @property
    def table_keys(self) -> Collection[str]:
        """The tables of the load."""

    def check(self) -> LoadChecks:
        """Check all rows that are not set aside."""

    def set_aside(self, table_key: str, reasons: Mapping[int, RejectReason]) -> None:
        """Set rows aside, with all records that they were made of: position → reason."""

    def source_line(self, table_key: str, position: int) -> SourceLine:
        """The file and line of the last record of a row."""


def validate_load(candidate: LoadCandidate, *, set_aside: bool) -> None:
    """Raise the first violation or, with `set_aside`, set rows aside until no violation is left."""
    if not set_aside:
        _raise_first(candidate)
        return
    while found := _next_violations(candidate.check()):
        table_key = found[0].table_key
        reasons = _reasons(found, table_key) if table_key in candidate.table_keys else {}
        if not reasons:
            raise _located(candidate, found[0], found[0].error())
        candidate.set_aside(table_key, reasons)


def _raise_first(candidate: LoadCandidate) -> None:
    checks = candidate.check()
    for violation in chain.from_iterable(checks.rules):
        raise _located(candidate, violation, violation.error())
    for violation in checks.refused:
        raise _located(candidate, violation, _refusal(violation))


def _next_violations(checks: LoadChecks) -> list[Violation]:
    """The violations that one round removes."""
    return list(checks.refused) or next((found for rule in checks.rules if (found := list(rule))), [])


def _reasons(found: Iterable[Violation], table_key: str) -> dict[int, RejectReason]:
    """Position → reason, for the rows of one table."""
    reasons: dict[int, RejectReason] = {}
    for violation in found:
        if violation.table_key == table_key:
            for position in written_rows(violation):
                reasons.setdefault(position, RejectReason.of(violation))
    return reasons


def written_rows(violation: Violation) -> tuple[int, ...]:
    """The positions of the written rows that a violation concerns; none if it concerns committed rows only."""
    return violation.surplus or (() if violation.position is None else (violation.position,))


def _located(candidate: LoadCandidate, violation: Violation, error: OmniGraphError) -> OmniGraphError:
    """Add the file and line of the row to an error."""
    rows = written_rows(violation)
    if rows:
        source, line = candidate.source_line(violation.table_key, rows[0])
        set_message(error, f"{source}, line {line}: {error.message}" if source else f"line {line}: {error.message}")
    return error


def set_message(error: OmniGraphError, message: str) -> None:
    """Replace the message of an error."""
    error.message = message
    error.args = (message,)
