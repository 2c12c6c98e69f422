"""Conditions on rows in canonical form: conjunction, disjunction and complement of conditions that are true or not.

Conditions contain negations of comparisons only. Parts are sorted, and parts that others imply are removed, so equal
conditions have equal texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from omnigraph.query.plan import ir

RowCondition = bool | ir.Condition
"""All rows, no row, or the rows for which a condition is true."""

_NEGATED: Mapping[str, ir.CompareOp] = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def all_of(parts: Iterable[RowCondition]) -> RowCondition:
    """Return the conjunction of conditions in canonical form."""
    return _combined("and", parts)


def any_of(parts: Iterable[RowCondition]) -> RowCondition:
    """Return the disjunction of conditions in canonical form."""
    return _combined("or", parts)


def complement(condition: RowCondition) -> RowCondition:
    """Return the rows for which a condition is not true: false or unknown."""
    match condition:
        case bool():
            return not condition
        case ir.Logic():
            parts = [complement(part) for part in condition.parts]
            return any_of(parts) if condition.op == "and" else all_of(parts)
        case ir.IsNull():
            return ir.Not(condition)
        case ir.Not(part=ir.IsNull()):
            return condition.part
        case _:
            unknown = [ir.IsNull(prop) for prop in _nullable(condition)]
            return any_of([negated(condition), *unknown])


def condition_text(condition: RowCondition) -> str:
    """Return the canonical text of a condition; equal conditions have equal texts."""
    match condition:
        case True:
            return "all"
        case False:
            return "none"
        case ir.Logic():
            return "(" + f" {condition.op} ".join(map(condition_text, condition.parts)) + ")"
        case ir.Not(part=ir.IsNull(value=value)):
            return f"{_operand_text(value)} is not null"
        case ir.Not():
            return f"not {condition_text(condition.part)}"
        case ir.IsNull():
            return f"{_operand_text(condition.value)} is null"
        case ir.Compare():
            return f"{_operand_text(condition.left)} {condition.op} {_operand_text(condition.right)}"
        case _:
            return _operand_text(condition)


def _operand_text(operand: ir.Expr) -> str:
    match operand:
        case ir.Prop():
            return f"{operand.var}.{json.dumps(operand.name)}"
        case ir.ParamRef():
            return f"${operand.name}"
        case ir.Const():
            return f"{operand.type.scalar}:{json.dumps(operand.value)}"
        case _:
            raise AssertionError(f"{type(operand).__name__} is not an operand of a row condition")


def _combined(op: str, parts: Iterable[RowCondition]) -> RowCondition:
    identity = op == "and"
    found: dict[str, ir.Condition] = {}
    for part in parts:
        if isinstance(part, bool):
            if part != identity:
                return not identity
            continue
        nested = part.parts if isinstance(part, ir.Logic) and part.op == op else (part,)
        for one in nested:
            found.setdefault(condition_text(one), one)
    kept = [found[text] for text in sorted(found)]
    if op == "and" and len(kept) > 1:
        shorter = _without_nulls(kept)
        if shorter is not None:
            return all_of(shorter)
        kept = _without_implied(kept)
    if not kept:
        return identity
    return kept[0] if len(kept) == 1 else ir.Logic("and" if identity else "or", tuple(kept))


def _without_nulls(parts: list[ir.Condition]) -> list[RowCondition] | None:
    """Drop `x is null` of a disjunction where another conjunct is true only if x is not null; None without a change."""
    needed = [_needed(part) for part in parts]
    for index, part in enumerate(parts):
        if not isinstance(part, ir.Logic) or part.op != "or":
            continue
        others = set().union(*(needed[other] for other in range(len(parts)) if other != index))
        rest = [one for one in part.parts if not (isinstance(one, ir.IsNull) and one.value in others)]
        if len(rest) < len(part.parts):
            return [*parts[:index], any_of(rest), *parts[index + 1 :]]
    return None


def _without_implied(parts: list[ir.Condition]) -> list[ir.Condition]:
    """Drop `x is not null` where another conjunct is true only if x is not null."""
    needed = [_needed(part) for part in parts]

    def is_implied(index: int, part: ir.Condition) -> bool:
        if not isinstance(part, ir.Not) or not isinstance(part.part, ir.IsNull):
            return False
        value = part.part.value
        return any(value in needed[other] for other in range(len(parts)) if other != index)

    return [part for index, part in enumerate(parts) if not is_implied(index, part)]


def _needed(condition: ir.Condition) -> frozenset[ir.Expr]:
    """Return the properties that are not null wherever a condition is true."""
    match condition:
        case ir.Logic():
            sets = [_needed(part) for part in condition.parts]
            return frozenset.union(*sets) if condition.op == "and" else frozenset.intersection(*sets)
        case ir.IsNull():
            return frozenset()
        case ir.Not(part=ir.IsNull(value=value)):
            return frozenset((value,))
        case _:
            return frozenset(_properties(condition))


def negated(condition: ir.Condition) -> ir.Condition:
    """Return the negation of a comparison; it is unknown where the comparison is."""
    match condition:
        case ir.Not():
            return condition.part
        case ir.Compare() if condition.op in _NEGATED:
            return ir.Compare(_NEGATED[condition.op], condition.left, condition.right)
        case _:
            return ir.Not(condition)


def _properties(condition: ir.Condition) -> list[ir.Prop]:
    return [part for part in ir.walk(condition) if isinstance(part, ir.Prop)]


def _nullable(condition: ir.Condition) -> list[ir.Prop]:
    return [prop for prop in dict.fromkeys(_properties(condition)) if prop.type.nullable]
