"""The `--resolve` option, and the output of a merge plan with conflicts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli.errors import UsageFault
from omnigraph.cli.io.output import plural
from omnigraph.errors import hint_for

if TYPE_CHECKING:
    from omnigraph.operations.merge.merge_preview import MergePreview

RESOLUTIONS = ("ours", "theirs", "columns")
_VALUES = (
    "ours, theirs or columns; or WHAT=HOW, where WHAT is a type, Type.property or a conflict id as shown by a preview. "
    "For a conflict id, HOW can also be a JSON object of values, or null to delete the row"
)

Resolve = Annotated[
    list[str] | None,
    typer.Option("--resolve", metavar="HOW", help=f"How to resolve conflicting rows: {_VALUES}. May be repeated."),
]
Preview = Annotated[bool, typer.Option("--preview", "--dry-run", help="Show the result; write nothing.")]


def resolutions(given: list[str]) -> Any:
    """Return the resolutions as the library takes them, by type, property or conflict id; `*` is the default."""
    chosen: dict[str, Any] = {}
    for text in given:
        what, equals, how = text.partition("=")
        if not equals:
            what, how = "*", text
        if what in chosen:
            raise UsageFault(f"--resolve is given twice for {'all conflicts' if what == '*' else repr(what)}")
        chosen[what] = _choice(what, how)
    return chosen or None


def _choice(what: str, how: str) -> Any:
    if how in RESOLUTIONS:
        return how
    try:
        value = json.loads(how)
    except (ValueError, RecursionError):
        value = how
    if ":" not in what or not (value is None or isinstance(value, dict)):
        raise UsageFault(
            f"--resolve must be {_VALUES}; not '{what if what != '*' else how}{'=' + how if what != '*' else ''}'"
        )
    return value


def print_plan(plan: MergePreview, title: str, source: str, verb: str) -> None:
    """Print the changes of each table, and every conflict."""
    from omnigraph.operations.merge.merge import HIDDEN_CONFLICTS_HINT, hidden_conflicts_text, resolution_hint

    found = [plural(len(plan.conflicts), "conflict")] if plan.conflicts else []
    if plan.hidden_conflicts:
        found.append(hidden_conflicts_text(plan.hidden_conflicts))
    outcome = f"{'; '.join(found)}; would not {verb}" if found else f"{plan.outcome}; nothing was written"
    print(f"{title}: {outcome}")
    shown = plan.to_json()
    for key, table in shown["tables"].items():
        taken = f", adopted from {source}" if table["adopted"] else ""
        counts = f"{table['inserted']} inserted, {table['updated']} updated, {table['deleted']} deleted"
        print(f"  {key}: {counts}{taken}")
    if plan.hidden_changes:
        print("  other changes are hidden from you")
    for step in shown["schema_steps"]:
        print(f"  schema: {step}")
    if plan.query_changes:
        print(f"  {plural(plan.query_changes, 'stored query changes', 'stored queries change')}")
    for conflict in plan.conflicts:
        print(f"conflict  {conflict.id} ({conflict.kind}) {conflict.message}")
    if plan.conflicts:
        print(f"{found[0]}; {hint_for(resolution_hint(plan.conflicts), 'cli')}")
    elif plan.hidden_conflicts:
        print(f"{found[0]}; {HIDDEN_CONFLICTS_HINT}")
