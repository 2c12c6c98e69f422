"""Records of one type → typed rows with ids.

Every value is converted to the Arrow type of its property. Every id is derived from the key, taken from the record, or
generated. Wrong records are reported with their lines and omitted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.checkpoints import checkpoint
from omnigraph.engine.ingest.json_columns import build_column
from omnigraph.engine.ingest.records import (
    NOTHING_WITHHELD,
    TEXT,
    AnyType,
    Faults,
    LoadedRows,
    NewIds,
    RecordColumns,
    Records,
    RecordSet,
    RowFault,
    WithheldProperties,
)
from omnigraph.engine.write.fill_vectors import has_text
from omnigraph.errors import ValueFormatError
from omnigraph.scalar_types.columns import stored_values
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.types import PropertyType
from omnigraph.values import Fetch, derive_id, spell_key


def build_rows(
    parts: Sequence[RecordSet],
    faults: Faults,
    new_ids: NewIds,
    fetch: Fetch | None = None,
    *,
    keep: bool = False,
    match: bool = False,
    withheld: WithheldProperties = NOTHING_WITHHELD,
    kept: Collection[str] = (),
) -> LoadedRows:
    """Convert the values and derive the ids of one type's records; report wrong records, in order, and omit them.

    With `keep`, a required property may be absent from a record whose row may exist; without it, only those in
    `kept`. With `match`, absent ids stay null, and the caller matches the records to rows. Errors do not name hidden
    properties.
    """
    type_ = parts[0].type
    wrong: dict[int, RowFault] = {}
    schema = pa.schema([f.with_nullable(True) for f in table_schema(type_)])
    typed: list[RecordColumns] = []
    count = 0
    for part in parts:
        typed.append(part if isinstance(part, RecordColumns) else _typed(part, count, wrong, fetch))
        count += len(part.lines)
    fields = {field.name: _concatenated(typed, field) for field in schema}
    present = _presence(type_, typed)
    given = {name: mask for name, mask in present.items() if keep or name in kept}
    explicit = fields["id"]
    key = type_.identity if isinstance(type_, NodeType) else ()
    is_keyed = bool(key)
    may_exist = pa.repeat(True, count) if is_keyed or match else pc.is_valid(explicit)
    stored = {name: pc.and_not(may_exist, mask) for name, mask in given.items() if name not in key}
    for name, missing in _missing(type_, fields, stored):
        for position in pc.indices_nonzero(missing).to_pylist():
            reason, named = withheld.required(type_, name)
            wrong.setdefault(position, (reason, named, "required", None))
    aliases: dict[str, str] = {}
    if is_keyed or not match:
        fields["id"], aliases = _ids(type_, explicit, fields, wrong, new_ids)
    rows = LoadedRows(
        type_,
        pa.table({name: fields[name] for name in schema.names}, schema=schema),
        pa.concat_arrays([pa.repeat(pa.scalar(part.source, pa.utf8()), len(part.lines)) for part in parts]),
        pa.concat_arrays([_numbers(part.lines) for part in parts]),
        aliases,
        fresh=not (is_keyed or match) and explicit.null_count == count,
        given=given,
        present=present,
        adds_again=not (is_keyed or match) and explicit.null_count > 0,
        made=pc.is_null(explicit) if explicit.null_count and not is_keyed else None,
    )
    for position in sorted(wrong):
        for error in rows.faults(position, *wrong[position]):
            faults.add(error)
    if wrong:
        rows.keep(pa.array([position not in wrong for position in range(count)]))
    return rows


def _numbers(lines: Sequence[int]) -> pa.Array:
    return pa.array(np.arange(lines.start, lines.stop) if isinstance(lines, range) else lines, pa.int64())


def _concatenated(parts: Sequence[RecordColumns], field: pa.Field) -> pa.Array:
    """Concatenate a column of all parts; null for parts that do not have it."""
    columns = [part.fields.get(field.name) for part in parts]
    return pa.concat_arrays(
        [
            pa.nulls(len(part.lines), field.type) if column is None else column
            for part, column in zip(parts, columns, strict=True)
        ]
    )


def _presence(type_: AnyType, parts: Sequence[RecordColumns]) -> dict[str, pa.Array]:
    """Return property → mask of the records that have it, for properties that some record does not have."""
    found: dict[str, pa.Array] = {}
    for name in type_.properties:
        if all(name in part.fields and name not in part.given for part in parts):
            continue
        masks = [
            part.given[name] if name in part.given else pa.repeat(name in part.fields, len(part.lines))
            for part in parts
        ]
        mask = pa.concat_arrays(masks)
        if mask.false_count:
            found[name] = mask
    return found


def _typed(records: Records, first: int, wrong: dict[int, RowFault], fetch: Fetch | None) -> RecordColumns:
    """Convert records to columns; `first` is the position of the first one. Errors of values are added to `wrong`."""
    type_, data = records.type, records.data
    present = set[str]().union(*data)
    fields: dict[str, pa.Array] = {}
    given: dict[str, pa.Array] = {}

    def add(name: str, property_type: PropertyType, values: Sequence[Any], rule: str, word: str | None = None) -> None:
        def bad(position: int, error: ValueFormatError) -> None:
            reason = f"{type_.name}.{word or name}: {error.message}"
            wrong.setdefault(first + position, (reason, word or name, rule, error.hint))

        checkpoint()
        fields[name] = build_column(values, property_type, bad, fetch=fetch)

    for property_ in type_.properties.values():
        if property_.name in present:
            values, mask = _values(data, property_.name)
            add(property_.name, property_.type, values, "value")
            if mask is not None:
                given[property_.name] = mask
    if isinstance(type_, EdgeType):
        add("src", TEXT, records.src, "endpoint", "from")
        add("dst", TEXT, records.dst, "endpoint", "to")
    if "id" in present:
        add("id", TEXT, _values(data, "id")[0], "id")
    return RecordColumns(type_, records.source, records.lines, fields, given)


def _values(data: Sequence[Mapping[str, Any]], name: str) -> tuple[Sequence[Any], pa.Array | None]:
    """Return one property of every record, and a mask if only some records have it."""
    try:
        return list(map(itemgetter(name), data)), None
    except KeyError:
        return [values.get(name) for values in data], pa.array([name in values for values in data])


def _missing(
    type_: AnyType, fields: Mapping[str, pa.Array], kept: Mapping[str, pa.Array]
) -> Iterator[tuple[str, pa.Array]]:
    """Yield required properties with a mask of the rows that lack them. A vector may be computed from its text.

    `kept` has masks of the rows that may have a committed value of a property.
    """
    for property_ in type_.properties.values():
        column = fields[property_.name]
        if property_.type.nullable or not column.null_count:
            continue
        missing = pc.is_null(column)
        for name in (property_.name, *([property_.embed.source] if property_.embed is not None else ())):
            if name in kept:
                missing = pc.and_not(missing, kept[name])
        if property_.embed is not None:
            missing = pc.and_not(missing, has_text(fields[property_.embed.source]))
        yield property_.name, missing


def _ids(
    type_: AnyType,
    explicit: pa.Array,
    fields: Mapping[str, pa.Array],
    wrong: dict[int, RowFault],
    new_ids: NewIds,
) -> tuple[pa.Array, dict[str, str]]:
    if not isinstance(type_, NodeType) or not type_.key:
        made = new_ids(explicit.null_count)
        return made if len(made) == len(explicit) else pc.replace_with_mask(explicit, pc.is_null(explicit), made), {}
    derived = _derived_ids(type_, fields)
    aliases: dict[str, str] = {}
    for position in pc.indices_nonzero(pc.fill_null(pc.not_equal(explicit, derived), False)).to_pylist():
        if position in wrong:
            continue
        old, id_ = explicit[position].as_py(), derived[position].as_py()
        if not _is_alternative_form(type_, old, fields, position):
            reason = f"the id '{old}' of {type_.name} differs from its key '{id_}'"
        elif aliases.setdefault(old, id_) != id_:
            reason = f"the id '{old}' of {type_.name} stands for two keys, '{aliases[old]}' and '{id_}'"
        else:
            continue
        wrong[position] = (reason, "id", "id", None)
    return derived, aliases


def _derived_ids(node: NodeType, fields: Mapping[str, pa.Array]) -> pa.Array:
    if node.id_column is not None:
        type_, column = node.properties[node.key[0]].type, fields[node.key[0]]
        if pa.types.is_string(column.type):
            return column
        if type_.is_integer:
            return column.cast(pa.utf8())
    required = len(node.key)
    columns = [stored_values(fields[name]) for name in node.identity]
    return pa.array(
        [None if None in values[:required] else row_id(node, values) for values in zip(*columns, strict=True)],
        pa.utf8(),
    )


def row_id(node: NodeType, values: Sequence[Any]) -> str:
    """Return the id of a row, given the stored values of its identity. The start of a period can be null."""
    types = [node.properties[name].type for name in node.identity]
    return derive_id(["" if v is None else spell_key(v, type_) for v, type_ in zip(values, types, strict=True)])


def _is_alternative_form(node: NodeType, id_: str, fields: Mapping[str, pa.Array], position: int) -> bool:
    """Return True if an id denotes the value of a key column in another form: `00042` for 42, a date as text."""
    for name in () if node.has_periods else node.key:
        type_ = node.properties[name].type
        value = stored_values(fields[name].slice(position, 1))[0]
        read = type_.kind.from_id
        try:
            same = id_ == spell_key(value, type_) if read is None else read(id_) == value
        except ValueFormatError:
            same = False
        if same:
            return True
    return False
