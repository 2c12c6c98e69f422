"""Point lookups: scans with a condition that gives the ids of the nodes."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.query.plan import ir
from omnigraph.schema.catalog import Catalog


def id_tests(scan: ir.NodeScan, catalog: Catalog) -> Iterator[tuple[int, ir.Prop, ir.Const | ir.ParamRef]]:
    """Yield the conditions that give the id of the only node of a scan: (index, property, constant).

    An id is the text of its key, so a lookup by id covers the condition completely.
    """
    names = _identifying(scan, catalog)
    for position, test in enumerate(scan.filters):
        if not isinstance(test, ir.Compare) or test.op != "=":
            continue
        left, right = test.left, test.right
        if isinstance(left, ir.Prop) and left.name in names and isinstance(right, ir.Const | ir.ParamRef):
            yield position, left, right


def id_lists(scan: ir.NodeScan, catalog: Catalog) -> Iterator[tuple[int, ir.Prop, ir.Const | ir.ParamRef]]:
    """Yield the conditions that give a list of ids of which each node has one: (index, property, constant)."""
    names = _identifying(scan, catalog)
    for position, test in enumerate(scan.filters):
        if not isinstance(test, ir.Compare) or test.op != "contains_item":
            continue
        items, prop = test.left, test.right
        if isinstance(prop, ir.Prop) and prop.name in names and isinstance(items, ir.Const | ir.ParamRef):
            yield position, prop, items


def _identifying(scan: ir.NodeScan, catalog: Catalog) -> tuple[str, ...]:
    """Return the properties of the nodes of a scan that have the values of their ids."""
    type_ = catalog.nodes.get(scan.type_name)
    if type_ is None:
        return ()
    return ("id",) if type_.id_column is None else ("id", type_.id_column)
