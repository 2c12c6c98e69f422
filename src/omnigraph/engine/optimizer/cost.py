"""The cost model: nanoseconds per operator and per row.

    scan by key        LOOKUP
    scan               rows of the table x cost of its conditions
    expand             source rows x SOURCE + edges followed x ROW, + conditions on the far end
    reach {m,n}        edges followed x STEP + nodes reached x ROW
    expand to a vertex that is not used later, in a counting query
                       source rows x DEGREE
    expand of most rows to a vertex that alone is used later, in a counting query
                       edges of the type x EDGE
    close a cycle at a vertex that is not used later, in a counting query
                       edges followed from one side x COMMON
    shortest paths     PATHS + sources x edges followed x PATH_STEP + paths x ROW; the side with fewer nodes searches,
                       for few pairs of bound ends both sides, which follow the square root of the edges each
    all paths          PATHS + sources x walks x PATH_ROW
    check              rows x CHECK
    filter             rows x cost of the condition
    text search        its condition + rows with the words x POSTING
    condition on a column that does not fit the cache
                       READ_CALL + bytes of the column x READ, or rows x TAKE if that is less;
                       with a sorted index INDEX_CALL + rows found x INDEXED
    every condition    NUMBER_CALL, TEXT_CALL or OTHER_CALL, x the probability that it runs
    every operator     OPERATOR, x the probability that it runs: without a row it does not
    a plan that does not start at a key, and is therefore not compiled to a chain
                       PIPELINE

The values are measured on one core of the machine for which the targets were set. Only their ratios matter.
"""

from __future__ import annotations

from omnigraph.query.plan import ir

OPERATOR = 8_000.0
PIPELINE = 40_000.0
LOOKUP = 2_000.0
SOURCE = 12.0
ROW = 12.0
STEP = 6.0
DEGREE = 6.0
EDGE = 1.5
COMMON = 1.6
CHECK = 60.0
PATHS = 150_000.0
PATH_STEP = 40.0
PATH_ROW = 80.0
MATCH = 4.0
"""A row of a negation or an optional block is matched with the result of an independent block."""
RANK = 25.0
"""An entity is ranked or ordered."""

POSTING = 1.0
"""A row is in the postings of the words of a search."""
READ_CALL = 1_000_000.0
READ = 1.0
"""A byte of a column that does not fit the cache is read and decoded."""
TAKE = 4_000.0
"""A value of such a column is read by its row number."""
INDEX_CALL = 700_000.0
INDEXED = 80.0
"""A row is found by a sorted index of such a column."""

_NUMBER_TEST = 1.0
_DATE_TEST = 2.0
_MATCH_TEST = 0.5
"""The rows that match a search are known; a row is tested by its number."""
_ITEM_TEST = 8.0
"""A value is sought in a list of constants."""
_TEXT_EQUALITY = 1.0
"""Texts with few distinct values are compared by their dictionary codes."""
_TEXT_TEST = 10.0
_OTHER_TEST = 25.0
NUMBER_CALL = 3_000.0
TEXT_CALL = 20_000.0
OTHER_CALL = 50_000.0
"""Fixed costs of a condition: numbers and keys are compared by numpy, texts by their codes, other values by Arrow."""


def call_cost(condition: ir.Condition) -> float:
    """Return the fixed cost of a condition other than a key."""
    match condition:
        case ir.Compare(
            op="=" | "!=" | "<" | "<=" | ">" | ">=", left=ir.Prop() as prop, right=ir.Const() | ir.ParamRef()
        ):
            if prop.type.is_integer or prop.type.is_float:
                return NUMBER_CALL
            return TEXT_CALL if prop.type.is_text and condition.op in ("=", "!=") else OTHER_CALL
        case _:
            return OTHER_CALL


def condition_cost(condition: ir.Condition) -> float:
    """Return the cost of a condition for one row."""
    match condition:
        case ir.Compare(op="=" | "!=" | "<" | "<=" | ">" | ">=", left=ir.Prop() as prop, right=right):
            plain = isinstance(right, ir.Const | ir.ParamRef | ir.Prop)
            if plain and (prop.type.is_integer or prop.type.is_float):
                return _NUMBER_TEST
            if plain and condition.op in ("=", "!="):
                return _TEXT_EQUALITY
            if plain and prop.type.kind.number is not None:
                return _DATE_TEST
            return _TEXT_TEST if plain else _OTHER_TEST
        case ir.IsNull() | ir.Not(ir.IsNull()):
            return _NUMBER_TEST
        case ir.TextMatch():
            return _MATCH_TEST
        case ir.Compare(op="contains_item", left=ir.Const() | ir.ParamRef(), right=ir.Prop()):
            return _ITEM_TEST
        case ir.Compare(op="starts_with", left=ir.Prop(), right=ir.Const() | ir.ParamRef()):
            return _TEXT_TEST
        case ir.Logic():
            return sum(map(condition_cost, condition.parts))
        case ir.Not():
            return condition_cost(condition.part)
        case _:
            return _OTHER_TEST


def conditions_cost(conditions: tuple[ir.Condition, ...]) -> float:
    """Return the cost of some conditions for one row."""
    return sum(map(condition_cost, conditions))
