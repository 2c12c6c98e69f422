"""Plan as a tree of plain values: one node per line of the text, nested as its indentation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from omnigraph.fast_dataclass import dataclass
from omnigraph.query.plan import ir
from omnigraph.query.plan.explain import LineSubject, head_of, lines_of


@dataclass(frozen=True, slots=True)
class LineFacts:
    """Numbers and notes beside a line of a plan; None is not known."""

    expected: float | None = None
    """Estimated rows."""
    rows: int | None = None
    """Actual rows."""
    ms: float | None = None
    notes: tuple[str, ...] = ()


NO_FACTS = LineFacts()


def plan_tree(plan: ir.AnyIR, facts: Callable[[LineSubject], LineFacts] = lambda _: NO_FACTS) -> dict[str, Any]:
    """Return the root of a plan: `op`, `text`, known facts, and `children`."""
    root = _node("change" if isinstance(plan, ir.MutationIR) else "query", head_of(plan).partition(" ")[2], NO_FACTS)
    open_nodes = [root]
    for text, subject in lines_of(plan):
        depth = (len(text) - len(text.lstrip(" "))) // 2
        word, _, rest = text.strip().partition(" ")
        node = _node(word, rest.strip(), facts(subject))
        del open_nodes[depth:]
        open_nodes[-1]["children"].append(node)
        open_nodes.append(node)
    return root


def _node(op: str, text: str, facts: LineFacts) -> dict[str, Any]:
    known = {"expected": facts.expected, "rows": facts.rows, "ms": facts.ms}
    numbers = {name: value for name, value in known.items() if value is not None}
    return {"op": op, "text": text, **numbers, "notes": list(facts.notes), "children": []}
