"""The text of a draft: declarations with their reasons as aligned comments."""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.operations.inference.keys import TypedTable
from omnigraph.operations.inference.table_sample import TableSample

Line = tuple[str, str]
"""Source text, and the comment behind it."""

UNIQUE_PAIRS = "@unique(src, dst)"
"""The constraint of edges without properties: a second load of them changes nothing."""


def rows_text(count: int) -> str:
    """Return a number of rows."""
    return f"{count:,} {'row' if count == 1 else 'rows'}"


def percent(share: float) -> str:
    """Return a share; only all is 100 %."""
    return "100%" if share == 1 else f"{min(share * 100, 99.9):.1f}%"


def header(samples: Sequence[TableSample]) -> list[str]:
    """Return the comment at the head of a draft: what was read."""
    read = [
        f"{sample.label} ({rows_text(sample.rows)})"
        if sample.is_complete
        # A sample is stated, because later rows can break the draft.
        else f"the first {rows_text(sample.rows)} of {sample.label}"
        for sample in samples
    ]
    lines = [f"// Inferred from {', '.join(read)}."]
    if not all(sample.is_complete for sample in samples):
        lines.append("// Rows that were not read may not fit; a load sets them aside as rejects.")
    return lines


def null_words(tables: Sequence[TypedTable]) -> list[str]:
    """Return the comment about texts that seem to stand for no value."""
    found: dict[str, int] = {}
    for table in tables:
        for column in table.columns.values():
            if column.null_word is not None:
                found[column.null_word] = found.get(column.null_word, 0) + 1
    return [
        f"// '{word}' in {count} {'column' if count == 1 else 'columns'}: no value? Infer again with null '{word}'"
        f" (--null '{word}')."
        for word, count in found.items()
    ]


def property_lines(table: TypedTable, left_out: Sequence[str] = ()) -> list[Line]:
    """Return a line for each property of a table, and a comment for each column that no property holds."""
    lines: list[Line] = []
    for column, found in table.columns.items():
        if column in left_out:
            continue
        if found.type is None:
            lines.append(("", f"column '{column}' is left out: {found.reason}"))
            continue
        is_key = column == table.key
        kind = found.type if not is_key or found.type.enum_values is None else type(found.type)("String")
        text = f"{table.properties[column]}: {kind.with_nullable(table.is_nullable(column))}"
        text += " @key" if is_key else " @index" if found.is_indexed else ""
        lines.append((text, _comment(table, column)))
    return lines


def _comment(table: TypedTable, column: str) -> str:
    parts: list[str] = []
    if table.properties[column] != column:
        parts.append(f"column '{_one_line(column)}'")
    if column == table.key:
        parts.append(f"unique and never empty in {rows_text(table.sample.rows)}")
        parts += [table.key_reason] if table.key_reason else []
        parts += [f"also unique: {', '.join(map(_one_line, table.also_unique))}"] if table.also_unique else []
        reason = table.columns[column].reason
        parts += [reason] if reason.startswith("looks like") else []
    else:
        nulls = table.nulls(column)
        parts += [f"{nulls:,} empty"] if 0 < nulls < table.sample.rows else []
        parts.append(_one_line(table.columns[column].reason))
    return "; ".join(parts)


def block(head: str, comment: str, lines: Sequence[Line]) -> str:
    """Return a declaration with its members; comments are aligned."""
    if not lines:
        return _with_comment(head, comment, len(head)) + "\n"
    width = max(len(text) for text, _ in lines)
    body = ["    " + (_with_comment(text, note, width) if text else f"// {note}") for text, note in lines]
    return "\n".join([_with_comment(f"{head} {{", comment, len(head) + 2), *body, "}", ""])


def _with_comment(text: str, comment: str, width: int) -> str:
    return f"{text.ljust(width)}  // {comment}" if comment else text


def _one_line(text: str) -> str:
    """Return a text as one line of a comment."""
    shown = " ".join(text.split())
    shown = shown if shown.isprintable() else ascii(shown)[1:-1]
    return shown if len(shown) <= 160 else shown[:159] + "…"
