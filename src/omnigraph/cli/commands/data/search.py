"""`omnigraph search`: search the nodes of all types."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli.errors import UsageFault
from omnigraph.cli.invocation import Branch, Invocation, Json, takes_graph
from omnigraph.cli.io.output import print_json, remark
from omnigraph.cli.io.points import At, open_at, point
from omnigraph.text_table import cell
from omnigraph.wire.json_values import row_value

if TYPE_CHECKING:
    from omnigraph.operations.search.search_result import RankerShare, RankOf, SearchHit

_FILTER = re.compile(r"\s*(\w+)\s*(>=|<=|!=|=|<|>|\b(?:in|contains|starts_with|icontains)\b)\s*(.*)", re.DOTALL)
_SHOWN_MAX = 100


@takes_graph
def search_command(
    run: Invocation,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text to search for.")],
    types: Annotated[
        list[str] | None, typer.Option("--type", "-t", metavar="TYPE", help="Only this node type. Repeatable.")
    ] = None,
    by: Annotated[str, typer.Option("--by", metavar="RANKING", help="both, words or meaning.")] = "both",
    filters: Annotated[
        list[str] | None,
        typer.Option("--filter", metavar="CONDITION", help="Only nodes with this property: year>=1900. Repeatable."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, metavar="N", help="Hits of a page.")] = 10,
    after: Annotated[
        str | None, typer.Option("--after", metavar="CURSOR", help="Continue after an earlier page.")
    ] = None,
    rank_of: Annotated[
        str | None, typer.Option("--rank-of", metavar="ID", help="Explain the rank of this node, or its absence.")
    ] = None,
    branch: Branch = None,
    at: At = None,
    as_json: Json = False,
) -> None:
    """Search the nodes of all types by their texts and vectors, and explain each rank.

    omnigraph search 'night herons' ./my.omni

    omnigraph search herons -t Note --filter 'written>=2026-01-01' ./my.omni
    """
    found = open_at(run, branch, at).search(
        text,
        types,
        by=by,
        filters=parse_filters(filters or ()),
        limit=limit,
        after=after,
        rank_of=rank_of,
        at=point(at),
    )
    if as_json:
        from omnigraph.wire.exploration import SearchDocument

        print_json(SearchDocument.of(found.to_json(row_value)))
        return
    for hit in found.hits:
        print_hit(hit)
    for each in found.rank_of:
        _print_rank(each)
    for note in found.notes:
        remark("note", note)
    if not found.hits:
        remark("note", "nothing was found")
    if found.next is not None:
        remark("next", found.next)


def parse_filters(texts: list[str] | tuple[str, ...]) -> dict[str, Any]:
    """Return the filters that conditions such as `year>=1900` describe; a value is JSON or a text."""
    filters: dict[str, dict[str, Any]] = {}
    for text in texts:
        parts = _FILTER.fullmatch(text)
        if parts is None:
            raise UsageFault(f"'{text}' is not a condition; write --filter 'year>=1900', for example")
        name, operator, written = parts.groups()
        try:
            value = json.loads(written)
        except ValueError:
            value = written
        filters.setdefault(name, {})[operator] = value
    return filters


def print_hit(hit: SearchHit) -> None:
    """Print the rank of a hit, the reasons, and its properties."""
    print(f"{hit.rank:>3}  {hit.type} {hit.id}  {'  '.join(filter(None, map(_share_text, hit.why)))}")
    shown = [f"{name}: {cell(value)}" for name, value in hit.row.items() if name != "id" and value is not None]
    for line in shown:
        print(f"     {line if len(line) <= _SHOWN_MAX else line[: _SHOWN_MAX - 1] + '…'}")


def _share_text(share: RankerShare) -> str:
    if share.score is None:
        return ""
    words = f": {' '.join(term.word for term in share.terms)}" if share.terms else ""
    place = f" #{share.rank}" if share.rank is not None else ""
    return f"{share.by}{place} ({share.property} {share.score:.3f}{words})"


def _print_rank(each: RankOf) -> None:
    name = f"{each.type} {each.id}" if each.type is not None else each.id
    place = f"rank {each.rank}" if each.rank is not None else each.message
    print(f"{name}: {'  '.join([place, *filter(None, map(_share_text, each.why))])}")
