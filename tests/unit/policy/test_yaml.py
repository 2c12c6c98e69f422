from __future__ import annotations

import pytest

from omnigraph.errors import InputError, PolicyInvalid
from omnigraph.policy import Policy, load_policy, load_server_policy, parse_rules, read_rules
from omnigraph.policy.advice import warnings_of
from omnigraph.policy.load import parse_policy_text
from omnigraph.policy.rules import GRAPH_ACTIONS
from omnigraph.policy.starter import starter_policy, starter_tests
from omnigraph.policy.tests import parse_cases, run_cases
from omnigraph.policy.yaml_nodes import BYTES_MAX
from support.policies import CASES, EXAMPLE

HEAD = "version: 1\ngroups: { g: [ana] }\n"


def problems(text: str) -> list[tuple[str, str, int | None]]:
    with pytest.raises(PolicyInvalid) as caught:
        parse_rules(text)
    assert caught.value.code == "policy_invalid"
    assert caught.value.message.startswith("'policy.yaml' is not a valid policy: ")
    return [(found.path, found.describe(), found.line) for found in caught.value.problems]


def rule(body: str) -> str:
    return f"{HEAD}rules:\n  - {{id: r, allow: {{{body}}}}}\n"


def test_example():
    rules = parse_rules(EXAMPLE)
    assert rules.groups_of["act-idris"] == ("curators", "registrar")
    assert rules.protected_branches == {"main", "published"}
    assert [found.id for found in rules.rules][-1] == "registrar-publishes"
    assert rules.rules[-1].scope == ("target_branch_scope", "protected")


def test_only_the_version_is_required():
    rules = parse_rules("version: 1\n")
    assert (dict(rules.groups), rules.protected_branches, rules.rules) == ({}, frozenset(), ())


@pytest.mark.parametrize(
    ("text", "path", "words"),
    [
        ("", "version", ["missing", "expected 1"]),
        ("version: 2", "version", ["2", "expected 1"]),
        ('version: "1"', "version", ["1 (a string)", "expected 1"]),
        ("version: [1]", "version", ["a list", "expected 1"]),
        ("[]", "", ["must be a map, not a list"]),
        ("version: 1\ngroups: [a]", "groups", ["must be a map"]),
        ("version: 1\ngroups: {' ': [a]}", "groups", ["blank"]),
        ("version: 1\ngroups: {g: []}", "groups.g", ["group 'g' has no actors"]),
        ("version: 1\ngroups: {g: ['']}", "groups.g[0]", ["blank"]),
        ("version: 1\ngroups: {g: [a, 7]}", "groups.g[1]", ["an integer", 'in quotes: "7"']),
        ("version: 1\ngroups: {g: [no]}", "groups.g[0]", ["a Boolean"]),
        ("version: 1\ngroups: {g: ana}", "groups.g", ["must be a list, not a string"]),
        ("version: 1\nprotected_branches: [main, ' ']", "protected_branches[1]", ["blank"]),
        ("version: 1\nprotected_branches: main", "protected_branches", ["must be a list"]),
        ("version: 1\nrule: []", "rule", ["unknown key 'rule'", "did you mean 'rules'?"]),
        ("version: 1\nrules: {}", "rules", ["must be a list, not a map"]),
        ("version: 1\nrules: [x]", "rules[0]", ["must be a map, not a string"]),
        (f"{HEAD}rules: [{{allow: {{actors: {{group: g}}, actions: [read]}}}}]", "rules[0].id", ["missing"]),
        (f"{HEAD}rules: [{{id: ' ', allow: {{actors: {{group: g}}, actions: [read]}}}}]", "rules[0].id", ["blank"]),
        (f"{HEAD}rules: [{{id: r}}]", "rules[0].allow", ["missing"]),
        (f"{HEAD}rules: [{{id: r, allow: []}}]", "rules[0].allow", ["must be a map"]),
        (
            f"{HEAD}rules: [{{id: r, effect: deny, allow: {{actors: {{group: g}}, actions: [read]}}}}]",
            "rules[0].effect",
            ["unknown key 'effect'", "id, allow"],
        ),
        (rule("actions: [read]"), "rules[0].allow.actors", ["missing", "group: NAME"]),
        (rule("actors: {}, actions: [read]"), "rules[0].allow.actors.group", ["missing"]),
        (rule("actors: g, actions: [read]"), "rules[0].allow.actors", ["must be a map"]),
        (rule("actors: {group: gg}, actions: [read]"), "rules[0].allow.actors.group", ["'r'", "'gg'", "'g'"]),
        (rule("actors: {group: g}"), "rules[0].allow.actions", ["'r' has no actions", "branch_merge"]),
        (rule("actors: {group: g}, actions: []"), "rules[0].allow.actions", ["'r' has no actions", "read"]),
        (
            rule("actors: {group: g}, actions: [reed]"),
            "rules[0].allow.actions[0]",
            ["'r'", "'reed'", "'read'", "admin"],
        ),
        (rule("actors: {group: g}, actions: [graph_list]"), "rules[0].allow.actions[0]", ["'graph_list'"]),
        (
            rule("actors: {group: g}, actions: [read], branch_scope: any, target_branch_scope: any"),
            "rules[0].allow",
            ["'r' has both branch_scope and target_branch_scope"],
        ),
        (
            rule("actors: {group: g}, actions: [read, branch_merge], branch_scope: any"),
            "rules[0].allow.branch_scope",
            ["'r'", "branch_scope", "'branch_merge'", "takes target_branch_scope"],
        ),
        (
            rule("actors: {group: g}, actions: [change], target_branch_scope: any"),
            "rules[0].allow.target_branch_scope",
            ["'r'", "target_branch_scope", "'change'", "takes branch_scope"],
        ),
        (
            rule("actors: {group: g}, actions: [admin], branch_scope: any"),
            "rules[0].allow.branch_scope",
            ["'admin' takes no scope"],
        ),
        (
            rule("actors: {group: g}, actions: [read], branch_scope: protect"),
            "rules[0].allow.branch_scope",
            ["'r'", "'protect'", "protected"],
        ),
        (
            rule("actors: {group: g}, actions: [read], branch_scop: any"),
            "rules[0].allow.branch_scop",
            ["did you mean 'branch_scope'?"],
        ),
        ("version: 1\nversion: 1", "version", ["repeated", "line 1"]),
        ("version: 1\ngroups: &a { g: [ana] }", "", ["anchors"]),
        ("version: 1\ngroups: { g: *a }", "", ["anchors"]),
        ("version: !!int 1", "", ["tags are not allowed"]),
        ("version: 1\n---\nversion: 1", "", ["several documents"]),
        ("version: 1\n? [a]\n: b", "", ["a key must be a string"]),
        ("version: 1\ngroups: {", "", ["not YAML"]),
        ("version: 1\x00", "", ["not YAML"]),
        ("[" * 300_000, "", ["nested more than 8 levels"]),
        ("{a: " * 300_000, "", ["nested more than 8 levels"]),
        ("#" * (BYTES_MAX + 1), "", ["at most 4,194,304"]),
    ],
)
def test_problem_names_its_key_and_remedy(text, path, words):
    ((found_path, described, _),) = problems(text)
    assert found_path == path
    assert all(word in described for word in words), described


RULE = "rules:\n  - id: a\n    {effect}: {{ actors: {{ group: g }}, actions: [read]{more} }}\n"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("rows: { default: allow }\nrules: [{id: a, deny: {x: 1}}]\n", "'rows' on line 2"),
        ("attributes: { declare: { a: Strng } }\n", "'attributes' on line 2"),
        (RULE.format(effect="deny", more=""), "'deny' on line 4"),
        (RULE.format(effect="allow", more=", when: 'true', types: [A]"), "'when' on line 4"),
        (RULE.format(effect="allow", more="").replace("group: g", "any: true"), "'any' on line 4"),
    ],
)
@pytest.mark.parametrize(
    ("version", "said", "hint"),
    [
        ("groups: { g: [ana] }", "is missing", "add the line: version: 2"),
        ("version: 1", "is 1", "write: version: 2"),
        ("version: 3", "is 3", "write: version: 2"),
    ],
)
def test_keys_of_version_2_need_version_2(text, key, version, said, hint):
    with pytest.raises(PolicyInvalid) as caught:
        parse_policy_text(f"{version}\n{text}")
    (problem,) = caught.value.problems
    assert problem.message == f"{said}, but {key} is a key of version 2"
    assert (problem.path, problem.hint) == ("version", hint)


def test_repeated_rule_id_on_the_same_line():
    allow = "allow: {actors: {group: g}, actions: [read]}"
    found = problems(f"{HEAD}rules: [{{id: r, {allow}}}, {{id: r, {allow}}}]")
    assert found == [("rules[1].id", "line 3, rules[1].id: rule id 'r' is repeated; it is also on line 3", 3)]


def test_all_problems_are_reported_in_order_of_lines():
    head = "version: 3\ngroups:\n  a: []\nrules:\n  - id: x\n    allow:\n"
    text = f"{head}      actors: {{ group: b }}\n      actions: [reed]\n"
    assert [(path, line) for path, _, line in problems(text)] == [
        ("version", 1),
        ("groups.a", 3),
        ("rules[0].allow.actors.group", 7),
        ("rules[0].allow.actions[0]", 8),
    ]


def test_long_lists_of_problems_are_shortened_in_the_message():
    with pytest.raises(PolicyInvalid) as caught:
        parse_rules("version: 1\n" + "".join(f"x{index}: 1\n" for index in range(50)))
    assert len(caught.value.problems) == 50
    assert caught.value.message.endswith("\n  and 30 more")


def test_names_cannot_change_the_structure_of_a_policy(tmp_path):
    name = 'x\\" || true); permit(principal, action, resource); //\\n\\u0001\\x7f'
    path = tmp_path / "p.yaml"
    path.write_text(
        f'version: 1\ngroups: {{ "{name}": [ana, "{name}"], g: [bo] }}\n'
        f'rules: [{{id: "{name}", allow: {{actors: {{group: "{name}"}}, actions: [read]}}}}]\n'
    )
    policy = load_policy(path)
    (rule_id,) = policy.decide("ana", "read").matched_rules
    assert rule_id.startswith('x" || true')
    assert not policy.decide("bo", "read").allowed
    assert not policy.decide("ana", "change", "main").allowed


def test_file_errors(tmp_path):
    for name, code in (("none.yaml", "no_such_file"), ("", "unreadable_file"), ("latin.yaml", "not_utf8")):
        (tmp_path / "latin.yaml").write_bytes(b"version: 1 # \xe9")
        with pytest.raises(InputError) as caught:
            read_rules(tmp_path / name)
        assert caught.value.code == code
        assert str(tmp_path) in caught.value.message


def test_byte_order_mark_is_accepted(tmp_path):
    (tmp_path / "p.yaml").write_bytes(b"\xef\xbb\xbfversion: 1\n")
    assert read_rules(str(tmp_path / "p.yaml")).rules == ()


def test_warnings():
    rules = parse_rules(
        "version: 1\ngroups: { a: [ana], b: [bo, ana], c: [cleo] }\n"
        "rules:\n"
        "  - {id: r, allow: {actors: {group: a}, actions: [admin]}}\n"
        "  - {id: s, allow: {actors: {group: a}, actions: [read], branch_scope: protected}}\n"
        "  - {id: t, allow: {actors: {group: c}, actions: [run_publish, run_abort]}}\n"
    )
    assert warnings_of(rules) == [
        "no rule uses group 'b'",
        "actor 'bo' is only in groups that no rule uses; all its requests are denied",
        "rule 't': action 'run_publish' grants nothing; remove it",
        "rule 't': action 'run_abort' grants nothing; remove it",
        "group 'a' may read only with a scope other than 'any'; requests without a branch "
        "(lists of branches and tags) are denied",
    ]


@pytest.mark.parametrize("owner", ["act-owner", "ana", 'a"b: {', "42"])
def test_starter_policy_passes_its_tests(owner, tmp_path):
    (tmp_path / "p.yaml").write_text(starter_policy(owner))
    policy = load_policy(tmp_path / "p.yaml")
    assert warnings_of(policy.rules) == []
    assert all(outcome.ok for outcome in run_cases(policy, parse_cases(starter_tests(owner))))


def test_cases_of_the_specification(tmp_path):
    (tmp_path / "p.yaml").write_text(EXAMPLE)
    outcomes = run_cases(load_policy(tmp_path / "p.yaml"), parse_cases(CASES))
    assert [(found.ok, found.matched_rule) for found in outcomes] == [
        (True, "everyone-reads"),
        (True, None),
        (True, "registrar-publishes"),
        (True, None),
    ]


@pytest.mark.parametrize(
    ("text", "path", "words"),
    [
        ("version: 3\ncases: []", "version", "expected 1 or 2"),
        ("version: 1\ncase: []", "case", "did you mean 'cases'?"),
        ("version: 1\ncases: [{id: a, actor: b, action: reed, expect: allow}]", "cases[0].action", "'read'"),
        ("version: 1\ncases: [{id: a, actor: b, action: read, expect: yes}]", "cases[0].expect", "in quotes"),
        ("version: 1\ncases: [{id: a, actor: b, action: read, expect: maybe}]", "cases[0].expect", "allow, deny"),
        ("version: 1\ncases: [{id: a, actor: b, action: read}]", "cases[0].expect", "missing"),
        ("version: 1\ncases: [{id: a, actor: ' ', action: read, expect: deny}]", "cases[0].actor", "blank"),
        ("version: 1\ncases: [{id: a, actor: b, action: read, expect: deny, x: 1}]", "cases[0].x", "unknown key"),
        ("version: 1\ncases: [{id: a, actor: b, action: read, expect: deny, branch: ''}]", "cases[0].branch", "blank"),
        (
            "version: 1\ncases:\n- {id: a, actor: b, action: read, expect: deny}\n"
            "- {id: a, actor: b, action: read, expect: deny}",
            "cases[1].id",
            "line 3",
        ),
    ],
)
def test_problem_of_a_tests_file(text, path, words):
    with pytest.raises(PolicyInvalid, match="is not a valid policy tests file") as caught:
        parse_cases(text)
    (found,) = caught.value.problems
    assert found.path == path
    assert words in found.describe()


SERVER = """\
version: 1
groups: { operators: [ola], auditors: [aud] }
rules:
  - { id: operate, allow: { actors: { group: operators }, actions: [graph_list, admin] } }
  - { id: audit, allow: { actors: { group: auditors }, actions: [audit_read] } }
"""


def test_server_policy(tmp_path):
    (tmp_path / "server.yaml").write_text(SERVER)
    policy = load_server_policy(tmp_path / "server.yaml")
    assert policy.rules.kind == "server"
    assert policy.decide("ola", "graph_list").matched_rule == "operate"
    assert policy.decide("aud", "audit_read").matched_rule == "audit"
    assert not policy.decide("aud", "admin").allowed
    decision = policy.decide("ola", "read", "main")
    assert decision.reasons == ("rules for action 'read' are in the graph policy ('policy.file')",)
    assert 'Omnigraph::Server::"root"' in policy.cedar_text


def test_a_graph_policy_does_not_decide_on_the_server():
    rule_ = rule("actors: {group: g}, actions: [admin, read]")
    decision = Policy(parse_rules(rule_)).decide("ana", "audit_read")
    assert decision.reasons == ("rules for action 'audit_read' are in the server policy ('server.policy.file')",)


@pytest.mark.parametrize(
    ("kind", "action", "file"),
    [
        *(("graph", action, "'server.policy.file'") for action in ("graph_list", "audit_read")),
        *(("server", action, "'policy.file'") for action in GRAPH_ACTIONS if action != "admin"),
    ],
)
def test_actions_of_graph_and_server_are_not_mixed(kind, action, file):
    text = rule(f"actors: {{group: g}}, actions: [admin, {action}]")
    with pytest.raises(PolicyInvalid) as caught:
        parse_rules(text, kind=kind)
    [problem] = caught.value.problems
    assert problem.rule == "r"
    assert f"'{action}'" in problem.message
    assert file in str(problem.hint)


def test_a_server_policy_has_no_branches():
    text = SERVER + "protected_branches: [main]\n"
    with pytest.raises(PolicyInvalid, match="unknown key 'protected_branches'"):
        parse_rules(text, kind="server")
    with pytest.raises(PolicyInvalid, match="'admin' takes no scope"):
        parse_rules(SERVER.replace("admin] }", "admin], branch_scope: any }"), kind="server")
