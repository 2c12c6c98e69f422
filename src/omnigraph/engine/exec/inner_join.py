"""Inner join of rows with the matches of a pipeline that ran once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from omnigraph.engine.adjacency.csr import Room, batched_ranges
from omnigraph.engine.exec.binding_table import BindingTable
from omnigraph.engine.exec.native_calls import gather, interruptible
from omnigraph.engine.expr.key_codes import combine_codes


def inner_join(bindings: BindingTable, inner: BindingTable, on: Sequence[str], room: Room) -> BindingTable:
    """Return each row with every inner row that has equal values of the variables `on`; weights are multiplied.

    Rows keep their order; the matches of a row have the order of the inner rows. A null row matches nothing, because no
    inner row has its number.
    """
    pairs = [(bindings.bound[name].numbers, inner.bound[name].numbers) for name in on]
    codes, count = combine_codes([np.concatenate(pair) for pair in pairs])
    near, far = codes[: bindings.count], codes[bindings.count :]
    order = interruptible(lambda: np.argsort(far, kind="stable"), len(far))
    per_code = np.bincount(far, minlength=count)
    starts = np.cumsum(per_code) - per_code
    copies = per_code[near]
    room(int(copies.sum()))
    result = bindings.take(np.repeat(np.arange(bindings.count), copies))
    rows = gather(order, batched_ranges(starts[near], copies))
    for name, bound in inner.bound.items():
        if name not in on:
            result = result.bind(name, bound.data, gather(bound.numbers, rows))
    return result if inner.weight is None else result.weighted(inner.weight[rows])
