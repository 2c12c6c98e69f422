"""Answers of tools: rows and lists within the budget, as a JSON object and as lines of text.

Each line of text is one JSON value, so that no text of a row can look like another row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from omnigraph.engine.result.result import Result, batch_values
from omnigraph.errors import InputError
from omnigraph.mcp.budget import Item, Page, cut_items, fit_page
from omnigraph.mcp.tool import Answer
from omnigraph.wire.document import encoder
from omnigraph.wire.json_values import row_value
from omnigraph.wire.queries import row_objects

if TYPE_CHECKING:
    from omnigraph.mcp.session import Session

ROWS = 100
"""Rows of an answer if the caller names no limit; the budget can reduce them."""
ROWS_MAX = 1_000
NO_ORDER = "page_without_order"
"""Code of the error of a page of a query without an order."""


def rows_answer(
    session: Session, fetch: Callable[[int | None, str | None], Result], limit: int | None, after: str | None
) -> Answer:
    """Return the rows of a read.

    `fetch` reads a page of at most a number of rows after a cursor, or with None all rows. Only a query with an order
    has pages; of another one the first rows are shown.
    """
    try:
        page, left = fit_page(session.budget, limit or ROWS, lambda count: _read_page(fetch(count, after))), 0
    except InputError as error:
        if error.code != NO_ORDER or after is not None:
            raise
        page, left = _first_rows(session, fetch(None, None), limit or ROWS)
    result = page.source
    note = _left_note(left) if left else _cut_note(page, "rows")
    structured = {
        "columns": result.columns,
        "rows": page.items,
        "row_count": len(page.items),
        "commit": result.commit_id,
        **_following(page.next, note),
    }
    head = f"{_count(len(page.items), 'row')} of commit {result.commit_id}"
    lines = [_line(list(row.values())) for row in page.items]
    return Answer(structured, _text(head, [_line(result.columns), *lines], note, page.next), commit=result.commit_id)


def _read_page(result: Result) -> Page[Result]:
    return Page(_rows(result), result.next, result)


def _first_rows(session: Session, result: Result, limit: int) -> tuple[Page[Result], int]:
    """Return the first rows of a whole result as far as they fit, and how many are left out."""
    first = next(iter(result.batches(limit)), None)
    items = [] if first is None else list(row_objects(result.columns, batch_values(first)))
    shown, _ = cut_items(session.budget, items)
    return Page(shown, None, result), len(result) - len(shown)


def _left_note(left: int) -> str:
    return f"{left:,} more rows are not shown. With an 'order' the query has pages; or select less."


def list_answer(
    session: Session,
    member: str,
    limit: int | None,
    fetch: Callable[[int], Page[dict[str, Any]]],
) -> Answer:
    """Return a page of a list under the name `member`; the source of the page has the other members of the answer."""
    page = fit_page(session.budget, limit or ROWS, fetch)
    note = _cut_note(page, member)
    structured = {**page.source, member: page.items, **_following(page.next, note)}
    head = _head(f"{len(page.items)} {member}", page.source)
    return Answer(structured, _text(head, map(_line, page.items), note, page.next))


def item_answer(session: Session, item: Item, head: str, **more: Any) -> Answer:
    """Return one item; long values are clipped."""
    shown = session.budget.clip(row_value(item))
    return Answer({**more, **shown}, f"{head}\n{_line(shown)}")


def written_answer(session: Session, head: str, members: Item, rows: Result | None = None) -> Answer:
    """Return the result of a write: its members, and the rows that it returns as far as they fit."""
    structured, lines, note = dict(members), [], None
    if rows is not None and rows.columns:
        shown, left = cut_items(session.budget, _rows(rows))
        note = f"{left} more rows were returned and are not shown." if left else None
        structured |= {"columns": rows.columns, "rows": shown, **({"note": note} if note else {})}
        lines = [_line(rows.columns), *(_line(list(row.values())) for row in shown)]
    return Answer(structured, _text(head, lines, note, None), commit=members.get("commit"))


def first_items(items: Iterable[Item], count: int, cursor: Callable[[Item], str]) -> tuple[list[Item], str | None]:
    """Return the first items of an iterator, and the cursor of the last one if there are more."""
    found: list[Item] = []
    for item in items:
        if len(found) == count:
            return found, cursor(found[-1])
        found.append(item)
    return found, None


def _rows(result: Result) -> list[Item]:
    return list(row_objects(result.columns, result.to_columns()))


def _following(next: str | None, note: str | None) -> dict[str, str]:
    return {**({"next": next} if next is not None else {}), **({"note": note} if note is not None else {})}


def _cut_note(page: Page[Any], member: str) -> str | None:
    if page.next is None:
        return None
    reason = "The answer is cut to its budget" if page.cut else "There are more"
    return f"{reason}: call again with 'after' set to 'next' for more {member}, or ask for less."


def _text(head: str, lines: Iterable[str], note: str | None, next: str | None) -> str:
    return "\n".join([head, *lines, *([note] if note else []), *([f"next: {next}"] if next is not None else [])])


def _head(count: str, members: Mapping[str, Any]) -> str:
    return ", ".join([count, *(f"{name} {value}" for name, value in members.items() if isinstance(value, str))])


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun if number == 1 else noun + 's'}"


def _line(value: Any) -> str:
    return encoder.encode(value).decode()
