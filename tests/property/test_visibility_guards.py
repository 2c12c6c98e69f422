"""Each guard of the visibility is needed: without any one of them, a random read differs from the projected graph."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omnigraph.engine.adjacency import visible_adjacency
from omnigraph.engine.adjacency.visible_adjacency import VisibleAdjacency
from omnigraph.engine.cache import visibility
from omnigraph.engine.cache.visibility import RowCondition, VisibleTable
from omnigraph.engine.exec.binding_table import Binding
from omnigraph.engine.paths import edge_space
from omnigraph.engine.search import inverted_index, vector_scan
from omnigraph.graph import Graph
from omnigraph.graph_open import init
from omnigraph.operations import plan_cache
from omnigraph.query.plan import ir
from omnigraph.query.visibility import ROW, Visibility
from property.test_visibility import SEED, Disagreement, check

Patch = Callable[[pytest.MonkeyPatch], None]
GRAPHS = 12


def _all_rows(numbers: Any) -> Any:
    return np.ones(len(numbers), bool)


def bindings_start_from_all_rows(patch: pytest.MonkeyPatch) -> None:
    init = Binding.__init__

    def unguarded(self: Binding, data: Any, numbers: Any = None, **more: Any) -> None:
        init(self, data, numbers, **more)
        if numbers is None and more.get("mask") is None:
            self.mask = None

    patch.setattr(Binding, "__init__", unguarded)


def lookups_find_hidden_rows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(VisibleTable, "sees_row", lambda *_: True)


def far_ends_are_not_filtered(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(visible_adjacency, "_sees", lambda _, numbers: _all_rows(numbers))


def edges_do_not_depend_on_their_ends(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(visibility, "hides_rows", lambda _: False)


def edges_have_no_rules(patch: pytest.MonkeyPatch) -> None:
    init = VisibleTable.__init__

    def unguarded(self: VisibleTable, base: Any, rows: Any, properties: Any, ends: Any = None) -> None:
        init(self, base, None if ends is not None else rows, properties, ends)

    patch.setattr(VisibleTable, "__init__", unguarded)


def edge_rows_are_not_filtered(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(VisibleAdjacency, "edge_rows", lambda self, direction: self.base.edge_rows(direction))


def scans_use_all_neighbours(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(VisibleAdjacency, "compacted", lambda self, direction: self.base.compacted(direction))


def loops_are_not_filtered(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(VisibleAdjacency, "loops", lambda self, direction: self.base.loops(direction))


def unknown_is_true(patch: pytest.MonkeyPatch) -> None:
    judged = RowCondition._judged

    def inverted(self: RowCondition) -> Any:
        found = judged(self)
        return visibility.JudgedRows(found.layout, np.ones(len(found.mask), bool))

    patch.setattr(RowCondition, "_judged", inverted)


def rows_judged_alone_are_visible(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RowCondition, "holds", lambda _, numbers: _all_rows(numbers))


def masked_columns_are_complete(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(VisibleTable, "column", lambda self, name: self.base.column(name))


def masked_values_are_taken(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(VisibleTable, "take_columns", lambda self, names, numbers: self.base.take_columns(names, numbers))


def masked_columns_have_codes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(VisibleTable, "codes", lambda self, name, rows=None: self.base.codes(name, rows))


def masked_columns_have_ranks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(VisibleTable, "derived", lambda self, name, make: self.base.derived(name, make))


def hidden_texts_are_counted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(inverted_index, "_visible_index", lambda data, name: inverted_index.index_of(data.base, name))


def masked_vectors_are_compared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(vector_scan, "_visible_vectors", lambda data, name, dim: vector_scan.vectors_of(data.base, name, dim))


def hidden_weights_are_checked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        edge_space, "_weights", lambda edges, by, name: edge_space._read_weights(visibility.base_of(edges), by, name)
    )


def plans_are_shared(patch: pytest.MonkeyPatch) -> None:
    get = plan_cache.PlanCache.get

    def shared(self: Any, snapshot: Any, query: Any, _: Any = None) -> Any:
        return get(self, snapshot, query)

    patch.setattr(plan_cache.PlanCache, "get", shared)


def tables_of_visibilities_are_shared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(visibility.Visibility, "digest", "one")


def masks_of_conditions_are_shared(patch: pytest.MonkeyPatch) -> None:
    init = RowCondition.__init__

    def shared(self: RowCondition, condition: Any, data: Any, judge: Any) -> None:
        init(self, condition, data, judge)
        self._name = "visible:one"
        self._key = (*data.key, self._name)

    patch.setattr(RowCondition, "__init__", shared)


def structures_of_tables_are_shared(patch: pytest.MonkeyPatch) -> None:
    init = VisibleTable.__init__

    def shared(self: VisibleTable, *given: Any) -> None:
        init(self, *given)
        self.digest = "one"

    patch.setattr(VisibleTable, "__init__", shared)


LARGE = {rows_judged_alone_are_visible, masked_values_are_taken}
"""Guards that small tables do not need with the default settings."""
SLOW = {
    edges_have_no_rules, hidden_weights_are_checked, loops_are_not_filtered, masked_columns_have_ranks,
    scans_use_all_neighbours,
}  # fmt: skip
"""Guards of constructs that are rare in random reads."""
GUARDS: list[Patch] = [
    bindings_start_from_all_rows, lookups_find_hidden_rows, far_ends_are_not_filtered,
    edges_do_not_depend_on_their_ends, edges_have_no_rules, edge_rows_are_not_filtered, scans_use_all_neighbours,
    loops_are_not_filtered, unknown_is_true, rows_judged_alone_are_visible, masked_columns_are_complete,
    masked_values_are_taken, masked_columns_have_ranks, hidden_texts_are_counted, hidden_weights_are_checked,
    tables_of_visibilities_are_shared, masks_of_conditions_are_shared, structures_of_tables_are_shared,
]  # fmt: skip


def disagreement(root: Path, graphs: int) -> str | None:
    """Return the first wrong answer on some graphs; None if there is none.

    Other errors are not caught: a patch that breaks the engine would tell nothing about its guard.
    """
    for number in range(graphs):
        try:
            check(root / str(number), SEED + 20_000 + number, 36, stored=False)
        except Disagreement as found:
            return str(found)
    return None


@pytest.mark.long
@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.__name__)
def test_missing_guard_is_noticed(tmp_path, monkeypatch, tune, guard):
    if guard in LARGE:
        tune(complete_column_rows=0, take_row_cost=1, rows_judged_before_mask=1_000)
    guard(monkeypatch)
    assert disagreement(tmp_path, 4 * GRAPHS if guard in SLOW else GRAPHS) is not None


@pytest.mark.long
def test_hidden_property_is_refused_without_its_catalog(tmp_path, monkeypatch):
    plans_are_shared(monkeypatch)
    with pytest.raises(LookupError, match="is hidden"):
        disagreement(tmp_path, GRAPHS)


def masked_groups(root: Path) -> list[dict[str, Any]]:
    """Group by a masked text that is dictionary-encoded, on a graph where one row in four shows it."""
    graph = init(root, "node Note { name: String @key  kind: String  open: Bool }", sync=False, environ={})
    rows = [{"name": f"n{at}", "kind": f"k{at % 2}", "open": at % 4 == 0} for at in range(40)]
    graph.load([{"type": "Note", "data": row} for row in rows], mode="append")
    shown = Visibility({}, {("node:Note", "kind"): ir.Prop(ROW, "open", ir.BOOL)})
    text = "match { $n: Note } return { $n.kind as kind, count($n) as n } order { $n.kind }"
    return Graph(graph._context.with_visibility(shown)).query(text).to_pylist()


def nearest_notes(root: Path) -> list[dict[str, Any]]:
    """Rank by a vector that is masked in the nearest row."""
    graph = init(root, "node Note { name: String @key  open: Bool  vec: Vector(2)? }", sync=False, environ={})
    rows = [{"name": f"n{at}", "open": at != 0, "vec": [1.0, float(at)]} for at in range(4)]
    graph.load([{"type": "Note", "data": row} for row in rows], mode="append")
    shown = Visibility({}, {("node:Note", "vec"): ir.Prop(ROW, "open", ir.BOOL)})
    text = "match { $n: Note } return { $n.name as name } order { nearest($n.vec, $v) } limit 9"
    return Graph(graph._context.with_visibility(shown)).query(text, {"v": [1.0, 0.0]}).to_pylist()


GROUPS = [{"kind": None, "n": 30}, {"kind": "k0", "n": 10}]
NEAREST = [{"name": "n1"}, {"name": "n2"}, {"name": "n3"}]


def test_masked_texts_form_no_groups(tmp_path):
    assert masked_groups(tmp_path / "graph") == GROUPS


def test_masked_vectors_are_not_ranked(tmp_path):
    assert nearest_notes(tmp_path / "graph") == NEAREST


def test_missing_guard_of_codes_is_noticed(tmp_path, monkeypatch):
    masked_columns_have_codes(monkeypatch)
    assert masked_groups(tmp_path / "graph") != GROUPS


def test_missing_guard_of_vectors_is_noticed(tmp_path, monkeypatch):
    masked_vectors_are_compared(monkeypatch)
    assert nearest_notes(tmp_path / "graph") != NEAREST


def test_checks_pass_with_all_guards(tmp_path):
    check(tmp_path / "graph", SEED + 20_000, 12)
