"""Point lookups: scans with a condition that gives the id of the node."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.query.plan import ir
from omnigraph.schema.catalog import Catalog


def id_tests(scan: ir.NodeScan, catalog: Catalog) -> Iterator[tuple[int, ir.Prop, ir.Const | ir.ParamRef]]:
    """Yield the conditions that give the id of the only node of a scan: (index, property, constant).

    An id is the text of its key, so a lookup by id covers the condition completely.
    """
    type_ = catalog.nodes.get(scan.type_name)
    if type_ is None:
        return
    names = ("id",) if type_.id_column is None else ("id", type_.id_column)
    for position, test in enumerate(scan.filters):
        if not isinstance(test, ir.Compare) or test.op != "=":
            continue
        left, right = test.left, test.right
        if isinstance(left, ir.Prop) and left.name in names and isinstance(right, ir.Const | ir.ParamRef):
            yield position, left, right
