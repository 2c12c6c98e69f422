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

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from cedarpy import pst

from omnigraph.policy.cedar_values import (
    FLIPPED,
    CedarTime,
    CedarValue,
    EntityRef,
    Known,
    PolicyRefused,
    Symbol,
    Truth,
    Variable,
    compare_columns,
    compare_date,
    compare_known,
    compare_truths,
    constant_of,
    entities_of,
    entity_of,
    fixed_truth,
    has_item,
    is_in,
    is_missing,
    is_present,
    kind_of,
    known_value,
    matches_parts,
    name_of,
    opaque_truth,
    presence,
    text_test,
)
from omnigraph.policy.rows.row_conditions import RowCondition, all_of, any_of, complement, negated
from omnigraph.policy.statements import AttributeType, AttributeValue, datetime_milliseconds
from omnigraph.query.plan import ir
from omnigraph.types import PropertyType

SIZE_MAX = 5_000
"""Number of parts of a condition above which a policy is refused."""

_COMPARISONS: Mapping[str, ir.CompareOp] = {
    "eq": "=",
    "not_eq": "!=",
    "less": "<",
    "less_eq": "<=",
    "greater": ">",
    "greater_eq": ">=",
}
_ARITHMETIC = frozenset({"add", "sub", "mul", "neg"})


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

    def _principal(self, scope: Any) -> Truth:
        match scope:
            case pst.ScopeAny():
                return fixed_truth(True)
            case pst.ScopeEq():
                return self._is_actor(entity_of(scope.entity))
            case pst.ScopeIn():
                return self._in_groups([entity_of(scope.entity)])
            case pst.ScopeIs():
                return fixed_truth(str(scope.entity_type) == "Omnigraph::Actor")
            case pst.ScopeIsIn():
                inside = self._in_groups([entity_of(scope.entity)])
                return inside if str(scope.entity_type) == "Omnigraph::Actor" else fixed_truth(False)
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
                return self._is_row(entity_of(scope.entity))
            case pst.ScopeIn():
                return self._in_interface(entity_of(scope.entity))
            case pst.ScopeIsIn():
                same = str(scope.entity_type) == facts.entity_type
                return self._in_interface(entity_of(scope.entity)) if same else False
            case _:
                raise PolicyRefused(f"the scope '{type(scope).__name__}' of the resource")

    def _is_row(self, entity: EntityRef) -> RowCondition:
        if entity.type != self._facts.entity_type:
            return False
        column, type_ = self._facts.columns["id"]
        return ir.Compare("=", ir.Prop(ir.ROW, column, type_), ir.Const(entity.id, ir.STRING))

    def _in_interface(self, entity: EntityRef) -> RowCondition:
        if entity.type == "Omnigraph::Interface":
            return entity.id in self._facts.interfaces
        return self._is_row(entity)  # an entity is in itself

    def _is_actor(self, entity: EntityRef) -> Truth:
        if self._facts.actor is None:
            return opaque_truth(f"principal is {entity.type} {entity.id}")
        return fixed_truth(entity == EntityRef("Omnigraph::Actor", self._facts.actor))

    def _in_groups(self, entities: list[EntityRef]) -> Truth:
        facts = self._facts
        if facts.actor is None:
            return opaque_truth("principal in " + ", ".join(f"{entity.type} {entity.id}" for entity in entities))
        actor = EntityRef("Omnigraph::Actor", facts.actor)
        groups = {EntityRef("Omnigraph::Group", group) for group in facts.groups}
        return fixed_truth(any(entity == actor or entity in groups for entity in entities))

    # -- expressions ---------------------------------------------------------------------------------

    def _truth(self, expr: Any) -> Truth:
        value = self._value(expr)
        match value:
            case Truth():
                return value
            case Known() if isinstance(value.value, bool):
                return fixed_truth(value.value)
            case Symbol() if value.type == "Bool":
                return opaque_truth(value.name)
            case Symbol() if is_missing(value):
                return Truth(False, False)
            case ir.Prop() if value.type.scalar == "Bool" and not value.type.is_list:
                return Truth(value, ir.Not(value))
            case _:
                raise PolicyRefused(f"a condition that is not a Boolean ({kind_of(value)})")

    def _value(self, expr: Any) -> CedarValue:
        match expr:
            case pst.BoolLit() | pst.LongLit() | pst.StringLit():
                return Known(expr.value)
            case pst.EntityLit():
                return Known(EntityRef(str(expr.value.type), expr.value.id))
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

    def _variable(self, name: str) -> CedarValue:
        facts = self._facts
        if name == "action":
            return Known(EntityRef("Omnigraph::Action", facts.action))
        if name == "principal" and facts.actor is not None:
            return Known(EntityRef("Omnigraph::Actor", facts.actor))
        return Variable(name)

    def _attribute(self, base: CedarValue, name: str) -> CedarValue:
        facts = self._facts
        match base:
            case Variable(name="resource"):
                return self._column(name)
            case Variable(name="context"):
                if name in facts.context:
                    return known_value(facts.context[name])
                return Symbol(f"context.{name}", facts.context_types.get(name, "String"))
            case Variable(name="principal"):
                return Symbol(f"principal.{name}", "String" if name == "id" else facts.declared[name])
            case Known(value=EntityRef(type="Omnigraph::Actor", id=actor)) if actor == facts.actor:
                return self._actor_attribute(name)
            case _:
                raise PolicyRefused(f"the attribute '{name}' of another entity or value")

    def _actor_attribute(self, name: str) -> CedarValue:
        facts = self._facts
        if name == "id":
            return Known(facts.actor)
        if name not in facts.attributes:
            # Not reached in a validated policy, except in a part that is not evaluated: neither true nor false.
            return Symbol(f"principal.{name}", f"missing {facts.declared.get(name, '')}")
        value = facts.attributes[name]
        if facts.declared[name] == "Datetime":
            return Known(CedarTime(cast(int, datetime_milliseconds(str(value)))))
        return known_value(value)

    def _column(self, name: str) -> ir.Prop:
        found = self._facts.columns.get(name)
        if found is None:
            raise PolicyRefused(f"the attribute '{name}', which the rows do not have")
        return ir.Prop(ir.ROW, *found)

    def _has(self, base: CedarValue, names: tuple[str, ...]) -> CedarValue:
        facts = self._facts
        if len(names) != 1:
            raise PolicyRefused("'has' with several names")
        name = names[0]
        match base:
            case Variable(name="resource"):
                if name not in facts.columns:
                    return Known(False)
                return presence(self._column(name))
            case Variable(name="context"):
                known = name in facts.context or name in facts.context_types
                return Known(known)
            case Variable(name="principal"):
                return Known(True) if name == "id" else Symbol(f"principal has {name}", "Bool")
            case Known(value=EntityRef(type="Omnigraph::Actor", id=actor)) if actor == facts.actor:
                return Known(name == "id" or name in facts.attributes)
            case _:
                raise PolicyRefused(f"'has {name}' of another entity or value")

    def _is(self, expr: Any) -> CedarValue:
        if expr.in_expr is not None:
            raise PolicyRefused("'is … in …'")
        wanted = str(expr.entity_type)
        match self._value(expr.base):
            case Variable(name="resource"):
                return Known(wanted == self._facts.entity_type)
            case Variable(name="principal"):
                return Known(wanted == "Omnigraph::Actor")
            case Known(value=EntityRef(type=found)):
                return Known(wanted == found)
            case _:
                raise PolicyRefused("'is' of a value")

    def _choice(self, expr: Any) -> CedarValue:
        condition = self._truth(expr.cond)
        if condition.true is True:
            return self._value(expr.then_expr)
        if condition.false is True:
            return self._value(expr.else_expr)
        then, otherwise = self._truth(expr.then_expr), self._truth(expr.else_expr)
        return self._limited(
            Truth(
                any_of([all_of([condition.true, then.true]), all_of([condition.false, otherwise.true])]),
                any_of([all_of([condition.true, then.false]), all_of([condition.false, otherwise.false])]),
            )
        )

    def _set(self, items: list[CedarValue]) -> CedarValue:
        if all(isinstance(item, Known) for item in items):
            return Known(frozenset(cast(Known, item).value for item in items))
        if all(isinstance(item, Known | Symbol) for item in items):
            kinds = {item.type for item in items if isinstance(item, Symbol)}
            if any(kind.startswith("missing") for kind in kinds):
                return Symbol("set", "missing")
            return Symbol("set", "Set<Long>" if "Long" in kinds else "Set<String>")
        raise PolicyRefused("a set that contains a property of the row")

    def _unary(self, expr: Any) -> CedarValue:
        if expr.op == "not":
            truth = self._truth(expr.arg)
            return Truth(truth.false, truth.true)
        argument = self._value(expr.arg)
        if is_missing(argument):
            return Truth(False, False)
        if expr.op == "neg" and isinstance(argument, Known) and isinstance(expr.arg, pst.LongLit):
            return Known(-argument.value)
        if expr.op == "datetime" and isinstance(argument, Known) and isinstance(argument.value, str):
            milliseconds = datetime_milliseconds(argument.value)
            if milliseconds is None:
                raise PolicyRefused(f"the datetime '{argument.value}'")
            return Known(CedarTime(milliseconds))
        if expr.op == "is_empty" and isinstance(argument, Known):
            return Known(not argument.value)
        if expr.op == "is_empty" and isinstance(argument, Symbol):
            return Symbol(f"{argument.name}.isEmpty()", "Bool")
        if expr.op in _ARITHMETIC:
            raise PolicyRefused("arithmetic: an overflow would skip the policy")
        raise PolicyRefused(f"the function '{expr.op}'")

    def _binary(self, expr: Any) -> CedarValue:
        if expr.op in ("and", "or"):
            return self._logic(expr)
        if expr.op in _ARITHMETIC:
            raise PolicyRefused("arithmetic: an overflow would skip the policy")
        left, right = self._value(expr.left), self._value(expr.right)
        if is_missing(left) or is_missing(right):
            return Truth(False, False)
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

    def _logic(self, expr: Any) -> Truth:
        left = self._truth(expr.left)
        is_and = expr.op == "and"
        # Cedar does not evaluate the right side if the left side decides.
        if (left.false if is_and else left.true) is True:
            return left
        right = self._truth(expr.right)
        if is_and:
            return self._limited(Truth(all_of([left.true, right.true]), any_of([left.false, right.false])))
        return self._limited(Truth(any_of([left.true, right.true]), all_of([left.false, right.false])))

    def _limited(self, truth: Truth) -> Truth:
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

    def _in(self, left: CedarValue, right: CedarValue) -> CedarValue:
        match left:
            case Variable(name="resource"):
                raise PolicyRefused("'resource in …': a row is judged by its own properties")
            case Variable(name="principal") | Known(value=EntityRef(type="Omnigraph::Actor")):
                return self._in_groups(entities_of(right))
            case Known(value=EntityRef()):
                return Known(left.value in entities_of(right))
            case _:
                raise PolicyRefused("'in' of a value")

    # -- comparisons ---------------------------------------------------------------------------------

    def _compare(self, op: ir.CompareOp, left: CedarValue, right: CedarValue) -> CedarValue:
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Variable):
                if one.name == "resource":
                    raise PolicyRefused("a comparison of 'resource' itself; compare 'resource.id'")
                return self._compare_actor(op, other)
        if isinstance(left, Known) and isinstance(right, Known):
            return Known(compare_known(op, left.value, right.value))
        if isinstance(left, Truth) or isinstance(right, Truth):
            return compare_truths(op, left, right)
        if not isinstance(left, ir.Prop):
            if not isinstance(right, ir.Prop):
                return Symbol(f"{name_of(left)} {op} {name_of(right)}", "Bool")
            left, right, op = right, left, FLIPPED[op]
        if isinstance(right, ir.Prop):
            return compare_columns(op, left, right)
        if left.type.is_list:
            raise PolicyRefused("a comparison of whole sets")
        if isinstance(right, Known) and isinstance(right.value, CedarTime) and left.type.scalar == "Date":
            return compare_date(op, left, right.value.milliseconds)
        assert isinstance(right, Known | Symbol)
        compared = ir.Compare(op, left, constant_of(right, left.type))
        return Truth(compared, negated(compared))

    def _compare_actor(self, op: ir.CompareOp, other: CedarValue) -> CedarValue:
        entities = entities_of(other)
        truth = self._is_actor(entities[0])
        return truth if op == "=" else Truth(truth.false, truth.true)

    def _contains(self, left: CedarValue, right: CedarValue) -> CedarValue:
        match left, right:
            case Known(), Known():
                return Known(right.value in left.value)
            case Known() | Symbol(), ir.Prop():
                return is_in(right, left)
            case ir.Prop(), Known() | Symbol():
                return has_item(left, right)
            case ir.Prop(), ir.Prop():
                if left.type.scalar != right.type.scalar:
                    raise PolicyRefused("'contains' of properties of different types")
                compared = ir.Compare("contains_item", left, right)
                return Truth(compared, ir.Not(compared))
            case Known() | Symbol(), Known() | Symbol():
                return Symbol(f"{name_of(left)}.contains({name_of(right)})", "Bool")
            case _:
                raise PolicyRefused("'contains' of a variable or condition")

    def _contains_several(self, left: CedarValue, right: CedarValue, *, every: bool) -> CedarValue:
        name = "containsAll" if every else "containsAny"
        if isinstance(left, Known | Symbol) and isinstance(right, Known | Symbol):
            if isinstance(left, Known) and isinstance(right, Known):
                return Known(right.value <= left.value if every else bool(right.value & left.value))
            return Symbol(f"{name_of(left)}.{name}({name_of(right)})", "Bool")
        if not every and isinstance(right, ir.Prop):
            left, right = right, left
        if not isinstance(left, ir.Prop) or not isinstance(right, Known | Symbol):
            raise PolicyRefused(f"'{name}' with a property of the row as its argument")
        if isinstance(right, Symbol):
            found = opaque_truth(f"{name_of(left)}.{name}({right.name})")
            return Truth(all_of([is_present(left), found.true]), all_of([is_present(left), found.false]))
        items = [has_item(left, Known(value)) for value in sorted(right.value, key=repr)]
        true, false = [item.true for item in items], [item.false for item in items]
        present = is_present(left)
        if every:
            return self._limited(Truth(all_of([present, *true]), any_of(false)))
        return self._limited(Truth(any_of(true), all_of([present, *false])))

    def _like(self, base: CedarValue, pattern: Any) -> CedarValue:
        parts: list[str | None] = []  # None is a wildcard
        for element in pattern:
            if isinstance(element, pst.Wildcard):
                if not parts or parts[-1] is not None:
                    parts.append(None)
            elif parts and parts[-1] is not None:
                parts[-1] += element.value
            else:
                parts.append(element.value)
        if is_missing(base):
            return Truth(False, False)
        if isinstance(base, Known):
            return Known(matches_parts(parts, base.value))
        if isinstance(base, Symbol):
            return Symbol(f"{base.name} like {parts}", "Bool")
        if not isinstance(base, ir.Prop):
            raise PolicyRefused("'like' of a variable or condition")
        found = text_test(base, parts)
        if isinstance(found, bool):
            return presence(base)
        return Truth(found, negated(found))
