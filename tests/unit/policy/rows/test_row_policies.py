"""Rules for rows and properties: compilation, refusals, conditions, visibility."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from omnigraph.errors import InputError, PolicyInvalid, TypeNotFound
from omnigraph.policy.cedar_files import parse_cedar_file
from omnigraph.policy.cedar_schema import cedar_type_name
from omnigraph.policy.load import parse_policy_text
from omnigraph.policy.rows.row_conditions import all_of, any_of, complement, condition_text
from omnigraph.policy.rows.row_policies import RowPolicies
from omnigraph.policy.statements import PolicyStatements
from omnigraph.policy.yaml_nodes import ProblemLog
from omnigraph.query.plan import ir
from omnigraph.query.visibility import project_catalog
from omnigraph.schema.check import compile_schema
from omnigraph.types import PropertyType

SCHEMA = """
interface Owned {
    tenant: String?
    note: String
}
node Customer implements Owned {
    number: I64 @key
    level: I64?
    tags: [String]?
    due: Date?
    score: F64?
    stage: enum(draft, final)?
}
node Note implements Owned {
    slug: String @key
}
node Person {
    name: String @key
    salary: I64
    sealed: Bool?
    born: Date?
    bio: String?
    vec: Vector(4)? @embed(bio)
    @unique(salary, born)
}
edge Wrote: Person -> Note {
    since: Date?
}
edge Knows: Person -> Person
"""
HEAD = """\
version: 2
groups: { staff: [ana, bo], hr: [cleo], owners: [olga] }
attributes:
  declare: { tenant: String, level: Long }
  ana: { tenant: acme, level: 3 }
  bo: { tenant: acme, level: 3 }
protected_branches: [main]
"""
EXAMPLE = (
    HEAD
    + """\
rows: { default: allow }
rules:
  - id: own-tenant
    allow: { actors: { group: staff }, actions: [row_read, row_update], types: [Customer, Note],
             when: 'resource.tenant == principal.tenant' }
  - id: sealed
    deny:  { actors: { any: true }, except: { group: hr }, actions: [row_read], types: [Person],
             when: 'resource.sealed' }
  - id: salary
    allow: { actors: { group: hr }, actions: [property_read, property_write], types: [Person], properties: [salary],
             otherwise: mask }
  - id: bio
    allow: { actors: { group: hr }, actions: [property_read], types: [Person], properties: [bio] }
  - id: owners
    allow: { actors: { group: owners }, role: owner }
"""
)


@pytest.fixture(scope="module")
def schema():
    return compile_schema(SCHEMA)


@pytest.fixture(scope="module")
def example(schema):
    return bind(schema, EXAMPLE)


def bind(schema, text: str, cedar: str = "") -> RowPolicies:
    statements = parse_policy_text(text)
    assert isinstance(statements, PolicyStatements)
    if cedar:
        log = ProblemLog("more.cedar", "policy")
        file = parse_cedar_file("more.cedar", cedar, log)
        log.raise_any()
        assert file is not None
        statements = replace(statements, cedar_files=(file,))
    return RowPolicies(statements, schema)


def rule(when: str, *, effect: str = "allow", types: str = "[Customer]", more: str = "", default: str = "allow") -> str:
    body = f"actors: {{ any: true }}, actions: [row_read], types: {types}, when: {json.dumps(when)}{more}"
    return f"{HEAD}rows: {{ default: {default} }}\nrules: [{{ id: r, {effect}: {{ {body} }} }}]\n"


def text_of(policies: RowPolicies, actor: str, key: str, branch: str = "main", action: str = "row_read") -> str:
    return condition_text(policies.condition(policies.actor(actor), action, key, branch))


def problems(schema, text: str, cedar: str = "") -> list[str]:
    with pytest.raises(PolicyInvalid) as caught:
        bind(schema, text, cedar)
    return [problem.message for problem in caught.value.problems]


def test_constants_are_folded(example):
    assert text_of(example, "ana", "node:Customer") == 'row."tenant" = String:"acme"'
    assert text_of(example, "cleo", "node:Customer") == "none"
    assert text_of(example, "olga", "node:Customer") == "all"
    assert text_of(example, "ana", "node:Person") == 'not row."sealed"'
    assert text_of(example, "cleo", "node:Person") == "all"
    assert text_of(example, "ana", "edge:Wrote") == "all"
    assert text_of(example, "ana", "node:Customer", action="row_insert") == "none"
    assert text_of(example, "ana", "node:Person", action="row_insert") == "all"


def test_a_missing_attribute_denies(schema):
    # In a rule that denies, a row without the property is denied; in one that allows, it is not granted.
    denied = bind(schema, rule("resource.level > 3", effect="deny"))
    assert text_of(denied, "ana", "node:Customer") == 'row."level" <= I64:3'
    allowed = bind(schema, rule("resource.level > principal.level"))
    assert text_of(allowed, "ana", "node:Customer") == 'row."level" > I64:3'
    assert text_of(allowed, "zoe", "node:Customer") == "none"
    both = bind(schema, rule("resource.level > principal.level", effect="deny"))
    assert text_of(both, "zoe", "node:Customer") == "none"


def test_equal_constants_give_equal_digests(example):
    ana, bo, cleo = (example.visibility(example.actor(name), "main") for name in ("ana", "bo", "cleo"))
    assert ana is not None
    assert bo is not None
    assert cleo is not None
    assert ana.digest == bo.digest != cleo.digest
    again = example.visibility(example.actor("zoe", ["staff"], {"tenant": "acme"}), "main")
    assert again is not None
    assert again.digest == ana.digest
    other = example.visibility(example.actor("zoe", ["staff"], {"tenant": "beta"}), "main")
    assert other is not None
    assert other.digest != ana.digest


def test_visibility(example):
    found = example.visibility(example.actor("ana"), "main")
    assert found is not None
    assert set(found.rows) == {"node:Customer", "node:Note", "node:Person"}
    assert found.properties == {
        ("node:Person", "bio"): None,
        ("node:Person", "salary"): ir.Const(False, ir.BOOL),
    }
    stranger = example.visibility(example.actor("stranger"), "main")
    assert stranger is not None
    assert stranger.rows["node:Customer"] is None
    assert stranger.rows["node:Note"] is None
    assert example.visibility(example.actor("olga"), "main") is not None  # the denial applies to owners
    plain = bind(example.catalog, HEAD + "rows: { default: allow }\nrules: []\n")
    assert plain.visibility(plain.actor("ana"), "main") is None
    hidden = bind(example.catalog, HEAD + "rows: { default: deny }\nrules: []\n")
    seen = hidden.visibility(hidden.actor("ana"), "main")
    assert seen is not None
    assert set(seen.rows.values()) == {None}


def test_the_catalog_of_an_actor(example, schema):
    seen = example.visibility(example.actor("stranger"), "main")
    assert seen is not None
    stranger = project_catalog(schema, seen)
    assert set(stranger.nodes) == {"Person"}
    assert set(stranger.edges) == {"Knows"}
    assert set(stranger.interfaces) == set()
    person = stranger.nodes["Person"]
    assert set(person.properties) == {"name", "salary", "sealed", "born", "vec"}
    assert person.properties["salary"].type == PropertyType("I64", nullable=True)
    assert person.unique == ()


def test_branches_select_rules(schema):
    text = rule("resource.tenant == principal.tenant", more=", branches: [main, 'draft/*']")
    policies = bind(schema, text)
    assert text_of(policies, "ana", "node:Customer", "main") == 'row."tenant" = String:"acme"'
    assert text_of(policies, "ana", "node:Customer", "draft/a") == 'row."tenant" = String:"acme"'
    assert text_of(policies, "ana", "node:Customer", "draft/a/b") == "none"
    protected = bind(schema, rule("true", effect="deny", more=", branches: unprotected"))
    assert text_of(protected, "ana", "node:Customer", "main") == "all"
    assert text_of(protected, "ana", "node:Customer", "x") == "none"


def test_interfaces_and_all_types(schema):
    text = rule('resource.tenant == "acme"', types="[Owned]")
    policies = bind(schema, text)
    assert text_of(policies, "ana", "node:Note") == 'row."tenant" = String:"acme"'
    assert text_of(policies, "ana", "node:Person") == "all"
    every = bind(schema, rule('resource.id == "x"', types="any"))
    assert text_of(every, "ana", "edge:Wrote") == 'row."id" = String:"x"'
    edges = bind(schema, rule('resource.from == "p" && resource.to != "q"', types="[Wrote]"))
    assert text_of(edges, "ana", "edge:Wrote") == '(row."dst" != String:"q" and row."src" = String:"p")'


def test_cedar_files(schema):
    cedar = """
    @id("by-interface")
    permit (principal, action == Omnigraph::Action::"row_read", resource in Omnigraph::Interface::"Owned")
    when { principal has level && principal.level > 2 };
    @id("one-row")
    permit (principal == Omnigraph::Actor::"bo", action == Omnigraph::Action::"row_read",
            resource == Node::Person::"p1");
    @id("no-salary") @otherwise("mask")
    forbid (principal, action == Omnigraph::Action::"property_read", resource is Node::Person)
    when { context.property == "salary" && resource has sealed && resource.sealed };
    """
    policies = bind(schema, HEAD + "rows: { default: allow }\nrules: []\n", cedar)
    assert text_of(policies, "ana", "node:Note") == "all"
    assert text_of(policies, "cleo", "node:Note") == "none"
    assert text_of(policies, "ana", "node:Person") == "none"
    assert text_of(policies, "bo", "node:Person") == 'row."id" = String:"p1"'
    assert text_of(policies, "ana", "edge:Knows") == "all"
    found = policies.visibility(policies.actor("bo"), "main")
    assert found is not None
    assert condition_text(found.properties["node:Person", "salary"]) == '(not row."sealed" or row."sealed" is null)'
    assert "permit (" in policies.cedar_text


@pytest.mark.parametrize(
    ("when", "text"),
    [
        ('resource.tenant like "a*"', 'row."tenant" starts_with String:"a"'),
        ('resource.tenant like "*a"', 'row."tenant" ends_with String:"a"'),
        ('resource.tenant like "*a*"', 'row."tenant" contains_text String:"a"'),
        ('resource.tenant like "a"', 'row."tenant" = String:"a"'),
        ('resource.tenant like "*"', 'row."tenant" is not null'),
        ('resource.tenant like "a*.b"', 'row."tenant" matches String:"(?s)\\\\Aa.*\\\\x{2e}b\\\\z"'),
        ('resource.tags.contains("x")', 'row."tags" contains_item String:"x"'),
        ('["x", "y"].contains(resource.tenant)', 'String:["x", "y"] contains_item row."tenant"'),
        ('resource.due < datetime("1970-01-02")', 'row."due" < Date:1'),
        ('resource.due < datetime("1970-01-02T00:00:01Z")', 'row."due" <= Date:1'),
        ('resource.due == datetime("1970-01-02T00:00:01Z")', "none"),
        ("!(resource.level == 3)", 'row."level" != I64:3'),
        ("resource has level", 'row."level" is not null'),
        ("resource has note", "all"),
        ("resource is Node::Customer", "all"),
        ('principal in [Omnigraph::Group::"staff", Omnigraph::Group::"hr"]', "all"),
        ('principal == Omnigraph::Actor::"bo"', "none"),
        ("if resource has level then resource.level == 1 else true", '(row."level" = I64:1 or row."level" is null)'),
    ],
)
def test_translation(schema, when, text):
    assert text_of(bind(schema, rule(when)), "ana", "node:Customer") == text


@pytest.mark.parametrize(
    ("when", "reason"),
    [
        ("resource.level + 1 > 2", "arithmetic"),
        ("resource.level * 2 > 2", "arithmetic"),
        ("-(resource.level) > 2", "arithmetic"),
        ('resource in Node::Customer::"x"', "'resource in …'"),
        ('resource == Node::Customer::"x"', "compare 'resource.id'"),
        ('resource.tags == ["a"]', "whole sets"),
        ('["a"].containsAll(resource.tags)', "'containsAll'"),
        ("resource.tags.isEmpty()", "the function 'is_empty'"),
        ('[resource.tenant].contains("a")', "a set that contains a property"),
        ('resource.due.toDate() == datetime("1970-01-01")', "the function 'to_date'"),
        ("resource.score > 1", "is a F64?, which has no Cedar type"),
        ("resource.lvl > 1", "has no property 'lvl'"),
        ("resource has lvl", "has no property 'lvl'"),
        ("(resource.level > 1) == (resource.level > 2)", "a comparison of conditions"),
        ('resource.level == "a"', "Cedar rejects it"),
        ("resource.note", "Cedar rejects it"),
    ],
)
def test_refusals(schema, when, reason):
    found = problems(schema, rule(when))
    assert any(reason in message and "rule 'r'" in message for message in found), found


@pytest.mark.parametrize(
    ("when", "value", "hint"),
    [
        ('resource.stage == "Draft"', "Draft", "did you mean 'draft'?"),
        ('resource.level > 1 && "finl" != resource.stage', "finl", "did you mean 'final'?"),
        ('["draft", "other"].contains(resource.stage)', "other", "the values are draft, final"),
    ],
)
def test_texts_that_an_enum_does_not_have(schema, when, value, hint):
    with pytest.raises(PolicyInvalid) as caught:
        bind(schema, rule(when))
    (problem,) = caught.value.problems
    assert problem.message == f"rule 'r': '{value}' is not a value of 'stage', which is enum(draft, final)"
    assert (problem.hint, problem.rule) == (hint, "r")
    assert problem.line is not None


def test_an_enum_value_of_another_type_of_the_rule_is_accepted():
    schema = compile_schema(
        "node A { k: String @key stage: enum(a, b) }\nnode B { k: String @key stage: enum(b, c) }\n"
    )
    bind(schema, rule('resource.stage == "c" || resource.k == "x"', types="[A, B]"))
    with pytest.raises(PolicyInvalid, match="'d' is not a value of 'stage'"):
        bind(schema, rule('resource.stage == "d"', types="[A, B]"))


@pytest.mark.parametrize(
    ("when", "reason", "hint"),
    [
        ("principal.lvel == 3", "'principal' has no attribute 'lvel'", "did you mean 'level'?"),
        ("principal.age == 3", "'principal' has no attribute 'age'", "'attributes.declare'"),
        ("resource.level > 3.0", "'when' is not a condition of Cedar", "Cedar has no floats"),
        ("resource.score > 3", "is a F64?, which has no Cedar type", "Cedar has no floats"),
        ("resource.tenant == 'a'", "'when' is not a condition of Cedar", "texts are in double quotes"),
        ('principal.level == "a"', "Cedar rejects it", None),
    ],
)
def test_refusals_have_lines_and_hints(schema, when, reason, hint):
    with pytest.raises(PolicyInvalid) as caught:
        bind(schema, rule(when))
    (problem,) = caught.value.problems
    assert reason in problem.message
    assert problem.line == rule(when).count("\n", 0, rule(when).index("allow:")) + 1
    assert hint in problem.hint if hint is not None else problem.hint is None


def test_a_condition_that_is_too_large_is_refused(schema):
    condition = "resource.level == 0"
    for number in range(1, 40):
        condition = f"(if {condition} then resource.level != {number} else resource.level < {number})"
    assert any("too large" in message for message in problems(schema, rule(condition)))


@pytest.mark.parametrize(
    "when",
    [
        "(" * 100_000 + "resource.sealed" + ")" * 100_000,
        "!(" * 5_000 + "resource.sealed" + ")" * 5_000,
        "[" * 100_000 + "1" + "]" * 100_000 + ".contains(1)",
        " && ".join(["resource.sealed"] * 100_000),
        "resource" + ".a" * 100_000 + " == 1",
        "resource" + '["a"]' * 100_000 + " == 1",
        "resource has " + "a." * 100_000 + "a",
        "1" + "+1" * 100_000 + " == 2",
        "1" + " - 1" * 100_000 + " == 2",
        "if resource.sealed then " * 100_000 + "true" + " else true" * 100_000,
        " || ".join(f'resource.name == "{number}"' for number in range(100)),
    ],
    ids=lambda text: text[:20],
)
def test_deep_conditions_are_refused(schema, when):
    found = problems(schema, rule(when, types="[Person]"))
    assert any("it is nested too deeply" in message for message in found), found


def test_large_sets_and_chains_are_accepted(schema):
    names = ", ".join(f'"n ( {number}"' for number in range(10_000))
    for when in (f"[{names}].contains(resource.name)", " || ".join(["resource.sealed"] * 50)):
        assert text_of(bind(schema, rule(when, types="[Person]")), "ana", "node:Person")


def test_the_period_of_a_row_cannot_be_hidden():
    schema = compile_schema("node Stay @valid(from: came, to: left) { name: String @key  came: Date?  left: Date? }")
    text = f"{HEAD}rows: {{ default: allow }}\nrules:\n  - {{ id: r, allow: {{ actors: {{ group: staff }}, "
    for name in ("came", "left"):
        hidden = f"{text}actions: [property_read], types: [Stay], properties: [{name}], otherwise: mask }} }}\n"
        assert problems(schema, hidden) == [
            f"rule 'r': '{name}' of 'Stay' bounds the period of a row and cannot be hidden"
        ]
    bind(schema, f"{text}actions: [property_write], types: [Stay], properties: [left] }} }}\n")


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("properties: [nope]", "'Person' has no property 'nope'"),
        ("properties: [name]", "identifies the row and cannot be hidden"),
        ("properties: [id], otherwise: mask", "identifies the row and cannot be hidden"),
        ("properties: [bio], when: 'resource.sealed'", "write 'otherwise: mask'"),
    ],
)
def test_refusals_of_property_rules(schema, body, wanted):
    text = f"{HEAD}rows: {{ default: allow }}\nrules:\n  - {{ id: r, allow: {{ actors: {{ any: true }}, "
    text += f"actions: [property_read], types: [Person], {body} }} }}\n"
    assert any(wanted in message for message in problems(schema, text))


def test_hidden_and_masked_is_refused(schema):
    rules = "".join(
        f"  - {{ id: {name}, deny: {{ actors: {{ any: true }}, actions: [property_read], types: [Person], "
        f"properties: [bio], otherwise: {name} }} }}\n"
        for name in ("hide", "mask")
    )
    found = problems(schema, f"{HEAD}rows: {{ default: allow }}\nrules:\n{rules}")
    assert any("hidden by one rule and masked by another" in message for message in found)


def test_unknown_types_are_refused(schema):
    found = problems(schema, rule("true", types="[Custmer]"))
    assert found == ["rule 'r': there is no type 'Custmer'"]


@pytest.mark.parametrize(
    ("cedar", "wanted"),
    [
        (
            'forbid (principal, action == Omnigraph::Action::"property_read", resource is Node::Person);',
            "identifies the row",
        ),
        (
            'permit (principal, action == Omnigraph::Action::"row_read", resource is Node::Nope);',
            "Cedar rejects it: unrecognized entity type `Node::Nope`",
        ),
        (
            'forbid (principal, action, resource is Node::Note) unless { action == Omnigraph::Action::"row_read" };',
            "treats rows and properties differently",
        ),
        (
            'permit (principal, action == Omnigraph::Action::"row_read", resource is Node::Customer) '
            "when { resource.level > 1 };",
            "Cedar rejects it",
        ),
    ],
)
def test_refusals_of_cedar_files(schema, cedar, wanted):
    found = problems(schema, HEAD + "rows: { default: allow }\nrules: []\n", cedar)
    assert any(wanted in message for message in found), found


def test_decisions_on_one_row(example):
    ana = example.actor("ana")
    row = {"number": 1, "tenant": "acme", "note": ""}
    assert example.decisions.judge(ana, "row_read", "node:Customer", row, "main").allowing == ("own-tenant",)
    other = {**row, "tenant": None}
    assert not example.decisions.judge(ana, "row_read", "node:Customer", other, "main").allowed
    (first, *_) = example.decisions.consider(ana, "row_read", "node:Customer", other, "main")
    assert (first.rule, first.why, first.missing) == ("own-tenant", "condition", ("resource.tenant",))
    assert {
        one.rule: one.why
        for one in example.decisions.consider(example.actor("x"), "row_read", "node:Customer", row, "a")
    } == {
        "own-tenant": "actor_not_in_group",
        "owners": "actor_not_in_group",
    }
    person = {"name": "Eve", "salary": 3}
    denied = example.decisions.judge(ana, "row_read", "node:Person", person, "main")
    assert denied.denying == ("sealed",)
    assert [
        one.missing
        for one in example.decisions.consider(ana, "row_read", "node:Person", person, "main")
        if one.why == "denies"
    ] == [("resource.sealed",)]
    views = example.decisions.property_views(ana, "node:Person", person, "main")
    assert (views["salary"], views["bio"], views["name"]) == ("mask", "hide", "show")
    assert set(example.decisions.property_views(example.actor("cleo"), "node:Person", person, "main").values()) == {
        "show"
    }


def test_errors_of_rows(example):
    ana = example.actor("ana")
    with pytest.raises(InputError, match="has no property 'tenannt'"):
        example.decisions.judge(ana, "row_read", "node:Customer", {"tenannt": "a"}, "main")
    with pytest.raises(InputError, match="property 'tenant' of 'Customer'"):
        example.decisions.judge(ana, "row_read", "node:Customer", {"tenant": 3}, "main")
    with pytest.raises(TypeNotFound, match="there is no type 'Custmer'"):
        example.table_key("Custmer")
    assert example.table_key("Knows") == "edge:Knows"


@pytest.mark.parametrize(
    ("name", "cedar"),
    [("Person", "Person"), ("Set", "T_536574"), ("T_536574", "T_545f353336353734"), ("T_x", "T_x")],
)
def test_names_of_types(name, cedar):
    assert cedar_type_name(name) == cedar


def test_reserved_names_of_types_work():
    schema = compile_schema("node Set { key: String @key  has: String? }\nedge String: Set -> Set")
    text = rule('resource["has"] == "x"', types="[Set]")
    assert text_of(bind(schema, text), "ana", "node:Set") == 'row."has" = String:"x"'
    edges = bind(schema, rule('resource.from == "x"', types="[String]"))
    assert text_of(edges, "ana", "edge:String") == 'row."src" = String:"x"'


WORDS_OF_CEDAR = (
    *("Action", "Actor", "Any", "Bool", "Boolean", "Branch", "Context", "Decimal", "Edge", "Entity", "EntityOrCommon"),
    *("Extension", "Graph", "Group", "Interface", "Ipaddr", "Long", "Node", "Omnigraph", "Principal", "Record"),
    *("Resource", "Set", "String", "Type"),
)


@pytest.mark.parametrize("name", WORDS_OF_CEDAR)
def test_types_may_have_names_of_cedar(name):
    schema = compile_schema(f"node {name} {{ key: String @key }}\nedge Link: {name} -> {name}")
    rows = bind(schema, rule('resource.key == "x"', types=f"[{name}]"))
    assert text_of(rows, "ana", f"node:{name}") == 'row."key" = String:"x"'


# -- combination -------------------------------------------------------------------------------------

X = ir.Prop(ir.ROW, "x", PropertyType("I64", nullable=True))
Y = ir.Prop(ir.ROW, "y", PropertyType("I64"))
ONE = ir.Const(1, ir.I64)


def test_canonical_form():
    a, b = ir.Compare("=", X, ONE), ir.Compare("<", Y, ONE)
    assert all_of([a, b]) == all_of([b, a, b, True])
    assert any_of([a, False]) == a
    assert all_of([a, False]) is False
    assert all_of([]) is True
    assert any_of([]) is False
    assert all_of([ir.Not(ir.IsNull(X)), a]) == a
    kept = all_of([ir.Not(ir.IsNull(X)), any_of([a, b])])
    assert condition_text(kept) == '((row."x" = I64:1 or row."y" < I64:1) and row."x" is not null)'


def test_null_and_not_null_are_resolved():
    z = ir.Prop(ir.ROW, "z", PropertyType("I64", nullable=True))
    a, c = ir.Compare("=", X, ONE), ir.Compare("=", z, ONE)
    assert all_of([a, any_of([ir.IsNull(X), c])]) == all_of([a, c])
    assert all_of([a, c, any_of([ir.IsNull(X), ir.IsNull(z)])]) is False
    assert all_of([a, any_of([ir.IsNull(X), all_of([c, ir.Compare("<", Y, ONE)])])]) == all_of(
        [a, c, ir.Compare("<", Y, ONE)]
    )


def test_complement_is_true_where_a_condition_is_unknown():
    a, b = ir.Compare("=", X, ONE), ir.Compare("<", Y, ONE)
    assert condition_text(complement(a)) == '(row."x" != I64:1 or row."x" is null)'
    assert condition_text(complement(b)) == 'row."y" >= I64:1'
    assert complement(True) is False
    assert complement(complement(b)) == b
    assert condition_text(complement(ir.IsNull(X))) == 'row."x" is not null'
    assert complement(ir.Not(ir.IsNull(X))) == ir.IsNull(X)
