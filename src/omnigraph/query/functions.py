"""The functions of the language, declared once: how they are called and what family they belong to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Family = Literal["clock", "text", "rank", "aggregate"]


@dataclass(frozen=True, slots=True)
class Function:
    """A function's name, how many arguments it takes, and how a call looks."""

    name: str
    family: Family
    least: int
    most: int
    usage: str


FUNCTIONS: dict[str, Function] = {
    function.name: function
    for function in (
        Function("now", "clock", 0, 0, "now()"),
        Function("search", "text", 2, 2, "search($x.text, query)"),
        Function("match_text", "text", 2, 2, "match_text($x.text, query)"),
        Function("fuzzy", "text", 2, 3, "fuzzy($x.text, query) or fuzzy($x.text, query, max_edits)"),
        Function("nearest", "rank", 2, 2, "nearest($x.vector, query)"),
        Function("bm25", "rank", 2, 2, "bm25($x.text, query)"),
        Function("rrf", "rank", 2, 3, "rrf(nearest(…), bm25(…)) or rrf(nearest(…), bm25(…), k)"),
        Function("count", "aggregate", 1, 1, "count($x)"),
        Function("sum", "aggregate", 1, 1, "sum($x.number)"),
        Function("avg", "aggregate", 1, 1, "avg($x.number)"),
        Function("min", "aggregate", 1, 1, "min($x.value)"),
        Function("max", "aggregate", 1, 1, "max($x.value)"),
    )
}


def names_of(family: Family) -> frozenset[str]:
    """The functions of one family."""
    return frozenset(function.name for function in FUNCTIONS.values() if function.family == family)


TEXT = names_of("text")
RANK = names_of("rank")
AGGREGATE = names_of("aggregate")
