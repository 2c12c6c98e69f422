"""Audit of returned rows: a sample of them is judged once more by the policy itself.

The conditions of a visibility are a translation of the policy. In audit mode, the rows that a read returns are judged
without the translation, and a difference ends the read with an error.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from omnigraph.engine.cache.table_cache import Numbers, TableData
from omnigraph.engine.cache.union_table import UnionTable
from omnigraph.engine.cache.visibility import StoredTable, VisibleTable
from omnigraph.engine.exec.binding_table import Binding, BindingTable
from omnigraph.engine.exec.context import ExecutionContext
from omnigraph.engine.exec.left_join import NullExtendedTable
from omnigraph.query.visibility import RowAuditor
from omnigraph.table_key import TableKey

_random = np.random.default_rng()


def audit_bindings(context: ExecutionContext, bindings: BindingTable) -> None:
    """Judge a sample of the rows of each variable, if the visibility requires it."""
    if context.guard is None or context.guard.visibility.audit is None:
        return
    audit = context.guard.visibility.audit
    for binding in bindings.bound.values():
        for key, data, numbers in _sampled(context, binding, audit.sample):
            _check(context, audit, key, data, numbers)


def audit_rows(context: ExecutionContext, key: str, numbers: Numbers) -> None:
    """Judge a sample of some rows of a table, if the visibility requires it."""
    if context.guard is None or context.guard.visibility.audit is None or not len(numbers):
        return
    audit = context.guard.visibility.audit
    _check(context, audit, key, context.type_table(key), _random.permutation(numbers)[: audit.sample])


def audit_images(context: ExecutionContext, key: str, rows: pa.Table, shown: pa.Table) -> None:
    """Judge a sample of complete stored rows of a table, and the values that are shown of them, if required."""
    if context.guard is None or context.guard.visibility.audit is None or not rows.num_rows:
        return
    audit, data = context.guard.visibility.audit, context.type_table(key)
    chosen = pa.array(_random.permutation(rows.num_rows)[: audit.sample])
    guarded = data.guarded_names if isinstance(data, VisibleTable) else ()
    values = {name: shown[name].take(chosen).is_valid().to_pylist() for name in guarded if name in shown.schema.names}
    audit.check(key, rows.select(audit.columns(key)).take(chosen).to_pylist(), values)


def _sampled(context: ExecutionContext, binding: Binding, sample: int) -> Iterator[tuple[str, StoredTable, Numbers]]:
    """Yield tables with some of their rows that a variable is bound to."""
    data, numbers = binding.data, binding.numbers
    numbers = _random.permutation(numbers)[:sample] if len(numbers) > sample else numbers
    if isinstance(data, NullExtendedTable):
        numbers, data = numbers[numbers != data.absent], data.base
    if isinstance(data, UnionTable):
        members = data.member_of(numbers)
        for at in np.unique(members):
            found = numbers[members == at] - data.starts[at]
            yield TableKey.node(data.of.members[at]), data.members[at], found
    elif isinstance(data, TableData | VisibleTable) and len(numbers):
        yield context.key_of(data), data, numbers


def _check(context: ExecutionContext, audit: RowAuditor, key: str, data: StoredTable, numbers: Numbers) -> None:
    rows = context.snapshot.table(key).take(audit.columns(key), numbers).to_pylist()
    shown: dict[str, list[bool]] = {}
    if isinstance(data, VisibleTable):
        for name in data.masked_names:
            shown[name] = [data.sees_value(name, int(number)) for number in numbers]
    audit.check(key, rows, shown)
