"""Cedar policies for rows as conditions of the query language.

For one actor, action, type and branch, everything but the row is a constant. `policy_condition` folds the constants of
a policy and translates what is left of its syntax tree. A policy is satisfied exactly where its condition is true.
`visible_rows` combines the policies: some permit is satisfied, and no forbid is.

Conditions contain negations of comparisons only. A comparison with a null is not true, so a policy that reads a missing
attribute is not satisfied, as in Cedar. The complement of a forbid is true where the forbid is false or unknown.

| Cedar | condition |
|---|---|
| `resource.x`, `resource has x` | property, not null |
| `==`, `!=`, `<`, `<=`, `>`, `>=` | comparison |
| `like` | `=`, `starts_with`, `ends_with`, `contains_text`, or `matches` with an escaped expression |
| `contains`, `containsAny`, `containsAll` of a property or a constant set | `contains_item`, with `or` and `and` |
| `&&`, `||`, `!`, `if then else`, `is` | `and`, `or`, negated comparisons |

Everything else is refused: arithmetic, whose overflow would skip a policy, `resource in …`, attributes of other
entities, and functions of extensions other than `datetime("…")`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, assert_never, cast

from cedarpy import pst

from omnigraph.policy.statements import AttributeType, AttributeValue, datetime_milliseconds
from omnigraph.query.plan import ir
from omnigraph.types import PropertyType

RowCondition = bool | ir.Condition
"""All rows, no row, or the rows for which a condition is true."""

SIZE_MAX = 5_000
"""Number of parts of a condition above which a policy is refused."""

_DAY_MS = 86_400_000
_DATE = PropertyType("Date")
_SYMBOL_TYPES: Mapping[str, PropertyType] = {
    "String": ir.STRING,
    "Long": ir.I64,
    "Bool": ir.BOOL,
    "Datetime": ir.DATETIME,
    "Set<String>": PropertyType("String", is_list=True),
    "Set<Long>": PropertyType("I64", is_list=True),
}
_COMPARISONS: Mapping[str, ir.CompareOp] = {
    "eq": "=",
    "not_eq": "!=",
    "less": "<",
    "less_eq": "<=",
    "greater": ">",
    "greater_eq": ">=",
}
_NEGATED: Mapping[str, ir.CompareOp] = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_FLIPPED: Mapping[str, ir.CompareOp] = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_ARITHMETIC = frozenset({"add", "sub", "mul", "neg"})


class PolicyRefused(ValueError):
    """A policy uses a part of Cedar that cannot be translated."""


@dataclass(frozen=True)
class RowFacts:
    """The constants of a request on rows. Without an actor, those of the actor and the branch are unknown."""

    action: str
    entity_type: str
    """The Cedar type of the rows."""
    columns: Mapping[str, tuple[str, PropertyType]]
    """Attribute of a row → its column and type."""
    interfaces: tuple[str, ...] = ()
    actor: str | None = None
    groups: tuple[str, ...] = ()
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    declared: Mapping[str, AttributeType] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)
    """`branch`, `protected`, `matches`, and `property` for actions on properties; without an actor, known ones only."""
    context_types: Mapping[str, AttributeType] = field(default_factory=dict)


# -- combination of policies -------------------------------------------------------------------------


def visible_rows(policies: Iterable[pst.Template], facts: RowFacts) -> RowCondition:
    """Return the rows for which some permit is satisfied and no forbid is."""
    permits: list[RowCondition] = []
    forbids: list[RowCondition] = []
    for policy in policies:
        (permits if policy.effect == "permit" else forbids).append(policy_condition(policy, facts))
    return all_of([any_of(permits), complement(any_of(forbids))])


def policy_condition(policy: pst.Template, facts: RowFacts) -> RowCondition:
    """Return the rows for which a policy is satisfied; raises `PolicyRefused` if it cannot be translated."""
    return _Translator(facts).policy(policy)


def names_rows(policy: pst.Template, facts: RowFacts) -> bool:
    """Return True if the scope of a policy names an action and the type of the rows."""
    return _Translator(facts).scope_names(policy)


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
            return any_of([_negated(condition), *unknown])


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


def _negated(condition: ir.Condition) -> ir.Condition:
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


# -- values of expressions ---------------------------------------------------------------------------


@dataclass(frozen=True)
class _Time:
    """A datetime: milliseconds since 1970-01-01 UTC."""

    milliseconds: int


@dataclass(frozen=True)
class _EntityRef:
    """An entity by its type and id."""

    type: str
    id: str


@dataclass(frozen=True)
class _Known:
    """A constant: a Boolean, integer, text, datetime, entity, or a set of these."""

    value: Any


@dataclass(frozen=True)
class _Symbol:
    """A constant of an unknown value."""

    name: str
    type: str


@dataclass(frozen=True)
class _Variable:
    """A variable as a whole."""

    name: str


@dataclass(frozen=True)
class _Truth:
    """A condition: where it is true, and where it is false. Elsewhere a missing attribute is read."""

    true: RowCondition
    false: RowCondition


_Value = _Known | _Symbol | _Variable | _Truth | ir.Prop


class _Translator:
    def __init__(self, facts: RowFacts) -> None:
        self._facts = facts
        self._sizes: dict[int, tuple[ir.Logic, int]] = {}

    # -- policies ------------------------------------------------------------------------------------

    def policy(self, policy: pst.Template) -> RowCondition:
        parts = [
            self._principal(policy.principal).true,
            self._action(policy.action),
            self._resource(policy.resource),
        ]
        if False in parts:
            return False
        for clause in policy.clauses:
            truth = self._truth(clause.expr)
            parts.append(truth.true if isinstance(clause, pst.When) else truth.false)
        return all_of(parts)

    def scope_names(self, policy: pst.Template) -> bool:
        """Return True if a policy can concern the action and the type."""
        return self._action(policy.action) and self._resource(policy.resource) is not False

    def _principal(self, scope: Any) -> _Truth:
        match scope:
            case pst.ScopeAny():
                return _fixed(True)
            case pst.ScopeEq():
                return self._is_actor(_entity_of(scope.entity))
            case pst.ScopeIn():
                return self._in_groups([_entity_of(scope.entity)])
            case pst.ScopeIs():
                return _fixed(str(scope.entity_type) == "Omnigraph::Actor")
            case pst.ScopeIsIn():
                inside = self._in_groups([_entity_of(scope.entity)])
                return inside if str(scope.entity_type) == "Omnigraph::Actor" else _fixed(False)
            case _:
                raise PolicyRefused(f"the scope '{type(scope).__name__}' of the principal")

    def _action(self, scope: Any) -> bool:
        match scope:
            case pst.ScopeAny():
                return True
            case pst.ActionEq():
                return bool(scope.entity.id == self._facts.action)
            case pst.ActionIn():
                return any(entity.id == self._facts.action for entity in scope.entities)
            case _:
                raise PolicyRefused(f"the scope '{type(scope).__name__}' of the action")

    def _resource(self, scope: Any) -> RowCondition:
        facts = self._facts
        match scope:
            case pst.ScopeAny():
                return True
            case pst.ScopeIs():
                return str(scope.entity_type) == facts.entity_type
            case pst.ScopeEq():
                return self._is_row(_entity_of(scope.entity))
            case pst.ScopeIn():
                return self._in_interface(_entity_of(scope.entity))
            case pst.ScopeIsIn():
                same = str(scope.entity_type) == facts.entity_type
                return self._in_interface(_entity_of(scope.entity)) if same else False
            case _:
                raise PolicyRefused(f"the scope '{type(scope).__name__}' of the resource")

    def _is_row(self, entity: _EntityRef) -> RowCondition:
        if entity.type != self._facts.entity_type:
            return False
        column, type_ = self._facts.columns["id"]
        return ir.Compare("=", ir.Prop(ir.ROW, column, type_), ir.Const(entity.id, ir.STRING))

    def _in_interface(self, entity: _EntityRef) -> RowCondition:
        if entity.type == "Omnigraph::Interface":
            return entity.id in self._facts.interfaces
        return self._is_row(entity)  # an entity is in itself

    def _is_actor(self, entity: _EntityRef) -> _Truth:
        if self._facts.actor is None:
            return _opaque(f"principal is {entity.type} {entity.id}")
        return _fixed(entity == _EntityRef("Omnigraph::Actor", self._facts.actor))

    def _in_groups(self, entities: list[_EntityRef]) -> _Truth:
        facts = self._facts
        if facts.actor is None:
            return _opaque("principal in " + ", ".join(f"{entity.type} {entity.id}" for entity in entities))
        actor = _EntityRef("Omnigraph::Actor", facts.actor)
        groups = {_EntityRef("Omnigraph::Group", group) for group in facts.groups}
        return _fixed(any(entity == actor or entity in groups for entity in entities))

    # -- expressions ---------------------------------------------------------------------------------

    def _truth(self, expr: Any) -> _Truth:
        value = self._value(expr)
        match value:
            case _Truth():
                return value
            case _Known() if isinstance(value.value, bool):
                return _fixed(value.value)
            case _Symbol() if value.type == "Bool":
                return _opaque(value.name)
            case _Symbol() if _is_missing(value):
                return _Truth(False, False)
            case ir.Prop() if value.type.scalar == "Bool" and not value.type.is_list:
                return _Truth(value, ir.Not(value))
            case _:
                raise PolicyRefused(f"a condition that is not a Boolean ({_kind(value)})")

    def _value(self, expr: Any) -> _Value:
        match expr:
            case pst.BoolLit() | pst.LongLit() | pst.StringLit():
                return _Known(expr.value)
            case pst.EntityLit():
                return _Known(_EntityRef(str(expr.value.type), expr.value.id))
            case pst.Var():
                return self._variable(expr.name)
            case pst.UnaryOp():
                return self._unary(expr)
            case pst.BinaryOp():
                return self._binary(expr)
            case pst.GetAttr():
                return self._attribute(self._value(expr.base), expr.attr)
            case pst.HasAttr():
                return self._has(self._value(expr.base), expr.attrs)
            case pst.Like():
                return self._like(self._value(expr.base), expr.pattern)
            case pst.Is():
                return self._is(expr)
            case pst.IfThenElse():
                return self._choice(expr)
            case pst.Set():
                return self._set([self._value(element) for element in expr.elements])
            case pst.Record():
                raise PolicyRefused("a record")
            case _:
                raise PolicyRefused(f"the expression '{type(expr).__name__}'")

    def _variable(self, name: str) -> _Value:
        facts = self._facts
        if name == "action":
            return _Known(_EntityRef("Omnigraph::Action", facts.action))
        if name == "principal" and facts.actor is not None:
            return _Known(_EntityRef("Omnigraph::Actor", facts.actor))
        return _Variable(name)

    def _attribute(self, base: _Value, name: str) -> _Value:
        facts = self._facts
        match base:
            case _Variable(name="resource"):
                return self._column(name)
            case _Variable(name="context"):
                if name in facts.context:
                    return _known(facts.context[name])
                return _Symbol(f"context.{name}", facts.context_types.get(name, "String"))
            case _Variable(name="principal"):
                return _Symbol(f"principal.{name}", "String" if name == "id" else facts.declared[name])
            case _Known(value=_EntityRef(type="Omnigraph::Actor", id=actor)) if actor == facts.actor:
                return self._actor_attribute(name)
            case _:
                raise PolicyRefused(f"the attribute '{name}' of another entity or value")

    def _actor_attribute(self, name: str) -> _Value:
        facts = self._facts
        if name == "id":
            return _Known(facts.actor)
        if name not in facts.attributes:
            # Not reached in a validated policy, except in a part that is not evaluated: neither true nor false.
            return _Symbol(f"principal.{name}", f"missing {facts.declared.get(name, '')}")
        value = facts.attributes[name]
        if facts.declared[name] == "Datetime":
            return _Known(_Time(cast(int, datetime_milliseconds(str(value)))))
        return _known(value)

    def _column(self, name: str) -> ir.Prop:
        found = self._facts.columns.get(name)
        if found is None:
            raise PolicyRefused(f"the attribute '{name}', which the rows do not have")
        return ir.Prop(ir.ROW, *found)

    def _has(self, base: _Value, names: tuple[str, ...]) -> _Value:
        facts = self._facts
        if len(names) != 1:
            raise PolicyRefused("'has' with several names")
        name = names[0]
        match base:
            case _Variable(name="resource"):
                if name not in facts.columns:
                    return _Known(False)
                return _present(self._column(name))
            case _Variable(name="context"):
                known = name in facts.context or name in facts.context_types
                return _Known(known)
            case _Variable(name="principal"):
                return _Known(True) if name == "id" else _Symbol(f"principal has {name}", "Bool")
            case _Known(value=_EntityRef(type="Omnigraph::Actor", id=actor)) if actor == facts.actor:
                return _Known(name == "id" or name in facts.attributes)
            case _:
                raise PolicyRefused(f"'has {name}' of another entity or value")

    def _is(self, expr: Any) -> _Value:
        if expr.in_expr is not None:
            raise PolicyRefused("'is … in …'")
        wanted = str(expr.entity_type)
        match self._value(expr.base):
            case _Variable(name="resource"):
                return _Known(wanted == self._facts.entity_type)
            case _Variable(name="principal"):
                return _Known(wanted == "Omnigraph::Actor")
            case _Known(value=_EntityRef(type=found)):
                return _Known(wanted == found)
            case _:
                raise PolicyRefused("'is' of a value")

    def _choice(self, expr: Any) -> _Value:
        condition = self._truth(expr.cond)
        if condition.true is True:
            return self._value(expr.then_expr)
        if condition.false is True:
            return self._value(expr.else_expr)
        then, otherwise = self._truth(expr.then_expr), self._truth(expr.else_expr)
        return self._limited(
            _Truth(
                any_of([all_of([condition.true, then.true]), all_of([condition.false, otherwise.true])]),
                any_of([all_of([condition.true, then.false]), all_of([condition.false, otherwise.false])]),
            )
        )

    def _set(self, items: list[_Value]) -> _Value:
        if all(isinstance(item, _Known) for item in items):
            return _Known(frozenset(cast(_Known, item).value for item in items))
        if all(isinstance(item, _Known | _Symbol) for item in items):
            kinds = {item.type for item in items if isinstance(item, _Symbol)}
            if any(kind.startswith("missing") for kind in kinds):
                return _Symbol("set", "missing")
            return _Symbol("set", "Set<Long>" if "Long" in kinds else "Set<String>")
        raise PolicyRefused("a set that contains a property of the row")

    def _unary(self, expr: Any) -> _Value:
        if expr.op == "not":
            truth = self._truth(expr.arg)
            return _Truth(truth.false, truth.true)
        argument = self._value(expr.arg)
        if _is_missing(argument):
            return _Truth(False, False)
        if expr.op == "neg" and isinstance(argument, _Known) and isinstance(expr.arg, pst.LongLit):
            return _Known(-argument.value)
        if expr.op == "datetime" and isinstance(argument, _Known) and isinstance(argument.value, str):
            milliseconds = datetime_milliseconds(argument.value)
            if milliseconds is None:
                raise PolicyRefused(f"the datetime '{argument.value}'")
            return _Known(_Time(milliseconds))
        if expr.op == "is_empty" and isinstance(argument, _Known):
            return _Known(not argument.value)
        if expr.op == "is_empty" and isinstance(argument, _Symbol):
            return _Symbol(f"{argument.name}.isEmpty()", "Bool")
        if expr.op in _ARITHMETIC:
            raise PolicyRefused("arithmetic: an overflow would skip the policy")
        raise PolicyRefused(f"the function '{expr.op}'")

    def _binary(self, expr: Any) -> _Value:
        if expr.op in ("and", "or"):
            return self._logic(expr)
        if expr.op in _ARITHMETIC:
            raise PolicyRefused("arithmetic: an overflow would skip the policy")
        left, right = self._value(expr.left), self._value(expr.right)
        if _is_missing(left) or _is_missing(right):
            return _Truth(False, False)
        if expr.op in _COMPARISONS:
            return self._compare(_COMPARISONS[expr.op], left, right)
        match expr.op:
            case "in":
                return self._in(left, right)
            case "contains":
                return self._contains(left, right)
            case "contains_any":
                return self._contains_several(left, right, every=False)
            case "contains_all":
                return self._contains_several(left, right, every=True)
            case _:
                raise PolicyRefused(f"the operator '{expr.op}'")

    def _logic(self, expr: Any) -> _Truth:
        left = self._truth(expr.left)
        is_and = expr.op == "and"
        # Cedar does not evaluate the right side if the left side decides.
        if (left.false if is_and else left.true) is True:
            return left
        right = self._truth(expr.right)
        if is_and:
            return self._limited(_Truth(all_of([left.true, right.true]), any_of([left.false, right.false])))
        return self._limited(_Truth(any_of([left.true, right.true]), all_of([left.false, right.false])))

    def _limited(self, truth: _Truth) -> _Truth:
        """Refuse a condition that is too large: a choice contains its test twice."""
        if max(self._size_of(truth.true), self._size_of(truth.false)) > SIZE_MAX:
            raise PolicyRefused("a condition that is too large")
        return truth

    def _size_of(self, condition: RowCondition) -> int:
        if not isinstance(condition, ir.Logic):
            return 1
        known = self._sizes.get(id(condition))
        if known is None:
            known = condition, 1 + sum(map(self._size_of, condition.parts))
            self._sizes[id(condition)] = known
        return known[1]

    def _in(self, left: _Value, right: _Value) -> _Value:
        match left:
            case _Variable(name="resource"):
                raise PolicyRefused("'resource in …': a row is judged by its own properties")
            case _Variable(name="principal") | _Known(value=_EntityRef(type="Omnigraph::Actor")):
                return self._in_groups(_entities(right))
            case _Known(value=_EntityRef()):
                return _Known(left.value in _entities(right))
            case _:
                raise PolicyRefused("'in' of a value")

    # -- comparisons ---------------------------------------------------------------------------------

    def _compare(self, op: ir.CompareOp, left: _Value, right: _Value) -> _Value:
        for one, other in ((left, right), (right, left)):
            if isinstance(one, _Variable):
                if one.name == "resource":
                    raise PolicyRefused("a comparison of 'resource' itself; compare 'resource.id'")
                return self._compare_actor(op, other)
        if isinstance(left, _Known) and isinstance(right, _Known):
            return _Known(_compare_known(op, left.value, right.value))
        if isinstance(left, _Truth) or isinstance(right, _Truth):
            return _compare_truths(op, left, right)
        if not isinstance(left, ir.Prop):
            if not isinstance(right, ir.Prop):
                return _Symbol(f"{_name(left)} {op} {_name(right)}", "Bool")
            left, right, op = right, left, _FLIPPED[op]
        if isinstance(right, ir.Prop):
            return _compare_columns(op, left, right)
        if left.type.is_list:
            raise PolicyRefused("a comparison of whole sets")
        if isinstance(right, _Known) and isinstance(right.value, _Time) and left.type.scalar == "Date":
            return _compare_date(op, left, right.value.milliseconds)
        assert isinstance(right, _Known | _Symbol)
        compared = ir.Compare(op, left, _constant(right, left.type))
        return _Truth(compared, _negated(compared))

    def _compare_actor(self, op: ir.CompareOp, other: _Value) -> _Value:
        entities = _entities(other)
        truth = self._is_actor(entities[0])
        return truth if op == "=" else _Truth(truth.false, truth.true)

    def _contains(self, left: _Value, right: _Value) -> _Value:
        match left, right:
            case _Known(), _Known():
                return _Known(right.value in left.value)
            case _Known() | _Symbol(), ir.Prop():
                return _is_in(right, left)
            case ir.Prop(), _Known() | _Symbol():
                return _has_item(left, right)
            case ir.Prop(), ir.Prop():
                if left.type.scalar != right.type.scalar:
                    raise PolicyRefused("'contains' of properties of different types")
                compared = ir.Compare("contains_item", left, right)
                return _Truth(compared, ir.Not(compared))
            case _Known() | _Symbol(), _Known() | _Symbol():
                return _Symbol(f"{_name(left)}.contains({_name(right)})", "Bool")
            case _:
                raise PolicyRefused("'contains' of a variable or condition")

    def _contains_several(self, left: _Value, right: _Value, *, every: bool) -> _Value:
        name = "containsAll" if every else "containsAny"
        if isinstance(left, _Known | _Symbol) and isinstance(right, _Known | _Symbol):
            if isinstance(left, _Known) and isinstance(right, _Known):
                return _Known(right.value <= left.value if every else bool(right.value & left.value))
            return _Symbol(f"{_name(left)}.{name}({_name(right)})", "Bool")
        if not every and isinstance(right, ir.Prop):
            left, right = right, left
        if not isinstance(left, ir.Prop) or not isinstance(right, _Known | _Symbol):
            raise PolicyRefused(f"'{name}' with a property of the row as its argument")
        if isinstance(right, _Symbol):
            found = _opaque(f"{_name(left)}.{name}({right.name})")
            return _Truth(all_of([_is_present(left), found.true]), all_of([_is_present(left), found.false]))
        items = [_has_item(left, _Known(value)) for value in sorted(right.value, key=repr)]
        true, false = [item.true for item in items], [item.false for item in items]
        present = _is_present(left)
        if every:
            return self._limited(_Truth(all_of([present, *true]), any_of(false)))
        return self._limited(_Truth(any_of(true), all_of([present, *false])))

    def _like(self, base: _Value, pattern: Any) -> _Value:
        parts: list[str | None] = []  # None is a wildcard
        for element in pattern:
            if isinstance(element, pst.Wildcard):
                if not parts or parts[-1] is not None:
                    parts.append(None)
            elif parts and parts[-1] is not None:
                parts[-1] += element.value
            else:
                parts.append(element.value)
        if _is_missing(base):
            return _Truth(False, False)
        if isinstance(base, _Known):
            return _Known(_matches(parts, base.value))
        if isinstance(base, _Symbol):
            return _Symbol(f"{base.name} like {parts}", "Bool")
        if not isinstance(base, ir.Prop):
            raise PolicyRefused("'like' of a variable or condition")
        found = _text_test(base, parts)
        if isinstance(found, bool):
            return _present(base)
        return _Truth(found, _negated(found))


# -- helpers -----------------------------------------------------------------------------------------


def _fixed(value: bool) -> _Truth:
    return _Truth(value, not value)


def _opaque(name: str) -> _Truth:
    symbol = ir.ParamRef(name, ir.BOOL)
    return _Truth(symbol, ir.Not(symbol))


def _known(value: Any) -> _Known:
    return _Known(frozenset(value) if isinstance(value, tuple | list) else value)


def _is_missing(value: _Value) -> bool:
    return isinstance(value, _Symbol) and value.type.startswith("missing")


def _is_present(prop: ir.Prop) -> RowCondition:
    return ir.Not(ir.IsNull(prop)) if prop.type.nullable else True


def _present(prop: ir.Prop) -> _Truth:
    return _Truth(ir.Not(ir.IsNull(prop)), ir.IsNull(prop)) if prop.type.nullable else _fixed(True)


def _name(value: _Value) -> str:
    match value:
        case _Symbol() | _Variable():
            return value.name
        case _Known():
            shown = sorted(value.value, key=repr) if isinstance(value.value, frozenset) else value.value
            return repr(shown)
        case ir.Prop():
            return f"resource.{value.name}"
        case _Truth():
            return "condition"
        case _:
            assert_never(value)


def _kind(value: _Value) -> str:
    return value.type if isinstance(value, _Symbol) else _name(value)


def _entity_of(scope: Any) -> _EntityRef:
    if isinstance(scope, pst.Slot):
        raise PolicyRefused("a template")
    return _EntityRef(str(scope.type), scope.id)


def _entities(value: _Value) -> list[_EntityRef]:
    found = value.value if isinstance(value, _Known) else None
    listed = sorted(found, key=repr) if isinstance(found, frozenset) else [found]
    entities = [one for one in listed if isinstance(one, _EntityRef)]
    if len(entities) < len(listed):
        raise PolicyRefused("a comparison of an entity with a value")
    return entities


def _constant(value: _Known | _Symbol, type_: PropertyType) -> ir.Const | ir.ParamRef:
    """Return a constant that a property of this type is compared with."""
    if isinstance(value, _Symbol):
        return ir.ParamRef(value.name, _SYMBOL_TYPES[value.type])
    found = value.value
    match found:
        case bool():
            return ir.Const(found, ir.BOOL)
        case int():
            return ir.Const(found, ir.I64)
        case str():
            return ir.Const(found, ir.STRING)
        case _Time() if type_.scalar == "DateTime":
            return ir.Const(found.milliseconds, ir.DATETIME)
        case _:
            raise PolicyRefused("a comparison of a property with an entity or a set")


def _compare_known(op: ir.CompareOp, left: Any, right: Any) -> bool:
    if isinstance(left, _Time) and isinstance(right, _Time):
        left, right = left.milliseconds, right.milliseconds
    if op in ("=", "!="):
        same = type(left) is type(right) and left == right
        return same == (op == "=")
    compare: Mapping[str, Callable[[Any, Any], bool]] = {
        "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b,
        ">=": lambda a, b: a >= b,
    }
    return bool(compare[op](left, right))


def _compare_truths(op: ir.CompareOp, left: _Value, right: _Value) -> _Truth:
    if isinstance(left, _Known):
        left, right = right, left
    if not isinstance(left, _Truth) or not isinstance(right, _Known):
        raise PolicyRefused("a comparison of conditions")
    return left if right.value == (op == "=") else _Truth(left.false, left.true)


def _compare_columns(op: ir.CompareOp, left: ir.Prop, right: ir.Prop) -> _Truth:
    if left.type.is_list or right.type.is_list:
        raise PolicyRefused("a comparison of whole sets")
    dates = {left.type.scalar, right.type.scalar} & {"Date", "DateTime"}
    if len(dates) > 1:
        raise PolicyRefused("a comparison of a Date with a DateTime of the row")
    compared = ir.Compare(op, left, right)
    return _Truth(compared, _negated(compared))


def _compare_date(op: ir.CompareOp, prop: ir.Prop, milliseconds: int) -> _Truth:
    """Compare a Date, which is midnight UTC in Cedar, with a datetime."""
    day, rest = divmod(milliseconds, _DAY_MS)
    if rest and op in ("=", "!="):
        present = _is_present(prop)
        return _Truth(False, present) if op == "=" else _Truth(present, False)
    if rest:
        op = "<=" if op in ("<", "<=") else ">"
    compared = ir.Compare(op, prop, ir.Const(day, _DATE))
    return _Truth(compared, _negated(compared))


def _has_item(prop: ir.Prop, item: _Known | _Symbol) -> _Truth:
    """Return where a list of the row contains a constant."""
    value = _item_constant(prop, item)
    if value is None:
        return _Truth(False, _is_present(prop))
    compared = ir.Compare("contains_item", prop, value)
    return _Truth(compared, ir.Not(compared))


def _item_constant(prop: ir.Prop, item: _Known | _Symbol) -> ir.Const | ir.ParamRef | None:
    """Return a constant as an item of a property; None if no value of the property equals it."""
    if isinstance(item, _Known) and isinstance(item.value, _Time) and prop.type.scalar == "Date":
        day, rest = divmod(item.value.milliseconds, _DAY_MS)
        return None if rest else ir.Const(day, _DATE)
    return _constant(item, PropertyType(prop.type.scalar))


def _is_in(prop: ir.Prop, items: _Known | _Symbol) -> _Truth:
    """Return where a property is an item of a constant set."""
    if isinstance(items, _Symbol):
        found = _opaque(f"{items.name}.contains({prop.name})")
        present = _is_present(prop)
        return _Truth(all_of([present, found.true]), all_of([present, found.false]))
    constants = [_item_constant(prop, _Known(value)) for value in sorted(items.value, key=repr)]
    values = [constant.value for constant in constants if isinstance(constant, ir.Const)]
    if not values:
        return _Truth(False, _is_present(prop))
    scalar = next(constant.type.scalar for constant in constants if isinstance(constant, ir.Const))
    if len(values) == 1:
        compared = ir.Compare("=", prop, ir.Const(values[0], PropertyType(scalar)))
        return _Truth(compared, _negated(compared))
    listed = ir.Const(sorted(values), PropertyType(scalar, is_list=True))
    compared = ir.Compare("contains_item", listed, prop)
    return _Truth(compared, ir.Not(compared))


def _text_test(prop: ir.Prop, parts: list[str | None]) -> ir.Condition | bool:
    """Return the comparison of a text with a pattern; True if every text matches."""

    def test(op: ir.CompareOp, text: str) -> ir.Compare:
        return ir.Compare(op, prop, ir.Const(text, ir.STRING))

    match parts:
        case []:
            return test("=", "")
        case [None]:
            return True
        case [str(text)]:
            return test("=", text)
        case [str(text), None]:
            return test("starts_with", text)
        case [None, str(text)]:
            return test("ends_with", text)
        case [None, str(text), None]:
            return test("contains_text", text)
        case _:
            return test("matches", "(?s)\\A" + "".join(".*" if p is None else _escaped(p) for p in parts) + "\\z")


def _escaped(text: str) -> str:
    """Return a text as a regular expression (RE2) that matches exactly it."""
    return "".join(
        char if char.isalnum() or char == "_" or ord(char) > 127 else f"\\x{{{ord(char):x}}}" for char in text
    )


def _matches(parts: list[str | None], text: str) -> bool:
    import re  # noqa: PLC0415 (patterns over constants are rare)

    pattern = "".join(".*" if part is None else re.escape(part) for part in parts)
    return re.fullmatch(pattern, text, re.DOTALL) is not None
