"""Random policies for rows, random rows, and the decisions of Cedar on them."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any

import cedarpy
import numpy as np
import pyarrow as pa

from omnigraph.engine.write.where import bindings_of, row_evaluator
from omnigraph.errors import PolicyInvalid
from omnigraph.policy.load import parse_policy_text
from omnigraph.policy.rows.row_conditions import RowCondition
from omnigraph.policy.rows.row_decisions import stored_to_cedar
from omnigraph.policy.rows.row_policies import RowPolicies
from omnigraph.policy.rows.row_tables import PolicyActor
from omnigraph.policy.statements import PolicyStatements
from omnigraph.policy.statements_cedar import actor_entities, policy_set
from omnigraph.scalar_types.columns import stored_array
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.check import compile_schema

SCHEMA = """
node Doc {
    key: String @key
    tenant: String?
    status: enum(open, shut, odd)
    level: I64?
    small: I32
    big: U64?
    flag: Bool?
    sealed: Bool
    on: Date?
    at: DateTime?
    tags: [String]?
    nums: [I64]
    days: [Date]?
    title: String?
    score: F64?
}
"""
TEXTS = ["", "a", "acme", "beta", "a*b", "a.b\\c", "line\nbreak", "é/ü", "acme.beta", "%_"]
STATUSES = ["open", "shut", "odd"]
LONGS = [0, 1, 2, 3, -1, 7, 2**31 - 1, -(2**31), 2**40]
BIGS = [0, 1, 3, 2**40, 2**63 - 1]
DAYS = [0, 1, -1, 18_000, 19_000]
TIMES = [0, 1, 86_400_000, -1, 18_000 * 86_400_000, 18_000 * 86_400_000 + 12_345]
OPTIONAL = {
    "String": ["tenant", "title"],
    "Long": ["level", "big"],
    "datetime": ["on", "at"],
    "Bool": ["flag"],
    "Texts": ["tags"],
    "Days": ["days"],
}
REQUIRED = {"String": ["status", "key"], "Long": ["small"], "Bool": ["sealed"], "Longs": ["nums"]}
DECLARED = {"tenant": "String", "level": "Long", "vip": "Bool", "teams": "Set<String>", "marks": "Set<Long>"}
ACTORS: dict[str, dict[str, Any]] = {
    "ana": {"tenant": "acme", "level": 2, "vip": True, "teams": ["a", "acme"], "marks": [1, 3]},
    "bo": {"tenant": "beta", "teams": []},
    "cleo": {},
}


def catalog() -> Catalog:
    return compile_schema(SCHEMA)


class Generator:
    """Random conditions, policies and rows."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    # -- conditions ----------------------------------------------------------------------------------

    def condition(self, depth: int = 3) -> str:
        choice = self.random.random()
        if depth <= 0 or choice < 0.3:
            return self.leaf()
        if choice < 0.5:
            return f"({self.condition(depth - 1)} && {self.condition(depth - 1)})"
        if choice < 0.68:
            return f"({self.condition(depth - 1)} || {self.condition(depth - 1)})"
        if choice < 0.8:
            return f"!({self.condition(depth - 1)})"
        if choice < 0.9:
            parts = [self.condition(depth - 1) for _ in range(3)]
            return f"(if {parts[0]} then {parts[1]} else {parts[2]})"
        return self.tested(depth)

    def tested(self, depth: int) -> str:
        """A condition that tests an attribute itself."""
        kind = self.random.choice(list(OPTIONAL))
        name = self.random.choice(OPTIONAL[kind])
        reads = self.leaf_of(kind, f"resource.{name}")
        if self.random.random() < 0.5:
            return f"(resource has {name} && {reads})"
        return f"(if resource has {name} then {reads} else {self.condition(depth - 2)})"

    def leaf(self) -> str:
        choice = self.random.random()
        if choice < 0.06:
            return self.random.choice(["true", "false", "principal.vip", 'principal in Omnigraph::Group::"staff"'])
        if choice < 0.1:
            return self.random.choice(["context.protected", 'context.branch == "main"', 'principal.id == "ana"'])
        kind = self.random.choice(["String", "Long", "datetime", "Bool", "Texts", "Longs", "Days"])
        names = OPTIONAL.get(kind, []) + REQUIRED.get(kind, [])
        return self.leaf_of(kind, f"resource.{self.random.choice(names)}")

    def leaf_of(self, kind: str, value: str) -> str:
        pick = self.random.choice
        match kind:
            case "String":
                return self._text_leaf(value)
            case "Long":
                other = pick(
                    [str(pick(LONGS)), str(pick(LONGS)), "principal.level", "resource.small", "resource.level"]
                )
                if self.random.random() < 0.15:
                    return pick([f"[1, 3, 7].contains({value})", f"principal.marks.contains({value})"])
                return f"{value} {pick(['==', '!=', '<', '<=', '>', '>='])} {other}"
            case "datetime":
                day = pick(['datetime("1970-01-01")', 'datetime("1970-01-02")', 'datetime("2019-04-14T00:00:12.345Z")'])
                if self.random.random() < 0.15:
                    return f'[{day}, datetime("1969-12-31")].contains({value})'
                return f"{value} {pick(['==', '!=', '<', '<=', '>', '>='])} {day}"
            case "Bool":
                return pick([value, f"!{value}", f"{value} == true", f"{value} != false", f"[true].contains({value})"])
            case "Texts":
                return self._set_leaf(value, "principal.teams", [json.dumps(pick(TEXTS[:4])) for _ in range(2)])
            case "Longs":
                return self._set_leaf(value, "principal.marks", [str(pick(LONGS)) for _ in range(2)])
            case _:
                days = ['datetime("1970-01-01")', 'datetime("1970-01-02")', 'datetime("1970-01-02T00:00:00.001Z")']
                return self._set_leaf(value, f"[{days[0]}]", [pick(days) for _ in range(2)])

    def _text_leaf(self, value: str) -> str:
        pick = self.random.choice
        choice = self.random.random()
        text = json.dumps(pick(TEXTS), ensure_ascii=False)
        if choice < 0.35:
            pattern = "".join(
                pick(["*", "*", "a", "b", "acme", ".", "\\*", "\\n", "/", "é"]) for _ in range(pick([1, 2, 3, 4]))
            )
            return f'{value} like "{pattern}"'
        if choice < 0.5:
            return f"[{text}, {json.dumps(pick(TEXTS), ensure_ascii=False)}].contains({value})"
        if choice < 0.6:
            return f"principal.teams.contains({value})"
        other = pick([text, text, "principal.tenant", "resource.title", "resource.status"])
        return f"{value} {pick(['==', '!='])} {other}"

    def _set_leaf(self, value: str, constant: str, items: list[str]) -> str:
        pick = self.random.choice
        literal = f"[{', '.join(items)}]"
        return pick(
            [
                f"{value}.contains({items[0]})",
                f"{value}.containsAny({literal})",
                f"{value}.containsAll({literal})",
                f"{value}.containsAny({constant})",
                f"{value}.containsAll({constant})",
                f"{constant}.containsAny({value})",
            ]
        )

    # -- policies ------------------------------------------------------------------------------------

    def document(self) -> dict[str, Any]:
        rules = []
        for number in range(self.random.choice([1, 2, 3, 4])):
            effect = "deny" if self.random.random() < 0.3 else "allow"
            body: dict[str, Any] = {"actors": {"any": True}, "actions": ["row_read"], "types": ["Doc"]}
            if self.random.random() < 0.3:
                body["actors"] = {"group": "staff"}
            if self.random.random() < 0.15:
                body["except"] = {"group": "hr"}
            if self.random.random() < 0.15:
                body["branches"] = self.random.choice(["protected", ["main"], ["draft/*"]])
            if self.random.random() < 0.95:
                body["when"] = self.condition()
            rules.append({"id": f"r{number}", effect: body})
        for name in self.random.sample(["title", "level"], k=self.random.choice([0, 1, 2])):
            effect = "deny" if self.random.random() < 0.5 else "allow"
            guard: dict[str, Any] = {
                "actors": self.random.choice([{"any": True}, {"group": "staff"}]),
                "actions": ["property_read"],
                "types": ["Doc"],
                "properties": [name],
                "otherwise": "mask",
                "when": self.condition(2),
            }
            rules.append({"id": f"p-{name}", effect: guard})
        return {
            "version": 2,
            "groups": {"staff": ["ana", "bo"], "hr": ["bo"]},
            "attributes": {"declare": DECLARED, **{name: values for name, values in ACTORS.items() if values}},
            "protected_branches": ["main"],
            "rows": {"default": self.random.choice(["allow", "deny"])},
            "rules": rules,
        }

    def policies(self, schema: Catalog) -> RowPolicies | None:
        """Return random policies; None if Cedar or the translation refuses them."""
        statements = parse_policy_text(json.dumps(self.document()))
        assert isinstance(statements, PolicyStatements)
        try:
            return RowPolicies(statements, schema)
        except PolicyInvalid:
            return None

    # -- rows ----------------------------------------------------------------------------------------

    def rows(self, count: int) -> list[dict[str, Any]]:
        pick, null = self.random.choice, self.random.random
        found = []
        for number in range(count):
            row: dict[str, Any] = {
                "key": f"k{number}" if null() < 0.7 else pick(TEXTS[1:4]) + str(number),
                "tenant": pick(TEXTS),
                "status": pick(STATUSES),
                "level": pick(LONGS),
                "small": pick(LONGS[:8]),
                "big": pick(BIGS),
                "flag": pick([True, False]),
                "sealed": pick([True, False]),
                "on": pick(DAYS),
                "at": pick(TIMES),
                "tags": [pick(TEXTS[:4]) for _ in range(pick([0, 1, 2, 3]))],
                "nums": [pick(LONGS) for _ in range(pick([0, 1, 2, 3]))],
                "days": [pick([0, 1]) for _ in range(pick([0, 1, 2]))],
                "title": pick(TEXTS),
            }
            for name in ("tenant", "level", "big", "flag", "on", "at", "tags", "days", "title"):
                if null() < 0.25:
                    row[name] = None
            found.append({**row, "id": row["key"]})
        return found


def engine_mask(schema: Catalog, condition: RowCondition, rows: list[dict[str, Any]]) -> list[bool]:
    """Return the rows for which a condition is true, by the evaluator of the engine."""
    if isinstance(condition, bool):
        return [condition] * len(rows)
    types = {name: p.type for name, p in schema.nodes["Doc"].properties.items()}
    columns = {name: stored_array([row.get(name) for row in rows], arrow_type(type_)) for name, type_ in types.items()}
    columns["id"] = pa.array([row["id"] for row in rows])
    mask = row_evaluator(schema, {}).mask(condition, bindings_of(pa.table(columns)))
    return list(np.asarray(mask, dtype=bool))


@dataclass(frozen=True)
class Question:
    """Which rows may an actor read on a branch, or which values of a property?"""

    actor: PolicyActor
    branch: str
    name: str | None = None


def cedar_masks(policies: RowPolicies, rows: list[dict[str, Any]], questions: list[Question]) -> list[list[bool]]:
    """Return for each question the rows that Cedar allows: rows are parsed once, and all requests are one batch."""
    types = {name: p.type.scalar for name, p in policies.catalog.nodes["Doc"].properties.items()}
    statements = policies.statements
    entities: dict[str, Any] = {}
    for actor in {question.actor for question in questions}:
        for entity in actor_entities(statements, actor.name, actor.groups, actor.attributes):
            entities[str(entity["uid"])] = entity
    resources = [{"type": "Node::Doc", "id": str(number)} for number in range(len(rows))]
    for uid, row in zip(resources, rows, strict=True):
        attrs = {
            name: stored_to_cedar(value, types.get(name, "String"))
            for name, value in row.items()
            if value is not None and name != "score"
        }
        entities[str(uid)] = {"uid": uid, "attrs": attrs, "parents": []}
    requests = []
    for question in questions:
        context = {
            "branch": question.branch,
            "protected": statements.is_protected(question.branch),
            "matches": statements.matching_patterns(question.branch),
            **({"property": question.name} if question.name is not None else {}),
        }
        request = {
            "principal": {"type": "Omnigraph::Actor", "id": question.actor.name},
            "action": {"type": "Omnigraph::Action", "id": "row_read" if question.name is None else "property_read"},
            "context": json.dumps(context),
        }
        requests += [{**request, "resource": uid} for uid in resources]
    parsed = cedarpy.Entities.from_json_str(json.dumps([*entities.values()]), policies.schema)
    everything = policy_set({one: dict(policy) for one, policy in policies.compiled.policies.items()})
    results = cedarpy.is_authorized_batch(requests, everything, parsed, policies.schema)
    assert not any(result.diagnostics.errors for result in results)
    allowed = [result.allowed for result in results]
    return [allowed[at : at + len(rows)] for at in range(0, len(allowed), len(rows))]
